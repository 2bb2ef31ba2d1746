/* A counter of energy that is slow to read, and a host that asks for it: what readings cost, and how right the powers
 * are that the values and their times give. Times in ms. */
#pragma once

#include "harness/live/vendor/nvml/inside.h"
#include "policies/random.h"

#include <math.h>
#include <stddef.h>

typedef struct pace_world {
    const char *what;
    bool spare;
    double step_ms, jitter_ms; /* each step comes up to so much beside its beat */
    double drift;              /* each step is longer than the one before by this part */
    bool uneven;               /* steps between a fifth and nine fifths of step_ms: there is no beat */
    double then_s, then_ms;    /* from then on the step is another one; 0 = never */
    double stops_s;            /* from then on it stands still; 0 = never */
    double poll_ms, spread;    /* the host asks each poll_ms, and up to so large a part of that earlier or later */
    double pause_ms;           /* one time in 100 it asks so much later; 0 = never */
    double cost_ms;            /* of a reading: half to one and a half times as much */
    double for_s, from_s;      /* what is counted begins at from_s */
} pace_world;

typedef struct pace_outcome {
    double reads_per_s, share;  /* readings, and the part of the time that they take */
    double begin_reads_per_s;   /* the same before from_s */
    double error_pct, mean_pct; /* of the mean power over 0.9 s and more: the worst, and the mean of its size */
    double late_ms;             /* the longest from a step until it was shown, less the time between two askings */
    double stands_s;            /* the longest that a value stood */
    unsigned powers, untimed, falls, wrong; /* untimed: values of unknown time; falls: times that did not rise; wrong:
                                               values that the counter never had */
} pace_outcome;

enum { PACE_STEPS = 200000, PACE_SHOWN = 20000 };
#define PACE_WATTS 300.0

/* The times of all steps; the counter's value after step k is PACE_WATTS x its time. */
static size_t pace_steps(const pace_world *w, fl_random *random, double *at_ms) {
    size_t count = 0;
    double beat = w->step_ms * fl_random_unit(random), step = w->step_ms;
    while (beat < w->for_s * 1e3 && count < PACE_STEPS && !(w->stops_s > 0 && beat > w->stops_s * 1e3)) {
        at_ms[count++] = beat + w->jitter_ms * (2 * fl_random_unit(random) - 1);
        step *= 1 + w->drift;
        if (w->then_s > 0 && beat > w->then_s * 1e3)
            step = w->then_ms;
        beat += w->uneven ? step * (0.2 + 1.6 * fl_random_unit(random)) : step;
    }
    return count;
}

static pace_outcome pace_run(const pace_world *w, uint64_t seed) {
    static double at_ms[PACE_STEPS], shown_j[PACE_SHOWN], shown_ns[PACE_SHOWN];
    fl_random random = fl_random_seed(seed, 0);
    const size_t steps = pace_steps(w, &random, at_ms);
    fl_pace p = {.spare = w->spare};
    pace_outcome o = {0};
    size_t next = 0, shown = 0;
    unsigned reads = 0, begin_reads = 0;
    double cost_ms = 0, asked = 0, stood_ms = 0, t = 50, last = -1;
    while (t < w->for_s * 1e3) {
        double took = 0;
        while (next < steps && at_ms[next] <= t)
            next++;
        if (!fl_pace_rests(&p, (int64_t)(t * 1e6))) {
            took = w->cost_ms * (0.5 + fl_random_unit(&random));
            size_t then = next;
            while (then < steps && at_ms[then] <= t + took * fl_random_unit(&random)) /* it is read at some instant */
                then++;
            fl_pace_read(&p, (int64_t)(t * 1e6), then ? PACE_WATTS * 1e-3 * at_ms[then - 1] : 0, (int64_t)(took * 1e6));
            reads += t >= w->from_s * 1e3;
            begin_reads += t < w->from_s * 1e3;
            cost_ms += t >= w->from_s * 1e3 ? took : 0;
        }
        o.untimed += p.value != last && !p.timed && t >= w->from_s * 1e3;
        if (p.value != last && p.timed && t >= w->from_s * 1e3 && shown < PACE_SHOWN) {
            shown_j[shown] = p.value;
            shown_ns[shown] = (double)p.moved_ns;
            o.falls += shown && shown_ns[shown] <= shown_ns[shown - 1];
            o.falls += p.moved_ns > (int64_t)((t + took) * 1e6) + 1;
            shown++;
        }
        if (p.value != last)
            stood_ms = t;
        else if (t >= w->from_s * 1e3)
            o.stands_s = fmax(o.stands_s, (t - stood_ms) * 1e-3);
        last = p.value;
        const double seen_ms = p.value / PACE_WATTS * 1e3;
        if (t >= w->from_s * 1e3 && next && seen_ms < at_ms[next - 1] - 1e-6 &&
            asked > 0) { /* a step is not shown yet */
            size_t first = next - 1;
            while (first && at_ms[first - 1] > seen_ms + 1e-6)
                first--;
            o.late_ms = fmax(o.late_ms, t - at_ms[first] - (t - asked));
        }
        o.wrong += seen_ms > t + took + 1e-6;
        asked = t;
        double wait = w->poll_ms * (1 + w->spread * (2 * fl_random_unit(&random) - 1));
        wait += w->pause_ms > 0 && fl_random_below(&random, 100) == 0 ? w->pause_ms : 0;
        t += fmax(wait, took);
    }
    for (size_t i = 0, j = 0; i < shown; i++) {
        while (j < shown && shown_ns[j] - shown_ns[i] < 0.9e9)
            j++;
        if (j == shown)
            break;
        const double watts = (shown_j[j] - shown_j[i]) / ((shown_ns[j] - shown_ns[i]) * 1e-9);
        const double error = fabs(watts / PACE_WATTS - 1) * 100;
        o.error_pct = fmax(o.error_pct, error);
        o.mean_pct += error;
        o.powers++;
    }
    o.mean_pct /= o.powers ? o.powers : 1;
    o.reads_per_s = reads / (w->for_s - w->from_s);
    o.begin_reads_per_s = w->from_s > 0 ? begin_reads / w->from_s : 0;
    o.share = cost_ms * 1e-3 / (w->for_s - w->from_s);
    return o;
}
