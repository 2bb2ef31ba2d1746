/* Processes and signals. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a new process ---- */

FL_SHOWN pid_t fork(void) {
    if (!fl_time_on())
        return REAL(fork)();
    const uint64_t number = fl_time_say(FL_TIME_BEAR, 1, 0);
    const pid_t pid = REAL(fork)();
    if (!pid) {
        fl_line_forget();
        fl_time_begin(number);
    } else if (pid < 0) {
        const int saved = errno;
        (void)fl_time_say(FL_TIME_MISSED, (uint32_t)number, 0);
        errno = saved;
    } else {
        (void)fl_time_say(FL_TIME_NAMED, (uint32_t)number, (uint32_t)pid);
    }
    return pid;
}
FL_SHOWN pid_t _Fork(void) { return fork(); }
FL_SHOWN pid_t vfork(void) { return fork(); } /* its child may do no more than fork's may */

typedef int fl_spawn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]);

static int spawn(fl_spawn *real, pid_t *out, const char *path, const posix_spawn_file_actions_t *f,
                 const posix_spawnattr_t *a, char *const argv[], char *const envp[]) {
    pid_t pid = 0;
    if (!fl_time_on())
        return real(out, path, f, a, argv, envp);
    const uint64_t number = fl_time_say(FL_TIME_BEAR, 1, 0);
    const int e = real(&pid, path, f, a, argv, envp);
    (void)fl_time_say(e ? FL_TIME_MISSED : FL_TIME_NAMED, (uint32_t)number, (uint32_t)pid);
    if (!e && out)
        *out = pid;
    return e;
}
FL_SHOWN int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict f,
                         const posix_spawnattr_t *restrict a, char *const argv[restrict], char *const envp[restrict]) {
    return spawn(REAL(posix_spawn), pid, path, f, a, argv, envp);
}
FL_SHOWN int posix_spawnp(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict f,
                          const posix_spawnattr_t *restrict a, char *const argv[restrict], char *const envp[restrict]) {
    return spawn(REAL(posix_spawnp), pid, path, f, a, argv, envp);
}

FL_SHOWN int system(const char *command) {
    if (!fl_time_on() || !command)
        return REAL(system)(command);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction interrupt, quit;
    sigset_t child, before;
    int status = -1;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    sigprocmask(SIG_BLOCK, &child, &before);
    const pid_t pid = fork();
    if (!pid) {
        sigaction(SIGINT, &interrupt, NULL);
        sigaction(SIGQUIT, &quit, NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -1 : status;
}

/* ---- waiting for children ---- */

typedef struct fl_child {
    pid_t pid, result;
    int *status, options, error;
    struct rusage *usage;
    idtype_t type;
    id_t id;
    siginfo_t *info;
} fl_child;

static bool look_child(void *of) {
    fl_child *c = of;
    c->result = REAL(wait4)(c->pid, c->status, c->options | WNOHANG, c->usage);
    c->error = c->result < 0 ? errno : 0;
    return c->result != 0;
}

FL_SHOWN pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (!fl_time_on() || options & WNOHANG) {
        if (fl_time_on())
            fl_time_spin();
        return REAL(wait4)(pid, status, options, usage);
    }
    fl_child c = {.pid = pid, .status = status, .options = options, .usage = usage};
    const int e = fl_time_wait(look_child, &c, FL_VIRTUAL_FOREVER, true);
    if (e || c.error)
        errno = e ? e : c.error;
    return e ? -1 : c.result;
}
FL_SHOWN pid_t waitpid(pid_t pid, int *status, int options) { return wait4(pid, status, options, NULL); }
FL_SHOWN pid_t wait(int *status) { return wait4(-1, status, 0, NULL); }
FL_SHOWN pid_t wait3(int *status, int options, struct rusage *usage) { return wait4(-1, status, options, usage); }

static bool look_id(void *of) {
    fl_child *c = of;
    c->info->si_pid = 0;
    c->result = REAL(waitid)(c->type, c->id, c->info, c->options | WNOHANG);
    c->error = c->result < 0 ? errno : 0;
    return c->result || c->info->si_pid;
}
FL_SHOWN int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    siginfo_t own;
    if (!fl_time_on() || options & WNOHANG)
        return REAL(waitid)(type, id, info, options);
    memset(&own, 0, sizeof own);
    fl_child c = {.type = type, .id = id, .info = info ? info : &own, .options = options};
    const int e = fl_time_wait(look_id, &c, FL_VIRTUAL_FOREVER, true);
    if (e || c.error)
        errno = e ? e : c.error;
    return e ? -1 : c.result;
}

/* ---- signals: whoever sleeps or waits where one goes looks at once ---- */

static void say_signal(pid_t pid, int number, pid_t group) {
    fl_ask q;
    fl_answer a;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_SIGNAL;
    q.a = (uint32_t)pid;
    q.b = (uint32_t)number;
    q.c = (uint32_t)group;
    q.wide = group > 0;
    (void)fl_time_ask(&q, &a);
}
static int sent(int result, pid_t pid, int number) {
    const int saved = errno;
    if (!result && number && fl_time_on() && pid != getpid())
        (void)fl_time_say(FL_TIME_SIGNAL, pid > 0 ? (uint32_t)pid : 0, (uint32_t)number);
    errno = saved;
    return result;
}
/* Whoever kills a group ends before it could say so where it is in it itself. */
FL_SHOWN int kill(pid_t pid, int number) {
    const bool dooms = number == SIGKILL && pid <= 0 && pid != -1 && fl_time_on();
    if (dooms)
        say_signal(0, number, pid ? -pid : getpgrp());
    const int r = REAL(kill)(pid, number), saved = errno;
    if (r && dooms)
        say_signal(0, 0, 0);
    errno = saved;
    return sent(r, pid, number);
}
FL_SHOWN int killpg(pid_t group, int number) {
    if (group >= 0)
        return kill(-group, number);
    errno = EINVAL;
    return -1;
}
FL_SHOWN int sigqueue(pid_t pid, int number, const union sigval value) {
    return sent(REAL(sigqueue)(pid, number, value), pid, number);
}
pid_t fl_time_pid_of(int fd) { return (pid_t)fl_time_fdinfo(fd, "Pid:", 0); }
FL_SHOWN int pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned int flags);
FL_SHOWN int pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned int flags) {
    const pid_t pid = fl_time_on() ? fl_time_pid_of(fd) : 0;
    return sent(REAL(pidfd_send_signal)(fd, number, info, flags), pid, number);
}
FL_SHOWN int pthread_kill(pthread_t id, int number) {
    const int e = REAL(pthread_kill)(id, number);
    if (!e && number && fl_time_on())
        (void)fl_time_say(FL_TIME_SIGNAL, (uint32_t)getpid(), (uint32_t)number);
    return e;
}

typedef struct fl_signal_wait {
    const sigset_t *set;
    siginfo_t *info;
    int result, error;
} fl_signal_wait;

static bool look_signal(void *of) {
    const struct timespec none = {0, 0};
    fl_signal_wait *w = of;
    w->result = REAL(sigtimedwait)(w->set, w->info, &none);
    w->error = w->result < 0 ? errno : 0;
    return w->error != EAGAIN;
}
static int wait_signal(const sigset_t *set, siginfo_t *info, int64_t until) {
    fl_signal_wait w = {.set = set, .info = info};
    const int e = fl_time_wait(look_signal, &w, until, true);
    if (e || w.error)
        errno = e == ETIMEDOUT ? EAGAIN : e ? e : w.error;
    return e ? -1 : w.result;
}
FL_SHOWN int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict t) {
    return fl_time_on() ? wait_signal(set, info, fl_time_after(t)) : REAL(sigtimedwait)(set, info, t);
}
FL_SHOWN int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info) {
    return fl_time_on() ? wait_signal(set, info, FL_VIRTUAL_FOREVER) : REAL(sigwaitinfo)(set, info);
}
FL_SHOWN int sigwait(const sigset_t *restrict set, int *restrict number) {
    if (!fl_time_on())
        return REAL(sigwait)(set, number);
    int n;
    while ((n = wait_signal(set, NULL, FL_VIRTUAL_FOREVER)) < 0 && errno == EINTR) {
    }
    if (n < 0)
        return errno;
    *number = n;
    return 0;
}

static bool look_never(void *of) {
    (void)of;
    return false;
}
FL_SHOWN int pause(void) {
    if (!fl_time_on())
        return REAL(pause)();
    errno = fl_time_wait(look_never, NULL, FL_VIRTUAL_FOREVER, true);
    return -1;
}
FL_SHOWN int sigsuspend(const sigset_t *mask) {
    sigset_t before, pending;
    if (!fl_time_on())
        return REAL(sigsuspend)(mask);
    sigpending(&pending);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&pending, i) == 1 && sigismember(mask, i) == 0 && fl_link_hears(i))
            return REAL(sigsuspend)(mask); /* returns at once */
    pthread_sigmask(SIG_SETMASK, mask, &before);
    errno = fl_time_wait(look_never, NULL, FL_VIRTUAL_FOREVER, true);
    const int e = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return -1;
}

/* A blocked SIGSYS could not be handed over (raw.c). */
static int masked(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set, sigset_t *old) {
    sigset_t own;
    if (!set || how == SIG_UNBLOCK || !fl_time_on())
        return real(how, set, old);
    own = *set;
    sigdelset(&own, SIGSYS);
    return real(how, &own, old);
}
FL_SHOWN int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    return masked(REAL(sigprocmask), how, set, old);
}
FL_SHOWN int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    return masked(REAL(pthread_sigmask), how, set, old);
}
