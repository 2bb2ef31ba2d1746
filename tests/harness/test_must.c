/* The end of a program for a lack of memory: once, with status 3 and one line, whichever threads find none, and no
 * unfinished output stays or takes its place. */
#include "harness/base/work/work.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"
#include "traces/io/io.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 64, THREADS = 8 };

static fl_status lose(void *user, size_t index, fl_diag *d) {
    (void)d;
    if (index % 4 == 3)
        fl_must(user);
    return FL_OK;
}

/* What one process wrote to standard error; out: the output it had open. */
static int end_in(fl_status (*way)(void), const char *out, const char *said) {
    fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        fl_diag d = {0};
        const int fd = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
            _exit(90);
        fl_output *o = fl_output_open(out, &d);
        if (!o)
            _exit(91);
        fputs("half of", fl_output_file(o));
        fflush(fl_output_file(o));
        way();
        _exit(fl_output_commit(o, &d) ? 92 : 93);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static fl_status from_here(void) {
    size_t room = 0;
    void *items = NULL;
    fl_must_grow(&items, &room, SIZE_MAX / 2, 64);
    return FL_OK;
}

static fl_status from_threads(void) { return fl_pool_run(lose, NULL, JOBS, THREADS, NULL, NULL); }

static size_t files_in_folder(void) {
    size_t count = 0;
    DIR *d = opendir(fl_temp_folder);
    for (struct dirent *e; d && (e = readdir(d));)
        count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return count;
}

static void test_ends(void) {
    static fl_status (*const way[])(void) = {from_here, from_threads};
    char out[512], said[512];
    snprintf(out, sizeof out, "%s", fl_temp_path("out.csv"));
    snprintf(said, sizeof said, "%s", fl_temp_path("said"));
    for (int i = 0; i < 40; i++) {
        size_t size = 0;
        fl_temp_text("out.csv", "the old one");
        const int status = end_in(way[i % 2], out, said);
        char *text = fl_temp_slurp(said, &size), *kept = fl_temp_slurp(out, &size);
        FL_CHECK(status == 3, "status %d", status);
        FL_CHECK(text && !strcmp(text, "foldline: out of memory\n"), "said '%s'", text ? text : "");
        FL_CHECK(kept && !strcmp(kept, "the old one"), "the output became '%s'", kept ? kept : "");
        FL_CHECK(files_in_folder() == 2, "%zu files", files_in_folder());
        free(text);
        free(kept);
    }
    unlink(out);
    unlink(said);
}

static void test_goes_on(void) {
    char *text = fl_must_print("%d of %s", 3, "five");
    size_t room = 0;
    int *items = NULL;
    FL_CHECK(!strcmp(text, "3 of five"), "%s", text);
    fl_must_grow(&items, &room, 4, sizeof *items);
    FL_CHECK(items && room >= 4 && fl_must(items) == items, "room %zu", room);
    fl_must_have(true);
    free(items);
    free(text);
}

FL_SUITE("must", {"memory is there", test_goes_on}, {"memory is not there", test_ends})
