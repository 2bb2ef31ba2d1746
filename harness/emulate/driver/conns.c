#include "harness/emulate/driver/conns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void fl_conns_accept(fl_conns *all, fl_peers *peers, int listener) {
    struct ucred who;
    socklen_t size = sizeof who;
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) /* any other error would repeat for ever */
            fl_outcome_fail(all->outcome, "cannot take another client: %s", fl_reason(errno));
        return;
    }
    fl_conn *c = calloc(1, sizeof *c);
    fl_peer *p = c && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) ? fl_peer_of(peers, who.pid) : NULL;
    if (!p) { /* the process has already ended and been reaped */
        free(c);
        close(fd);
        return;
    }
    p->root = who.uid == 0;
    if (!p->uses++)
        fl_outcome_rename(all->outcome, p->account);
    *c = (fl_conn){.fd = fd, .peer = p, .next = all->first};
    all->first = c;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(all->events, EPOLL_CTL_ADD, fd, &ev);
}

ssize_t fl_conn_hear(const fl_conn *c, fl_ask *q) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights;
    struct iovec all = {.iov_base = q, .iov_len = sizeof *q};
    struct msghdr m = {.msg_iov = &all,
                       .msg_iovlen = 1,
                       .msg_control = &rights,
                       .msg_controllen = CMSG_LEN(sizeof(int))}; /* without the padding, which may hold a second one */
    int with = -1;
    const ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return n;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&m);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(&with, CMSG_DATA(head), sizeof with);
    q->spare = with + 1;
    q->call[sizeof q->call - 1] = q->text[sizeof q->text - 1] = 0;
    return n;
}

void fl_conn_answer(fl_conns *all, fl_conn *c, int64_t now_ns, const fl_ask *q, const fl_answer *a) {
    if (q->op < FL_TIME_HELLO)
        fl_outcome_answer(all->outcome, now_ns, fl_conn_account(c), q, a);
    ssize_t n;
    while ((n = send(c->fd, a, FL_ANSWER_HEAD + a->size, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR) {
    }
    if (n < 0)
        fl_conn_drop(all, c);
}

void fl_conn_drop(fl_conns *all, fl_conn *c) {
    if (c->gone)
        return;
    c->gone = true;
    if (c->peer)
        c->peer->uses--;
    c->peer = NULL;
    close(c->fd);
    all->hung_up(all->user, c);
}

void fl_conns_drop(fl_conns *all, const fl_peer *peer) {
    for (fl_conn *c = all->first; c; c = c->next)
        if (!peer || c->peer == peer)
            fl_conn_drop(all, c);
}

void fl_conns_free_gone(fl_conns *all) {
    for (fl_conn **at = &all->first; *at;) {
        fl_conn *c = *at;
        if (c->gone) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
}
