#include "harness/fit/chip/idle_log.h"

#include "traces/open/trace_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLOCKS_MIN 4 /* three terms, and one to show their error */

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

/* The number of clocks at which that GPU idles. reading, point: room for every row. */
static size_t points_of(const fl_telemetry *t, int device, fl_idle_reading *reading, fl_idle_point *point) {
    size_t n = 0, points = 0;
    for (size_t i = 0; i < t->row_count; i++)
        if (t->device[i] == device)
            reading[n++] = (fl_idle_reading){value_at(t, i, "util_gpu_pct"), value_at(t, i, "power_w"),
                                             value_at(t, i, "sm_mhz"), NAN};
    return n >= CLOCKS_MIN && fl_idle_points(reading, n, point, &points) == FL_MODEL_OK ? points : 0;
}

fl_status fl_idle_log_points(const char *path, fl_idle_point **point, size_t *count, int *device, fl_diag *d) {
    fl_imported in = {0};
    *point = NULL;
    *count = 0;
    fl_status s = fl_trace_open(path, NULL, NULL, &in, d);
    if (!s && !in.has_telemetry)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no telemetry, expected a log of power, utilisation and SM clock");
    const size_t rows = s ? 0 : in.telemetry.row_count;
    fl_idle_reading *reading = calloc(rows + 1, sizeof *reading);
    fl_idle_point *list = calloc(rows + 1, sizeof *list);
    int last = -1;
    if (!s && (!reading || !list))
        s = fl_no_memory(d, "the log");
    for (size_t i = 0; i < rows; i++)
        last = in.telemetry.device[i] > last ? in.telemetry.device[i] : last;
    for (int k = 0; !s && *count < CLOCKS_MIN && k <= last; k++) {
        *count = points_of(&in.telemetry, k, reading, list);
        *device = k;
    }
    if (!s && *count < CLOCKS_MIN)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                    "no GPU idles at %d SM clocks or more in the log, expected readings with utilisation 0 and a "
                    "settled clock",
                    CLOCKS_MIN);
    free(reading);
    if (s) {
        free(list);
        *count = 0;
    } else {
        *point = list;
    }
    fl_imported_free(&in);
    return s;
}

fl_status fl_idle_log_fit(const char *path, const fl_chip *chip, fl_idle_log *out, fl_diag *d) {
    fl_idle_point *point = NULL;
    fl_idle_log o = {0};
    fl_status s = fl_idle_log_points(path, &point, &o.clocks, &o.device, d);
    double *volt = s ? NULL : calloc(o.clocks, sizeof *volt);
    if (!s && !volt)
        s = fl_no_memory(d, "the log");
    for (size_t i = 0; !s && i < o.clocks; i++) {
        volt[i] = fl_chip_volt(chip, point[i].sm_mhz, chip->mem_ref);
        o.readings += point[i].readings;
    }
    if (!s && fl_fit_idle_clock(point, volt, o.clocks, &o.idle, NULL) != FL_MODEL_OK)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no model of voltage and clock fits the idle power of GPU %d",
                    o.device);
    if (!s) {
        o.low_mhz = point[0].sm_mhz;
        o.high_mhz = point[o.clocks - 1].sm_mhz;
        o.a0_sd = o.idle.rms_w * sqrt((double)o.clocks / (double)(o.clocks - 2)) / spread_of(point, volt, o.clocks);
        *out = o;
    }
    free(point);
    free(volt);
    return s;
}
