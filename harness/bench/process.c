#include "harness/bench/process.h"

#include "harness/bench/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { ARGUMENTS = 32 };

static _Noreturn void become(const fl_bench *b, const char *const *argv) {
    const char *all[ARGUMENTS + 2] = {b->program};
    for (size_t i = 0; i < ARGUMENTS && argv[i]; i++)
        all[i + 1] = argv[i];
    const int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(nothing, 2) < 0)
        _exit(127);
    execv(b->program, (char *const *)(uintptr_t)all);
    _exit(127);
}

fl_status fl_bench_process(const fl_bench *b, const char *const *argv, fl_bench_cost *cost, fl_diag *d) {
    int status = 0;
    struct rusage use;
    fflush(NULL);
    const double start = fl_bench_seconds();
    const pid_t child = fork();
    if (child == 0)
        become(b, argv);
    fl_bench_folder_child(child > 0 ? child : 0);
    pid_t ended = -1;
    while (child > 0 && (ended = wait4(child, &status, 0, &use)) < 0 && errno == EINTR) {
    }
    fl_bench_folder_child(0);
    if (ended < 0)
        return fl_error(d, FL_IO, "foldline %s could not be started", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fl_error(d, FL_IO, "foldline %s %s did not end well (%s %d)", argv[0], argv[1] ? argv[1] : "",
                        WIFEXITED(status) ? "exit status" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    cost->wall_s = fl_bench_seconds() - start;
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
