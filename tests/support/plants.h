/* Rows that lie about their clock, planted into sweeps. Kinds and numbers were fixed before any result was seen. */
#pragma once

#include "models/chip/chip.h"
#include "policies/random.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdint.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define ROWS_MAX 6000
#define SEEDS 20
#define DEPTH 0.75 /* of its clock: where a throttled row ran */
#define WRONG 0.8  /* of what it says: where a wrong clock ran */
#define AWAY 1.15  /* another clock's row: at least so far off */
#define THROTTLED_ROWS 5
#define SWAPPED_ROWS 3
#define STUCK_LOADS 2
#define REPEAT_TIME 0.002 /* scatter of a planted row */
#define REPEAT_POWER 0.005
#define SHOWS 0.03 /* a row that is moved by less in time and power says nothing wrong */

typedef enum plant { NONE, THROTTLED, SWAPPED, STUCK, PLANTS } plant;

/* ---- sweeps by the known law ---- */

static inline double law_volt(double f) { return 1 + 0.35 * fmax(0, f - 900) / 600; }

/* Twelve clocks of `loads` workloads from core-bound to memory-bound. */
static inline size_t make_sweep(size_t loads, uint64_t stream, fl_chip_row *row) {
    fl_random random = fl_random_seed(20260, stream);
    size_t n = 0;
    for (uint32_t k = 0; k < loads; k++) {
        const double memory = (double)k / (double)loads, core = 1 - 0.6 * memory,
                     alpha = 0.4 + 0.6 * fl_random_unit(&random);
        for (int i = 0; i < 12; i++) {
            const double f = 600 + 900.0 * i / 11, v = law_volt(f);
            const double time = pow(pow(core * 1500 / f, 8) + pow(memory, 8), 0.125);
            const double power = 35 + 90 * alpha * v * v * f / 1000 + 40 * memory + 15 * v;
            row[n++] = (fl_chip_row){.workload = k,
                                     .sm_mhz = round(f),
                                     .mem_mhz = 877,
                                     .time_s = time * (1 + REPEAT_TIME * fl_random_normal(&random)),
                                     .power_w = power * (1 + REPEAT_POWER * fl_random_normal(&random))};
        }
    }
    return n;
}

/* ---- planting ---- */

static inline bool same_line(const fl_chip_row *a, const fl_chip_row *b) {
    return a->workload == b->workload && fabs(a->mem_mhz - b->mem_mhz) < 0.5;
}

/* Time and power of row i's workload at a clock: lines in the logarithms. False outside its clocks. */
static inline bool at_clock(const fl_chip_row *row, size_t n, size_t i, double mhz, double *time, double *power) {
    size_t a = i, b = i;
    while (a > 0 && same_line(&row[a - 1], &row[i]))
        a--;
    while (b + 1 < n && same_line(&row[b + 1], &row[i]))
        b++;
    if (a == b || mhz < row[a].sm_mhz || mhz > row[b].sm_mhz)
        return false;
    size_t k = a;
    while (k + 1 < b && row[k + 1].sm_mhz < mhz)
        k++;
    const double w = log(mhz / row[k].sm_mhz) / log(row[k + 1].sm_mhz / row[k].sm_mhz);
    *time = exp((1 - w) * log(row[k].time_s) + w * log(row[k + 1].time_s));
    *power = exp((1 - w) * log(row[k].power_w) + w * log(row[k + 1].power_w));
    return true;
}

static inline void put(fl_chip_row *row, double time, double power, fl_random *random) {
    row->time_s = time * (1 + REPEAT_TIME * fl_random_normal(random));
    row->power_w = power * (1 + REPEAT_POWER * fl_random_normal(random));
}

static inline size_t pick(fl_random *random, size_t n) { return (size_t)fl_random_below(random, n); }

/* One kind per workload, at most one row in ten. kind: per row. */
static inline void plant_rows(const fl_chip_row *row, size_t n, uint64_t stream, fl_chip_row *bad, plant *kind) {
    static char used[ROWS_MAX];
    fl_random random = fl_random_seed(16, stream);
    size_t budget = n / 10;
    memcpy(bad, row, n * sizeof *row);
    memset(used, 0, sizeof used);
    memset(kind, 0, n * sizeof *kind);
    for (int want = 0; want < THROTTLED_ROWS + SWAPPED_ROWS; want++)
        for (int tries = 0; tries < 200; tries++) {
            const size_t i = pick(&random, n);
            const plant k = want < THROTTLED_ROWS ? THROTTLED : SWAPPED;
            double time = 0, power = 0;
            const double mhz = k == THROTTLED ? DEPTH * row[i].sm_mhz : row[pick(&random, n)].sm_mhz;
            if (used[row[i].workload] || !budget || fabs(log(mhz / row[i].sm_mhz)) < log(AWAY) ||
                !at_clock(row, n, i, mhz, &time, &power))
                continue;
            put(&bad[i], time, power, &random);
            kind[i] = k;
            used[row[i].workload] = 1;
            budget--;
            break;
        }
    for (int want = 0; want < STUCK_LOADS; want++)
        for (int tries = 0; tries < 200; tries++) {
            size_t top = pick(&random, n);
            if (used[row[top].workload] || budget < 2)
                continue;
            while (top + 1 < n && same_line(&row[top + 1], &row[top]))
                top++;
            if (top < 4 || !same_line(&row[top - 4], &row[top]))
                continue;
            for (size_t i = top - 1; i <= top; i++) {
                put(&bad[i], row[top - 2].time_s, row[top - 2].power_w, &random);
                kind[i] = STUCK;
            }
            used[row[top].workload] = 1;
            budget -= 2;
            break;
        }
}

/* All rows at one clock ran at WRONG times it. Which clock; 0 = the sweep has none for that. */
static inline double plant_clock(const fl_chip_row *row, size_t n, uint64_t stream, fl_chip_row *bad) {
    fl_random random = fl_random_seed(17, stream);
    double at = 0, time = 0, power = 0;
    for (int tries = 0; tries < 1000 && at <= 0; tries++) {
        const size_t i = pick(&random, n);
        at = at_clock(row, n, i, WRONG * row[i].sm_mhz, &time, &power) ? row[i].sm_mhz : 0;
    }
    memcpy(bad, row, n * sizeof *row);
    for (size_t i = 0; i < n; i++)
        if (fabs(row[i].sm_mhz - at) < 0.5 && at_clock(row, n, i, WRONG * at, &time, &power))
            put(&bad[i], time, power, &random);
    return at;
}

/* ---- measured sweeps ---- */

static inline int by_setting(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    if (x->mem_mhz < y->mem_mhz || x->mem_mhz > y->mem_mhz)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* Of the A100 the rows under its highest limit; the V100b's 405 MHz rows only where asked for. */
static inline size_t read_sweep(const char *name, bool all, fl_chip_row *row) {
    char path[1024];
    const char *folder = getenv("FOLDLINE_DATA");
    fl_sweep s = {0};
    fl_diag d = {0};
    size_t n = 0, loads = 0;
    static uint32_t load[ROWS_MAX];
    snprintf(path, sizeof path, "%s/sweeps/%s", folder ? folder : "", name);
    if (!folder || access(path, R_OK) != 0) {
        printf("\n    skipped: %s (set FOLDLINE_DATA)", name);
        return 0;
    }
    CU_ASSERT_FATAL(fl_sweep_read_times(path, &s, NULL, &d) == FL_OK);
    for (size_t i = 0; i < s.row_count && n < ROWS_MAX; i++) {
        const fl_sweep_row *r = &s.rows[i];
        const uint32_t key = r->workload * 1000 + r->kernel;
        size_t k = 0;
        if ((!isnan(r->power_cap_w) && r->power_cap_w < 300) || (!all && fabs(r->sm_mhz - 405) < 0.5))
            continue;
        while (k < loads && load[k] != key)
            k++;
        if (k == loads)
            load[loads++] = key;
        row[n++] = (fl_chip_row){.workload = (uint32_t)k,
                                 .sm_mhz = r->sm_mhz,
                                 .mem_mhz = isnan(r->mem_mhz) ? 1 : r->mem_mhz,
                                 .time_s = r->time_s,
                                 .power_w = r->power_w};
    }
    qsort(row, n, sizeof *row, by_setting);
    fl_sweep_free(&s);
    return n;
}
