/* When a slow counter is read: by hand, and as a property of random steps and readings. */
#include "tests/support/pace_world.h"
#include "tests/support/suite.h"

#define MS INT64_C(1000000)

typedef struct outcome {
    unsigned asked, read;
    int64_t latest_ns; /* longest time from a move until a reading showed it, beyond the time between readings */
    bool wrong;        /* a value that the counter did not have since the last reading */
} outcome;

/* A counter that moves each step_ms, read each poll_ms for a time. From `after_s` on it moves each then_ms. */
static outcome follow(double step_ms, double poll_ms, double for_s, int64_t cost_ns, double after_s, double then_ms) {
    fl_pace p = {0};
    outcome o = {0};
    double shown = -1, next = step_ms, value = 0;
    double moved_ms = 0;
    for (double t = 0; t < for_s * 1e3; t += poll_ms) {
        while (next <= t) {
            moved_ms = next;
            value++;
            next += next >= after_s * 1e3 ? then_ms : step_ms;
        }
        o.asked++;
        if (!fl_pace_rests(&p, (int64_t)(t * 1e6))) {
            fl_pace_read(&p, (int64_t)(t * 1e6), value, cost_ns);
            o.read++;
        }
        o.wrong |= p.value > value;
        if (shown != p.value && shown >= 0 && p.value == value) {
            const int64_t late = (int64_t)((t - moved_ms - poll_ms) * 1e6);
            o.latest_ns = late > o.latest_ns ? late : o.latest_ns;
        }
        shown = p.value;
    }
    return o;
}

static void test_rows(void) {
    static const struct {
        const char *what;
        double step_ms, poll_ms;
        int64_t cost_ns;
        double least, most; /* share of the readings that is made, over 60 s */
    } rows[] = {{"as an H200, read each 2 ms", 100, 2, 3500000, 0.05, 0.15},
                {"each 3.7 ms, as its readings allow", 100, 3.7, 3500000, 0.1, 0.18},
                {"each 10 ms", 100, 10, 3500000, 0.2, 0.35},
                {"a short step", 20, 1, 3500000, 0.1, 0.2},
                {"each 13 ms", 100, 13, 3500000, 0.15, 0.3},
                {"each 47 ms: no step is told from the next one", 100, 47, 3500000, 1, 1},
                {"quick to read", 100, 2, 499999, 1, 1},
                {"just not quick", 100, 2, 500000, 0.05, 0.15},
                {"rarely", 100, 1000, 3500000, 1, 1},
                {"one that never moves", 1e9, 2, 3500000, 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const outcome o = follow(rows[i].step_ms, rows[i].poll_ms, 60, rows[i].cost_ns, 1e9, 1);
        const double share = (double)o.read / o.asked;
        FL_CHECK(share >= rows[i].least && share <= rows[i].most, "%s: %g of the readings", rows[i].what, share);
        FL_CHECK(!o.latest_ns && !o.wrong, "%s: late by %lld ns", rows[i].what, (long long)o.latest_ns);
    }
}

/* A counter that takes to stepping otherwise is late for one old step at most, and then learned anew. */
static void test_other_steps(void) {
    static const struct {
        double then_ms, most;
    } rows[] = {{10, 0.6}, /* too short for readings 2 ms apart: each is made again */
                {37, 0.4}, {50, 0.3}, {89, 0.2}, {91, 0.2}, {120, 0.2}, {250, 0.4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const outcome o = follow(100, 2, 60, 3500000, 30, rows[i].then_ms);
        FL_CHECK(o.latest_ns <= 95 * MS && !o.wrong, "from 100 to %g ms: late by %lld ns", rows[i].then_ms,
                 (long long)o.latest_ns);
        const double share = (double)o.read / o.asked;
        FL_CHECK(share <= rows[i].most, "from 100 to %g ms: %g of the readings", rows[i].then_ms, share);
    }
}

static void test_any(void) {
    const uint64_t seeds = fl_nightly() ? 500 : 60;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        fl_random random = fl_random_seed(seed, 0);
        const double step = 1 + 300 * fl_random_unit(&random), poll = 0.1 + 50 * fl_random_unit(&random);
        const outcome o = follow(step, poll, 20, 1000000, 1e9, 1);
        FL_CHECK(o.latest_ns <= 1000 && !o.wrong, "seed %llu: steps of %g ms read each %g ms: late by %lld ns",
                 (unsigned long long)seed, step, poll, (long long)o.latest_ns);
    }
}

/* ---- counters that are as slow as an H200's, and hosts that are as uneven as a live one ---------------------------
 */

static uint64_t seeds_of_worlds(void) { return fl_nightly() ? 4 : 1; }

#define H200 .step_ms = 100, .cost_ms = 4.5, .for_s = 100, .from_s = 20
#define EACH_20 .poll_ms = 20, .spread = 0.005
#define UNEVEN_20 .poll_ms = 20, .spread = 0.5
#define PAUSES .poll_ms = 20, .spread = 0.02, .pause_ms = 90
#define UNEVEN_2 .poll_ms = 2, .spread = 0.5

/* Each seed of a row stays within its limits. A needed value is shown as soon as a reading each time would show it. */
static void test_worlds(void) {
    static const struct {
        pace_world w;
        double reads_per_s, share, error_pct, late_ms, stands_s;
    } rows[] = {
        {{.what = "needed, each 20 ms", H200, EACH_20}, 23, 0.11, 1.5, 1, 0.2},
        {{.what = "needed, each 20 ms, jitter", H200, EACH_20, .jitter_ms = 2}, 23, 0.11, 1.8, 1, 0.2},
        {{.what = "needed, unevenly", H200, UNEVEN_20, .jitter_ms = 2}, 18, 0.09, 1.6, 1, 0.2},
        {{.what = "needed, with pauses", H200, PAUSES, .jitter_ms = 2}, 22, 0.11, 2.5, 1, 0.3},
        {{.what = "needed, each 2 ms", H200, UNEVEN_2, .jitter_ms = 2}, 27, 0.13, 1, 1, 0.2},
        {{.what = "needed, a drift", H200, EACH_20, .jitter_ms = 1, .drift = 2e-6}, 23, 0.11, 1.5, 1, 0.2},
        {{.what = "needed, no beat", H200, EACH_20, .uneven = true}, 51, 0.25, 1e9, 180, 0.3},
        {{.what = "needed, another step", H200, EACH_20, .jitter_ms = 1, .then_s = 50, .then_ms = 80},
         27,
         0.13,
         1e9,
         100,
         0.2},
        {{.what = "spare, each 20 ms", .spare = true, H200, EACH_20}, 3.4, 0.015, 1.2, 1e9, 2.5},
        {{.what = "spare, each 20 ms, jitter", .spare = true, H200, EACH_20, .jitter_ms = 2},
         3.4,
         0.015,
         1.2,
         1e9,
         2.5},
        {{.what = "spare, unevenly", .spare = true, H200, UNEVEN_20, .jitter_ms = 2}, 3.4, 0.015, 1.4, 1e9, 2.5},
        {{.what = "spare, with pauses", .spare = true, H200, PAUSES, .jitter_ms = 2}, 4.5, 0.02, 2.5, 1e9, 3},
        {{.what = "spare, each 2 ms", .spare = true, H200, UNEVEN_2, .jitter_ms = 2}, 3.5, 0.015, 1, 1e9, 3},
        {{.what = "spare, a drift", .spare = true, H200, EACH_20, .jitter_ms = 1, .drift = 2e-6},
         3.4,
         0.015,
         1.2,
         1e9,
         3},
        {{.what = "spare, no beat", .spare = true, H200, EACH_20, .uneven = true}, 4.2, 0.02, 1e9, 1e9, 5},
        {{.what = "spare, another step", .spare = true, H200, EACH_20, .jitter_ms = 1, .then_s = 50, .then_ms = 80},
         6,
         0.03,
         1e9,
         1e9,
         4},
        {{.what = "spare, a step of a second",
          .spare = true,
          .step_ms = 1000,
          .cost_ms = 4.5,
          .for_s = 100,
          .from_s = 20,
          EACH_20},
         4.2,
         0.02,
         1e9,
         1e9,
         6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pace_outcome worst = {0};
        for (uint64_t seed = 1; seed <= seeds_of_worlds(); seed++) {
            const pace_outcome o = pace_run(&rows[i].w, seed);
            FL_CHECK(o.reads_per_s <= rows[i].reads_per_s && o.share <= rows[i].share,
                     "%s, seed %llu: %g readings a second, %g of the time", rows[i].w.what, (unsigned long long)seed,
                     o.reads_per_s, o.share);
            FL_CHECK(o.powers > 0 && o.error_pct <= rows[i].error_pct,
                     "%s, seed %llu: of %u powers one is wrong by %g %%", rows[i].w.what, (unsigned long long)seed,
                     o.powers, o.error_pct);
            FL_CHECK(o.late_ms <= rows[i].late_ms && o.stands_s <= rows[i].stands_s,
                     "%s, seed %llu: late by %g ms, and one stood for %g s", rows[i].w.what, (unsigned long long)seed,
                     o.late_ms, o.stands_s);
            FL_CHECK(!o.falls && !o.wrong, "%s, seed %llu: %u times fell, %u values were never there", rows[i].w.what,
                     (unsigned long long)seed, o.falls, o.wrong);
            FL_CHECK(o.begin_reads_per_s * rows[i].w.from_s <= 330 || !rows[i].w.spare,
                     "%s, seed %llu: %g readings a second at first", rows[i].w.what, (unsigned long long)seed,
                     o.begin_reads_per_s);
            worst.reads_per_s = fmax(worst.reads_per_s, o.reads_per_s);
            worst.share = fmax(worst.share, o.share);
            worst.error_pct = fmax(worst.error_pct, o.error_pct);
            worst.mean_pct = fmax(worst.mean_pct, o.mean_pct);
        }
        printf("\n    %-26s %5.2f readings a second, %4.1f %% of the time, powers wrong by %.2f %%, at most %.2f %%",
               rows[i].w.what, worst.reads_per_s, 100 * worst.share, worst.mean_pct, worst.error_pct);
    }
    printf(" ");
}

/* A counter that stops is read on within the budget, and shown as it stands: the host's own watch ends the session. */
static void test_stops(void) {
    for (int spare = 0; spare < 2; spare++)
        for (uint64_t seed = 1; seed <= seeds_of_worlds(); seed++) {
            const pace_world w = {.spare = spare, H200, EACH_20, .jitter_ms = 1, .stops_s = 50};
            const pace_outcome o = pace_run(&w, seed);
            FL_CHECK(!o.falls && !o.wrong && o.stands_s > 49 && o.stands_s < 51, "seed %llu: stood for %g s",
                     (unsigned long long)seed, o.stands_s);
            FL_CHECK(!spare || o.share < 0.02, "seed %llu: %g of the time", (unsigned long long)seed, o.share);
        }
}

/* Whoever read often enough to learn the beat, and asks seldom then. Of a needed counter the time of each value is
 * known again after some seconds, as where it is read each time. A spare one is left alone for 6 s at most, also where
 * the host asks at the same place of the beat each time, at which a step cannot be told from the next one. */
static void test_then_seldom(void) {
    static const double then_ms[] = {120, 200, 500, 1000};
    const uint64_t seeds = fl_nightly() ? 60 : 6; /* odd ones ask each 2 ms, even ones each 20 ms */
    for (int spare = 0; spare < 2; spare++)
        for (size_t i = 0; i < sizeof then_ms / sizeof *then_ms; i++)
            for (uint64_t seed = 1; seed <= seeds; seed++) {
                fl_random random = fl_random_seed(seed, 5);
                fl_pace p = {.spare = spare != 0};
                const double phase = 100 * fl_random_unit(&random), poll = seed % 2 ? 2 : 20,
                             often_ms = spare ? 60e3 : 8e3;
                double longest = 0, read_ms = 0;
                for (double t = 0; t < often_ms + 200e3; t += t < often_ms ? poll : then_ms[i]) {
                    const int64_t t_ns = (int64_t)(t * 1e6);
                    if (!fl_pace_rests(&p, t_ns)) {
                        const double jitter = 2 * fl_random_unit(&random) - 1;
                        fl_pace_read(&p, t_ns, floor((t - phase - jitter) / 100), 4500000);
                        longest = t > often_ms ? fmax(longest, t - read_ms) : longest;
                        read_ms = t;
                    }
                }
                if (spare)
                    FL_CHECK(longest <= 6000 + then_ms[i], "spare, then each %g ms, seed %llu: not read for %g ms",
                             then_ms[i], (unsigned long long)seed, longest);
                else
                    FL_CHECK(p.timed, "needed, then each %g ms, seed %llu: no time", then_ms[i],
                             (unsigned long long)seed);
            }
}

FL_SUITE("pace", {"rows", test_rows}, {"other steps", test_other_steps}, {"any steps", test_any},
         {"worlds", test_worlds}, {"stops", test_stops}, {"then seldom", test_then_seldom})
