/* Heat of one GPU: one RC stage that follows the mean power of each period, leakage that follows it, and the clock that
 * is taken down at the thermal limit. A device whose thermal period is 0 has none: with heat the same work at the same
 * clock costs more later in a run. */
#ifndef FL_HEAT_H
#define FL_HEAT_H

#include "sim/gpu.h"

typedef struct fl_heat {
    const fl_thermal_spec *spec;
    int64_t period_ps, next_ps; /* next_ps: FL_TIME_NEVER while heat is not modelled */
    double keep;
    bool acts;
    fl_wide seen_fj;
} fl_heat;

/* Starts at the temperature of a board that idles with its context open, g->temp_c. */
void fl_heat_open(fl_heat *h, fl_gpu *g);

/* The GPU stands at t, settled: looks if it is time, and sets temperature, leakage and g->heat_sm. */
void fl_heat_at(fl_heat *h, fl_gpu *g, int64_t t);

static inline int64_t fl_heat_next(const fl_heat *h) { return h->next_ps; }

#endif
