/* The report of a session, its processes and its connections. */
#include "harness/emulate/driver/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "traces/io/io.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- the report ---- */

#define SETS_MAX 1000000 /* sets stored in the audit; further ones are only counted */

void fl_emulate_result_free(fl_emulate_result *r) {
    free(r->process);
    free(r->set);
    free(r->gpu);
    *r = (fl_emulate_result){0};
}

void fl_outcome_fail(fl_outcome *o, const char *format, ...) {
    char text[512];
    va_list arguments;
    if (o->status)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    o->status = fl_error(o->d, FL_HARDWARE, "%s", text);
}

static size_t fl_outcome_process(fl_outcome *o, pid_t pid) {
    fl_emulate_result *r = o->r;
    if (fl_grow(&r->process, &r->process_room, r->process_count + 1, sizeof *r->process))
        return FL_NOBODY;
    r->process[r->process_count] = (fl_emulated_process){.pid = pid};
    fl_outcome_rename(o, r->process_count);
    return r->process_count++;
}

void fl_outcome_rename(fl_outcome *o, size_t process) {
    fl_emulated_process *p = &o->r->process[process];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)p->pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(p->name, sizeof p->name, f))
        p->name[strcspn(p->name, "\n")] = 0;
    if (f)
        fclose(f);
}

const char *fl_outcome_name(const fl_outcome *o, pid_t pid) {
    for (size_t i = o->r->process_count; i-- > 0;)
        if (o->r->process[i].pid == pid)
            return o->r->process[i].name;
    return "?";
}

static void mix(fl_emulate_result *r, const void *bytes, size_t size) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < size; i++)
        r->hash = (r->hash ^ b[i]) * UINT64_C(0x100000001b3);
}

/* Records one answer at now_ns of the session. The requests with their times, and the answers, make the session's hash.
 * process: index in the report, or FL_NOBODY. */
static void fl_outcome_answer(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, const fl_answer *a) {
    const uint32_t key[] = {q->op, q->gpu, q->a, q->b, q->c, (uint32_t)a->result};
    mix(o->r, &now_ns, sizeof now_ns);
    mix(o->r, key, sizeof key);
    mix(o->r, a->bytes, a->size);
    o->r->calls++;
    if (process == FL_NOBODY)
        return;
    fl_emulated_process *p = &o->r->process[process];
    p->calls++;
    const bool set = q->op == FL_ASK_SET && !a->result && p->sets == o->kill.after_sets;
    if (o->kill.signal && !o->r->killed && process == o->kill.process && (set || p->calls == o->kill.after_calls)) {
        o->r->killed = true;
        o->on_kill(o->user, p->pid, o->kill.signal);
    }
}

void fl_outcome_set(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, int32_t result) {
    fl_emulate_result *r = o->r;
    fl_emulated_process *p = process == FL_NOBODY ? NULL : &r->process[process];
    if (p) {
        p->sets += !result;
        p->refused += result != 0;
    }
    if (r->set_count >= SETS_MAX || fl_grow(&r->set, &r->set_room, r->set_count + 1, sizeof *r->set))
        return;
    fl_emulated_set *s = &r->set[r->set_count++];
    *s = (fl_emulated_set){
        .at_ns = now_ns, .pid = p ? p->pid : 0, .gpu = q->gpu, .b = q->b, .c = q->c, .result = result};
    memcpy(s->call, q->call, sizeof s->call - 1);
    if (p)
        memcpy(s->process, p->name, sizeof s->process);
}

/* ---- processes ---- */

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

/* ---- connections ---- */

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
