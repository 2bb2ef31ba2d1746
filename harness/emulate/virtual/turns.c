/* Requests of threads to virtual time, and their ends. */
#include "harness/emulate/virtual/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* The thread of a connection or, if the program has closed that, of its thread id. */
static fl_turn *turn_of(const fl_token *token, fl_conn *c, int32_t tid) {
    fl_turn *t = token->turn;
    while (t && t->conn != c)
        t = t->next;
    if (t)
        return t;
    for (t = token->turn; t && (t->pid != c->peer->pid || t->tid != tid); t = t->next) {
    }
    if (t)
        t->conn = c;
    return t;
}

/* Return the inode of the program that the process runs; 0 where it has ended. */
static ino_t image_of(pid_t pid) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &st) ? 0 : st.st_ino;
}

void fl_turns_command(fl_token *token, pid_t command) {
    fl_turn *t = fl_token_add(token, command, true);
    if (!t)
        return;
    t->state = FL_TURN_RUNS;
    t->silent = true;
    token->holder = t;
    (void)fl_peer_of(token->peers, command); /* registers it, so that its end is noticed whatever it does */
}

/* ---- the driver's calls ---- */

void fl_turns_read(fl_token *token, uint32_t gpu) {
    fl_turn *h = token->holder;
    if (!h || gpu / 64 >= sizeof h->read_gpus / sizeof *h->read_gpus)
        return;
    const int64_t now = fl_token_now(token);
    if (h->read_at_ns != now) {
        memset(h->read_gpus, 0, sizeof h->read_gpus);
        h->read_at_ns = now;
    }
    const uint64_t bit = UINT64_C(1) << (gpu % 64);
    if (!(h->read_gpus[gpu / 64] & bit)) /* reading all signals of one GPU at one instant counts as one reading */
        h->debt_ns += fl_boards_device(token->sets->boards, gpu)->actuator.read_ns;
    h->read_gpus[gpu / 64] |= bit;
    fl_token_owe(token);
}

void fl_turns_set(fl_token *token, fl_conn *c, const fl_ask *q) {
    fl_turn *h = token->holder;
    if (!h || !c->peer || h->pid != c->peer->pid) { /* the thread is about to end, and has no turn any more */
        (void)fl_sets_begin(token->sets, q, fl_token_now(token));
        fl_sets_make(token->sets, c, q);
        return;
    }
    token->heard++;
    h->setting = true;
    h->set_conn = c;
    h->set = *q;
    fl_token_sleep(token, h, fl_sets_begin(token->sets, q, fl_token_now(token) + h->debt_ns));
    fl_token_stir(token, h);
    fl_token_pass(token);
}

/* ---- requests of threads ---- */

/* A new program image. After an exec its other threads have ended with the old one. */
static void hello(fl_token *token, fl_conn *c, const fl_ask *q) {
    const pid_t pid = c->peer->pid;
    bool had = false;
    fl_turn *mine = NULL;
    for (fl_turn *t = token->turn, *next; t; t = next) {
        next = t->next;
        if (t->pid != pid)
            continue;
        had |= token->holder == t;
        if (!mine)
            mine = t;
        else
            fl_token_remove(token, t);
    }
    if (!mine && !(mine = fl_token_add(token, pid, true)))
        return;
    fl_timers_drop(&token->timers, pid, true);
    mine->conn = c;
    mine->tid = q->thread;
    mine->must_answer = true;
    mine->silent = false;
    mine->image = image_of(pid);
    mine->debt_ns = 0;
    if (had)
        fl_token_give(token, mine, FL_WOKEN_TIME);
    else
        fl_token_pass(token);
}

static void begin(fl_token *token, fl_conn *c, const fl_ask *q) {
    fl_turn *t = fl_token_find(token, q->a);
    if (!t) {
        fl_outcome_fail(token->outcome, "a thread nobody announced has begun");
        return;
    }
    t->conn = c;
    t->tid = q->thread;
    t->pid = c->peer->pid;
    t->must_answer = true;
    t->image = image_of(t->pid);
    if (token->holder == t)
        fl_token_give(token, t, FL_WOKEN_TIME);
    else
        fl_token_pass(token);
}

static void bear(fl_token *token, fl_turn *parent, bool process) {
    const fl_turn *child = fl_token_add(token, process ? -1 : parent->pid, process);
    fl_token_hold_clock(token);
    fl_token_answer(token, parent, 0, child ? child->number : 0);
}

static void forget_missed(fl_token *token, uint64_t number) {
    fl_turn *t = fl_token_find(token, number);
    if (t)
        fl_token_remove(token, t);
}

/* The child may have sent its hello before its parent announces it: both are the same thread. */
static void name_child(fl_token *token, uint64_t number, pid_t pid) {
    fl_turn *child = fl_token_find(token, number);
    if (child && child->pid < 0)
        child->pid = pid;
    (void)fl_peer_of(token->peers, pid);
    for (fl_turn *twin = token->turn; twin && child; twin = twin->next)
        if (twin != child && twin->pid == child->pid && twin->process && (twin->conn || twin->held)) {
            child->conn = twin->conn;
            child->held = twin->held;
            twin->held = NULL;
            child->tid = twin->tid;
            child->must_answer = twin->must_answer;
            fl_token_remove(token, twin);
            break;
        }
}

void fl_turns_wait(fl_token *token, fl_turn *t, int64_t until_ns, bool again, bool outside) {
    if (!again)
        t->order = ++token->orders;
    if (t->debt_ns > 0) { /* the time that its readings take passes first, then it looks again */
        fl_token_sleep(token, t, 0);
        t->woken = FL_WOKEN_LOOK;
        fl_token_stir(token, t);
        return;
    }
    t->until_ns = until_ns;
    t->outside = outside;
    t->state = FL_TURN_WAITS;
    t->look = false;
    if (token->holder == t)
        token->holder = NULL;
    if (!again)
        fl_token_stir(token, t);
}

/* Whether a process that was killed has ended; the command's own end interrupts a wait (SIGCHLD). */
static bool wait_for_end(const fl_peer *p) {
    struct pollfd end = {.fd = p->pidfd, .events = POLLIN};
    int n;
    while ((n = poll(&end, 1, 1000)) < 0 && errno == EINTR) {
    }
    return n == 1;
}

static void remove_turns(fl_token *token, pid_t pid) {
    for (fl_turn *t = token->turn, *next; t; t = next) {
        next = t->next;
        if (t->pid == pid)
            fl_token_remove(token, t);
    }
    fl_timers_drop(&token->timers, pid, false);
}

/* The processes of a killed group end whenever the machine has time for them, the killer perhaps first. None of them
 * may have a turn in between. */
static void doom(fl_token *token, pid_t group) {
    token->dooms = true;
    for (fl_peer *p = token->peers->first; p; p = p->next)
        p->doomed = getpgid(p->pid) == group;
}

static void end_doomed(fl_token *token) {
    token->dooms = false;
    for (fl_peer *p = token->peers->first; p; p = p->next) {
        if (p->doomed && wait_for_end(p)) {
            remove_turns(token, p->pid);
            fl_token_wake(token, p->parent);
        }
        p->doomed = false;
    }
}

static void ask_signal(fl_token *token, fl_turn *t, const fl_ask *q) {
    if (q->wide) {
        doom(token, (pid_t)q->c);
    } else if (q->b) {
        if (token->dooms)
            end_doomed(token);
        fl_turns_signalled(token, (pid_t)q->a, (int)q->b);
    } else { /* the signal could not be sent */
        for (fl_peer *p = token->peers->first; p; p = p->next)
            p->doomed = false;
        token->dooms = false;
    }
    fl_token_answer(token, t, 0, 0);
}

/* pid 0: the receiver is not known. The session waits for a kill to take effect, so that the result does not depend on
 * its speed. */
void fl_turns_signalled(fl_token *token, pid_t pid, int number) {
    for (fl_peer *p = token->peers->first; p; p = p->next) {
        if (pid > 0 && p->pid != pid)
            continue;
        if (number == SIGKILL && pid > 0)
            (void)wait_for_end(p);
        fl_token_wake(token, p->pid);
    }
    fl_token_hold_clock(token);
}

/* ---- timers ---- */

static void ask_timer(fl_token *token, fl_turn *t, const fl_ask *q) {
    const int64_t now = fl_token_now(token);
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER}, want;
    if (q->op == FL_TIME_TIMER) {
        fl_token_answer(token, t, 0, fl_timers_add(&token->timers, token->peers, t->pid, q));
        return;
    }
    fl_timer *timer = fl_timers_find(&token->timers, t->pid, q->a, q->b);
    if (timer)
        was = fl_timer_now(timer, now);
    if (timer && q->op == FL_TIME_TIMER_SET) {
        memcpy(&want, q->text, sizeof want);
        want.next_ns = (int64_t)q->wide;
        timer->order = ++token->orders;
        fl_timer_set(timer, &want);
        fl_token_fire(token);
        fl_token_hold_clock(token);
    }
    if (timer && q->op == FL_TIME_TIMER_END)
        fl_timers_remove(&token->timers, timer);
    fl_token_tell(token, t, timer ? 0 : -1, &was, sizeof was);
}

/* The thread that sent the request. A thread that began unnoticed takes its turn from here on. */
static fl_turn *speaker(fl_token *token, fl_conn *c, int32_t tid) {
    fl_turn *t = turn_of(token, c, tid);
    if (!t && (t = fl_token_add(token, c->peer->pid, false))) {
        t->conn = c;
        t->tid = tid;
    }
    if (t)
        t->must_answer = true;
    return t;
}

void fl_turns_ask(fl_token *token, fl_conn *c, const fl_ask *q) {
    token->heard++;
    if (!c->peer)
        return;
    if (q->op == FL_TIME_HELLO) {
        hello(token, c, q);
        return;
    }
    if (q->op == FL_TIME_BEGIN) {
        begin(token, c, q);
        return;
    }
    fl_turn *t = speaker(token, c, q->thread);
    if (!t)
        return;
    switch ((fl_ask_op)q->op) {
    case FL_TIME_BEAR:
        bear(token, t, q->a != 0);
        return;
    case FL_TIME_MISSED:
        forget_missed(token, q->a);
        fl_token_answer(token, t, 0, 0);
        return;
    case FL_TIME_NAMED:
        name_child(token, q->a, (pid_t)q->b);
        fl_token_answer(token, t, 0, 0);
        return;
    case FL_TIME_SIGNAL:
        ask_signal(token, t, q);
        return;
    case FL_TIME_TIMER:
    case FL_TIME_TIMER_SET:
    case FL_TIME_TIMER_GET:
    case FL_TIME_TIMER_END:
        ask_timer(token, t, q);
        return;
    case FL_TIME_FAIL:
        fl_outcome_fail(token->outcome, "%s (process %d, thread %d): %s cannot run in virtual time",
                        fl_outcome_name(token->outcome, t->pid), (int)t->pid, (int)t->tid, q->text);
        return;
    case FL_TIME_SLEEP:
        fl_token_sleep(token, t, q->a ? fl_token_now(token) + t->debt_ns + (int64_t)q->wide : (int64_t)q->wide);
        fl_token_stir(token, t);
        break;
    case FL_TIME_WAIT:
        fl_turns_wait(token, t, (int64_t)q->wide, q->a != 0, q->b != 0);
        break;
    case FL_TIME_LEAVE:
        fl_token_remove(token, t);
        fl_token_stir(token, NULL);
        break;
    default:
        fl_token_answer(token, t, -1, 0);
        return;
    }
    fl_token_pass(token);
}

/* ---- ends ---- */

void fl_turns_hung_up(fl_token *token, const fl_conn *c) {
    for (fl_turn *t = token->turn; t; t = t->next) {
        if (t->set_conn == c)
            t->set_conn = NULL;
        if (t->conn == c) { /* an exec, or an end that the end of the process will report */
            t->conn = NULL;
            t->must_answer = false;
            const ino_t now = image_of(t->pid); /* a process that ends has none any more */
            t->silent = now && t->image && now != t->image;
        }
    }
}

bool fl_turns_silent(const fl_token *token, pid_t pid) {
    const fl_turn *t = token->turn;
    while (t && (t->pid != pid || !t->silent))
        t = t->next;
    return t != NULL;
}

void fl_turns_died(fl_token *token, pid_t pid, pid_t parent) {
    if (token->dooms)
        end_doomed(token);
    remove_turns(token, pid);
    fl_token_wake(token, parent); /* SIGCHLD */
    fl_token_stir(token, NULL);
    fl_token_pass(token);
}
