/* What a board draws during a step, from the shares of the step's time that load it. f in GHz:
 *     P = p0 + f v(f)^2 (pi + uc pc) + um pm
 * uc, um: the compute and memory shares (models/laws/step_law.h). v is flat up to a knee and then rises in a line, relative
 * to its floor: v(f) = 1 + rise max(f / top - knee, 0). It is the platform's law (models/laws/power.h) with B0 + C V = p0,
 * A0 = pi, A = pc and B = pm at one memory clock. */
#pragma once

#include "traces/io/diag.h"

#include <stddef.h>

typedef struct fl_serving_power {
    double p0_w, idle_w, compute_w, memory_w; /* p0; pi, pc in W per GHz at v = 1; pm */
    double knee, rise, top_mhz;
} fl_serving_power;

typedef struct fl_serving_load { /* a measured step */
    double sm_mhz, compute, memory, power_w;
} fl_serving_load;

double fl_serving_power_v(const fl_serving_power *p, double sm_mhz);
double fl_serving_power_at(const fl_serving_power *p, double sm_mhz, double compute, double memory);
/* top_mhz: of the chip, at which v is largest. FL_NO_MEMORY, FL_BAD_INPUT where nothing fits. */
fl_status fl_serving_power_fit(const fl_serving_load *load, size_t count, double top_mhz, fl_serving_power *p,
                               fl_diag *d);

/* The residual of a logarithm in units of `sd`, which grows no faster than its root beyond 2 sd: single rows that were
 * measured wrongly do not move a fit. */
double fl_serving_robust(double log_ratio, double sd);
