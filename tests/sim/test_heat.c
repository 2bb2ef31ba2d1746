#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"

#include "tests/support/suite.h"

#include <math.h>

#define PERIOD_PS INT64_C(100000000000) /* 100 ms */

/* One board by hand: 0.2 C/W, 0.1 W of leakage per degree above 40 C; states 0 to 10, all allowed. */
typedef struct board {
    fl_device dev;
    fl_clock_rates rates;
    fl_gpu g;
    fl_heat h;
    int64_t t;
} board;

static void open_board(board *b, double ambient_c, double tau_s, int32_t idle_mw) {
    *b = (board){.dev = {.sm_count = 11}, .rates = {.base = {.total_mw = idle_mw}}};
    b->dev.thermal = (fl_thermal_spec){.period_ns = PERIOD_PS / 1000,
                                       .ambient_c = ambient_c,
                                       .c_per_w = 0.2,
                                       .tau_s = tau_s,
                                       .leak_w_per_c = 0.1,
                                       .leak_ref_c = 40,
                                       .limit_c = 60,
                                       .release_c = 55};
    b->g = (fl_gpu){.dev = &b->dev, .rates = &b->rates, .open = true, .sm = 10, .lock_sm = 10, .heat_sm = 10};
    b->g.temp_c = (double)NAN;
    fl_heat_open(&b->h, &b->g, 0);
}

/* One period at a constant power. */
static void burn(board *b, int64_t watts) {
    b->t += PERIOD_PS;
    b->g.sums.energy_fj += (fl_wide)PERIOD_PS * watts * 1000;
    fl_heat_at(&b->h, &b->g, 0, b->t);
}

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

/* It begins at the temperature of the idle board, not of the room, with the leakage that belongs to it. */
static void test_start(void) {
    static const struct {
        double ambient_c, temp_c;
        int64_t leak_mw;
    } rows[] = {{20, 28, 0}, {32, 40, 0}, {52, 60, 2000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        board b;
        open_board(&b, rows[i].ambient_c, 1, 40000);
        FL_CHECK(near(b.g.temp_c, rows[i].temp_c) && b.g.leak_mw == rows[i].leak_mw,
                 "a room at %g C: starts at %g C, leaks %lld mW", rows[i].ambient_c, b.g.temp_c,
                 (long long)b.g.leak_mw);
        FL_CHECK(fl_heat_next(&b.h) == PERIOD_PS, "looks after one period");
    }
    board off;
    open_board(&off, 20, 1, 40000);
    off.dev.thermal.period_ns = 0;
    off.g.temp_c = (double)NAN;
    fl_heat_open(&off.h, &off.g, 0);
    burn(&off, 1000);
    FL_CHECK(isnan(off.g.temp_c) && fl_heat_next(&off.h) == FL_TIME_NEVER, "no heat described: %g C", off.g.temp_c);
}

/* Below the reference temperature nothing leaks: it never gives power back. */
static void test_leak(void) {
    static const struct { int64_t watts, leak_mw; } rows[] = {{0, 0}, {50, 0}, {100, 0}, {105, 100}, {150, 1000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        board b;
        open_board(&b, 20, 1e-3, 0); /* so fast that each look sees the end of the course */
        burn(&b, rows[i].watts);
        FL_CHECK(b.g.leak_mw == rows[i].leak_mw, "%lld W, %g C: leaks %lld mW", (long long)rows[i].watts, b.g.temp_c,
                 (long long)b.g.leak_mw);
    }
}

/* The answer to a step of power: 1 - exp(-t / tau) of the way, whatever tau is. */
static void test_time_constant(void) {
    static const double taus[] = {0.25, 1, 8};
    for (size_t i = 0; i < sizeof taus / sizeof *taus; i++) {
        board b;
        open_board(&b, 20, taus[i], 40000);
        for (int k = 1; k <= 20; k++) {
            burn(&b, 140);
            const double expected = 48 - 20 * exp(-0.1 * k / taus[i]);
            FL_CHECK(near(b.g.temp_c, expected), "tau %g s, %g s: %.12g C, expected %.12g", taus[i], 0.1 * k,
                     b.g.temp_c, expected);
        }
    }
}

/* Hot above 60 C, that is 200 W; cool below 55 C, 175 W; between the two the clock stays. */
static void test_hysteresis(void) {
    static const struct {
        int64_t watts;
        uint32_t sm, heat_sm; /* sm: in force, below what heat allows where the wall holds it */
        bool acts;
    } rows[] = {
        {190, 10, 10, false}, /* never was hot */
        {210, 5, 4, true},    /* down from the clock in force */
        {210, 2, 3, true},    /* and from its own state on, wherever the wall is */
        {190, 3, 3, true},    /* neither hot nor cool: stays */
        {176, 3, 3, true},    /* 55.2 C */
        {174, 3, 4, true},    /* 54.8 C: one state per look */
        {174, 4, 5, true},    {190, 5, 5, true},   {174, 5, 6, true},
        {174, 6, 7, true},    {174, 7, 10, false}, {174, 8, 10, false},
    };
    board b;
    open_board(&b, 20, 1e-3, 0);
    b.g.lock_sm = 8;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b.g.sm = rows[i].sm;
        burn(&b, rows[i].watts);
        FL_CHECK(b.g.heat_sm == rows[i].heat_sm && b.h.acts == rows[i].acts,
                 "look %zu, %g C: state %u, %s; expected %u", i, b.g.temp_c, b.g.heat_sm,
                 b.h.acts ? "acts" : "does not act", rows[i].heat_sm);
    }
    for (int i = 0; i < 20; i++)
        burn(&b, 300);
    FL_CHECK(b.g.heat_sm == 0, "never below the lowest state: %u", b.g.heat_sm);
}

/* An APU's CPU heats the same die: it counts from the start, and in every period. */
static void test_die(void) {
    board b;
    open_board(&b, 20, 1e-3, 40000);
    fl_heat_open(&b.h, &b.g, 10000);
    FL_CHECK(near(b.g.temp_c, 30), "40 W of GPU and 10 W of CPU: starts at %g C", b.g.temp_c);
    static const struct {
        int64_t cpu_w;
        double temp_c, hottest_c;
    } rows[] = {{50, 50, 50}, {100, 60, 60}, {0, 40, 60}, {25, 45, 60}};
    fl_wide cpu_fj = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b.t += PERIOD_PS;
        b.g.sums.energy_fj += (fl_wide)PERIOD_PS * 100000;
        cpu_fj += (fl_wide)PERIOD_PS * rows[i].cpu_w * 1000;
        fl_heat_at(&b.h, &b.g, cpu_fj, b.t);
        FL_CHECK(near(b.g.temp_c, rows[i].temp_c) && near(b.g.hottest_c, rows[i].hottest_c),
                 "100 W of GPU and %lld W of CPU: %g C, %g C at the most", (long long)rows[i].cpu_w, b.g.temp_c,
                 b.g.hottest_c);
    }
}

FL_SUITE("heat", {"start", test_start}, {"leakage", test_leak}, {"time constant", test_time_constant},
         {"hysteresis", test_hysteresis}, {"one die", test_die})
