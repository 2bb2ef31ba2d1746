#include "harness/input/sweep_notes.h"

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

static bool same_setting(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static bool was_before(const fl_sweep *sweep, size_t i) {
    const fl_sweep_row *r = &sweep->rows[i];
    for (size_t k = 0; k < i; k++) {
        const fl_sweep_row *x = &sweep->rows[k];
        if (x->workload == r->workload && x->kernel == r->kernel && same_setting(x->sm_mhz, r->sm_mhz) &&
            same_setting(x->mem_mhz, r->mem_mhz) && same_setting(x->power_cap_w, r->power_cap_w))
            return true;
    }
    return false;
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
        again += was_before(sweep, i);
    }
    fl_status status =
        !text ? FL_OK
              : fl_sweep_note(note, count, d, "%.*s predicted at clocks that the device was not calibrated at%s",
                              (int)beyond, text, text + beyond);
    if (!status && odd)
        status = fl_sweep_note(
            note, count, d,
            "%zu settings whose energy_j is not power_w x time_s, by up to %+.0f %% (line %lld): energy_j "
            "counts, power follows from it",
            odd, 100 * worst, (long long)line);
    if (!status && again)
        status =
            fl_sweep_note(note, count, d, "%zu rows repeat a setting: each setting is the mean of its rows", again);
    return status;
}
