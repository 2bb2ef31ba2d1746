#include "models/laws/laws.h"
#include "tests/support/suite.h"

#include <math.h>

static bool near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * fmax(1, fabs(b)); }

static void test_norm(void) {
    static const struct {
        double core, memory, p, want;
    } rows[] = {
        {3, 4, 1, 7},
        {3, 4, 2, 5},
        {3, 4, INFINITY, 4},
        {5, 0, 9, 5},
        {0, 5, 9, 5},
        {0, 0, 9, 0},
        {1, 1, 9, 1.0800597388923061}, /* 2^(1/9) */
        {3e200, 4e200, 2, 5e200},      /* the squares overflow */
        {3e-200, 4e-200, 2, 5e-200},   /* the squares vanish */
        {1, 1e-300, 64, 1},            /* the power of the ratio vanishes */
        {1, 0.5, 1e6, 1},              /* towards the maximum */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double t = fl_time_norm(rows[i].core, rows[i].memory, rows[i].p);
        FL_CHECK(fabs(t - rows[i].want) <= 1e-14 * fabs(rows[i].want), "row %zu: %.17g, expected %.17g", i, t,
                 rows[i].want);
        const double swapped = fl_time_norm(rows[i].memory, rows[i].core, rows[i].p);
        FL_CHECK(memcmp(&t, &swapped, sizeof t) == 0, "row %zu: not symmetric", i);
    }
    for (double p = 1; p < 60; p += 0.5)
        FL_CHECK(fl_time_norm(2, 3, p + 0.5) < fl_time_norm(2, 3, p) && fl_time_norm(2, 3, p) > 3,
                 "p = %g: the norm must fall towards the maximum", p);
}

/* power-capping Eq. 3: T(f) = max(T(fmin) fmin / f, T(fmax)), with Tl on top. */
static void test_time(void) {
    FL_CHECK(near(fl_time_at(0.6, 1.0, 0, INFINITY, 1, 1), 1.0, 0), "memory-bound at the reference");
    FL_CHECK(near(fl_time_at(0.6, 1.0, 0, INFINITY, 2, 1), 1.2, 1e-15), "core-bound at half the clock");
    FL_CHECK(near(fl_time_at(0.6, 1.0, 0.5, INFINITY, 2, 2), 2.5, 1e-15), "half the memory clock, and a rest");
    FL_CHECK(near(fl_time_at(3, 4, 1, 2, 1, 1), 6, 1e-15), "p = 2");
}

static void test_active(void) {
    static const struct {
        double tc, tm, tl, p, f, m, memory, core;
    } rows[] = {
        {0.5, 1, 0, INFINITY, 1, 1, 1, 0.5},    /* memory-bound: saturates at one */
        {0.5, 1, 0, INFINITY, 4, 1, 0.5, 1},    /* core-bound at a quarter of the clock */
        {0.5, 1, 1, INFINITY, 1, 1, 0.5, 0.25}, /* the rest moves no bytes */
        {0, 1, 0, 9, 1, 1, 1, 0},               /* no core term */
        {0, 0, 1, 9, 1, 1, 0, 0},               /* nothing but rest */
        {0, 0, 0, 9, 1, 1, 0, 0},               /* no work at all */
        {1, 1, 0, 1, 1, 3, 0.75, 0.25},         /* memory three times slower */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double memory = fl_memory_active(rows[i].tc, rows[i].tm, rows[i].tl, rows[i].p, rows[i].f, rows[i].m);
        const double core = fl_core_active(rows[i].tc, rows[i].tm, rows[i].tl, rows[i].p, rows[i].f, rows[i].m);
        FL_CHECK(near(memory, rows[i].memory, 1e-15), "row %zu: memory %g, expected %g", i, memory, rows[i].memory);
        FL_CHECK(near(core, rows[i].core, 1e-15), "row %zu: core %g, expected %g", i, core, rows[i].core);
    }
    for (double f = 0.25; f < 8; f *= 1.1) {
        const double memory = fl_memory_active(0.7, 0.9, 0.01, 9, f, 1), core = fl_core_active(0.7, 0.9, 0.01, 9, f, 1);
        FL_CHECK(memory >= 0 && memory <= 1 && core >= 0 && core <= 1, "f_ratio %g: %g, %g", f, memory, core);
    }
}

FL_SUITE("time", {"norm", test_norm}, {"time", test_time}, {"active", test_active})
