#include "models/math/slope.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

static bool positive(double x) { return x > 0 && isfinite(x); }

fl_model_status fl_slope_fill(fl_slope_point *point, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!positive(point[i].mhz) || !positive(point[i].time_s) || !positive(point[i].power_w) ||
            (i && !(point[i].mhz > point[i - 1].mhz)))
            return FL_MODEL_INVALID;
    if (!count)
        return FL_MODEL_INVALID;
    const fl_slope_point top = point[count - 1];
    for (size_t i = 0; i < count; i++) {
        fl_slope_point *p = &point[i];
        p->performance = top.time_s / p->time_s;
        p->power = p->power_w / top.power_w;
        p->efficiency = p->performance / p->power;
    }
    for (size_t i = 0; i + 1 < count; i++)
        point[i].slope =
            (point[i + 1].performance - point[i].performance) * top.mhz / (point[i + 1].mhz - point[i].mhz);
    point[count - 1].slope = NAN;
    return FL_MODEL_OK;
}

fl_model_status fl_slope_choose(const fl_slope_point *point, size_t count, double delta, double epsilon,
                                fl_sweet_spot *out) {
    if (!count || !(delta >= 0 && delta <= 1) || isnan(epsilon))
        return FL_MODEL_INVALID;
    *out = (fl_sweet_spot){.index = count - 1, .alpha = 1};
    for (size_t i = 0; i < count && !out->found; i++)
        if (point[i].performance >= 1 - delta && point[i].slope <= epsilon) /* false for a slope of NAN */
            *out = (fl_sweet_spot){.found = true, .index = i, .alpha = point[i].mhz / point[count - 1].mhz};
    return FL_MODEL_OK;
}

double fl_slope_median(double *value, size_t count) { return count ? gsl_stats_median(value, 1, count) : (double)NAN; }
