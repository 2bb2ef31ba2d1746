#include "models/fit_contention.h"

#include <math.h>

fl_model_status fl_fit_interference(const double *asked, const double *slowdown, size_t count, double *gamma,
                                    double *rms) {
    double xx = 0, xy = 0, squares = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(asked[i]) || !(slowdown[i] > 0) || !isfinite(slowdown[i]))
            return FL_MODEL_INVALID;
        if (asked[i] <= 1)
            continue;
        const double x = asked[i] - 1;
        xx += x * x;
        xy += x * (slowdown[i] / asked[i] - 1);
        used++;
    }
    if (!used)
        return FL_MODEL_NO_FIT;
    const double g = fmax(0, xy / xx);
    for (size_t i = 0; i < count; i++)
        if (asked[i] > 1) {
            const double error = asked[i] * (1 + g * (asked[i] - 1)) / slowdown[i] - 1;
            squares += error * error;
        }
    *gamma = g;
    if (rms)
        *rms = sqrt(squares / (double)used);
    return FL_MODEL_OK;
}
