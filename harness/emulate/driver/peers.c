#include "harness/emulate/driver/peers.h"

#include "harness/emulate/driver/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

fl_peer *fl_peer_of(fl_peers *all, pid_t pid) {
    fl_peer *p = all->first;
    while (p && p->pid != pid)
        p = p->next;
    if (p)
        return p;
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno != ESRCH) /* it exists, but its end could not be observed */
        fl_outcome_fail(all->outcome, "cannot watch process %d: %s", (int)pid, fl_reason(errno));
    p = fd >= 0 ? calloc(1, sizeof *p) : NULL;
    const size_t account = p ? fl_outcome_process(all->outcome, pid) : FL_NOBODY;
    if (account == FL_NOBODY) {
        free(p);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *p = (fl_peer){.pid = pid, .pidfd = fd, .parent = fl_remote_parent(pid), .account = account, .next = all->first};
    all->first = p;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    epoll_ctl(all->deaths, EPOLL_CTL_ADD, fd, &ev);
    return p;
}

void fl_peer_kill(const fl_peers *all, pid_t pid) {
    for (const fl_peer *p = all->first; p; p = p->next)
        if (p->pid == pid)
            (void)syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
}

void fl_peer_bury(fl_peers *all, fl_peer *p) {
    for (fl_peer **at = &all->first; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    all->died(all->user, p);
    close(p->pidfd);
    free(p);
}

void fl_peers_bury(fl_peers *all) {
    struct epoll_event ev[16];
    int n;
    do {
        n = epoll_wait(all->deaths, ev, 16, 0);
        for (int i = 0; i < n; i++)
            fl_peer_bury(all, ev[i].data.ptr);
    } while (n == 16);
}
