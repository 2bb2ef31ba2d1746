/* When a slow counter is read: by hand, and as a property of random steps and readings. */
#include "harness/live/vendor/pace.h"
#include "policies/random.h"
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
    } rows[] = {{"as an H200, read each 2 ms", 100, 2, 3500000, 0.1, 0.15},
                {"each 3.7 ms, as its readings allow", 100, 3.7, 3500000, 0.1, 0.18},
                {"each 10 ms", 100, 10, 3500000, 0.2, 0.35},
                {"a short step", 20, 1, 3500000, 0.1, 0.2},
                {"each 13 ms: no step is known to a tenth", 100, 13, 3500000, 1, 1},
                {"quick to read", 100, 2, 499999, 1, 1},
                {"just not quick", 100, 2, 500000, 0.1, 0.15},
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
    for (uint64_t seed = 1; seed <= 500; seed++) {
        fl_random random = fl_random_seed(seed, 0);
        const double step = 1 + 300 * fl_random_unit(&random), poll = 0.1 + 50 * fl_random_unit(&random);
        const outcome o = follow(step, poll, 20, 1000000, 1e9, 1);
        FL_CHECK(o.latest_ns <= 1000 && !o.wrong, "seed %llu: steps of %g ms read each %g ms: late by %lld ns",
                 (unsigned long long)seed, step, poll, (long long)o.latest_ns);
    }
}

FL_SUITE("pace", {"rows", test_rows}, {"other steps", test_other_steps}, {"any steps", test_any})
