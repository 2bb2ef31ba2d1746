/* Time as the live host sees it, behind two calls, so that it need not be the wall's. The real one asks the system
 * (CLOCK_MONOTONIC, absolute sleeps), which a simulated session may answer in virtual time. */
#pragma once

#include <stdint.h>

typedef struct fl_clock {
    int64_t (*now)(void *user); /* ns, never falls */
    /* Returns at t_ns, or earlier where a signal arrives or a second has passed: the caller looks and sleeps on. */
    void (*sleep_until)(void *user, int64_t t_ns);
    void *user;
} fl_clock;

fl_clock fl_clock_system(void);
int64_t fl_clock_ns(void); /* CLOCK_MONOTONIC */
