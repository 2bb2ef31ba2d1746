#include "tests/bench/process.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"
#include "tests/bench/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { ARGUMENTS = 32 };

/* Starts the program with these arguments. A fork would copy the page tables of this process, and the command's time
 * would include that: half a millisecond for 20 MB. errors: where its error messages go; NULL: nowhere. Returns the
 * process, or -1. */
static pid_t start_program(const fl_bench *b, const char *const *argv, FILE *errors) {
    static const char nowhere[] = "/dev/null";
    const char *all[ARGUMENTS + 2] = {b->program};
    posix_spawn_file_actions_t files;
    pid_t child = -1;
    for (size_t i = 0; i < ARGUMENTS && argv[i]; i++)
        all[i + 1] = argv[i];
    if (posix_spawn_file_actions_init(&files))
        return -1;
    const bool ready = !posix_spawn_file_actions_addopen(&files, 0, nowhere, O_RDWR, 0) &&
                       !posix_spawn_file_actions_adddup2(&files, 0, 1) &&
                       !posix_spawn_file_actions_adddup2(&files, errors ? fileno(errors) : 0, 2);
    if (!ready || posix_spawn(&child, b->program, &files, NULL, (char *const *)(uintptr_t)all, environ))
        child = -1;
    posix_spawn_file_actions_destroy(&files);
    return child;
}

/* A process that was not forked begins with the peak of the process that started it. So this resets the peak to the
 * memory held now. */
static fl_status forget_peak(fl_diag *d) {
    static const char path[] = "/proc/self/clear_refs";
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    const bool done = file >= 0 && write(file, "5", 1) == 1;
    if (file >= 0)
        close(file);
    return done ? FL_OK : fl_fail(d, FL_IO, path, 0, 0, "cannot be written, so the memory of a command is not known");
}

/* The last line of its output, which is the error; empty if there was no output. */
static void last_words(FILE *errors, char *line, size_t size) {
    *line = 0;
    if (!errors)
        return;
    rewind(errors);
    for (char next[512]; fgets(next, sizeof next, errors);) {
        next[strcspn(next, "\n")] = 0;
        if (*next)
            snprintf(line, size, "%s", next);
    }
}

/* A gate that does not hold is a result of the experiment, not a failure of the command. */
static fl_status judge(const char *const *argv, int status, FILE *errors, fl_diag *d) {
    char said[512];
    if (WIFEXITED(status) && (WEXITSTATUS(status) == FL_EXIT_OK || WEXITSTATUS(status) == FL_EXIT_GATE))
        return FL_OK;
    last_words(errors, said, sizeof said);
    return fl_error(d, FL_IO, "foldline %s %s did not end well (%s %d)%s%s", argv[0], argv[1] ? argv[1] : "",
                    WIFEXITED(status) ? "exit status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), *said ? ": " : "", said);
}

fl_status fl_bench_process(const fl_bench *b, const char *const *argv, fl_bench_cost *cost, fl_diag *d) {
    int status = 0;
    struct rusage use;
    fl_status s = forget_peak(d);
    if (s)
        return s;
    FILE *errors = tmpfile();
    fflush(NULL);
    const double start = fl_bench_seconds();
    const pid_t child = start_program(b, argv, errors);
    fl_bench_folder_child(child > 0 ? child : 0);
    pid_t ended = -1;
    while (child > 0 && (ended = wait4(child, &status, 0, &use)) < 0 && errno == EINTR) {
    }
    fl_bench_folder_child(0);
    const double wall_s = fl_bench_seconds() - start;
    s = ended < 0 ? fl_error(d, FL_IO, "foldline %s could not be started", argv[0]) : judge(argv, status, errors, d);
    if (errors)
        fclose(errors);
    if (s)
        return s;
    cost->wall_s = wall_s;
    cost->cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                  1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    cost->peak_mb = (double)use.ru_maxrss * 1024 / 1e6;
    return FL_OK;
}

void fl_bench_shrink(fl_bench *b) {
    free(b->rec);
    b->rec = NULL;
    b->rec_count = 0;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

fl_status fl_bench_file(const fl_bench *b, const char *name, const char *text, char *path, fl_diag *d) {
    if ((size_t)snprintf(path, 512, "%s/%s", b->folder, name) >= 512)
        return fl_fail(d, FL_IO, b->folder, 0, 0, "too long a path for temporary files");
    if (!text)
        return FL_OK;
    FILE *f = fopen(path, "wb");
    bool bad = !f || fputs(text, f) < 0;
    if (f && fclose(f))
        bad = true;
    return bad ? fl_fail(d, FL_IO, path, 0, 0, "cannot be written") : FL_OK;
}
