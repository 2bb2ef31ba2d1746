/* The token: which thread of the session runs next, and the jump of time. */
#include "harness/emulate/virtual/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define GRACE_NS INT64_C(60000000000)

int64_t fl_token_now(const fl_token *token) { return atomic_load(&token->page->now_ns); }

static void set_now(fl_token *token, int64_t t) {
    if (t > fl_token_now(token))
        atomic_store(&token->page->now_ns, t);
}

static fl_clock_page *make_page(const char *path) {
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && !ftruncate(fd, 4096))
        at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* Only one thread runs at a time anyway, and the hand-over is several times faster on one CPU. */
static void stay_on_one_cpu(void) {
    cpu_set_t one;
    const int cpu = sched_getcpu();
    CPU_ZERO(&one);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_SET((size_t)cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
}

fl_status fl_token_open(fl_token *token, const char *dir, fl_diag *d) {
    char path[128];
    snprintf(path, sizeof path, "%s/" FL_EMULATE_CLOCK, dir);
    fl_clock_page *page = token->page = make_page(path);
    if (!page)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot make the session's clock: %s", fl_reason(errno));
    page->version = FL_EMULATE_VERSION;
    page->realtime_ns = FL_VIRTUAL_REALTIME_NS;
    for (int i = 0; i < 2; i++) {
        struct stat st;
        if (!fstat(i + 1, &st))
            page->out[i][0] = st.st_dev, page->out[i][1] = st.st_ino;
    }
    stay_on_one_cpu();
    return FL_OK;
}

void fl_token_close(fl_token *token) {
    while (token->turn) {
        fl_turn *t = token->turn;
        token->turn = t->next;
        free(t->held);
        free(t);
    }
    fl_timers_close(&token->timers);
    munmap(token->page, 4096);
}

size_t fl_token_threads(const fl_token *token) {
    size_t n = 0;
    for (const fl_turn *t = token->turn; t; t = t->next)
        n++;
    return n;
}

fl_turn *fl_token_add(fl_token *token, pid_t pid, bool process) {
    fl_turn *t = calloc(1, sizeof *t), **at = &token->turn;
    if (!t) {
        fl_outcome_fail(token->outcome, "out of memory for the threads of virtual time");
        return NULL;
    }
    *t = (fl_turn){
        .number = ++token->numbers, .order = ++token->orders, .pid = pid, .process = process, .state = FL_TURN_READY};
    while (*at)
        at = &(*at)->next;
    *at = t;
    return t;
}

fl_turn *fl_token_find(const fl_token *token, uint64_t number) {
    fl_turn *t = token->turn;
    while (t && t->number != number)
        t = t->next;
    return t;
}

void fl_token_remove(fl_token *token, fl_turn *t) {
    if (token->holder == t)
        token->holder = NULL;
    for (fl_turn **at = &token->turn; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            free(t->held);
            free(t);
            break;
        }
}

void fl_token_answer(fl_token *token, fl_turn *t, int32_t result, uint64_t value) {
    fl_token_tell(token, t, result, &value, sizeof value);
}

void fl_token_tell(fl_token *token, fl_turn *t, int32_t result, const void *bytes, size_t size) {
    const fl_ask q = {.op = FL_TIME_HELLO};
    fl_answer a = {.result = result, .size = (uint32_t)size};
    memcpy(a.bytes, bytes, size);
    t->must_answer = false;
    if (t->conn)
        fl_conn_answer(token->sets->conns, t->conn, fl_token_now(token), &q, &a);
}

/* How far the holder may advance the clock by itself. */
static int64_t horizon(const fl_token *token) {
    const fl_timer *timer = fl_timers_first(&token->timers);
    int64_t h = timer ? timer->state.next_ns : FL_VIRTUAL_FOREVER;
    for (const fl_turn *t = token->turn; t; t = t->next) {
        if (t->state == FL_TURN_READY || t->state == FL_TURN_WAITS)
            return 0;
        if (t->state == FL_TURN_SLEEPS && t->until_ns < h)
            h = t->until_ns;
    }
    return h;
}

void fl_token_hold_clock(fl_token *token) { atomic_store(&token->page->horizon_ns, 0); }

void fl_token_owe(fl_token *token) {
    const fl_turn *h = token->holder;
    atomic_store(&token->page->owed, h && h->debt_ns > 0);
}

void fl_token_give(fl_token *token, fl_turn *t, int32_t woken) {
    t->state = FL_TURN_RUNS;
    t->look = false;
    t->woken = woken;
    token->holder = t;
    token->quiet = token->still = 0;
    atomic_store(&token->page->horizon_ns, horizon(token));
    fl_token_owe(token);
    if (t->setting) {
        t->setting = false;
        fl_boards_go(token->sets->boards, fl_token_now(token));
        if (t->set_conn)
            fl_sets_make(token->sets, t->set_conn, &t->set);
    } else if (t->must_answer) {
        fl_token_answer(token, t, woken, (uint64_t)fl_token_now(token));
    } /* else it is not here yet; when it arrives it finds that it may run */
}

static bool before(const fl_turn *a, const fl_turn *b, bool by_time) {
    if (by_time && a->until_ns != b->until_ns)
        return a->until_ns < b->until_ns;
    return a->order < b->order;
}

/* Time does not go on for a timer that nobody in the session can hear of any more. */
static void fire(fl_token *token, fl_timer *timer) {
    const fl_turn *t = token->turn;
    while (t && t->pid != timer->pid)
        t = t->next;
    if (!t && timer->kind != FL_TIMER_DESCRIPTOR) {
        timer->state.next_ns = FL_VIRTUAL_FOREVER;
        return;
    }
    fl_timer_fire(timer, fl_token_now(token));
    if (timer->kind == FL_TIMER_DESCRIPTOR)
        fl_token_stir(token, NULL);
    else
        fl_token_wake(token, timer->pid);
}

void fl_token_fire(fl_token *token) {
    fl_timer *timer;
    while (token->turn && (timer = fl_timers_first(&token->timers)) && timer->state.next_ns <= fl_token_now(token))
        fire(token, timer);
}

#define NO_DEADLINE (-1) /* 0 is an instant: the first */

/* The next deadline, or NO_DEADLINE if there is none or time is held back. */
static int64_t until_next(fl_token *token, fl_turn **next) {
    const fl_timer *timer = token->turn ? fl_timers_first(&token->timers) : NULL;
    *next = NULL;
    for (fl_turn *t = token->turn; t; t = t->next)
        if ((t->state == FL_TURN_SLEEPS || t->state == FL_TURN_WAITS) && t->until_ns < FL_VIRTUAL_FOREVER &&
            (!*next || before(t, *next, true)))
            *next = t;
    if (!*next && !timer)
        return NO_DEADLINE;
    int64_t t_ns = *next ? (*next)->until_ns : FL_VIRTUAL_FOREVER;
    if (timer && (timer->state.next_ns < t_ns || (timer->state.next_ns == t_ns && timer->order < (*next)->order))) {
        t_ns = timer->state.next_ns;
        *next = NULL;
    }
    token->held_back = token->command_ended && t_ns - fl_token_now(token) > GRACE_NS;
    return token->held_back ? NO_DEADLINE : t_ns;
}

static fl_turn *first_ready(const fl_token *token) {
    fl_turn *ready = NULL, *look = NULL;
    for (fl_turn *t = token->turn; t; t = t->next) {
        if (t->state == FL_TURN_READY && (!ready || before(t, ready, false)))
            ready = t;
        if (t->state == FL_TURN_WAITS && t->look && (!look || before(t, look, false)))
            look = t;
    }
    return ready ? ready : look;
}

void fl_token_pass(fl_token *token) {
    if (token->holder || token->outcome->status)
        return;
    token->held_back = false;
    for (;;) {
        fl_turn *next;
        fl_token_fire(token);
        fl_turn *t = first_ready(token);
        if (t) {
            fl_token_give(token, t, t->state == FL_TURN_READY ? t->woken : FL_WOKEN_LOOK);
            return;
        }
        const int64_t t_ns = until_next(token, &next);
        if (t_ns == NO_DEADLINE)
            return;
        const int64_t marker_ns = fl_boards_marker(token->sets->boards, t_ns);
        set_now(token, marker_ns);
        if (marker_ns < t_ns) {
            fl_token_stir(token, NULL);
            continue;
        }
        if (next) {
            fl_token_give(token, next, next->state == FL_TURN_SLEEPS ? next->woken : FL_WOKEN_TIME);
            return;
        }
    }
}

void fl_token_sleep(fl_token *token, fl_turn *t, int64_t t_ns) {
    const int64_t owed = fl_token_now(token) + t->debt_ns;
    t->debt_ns = 0;
    t->until_ns = t_ns > owed ? t_ns : owed;
    t->state = FL_TURN_SLEEPS;
    t->order = ++token->orders;
    t->woken = FL_WOKEN_TIME;
    if (token->holder == t)
        token->holder = NULL;
}

void fl_token_stir(fl_token *token, const fl_turn *by) {
    token->stuck = 0;
    for (fl_turn *t = token->turn; t; t = t->next)
        t->look |= t != by && t->state == FL_TURN_WAITS;
}

void fl_token_wake(fl_token *token, pid_t pid) {
    for (fl_turn *t = token->turn; t; t = t->next)
        if (t->pid == pid && (t->state == FL_TURN_SLEEPS || t->state == FL_TURN_WAITS) && !t->setting) {
            t->state = FL_TURN_READY;
            t->woken = FL_WOKEN_SIGNAL;
            t->order = ++token->orders;
        }
}
