/* Heat of one die: one RC stage that follows the mean power of each period, leakage that follows it, and the GPU's
 * clock that is taken down at the thermal limit. The die is the GPU's, on an APU the CPU's too. A device whose thermal
 * period is 0 has none: with heat the same work at the same clock costs more later in a run. */
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

/* Starts at the temperature of a board that idles with its context open, g->temp_c. cpu_mw: power of an idle CPU on the
 * same die, 0 where there is none. */
void fl_heat_open(fl_heat *h, fl_gpu *g, int64_t cpu_mw);

/* The GPU stands at t, charged up to it: looks if it is time, and sets temperature, leakage and g->heat_sm. cpu_fj:
 * energy up to t of a CPU on the same die, else 0. */
void fl_heat_at(fl_heat *h, fl_gpu *g, fl_wide cpu_fj, int64_t t);

static inline int64_t fl_heat_next(const fl_heat *h) { return h->next_ps; }

#endif
