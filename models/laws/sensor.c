#include "models/laws/sensor.h"

#include <math.h>

double fl_sensor_quantise(double value, double quantum) {
    if (!(quantum > 0) || !isfinite(value))
        return value;
    const double steps = value / quantum, whole = floor(steps);
    return (steps - whole < 0.5 ? whole : whole + 1) * quantum;
}

double fl_sensor_lag(double shown, double input, int64_t dt_ns, int64_t lag_ns) {
    if (lag_ns <= 0)
        return input;
    /* expm1 keeps its precision where a refresh is much shorter than the lag. */
    return shown - (input - shown) * expm1(-(double)dt_ns / (double)lag_ns);
}

double fl_sensor_wrap(double value, double wrap) { return wrap > 0 ? fmod(value, wrap) : value; }
