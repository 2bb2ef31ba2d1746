/* Heat of one die. One RC stage follows the mean power of each period, leakage follows the temperature, and the GPU's
 * clock falls at the thermal limit. The die is the GPU's; on an APU also the CPU's. A device whose thermal period is 0
 * has no heat model. With heat, the same work at the same clock costs more later in a run. */
#pragma once

#include "sim/gpu/gpu.h"

typedef struct fl_heat {
    const fl_thermal_spec *spec;
    int64_t period_ps, next_ps; /* next_ps: FL_TIME_NEVER while heat is not modelled */
    double keep;
    bool acts;
    fl_wide seen_fj;
} fl_heat;

/* Starts at the temperature of a board that idles with its context open, g->temp_c. cpu_mw: power of an idle CPU on the
 * same die, 0 = none. */
void fl_heat_open(fl_heat *h, fl_gpu *g, int64_t cpu_mw);

/* Call it when the GPU stands at t and is charged up to t. Where a look is due, it sets temperature, leakage and
 * g->heat_sm. cpu_fj: energy up to t of a CPU on the same die, else 0. */
void fl_heat_at(fl_heat *h, fl_gpu *g, fl_wide cpu_fj, int64_t t);

static inline int64_t fl_heat_next(const fl_heat *h) { return h->next_ps; }
