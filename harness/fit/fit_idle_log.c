#include "harness/fit/fit_idle_log.h"

#include "traces/trace_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLOCKS_MIN 4 /* three terms, and one to tell their error */

static double value_at(const fl_telemetry *t, size_t row, const char *signal) {
    for (size_t k = 0; k < t->signal_count; k++)
        if (!strcmp(t->signal[k], signal))
            return t->value[row * t->signal_count + k];
    return NAN;
}

static double spread_of(const fl_idle_point *point, const double *volt, size_t n) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += volt[i] * volt[i] * point[i].sm_mhz / 1000 / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double x = volt[i] * volt[i] * point[i].sm_mhz / 1000 - mean;
        squares += x * x;
    }
    return sqrt(squares);
}

/* True where that GPU idles at enough clocks. reading, point, volt: room for every row. */
static bool fit_device(const fl_telemetry *t, int device, const fl_chip *chip, fl_idle_reading *reading,
                       fl_idle_point *point, double *volt, fl_idle_log *out) {
    size_t n = 0, points = 0;
    for (size_t i = 0; i < t->row_count; i++)
        if (t->device[i] == device)
            reading[n++] = (fl_idle_reading){value_at(t, i, "util_gpu_pct"), value_at(t, i, "power_w"),
                                             value_at(t, i, "sm_mhz"), NAN};
    if (n < CLOCKS_MIN || fl_idle_points(reading, n, point, &points) != FL_MODEL_OK || points < CLOCKS_MIN)
        return false;
    fl_idle_log o = {.clocks = points, .device = device, .low_mhz = point[0].sm_mhz};
    for (size_t i = 0; i < points; i++) {
        volt[i] = fl_chip_volt(chip, point[i].sm_mhz, chip->mem_ref);
        o.readings += point[i].readings;
    }
    o.high_mhz = point[points - 1].sm_mhz;
    if (fl_fit_idle_clock(point, volt, points, &o.idle, NULL) != FL_MODEL_OK)
        return false;
    o.a0_sd = o.idle.rms_w * sqrt((double)points / (double)(points - 2)) / spread_of(point, volt, points);
    *out = o;
    return true;
}

fl_status fl_idle_log_fit(const char *path, const fl_chip *chip, fl_idle_log *out, fl_diag *d) {
    fl_imported in = {0};
    fl_status s = fl_trace_open(path, NULL, NULL, &in, d);
    if (!s && !in.has_telemetry)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no telemetry, expected a log of power, utilisation and SM clock");
    const size_t rows = s ? 0 : in.telemetry.row_count;
    fl_idle_reading *reading = calloc(rows + 1, sizeof *reading);
    fl_idle_point *point = calloc(rows + 1, sizeof *point);
    double *volt = calloc(rows + 1, sizeof *volt);
    int last = -1;
    if (!s && (!reading || !point || !volt))
        s = fl_no_memory(d, "the log");
    for (size_t i = 0; i < rows; i++)
        last = in.telemetry.device[i] > last ? in.telemetry.device[i] : last;
    bool found = false;
    for (int k = 0; !s && !found && k <= last; k++)
        found = fit_device(&in.telemetry, k, chip, reading, point, volt, out);
    if (!s && !found)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                    "no GPU that idles at %d SM clocks or more (utilisation 0, the clock settled)", CLOCKS_MIN);
    free(reading);
    free(point);
    free(volt);
    fl_imported_free(&in);
    return s;
}
