/* Readings of foreign telemetry: signals by name, rows of values, order in time, and what is not known. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GARBAGE_ROWS = 8, GARBAGE_W = 3 }; /* at most so many first rows of a device, each below so much */

fl_status fl_readings_signal(fl_readings *r, const char *name, size_t *column, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    for (*column = 0; *column < t->signal_count; ++*column)
        if (strcmp(t->signal[*column], name) == 0)
            return FL_OK;
    if (fl_grow(&t->signal, &r->signal_room, t->signal_count + 1, sizeof *t->signal) ||
        !(t->signal[t->signal_count] = strdup(name)))
        return fl_no_memory(d, NULL);
    r->width = ++t->signal_count;
    return FL_OK;
}

fl_status fl_readings_row(fl_readings *r, int64_t t_ns, int32_t device, double **value, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    size_t n = t->row_count, at = (size_t)(device + 1), before = r->last_room;
    if (fl_grow(&t->t_ns, &t->row_room, n + 1, sizeof *t->t_ns) ||
        fl_grow(&t->device, &r->device_room, n + 1, sizeof *t->device) ||
        fl_grow(&t->value, &r->value_room, (n + 1) * r->width, sizeof *t->value) ||
        fl_grow(&r->last_ns, &r->last_room, at + 1, sizeof *r->last_ns))
        return fl_no_memory(d, NULL);
    for (size_t i = before; i < r->last_room; i++)
        r->last_ns[i] = INT64_MIN;
    r->disorder = r->disorder || t_ns < r->last_ns[at];
    r->last_ns[at] = t_ns;
    t->t_ns[n] = t_ns;
    t->device[n] = device;
    *value = r->width ? t->value + n * r->width : NULL;
    for (size_t i = 0; i < r->width; i++)
        (*value)[i] = NAN;
    t->row_count++;
    return FL_OK;
}

/* ---- order ---- */

static int by_time(const void *a, const void *b, void *times) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    int64_t x = ((const int64_t *)times)[i], y = ((const int64_t *)times)[k];
    return x < y ? -1 : x > y ? 1 : (i > k) - (i < k);
}

static fl_status sort_rows(fl_telemetry *t, fl_diag *d) {
    size_t n = t->row_count, width = t->signal_count;
    uint32_t *index = malloc(n * sizeof *index);
    int64_t *t_ns = malloc(n * sizeof *t_ns);
    int32_t *device = malloc(n * sizeof *device);
    double *value = malloc(n * width * sizeof *value);
    if (!index || !t_ns || !device || !value) {
        free(index);
        free(t_ns);
        free(device);
        free(value);
        return fl_no_memory(d, NULL);
    }
    for (size_t i = 0; i < n; i++)
        index[i] = (uint32_t)i;
    qsort_r(index, n, sizeof *index, by_time, t->t_ns);
    for (size_t i = 0; i < n; i++) {
        t_ns[i] = t->t_ns[index[i]];
        device[i] = t->device[index[i]];
        memcpy(value + i * width, t->value + index[i] * width, width * sizeof *value);
    }
    free(index);
    free(t->t_ns);
    free(t->device);
    free(t->value);
    t->t_ns = t_ns;
    t->device = device;
    t->value = value;
    t->row_room = n;
    return FL_OK;
}

/* ---- what is not known ---- */

static fl_status drop_unknown(fl_readings *r, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    size_t width = t->signal_count, kept = 0;
    bool *known = calloc(width ? width : 1, sizeof *known);
    if (!known)
        return fl_no_memory(d, NULL);
    for (size_t n = 0; n < t->row_count; n++)
        for (size_t i = 0; i < width; i++)
            known[i] |= !isnan(t->value[n * width + i]);
    fl_status status = FL_OK;
    for (size_t i = 0; i < width; i++) {
        if (known[i]) {
            t->signal[kept++] = t->signal[i];
            continue;
        }
        if (!status)
            status = fl_import_note(r->out, d, "%s is nowhere known: left out", t->signal[i]);
        free(t->signal[i]);
    }
    for (size_t n = 0, to = 0; kept < width && n < t->row_count; n++)
        for (size_t i = 0; i < width; i++)
            if (known[i])
                t->value[to++] = t->value[n * width + i];
    t->signal_count = kept;
    free(known);
    return status;
}

/* Right after a driver wakes up, the first readings of power can be nonsense (1.2 W): below what any board draws, and
 * below a fifth of the least reading that follows. */
static size_t drop_garbage(fl_telemetry *t, size_t column, int32_t device) {
    double least = INFINITY, first[GARBAGE_ROWS];
    size_t seen = 0, rows[GARBAGE_ROWS];
    for (size_t n = 0; n < t->row_count; n++) {
        double v = t->value[n * t->signal_count + column];
        if (t->device[n] != device || isnan(v))
            continue;
        if (seen == GARBAGE_ROWS || v >= GARBAGE_W) {
            least = v < least ? v : least;
        } else if (isinf(least)) {
            first[seen] = v;
            rows[seen++] = n;
        }
    }
    double most = 0;
    for (size_t i = 0; i < seen; i++)
        most = first[i] > most ? first[i] : most;
    if (isinf(least) || most >= least / 5)
        return 0;
    for (size_t i = 0; i < seen; i++)
        t->value[rows[i] * t->signal_count + column] = NAN;
    return seen;
}

static fl_status drop_first(fl_readings *r, fl_diag *d) {
    static const char *const NAME[] = {"power_w", "power_instant_w"};
    fl_telemetry *t = &r->out->telemetry;
    size_t dropped = 0;
    for (size_t i = 0; i < t->signal_count; i++)
        for (size_t k = 0; k < 2; k++)
            for (size_t v = 0; !strcmp(t->signal[i], NAME[k]) && v + 1 < r->last_room; v++)
                if (r->last_ns[v + 1] != INT64_MIN)
                    dropped += drop_garbage(t, i, (int32_t)v);
    return dropped ? fl_import_note(r->out, d,
                                    "%zu first readings of power are below %d W and a fifth of any later one: taken as "
                                    "garbage, left out",
                                    dropped, GARBAGE_W)
                   : FL_OK;
}

fl_status fl_readings_end(fl_readings *r, const char *path, fl_diag *d) {
    fl_telemetry *t = &r->out->telemetry;
    if (t->row_count == 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings, expected at least one whole row after the header");
    fl_status status = FL_OK;
    if (r->disorder) {
        status = sort_rows(t, d);
        if (!status)
            status = fl_import_note(r->out, d, "rows were not in order of time: sorted");
    }
    if (!status)
        status = drop_first(r, d);
    if (!status)
        status = drop_unknown(r, d);
    if (!status && t->signal_count == 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no row holds a value of any signal, expected at least one number");
    for (size_t n = 0; !status && n < t->row_count; n++)
        if (t->t_ns[n] < 0)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a row has the time %lld ns, expected none before 0",
                           (long long)t->t_ns[n]);
    r->out->has_telemetry = !status;
    return status;
}

void fl_readings_free(fl_readings *r) {
    free(r->last_ns);
    memset(r, 0, sizeof *r);
}
