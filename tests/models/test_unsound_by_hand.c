/* Rows that lie about their clock, of workloads whose law a person can follow: T falls as 1/f and P rises as f^2. */
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"
#include "tests/support/suite.h"

#include <math.h>

enum { CLOCKS = 10, SPANS = 5 };

static fl_chip_row row[SPANS * CLOCKS];

static bool near(double a, double b, double off) { return fabs(a - b) <= off; }

/* 600 to 1500 MHz in steps of 100. */
static void make(size_t spans) {
    for (size_t i = 0; i < spans * CLOCKS; i++) {
        const double f = 600 + 100 * (double)(i % CLOCKS), ghz = f / 1000;
        row[i] = (fl_chip_row){(uint32_t)(i / CLOCKS), f, 800, (1 + (double)(i / CLOCKS)) / ghz, 50 * ghz * ghz};
    }
}

/* What the row would be at another clock. */
static void run_at(size_t i, double mhz) {
    row[i].time_s *= row[i].sm_mhz / mhz;
    row[i].power_w *= pow(mhz / row[i].sm_mhz, 2);
}

static fl_unsound found(size_t count) {
    fl_unsound u;
    CU_ASSERT_FATAL(fl_unsound_find(row, count, &u) == FL_MODEL_OK);
    return u;
}

/* The last rows repeat the one at 1300 MHz. By the steps below it, at f they should take 1300/f of its time and draw
 * (f/1300)^2 of its power: they are that much slower and draw that much less. */
static void test_stuck(void) {
    for (size_t repeats = 1; repeats <= 2; repeats++) {
        make(1);
        for (size_t i = CLOCKS - repeats; i < CLOCKS; i++)
            run_at(i, row[CLOCKS - repeats - 1].sm_mhz);
        fl_unsound u = found(CLOCKS);
        FL_CHECK(u.rows == repeats && u.clocks == 0, "%zu repeats: %zu rows, %zu clocks", repeats, u.rows, u.clocks);
        for (size_t i = 0; i < CLOCKS; i++) {
            const double base = row[CLOCKS - repeats - 1].sm_mhz, top = row[CLOCKS - 1].sm_mhz;
            if (i < CLOCKS - repeats) {
                FL_CHECK(u.row[i].kind == FL_SOUND && isnan(u.row[i].ran_mhz), "%zu repeats: row %zu: %s", repeats, i,
                         fl_unsound_text(u.row[i].kind));
                continue;
            }
            FL_CHECK(u.row[i].kind == FL_UNSOUND_STUCK && u.row[i].ran_mhz == base, "%zu repeats: row %zu: %s, %g MHz",
                     repeats, i, fl_unsound_text(u.row[i].kind), u.row[i].ran_mhz);
            FL_CHECK(near(u.row[i].time_pct, 100 * (top / base - 1), 1e-6) &&
                         near(u.row[i].power_pct, 100 * (pow(base / top, 2) - 1), 1e-6),
                     "%zu repeats: row %zu is off by %g and %g %%", repeats, i, u.row[i].time_pct, u.row[i].power_pct);
        }
        fl_unsound_free(&u);
    }
    make(1); /* a row that draws as much, but is faster, was reached */
    row[CLOCKS - 1].power_w = row[CLOCKS - 2].power_w;
    fl_unsound u = found(CLOCKS);
    FL_CHECK(u.row[CLOCKS - 1].kind != FL_UNSOUND_STUCK, "%s", fl_unsound_text(u.row[CLOCKS - 1].kind));
    fl_unsound_free(&u);
}

/* One row at a clock that its time and power tell, slower or faster than it says. */
static void test_one(void) {
    static const struct {
        size_t at;
        double ran_mhz;
        fl_unsound_kind kind;
    } rows[] = {{4, 800, FL_UNSOUND_SLOWER},
                {4, 1200, FL_UNSOUND_FASTER},
                {6, 900, FL_UNSOUND_SLOWER},
                {2, 1000, FL_UNSOUND_FASTER},
                {5, 700, FL_UNSOUND_SLOWER}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        make(1);
        const double said = row[rows[k].at].sm_mhz, ran = rows[k].ran_mhz;
        run_at(rows[k].at, ran);
        fl_unsound u = found(CLOCKS);
        const fl_unsound_row *r = &u.row[rows[k].at];
        FL_CHECK(u.rows == 1 && r->kind == rows[k].kind && near(r->ran_mhz / ran, 1, 0.01),
                 "row %zu: %zu found, %s, %g MHz", k, u.rows, fl_unsound_text(r->kind), r->ran_mhz);
        FL_CHECK(near(r->time_pct, 100 * (said / ran - 1), 0.5) &&
                     near(r->power_pct, 100 * (pow(ran / said, 2) - 1), 0.5),
                 "row %zu: off by %g and %g %%", k, r->time_pct, r->power_pct);
        fl_unsound_free(&u);
        make(1); /* 30 % longer at the same power: no clock does that */
        row[rows[k].at].time_s *= 1.3;
        u = found(CLOCKS);
        FL_CHECK(u.rows == 1 && u.row[rows[k].at].kind == FL_UNSOUND_LINE && isnan(u.row[rows[k].at].ran_mhz) &&
                     near(u.row[rows[k].at].time_pct, 30, 0.5) && near(u.row[rows[k].at].power_pct, 0, 0.5),
                 "row %zu: %s, off by %g and %g %%", k, fl_unsound_text(u.row[rows[k].at].kind),
                 u.row[rows[k].at].time_pct, u.row[rows[k].at].power_pct);
        fl_unsound_free(&u);
    }
}

/* A clock that is wrong for all workloads is one finding, named by what it ran at; it may be relabelled where no other
 * clock of the sweep is that one. */
static void test_clock(void) {
    static const struct {
        size_t at;
        double ran_mhz;
        int clear;
    } rows[] = {{4, 850, 1}, {4, 1150, 1}, {3, 700, 0}, {6, 940, 1}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (size_t spans = 2; spans <= SPANS; spans += 3) {
            make(spans);
            for (size_t s = 0; s < spans; s++)
                run_at(s * CLOCKS + rows[k].at, rows[k].ran_mhz);
            fl_unsound u = found(spans * CLOCKS);
            if (spans == 2) { /* two workloads do not tell a clock */
                FL_CHECK(u.clocks == 0 && u.rows == 2, "row %zu: %zu clocks of two workloads", k, u.clocks);
                fl_unsound_free(&u);
                continue;
            }
            FL_CHECK(u.clocks == 1 && u.clock[0].sm_mhz == row[rows[k].at].sm_mhz &&
                         near(u.clock[0].ran_mhz / rows[k].ran_mhz, 1, 0.005) && u.clock[0].clear == rows[k].clear &&
                         u.clock[0].workloads == spans,
                     "row %zu: %zu clocks, %g MHz at %g of %u workloads, clear %d", k, u.clocks, u.clock[0].sm_mhz,
                     u.clock[0].ran_mhz, u.clock[0].workloads, u.clock[0].clear);
            FL_CHECK(u.clock[0].sd_pct >= 0 && u.clock[0].sd_pct < 1, "row %zu: known to within %g %%", k,
                     u.clock[0].sd_pct);
            for (size_t i = 0; i < spans * CLOCKS; i++)
                FL_CHECK((u.row[i].kind == FL_UNSOUND_CLOCK) == (i % CLOCKS == rows[k].at), "row %zu: %zu is %s", k, i,
                         fl_unsound_text(u.row[i].kind));
            fl_unsound_free(&u);
        }
}

static void test_sound(void) {
    make(SPANS);
    fl_unsound u = found(SPANS * CLOCKS);
    FL_CHECK(u.rows == 0 && u.clocks == 0, "%zu rows, %zu clocks of a sound sweep", u.rows, u.clocks);
    fl_unsound_free(&u);
    for (size_t i = 0; i < SPANS * CLOCKS; i++) /* without power the times are enough */
        row[i].power_w = NAN;
    run_at(14, 700);
    row[14].power_w = NAN;
    u = found(SPANS * CLOCKS);
    FL_CHECK(u.rows == 1 && u.row[14].kind == FL_UNSOUND_SLOWER && isnan(u.row[14].power_pct), "%zu rows, %s", u.rows,
             fl_unsound_text(u.row[14].kind));
    fl_unsound_free(&u);
}

/* Three clocks of a workload give no curve. T falls as 1/f from the second to the third, so a first clock of which it
 * is too long tells what it ran at. Workloads that the clock matters less to count only where no other tells. */
static void test_three_clocks(void) {
    static const struct {
        const char *what;
        double ran_mhz[2], bound; /* of the two workloads; how much of the second's time follows the clock */
        double found_mhz;         /* 0: nothing */
    } rows[] = {{"both", {222, 222}, 1, 222},
                {"the core-bound one alone tells", {222, 222}, 0.4, 222},
                {"a clock that was reached", {405, 405}, 1, 0},
                {"slower by less than memory explains", {320, 320}, 1, 0},
                {"one of two ran at its clock", {222, 405}, 1, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        static const double mhz[] = {405, 945, 1380};
        for (size_t i = 0; i < 6; i++) {
            const double ran = i % 3 ? mhz[i % 3] : rows[k].ran_mhz[i / 3], bound = i < 3 ? 1 : rows[k].bound;
            row[i] =
                (fl_chip_row){(uint32_t)(i / 3), mhz[i % 3], 877, 30 * (bound * 1380 / ran + 1 - bound), 60 + ran / 10};
        }
        fl_unsound u = found(6);
        FL_CHECK(u.clocks == (rows[k].found_mhz > 0), "%s: %zu clocks", rows[k].what, u.clocks);
        if (u.clocks)
            FL_CHECK(u.clock[0].sm_mhz == 405 && near(u.clock[0].ran_mhz, rows[k].found_mhz, 0.5) && u.clock[0].clear &&
                         u.row[0].kind == FL_UNSOUND_CLOCK && u.row[3].kind == FL_UNSOUND_CLOCK && u.rows == 0,
                     "%s: %g MHz by %u workloads", rows[k].what, u.clock[0].ran_mhz, u.clock[0].workloads);
        fl_unsound_free(&u);
    }
}

FL_SUITE("unsound_by_hand", {"sound", test_sound}, {"not reached", test_stuck}, {"one row", test_one},
         {"a clock", test_clock}, {"three clocks", test_three_clocks})
