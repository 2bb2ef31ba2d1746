#include "harness/emulate/virtual/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDS 0 /* the emulator ends by itself */

typedef struct fl_charge {
    pid_t pid;
    int pidfd;
    struct fl_charge *next;
} fl_charge;

static void add(fl_charge **all, pid_t pid) {
    fl_charge *g = malloc(sizeof *g);
    const int fd = g ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0) {
        free(g);
        return;
    }
    *g = (fl_charge){pid, fd, *all};
    *all = g;
}

static void forget(fl_charge **all, pid_t pid) {
    for (fl_charge **at = all; *at; at = &(*at)->next)
        if ((*at)->pid == pid) {
            fl_charge *g = *at;
            *at = g->next;
            close(g->pidfd);
            free(g);
            return;
        }
}

/* No descriptor of the emulator may stay open here: a process that waits for the emulator's end would wait for this
 * one's. */
static void stand_apart(int wire) {
    (void)dup2(wire, 3);
    const int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && nowhere >= 0; fd++)
        (void)dup2(nowhere, fd);
    (void)syscall(SYS_close_range, 4u, ~0u, 0u);
    (void)setsid(); /* a signal to the emulator's group is not for this process */
    for (int signal_ = 1; signal_ < NSIG; signal_++)
        (void)signal(signal_, SIG_IGN);
}

static _Noreturn void watch(int wire, void (*clean)(void *user), void *user) {
    fl_charge *all = NULL;
    pid_t said;
    ssize_t n;
    stand_apart(wire);
    while ((n = recv(3, &said, sizeof said, 0)) == (ssize_t)sizeof said || (n < 0 && errno == EINTR)) {
        if (n > 0 && said == ENDS)
            _exit(0);
        if (n > 0 && said > 0)
            add(&all, said);
        else if (n > 0)
            forget(&all, -said);
    }
    for (const fl_charge *g = all; g; g = g->next)
        (void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
    clean(user);
    _exit(0);
}

/* Nobody hears of its end (no SIGCHLD): a session that waits for all of its children does not wait for this one. */
bool fl_heir_open(fl_heir *heir, void (*clean)(void *user), void *user) {
    int wire[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wire))
        return false;
    const pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
    if (!pid)
        watch(wire[0], clean, user);
    const int error = errno;
    close(wire[0]);
    if (pid < 0)
        close(wire[1]);
    else
        *heir = (fl_heir){pid, wire[1]};
    errno = error;
    return pid > 0;
}

void fl_heir_tell(const fl_heir *heir, pid_t pid, bool lives) {
    const pid_t said = lives ? pid : -pid;
    if (heir->pid)
        (void)send(heir->wire, &said, sizeof said, MSG_NOSIGNAL);
}

void fl_heir_close(fl_heir *heir) {
    const pid_t said = ENDS;
    if (!heir->pid)
        return;
    (void)send(heir->wire, &said, sizeof said, MSG_NOSIGNAL);
    close(heir->wire);
    while (waitpid(heir->pid, NULL, (int)__WCLONE) < 0 && errno == EINTR) {
    }
    heir->pid = 0;
}
