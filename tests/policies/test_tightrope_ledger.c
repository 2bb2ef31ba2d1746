/* tightrope's ledger by hand: what a window at one clock is credited by records, by a counter and by nothing; what
 * is held back, taken back and kept; and when a window is none that its clock can have. */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)

static fl_tightrope_work *w;

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

static void open_work(int64_t signal) {
    w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    fl_tightrope_work_begin(w, signal, 0, 0.03, 3, 0);
}

/* ---- by records ---- */

/* 10 s of which kernels ran 4 s at a lower clock, worth 3 s, and 3 s at the top; another has run for the last second,
 * of which half is certain. The rest is the host's own, which no clock stretches. */
static void test_credit_of_records(void) {
    static const struct {
        const char *what;
        double elapsed_s, before_s, before_elapsed_s, busy_s, top_s, open_s, overlap_s, cost, record_s, recorded;
        double credit, busy_share;
    } rows[] = {
        {"free records", 10, 0, 0, 4, 3, 1, 0, 0, 0, 0, 3 + 3 + 0.5 + 2, 0.8},
        {"nothing is open", 10, 0, 0, 4, 3, 0, 0, 0, 0, 0, 3 + 3 + 3, 0.7},
        {"a share of all kernels", 10, 0, 0, 4, 3, 1, 0, 0.25, 0, 0, 6.5 / 1.25 + 2, 0.8},
        {"a time of each", 10, 0, 0, 4, 3, 1, 0, 0.25, 0.01, 50, 6 + 2, 0.8},
        {"records took all", 10, 0, 0, 4, 3, 1, 0, 0, 1, 100, 2, 0.8},
        {"what ran beside others counts nothing", 10, 0, 0, 4, 3, 1, 0.5, 0, 0, 0, 3 + 3 - 0.5 + 0.5 + 2, 0.8},
        {"credited before", 13, 2, 3, 4, 3, 1, 0, 0, 0, 0, 2 + 3 + 3 + 0.5 + 2, 0.8},
        {"kernels fill the time", 7, 0, 0, 4, 3, 1, 0, 0, 0, 0, 6, 1},
        {"twice over", 5, 0, 0, 4, 6, 0, 0, 0, 0, 0, (6 + 3) / 2.0, 1},
        {"open for longer than is left", 10, 0, 0, 4, 3, 9, 0, 0, 0, 0, 3 + 3 + 1.5, 1},
        {"nothing ran, and nothing passed", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
        {"never more than passed", 10, 6, 0, 4, 3, 1, 0, 0, 0, 0, 10, 0.8},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_RECORDS);
        w->elapsed_s = rows[i].elapsed_s;
        w->before_s = rows[i].before_s, w->before_elapsed_s = rows[i].before_elapsed_s;
        w->busy_s = rows[i].busy_s, w->top_busy_s = rows[i].top_s;
        w->last_ns = 100 * S, w->last_end_ns = 100 * S - (int64_t)(rows[i].open_s * 1e9);
        w->overlap_s = rows[i].overlap_s, w->cost = rows[i].cost;
        w->record_s = rows[i].record_s, w->recorded = rows[i].recorded;
        fl_tightrope_certain_from(&w->sure, 0, 0.5);
        if (rows[i].busy_s > 0) {
            w->kinds = 2;
            w->kind[0] = (fl_tightrope_kind){.count = 4, .sum_s = 3, .square_s = 2.25, .done = 2, .done_s = 2};
            w->kind[1] = (fl_tightrope_kind){.kept_s = 0.5, .done = 2, .done_s = 2, .floor_s = 1};
        }
        const double credit = fl_tightrope_credit(w);
        FL_CHECK(near(credit, rows[i].credit), "%s: %.9f s, expected %.9f", rows[i].what, credit, rows[i].credit);
        FL_CHECK(near(w->busy_share, rows[i].busy_share), "%s: busy for %g", rows[i].what, w->busy_share);
        free(w);
    }
}

/* Standard errors of so many durations, by Student's law. */
static double held(double count, double sigmas) {
    const double n = fmax(1, count - 1), z = sigmas * (8 * n + 3) / (8 * n + 1);
    return sqrt(n * expm1(fmin(z * z / n, 50)));
}

static double credit_of(const fl_tightrope_kind *k, double *error_s) {
    open_work(FL_TIGHTROPE_RECORDS);
    w->elapsed_s = 1000, w->busy_s = 1000;
    w->kinds = 1;
    w->kind[0] = *k;
    const double credit = fl_tightrope_credit(w);
    *error_s = w->error_s;
    free(w);
    return credit;
}

/* A kind's kernels below the top clock are worth what their like took at the top, less that mean's error and their own;
 * never more than they took, never less than is certain. Of four durations of mean 2 and variance 0.01. */
static void test_credit_of_a_kind(void) {
    const fl_tightrope_kind k = {.count = 4, .sum_s = 8, .square_s = 16 + 0.03, .done = 9, .done_s = 27, .floor_s = 10};
    const double error = held(4, 3) * sqrt(81 * 0.01 / 4 + 9 * 0.01);
    double held_s;
    FL_CHECK(near(credit_of(&k, &held_s), 18 - error) && near(held_s, error), "held back %g of %g", held_s, error);
    fl_tightrope_kind x = k;
    x.done_s = 17;
    FL_CHECK(near(credit_of(&x, &held_s), 17 - error), "no more than they took: %g", credit_of(&x, &held_s));
    x = k, x.floor_s = 18 - error / 2;
    FL_CHECK(near(credit_of(&x, &held_s), x.floor_s) && held_s == 0, "what is certain: %g", credit_of(&x, &held_s));
    x = k, x.floor_s = 18 - error * 1.01;
    FL_CHECK(near(credit_of(&x, &held_s), 18 - error) && near(held_s, error), "just above: %g", held_s);
    x = k, x.floor_s = 30;
    FL_CHECK(near(credit_of(&x, &held_s), 30), "certain of more: %g", credit_of(&x, &held_s));
    x = k, x.count = 2, x.sum_s = 4, x.square_s = 8;
    FL_CHECK(near(credit_of(&x, &held_s), 10) && held_s == 0, "seen twice: %g", credit_of(&x, &held_s));
    x = k, x.count = 3, x.sum_s = 6, x.square_s = 12;
    FL_CHECK(near(credit_of(&x, &held_s), 18) && held_s == 0, "seen three times, alike: %g", credit_of(&x, &held_s));
    x.square_s = 11; /* less than the mean's square, by rounding */
    FL_CHECK(near(credit_of(&x, &held_s), 18) && held_s == 0, "no variance: %g", credit_of(&x, &held_s));
    x = k, x.done = x.done_s = 0;
    FL_CHECK(near(credit_of(&x, &held_s), 10) && held_s == 0, "none ended: %g", credit_of(&x, &held_s));
}

/* Durations that differ from visit to visit: four visits with means 1, 1, 3 and 3 of 10 durations each, alike within.
 * The variance of the means is 4/3; two deviations of it, or Student's, count for each kernel. Kinds alike in all
 * visits hold back nothing for that, nor do three visits. */
static void test_visits(void) {
    const double deviation = sqrt(4.0 / 3), student = held(4, 0.5) / 2;
    static const struct {
        const char *what;
        double visits, mean_s, mean_square_s, visit_square_s, now, now_s;
        int counts;
    } rows[] = {{"four visits", 4, 8, 20, 200, 0, 0, 1},
                {"three visits", 3, 8, 20, 200, 0, 0, 0},
                {"alike", 4, 8, 16, 160, 0, 0, 0},
                {"the fifth has not ended: its durations are none of theirs", 4, 8, 20, 200, 10, 20, 1},
                {"alike in time, beside a fifth", 4, 8, 20, 160, 10, 20, 0}};
    CU_ASSERT_FATAL(student < 2);
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        const double now = rows[i].now;
        open_work(FL_TIGHTROPE_RECORDS);
        w->sigmas = 0.5;
        w->elapsed_s = w->busy_s = 10000;
        w->kinds = 1;
        w->kind[0] = (fl_tightrope_kind){.count = 40 + now,
                                         .sum_s = 80 + rows[i].now_s,
                                         .square_s = 200 + 5 * now,
                                         .done = 100,
                                         .done_s = 1000,
                                         .visits = rows[i].visits,
                                         .mean_s = rows[i].mean_s,
                                         .mean_square_s = rows[i].mean_square_s,
                                         .visit_square_s = rows[i].visit_square_s,
                                         .now = now,
                                         .now_s = rows[i].now_s};
        const double n = 40 + now, v = (5 - 4) * n / (n - 1), plain = held(n, 0.5) * sqrt(1e4 * v / n + 100 * v),
                     unlike = 2 * 100 * deviation;
        const double credit = fl_tightrope_credit(w);
        FL_CHECK(near(credit, fmax(0, 200 - (rows[i].counts ? unlike : plain))), "%s: %g s, held back %g", rows[i].what,
                 credit, w->error_s);
        free(w);
    }
}

/* The difference between visits counts from what chance makes of it on: for four of them 3.178 times what the variance
 * within would (two standard errors). */
static void test_visits_by_chance(void) {
    for (int more = 0; more < 2; more++) {
        open_work(FL_TIGHTROPE_RECORDS);
        w->sigmas = 0.5;
        w->elapsed_s = w->busy_s = 10000;
        w->kinds = 1;
        fl_tightrope_kind *k = &w->kind[0];
        /* 40 durations of mean 2 and a variance of 1 */
        *k = (fl_tightrope_kind){.count = 40, .sum_s = 80, .square_s = 160 + 39, .done = 1, .done_s = 10};
        k->visits = 4, k->mean_s = 8;
        const double between = fl_tightrope_by_chance(4) * 3 + (more ? 1e-6 : -1e-6);
        k->visit_square_s = 160 + between;
        k->mean_square_s = 16 + 3 * 0.49; /* a deviation of 0.7 */
        const double error = fmax(more ? 2 * 0.7 : 0, held(40, 0.5) * sqrt(1.0 / 40 + 1)),
                     credit = fl_tightrope_credit(w);
        FL_CHECK(near(credit, 2 - error), "%g s, expected %g", credit, 2 - error);
        free(w);
    }
}

/* ---- the window ---- */

/* What the window's clock is worth for certain: of two clocks while the one takes over from the other, the lower. */
static void test_share(void) {
    static const struct {
        const char *what;
        double clock, then;
        int changed, arrived;
        double share;
    } rows[] = {{"the same goes on", 0.6, 0.6, 0, 1, 0.6},
                {"a fall", 0.8, 0.6, 1, 1, 0.6},
                {"a rise", 0.6, 0.8, 1, 1, 0.6},
                {"a fall from the top", 1, 0.5, 1, 1, 0.5},
                {"a rise to the top", 0.5, 1, 1, 1, 0.5},
                {"a rise while the last was on its way", 0.6, 0.8, 1, 0, 0.4},
                {"at the top", 1, 1, 0, 1, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_NONE);
        fl_tightrope_window(w, S, rows[i].clock, 0);
        w->share = rows[i].arrived ? w->share : 0.4;
        w->settled_ns = rows[i].arrived ? 2 * S : 2 * S + 1;
        w->doubted = 1;
        fl_tightrope_window(w, 2 * S, rows[i].then, rows[i].changed);
        FL_CHECK(near(w->share, rows[i].share) && w->at_top == (rows[i].then == 1) && !w->doubted &&
                     w->window_ns == 2 * S && w->settled_ns == 2 * S,
                 "%s: %g", rows[i].what, w->share);
        const double worth = rows[i].then == 1 && !rows[i].changed ? 1 : rows[i].share * 0.97;
        FL_CHECK(near(fl_tightrope_certain_between(&w->sure, 2 * S, 3 * S), worth), "%s: worth %g", rows[i].what,
                 fl_tightrope_certain_between(&w->sure, 2 * S, 3 * S));
        free(w);
    }
}

/* A line is drawn on over windows at one clock for 2 s; at the top clock it is the reference's then, unless doubted. */
static void test_stretches(void) {
    static const struct {
        const char *what;
        double length_s;
        int top, changed, doubted, ends, kept;
    } rows[] = {{"short", 1.9, 1, 0, 0, 0, 0},
                {"long", 2.1, 1, 0, 0, 1, 1},
                {"changed", 1, 1, 1, 0, 1, 1},
                {"doubted", 2.1, 1, 0, 1, 1, 0},
                {"not the top", 2.1, 0, 0, 0, 1, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_KERNELS);
        fl_tightrope_window(w, 0, rows[i].top ? 1 : 0.5, 0);
        for (int k = 0; k <= rows[i].length_s * 100 + 0.5; k++)
            fl_tightrope_rate_edge(&w->rate, k * S / 100, 1e-6, 1);
        w->doubted = rows[i].doubted;
        w->kinds = 2;
        for (int k = 0; k < 2; k++)
            w->kind[k] = (fl_tightrope_kind){.window_s = 1, .low = 2, .low_s = 3, .low_floor_s = 4, .done = 5};
        w->known_s = w->ref_s = w->unknown_s = w->power_sum = w->power_count = w->power_square = 1;
        w->total = 7;
        fl_tightrope_window(w, 3 * S, 0.5, rows[i].changed);
        FL_CHECK((w->rate.edges == 0) == rows[i].ends && (w->rate.kept_s > 0) == rows[i].kept, "%s: %g ends, %g s kept",
                 rows[i].what, w->rate.edges, w->rate.kept_s);
        for (int k = 0; k < 2; k++)
            CU_ASSERT(w->kind[k].window_s == 0 && w->kind[k].low == 0 && w->kind[k].low_s == 0 &&
                      w->kind[k].low_floor_s == 0 && w->kind[k].done == 5);
        CU_ASSERT(w->known_s == 0 && w->ref_s == 0 && w->unknown_s == 0 && w->units == 7);
        CU_ASSERT(w->power_sum == 0 && w->power_count == 0 && w->power_square == 0 && w->energy_ns[0] == -1 &&
                  w->energy_ns[1] == -1);
        free(w);
    }
}

/* Which signals tell nothing that is certain in all phases. */
static void test_blindfold(void) {
    static const struct {
        int64_t signal, alike;
        int blind;
    } rows[] = {
        {FL_TIGHTROPE_NONE, FL_TIGHTROPE_ALIKE_ALL, 1},      {FL_TIGHTROPE_RECORDS, FL_TIGHTROPE_ALIKE_NONE, 0},
        {FL_TIGHTROPE_KERNELS, FL_TIGHTROPE_ALIKE_ALL, 0},   {FL_TIGHTROPE_KERNELS, FL_TIGHTROPE_ALIKE_COUNTERS, 0},
        {FL_TIGHTROPE_KERNELS, FL_TIGHTROPE_ALIKE_NONE, 1},  {FL_TIGHTROPE_UTIL, FL_TIGHTROPE_ALIKE_ALL, 0},
        {FL_TIGHTROPE_UTIL, FL_TIGHTROPE_ALIKE_COUNTERS, 1}, {FL_TIGHTROPE_ENDS, FL_TIGHTROPE_ALIKE_COUNTERS, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(rows[i].signal);
        w->alike = rows[i].alike;
        FL_CHECK(fl_tightrope_blindfold(w) == rows[i].blind, "row %zu", i);
        free(w);
    }
}

/* Power of a window: by its energy where that counts for more than 0.15 s, else the mean of readings. */
static void test_power(void) {
    static const struct {
        const char *what;
        double count, sum, square, from_ns, to_ns, watts, noise;
    } rows[] = {{"nothing", 0, 0, 0, -1, -1, NAN, 0},
                {"one reading", 1, 100, 1e4, -1, -1, 100, 0},
                {"two readings", 2, 200, 90 * 90 + 110 * 110, -1, -1, 100, 0.1 / 1.4142135623730951},
                {"three alike", 3, 300, 3e4, -1, -1, 100, 0},
                {"less than nothing, by rounding", 3, 300, 29999, -1, -1, 100, 0},
                {"energy", 2, 200, 90 * 90 + 110 * 110, 1e9, 2e9, 50, 0.1 / 1.4142135623730951},
                {"energy since the beginning", 1, 100, 1e4, 0, 1e9, 50, 0},
                {"of 0.15 s", 1, 100, 1e4, 0, 1.5e8, 100, 0},
                {"of a moment more", 1, 100, 1e4, 0, 1.5e8 + 1, 50 / 0.150000001, 0},
                {"of one reading", 1, 100, 1e4, 1e9, -1, 100, 0},
                {"of none before", 1, 100, 1e4, -1, 1e9, 100, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_NONE);
        w->power_count = rows[i].count, w->power_sum = rows[i].sum, w->power_square = rows[i].square;
        w->energy_ns[0] = rows[i].from_ns, w->energy_ns[1] = rows[i].to_ns;
        w->energy_j[0] = 30, w->energy_j[1] = 80;
        const fl_tightrope_seen_window m = fl_tightrope_close(w, S, 1);
        FL_CHECK(isnan(rows[i].watts) ? isnan(m.power_w) : near(m.power_w, rows[i].watts), "%s: %g W", rows[i].what,
                 m.power_w);
        FL_CHECK(near(m.power_noise, rows[i].noise), "%s: noise %g", rows[i].what, m.power_noise);
        CU_ASSERT(m.length_s == 1 && isnan(m.slowdown) && w->elapsed_s == 0); /* an idle one is no part of it */
        free(w);
    }
}

/* Time at the top clock counts once it is there; what came before counts by the share, as does a lower clock's. */
static void test_time(void) {
    static const struct {
        double clock;
        int64_t settled_ns;
        double top_s, floor_s;
    } rows[] = {{1, 1, 4, 0}, {1, 2, 3, 0.25}, {1, 9, 0, 1}, {0.25, 1, 0, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_NONE);
        fl_tightrope_window(w, S, 0.25, 0);
        fl_tightrope_window(w, S, rows[i].clock, rows[i].clock == 1 && rows[i].settled_ns > 1);
        w->settled_ns = rows[i].settled_ns * S;
        w->last_ns = 5 * S;
        const double credit = rows[i].top_s + rows[i].floor_s * 0.97;
        FL_CHECK(near(fl_tightrope_credit_now(w), credit) && w->elapsed_s == 0 && w->top_s == 0 && w->floor_s == 0,
                 "row %zu: %g s now", i, fl_tightrope_credit_now(w));
        fl_tightrope_close(w, 5 * S, 0);
        FL_CHECK(near(w->top_s, rows[i].top_s) && near(w->floor_s, rows[i].floor_s) && w->elapsed_s == 4,
                 "row %zu: %g s at the top, %g s certain", i, w->top_s, w->floor_s);
        FL_CHECK(near(fl_tightrope_credit(w), credit), "row %zu: %g s", i, fl_tightrope_credit(w));
        free(w);
    }
}

/* ---- by a counter ---- */

/* 2 s at the top clock with units of 10 ms, whose ends are known to a microsecond; then a window at half the clock, as
 * many units in a row as are asked for. */
static void open_counter(double unit_s, int units) {
    open_work(FL_TIGHTROPE_KERNELS);
    w->quantum = 1;
    fl_tightrope_window(w, 0, 1, 0);
    for (int k = 0; k <= 200; k++)
        fl_tightrope_rate_edge(&w->rate, k * S / 100, 1e-6, 1);
    w->total = 200, w->last_ns = w->moved_ns = 2 * S;
    const fl_tightrope_seen_window m = fl_tightrope_close(w, 2 * S, 0);
    CU_ASSERT_FATAL(fabs(m.slowdown - 1) < 1e-4 && !m.doubtful);
    fl_tightrope_window(w, 2 * S, 0.5, 1);
    int64_t t = 2 * S;
    for (int k = 0; k <= units; k++, t = 2 * S + (int64_t)(k * unit_s * 1e9))
        fl_tightrope_rate_edge(&w->rate, t, 1e-6, 1);
    w->total = 200 + units;
    w->last_ns = w->moved_ns = 2 * S + (int64_t)(units * unit_s * 1e9);
}

/* The pace below the top must be one that the clock can have: 3 % faster than the top clock's at most, and 3 % slower
 * than by the ratio. */
static void test_doubtful(void) {
    static const struct {
        double unit_s;
        int doubtful;
    } rows[] = {{0.00968, 1}, {0.00972, 0}, {0.015, 0}, {0.02055, 0}, {0.02065, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_counter(rows[i].unit_s, 100);
        const double unit_s = w->unit_s;
        const fl_tightrope_seen_window m = fl_tightrope_close(w, w->last_ns, 0);
        FL_CHECK(fabs(m.slowdown - rows[i].unit_s / 0.01) < 1e-3 && m.doubtful == rows[i].doubtful && !m.renewed &&
                     m.noise > 0 && m.noise < 1e-3,
                 "%g s each: %g, doubtful %d", rows[i].unit_s, m.slowdown, m.doubtful);
        CU_ASSERT(w->unit_s == unit_s); /* it is no part of the reference */
        /* 100 units would be 1 s: what is more than certain is taken back of a doubtful one. */
        const double certain = 100 * rows[i].unit_s * 0.5 * 0.97;
        FL_CHECK(fabs(w->taken_back_s - (m.doubtful ? fmax(0, 1 - certain) : 0)) < 1e-3, "%g s each: %g s taken back",
                 rows[i].unit_s, w->taken_back_s);
        free(w);
    }
}

/* Nothing is known of the slowdown where no unit ended, or the reference is not known. */
static void test_no_pace(void) {
    for (int row = 0; row < 2; row++) {
        open_counter(0.015, row ? 100 : 0);
        w->unit_s = row ? 0 : w->unit_s;
        const fl_tightrope_seen_window m = fl_tightrope_close(w, 4 * S, 0);
        FL_CHECK(isnan(m.slowdown) && m.noise == 0 && !m.doubtful && w->taken_back_s == 0, "row %d: %g", row,
                 m.slowdown);
        free(w);
    }
}

/* A window at the top clock again, with units of another length: no part of the reference from 3 % on. */
static void test_doubted_reference(void) {
    static const double units_s[] = {0.00968, 0.00972, 0.01028, 0.01032};
    for (size_t i = 0; i < FL_COUNT(units_s); i++) {
        open_counter(0.015, 50);
        fl_tightrope_close(w, w->last_ns, 0);
        const int64_t from = w->last_ns;
        fl_tightrope_window(w, from, 1, 1);
        const double before_s = w->rate_s;
        for (int k = 0; k <= 100; k++)
            fl_tightrope_rate_edge(&w->rate, from + (int64_t)(k * units_s[i] * 1e9), 1e-6, 1);
        w->last_ns = w->moved_ns = from + (int64_t)(100 * units_s[i] * 1e9);
        const fl_tightrope_seen_window m = fl_tightrope_close(w, w->last_ns, 0);
        const int off = i == 0 || i == 3;
        FL_CHECK(m.doubtful == off && w->doubted == off && (w->rate_s > before_s) == !off, "%g s each: %d", units_s[i],
                 m.doubtful);
        free(w);
    }
}

/* What a window's units were worth beyond what is certain of it is taken back, where it may be another phase's. The
 * unit that runs counts when it ends: 0.1 s since the last one, which may have come 0.05 s late. */
static void test_distrust(void) {
    static const struct {
        const char *what;
        int64_t signal;
        int at_top, doubtful;
        double back_s;
    } rows[] = {{"below the top", FL_TIGHTROPE_KERNELS, 0, 0, 1 - 0.85 * 0.5 * 0.97},
                {"at the top", FL_TIGHTROPE_KERNELS, 1, 0, 0},
                {"doubtful already", FL_TIGHTROPE_KERNELS, 0, 1, 0},
                {"records", FL_TIGHTROPE_RECORDS, 0, 0, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(rows[i].signal);
        w->quantum = 2, w->unit_s = 0.01, w->share = 0.5, w->at_top = rows[i].at_top;
        w->units = 50, w->total = 250;
        w->last_ns = 10 * S, w->moved_ns = 10 * S - S / 10, w->moved_late_s = 0.05;
        const fl_tightrope_seen_window m = {.length_s = 1, .doubtful = rows[i].doubtful};
        fl_tightrope_distrust(w, &m);
        FL_CHECK(near(w->taken_back_s, rows[i].back_s), "%s: %g s", rows[i].what, w->taken_back_s);
        fl_tightrope_distrust(w, &m);
        FL_CHECK(near(w->taken_back_s, 2 * rows[i].back_s), "%s: twice", rows[i].what);
        free(w);
    }
    open_work(FL_TIGHTROPE_KERNELS); /* fewer units than are certain, and none at all: nothing to take back */
    w->quantum = 1, w->unit_s = 0.01, w->share = 0.5, w->total = 10;
    const fl_tightrope_seen_window m = {.length_s = 1};
    fl_tightrope_distrust(w, &m);
    w->quantum = 0, w->total = 1000;
    fl_tightrope_distrust(w, &m);
    CU_ASSERT(w->taken_back_s == 0);
    w->quantum = 1, w->last_ns = 5 * S; /* nothing ended in it: all its units count before */
    fl_tightrope_distrust(w, &m);
    FL_CHECK(near(w->taken_back_s, 10), "%g s", w->taken_back_s);
    free(w);
}

/* Another phase: what was credited stays, less the unit that runs, and the reference begins anew. */
static void test_new_phase(void) {
    open_counter(0.015, 100);
    fl_tightrope_close(w, w->last_ns, 0);
    const double credit = fl_tightrope_credit(w);
    FL_CHECK(credit > 2.95 && credit < 3, "%g s of 3", credit);
    w->moved_ns -= S / 50, w->moved_late_s = 0.005, w->taken_back_s = 0.01;
    const double again = fl_tightrope_credit(w);
    fl_tightrope_new_phase(w);
    FL_CHECK(near(w->base_s, again - 0.025) && near(w->top_s, again) && w->floor_s == 0 && w->taken_back_s == 0 &&
                 w->origin == 300 && w->unit_s == 0 && w->rate_s == 0 && w->spread == 0 && w->rate.kept_s == 0 &&
                 w->rate.edges == 0,
             "%g s before", w->base_s);
    FL_CHECK(near(fl_tightrope_credit(w), again), "%g s still", fl_tightrope_credit(w));
    free(w);
    open_work(FL_TIGHTROPE_RECORDS);
    w->origin = 5, w->unit_s = 1;
    fl_tightrope_new_phase(w); /* kinds are held against themselves */
    CU_ASSERT(w->origin == 5 && w->unit_s == 1);
    free(w);
}

/* Nothing tells the work from now on; what was credited stays, once more for a window that was closed just then. */
static void test_to_certain(void) {
    open_counter(0.015, 100);
    fl_tightrope_close(w, w->last_ns, 0);
    const double credit = fl_tightrope_credit(w), elapsed_s = w->elapsed_s;
    fl_tightrope_work_turn(w, FL_TIGHTROPE_NONE, w->last_ns);
    FL_CHECK(w->signal == FL_TIGHTROPE_NONE && near(fl_tightrope_credit(w), credit) && w->elapsed_s == elapsed_s &&
                 w->floor_s == 0,
             "%g s", fl_tightrope_credit(w));
    free(w);
}

/* Credit by a counter: none without a reference but what is certain; ends of records at their cost; of an uncertain one
 * what is certain at least; never more than passed. */
static void test_credit_of_a_counter(void) {
    open_counter(0.015, 100);
    fl_tightrope_close(w, w->last_ns, 0);
    const double credit = fl_tightrope_credit(w), certain = 2 + 1.5 * 0.5 * 0.97;
    w->taken_back_s = 0.25;
    FL_CHECK(near(fl_tightrope_credit(w), credit - 0.25), "%g s", fl_tightrope_credit(w));
    w->taken_back_s = 0, w->base_s = 0.125;
    FL_CHECK(fabs(fl_tightrope_credit(w) - credit - 0.125) < 1e-3, "%g s", fl_tightrope_credit(w));
    w->base_s = 3;
    FL_CHECK(near(fl_tightrope_credit(w), 3.5), "no more than passed: %g s", fl_tightrope_credit(w));
    w->base_s = 0, w->origin = 100;
    FL_CHECK(near(fl_tightrope_credit(w), certain), "fewer units than are certain: %g s", fl_tightrope_credit(w));
    w->origin = 25, w->base_s = 0.25;
    FL_CHECK(fabs(fl_tightrope_credit(w) - credit) < 1e-3, "since 25 units: %g s", fl_tightrope_credit(w));
    w->origin = 250, w->base_s = 2.5; /* of what came since then nothing was measured at the top clock */
    FL_CHECK(near(fl_tightrope_credit(w), 2.5 + fl_tightrope_rate_least(&w->rate, 3, 0, 50, 0)), "the last 50: %g s",
             fl_tightrope_credit(w));
    w->origin = 0, w->base_s = 0, w->quantum = 2, w->total = 600;
    FL_CHECK(near(fl_tightrope_credit(w), credit), "two of the counter each: %g s", fl_tightrope_credit(w));
    w->quantum = 1, w->total = 300, w->moved_ns -= S / 50;
    FL_CHECK(near(fl_tightrope_credit(w), credit + 0.02 * 0.5 * 0.97), "the unit that runs: %g s",
             fl_tightrope_credit(w) - credit);
    w->moved_ns += S / 50, w->signal = FL_TIGHTROPE_ENDS, w->cost = 0.25;
    FL_CHECK(near(fl_tightrope_credit(w), credit / 1.25), "ends of records: %g s", fl_tightrope_credit(w));
    w->unit_s = 0;
    FL_CHECK(near(fl_tightrope_credit(w), certain / 1.25), "no reference: %g s", fl_tightrope_credit(w));
    w->unit_s = 0.01, w->alike = FL_TIGHTROPE_ALIKE_NONE;
    FL_CHECK(near(fl_tightrope_credit(w), certain / 1.25), "units unlike: %g s", fl_tightrope_credit(w));
    w->signal = FL_TIGHTROPE_KERNELS, w->alike = FL_TIGHTROPE_ALIKE_ALL, w->sigmas = 1e4;
    FL_CHECK(near(fl_tightrope_credit(w), certain), "an uncertain reference: %g s", fl_tightrope_credit(w));
    free(w);
}

/* From an error on of a hundredth of what the units were worth off the top clock what is certain counts at least: half
 * a second was taken back, so that it is more. */
static void test_uncertain_reference(void) {
    static const double errors_s[] = {0.0095, 0.0105};
    for (size_t i = 0; i < FL_COUNT(errors_s); i++) {
        open_counter(0.015, 100);
        fl_tightrope_close(w, w->last_ns, 0);
        w->taken_back_s = 0.5;
        const double work = 300 * w->unit_s;
        double low = 0, high = 1e5, least = 0;
        for (int k = 0; k < 60; k++) {
            w->sigmas = (low + high) / 2;
            least = fl_tightrope_rate_least(&w->rate, w->sigmas, 0, 300, w->top_s);
            *(work - least < errors_s[i] * (work - 2) ? &low : &high) = w->sigmas;
        }
        const double credit = fl_tightrope_credit(w);
        FL_CHECK(fabs(work - least - errors_s[i] * (work - 2)) < 1e-5 &&
                     near(credit, i ? 2 + 1.5 * 0.5 * 0.97 : least - 0.5),
                 "an error of %g s: %g s", work - least, credit);
        free(w);
    }
}

/* ---- from one signal to another ---- */

/* What was credited stays, of the present window too, and the clock is what it was. The rest begins anew. */
static void test_turn(void) {
    open_work(FL_TIGHTROPE_BYTES);
    w->record_s = 0.5, w->afford = 0.25, w->cost = 0.125;
    w->kinds = 3, w->kind[2].count = 7;
    w->total = 9, w->quantum = 1;
    fl_tightrope_window(w, 0, 1, 0);
    fl_tightrope_work_turn(w, FL_TIGHTROPE_ENDS, 4 * S);
    FL_CHECK(w->signal == FL_TIGHTROPE_ENDS && w->before_s == 4 && w->before_elapsed_s == 4 && w->elapsed_s == 4 &&
                 w->top_s == 4 && w->begin_ns == 4 * S && w->last_ns == 4 * S && w->last_end_ns == 4 * S &&
                 w->moved_ns == 4 * S && w->window_ns == 4 * S && w->origin_ns == -1,
             "all ran at the top clock so far");
    FL_CHECK(w->tolerance == 0.03 && w->sigmas == 3 && w->cost == 0.125 && w->record_s == 0.5 && w->afford == 0.25,
             "what is assumed stays");
    FL_CHECK(w->kinds == 0 && w->kind[2].count == 0 && w->total == 0 && w->unit_s == 0 && isnan(w->counter) &&
                 w->share == 1 && w->at_top && w->busy_share == 1,
             "the rest begins anew");
    free(w);
    open_work(FL_TIGHTROPE_NONE);
    fl_tightrope_window(w, 6 * S, 0.5, 0);
    w->elapsed_s = 6, w->top_s = 2, w->floor_s = 1;
    w->settled_ns = 8 * S;
    fl_tightrope_work_turn(w, FL_TIGHTROPE_RECORDS, 7 * S);
    FL_CHECK(near(w->before_s, 2 + 1.5 * 0.97) && w->top_s == w->before_s && w->elapsed_s == 7 && w->floor_s == 0 &&
                 w->clock == 0.5 && w->share == 0.5 && !w->at_top,
             "below the top what is certain: credited %g s", w->before_s);
    free(w);
}

/* A visit to the top clock ends with its window: one mean more of each kind that ran in it. */
static void test_visit(void) {
    open_work(FL_TIGHTROPE_RECORDS);
    fl_tightrope_window(w, 0, 1, 0);
    w->kinds = 2;
    w->kind[1] = (fl_tightrope_kind){.count = 6, .sum_s = 12, .square_s = 26, .now = 4, .now_s = 10};
    w->kind[1].visits = 1, w->kind[1].mean_s = 1, w->kind[1].mean_square_s = 1, w->kind[1].visit_square_s = 2;
    w->kind[0] = (fl_tightrope_kind){.now = 1, .now_s = 0.5};
    w->known_s = 3, w->ref_s = 2, w->busy_share = 0.5;
    const fl_tightrope_seen_window m = fl_tightrope_close(w, 20 * S, 0);
    const fl_tightrope_kind *k = &w->kind[1];
    FL_CHECK(k->visits == 2 && k->mean_s == 3.5 && k->mean_square_s == 7.25 && k->visit_square_s == 27 && k->now == 0 &&
                 k->now_s == 0 && w->kind[0].visits == 1 && w->kind[0].mean_s == 0.5,
             "%g visits", k->visits);
    /* Kernels stretched by half, for half of the time; 2 s^2 of 12 s, over 20 s. */
    FL_CHECK(near(m.slowdown, 1.25) && near(w->rate_s, 12) && near(w->spread, 2.0 / 12) &&
                 near(m.noise, sqrt(2.0 / 12 / 20)),
             "slowdown %g, noise %g", m.slowdown, m.noise);
    free(w);
    open_work(FL_TIGHTROPE_RECORDS); /* no record has a reference: nothing is known of the slowdown */
    fl_tightrope_window(w, 0, 1, 0);
    CU_ASSERT(isnan(fl_tightrope_close(w, S, 0).slowdown) && w->spread == 0);
    free(w);
}

/* What records cost: by their number where it is known what one takes, of what kernels take without them. */
static void test_cost(void) {
    open_work(FL_TIGHTROPE_RECORDS);
    w->cost = 0.125, w->busy_s = 3, w->top_busy_s = 2, w->record_s = 0.01, w->recorded = 100;
    FL_CHECK(near(fl_tightrope_records_cost(w), 0.25), "%g", fl_tightrope_records_cost(w));
    w->recorded = 0;
    CU_ASSERT(fl_tightrope_records_cost(w) == 0.125);
    w->recorded = 1, w->record_s = 0;
    CU_ASSERT(fl_tightrope_records_cost(w) == 0.125);
    w->record_s = 10; /* records alone */
    FL_CHECK(near(fl_tightrope_records_cost(w), 1e10), "%g", fl_tightrope_records_cost(w));
    static const struct {
        int64_t signal;
        int takes, dear;
    } rows[] = {{FL_TIGHTROPE_RECORDS, 1, 0},
                {FL_TIGHTROPE_ENDS, 1, 1},
                {FL_TIGHTROPE_NONE, 0, 0},
                {FL_TIGHTROPE_KERNELS, 0, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        w->signal = rows[i].signal;
        w->begin_ns = 0, w->last_ns = 4 * S, w->afford = 0.25, w->record_s = 1e-2, w->recorded = 102;
        CU_ASSERT(fl_tightrope_records_dear(w) == rows[i].dear);
        CU_ASSERT(fl_tightrope_records_kept(w) == (rows[i].takes ? 0.01 : 0));
        w->recorded = 101; /* 10 ms more than a quarter of the time, and no more */
        CU_ASSERT(!fl_tightrope_records_dear(w));
        w->record_s = 0;
        CU_ASSERT(!fl_tightrope_records_dear(w) && fl_tightrope_records_kept(w) == 0);
    }
    free(w);
}

/* Whether records rest after a first burst of so many kernels at the top clock. They may take 0.25 % of the time: those
 * that take less than twice that stay on. Those that take a share of long kernels stay on too, as the stretch between
 * two bursts may last for 0.03 s only then. */
static void test_rest(void) {
    static const struct {
        const char *what;
        double record_s, cost;
        int kernels;
        int64_t each_ns;
        int rests;
        double share;
    } rows[] = {{"a share of short kernels", 0, 0.02, 40, 100000, 1, 0.0025 / 0.02},
                {"too few", 0, 0.02, 15, 400000, 0, 0},
                {"too short", 0, 0.02, 39, 100000, 0, 0},
                {"a share of long kernels", 0, 0.02, 17, 10000000, 0, 1},
                {"a small share", 0, 0.0049, 40, 100000, 0, 1},
                {"a time", 1e-6, 0.02, 40, 100000, 1, 0.0025 / (1 / 99.0)},
                {"a time of long kernels", 1e-3, 0.02, 17, 10000000, 1, 0.0025 / (1 / 9.0)},
                {"free", 0, 0, 40, 100000, 0, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fl_kernel_record record[40] = {0};
        fl_gpu_sample gpu = {0};
        w = calloc(1, sizeof *w);
        CU_ASSERT_FATAL(w != NULL);
        w->record_s = rows[i].record_s;
        fl_tightrope_work_begin(w, FL_TIGHTROPE_RECORDS, 0, 0.03, 4.5, rows[i].cost);
        fl_tightrope_window(w, 0, 1, 0);
        for (int k = 0; k < rows[i].kernels; k++)
            record[k] = (fl_kernel_record){.start_ns = k * rows[i].each_ns, .end_ns = (k + 1) * rows[i].each_ns};
        const fl_sample sample = {.time_ns = rows[i].kernels * rows[i].each_ns,
                                  .gpu_count = 1,
                                  .gpu = &gpu,
                                  .record = record,
                                  .record_count = (uint64_t)rows[i].kernels};
        fl_tightrope_read(w, &sample, 0, INT64_MAX);
        const int turned = fl_tightrope_thin_turn(w, 0.05);
        FL_CHECK(turned == rows[i].rests && (w->thin.off == FL_TIGHTROPE_OFF) == rows[i].rests &&
                     near(w->thin.share, rows[i].share),
                 "%s: turned %d, share %g", rows[i].what, turned, w->thin.share);
        free(w);
    }
}

/* Iterations of 30 kernels of 1 ms and a wait: a window is to hold four of them. */
static void test_cycle(void) {
    open_work(FL_TIGHTROPE_KERNELS);
    fl_tightrope_window(w, 0, 1, 0);
    double now_s = 0;
    for (int k = 1; now_s < 4; k++) {
        fl_tightrope_rate_edge(&w->rate, (int64_t)(now_s * 1e9), 1e-6, 1);
        now_s += k % 30 ? 0.001 : 0.021;
    }
    fl_tightrope_close(w, 4 * S, 0);
    const fl_tightrope_pace p = fl_tightrope_rate_reference(&w->rate, 1);
    CU_ASSERT_FATAL(w->rate.block == 30 && p.block_s > 0);
    FL_CHECK(near(w->cycle_s, 4 * p.block_s) && fabs(w->cycle_s - 0.2) < 1e-3, "%g s", w->cycle_s);
    FL_CHECK(near(w->rate_s, w->rate.last_s) && w->unit_s == p.unit_s && w->spread == p.spread, "%g s", w->rate_s);
    free(w);
}

/* Enough is known of a counter from six ends on, if the error is within what is wanted. */
static void test_enough(void) {
    for (int ends = 5; ends < 8; ends++) {
        open_work(FL_TIGHTROPE_KERNELS);
        fl_tightrope_window(w, 0, 1, 0);
        for (int k = 0; k < ends; k++)
            fl_tightrope_rate_edge(&w->rate, k * S / 100, 1e-6, 1);
        CU_ASSERT(fl_tightrope_enough(w, 1e9) == (ends >= 6));
        const double error = fl_tightrope_rate_error(&w->rate, 3, 1);
        CU_ASSERT(ends < 6 || (fl_tightrope_enough(w, error) && !fl_tightrope_enough(w, error * 0.999)));
        FL_CHECK(near(fl_tightrope_reference_error(w), error / 3), "%g", fl_tightrope_reference_error(w));
        w->at_top = 0; /* what was seen there is another's */
        CU_ASSERT(fl_tightrope_enough(w, error) == 0 && fl_tightrope_reference_error(w) > error / 3);
        free(w);
    }
}

FL_SUITE("tightrope_ledger", {"credit of records", test_credit_of_records}, {"credit of a kind", test_credit_of_a_kind},
         {"visits that differ", test_visits}, {"visits that differ by chance", test_visits_by_chance},
         {"what a clock is worth", test_share}, {"stretches", test_stretches}, {"blindfold", test_blindfold},
         {"power", test_power}, {"time", test_time}, {"a pace that no clock has", test_doubtful},
         {"no pace", test_no_pace}, {"a reference that is doubted", test_doubted_reference},
         {"distrust", test_distrust}, {"a new phase", test_new_phase}, {"nothing tells the work", test_to_certain},
         {"credit of a counter", test_credit_of_a_counter}, {"an uncertain reference", test_uncertain_reference},
         {"another signal", test_turn}, {"a visit", test_visit}, {"what records cost", test_cost},
         {"records that rest", test_rest}, {"cycles", test_cycle}, {"enough", test_enough})
