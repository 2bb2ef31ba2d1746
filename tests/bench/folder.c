#include "tests/bench/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int END[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDS = sizeof END / sizeof *END };

static char folder[256];
static struct sigaction before[ENDS];
static volatile sig_atomic_t open_now, child_now;

/* opendir allocates, so a signal handler may not call it. The entries come from the kernel directly. */
static void remove_files(void) {
    alignas(struct dirent64) char entries[4096];
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got = 0;
    while (fd >= 0 && (got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        bool any = false;
        for (long at = 0; at < got;) {
            const struct dirent64 *e = (const struct dirent64 *)(const void *)(entries + at);
            any |= unlinkat(fd, e->d_name, 0) == 0; /* this fails for . and .. */
            at += e->d_reclen;
        }
        if (any)
            lseek(fd, 0, SEEK_SET); /* a removal moves the other entries */
    }
    if (fd >= 0)
        close(fd);
}

static void on_end(int number) {
    const pid_t child = child_now;
    if (child > 0 && kill(child, SIGKILL) == 0)
        waitpid(child, NULL, 0);
    if (open_now) {
        remove_files();
        rmdir(folder);
    }
    for (size_t i = 0; i < ENDS; i++)
        if (END[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number);
}

fl_status fl_bench_folder_open(const char **path, fl_diag *d) {
    const char *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    const int n = snprintf(folder, sizeof folder, "%s/foldline-bench-XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof folder)
        return fl_error(d, FL_IO, "no folder for temporary files: the path %s is too long", base);
    if (!mkdtemp(folder))
        return fl_error(d, FL_IO, "no folder for temporary files in %s: %s", base, fl_reason(errno));
    open_now = 1;
    struct sigaction now, a = {.sa_handler = on_end, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < ENDS; i++) {
        sigaddset(&a.sa_mask, END[i]);
        if (!sigaction(END[i], NULL, &now) && ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_IGN))
            sigaction(END[i], &a, &before[i]); /* a signal that nohup ignores stays ignored */
    }
    *path = folder;
    return FL_OK;
}

void fl_bench_folder_clear(void) { remove_files(); }

void fl_bench_folder_close(void) {
    remove_files();
    rmdir(folder);
    open_now = 0;
}

void fl_bench_folder_child(pid_t child) { child_now = child; }

void fl_bench_folder_leave(void) {
    for (size_t i = 0; i < ENDS; i++) {
        struct sigaction now;
        if (!sigaction(END[i], NULL, &now) && now.sa_handler == on_end)
            signal(END[i], SIG_DFL);
    }
}
