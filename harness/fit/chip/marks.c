/* The idle clock tree from a log, and the marks of a chip. */
#include "harness/fit/chip/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the idle clock tree from a log ---- */

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
    fl_idle_reading *reading = fl_must(calloc(rows + 1, sizeof *reading));
    fl_idle_point *list = fl_must(calloc(rows + 1, sizeof *list));
    int last = -1;
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
    double *volt = s ? NULL : fl_must(calloc(o.clocks, sizeof *volt));
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

/* ---- marks: how a calibration knows its own rows again ---- */

/* Clock, time and power in the precision of files; not the memory clock, which some files leave out. */
static uint32_t mark_of(const fl_chip_row *row) {
    char text[96];
    const int size =
        snprintf(text, sizeof text, "%.6g,%.6g,%.6g", row->sm_mhz, row->time_s, isnan(row->power_w) ? 0 : row->power_w);
    return fl_hash(text, (size_t)size) & INT32_MAX; /* JSON holds it as a whole number */
}

static int ascending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

fl_fit_marks fl_fit_marks_make(const fl_fit_rows *r) {
    fl_fit_marks m = {.mark = fl_must(malloc((r->count + 1) * sizeof *m.mark))};
    for (size_t i = 0; i < r->count; i++)
        if (r->entity[r->row[i].workload].count > 1)
            m.mark[m.count++] = mark_of(&r->row[i]);
    qsort(m.mark, m.count, sizeof *m.mark, ascending);
    return m;
}

cJSON *fl_fit_marks_to_json(const fl_fit_marks *m) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < m->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(m->mark[i]));
    return list;
}

fl_status fl_fit_marks_from_json(const fl_json *calibration, fl_fit_marks *m, fl_diag *d) {
    fl_json list;
    *m = (fl_fit_marks){0};
    if (!fl_json_has(calibration, FL_FIT_MARKS_KEY))
        return FL_OK;
    fl_status s = fl_json_get_array(calibration, FL_FIT_MARKS_KEY, &list, d);
    if (s)
        return s;
    m->mark = fl_must(malloc((fl_json_count(&list) + 1) * sizeof *m->mark));
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        double x = 0;
        s = fl_json_real(&e, 0, INT32_MAX, &x, d);
        m->mark[m->count++] = (uint32_t)x;
    }
    qsort(m->mark, m->count, sizeof *m->mark, ascending);
    if (s)
        fl_fit_marks_free(m);
    return s;
}

void fl_fit_marks_free(fl_fit_marks *m) {
    free(m->mark);
    *m = (fl_fit_marks){0};
}

bool fl_fit_marks_have(const fl_fit_marks *m, const fl_fit_rows *r, const fl_fit_entity *e) {
    size_t have = 0, measured = 0;
    for (size_t i = e->first; m->count && i < e->first + e->count; i++) {
        if (isnan(r->row[i].time_s)) /* a requested setting without measurement */
            continue;
        measured++;
        const uint32_t mark = mark_of(&r->row[i]);
        have += bsearch(&mark, m->mark, m->count, sizeof *m->mark, ascending) ? 1 : 0;
    }
    return have > 0 && 2 * have >= measured;
}
