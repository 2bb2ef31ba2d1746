/* What cannot be virtual ends the session, never with a quiet wrong time; and system calls by number. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A program of our session that becomes one without our hooks (Go, static): just before, it asks the kernel to hold the
 * calls of what follows, and tells the server where it hears of them. */

static int connect_server(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *folder = getenv(FL_EMULATE_VARIABLE);
    if (!folder ||
        snprintf(to.sun_path, sizeof to.sun_path, "%s/" FL_EMULATE_SOCKET, folder) >= (int)sizeof to.sun_path)
        return -1;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Between the filter and its being heard of, this thread makes no call that the filter holds. Where it cannot be made,
 * the server finds the program and ends the session. */
static void hold_next(const char *path) {
    fl_ask q;
    fl_answer a;
    const fl_image_kind kind = fl_image_of(path);
    if (kind != FL_IMAGE_GO && kind != FL_IMAGE_STATIC)
        return;
    const int server = connect_server();
    if (server < 0)
        return;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_HOLD;
    q.image = FL_EMULATE_VERSION;
    q.thread = (int32_t)gettid();
    const int calls = fl_filter_install();
    q.a = (uint32_t)calls;
    if (calls >= 0 && send(server, &q, sizeof q, MSG_NOSIGNAL) == (ssize_t)sizeof q)
        (void)REAL(recv)(server, &a, sizeof a, 0);
    close(server);
}

/* Refuse an environment that lacks this library: the program that starts in it would have the machine's time. A
 * program whose calls the kernel holds needs none. */
static void check_environment(const char *path, char *const envp[]) {
    const fl_image_kind kind = fl_image_of(path);
    if (access(path, X_OK) || kind == FL_IMAGE_GO || kind == FL_IMAGE_STATIC)
        return;
    for (; envp && *envp; envp++)
        if (!strncmp(*envp, "LD_PRELOAD=", 11) && strstr(*envp, "libfoldline-time.so"))
            return;
    fl_time_fail("an exec without LD_PRELOAD in its environment");
}

FL_SHOWN int execve(const char *path, char *const argv[], char *const envp[]) {
    if (fl_time_on()) {
        hold_next(path);
        check_environment(path, envp);
    }
    return REAL(execve)(path, argv, envp);
}
FL_SHOWN int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

/* The file that execvp would run. */
static void hold_found(const char *name, char *const envp[]) {
    char path[4096];
    const char *at = getenv("PATH");
    if (strchr(name, '/')) {
        hold_next(name);
        check_environment(name, envp);
        return;
    }
    while (at && *at) {
        const size_t n = strcspn(at, ":");
        if (n && snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name) < (int)sizeof path && !access(path, X_OK)) {
            hold_next(path);
            check_environment(path, envp);
            return;
        }
        at += n + (at[n] == ':');
    }
}

FL_SHOWN int execvpe(const char *name, char *const argv[], char *const envp[]) {
    if (fl_time_on())
        hold_found(name, envp);
    return REAL(execvpe)(name, argv, envp);
}
FL_SHOWN int execvp(const char *name, char *const argv[]) {
    if (fl_time_on())
        hold_found(name, environ);
    return REAL(execvp)(name, argv);
}

/* ---- calls that cannot be virtual ---- */

/* A tracer stops its programs where no one passes the token on. */
FL_SHOWN long ptrace(enum __ptrace_request request, ...) {
    va_list args;
    va_start(args, request);
    const pid_t pid = va_arg(args, pid_t);
    void *const address = va_arg(args, void *), *const data = va_arg(args, void *);
    va_end(args);
    if (fl_time_on())
        fl_time_fail("ptrace");
    return REAL(ptrace)(request, pid, address, data);
}

FL_SHOWN int daemon(int nochdir, int noclose) {
    if (fl_time_on())
        fl_time_fail("daemon");
    return REAL(daemon)(nochdir, noclose);
}
FL_SHOWN int clone(int (*f)(void *), void *stack, int flags, void *argument, ...) {
    if (fl_time_on())
        fl_time_fail("clone");
    va_list list;
    va_start(list, argument);
    void *parent = va_arg(list, void *), *tls = va_arg(list, void *), *child = va_arg(list, void *);
    va_end(list);
    return REAL(clone)(f, stack, flags, argument, parent, tls, child);
}

/* ---- futexes ---- */

static long futex_wait(const int *at, int value, int64_t until) {
    fl_line me;
    if (__atomic_load_n(at, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
    }
    fl_line_join(&me, at);
    const int e = fl_time_wait(fl_line_woken, &me, until, true);
    fl_line_leave(&me);
    if (e)
        errno = e;
    return e ? -1 : 0;
}

static long futex(long a[6]) {
    const int operation = (int)a[1] & FUTEX_CMD_MASK;
    const clockid_t clock = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const struct timespec *t = (const struct timespec *)a[3];
    switch (operation) {
    case FUTEX_WAIT:
        return futex_wait((const int *)a[0], (int)a[2], fl_time_after(t));
    case FUTEX_WAIT_BITSET:
        return futex_wait((const int *)a[0], (int)a[2], fl_time_of(clock, t));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        return fl_line_wake((const void *)a[0], (int)a[2]);
    default:
        fl_time_fail("futex");
    }
}

FL_SHOWN long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!fl_time_on())
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    switch (number) {
    case SYS_futex:
        return futex(a);
    case SYS_clock_gettime:
        return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
    case SYS_gettimeofday:
        return gettimeofday((struct timeval *)a[0], (void *)a[1]);
    case SYS_nanosleep:
        return nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
    case SYS_clock_nanosleep: {
        const int e =
            clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2], (struct timespec *)a[3]);
        if (e)
            errno = e;
        return e ? -1 : 0;
    }
    case SYS_sched_yield:
        return sched_yield();
    case SYS_timer_create:
    case SYS_timerfd_create:
    case SYS_setitimer:
    case SYS_clone:
    case SYS_clone3:
#ifdef SYS_alarm
    case SYS_alarm:
    case SYS_fork:
    case SYS_vfork:
    case SYS_time:
#endif
    {
        char text[48];
        snprintf(text, sizeof text, "system call %ld", number);
        fl_time_fail(text);
    }
    case SYS_pidfd_send_signal: {
        const pid_t pid = fl_time_pid_of((int)a[0]);
        const long r = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (!r && a[1])
            (void)fl_time_say(FL_TIME_SIGNAL, (uint32_t)pid, (uint32_t)a[1]);
        return r;
    }
    default:
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}
