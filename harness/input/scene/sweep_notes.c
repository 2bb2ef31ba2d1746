#include "harness/input/scene/sweep_notes.h"

#include "harness/chip/sweep_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_sweep_note(char ***note, size_t *count, fl_diag *d, const char *format, ...) {
    char *text = NULL, **more = realloc(*note, (*count + 1) * sizeof *more);
    va_list list;
    if (!more)
        return fl_no_memory(d, "the notes");
    *note = more;
    va_start(list, format);
    const int size = vasprintf(&text, format, list);
    va_end(list);
    if (size < 0)
        return fl_no_memory(d, "the notes");
    more[(*count)++] = text;
    return FL_OK;
}

static int order(double a, double b) {
    return isnan(a) || isnan(b) ? !isnan(b) - !isnan(a) : (a > b) - (a < b); /* not known comes last */
}

static int by_setting(const void *pa, const void *pb) {
    const fl_sweep_row *a = *(const fl_sweep_row *const *)pa, *b = *(const fl_sweep_row *const *)pb;
    int o = (a->kernel > b->kernel) - (a->kernel < b->kernel);
    o = o ? o : order(a->sm_mhz, b->sm_mhz);
    o = o ? o : order(a->mem_mhz, b->mem_mhz);
    return o ? o : order(a->power_cap_w, b->power_cap_w);
}

/* Rows of the workload whose setting another row before has. */
static fl_status count_again(const fl_sweep *sweep, uint32_t name, size_t *again, fl_diag *d) {
    const fl_sweep_row **row = malloc((sweep->row_count + 1) * sizeof *row);
    size_t n = 0;
    *again = 0;
    if (!row)
        return fl_no_memory(d, "the notes");
    for (size_t i = 0; i < sweep->row_count; i++)
        if (sweep->rows[i].workload == name)
            row[n++] = &sweep->rows[i];
    qsort(row, n, sizeof *row, by_setting);
    for (size_t i = 1; i < n; i++)
        *again += by_setting(&row[i - 1], &row[i]) == 0;
    free(row);
    return FL_OK;
}

fl_status fl_sweep_notes(const fl_sweep *sweep, uint32_t name, char ***note, size_t *count, fl_diag *d) {
    const char *text = fl_head_get(&sweep->head, "beyond_calibration");
    const size_t beyond = text ? strcspn(text, ",") : 0;
    size_t odd = 0, again = 0;
    double worst = 0;
    int64_t line = 0;
    for (size_t i = 0; i < sweep->row_count; i++) {
        const fl_sweep_row *r = &sweep->rows[i];
        if (r->workload != name)
            continue;
        const double off = r->energy_j / (r->power_w * r->time_s) - 1;
        odd += fabs(off) > 0.05;
        if (fabs(off) > fabs(worst)) {
            worst = off;
            line = r->line;
        }
    }
    fl_status status = count_again(sweep, name, &again, d);
    if (!status && text)
        status = fl_sweep_note(note, count, d, "%.*s predicted at clocks that the device was not calibrated at%s",
                               (int)beyond, text, text + beyond);
    if (!status && odd)
        status = fl_sweep_note(
            note, count, d,
            "%zu settings whose energy_j is not power_w x time_s, by up to %+.0f %% (line %lld): energy_j "
            "counts, power follows from it",
            odd, 100 * worst, (long long)line);
    const fl_sweep_row *low = NULL, *high = NULL;
    if (!status)
        status = fl_sweep_odd(sweep, name, &low, &high, d);
    if (!status && low)
        status = fl_sweep_note(note, count, d,
                               "%s took %g s at %g MHz (line %lld), but %g s at %g MHz (line %lld): no clock explains "
                               "that, and one of these rows is wrong; what is computed from them is not to be trusted",
                               sweep->names[name], low->time_s, low->sm_mhz, (long long)low->line, high->time_s,
                               high->sm_mhz, (long long)high->line);
    if (!status && again)
        status =
            fl_sweep_note(note, count, d, "%zu rows repeat a setting: each setting is the mean of its rows", again);
    return status;
}
