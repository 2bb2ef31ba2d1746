#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

enum { WORKLOADS = 24, CLOCKS = 9, ROWS = WORKLOADS * CLOCKS };
static const uint64_t seed = 4711;
static const double top_mhz = 1500;

/* A chip on which time is memory or core. */
typedef struct made {
    fl_chip_row row[ROWS];
    double memory[WORKLOADS];
} made;

static double time_of(double memory, double f) {
    return pow(pow((1 - memory) * top_mhz / f, 5) + pow(memory, 5), 0.2) + 0.02;
}

static void make(made *m, double noise) {
    fl_random random = fl_random_seed(seed, 1);
    for (uint32_t k = 0; k < WORKLOADS; k++) {
        const double memory = m->memory[k] = fl_random_unit(&random), scale = 1 / time_of(memory, top_mhz);
        for (size_t i = 0; i < CLOCKS; i++) {
            const size_t at = k * CLOCKS + i;
            const double f = 700 + (top_mhz - 700) * (double)i / (CLOCKS - 1), t = scale * time_of(memory, f);
            const double v = f < 1000 ? 1 : 1 + 0.3 * (f - 1000) / 500;
            const double watts = 40 + 20 * v + 60 * (1 - memory) * v * v * f / 1000 + 152.1 * memory;
            m->row[at] = (fl_chip_row){k, f, 900, t * (1 + noise * fl_random_normal(&random)),
                                       watts * (1 + noise * fl_random_normal(&random))};
        }
    }
}

/* ---- which law ---- */

static void test_law(void) {
    static made m;
    static fl_chip c;
    make(&m, 0.002);
    for (size_t i = 0; i < ROWS; i++) { /* bytes come over a link below 1000 MHz, and stalled units draw less */
        fl_chip_row *r = &m.row[i];
        const double memory = m.memory[r->workload], slow = fmax(1, pow(1000 / r->sm_mhz, 2));
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

FL_SUITE("fit_law", {"law", test_law}, {"bars", test_bars})
