#include "harness/emulate/emulate_held_calls.h"

#include "harness/emulate/client/filter.h"
#include "harness/emulate/emulate_held_io.h"
#include "harness/emulate/emulate_remote.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

#define S_NS INT64_C(1000000000)
#define LOOKS_FREE 1000 /* as in client/time_core.c */
#define LOOK_NS 1000
#define GONE_US 20 /* between looks at whether a thread has ended */
#define GONE_LOOKS 100000

static void fail(fl_token *token, const fl_turn *t, const char *call) {
    fl_outcome_fail(token->outcome, "%s (process %d, thread %d): %s cannot run in virtual time",
                    fl_outcome_name(token->outcome, t->pid), (int)t->pid, (int)t->tid, call);
}

/* ---- time ---- */

static int64_t base_of(const fl_token *token, uint64_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return token->page->realtime_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return FL_VIRTUAL_MONOTONIC_NS;
    default: /* of the processor: all of the session's time is taken to be this program's */
        return 0;
    }
}

static void sleep_until(fl_token *token, fl_turn *t, int64_t until_ns) {
    fl_token_sleep(token, t, until_ns);
    fl_token_stir(token, t);
    fl_token_pass(token);
}

/* The time of its readings passes before it sees a clock. */
static bool pays(fl_token *token, fl_turn *t) {
    if (t->debt_ns <= 0)
        return false;
    t->held->looks = 0;
    sleep_until(token, t, 0);
    return true;
}

/* A call that programs spin on: after many without a sleep, each takes a little time. */
static bool gives_way(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    if (h->gave_way || fl_token_now(token) != h->looked_ns) {
        h->looks = h->gave_way ? h->looks : 0;
        h->looked_ns = fl_token_now(token);
        return false;
    }
    if (++h->looks <= LOOKS_FREE)
        return false;
    h->gave_way = true;
    fl_token_sleep(token, t, fl_token_now(token) + LOOK_NS);
    if (h->looks % LOOKS_FREE == 0)
        fl_token_stir(token, t);
    fl_token_pass(token);
    return true;
}

static void look_at_clock(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const uint64_t clock = h->number == SYS_clock_gettime ? h->a[0] : CLOCK_REALTIME;
    if ((int32_t)clock < CLOCK_REALTIME || (int32_t)clock > CLOCK_TAI) {
        fl_held_go_on(t);
        return;
    }
    if (pays(token, t) || gives_way(token, t))
        return;
    const int64_t since = fl_token_now(token), ns = base_of(token, clock) + since, s = ns / S_NS;
    const clock_t ticks = (clock_t)(since / (S_NS / sysconf(_SC_CLK_TCK)));
    const struct timespec spec = {s, ns % S_NS};
    const struct timeval val = {s, ns % S_NS / 1000};
    const struct tms used = {.tms_utime = ticks};
    bool ok = true;
    if (h->number == SYS_clock_gettime)
        ok = fl_remote_write(t->pid, h->a[1], &spec, sizeof spec);
    else if (h->number == SYS_gettimeofday)
        ok = !h->a[0] || fl_remote_write(t->pid, h->a[0], &val, sizeof val);
    else if (h->a[0])
        ok = h->number == SYS_time ? fl_remote_write(t->pid, h->a[0], &s, sizeof s)
                                   : fl_remote_write(t->pid, h->a[0], &used, sizeof used);
    fl_held_answer(t, !ok ? -EFAULT : h->number == SYS_time ? s : h->number == SYS_times ? ticks : 0);
}

/* The session's time from one in the thread's memory; until: 0 or an error. */
static int read_until(fl_token *token, const fl_turn *t, uint64_t at, bool absolute, uint64_t clock, int64_t *until) {
    struct timespec s;
    *until = FL_VIRTUAL_FOREVER;
    if (!at)
        return 0;
    if (!fl_remote_read(t->pid, at, &s, sizeof s))
        return -EFAULT;
    if (s.tv_sec < 0 || s.tv_nsec < 0 || s.tv_nsec >= S_NS)
        return -EINVAL;
    const int64_t from = absolute ? -base_of(token, clock) : fl_token_now(token);
    if (s.tv_sec < FL_VIRTUAL_FOREVER / S_NS / 2)
        *until = s.tv_sec * S_NS + s.tv_nsec + from;
    return 0;
}

static void sleep_call(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const bool plain = h->number == SYS_nanosleep, absolute = !plain && h->a[1] & TIMER_ABSTIME;
    if (!h->blocked) {
        if (pays(token, t))
            return;
        const int e =
            read_until(token, t, plain ? h->a[0] : h->a[2], absolute, plain ? CLOCK_MONOTONIC : h->a[0], &h->until_ns);
        if (e || !(plain ? h->a[0] : h->a[2])) {
            fl_held_answer(t, e ? e : -EFAULT);
            return;
        }
        if (h->until_ns > fl_token_now(token))
            h->looks = 0;
    } else if (t->woken == FL_WOKEN_TIME) {
        fl_held_answer(t, 0);
        return;
    } else if (fl_remote_signalled(t->pid, t->tid, false, 0)) {
        const int64_t ns = h->until_ns - fl_token_now(token), left = ns > 0 ? ns : 0;
        const struct timespec rest = {left / S_NS, left % S_NS};
        const uint64_t at = plain ? h->a[1] : h->a[3];
        if (at && !absolute)
            (void)fl_remote_write(t->pid, at, &rest, sizeof rest);
        fl_held_answer(t, -EINTR);
        return;
    }
    h->blocked = true;
    sleep_until(token, t, h->until_ns);
}

static void yield_call(fl_token *token, fl_turn *t) {
    if (t->held->blocked) {
        fl_held_answer(t, 0);
        return;
    }
    if (pays(token, t) || gives_way(token, t))
        return;
    t->held->blocked = true;
    sleep_until(token, t, fl_token_now(token));
}

/* ---- waiting ---- */

/* Whether the call is over: answered, or gone on in the kernel. */
typedef bool fl_held_look(fl_token *token, fl_turn *t);

static void wait_call(fl_token *token, fl_turn *t, fl_held_look *look, int64_t late, int64_t interrupted) {
    fl_held_call *h = t->held;
    if (look(token, t))
        return;
    if (h->blocked && t->woken == FL_WOKEN_TIME) {
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
    else if (h->blocked && (!h->line || value != (int)h->a[2])) /* the kernel may write it too: a thread's end */
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
        if (h->a[3] && pays(token, t))
            return;
        const int e = read_until(token, t, h->a[3], operation == FUTEX_WAIT_BITSET, clock, &h->until_ns);
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
    if (!h->blocked) {
        if (pays(token, t))
            return;
        const int e = fl_held_io_until(t, fl_token_now(token), &h->until_ns, &none);
        if (e) {
            fl_held_answer(t, e);
            return;
        }
        if (none) {
            if (!gives_way(token, t))
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
    else if (!gives_way(token, t))
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
                          ? read_until(token, t, h->a[2], false, CLOCK_MONOTONIC, &h->until_ns)
                          : 0;
        if (e) {
            fl_held_answer(t, e);
            return;
        }
    }
    wait_call(token, t, look_signal, -EAGAIN, -EINTR);
}

/* The kernel sends it when the call goes on; who may have got it is told at this thread's next call. */
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

/* ---- begins and ends ---- */

static void bear_call(fl_token *token, fl_turn *t) {
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
static void give_back(fl_token *token, fl_turn *t) {
    fl_turn *lender = t->held->lender ? fl_token_find(token, t->held->lender) : NULL;
    t->held->lender = 0;
    if (!lender || lender->state != FL_TURN_LENT)
        return;
    lender->state = FL_TURN_READY;
    lender->woken = FL_WOKEN_TIME;
    lender->order = ++token->orders;
}

/* The kernel tells those who wait for its end in memory; that has happened before the token goes on. */
static void end_thread(fl_token *token, fl_turn *t) {
    const pid_t pid = t->pid, thread = t->tid;
    fl_held_go_on(t);
    for (int i = 0; i < GONE_LOOKS && fl_remote_lives(pid, thread); i++)
        usleep(GONE_US);
    fl_token_remove(token, t);
    fl_token_stir(token, NULL);
    fl_token_pass(token);
}

static void refused_call(fl_token *token, fl_turn *t) {
#define FL_NAME(call)                                                                                                  \
    if (t->held->number == SYS_##call) {                                                                               \
        fail(token, t, #call);                                                                                         \
        return;                                                                                                        \
    }
    FL_REFUSED_CALLS(FL_NAME)
#undef FL_NAME
    fl_held_go_on(t); /* one of those that a thread makes first */
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
        look_at_clock(token, t);
        return;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
        sleep_call(token, t);
        return;
    case SYS_sched_yield:
        yield_call(token, t);
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
        bear_call(token, t);
        return;
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit_group:
        give_back(token, t);
        fl_held_go_on(t);
        return;
    case SYS_exit:
        end_thread(token, t);
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
