/* Rows of a sweep that contradict each other. A file may have a million rows, so they are sorted, not compared each
 * with each. */
#include "harness/chip/sweep_check.h"

#include <math.h>
#include <stdlib.h>

#define TWICE 1.1

static int by_number(double a, double b) { /* unknown ones first */
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

/* The same workload, kernel, memory clock and limit: 0. */
static int by_setting(const fl_sweep_row *a, const fl_sweep_row *b) {
    int order = (a->workload > b->workload) - (a->workload < b->workload);
    order = order ? order : (a->kernel > b->kernel) - (a->kernel < b->kernel);
    order = order ? order : by_number(a->mem_mhz, b->mem_mhz);
    return order ? order : by_number(a->power_cap_w, b->power_cap_w);
}

static int by_clock(const void *x, const void *y) {
    const fl_sweep_row *a = *(const fl_sweep_row *const *)x, *b = *(const fl_sweep_row *const *)y;
    int order = by_setting(a, b);
    order = order ? order : by_number(a->sm_mhz, b->sm_mhz);
    return order ? order : (a > b) - (a < b); /* rows of one clock in the order of the file */
}

/* Rows of one workload, or of all (NULL), so sorted. */
static fl_status sorted(const fl_sweep *s, const uint32_t *workload, const fl_sweep_row ***out, size_t *count,
                        fl_diag *d) {
    *count = 0;
    *out = malloc((s->row_count + 1) * sizeof **out);
    if (!*out)
        return fl_no_memory(d, "the sweep");
    for (size_t i = 0; i < s->row_count; i++)
        if (!workload || s->rows[i].workload == *workload)
            (*out)[(*count)++] = &s->rows[i];
    qsort(*out, *count, sizeof **out, by_clock);
    return FL_OK;
}

fl_status fl_sweep_odd(const fl_sweep *s, uint32_t workload, const fl_sweep_row **low, const fl_sweep_row **high,
                       fl_diag *d) {
    const fl_sweep_row **row, *quickest = NULL, *next = NULL; /* below this clock; with those at this clock */
    size_t count;
    double worst = FL_SWEEP_FASTER;
    *low = *high = NULL;
    fl_status status = sorted(s, &workload, &row, &count, d);
    for (size_t i = 0; !status && i < count; i++) {
        if (!i || by_setting(row[i - 1], row[i]))
            quickest = next = NULL;
        else if (by_number(row[i - 1]->sm_mhz, row[i]->sm_mhz))
            quickest = next;
        if (quickest && quickest->time_s < worst * row[i]->time_s) {
            worst = quickest->time_s / row[i]->time_s;
            *low = quickest;
            *high = row[i];
        }
        if (!isnan(row[i]->sm_mhz) && (!next || row[i]->time_s < next->time_s))
            next = row[i];
    }
    free(row);
    return status;
}

fl_status fl_sweep_check_twice(const char *path, const fl_sweep *s, fl_diag *d) {
    const fl_sweep_row **row, *least = NULL, *most = NULL, *first = NULL, *other = NULL;
    size_t count;
    fl_status status = sorted(s, NULL, &row, &count, d);
    for (size_t i = 0; !status && i < count; i++) {
        if (!i || by_setting(row[i - 1], row[i]) || by_number(row[i - 1]->sm_mhz, row[i]->sm_mhz)) {
            least = most = row[i];
            continue;
        }
        const fl_sweep_row *far = row[i]->time_s > TWICE * least->time_s  ? least
                                  : most->time_s > TWICE * row[i]->time_s ? most
                                                                          : NULL;
        if (far && (!first || row[i] < first)) {
            first = row[i];
            other = far;
        }
        least = row[i]->time_s < least->time_s ? row[i] : least;
        most = row[i]->time_s > most->time_s ? row[i] : most;
    }
    free(row);
    if (!first)
        return status;
    return fl_fail(d, FL_BAD_INPUT, path, first->line, 1,
                   "%s at %g MHz took %g s, and %g s in line %lld: expected one workload, or two names",
                   s->names[first->workload], first->sm_mhz, first->time_s, other->time_s, (long long)other->line);
}
