/* Chooses one clock for a workload: the one of least energy that holds a bound on the slowdown under every assumption.
 * Says how sure the choice is. */
#pragma once

#include "harness/input/scene/stated.h"

enum { FL_ADVISE_CASES = 3 };

typedef struct fl_advise_case {
    const char *assume; /* the assumption about the kernels (compute, memory, balanced); NULL: none was necessary */
    fl_stated stated;   /* every setting that a user could set */
} fl_advise_case;

typedef struct fl_interval {
    double value, low, high;
} fl_interval;

/* Savings and slowdowns in percent, relative to the reference. The intervals are two stated standard deviations to
 * either side, over all cases. */
typedef struct fl_advice {
    fl_setting_clocks at;
    fl_interval saving, slowdown;
    double chance; /* the chance that the real bound breaks: the largest over the cases; NAN: no model states how sure
                      its times are */
    bool stated;   /* the intervals include the model's stated error; else only the distance between the cases */
    fl_setting_clocks measure; /* the measurement that would narrow the result most; NAN: none would */
} fl_advice;

/* Ignores settings that a case does not know; the reference itself may always be chosen. Among the settings that every
 * case allows (models/chip/decide.h) it chooses the one of least energy on average. FL_BAD_INPUT where a case does not know
 * the reference. */
fl_status fl_advise(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, double bound, double risk,
                    fl_advice *out, fl_diag *d);
