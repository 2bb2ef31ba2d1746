/* A held system call: whether it is over, blocks, or goes on in the kernel. */
#include "harness/emulate/virtual/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#define FL_HELD_RESTART                                                                                                \
    (-512) /* ERESTARTSYS: the kernel makes it EINTR, or makes the call again, as the handler says */

#ifdef __x86_64__

static void fail(fl_token *token, const fl_turn *t, const char *call) {
    fl_outcome_fail(token->outcome, "%s (process %d, thread %d): %s cannot run in virtual time",
                    fl_outcome_name(token->outcome, t->pid), (int)t->pid, (int)t->tid, call);
}

/* ---- futexes ---- */

/* Whether the call is over: it has its answer, or goes on in the kernel. */
typedef bool fl_held_look(fl_token *token, fl_turn *t);

static void wait_call(fl_token *token, fl_turn *t, fl_held_look *look, int64_t late, int64_t interrupted) {
    fl_held_call *h = t->held;
    uint64_t mask = 0;
    if (look(token, t))
        return;
    if (fl_held_io_masked(t, &mask) && fl_remote_signalled(t->pid, t->tid, true, mask)) {
        fl_held_io_left(t, fl_token_now(token));
        fl_held_go_on(t); /* the kernel exchanges the mask, and finds the signal */
        return;
    }
    if (h->blocked && t->woken == FL_WOKEN_TIME) {
        fl_held_io_left(t, fl_token_now(token));
        fl_held_io_late(t);
        fl_held_answer(t, late);
        return;
    }
    if (h->blocked && t->woken == FL_WOKEN_SIGNAL && fl_remote_signalled(t->pid, t->tid, false, 0)) {
        fl_held_answer(t, interrupted);
        return;
    }
    const bool again = h->blocked && t->woken == FL_WOKEN_LOOK;
    h->blocked = true;
    h->looks = 0;
    fl_turns_wait(token, t, h->until_ns, again, h->number != SYS_futex);
    fl_token_pass(token);
}

static bool look_futex(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    int value;
    (void)token;
    if (!fl_remote_read(t->pid, h->a[0], &value, sizeof value))
        fl_held_answer(t, -EFAULT);
    else if (!h->blocked && value != (int)h->a[2])
        fl_held_answer(t, -EAGAIN);
    else if (h->blocked && (!h->line || value != (int)h->a[2])) /* the kernel may write it too, at a thread's end */
        fl_held_answer(t, 0);
    else
        return false;
    return true;
}

static int wake_line(fl_token *token, const fl_turn *by, int most) {
    int n = 0;
    while (n < most) {
        fl_turn *first = NULL;
        for (fl_turn *t = token->turn; t; t = t->next)
            if (t->pid == by->pid && t->held && t->held->line && t->held->a[0] == by->held->a[0] &&
                (!first || t->held->line < first->held->line))
                first = t;
        if (!first)
            break;
        first->held->line = 0;
        n++;
    }
    return n;
}

static void futex_call(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const int operation = (int)h->a[1] & FUTEX_CMD_MASK;
    const uint64_t clock = h->a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if (operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET) {
        fl_held_answer(t, wake_line(token, t, (int)h->a[2]));
        return;
    }
    if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) {
        fail(token, t, "futex");
        return;
    }
    if (!h->blocked) {
        if (h->a[3] && fl_held_pays(token, t))
            return;
        const int e = fl_held_read_until(token, t, h->a[3], operation == FUTEX_WAIT_BITSET, clock, &h->until_ns);
        if (e) {
            fl_held_answer(t, e);
            return;
        }
        h->line = ++token->orders;
    }
    wait_call(token, t, look_futex, -ETIMEDOUT, -EINTR);
}

/* ---- descriptors ---- */

static void descriptors_call(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    bool none = false;
    if (fl_held_io_many(t)) {
        fail(token, t, "a wait for more than 1024 descriptors");
        return;
    }
    if (!h->blocked) {
        if (fl_held_pays(token, t))
            return;
        const int e = fl_held_io_until(t, fl_token_now(token), &h->until_ns, &none);
        if (e) {
            fl_held_answer(t, e);
            return;
        }
        if (none) {
            if (!fl_held_gives_way(token, t))
                fl_held_go_on(t);
            return;
        }
    }
    wait_call(token, t, fl_held_io_look, 0, -EINTR);
}

static void transfer_call(fl_token *token, fl_turn *t) {
    t->held->until_ns = FL_VIRTUAL_FOREVER;
    wait_call(token, t, fl_held_io_look, 0, FL_HELD_RESTART);
}

/* ---- children and signals ---- */

static bool look_child(fl_token *token, fl_turn *t) {
    const fl_held_call *h = t->held;
    const bool by_id = h->number == SYS_waitid;
    const idtype_t type = by_id ? (idtype_t)h->a[0] : P_PID;
    bool ended;
    if (by_id && type == P_PIDFD)
        ended = fl_held_io_readable(token, t, (int)h->a[1]);
    else
        ended = fl_remote_child_ended(t->pid, type == P_PID ? (pid_t)h->a[by_id] : -1);
    if (ended)
        fl_held_go_on(t);
    return ended;
}

static void child_call(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const uint64_t options = h->number == SYS_waitid ? h->a[3] : h->a[2];
    h->until_ns = FL_VIRTUAL_FOREVER;
    if (!(options & WNOHANG))
        wait_call(token, t, look_child, 0, FL_HELD_RESTART);
    else if (!fl_held_gives_way(token, t))
        fl_held_go_on(t);
}

static bool look_signal(fl_token *token, fl_turn *t) {
    const fl_held_call *h = t->held;
    uint64_t set = 0;
    (void)token;
    if (h->number != SYS_pause && !fl_remote_read(t->pid, h->a[0], &set, sizeof set)) {
        fl_held_answer(t, -EFAULT);
        return true;
    }
    const bool there = h->number == SYS_rt_sigtimedwait
                           ? fl_remote_pending(t->pid, t->tid, set)
                           : fl_remote_signalled(t->pid, t->tid, h->number == SYS_rt_sigsuspend, set);
    if (there)
        fl_held_go_on(t);
    return there;
}

static void signal_call(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    if (!h->blocked) {
        h->until_ns = FL_VIRTUAL_FOREVER;
        const int e = h->number == SYS_rt_sigtimedwait
                          ? fl_held_read_until(token, t, h->a[2], false, CLOCK_MONOTONIC, &h->until_ns)
                          : 0;
        if (e) {
            fl_held_answer(t, e);
            return;
        }
    }
    wait_call(token, t, look_signal, -EAGAIN, -EINTR);
}

/* The kernel sends the signal when the call goes on. At this thread's next call the possible receivers are woken. */
static void send_call(fl_turn *t) {
    fl_held_call *h = t->held;
    const bool of_thread = h->number == SYS_tgkill || h->number == SYS_rt_tgsigqueueinfo;
    const int64_t to = (int32_t)h->a[0];
    h->kills = true;
    h->signal = (int)h->a[of_thread ? 2 : 1];
    h->killed = h->number == SYS_tkill ? t->pid : h->number == SYS_pidfd_send_signal || to < 0 ? 0 : (pid_t)to;
    fl_held_go_on(t);
}

void fl_held_settle(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    if (!h->kills)
        return;
    h->kills = false;
    if (h->signal)
        fl_turns_signalled(token, h->killed, h->signal);
}

/* ---- which function answers which call ---- */

static void refused_call(fl_token *token, fl_turn *t) {
#define FL_NAME(call)                                                                                                  \
    if (t->held->number == SYS_##call) {                                                                               \
        fail(token, t, #call);                                                                                         \
        return;                                                                                                        \
    }
    FL_REFUSED_CALLS(FL_NAME)
#undef FL_NAME
    fl_held_go_on(t); /* one of the first calls of every thread */
}

void fl_held_step(fl_token *token, fl_turn *t) {
    const fl_held_call *h = t->held;
    if (h->strange) {
        fail(token, t, "a system call of another interface (32 bits)");
        return;
    }
    switch (h->number) {
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_time:
    case SYS_times:
        fl_held_look_at_clock(token, t);
        return;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
        fl_held_sleep(token, t);
        return;
    case SYS_sched_yield:
        fl_held_yield(token, t);
        return;
    case SYS_futex:
        futex_call(token, t);
        return;
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
        descriptors_call(token, t);
        return;
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
        transfer_call(token, t);
        return;
    case SYS_wait4:
    case SYS_waitid:
        child_call(token, t);
        return;
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
        signal_call(token, t);
        return;
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal:
        send_call(t);
        return;
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
        fl_held_bear(token, t);
        return;
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit_group:
        fl_held_give_back(token, t);
        fl_held_go_on(t);
        return;
    case SYS_exit:
        fl_held_end(token, t);
        return;
    case SYS_alarm:
        if (!h->a[0]) {
            fl_held_go_on(t);
            return;
        }
        break;
    default:
        break;
    }
    refused_call(token, t);
}

#endif
