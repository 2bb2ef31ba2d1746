/* What the two sides of the guardian share: guardian.c is the controller's, guardian_process.c the process itself. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

struct fl_beat {               /* shared memory */
    _Atomic int64_t until_ns;  /* the controller's next report */
    _Atomic int64_t looked_ns; /* the guardian's last look */
};

enum { UNITS_MAX = 1025, FAR_CHECKS = 10, NS_PER_MS = 1000000 }; /* FAR_CHECKS: looks are at most that far apart */
enum { ARGUMENTS = 5, KEPT_MAX = 2 * UNITS_MAX + ARGUMENTS };    /* ARGUMENTS: those before the units */

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}
