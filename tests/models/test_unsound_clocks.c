/* Clocks that are wrong in all workloads, with what the search says of them worked out a second time: the shares of a
 * step that showed in the times, their median and its deviation, and where on its own curve each time lies. */
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { CLOCKS = 10, LOADS = 5 };

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *x, size_t n) {
    double list[2 * LOADS];
    memcpy(list, x, n * sizeof *x);
    qsort(list, n, sizeof *list, by_value);
    return n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}

/* 1.4826 times the median distance from the median: a standard deviation. */
static double spread_of(const double *x, size_t n) {
    double off[2 * LOADS];
    for (size_t i = 0; i < n; i++)
        off[i] = fabs(x[i] - median(x, n));
    return 1.4826 * median(off, n);
}

/* Workloads whose times fall as f^-slope, at 1000 to 1360 MHz in steps of 40, at one memory clock or at two. */
static size_t make(fl_chip_row *row, size_t loads, size_t mems, double slope) {
    size_t n = 0;
    for (size_t k = 0; k < loads; k++)
        for (size_t m = 0; m < mems; m++)
            for (size_t i = 0; i < CLOCKS; i++, n++) {
                const double f = 1000 + 40 * (double)i;
                row[n] = (fl_chip_row){(uint32_t)k, f, 500 + 300 * (double)m, (1 + (double)k) * pow(1000 / f, slope),
                                       60 * f / 1000};
            }
    return n;
}

static fl_unsound found(const fl_chip_row *row, size_t n) {
    fl_unsound u;
    fl_chip_row *copy = exact(row, n * sizeof *row);
    CU_ASSERT_FATAL(fl_unsound_find(copy, n, &u) == FL_MODEL_OK);
    free(copy);
    return u;
}

/* ---- clocks at the top that were not reached ---- */

typedef struct top_case {
    const char *what;
    size_t loads, mems;
    double slope;        /* of all workloads below the top */
    double share[LOADS]; /* of the last step that shows in each */
    bool found, clear;
} top_case;

static void check_top(const top_case *c) {
    fl_chip_row row[LOADS * 2 * CLOCKS];
    const size_t n = make(row, c->loads, c->mems, c->slope);
    double share[2 * LOADS];
    size_t told = 0;
    for (size_t i = CLOCKS - 1; i < n; i += CLOCKS) {
        const double step = row[i].sm_mhz / row[i - 1].sm_mhz;
        share[told] = c->share[row[i].workload] + (row[i].mem_mhz > 600 ? 0.01 : 0);
        row[i].time_s = row[i - 1].time_s * pow(step, -c->slope * share[told]);
        told++;
    }
    fl_unsound u = found(row, n);
    FL_CHECK(u.clocks == (c->found ? 1 : 0), "%s: %zu clocks", c->what, u.clocks);
    if (u.clocks == 1 && c->found) {
        const double base = row[CLOCKS - 2].sm_mhz, step = log(row[CLOCKS - 1].sm_mhz / base);
        const double ran = base * exp(median(share, told) * step),
                     sd = 1.2533 * spread_of(share, told) / sqrt((double)told) * step;
        FL_CHECK(u.clock[0].sm_mhz == row[CLOCKS - 1].sm_mhz && fabs(u.clock[0].ran_mhz / ran - 1) < 1e-9 &&
                     fabs(u.clock[0].sd_pct - 100 * sd) < 1e-9 && u.clock[0].workloads == c->loads &&
                     u.clock[0].clear == c->clear,
                 "%s: %g MHz ran at %.6f, expected %.6f, within %.6f %%, expected %.6f, %u workloads, clear %d",
                 c->what, u.clock[0].sm_mhz, u.clock[0].ran_mhz, ran, u.clock[0].sd_pct, 100 * sd, u.clock[0].workloads,
                 u.clock[0].clear);
        for (size_t i = 0; i < n; i++)
            FL_CHECK((u.row[i].kind == FL_UNSOUND_CLOCK) == (i % CLOCKS == CLOCKS - 1) &&
                         (i % CLOCKS == CLOCKS - 1 ? u.row[i].ran_mhz == u.clock[0].ran_mhz : isnan(u.row[i].ran_mhz)),
                     "%s: row %zu is %s, %g MHz", c->what, i, fl_unsound_text(u.row[i].kind), u.row[i].ran_mhz);
    }
    fl_unsound_free(&u);
}

/* Less than half of the step counts as not reached, where three workloads or more are core-bound, and agree. The clock
 * is another one's where it lies within a hundredth of that. */
static void test_not_reached(void) {
    static const top_case cases[] = {
        {"a tenth of the step", 5, 1, 1, {0.10, 0.12, 0.15, 0.11, 0.20}, true, false},
        {"a tenth, at two memory clocks", 5, 2, 1, {0.10, 0.12, 0.15, 0.11, 0.20}, true, false},
        {"not half of it", 5, 1, 1, {0.45, 0.46, 0.49, 0.44, 0.48}, true, true},
        {"just over half", 5, 1, 1, {0.51, 0.52, 0.53, 0.51, 0.52}, false, false},
        {"nothing of it, nearly core-bound", 4, 1, 0.9, {0.02, 0, 0.01, 0.04}, true, false},
        {"three workloads", 3, 1, 1, {0.1, 0.2, 0.15}, true, false},
        {"two workloads", 2, 1, 1, {0.1, 0.2}, false, false},
        {"two, at two memory clocks", 2, 2, 1, {0.1, 0.2}, false, false},
        {"workloads that disagree", 5, 1, 1, {0.9, 0.1, -0.4, 0.45, 0.3}, false, false},
        {"slower than below, of workloads between", 4, 1, 0.7, {-0.2, -0.3, -0.25, -0.22}, true, false},
        {"a little of the step, of workloads between", 4, 1, 0.7, {0.1, 0.12, 0.13, 0.1}, false, false},
        {"slower than below, of workloads that hardly know the clock",
         4,
         1,
         0.4,
         {-0.2, -0.3, -0.25, -0.22},
         false,
         false},
        {"times that fall faster than the clock rises", 5, 1, 1.3, {0.10, 0.12, 0.15, 0.11, 0.14}, false, false},
        {"nearly as fast", 5, 1, 1.15, {0.10, 0.12, 0.15, 0.11, 0.14}, true, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_top(&cases[i]);
}

/* Several in a row: all repeat the highest clock that was reached. Up to four are told. */
static void test_several(void) {
    for (size_t stuck = 1; stuck <= 5; stuck++) {
        fl_chip_row row[LOADS * 2 * CLOCKS];
        const size_t n = make(row, LOADS, 1, 1), base = CLOCKS - 1 - stuck;
        for (size_t i = 0; i < n; i++)
            if (i % CLOCKS > base)
                row[i].time_s = row[i - i % CLOCKS + base].time_s;
        fl_unsound u = found(row, n);
        size_t told = 0;
        for (size_t k = 0; k < u.clocks; k++)
            for (size_t i = base + 1; i < CLOCKS; i++)
                told += u.clock[k].sm_mhz == row[i].sm_mhz && fabs(u.clock[k].ran_mhz / row[base].sm_mhz - 1) < 1e-9 &&
                                u.clock[k].sd_pct < 1e-9 && u.clock[k].workloads == LOADS && !u.clock[k].clear
                            ? 1
                            : 0;
        if (stuck <= 4)
            FL_CHECK(u.clocks == stuck && told == stuck, "%zu stuck: %zu clocks, %zu as expected", stuck, u.clocks,
                     told);
        else
            FL_CHECK(u.clocks != stuck, "%zu stuck: %zu clocks", stuck, u.clocks);
        fl_unsound_free(&u);
    }
}

/* ---- a clock between others ---- */

/* Where on the curve of the workload's other rows a time lies: a root by halving. */
static double ran_of(const fl_row_curve *c, size_t i, const fl_chip_row *r) {
    double low = r->sm_mhz * 0.5, high = r->sm_mhz * 2;
    for (int k = 0; k < 100; k++) {
        const double middle = sqrt(low * high);
        *(fl_row_curve_at(c, i, middle, r->mem_mhz) > log(r->time_s) ? &low : &high) = middle;
    }
    return log(low / r->sm_mhz);
}

/* The median of where the workloads say it ran, with the standard error of a median; where they agree closely, of
 * readings that repeat to half a percent. Workloads that hardly know the clock say nothing. */
static void test_between(void) {
    static const struct {
        const char *what;
        size_t loads, mems;
        double slope[LOADS], ran[LOADS]; /* of the clock that it says */
        uint32_t tellers;
        bool found;
    } cases[] = {
        {"all agree", 5, 1, {1, 1, 1, 1, 1}, {0.9, 0.9, 0.9, 0.9, 0.9}, 5, true},
        {"faster", 4, 1, {1, 0.9, 1, 0.8, 0}, {1.1, 1.1, 1.11, 1.1, 0}, 4, true},
        {"at two memory clocks", 4, 2, {1, 0.9, 1.1, 0.8, 0}, {0.9, 0.9, 0.91, 0.9, 0}, 4, true},
        {"they scatter", 5, 1, {1, 0.9, 0.8, 1, 1.1}, {0.86, 0.9, 0.88, 0.87, 0.89}, 5, true},
        {"two hardly know the clock", 5, 1, {1, 0.3, 0.9, 1, 0.2}, {0.9, 0.5, 0.9, 0.9, 1.3}, 3, true},
        {"three hardly know it", 5, 1, {1, 0.3, 0.9, 0.1, 0.2}, {0.9, 0.9, 0.9, 0.9, 0.9}, 2, false},
        {"they disagree", 5, 1, {1, 1, 1, 1, 1}, {0.9, 1.1, 0.9, 1.1, 0.92}, 5, false},
        {"less than three in a hundred", 5, 1, {1, 1, 1, 1, 1}, {0.975, 0.975, 0.975, 0.975, 0.975}, 5, false},
    };
    enum { AT = 5 };
    for (size_t c = 0; c < COUNT(cases); c++) {
        fl_chip_row row[LOADS * 2 * CLOCKS];
        const size_t n = make(row, cases[c].loads, cases[c].mems, 1), per = cases[c].mems * CLOCKS;
        double shift[2 * LOADS];
        size_t told = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t k = row[i].workload;
            row[i].time_s = pow(1000 / row[i].sm_mhz, cases[c].slope[k]) * (i % per >= CLOCKS ? 0.9 : 1);
            if (i % CLOCKS == AT)
                row[i].time_s *= pow(cases[c].ran[k], -cases[c].slope[k]);
        }
        for (size_t k = 0; k < cases[c].loads; k++) {
            fl_row_curve curve;
            CU_ASSERT_FATAL(fl_row_curve_open(row + k * per, per, 0, &curve) == FL_MODEL_OK);
            for (size_t i = AT; cases[c].slope[k] > 0.5 && i < per; i += CLOCKS)
                shift[told++] = ran_of(&curve, i, &row[k * per + i]);
            fl_row_curve_close(&curve);
        }
        fl_unsound u = found(row, n);
        FL_CHECK(u.clocks == (cases[c].found ? 1 : 0), "%s: %zu clocks", cases[c].what, u.clocks);
        if (u.clocks == 1 && cases[c].found) {
            const double ran = row[AT].sm_mhz * exp(median(shift, told)),
                         sd = 1.2533 * fmax(spread_of(shift, told), 0.005) / sqrt((double)told);
            FL_CHECK(u.clock[0].sm_mhz == row[AT].sm_mhz && fabs(u.clock[0].ran_mhz / ran - 1) < 1e-6 &&
                         fabs(u.clock[0].sd_pct / (100 * sd) - 1) < 1e-4 && u.clock[0].workloads == cases[c].tellers,
                     "%s: %g MHz ran at %.6f, expected %.6f, within %.6f %%, expected %.6f, %u workloads",
                     cases[c].what, u.clock[0].sm_mhz, u.clock[0].ran_mhz, ran, u.clock[0].sd_pct, 100 * sd,
                     u.clock[0].workloads);
        }
        fl_unsound_free(&u);
    }
}

/* Two clocks are wrong, one ran faster and one slower: each is found, and none but these. The first is judged while the
 * other one still bends the curve, which may move it by a twentieth. */
static void test_two(void) {
    static const size_t at[][2] = {{0, 6}, {1, 5}, {3, 8}};
    for (size_t c = 0; c < COUNT(at); c++) {
        fl_chip_row row[LOADS * 2 * CLOCKS];
        const size_t n = make(row, LOADS, 1, 1);
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < 2; k++)
                if (i % CLOCKS == at[c][k])
                    row[i].time_s *= k ? 1 / 0.87 : 1 / 1.12;
        fl_unsound u = found(row, n);
        FL_CHECK(u.clocks == 2, "case %zu: %zu clocks", c, u.clocks);
        for (size_t k = 0; k < u.clocks; k++) {
            const bool first = u.clock[k].sm_mhz == row[at[c][0]].sm_mhz;
            FL_CHECK((first || u.clock[k].sm_mhz == row[at[c][1]].sm_mhz) &&
                         fabs(u.clock[k].ran_mhz / u.clock[k].sm_mhz / (first ? 1.12 : 0.87) - 1) < 0.05,
                     "case %zu: %g MHz ran at %g", c, u.clock[k].sm_mhz, u.clock[k].ran_mhz);
        }
        fl_unsound_free(&u);
    }
}

FL_SUITE("unsound_clocks", {"not reached", test_not_reached}, {"several", test_several}, {"between", test_between},
         {"two", test_two})
