#include "harness/live/host/program.h"
#include "harness/live/guard/clock.h"

#include "harness/live/guard/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void become(char *const *command, const char *const *environment, const sigset_t *mask) {
    const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD}; /* what we were started to ignore, it ignores too */
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!fl_stop_ignored(ours[i]))
            signal(ours[i], SIG_DFL);
    signal(SIGPIPE, SIG_DFL); /* ignored by fl_stop_listen */
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (; *environment; environment += 2)
        if (setenv(environment[0], environment[1], 1)) {
            fprintf(stderr, "foldline record: cannot set %s: %s\n", environment[0], fl_reason(errno));
            _exit(127);
        }
    execvp(command[0], command);
    fprintf(stderr, "foldline record: cannot run %s: %s\n", command[0], fl_reason(errno));
    _exit(127);
}

fl_status fl_program_start(fl_program *p, char *const *command, const char *const *environment, fl_diag *d) {
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, &before); /* until its handlers are its own, one sent to it would be ours and lost */
    p->pid = fork();
    if (!p->pid)
        become(command, environment, &before);
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (p->pid > 0)
        return FL_OK;
    p->pid = 0;
    return fl_error(d, FL_IO, "cannot start %s: %s", command[0], fl_reason(error));
}

bool fl_program_look(fl_program *p) {
    int status;
    if (!p->pid || p->ended)
        return p->ended;
    const int signal = fl_stop_hand_on();
    if (signal)
        kill(p->pid, signal);
    const int64_t now = p->limit_ns ? fl_clock_ns() : 0;
    if (p->limit_ns && now >= p->limit_ns) {
        kill(p->pid, p->asked ? SIGKILL : SIGTERM);
        p->asked = true;
        p->limit_ns = now + FL_PROGRAM_GRACE_NS;
    }
    if (waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->ended = true;
        p->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return p->ended;
}

int64_t fl_program_wake_ns(const fl_program *p, int64_t until_ns) {
    return p->pid && !p->ended && p->limit_ns && p->limit_ns < until_ns ? p->limit_ns : until_ns;
}

void fl_program_wait(fl_program *p) {
    while (p->pid && !fl_program_look(p))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* its end cuts it short */
}
