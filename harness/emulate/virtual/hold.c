#include "harness/emulate/virtual/hold.h"

#include "harness/emulate/client/filter.h"
#include "harness/emulate/client/image.h"
#include "harness/emulate/virtual/go.h"
#include "harness/emulate/virtual/held_births.h"
#include "harness/emulate/virtual/held_calls.h"
#include "harness/emulate/driver/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct fl_hold_image { /* the program of a process that has the filter */
    pid_t pid;
    bool known;  /* examined since the last exec */
    bool hooked; /* it loads our library: its calls go on */
    struct fl_hold_image *next;
} fl_hold_image;

typedef struct fl_hold_listener { /* the kernel's end of one filter */
    int fd;
    struct fl_hold_listener *next;
} fl_hold_listener;

static void unlisten(fl_hold *hold, int fd) {
    for (fl_hold_listener **at = &hold->listeners; *at; at = &(*at)->next)
        if ((*at)->fd == fd) {
            fl_hold_listener *l = *at;
            *at = l->next;
            close(l->fd);
            free(l);
            return;
        }
}

#ifdef __x86_64__

bool fl_hold_listen(fl_hold *hold, pid_t pid, int fd) {
    const fl_peer *p = fl_peer_of(hold->token->peers, pid);
    struct epoll_event ev = {.events = EPOLLIN};
    if (hold->events < 0)
        hold->events = epoll_create1(EPOLL_CLOEXEC);
    fl_hold_listener *l = calloc(1, sizeof *l);
    ev.data.fd = p && l && hold->events >= 0 ? fl_remote_fd(p->pidfd, fd) : -1;
    if (ev.data.fd < 0) {
        free(l);
        return false;
    }
    *l = (fl_hold_listener){ev.data.fd, hold->listeners};
    hold->listeners = l;
    return !epoll_ctl(hold->events, EPOLL_CTL_ADD, ev.data.fd, &ev);
}

/* ---- which thread made a call ---- */

static fl_hold_image *image_of(fl_hold *hold, pid_t pid) {
    fl_hold_image *i = hold->first;
    while (i && i->pid != pid)
        i = i->next;
    if (i)
        return i;
    if (!(i = calloc(1, sizeof *i))) {
        fl_outcome_fail(hold->token->outcome, "out of memory for the programs of virtual time");
        return NULL;
    }
    *i = (fl_hold_image){.pid = pid, .next = hold->first};
    hold->first = i;
    (void)fl_peer_of(hold->token->peers, pid); /* so that its end is noticed */
    return i;
}

static fl_turn *thread_of(const fl_token *token, pid_t pid, pid_t tid) {
    fl_turn *t = token->turn;
    while (t && (t->pid != pid || t->tid != tid || !t->held))
        t = t->next;
    return t;
}

/* The thread or process that a thread of this process began last, and that has not arrived. */
static fl_turn *newborn_of(const fl_token *token, pid_t pid, bool process) {
    for (fl_turn *t = token->turn; t; t = t->next) {
        fl_turn *child = t->pid == pid && t->held && t->held->birth ? fl_token_find(token, t->held->birth) : NULL;
        if (child && child->process == process) {
            t->held->birth = 0;
            return child;
        }
    }
    return NULL;
}

/* After an exec: the process's first thread is the only one. */
static fl_turn *sole_thread(fl_token *token, pid_t pid, pid_t tid) {
    fl_turn *sole = NULL;
    for (fl_turn *t = token->turn, *next; t; t = next) {
        next = t->next;
        if (t->pid != pid)
            continue;
        if (!sole)
            sole = t;
        else if (t->tid != tid && !fl_remote_lives(pid, t->tid)) {
            if (token->holder == t)
                token->holder = sole;
            fl_token_remove(token, t);
        }
    }
    return sole;
}

static fl_turn *find_turn(fl_token *token, pid_t pid, pid_t tid, bool fresh) {
    fl_turn *t = fresh ? NULL : thread_of(token, pid, tid);
    if (!t)
        t = newborn_of(token, tid == pid ? fl_remote_parent(pid) : pid, tid == pid);
    if (!t && fresh)
        t = sole_thread(token, pid, tid);
    if (!t)
        t = fl_token_add(token, pid, tid == pid);
    if (!t)
        return NULL;
    if (!t->held && !(t->held = calloc(1, sizeof *t->held))) {
        fl_outcome_fail(token->outcome, "out of memory for the threads of virtual time");
        return NULL;
    }
    t->pid = pid;
    t->tid = tid;
    return t;
}

/* A program that has just started, or a process that was forked. */
static void look_at(fl_hold *hold, fl_hold_image *i) {
    char exe[64];
    snprintf(exe, sizeof exe, "/proc/%d/exe", (int)i->pid);
    i->known = true;
    const fl_image_kind kind = fl_image_of(exe);
    const fl_peer *p = fl_peer_of(hold->token->peers, i->pid);
    if (p)
        fl_outcome_rename(hold->token->outcome, p->account);
    i->hooked = kind == FL_IMAGE_HOOKED;
    fl_heir_tell(&hold->heir, i->pid, !i->hooked);
    if (kind == FL_IMAGE_GO)
        fl_go_settle(i->pid);
    if (!i->hooked && !fl_remote_clocks(i->pid))
        fl_outcome_fail(hold->token->outcome, "%s (process %d): its clock cannot be replaced: %s",
                        fl_outcome_name(hold->token->outcome, i->pid), (int)i->pid, fl_reason(errno));
}

/* The calls of a program with our hooks go on. Its thread gets no held call, which marks it as such a program's. */
static void let_go(fl_hold *hold, const fl_hold_image *i, pid_t tid) {
    fl_turn *t = tid == i->pid ? newborn_of(hold->token, fl_remote_parent(i->pid), true) : NULL;
    if (t) {
        t->pid = i->pid;
        t->tid = 0;
    }
    for (t = hold->token->turn; t; t = t->next)
        if (t->pid == i->pid && t->held) {
            free(t->held);
            t->held = NULL;
            t->tid = 0;
        }
}

/* This process starts a program. Its thread will be heard of here, so the watchdog waits for it. */
static void expect(const fl_token *token, pid_t pid) {
    fl_turn *t = token->turn;
    while (t && t->pid != pid)
        t = t->next;
    if (t && !t->held)
        t->held = calloc(1, sizeof *t->held);
}

static void take(fl_hold *hold, int listener, const struct seccomp_notif *n) {
    const pid_t tid = (pid_t)n->pid, pid = fl_remote_process(tid);
    const bool execs = n->data.nr == SYS_execve || n->data.nr == SYS_execveat;
    fl_hold_image *i = pid ? image_of(hold, pid) : NULL;
    if (!i)
        return; /* the process is about to end */
    const bool fresh = !i->known;
    if (fresh) {
        look_at(hold, i);
        if (!i->hooked)
            fl_timers_drop(&hold->token->timers, pid, true);
    }
    i->known = !execs;
    if (i->hooked) {
        if (fresh)
            let_go(hold, i, tid);
        if (execs)
            expect(hold->token, pid);
        fl_held_let(listener, n->id);
        return;
    }
    fl_turn *t = find_turn(hold->token, pid, tid, fresh);
    if (!t)
        return;
    fl_held_call *h = t->held;
    h->listener = listener;
    h->id = n->id;
    h->number = n->data.nr;
    h->strange = n->data.arch != AUDIT_ARCH_X86_64 || (unsigned)n->data.nr >= FL_FILTER_X32;
    for (int k = 0; k < 6; k++)
        h->a[k] = n->data.args[k];
    h->here = true;
    t->conn = NULL;
    t->must_answer = false;
    if (h->birth)
        fl_held_missed(hold->token, t);
    hold->token->heard++;
    if (!hold->token->holder)
        fl_token_pass(hold->token);
}

void fl_hold_hear(fl_hold *hold) {
    struct epoll_event ev[16];
    const int n = hold->events < 0 ? 0 : epoll_wait(hold->events, ev, 16, 0);
    for (int i = 0; i < n; i++) {
        struct seccomp_notif call;
        memset(&call, 0, sizeof call); /* as the kernel demands */
        if (ev[i].events & EPOLLIN && !ioctl(ev[i].data.fd, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
            take(hold, ev[i].data.fd, &call);
        } else if (ev[i].events & EPOLLHUP) { /* all processes with the filter have ended */
            epoll_ctl(hold->events, EPOLL_CTL_DEL, ev[i].data.fd, NULL);
            unlisten(hold, ev[i].data.fd);
        }
    }
}

void fl_hold_go(fl_hold *hold) {
    fl_token *token = hold->token;
    for (;;) {
        fl_turn *t = token->outcome->status ? NULL : token->holder;
        if (!t || !t->held || !t->held->here || t->state != FL_TURN_RUNS || t->held->birth)
            return;
        fl_held_settle(token, t);
        if (token->holder == t)
            fl_held_step(token, t);
    }
}

#else
bool fl_hold_listen(fl_hold *hold, pid_t pid, int fd) {
    (void)hold, (void)pid, (void)fd;
    errno = ENOSYS;
    return false;
}
void fl_hold_hear(fl_hold *hold) { (void)hold; }
void fl_hold_go(fl_hold *hold) { (void)hold; }
#endif

void fl_hold_end(fl_hold *hold) {
    for (const fl_hold_image *i = hold->first; i; i = i->next)
        if (!i->hooked)
            fl_peer_kill(hold->token->peers, i->pid);
}

void fl_hold_died(fl_hold *hold, pid_t pid) {
    for (fl_hold_image **at = &hold->first; *at; at = &(*at)->next)
        if ((*at)->pid == pid) {
            fl_hold_image *i = *at;
            *at = i->next;
            fl_heir_tell(&hold->heir, pid, false);
            free(i);
            return;
        }
}

void fl_hold_close(fl_hold *hold) {
    fl_heir_close(&hold->heir);
    while (hold->listeners)
        unlisten(hold, hold->listeners->fd);
    while (hold->first)
        fl_hold_died(hold, hold->first->pid);
    if (hold->events >= 0)
        close(hold->events);
}
