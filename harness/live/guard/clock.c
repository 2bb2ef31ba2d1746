#include "harness/live/guard/clock.h"

#include <time.h>

enum { NS = 1000000000 };

int64_t fl_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t now(void *user) {
    (void)user;
    return fl_clock_ns();
}

/* At most a second at a time: a signal that came just before the sleep is then seen soon enough. */
static void sleep_until(void *user, int64_t t_ns) {
    (void)user;
    const int64_t latest = fl_clock_ns() + NS, until = t_ns < latest ? t_ns : latest;
    const struct timespec t = {.tv_sec = until / NS, .tv_nsec = until % NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

fl_clock fl_clock_system(void) { return (fl_clock){.now = now, .sleep_until = sleep_until}; }
