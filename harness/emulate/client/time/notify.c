/* Timers that call a function: a thread for each waits for its instants, and starts a thread that calls it. Only one
 * thread of the session runs, so that nothing here needs a lock. */
#include "harness/emulate/client/time/notify.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct fl_notifier {
    uint32_t number;
    pid_t owner; /* a forked child has its parent's memory, but not its timers */
    void (*call)(union sigval);
    union sigval value;
    pthread_attr_t *attributes;
    fl_timer_state state;
    bool changed, ended;
    struct fl_notifier *next;
} fl_notifier;

static fl_notifier *notifiers;
static uint32_t numbers;

static void *call_it(void *of) {
    const fl_notifier n = *(fl_notifier *)of;
    free(of);
    n.call(n.value);
    return NULL;
}

static void start_call(const fl_notifier *n) {
    pthread_attr_t own;
    pthread_t id;
    fl_notifier *copy = malloc(sizeof *copy);
    if (!copy)
        return; /* as where no thread can be made: nobody is told */
    *copy = *n;
    pthread_attr_init(&own);
    pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&id, n->attributes ? n->attributes : &own, call_it, copy))
        free(copy);
    pthread_attr_destroy(&own);
}

static bool look_changed(void *of) { return ((const fl_notifier *)of)->changed; }

static void *wait_for_instants(void *of) {
    fl_notifier *n = of;
    while (!n->ended) {
        n->changed = false;
        if (!fl_time_wait(look_changed, n, n->state.next_ns, false))
            continue;
        n->state.next_ns =
            n->state.interval_ns ? fl_virtual_after(n->state.next_ns, n->state.interval_ns) : FL_VIRTUAL_FOREVER;
        start_call(n);
    }
    free(n);
    return NULL;
}

/* Signals are the program's own threads' to hear. */
static int start_waiting(fl_notifier *n) {
    sigset_t all, before;
    pthread_attr_t own;
    pthread_t id;
    sigfillset(&all);
    pthread_attr_init(&own);
    pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int e = pthread_create(&id, &own, wait_for_instants, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&own);
    return e;
}

int fl_notify_create(clockid_t clock, const struct sigevent *e, timer_t *id) {
    fl_notifier *n = calloc(1, sizeof *n);
    if (!n)
        return -1;
    *n = (fl_notifier){.number = ++numbers,
                       .owner = getpid(),
                       .call = e->sigev_notify_function,
                       .value = e->sigev_value,
                       .attributes = e->sigev_notify_attributes,
                       .state = {.next_ns = FL_VIRTUAL_FOREVER},
                       .next = notifiers};
    if (start_waiting(n)) {
        free(n);
        return -1;
    }
    notifiers = n;
    *id = fl_timer_id(n->number, true, clock);
    return 0;
}

static fl_notifier **find(uint32_t number) {
    fl_notifier **at = &notifiers;
    while (*at && ((*at)->number != number || (*at)->owner != getpid()))
        at = &(*at)->next;
    return at;
}

int fl_notify_arm(uint32_t number, const fl_timer_want *want, fl_timer_state *was) {
    fl_notifier *n = *find(number);
    if (!n)
        return -1;
    if (was)
        *was = n->state;
    if (want) {
        n->state = (fl_timer_state){.next_ns = fl_timer_first(want), .interval_ns = fl_timer_interval(want)};
        n->changed = true;
    }
    return 0;
}

int fl_notify_end(uint32_t number) {
    fl_notifier **at = find(number), *n = *at;
    if (!n)
        return -1;
    *at = n->next;
    n->changed = n->ended = true; /* its thread frees it */
    return 0;
}
