#include "harness/chip/limits.h"

#include <math.h>
#include <stdlib.h>

static int number(double a, double b) { return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b); }

static int setting(const fl_sweep_row *a, const fl_sweep_row *b) {
    if (a->workload != b->workload || a->kernel != b->kernel)
        return a->workload != b->workload ? (a->workload > b->workload) - (a->workload < b->workload)
                                          : (a->kernel > b->kernel) - (a->kernel < b->kernel);
    const int sm = number(a->sm_mhz, b->sm_mhz);
    return sm ? sm : number(a->mem_mhz, b->mem_mhz);
}

static double limit_of(const fl_sweep_row *r) { return isnan(r->power_cap_w) ? (double)INFINITY : r->power_cap_w; }

static int by_setting(const void *a, const void *b) {
    const fl_sweep_row *x = *(const fl_sweep_row *const *)a, *y = *(const fl_sweep_row *const *)b;
    const int order = setting(x, y);
    if (order)
        return order;
    const double p = limit_of(x), q = limit_of(y); /* highest first, as fl_cap_test requires */
    return p < q ? 1 : p > q ? -1 : (x > y) - (x < y);
}

/* The cells of a setting's rows; both are sorted alike, so cell i is row i. */
static void fill(const fl_sweep_row *const *row, size_t n, fl_cap_cell *cell) {
    for (size_t i = 0; i < n; i++)
        cell[i] = (fl_cap_cell){limit_of(row[i]), row[i]->time_s, row[i]->power_w, FL_CAP_FREE};
}

static size_t group_end(const fl_sweep_row *const *row, size_t count, size_t first) {
    size_t end = first + 1;
    while (end < count && setting(row[first], row[end]) == 0)
        end++;
    return end;
}

fl_status fl_fit_judge_limits(const fl_sweep *s, fl_cap_verdict **verdict, bool **repeats, fl_diag *d) {
    const size_t n = s->row_count;
    const fl_sweep_row **row = malloc((n + 1) * sizeof *row);
    fl_cap_cell *cell = calloc(n + 1, sizeof *cell);
    double *time = malloc((2 * n + 1) * sizeof *time), *power = time ? time + n : NULL;
    fl_cap_scatter scatter = fl_cap_scatter_of(NULL, NULL, 0);
    size_t told = 0;
    *verdict = calloc(n + 1, sizeof **verdict);
    *repeats = calloc(n + 1, sizeof **repeats);
    fl_status status = row && cell && time && *verdict && *repeats ? FL_OK : fl_no_memory(d, "the sweep");
    for (size_t i = 0; !status && i < n; i++)
        row[i] = &s->rows[i];
    if (!status)
        qsort(row, n, sizeof *row, by_setting);
    for (size_t i = 0, end = 0; !status && i < n; i = end) {
        end = group_end(row, n, i);
        fill(row + i, end - i, cell);
        told += fl_cap_repeats(cell, end - i, time + told, power + told);
    }
    if (!status)
        scatter = fl_cap_scatter_of(time, power, told);
    for (size_t i = 0, end = 0; !status && i < n; i = end) {
        end = group_end(row, n, i);
        fill(row + i, end - i, cell);
        fl_cap_test(cell, end - i, &scatter);
        for (size_t k = i; k < end; k++) {
            const size_t at = (size_t)(row[k] - s->rows);
            (*verdict)[at] = cell[k - i].verdict;
            (*repeats)[at] = cell[k - i].verdict == FL_CAP_FREE && limit_of(row[k]) < limit_of(row[i]);
        }
    }
    free(row);
    free(cell);
    free(time);
    if (status) {
        free(*verdict);
        free(*repeats);
        *verdict = NULL;
        *repeats = NULL;
    }
    return status;
}
