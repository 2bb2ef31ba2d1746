#include "harness/live/clock.h"

#include <time.h>

enum { NS = 1000000000 };

static int64_t now(void *user) {
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* At most a second at a time: a signal that came just before the sleep is then seen soon enough. */
static void sleep_until(void *user, int64_t t_ns) {
    const int64_t latest = now(user) + NS, until = t_ns < latest ? t_ns : latest;
    const struct timespec t = {.tv_sec = until / NS, .tv_nsec = until % NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

fl_clock fl_clock_system(void) { return (fl_clock){.now = now, .sleep_until = sleep_until}; }
