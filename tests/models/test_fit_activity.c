#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

enum { WORKLOADS = 24, CLOCKS = 9, ROWS = WORKLOADS * CLOCKS };
static const uint64_t seed = 4711;
static const double top_mhz = 1500;

/* A chip on which time is memory or core, and DRAM works for 0.9 of the time that memory takes. */
typedef struct made {
    fl_chip_row row[ROWS];
    double activity[ROWS][FL_CHIP_ACTIVITIES];
    double memory[WORKLOADS];
} made;

static double time_of(double memory, double f) {
    return pow(pow((1 - memory) * top_mhz / f, 5) + pow(memory, 5), 0.2) + 0.02;
}

/* Time at the top and power there are the same for all: only activity tells them apart. */
static void make(made *m, double noise) {
    fl_random random = fl_random_seed(seed, 1);
    for (uint32_t k = 0; k < WORKLOADS; k++) {
        const double memory = m->memory[k] = fl_random_unit(&random), scale = 1 / time_of(memory, top_mhz);
        for (size_t i = 0; i < CLOCKS; i++) {
            const size_t at = k * CLOCKS + i;
            const double f = 700 + (top_mhz - 700) * (double)i / (CLOCKS - 1), t = scale * time_of(memory, f);
            const double v = f < 1000 ? 1 : 1 + 0.3 * (f - 1000) / 500;
            const double watts = 40 + 20 * v + 60 * (1 - memory) * v * v * f / 1000 + 152.1 * memory;
            m->row[at] = (fl_chip_row){k,
                                       f,
                                       900,
                                       t * (1 + noise * fl_random_normal(&random)),
                                       watts * (1 + noise * fl_random_normal(&random)),
                                       m->activity[at]};
            for (int c = 0; c < FL_CHIP_ACTIVITIES; c++)
                m->activity[at][c] = NAN;
            m->activity[at][FL_CHIP_DRAM] = 0.9 * scale * memory / t;
            m->activity[at][FL_CHIP_FP32] = 0.3 * (top_mhz / f) / t;
        }
    }
}

/* Mean error of the odd workloads from their top clock, in percent; *used: of how many activities say something. */
static double error_from_top(const fl_chip *c, const made *m, const double *activity, size_t *used) {
    double sum = 0, n = 0;
    *used = 0;
    for (size_t k = 1; k < WORKLOADS; k += 2) {
        const fl_chip_row *own = &m->row[k * CLOCKS];
        fl_chip_row known = own[CLOCKS - 1];
        fl_chip_guess guess[CLOCKS];
        known.activity = activity ? known.activity : NULL;
        *used += fl_chip_uses_activity(c, &known, 1) != 0;
        FL_CHECK(fl_chip_predict(c, &known, 1, own, CLOCKS - 1, guess, NULL) == FL_MODEL_OK, "workload %zu", k);
        for (size_t i = 0; i + 1 < CLOCKS; i++) {
            sum += fabs(guess[i].time_s / own[i].time_s - 1) + fabs(guess[i].power_w / own[i].power_w - 1);
            n += 2;
        }
    }
    return 100 * sum / n;
}

static size_t even_half(const made *m, fl_chip_row *half) {
    size_t n = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (m->row[i].workload % 2 == 0)
            half[n++] = m->row[i];
    return n;
}

static void test_places(void) {
    static made m;
    static fl_chip c, dark;
    static fl_chip_row half[ROWS];
    size_t used = 0, unused = 0;
    make(&m, 0.003);
    const size_t n = even_half(&m, half);
    FL_CHECK(fl_chip_fit(half, n, FL_CHIP_FULL, &c) == FL_MODEL_OK, "fit");
    FL_CHECK(isfinite(c.dram_width) && c.dram_width < 0.4, "width %g", c.dram_width);
    const double with = error_from_top(&c, &m, m.activity[0], &used), without = error_from_top(&c, &m, NULL, &unused);
    printf("\n    from the top clock: %.2f %% with activity, %.2f %% without; width %g and %g", with, without,
           c.dram_width, c.unit_width);
    FL_CHECK(with < 0.6 * without, "errors %g %% with activity, %g %% without", with, without);
    FL_CHECK(used == WORKLOADS / 2 && unused == 0, "used %zu and %zu times", used, unused);
    /* A device without them places nothing by them. */
    for (size_t i = 0; i < n; i++)
        half[i].activity = NULL;
    FL_CHECK(fl_chip_fit(half, n, FL_CHIP_FULL, &dark) == FL_MODEL_OK && !isfinite(dark.dram_width), "width %g",
             dark.dram_width);
    const double blind = error_from_top(&dark, &m, m.activity[0], &used);
    FL_CHECK(used == 0 && fabs(blind / without - 1) < 0.01, "used %zu times; %g %%, is %g %%", used, blind, without);
}

/* What a workload's activity is at the top is found at any clock: as many bytes, as many instructions. */
static void test_reference(void) {
    static made m;
    static fl_chip c;
    make(&m, 0);
    for (size_t i = 0; i < ROWS; i++) /* each workload's are known at one clock alone, or nowhere */
        if (i % CLOCKS != (i / CLOCKS) % CLOCKS || i / CLOCKS == 5)
            m.row[i].activity = NULL;
    FL_CHECK(fl_chip_fit(m.row, ROWS, FL_CHIP_PLAIN, &c) == FL_MODEL_OK && c.shares == WORKLOADS, "fit");
    for (uint32_t k = 0; k < c.shares; k++) {
        const double top = 0.9 * m.memory[k] / time_of(m.memory[k], top_mhz);
        if (k == 5)
            FL_CHECK(isnan(c.share[k].activity[FL_CHIP_DRAM]), "activity of a workload without: %g",
                     c.share[k].activity[FL_CHIP_DRAM]);
        else
            FL_CHECK(fabs(c.share[k].activity[FL_CHIP_DRAM] - top) < 0.02 &&
                         fabs(c.share[k].activity[FL_CHIP_FP32] - 0.3) < 0.02,
                     "workload %u: DRAM %g, is %g; FP32 %g, is 0.3", k, c.share[k].activity[FL_CHIP_DRAM], top,
                     c.share[k].activity[FL_CHIP_FP32]);
    }
}

/* Activity that says nothing is not used: the width must earn more than a standard error. */
static void test_noise(void) {
    static made m;
    static fl_chip c;
    fl_random random = fl_random_seed(seed, 2);
    make(&m, 0.003);
    for (size_t k = 0; k < WORKLOADS; k++) {
        const double any = fl_random_unit(&random);
        for (size_t i = 0; i < CLOCKS; i++)
            m.activity[k * CLOCKS + i][FL_CHIP_DRAM] = any;
    }
    FL_CHECK(fl_chip_fit(m.row, ROWS / 2, FL_CHIP_FULL, &c) == FL_MODEL_OK && !isfinite(c.dram_width),
             "width %g of noise", c.dram_width);
}

/* ---- which law ---- */

static void test_law(void) {
    static made m;
    static fl_chip c;
    make(&m, 0.002);
    for (size_t i = 0; i < ROWS; i++) { /* bytes come over a link below 1000 MHz, and stalled units draw less */
        fl_chip_row *r = &m.row[i];
        const double memory = m.memory[r->workload], slow = fmax(1, pow(1000 / r->sm_mhz, 2));
        r->activity = NULL;
        r->time_s *= pow(pow((1 - memory) * top_mhz / r->sm_mhz, 5) + pow(memory * slow, 5), 0.2) /
                     (time_of(memory, r->sm_mhz) - 0.02);
    }
    FL_CHECK(fl_chip_fit(m.row, ROWS / 2, FL_CHIP_BEST, &c) == FL_MODEL_OK && c.law == FL_CHIP_FULL && c.link_mhz > 0,
             "law %d", (int)c.law);
    FL_CHECK(c.time_law_pct[FL_CHIP_FULL] < 0.8 * c.time_law_pct[FL_CHIP_PLAIN] && c.power_law_pct[FL_CHIP_FULL] > 0,
             "errors %g and %g %%", c.time_law_pct[FL_CHIP_FULL], c.time_law_pct[FL_CHIP_PLAIN]);
    FL_CHECK(fl_chip_fit(m.row, ROWS / 2, FL_CHIP_PLAIN, &c) == FL_MODEL_OK && c.law == FL_CHIP_PLAIN &&
                 isnan(c.time_law_pct[FL_CHIP_FULL]),
             "the plain law asked for: law %d", (int)c.law);
    FL_CHECK(fl_chip_fit(m.row, 3 * CLOCKS, FL_CHIP_BEST, &c) == FL_MODEL_OK && c.law == FL_CHIP_FULL &&
                 isnan(c.time_law_pct[FL_CHIP_FULL]),
             "three workloads compare nothing: law %d", (int)c.law);
}

/* ---- bars ---- */

static void test_bars(void) {
    static fl_chip c = {.workloads = 9};
    fl_chip_bars b = {{{{0}}}};
    for (int k = 0; k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++)
            b.of[k][p] = (fl_chip_bar){2 + k, 1.5, 0.5, 7 + p};
    const double own[FL_CHIP_PLACES] = {3, NAN, 0, 1.5};
    memcpy(c.time_error.own, own, sizeof own);
    memcpy(c.power_error.own, own, sizeof own);
    fl_chip_widen(&c, &b);
    const double *time = c.time_error.wide, *power = c.power_error.wide;
    FL_CHECK(fabs(time[FL_CHIP_INSIDE] - 2 * sqrt(2)) < 1e-9 && fabs(power[FL_CHIP_OTHER_MEMORY] - 3) < 1e-9,
             "half of what it says of itself: %g, %g", time[FL_CHIP_INSIDE], power[FL_CHIP_OTHER_MEMORY]);
    FL_CHECK(time[FL_CHIP_OUTSIDE] == 2 && power[FL_CHIP_ALONE] == 3, "typical where it says nothing: %g, %g",
             time[FL_CHIP_OUTSIDE], power[FL_CHIP_ALONE]);
    c.workloads = 0;
    fl_chip_widen(&c, &b);
    FL_CHECK(time[FL_CHIP_INSIDE] == 7 && power[FL_CHIP_ALONE] == 9, "a spec: %g, %g", time[FL_CHIP_INSIDE],
             power[FL_CHIP_ALONE]);
    for (int k = 0; k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++) {
            const fl_chip_bar *m = &fl_chip_bars_measured.of[k][p];
            FL_CHECK(m->typical > 0 && m->own_typical > 0 && m->trust >= 0 && m->trust <= 1 && m->spec > 0,
                     "constants %d, %d", k, p);
        }
}

FL_SUITE("fit_activity", {"places", test_places}, {"reference", test_reference}, {"noise", test_noise},
         {"law", test_law}, {"bars", test_bars})
