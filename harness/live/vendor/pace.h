/* When is a slow counter worth reading? On an H200 the energy counter steps each 100 ms, and reading it takes 2 to 6 ms
 * of processor time (tests/hardware): a policy that reads each 2 ms took 44 % of a core. Its steps are learned from
 * readings that follow each other closely; then it is left alone until just before the next one can come: the shortest
 * of the last steps, less a twentieth of it (most came 98 to 102 ms apart), less what the readings leave unsure. A
 * counter that is quick to read, or was only ever read from time to time, is read each time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { FL_PACE_STEPS = 8 };
#define FL_PACE_SLOW_NS INT64_C(500000) /* a reading that takes less is not worth leaving out */

typedef struct fl_pace { /* plain zero: nothing known */
    double value;
    int64_t moved_ns;               /* when it was last seen to move */
    int64_t unsure_ns;              /* and how long before it may have moved */
    int64_t asked_ns;               /* the last time that anybody asked */
    int64_t cost_ns;                /* the quickest reading so far */
    int64_t step_ns[FL_PACE_STEPS]; /* the last steps, each at its shortest */
    uint64_t steps;
    bool known, rested; /* rested: readings were left out since it moved */
} fl_pace;

/* Whether a reading at t_ns can be left out: the counter stands as it did. */
bool fl_pace_rests(fl_pace *p, int64_t t_ns);
/* What a reading at t_ns showed, and how long it took. */
void fl_pace_read(fl_pace *p, int64_t t_ns, double value, int64_t cost_ns);
