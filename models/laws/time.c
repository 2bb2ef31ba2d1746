#include "models/laws/time.h"

#include <math.h>

double fl_time_norm(double core, double memory, double p) {
    const double large = fmax(core, memory), small = fmin(core, memory);
    if (!(small > 0))
        return large;
    /* Scaled by the larger term, so that neither power can overflow and a vanishing term leaves the other unchanged.
     * With p = INFINITY the root is 1, and the result is the maximum. */
    return large * pow(1 + pow(small / large, p), 1 / p);
}

double fl_time_at(double tc, double tm, double tl, double p, double f_ratio, double m_ratio) {
    return fl_time_norm(tc * f_ratio, tm * m_ratio, p) + tl;
}

static double share(double part, double whole) { return whole > 0 ? fmin(1, part / whole) : 0; }

double fl_memory_active(double tc, double tm, double tl, double p, double f_ratio, double m_ratio) {
    return share(tm * m_ratio, fl_time_at(tc, tm, tl, p, f_ratio, m_ratio));
}

double fl_core_active(double tc, double tm, double tl, double p, double f_ratio, double m_ratio) {
    return share(tc * f_ratio, fl_time_at(tc, tm, tl, p, f_ratio, m_ratio));
}
