#include "harness/emulate/emulate_held_births.h"

#include "harness/emulate/emulate_remote.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

#define GONE_US 20 /* between looks at whether a thread has ended */
#define GONE_LOOKS 100000

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

/* It has its own memory from here on, or has ended: who lent it is ready. */
void fl_held_give_back(fl_token *token, fl_turn *t) {
    fl_turn *lender = t->held->lender ? fl_token_find(token, t->held->lender) : NULL;
    t->held->lender = 0;
    if (!lender || lender->state != FL_TURN_LENT)
        return;
    lender->state = FL_TURN_READY;
    lender->woken = FL_WOKEN_TIME;
    lender->order = ++token->orders;
}

/* The kernel tells those who wait for its end in memory; that has happened before the token goes on. */
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
