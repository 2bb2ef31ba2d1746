/* Files that take another's place once they are whole: nothing of a writer that is killed stays. */
#include "traces/io/inside.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[400];

static int entries(void) {
    int n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return n;
}

static const char *in_folder(const char *name) {
    static char path[500];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Half a file of 1 MB is out when the signal comes. */
static void killed_by(int signal_number) {
    const pid_t pid = fork();
    if (!pid) {
        fl_diag d = {0};
        fl_output *o = fl_output_open(in_folder("k.csv"), &d);
        for (int i = 0; o && i < 100000; i++)
            fputs("0123456789\n", fl_output_file(o));
        if (o)
            fflush(fl_output_file(o));
        kill(getpid(), signal_number);
        for (;;) /* an emulator may deliver the signal a moment later */
            pause();
    }
    int status = 0;
    waitpid(pid, &status, 0);
    FL_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal_number, "status %d", status);
}

static bool nameless_files(void) {
    const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void test_killed(void) {
    snprintf(folder, sizeof folder, "%.390s", fl_temp_path("beside"));
    FL_CHECK(!mkdir(folder, 0700), "no folder");
    if (!nameless_files())
        printf("skipped: this file system has no files without a name; ");
    const int signals[] = {SIGKILL, SIGINT, SIGTERM};
    for (size_t i = 0; nameless_files() && i < sizeof signals / sizeof *signals; i++) {
        killed_by(signals[i]);
        FL_CHECK(entries() == 0, "signal %d leaves %d files", signals[i], entries());
    }
}

static int make_file(const char *name, int days_old) {
    const int fd = open(in_folder(name), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    const struct timespec t = {.tv_sec = time(NULL) - days_old * 86400};
    FL_CHECK(fd >= 0 && !futimens(fd, (struct timespec[]){t, t}), "%s", name);
    return fd;
}

static bool there(const char *name) { return access(in_folder(name), F_OK) == 0; }

/* What a kill left goes with the next writer: at once where its lock tells that nobody is at work on it, after a day
 * where another machine, or an older version, may be. */
static void test_stale(void) {
    char *own = fl_beside_name(""), *working = fl_beside_name(""), *folder_like = fl_beside_name("");
    static const struct {
        const char *name;
        int days;
        bool stays;
    } row[] = {{".foldline-00000000-7-0.tmp", 0, true}, {".foldline-00000000-7-1.tmp", 2, false},
               {".foldline-12345-1.tmp", 0, true},      {".foldline-12345-2.tmp", 2, false},
               {".foldline-1-1.tmp.csv", 9, true},      {"foldline-1-1.tmp", 9, true},
               {".foldline-notes.csv", 9, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        close(make_file(row[i].name, row[i].days));
    close(make_file(own, 0));
    const int held = make_file(working, 9);
    FL_CHECK(fl_beside_claim(held), "claimed");
    FL_CHECK(!mkdir(in_folder(folder_like), 0700), "a folder");
    fl_diag d = {0};
    fl_output *o = fl_output_open(in_folder("a.csv"), &d);
    FL_CHECK(!there(own) && there(working) && there(folder_like), "own %d, at work on %d, folder %d", there(own),
             there(working), there(folder_like));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(there(row[i].name) == row[i].stays, "%s of %d days: %d", row[i].name, row[i].days, there(row[i].name));
    FL_CHECK(o && fl_output_commit(o, &d) == FL_OK && there("a.csv"), "%s", d.message);
    close(held);
    o = fl_output_open(in_folder("a.csv"), &d);
    FL_CHECK(o && !there(working), "given up, and there");
    fl_output_abort(o);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        unlink(in_folder(row[i].name));
    unlink(in_folder("a.csv"));
    rmdir(in_folder(folder_like));
    FL_CHECK(entries() == 0, "%d files", entries());
    free(own);
    free(working);
    free(folder_like);
}

static void test_places(void) {
    fl_diag d = {0};
    struct stat st;
    char text[16] = "";
    for (int round = 0; round < 2; round++) { /* a new file, then over the old one */
        fl_output *o = fl_output_open(in_folder("a.csv"), &d);
        FL_CHECK(o != NULL, "%s", d.message);
        if (!o)
            return;
        fprintf(fl_output_file(o), "round %d\n", round);
        FL_CHECK(!fl_output_commit(o, &d), "%s", d.message);
        FILE *f = fopen(in_folder("a.csv"), "r");
        FL_CHECK(f && fgets(text, sizeof text, f) && text[6] == '0' + round, "'%s'", text);
        if (f)
            fclose(f);
        FL_CHECK(entries() == 1, "%d files", entries());
        if (!round)
            FL_CHECK(!chmod(in_folder("a.csv"), 0640), "mode");
    }
    FL_CHECK(!stat(in_folder("a.csv"), &st) && (st.st_mode & 0777) == 0640, "mode %o", st.st_mode & 0777u);
    fl_output *o = fl_output_open(in_folder("a.csv"), &d);
    if (o)
        fputs("given up\n", fl_output_file(o));
    fl_output_abort(o);
    FL_CHECK(entries() == 1, "given up, %d files", entries());
    fl_beside b;
    FL_CHECK(fl_beside_open(&b, in_folder("none/a.csv"), 0600) == ENOENT, "a folder that is not there");
    FL_CHECK(!fl_beside_open(&b, in_folder("b"), 0600), "open");
    FL_CHECK(!mkdir(in_folder("b"), 0700), "mkdir");
    FL_CHECK(fl_beside_place(&b, in_folder("b")) == EISDIR, "over a folder");
    close(b.fd);
    fl_beside_drop(&b);
    FL_CHECK(entries() == 2, "refused, %d files", entries());
    rmdir(in_folder("b"));
    unlink(in_folder("a.csv"));
    rmdir(folder);
    fl_temp_remove();
}

FL_SUITE("beside", {"killed", test_killed}, {"left by a kill", test_stale}, {"places", test_places})
