/* The watch over plug-ins: faults, exits and endless loops within a call. */
#include "harness/input/policy/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/input/policy/policy.h"
#include "policies/policy.h"
#include "sim/base/base.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLUGINS_MAX = 64, LINE_MAX_SIZE = 1024, STACK_SIZE = 1 << 16, WAIT_FACTOR = 10 };

double fl_step_limit_s = FL_STEP_LIMIT_S;

static const struct {
    int number;
    const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
              {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"}};
enum { FAULTS = sizeof faults / sizeof *faults };

static struct {
    const char *path;
    const void *step;
} plugins[PLUGINS_MAX];
static atomic_size_t plugin_count;
static const char *_Atomic loading;
static struct sigaction before[FAULTS];
static bool live, started;
static atomic_flag telling = ATOMIC_FLAG_INIT;
static _Thread_local volatile sig_atomic_t tells; /* this thread does, or did */

/* ---- the message: only what a signal handler may call ---- */

typedef struct line {
    char text[LINE_MAX_SIZE];
    size_t size;
} line;

static void put(line *l, const char *text) {
    while (*text && l->size < sizeof l->text - 1)
        l->text[l->size++] = *text++;
}

static void put_number(line *l, uint64_t n, unsigned digits) { /* at least so many digits */
    char text[24];
    size_t at = sizeof text;
    text[--at] = 0;
    do {
        text[--at] = (char)('0' + n % 10);
        n /= 10;
        digits -= digits > 0;
    } while (n || digits);
    put(l, text + at);
}

/* In seconds, to the millisecond, or as far as it needs. */
static void put_time(line *l, int64_t ns) {
    put(l, ns < 0 ? "-" : "");
    const uint64_t n = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
    put_number(l, n / 1000000000, 1);
    put(l, ".");
    uint64_t rest = n % 1000000000;
    unsigned digits = 9;
    for (; digits > 3 && rest % 10 == 0; digits--)
        rest /= 10;
    put_number(l, rest, digits);
    put(l, " s");
}

static const char *path_of(const fl_policy *p) {
    const size_t count = atomic_load(&plugin_count);
    const void *step;
    memcpy(&step, &p->step, sizeof step); /* a function is no object */
    for (size_t i = 0; i < count && i < PLUGINS_MAX; i++)
        if (plugins[i].step == step)
            return plugins[i].path;
    return NULL;
}

/* foldline run: policy './mine.so' (mine): WHAT at step 17, t = 0.170 s; WORKLOAD under LABEL, seed 1 */
static void put_call(line *l, const fl_stepping *now, const char *what) {
    const char *path = path_of(now->policy);
    put(l, "policy '");
    put(l, path ? path : now->policy->name);
    put(l, "'");
    if (path) {
        put(l, " (");
        put(l, now->policy->name);
        put(l, ")");
    }
    put(l, ": ");
    put(l, what);
    if (now->call == FL_CALL_STEP) {
        put(l, " at step ");
        put_number(l, now->step, 1);
        put(l, ", t = ");
        put_time(l, now->time_ns);
    } else {
        put(l, " in init");
    }
    if (now->label && now->run) {
        put(l, "; ");
        put(l, now->run);
        put(l, " under ");
        put(l, now->label);
        put(l, ", seed ");
        put_number(l, now->seed, 1);
    }
}

/* Tells it once, whichever thread is first; the others wait for the end, and a fault within the telling adds nothing.
 * Nobody may hold up a live controller: where standard error takes nothing at once, nothing is said, and another thread
 * waits for 10 ms only, since the signal that should end the program may be one that is ignored. */
static void tell(const char *what) {
    const fl_stepping *now = &fl_stepping_now;
    const char *path = atomic_load(&loading);
    line l = {.size = 0};
    if (tells)
        return;
    tells = 1;
    for (int waits = 0; atomic_flag_test_and_set(&telling); waits++) {
        if (live && waits)
            return;
        poll(NULL, 0, live ? 10 : 1000);
    }
    put(&l, fl_ticker_shown ? FL_TICKER_AWAY "foldline" : "foldline");
    if (fl_command_name) {
        put(&l, " ");
        put(&l, fl_command_name);
    }
    put(&l, ": ");
    if (now->call > FL_CALL_LOAD) {
        put_call(&l, now, what);
    } else {
        put(&l, "policy '");
        put(&l, path ? path : "");
        put(&l, "': ");
        put(&l, what);
        put(&l, " while it was loaded");
    }
    l.text[l.size++] = '\n'; /* put leaves room for it */
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    for (size_t done = 0; done < l.size && poll(&ready, 1, live ? 0 : 1000) == 1;) {
        const ssize_t n = write(STDERR_FILENO, l.text + done, l.size - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
}

static bool within(void) { return fl_stepping_now.call != FL_CALL_NONE || atomic_load(&loading); }

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    size_t i = 0;
    while (i + 1 < FAULTS && faults[i].number != number)
        i++;
    if (within()) {
        tell(faults[i].name);
        if (!live)
            _exit(FL_EXIT_SYSTEM);
    }
    sigaction(number, &before[i], NULL); /* a fault comes again when this returns, a signal that was sent does not */
    if (info->si_code <= 0)
        raise(number);
}

static void on_exit_within(void) {
    if (!within())
        return;
    tell("it called exit()");
    _exit(FL_EXIT_SYSTEM);
}

/* ---- the limit: two timers of each thread ---- */

typedef struct look { /* how it stood at the last tick */
    uint64_t calls;
    int64_t cpu_ns;
    int64_t waited_ns;
} look;

static _Thread_local look spent, idle;
static _Thread_local unsigned char own_stack[STACK_SIZE];
static _Thread_local timer_t timer[2];
static _Thread_local int timers;
static pthread_key_t ending;

static int64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t tick_ns(void) { return (int64_t)((fl_step_limit_s < 4 ? fl_step_limit_s / 4 : 1) * 1e9); }

static void end_by(const char *what) {
    tell(what);
    _exit(FL_EXIT_SYSTEM);
}

/* info->si_int: 0 = the timer of processor time, 1 = that of the wall's. */
static void on_tick(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    const fl_stepping *now = &fl_stepping_now;
    if (now->call == FL_CALL_NONE || info->si_code != SI_TIMER)
        return;
    look *l = info->si_int ? &idle : &spent;
    const int64_t cpu_ns = thread_ns();
    if (l->calls != now->calls) {
        *l = (look){.calls = now->calls, .cpu_ns = cpu_ns};
        return;
    }
    const double limit_ns = fl_step_limit_s * 1e9;
    if (!info->si_int && (double)(cpu_ns - l->cpu_ns) >= limit_ns)
        end_by("more processor time than --step-limit, a loop?");
    if (info->si_int) { /* a tick counts once, however late: a program that was stopped has not waited */
        l->waited_ns = cpu_ns - l->cpu_ns < 1000000 ? l->waited_ns + tick_ns() : 0;
        l->cpu_ns = cpu_ns;
        if ((double)l->waited_ns >= WAIT_FACTOR * limit_ns)
            end_by("it waits for something");
    }
}

/* A thread that ends within a call takes its jobs along, and the others would write results without them. */
static void on_thread_end(void *ignored) {
    (void)ignored;
    if (fl_stepping_now.call != FL_CALL_NONE)
        end_by("it ended its thread");
    while (timers)
        timer_delete(timer[--timers]);
}

/* On each thread that calls a policy: a stack for handlers, where there is none yet, and its timers. */
static void watch_thread(void) {
    stack_t stack;
    if (!sigaltstack(NULL, &stack) && stack.ss_flags & SS_DISABLE) {
        stack = (stack_t){.ss_sp = own_stack, .ss_size = sizeof own_stack};
        sigaltstack(&stack, NULL);
    }
    if (live)
        return;
    pthread_setspecific(ending, timer);
    static const clockid_t clocks[2] = {CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC};
    const int64_t ns = tick_ns();
    const struct timespec tick = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    for (int i = 0; i < 2; i++, timers++) {
        struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = i};
        e._sigev_un._tid = gettid();
        if (timer_create(clocks[i], &e, &timer[i]))
            return; /* a limit of the system's: then nobody looks at the time of this thread */
        timer_settime(timer[i], 0, &(struct itimerspec){.it_interval = tick, .it_value = tick}, NULL);
    }
}

/* ---- starting ---- */

void fl_plugin_watch_live(void) { live = true; }

void fl_plugin_watch_start(void) {
    if (started)
        return;
    started = true;
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    for (size_t i = 0; i < FAULTS; i++)
        sigaction(faults[i].number, &a, &before[i]);
    a = (struct sigaction){.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(SIGRTMIN, &a, NULL);
    if (!pthread_key_create(&ending, on_thread_end))
        fl_stepping_watch = watch_thread;
    if (!live && atexit(on_exit_within))
        return; /* exit() within a step then ends as it did */
}

void fl_plugin_watch_loading(const char *path) {
    fl_stepping *now = &fl_stepping_now;
    if (fl_stepping_watch && !now->watched) {
        now->watched = true;
        fl_stepping_watch();
    }
    atomic_store(&loading, path);
    now->calls++;
    atomic_signal_fence(memory_order_seq_cst);
    now->call = path ? FL_CALL_LOAD : FL_CALL_NONE;
}

void fl_plugin_watch_path(const char *path, const void *step) {
    const size_t at = atomic_load(&plugin_count);
    for (size_t i = 0; i < at; i++)
        if (plugins[i].step == step)
            return;
    if (at == PLUGINS_MAX || !(plugins[at].path = strdup(path)))
        return; /* the line then has the policy's name alone */
    plugins[at].step = step;
    atomic_store(&plugin_count, at + 1);
}
