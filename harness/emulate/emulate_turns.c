/* Virtual time: one token. Exactly one thread of the whole session runs. It passes the token on when it sleeps or
 * waits; time jumps to the earliest deadline only when nobody is ready, ties by order of arrival.
 *
 * A thread that waits for what others do (a lock, a byte in a pipe, a child's end) looks for itself: it gets the token
 * for one look after any other thread has run, in order of arrival. So every kind of waiting is alike, across processes
 * too, and a waiter whose process is killed leaves nothing behind. */
#include "harness/emulate/emulate_turns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRACE_NS INT64_C(60000000000)

int64_t fl_turns_now(const fl_emulator *e) { return atomic_load(&e->turns->page->now_ns); }

static void set_now(fl_emulator *e, int64_t t) {
    if (t > fl_turns_now(e))
        atomic_store(&e->turns->page->now_ns, t);
}

fl_status fl_turns_open(fl_emulator *e) {
    char path[128];
    fl_turns *v = calloc(1, sizeof *v);
    snprintf(path, sizeof path, "%s/" FL_EMULATE_CLOCK, e->dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (v && fd >= 0 && !ftruncate(fd, 4096))
        v->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (!v || !v->page || v->page == MAP_FAILED) {
        free(v);
        return fl_fail(e->d, FL_IO, path, 0, 0, "cannot make the session's clock: %s", fl_reason(errno));
    }
    v->page->version = FL_EMULATE_VERSION;
    v->page->realtime_ns = FL_VIRTUAL_REALTIME_NS;
    for (int i = 0; i < 2; i++) {
        struct stat st;
        if (!fstat(i + 1, &st))
            v->page->out[i][0] = st.st_dev, v->page->out[i][1] = st.st_ino;
    }
    e->turns = v;
    cpu_set_t one; /* only one thread runs anyway, and handing over is several times faster on one CPU */
    const int cpu = sched_getcpu();
    CPU_ZERO(&one);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_SET((size_t)cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
    return FL_OK;
}

void fl_turns_close(fl_emulator *e) {
    fl_turns *v = e->turns;
    if (!v)
        return;
    while (v->turn) {
        fl_turn *t = v->turn;
        v->turn = t->next;
        free(t);
    }
    munmap(v->page, 4096);
    free(v);
    e->turns = NULL;
}

size_t fl_turns_left(const fl_emulator *e) {
    size_t n = 0;
    for (const fl_turn *t = e->turns->turn; t; t = t->next)
        n++;
    return n;
}

static fl_turn *add(fl_emulator *e, pid_t pid, bool process) {
    fl_turns *v = e->turns;
    fl_turn *t = calloc(1, sizeof *t), **at = &v->turn;
    if (!t) {
        fl_emulator_fail(e, "out of memory for the threads of virtual time");
        return NULL;
    }
    *t =
        (fl_turn){.number = ++v->numbers, .order = ++v->orders, .pid = pid, .process = process, .state = FL_TURN_READY};
    while (*at)
        at = &(*at)->next;
    *at = t;
    return t;
}

static fl_turn *by_number(const fl_emulator *e, uint64_t number) {
    fl_turn *t = e->turns->turn;
    while (t && t->number != number)
        t = t->next;
    return t;
}

/* By its connection; or, where the program had closed that, by the thread it is. */
static fl_turn *by_conn(const fl_emulator *e, fl_conn *c, int32_t tid) {
    fl_turn *t = e->turns->turn;
    while (t && t->conn != c)
        t = t->next;
    if (t)
        return t;
    for (t = e->turns->turn; t && (t->pid != c->peer->pid || t->tid != tid); t = t->next) {
    }
    if (t)
        t->conn = c;
    return t;
}

void fl_turns_command(fl_emulator *e) {
    fl_turn *t = add(e, e->command, true);
    if (!t)
        return;
    t->state = FL_TURN_RUNS;
    e->turns->holder = t;
    (void)fl_peer_of(e, e->command); /* so that its end is known of, whatever it does */
}

void fl_turns_stir(fl_emulator *e, const fl_turn *by) {
    e->turns->stuck = 0;
    for (fl_turn *t = e->turns->turn; t; t = t->next)
        t->look |= t != by && t->state == FL_TURN_WAITS;
}

static void answer(fl_emulator *e, fl_turn *t, int32_t result, uint64_t value) {
    const fl_ask q = {.op = FL_TIME_HELLO};
    fl_answer a = {.result = result, .size = sizeof value};
    memcpy(a.bytes, &value, sizeof value);
    t->must_answer = false;
    if (t->conn)
        fl_conn_answer(e, t->conn, &q, &a);
}

/* How far the holder may move the clock by itself. */
static int64_t horizon(const fl_emulator *e) {
    int64_t h = FL_VIRTUAL_FOREVER;
    for (const fl_turn *t = e->turns->turn; t; t = t->next) {
        if (t->state == FL_TURN_READY || t->state == FL_TURN_WAITS)
            return 0;
        if (t->state == FL_TURN_SLEEPS && t->until_ns < h)
            h = t->until_ns;
    }
    return h;
}

static void owe(fl_emulator *e) {
    const fl_turn *h = e->turns->holder;
    atomic_store(&e->turns->page->owed, h && h->debt_ns > 0);
}

static void run(fl_emulator *e, fl_turn *t, int32_t woken) {
    fl_turns *v = e->turns;
    t->state = FL_TURN_RUNS;
    t->look = false;
    t->woken = woken;
    v->holder = t;
    v->quiet = v->still = 0;
    atomic_store(&v->page->horizon_ns, horizon(e));
    owe(e);
    if (t->setting) {
        t->setting = false;
        fl_boards_go(e, fl_turns_now(e));
        if (t->set_conn)
            fl_conn_set(e, t->set_conn, &t->set);
    } else if (t->must_answer) {
        answer(e, t, woken, (uint64_t)fl_turns_now(e));
    } /* else it has yet to come, and will find that it may run */
}

static bool before(const fl_turn *a, const fl_turn *b, bool by_time) {
    if (by_time && a->until_ns != b->until_ns)
        return a->until_ns < b->until_ns;
    return a->order < b->order;
}

void fl_turns_pass(fl_emulator *e) {
    fl_turns *v = e->turns;
    fl_turn *ready = NULL, *look = NULL, *next = NULL;
    if (v->holder || e->status)
        return;
    for (fl_turn *t = v->turn; t; t = t->next) {
        if (t->state == FL_TURN_READY && (!ready || before(t, ready, false)))
            ready = t;
        if (t->state == FL_TURN_WAITS && t->look && (!look || before(t, look, false)))
            look = t;
        if ((t->state == FL_TURN_SLEEPS || t->state == FL_TURN_WAITS) && t->until_ns < FL_VIRTUAL_FOREVER &&
            (!next || before(t, next, true)))
            next = t;
    }
    if (ready) {
        run(e, ready, ready->woken);
    } else if (look) {
        run(e, look, FL_WOKEN_LOOK);
    } else if (next && !(e->command_ended && next->until_ns - fl_turns_now(e) > GRACE_NS)) {
        set_now(e, next->until_ns);
        run(e, next, next->state == FL_TURN_SLEEPS ? next->woken : FL_WOKEN_TIME);
    }
}

static void release(fl_emulator *e, fl_turn *t) {
    fl_turns *v = e->turns;
    if (v->holder == t)
        v->holder = NULL;
    for (fl_turn **at = &v->turn; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            free(t);
            break;
        }
}

/* The holder sleeps until t_ns, and in any case for what its readings took. */
static void sleep_until(fl_emulator *e, fl_turn *t, int64_t t_ns) {
    const int64_t now = fl_turns_now(e), owed = now + t->debt_ns;
    t->debt_ns = 0;
    t->until_ns = t_ns > owed ? t_ns : owed;
    t->state = FL_TURN_SLEEPS;
    t->order = ++e->turns->orders;
    t->woken = FL_WOKEN_TIME;
    if (e->turns->holder == t)
        e->turns->holder = NULL;
}

void fl_turns_read(fl_emulator *e, uint32_t gpu) {
    fl_turn *h = e->turns->holder;
    if (!h || gpu / 64 >= sizeof h->read_gpus / sizeof *h->read_gpus)
        return;
    const int64_t now = fl_turns_now(e);
    if (h->read_at_ns != now) {
        memset(h->read_gpus, 0, sizeof h->read_gpus);
        h->read_at_ns = now;
    }
    const uint64_t bit = UINT64_C(1) << (gpu % 64);
    if (!(h->read_gpus[gpu / 64] & bit)) /* all signals of one GPU at one instant are one reading */
        h->debt_ns += e->spec->device[e->spec->gpu[gpu]].actuator.read_ns;
    h->read_gpus[gpu / 64] |= bit;
    owe(e);
}

void fl_turns_set(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_turn *h = e->turns->holder;
    if (!h || !c->peer || h->pid != c->peer->pid) { /* of a thread that is about to end: it has no turn any more */
        fl_conn_set(e, c, q);
        return;
    }
    e->turns->heard++;
    h->setting = true;
    h->set_conn = c;
    h->set = *q;
    sleep_until(e, h, fl_turns_now(e) + h->debt_ns + fl_boards_set_ns(e, q));
    fl_turns_stir(e, h);
    fl_turns_pass(e);
}

static void hello(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_turns *v = e->turns;
    const pid_t pid = c->peer->pid;
    bool had = false;
    fl_turn *mine = NULL;
    for (fl_turn *t = v->turn, *next; t;
         t = next) { /* after an exec: its other threads have ended with the old image */
        next = t->next;
        if (t->pid != pid)
            continue;
        had |= v->holder == t;
        if (!mine)
            mine = t;
        else
            release(e, t);
    }
    if (!mine && !(mine = add(e, pid, true)))
        return;
    mine->conn = c;
    mine->tid = q->thread;
    mine->must_answer = true;
    mine->debt_ns = 0;
    if (had) {
        v->holder = mine;
        run(e, mine, FL_WOKEN_TIME);
    } else {
        fl_turns_pass(e);
    }
}

static void begin(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_turn *t = by_number(e, q->a);
    if (!t) {
        fl_emulator_fail(e, "a thread nobody announced has begun");
        return;
    }
    t->conn = c;
    t->tid = q->thread;
    t->pid = c->peer->pid;
    t->must_answer = true;
    if (e->turns->holder == t)
        run(e, t, FL_WOKEN_TIME);
    else
        fl_turns_pass(e);
}

static void end_number(fl_emulator *e, uint64_t number) {
    fl_turn *t = by_number(e, number);
    if (t)
        release(e, t);
}

static void wake_process(fl_emulator *e, pid_t pid) {
    for (fl_turn *t = e->turns->turn; t; t = t->next)
        if (t->pid == pid && (t->state == FL_TURN_SLEEPS || t->state == FL_TURN_WAITS) && !t->setting) {
            t->state = FL_TURN_READY;
            t->woken = FL_WOKEN_SIGNAL;
            t->order = ++e->turns->orders;
        }
}

/* pid 0: nobody knows to whom it went. A kill is waited for, so that what follows does not depend on how fast it is. */
static void signalled(fl_emulator *e, pid_t pid, int number) {
    for (fl_peer *p = e->peer; p; p = p->next) {
        if (pid > 0 && p->pid != pid)
            continue;
        struct pollfd end = {.fd = p->pidfd, .events = POLLIN};
        if (number == SIGKILL && pid > 0)
            (void)poll(&end, 1, 1000);
        wake_process(e, p->pid);
    }
}

static void failed(fl_emulator *e, const fl_turn *t, const fl_ask *q) {
    const fl_emulated_process *p = NULL;
    for (size_t i = 0; i < e->r->process_count; i++)
        if (e->r->process[i].pid == t->pid)
            p = &e->r->process[i];
    fl_emulator_fail(e, "%s (process %d, thread %d): %s cannot run in virtual time", p ? p->name : "?", (int)t->pid,
                     (int)t->tid, q->text);
}

void fl_turns_ask(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_turns *v = e->turns;
    v->heard++;
    if (!c->peer)
        return;
    if (q->op == FL_TIME_HELLO) {
        hello(e, c, q);
        return;
    }
    if (q->op == FL_TIME_BEGIN) {
        begin(e, c, q);
        return;
    }
    fl_turn *t = by_conn(e, c, q->thread);
    if (!t) { /* a thread that began unseen: it takes its turn from here on */
        if (!(t = add(e, c->peer->pid, false)))
            return;
        t->conn = c;
        t->tid = q->thread;
    }
    const bool holds = v->holder == t;
    t->must_answer = true;
    fl_turn *other;
    switch ((fl_ask_op)q->op) {
    case FL_TIME_BEAR:
        other = add(e, q->a ? -1 : t->pid, q->a != 0);
        atomic_store(&v->page->horizon_ns, 0);
        answer(e, t, 0, other ? other->number : 0);
        return;
    case FL_TIME_MISSED:
        end_number(e, q->a);
        answer(e, t, 0, 0);
        return;
    case FL_TIME_NAMED:
        if ((other = by_number(e, q->a)) != NULL && other->pid < 0)
            other->pid = (pid_t)q->b;
        (void)fl_peer_of(e, (pid_t)q->b);
        for (fl_turn *twin = v->turn; twin && other; twin = twin->next)
            if (twin != other && twin->pid == other->pid && twin->process && twin->conn) { /* it came first */
                other->conn = twin->conn;
                other->tid = twin->tid;
                other->must_answer = twin->must_answer;
                release(e, twin);
                break;
            }
        answer(e, t, 0, 0);
        return;
    case FL_TIME_SLEEP:
        sleep_until(e, t, q->a ? fl_turns_now(e) + t->debt_ns + (int64_t)q->wide : (int64_t)q->wide);
        fl_turns_stir(e, t);
        break;
    case FL_TIME_WAIT:
        if (!q->a)
            t->order = ++v->orders;
        if (t->debt_ns > 0) { /* first the time of its readings passes, then it looks again */
            sleep_until(e, t, 0);
            t->woken = FL_WOKEN_LOOK;
            fl_turns_stir(e, t);
            break;
        }
        t->until_ns = (int64_t)q->wide;
        t->outside = q->b != 0;
        t->state = FL_TURN_WAITS;
        t->look = false;
        if (holds)
            v->holder = NULL;
        if (!q->a)
            fl_turns_stir(e, t);
        break;
    case FL_TIME_SIGNAL:
        signalled(e, (pid_t)q->a, (int)q->b);
        atomic_store(&v->page->horizon_ns, 0);
        answer(e, t, 0, 0);
        return;
    case FL_TIME_FAIL:
        failed(e, t, q);
        return;
    case FL_TIME_LEAVE:
        release(e, t);
        fl_turns_stir(e, NULL);
        break;
    default:
        answer(e, t, -1, 0);
        return;
    }
    fl_turns_pass(e);
}

void fl_turns_hung_up(fl_emulator *e, fl_conn *c) {
    for (fl_turn *t = e->turns->turn; t; t = t->next) {
        if (t->set_conn == c)
            t->set_conn = NULL;
        if (t->conn == c) { /* an exec, or an end of which the process's end will tell */
            t->conn = NULL;
            t->must_answer = false;
        }
    }
}

void fl_turns_died(fl_emulator *e, pid_t pid, pid_t parent) {
    fl_turns *v = e->turns;
    for (fl_turn *t = v->turn, *next; t; t = next) {
        next = t->next;
        if (t->pid == pid)
            release(e, t);
    }
    wake_process(e, parent); /* SIGCHLD */
    fl_turns_stir(e, NULL);
    fl_turns_pass(e);
}
