#include "harness/emulate/virtual/held_births.h"

#include "harness/emulate/driver/remote.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

#define GONE_US 20 /* between two checks whether a thread has ended */
#define GONE_LOOKS 100000
#define NEWBORNS_MAX 1024

void fl_held_bear(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    uint64_t flags = h->number == SYS_clone ? h->a[0] : h->number == SYS_vfork ? CLONE_VFORK : 0;
    if (h->number == SYS_clone3 && !fl_remote_read(t->pid, h->a[0], &flags, sizeof flags)) {
        fl_held_answer(t, -EFAULT);
        return;
    }
    const bool process = !(flags & CLONE_THREAD);
    fl_turn *child = fl_token_add(token, process ? -1 : t->pid, process);
    if (!child || !(child->held = calloc(1, sizeof *child->held))) {
        fl_outcome_fail(token->outcome, "out of memory for the threads of virtual time");
        return;
    }
    fl_token_hold_clock(token);
    h->birth = child->number;
    if (flags & CLONE_VFORK) {
        child->held->lender = t->number;
        t->state = FL_TURN_LENT;
        token->holder = NULL;
    }
    fl_held_go_on(t);
    fl_token_pass(token);
}

static bool has_turn(const fl_token *token, pid_t pid, pid_t tid) {
    const fl_turn *t = token->turn;
    while (t && (t->pid != pid || (tid && t->tid != tid)))
        t = t->next;
    return t;
}

/* Whether this process has a thread or child that has not made itself known. */
static bool comes(const fl_token *token, pid_t pid, bool process) {
    pid_t all[NEWBORNS_MAX];
    const int n = process ? fl_remote_children(pid, all, NEWBORNS_MAX) : fl_remote_threads(pid, all, NEWBORNS_MAX);
    for (int i = 0; i < n; i++)
        if (!has_turn(token, process ? all[i] : pid, process ? 0 : all[i]) &&
            fl_remote_lives(process ? all[i] : pid, all[i]))
            return true;
    return n < 0 || n == NEWBORNS_MAX;
}

void fl_held_missed(fl_token *token, fl_turn *t) {
    fl_turn *child = t->held->birth ? fl_token_find(token, t->held->birth) : NULL;
    if (!child || comes(token, t->pid, child->process))
        return;
    t->held->birth = 0;
    fl_held_give_back(token, child);
    fl_token_remove(token, child);
}

/* From here on the child has its own memory, or has ended: the thread that lent it memory is ready. */
void fl_held_give_back(fl_token *token, fl_turn *t) {
    fl_turn *lender = t->held->lender ? fl_token_find(token, t->held->lender) : NULL;
    t->held->lender = 0;
    if (!lender || lender->state != FL_TURN_LENT)
        return;
    lender->state = FL_TURN_READY;
    lender->woken = FL_WOKEN_TIME;
    lender->order = ++token->orders;
}

/* The kernel reports a thread's end in memory, to those who wait for it. The token goes on only after that. */
void fl_held_end(fl_token *token, fl_turn *t) {
    const pid_t pid = t->pid, thread = t->tid;
    fl_held_go_on(t);
    for (int i = 0; i < GONE_LOOKS && fl_remote_lives(pid, thread); i++)
        usleep(GONE_US);
    fl_token_remove(token, t);
    fl_token_stir(token, NULL);
    fl_token_pass(token);
}

#endif
