/* One clock for a workload: the one of least energy that holds a bound on the slowdown, whatever had to be assumed, and
 * how sure that is. */
#ifndef FL_ADVISE_H
#define FL_ADVISE_H

#include "harness/input/stated.h"

enum { FL_ADVISE_CASES = 3 };

typedef struct fl_advise_case {
    const char *assume; /* what was assumed of the kernels (compute, memory, balanced); NULL: nothing had to be */
    fl_stated stated;   /* every setting that could be set */
} fl_advise_case;

typedef struct fl_interval {
    double value, low, high;
} fl_interval;

/* Savings and slowdowns in percent, against the reference: two stated standard deviations to either side, over all
 * cases. */
typedef struct fl_advice {
    fl_setting_clocks at;
    fl_interval saving, slowdown;
    double
        chance; /* that the real bound breaks: the greatest over the cases; NAN: no model says how sure its times are */
    bool stated;   /* the intervals say how wrong the model may be; else how far the cases lie apart, no more */
    fl_setting_clocks measure; /* which measurement would narrow it most; NAN: none would */
} fl_advice;

/* Settings that a case does not know are left out; the reference itself is always one that may be chosen. Of those
 * that may be chosen in every case (models/decide.h) the one of least energy on average. FL_BAD_INPUT where a case does
 * not know the reference. */
fl_status fl_advise(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, double bound, double risk,
                    fl_advice *out, fl_diag *d);

#endif
