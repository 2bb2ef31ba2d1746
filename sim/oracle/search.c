/* The clairvoyant schedule of a table: of all its work where it has no positions (work.c), else over its
 * positions.
 *
 * Each price on time gives a schedule (its point of time and energy) and a line below which no schedule lies: weak
 * duality. The lines' upper envelope is convex, and E, E T and E T^2 are quasi-concave. Their minimum over the envelope
 * up to the limit is therefore at a corner, and it is a bound. The search adds a price at the lowest corner (the slope
 * between the points beside it; for energy under a limit this is the bisection on the price). It stops when the best
 * schedule meets the bound or the corner is a true gap. Mixing the two schedules beside the gap, single changes and
 * labels then close the gap from above. */
#include "sim/oracle/inside.h"

#include "sim/base/base.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PRICES_MAX 400
#define CHANGES_MAX 64

typedef struct fl_support { /* the schedule of least cost at a price */
    int64_t n;
    fl_total at;
} fl_support;

typedef struct fl_hunt {
    const fl_oracle_table *t;
    int m;
    int64_t limit_ps, fastest_ps;
    fl_support support[PRICES_MAX]; /* by price ascending: time descends, energy ascends */
    size_t count;
    uint32_t *choice, *other, *trial; /* positions entries each: the best schedule, and two buffers */
    fl_total best;
    long double bound_f;
    fl_wide bound_fj;
} fl_hunt;

/* ---- bounds ---- */

/* By one line, no schedule of this time uses less energy. Rounded down to whole fJ. */
static fl_wide line_at(const fl_support *s, int64_t time_ps) {
    return (s->at.cost - (fl_wide)s->n * time_ps) >> FL_PRICE_BITS;
}

static fl_wide envelope_at(const fl_support *a, const fl_support *b, int64_t time_ps) {
    fl_wide x = line_at(a, time_ps), y = line_at(b, time_ps);
    return x > y ? x : y;
}

/* Minimum of E T^m on the envelope between two neighbouring supports, up to the limit; INFINITY where all of it is
 * beyond. Times are whole ps, so a corner is examined on both sides. Rounded down. */
static long double least_between(const fl_hunt *h, const fl_support *a, const fl_support *b) {
    int64_t last = a->at.time_ps < h->limit_ps ? a->at.time_ps : h->limit_ps, first = b->at.time_ps;
    if (first > h->limit_ps)
        return INFINITY;
    int64_t t[4] = {first, last, first, first};
    if (b->n > a->n) {
        fl_wide corner = (b->at.cost - a->at.cost) / (b->n - a->n);
        t[2] = corner < first ? first : corner > last ? last : (int64_t)corner;
        t[3] = t[2] < last ? t[2] + 1 : last;
    }
    long double least = INFINITY;
    for (int k = 0; k < 4; k++) {
        long double f = fl_product(h->m, envelope_at(a, b, t[k]), t[k]);
        least = f < least ? f : least;
    }
    return h->m ? least * (1 - 0x1p-58L) : least;
}

/* The interval of prices whose corner is lowest; sets the bound. */
static size_t lowest(fl_hunt *h) {
    size_t pick = 0;
    long double least = INFINITY;
    for (size_t k = 0; k + 1 < h->count; k++) {
        long double f = least_between(h, &h->support[k], &h->support[k + 1]);
        if (f < least) {
            least = f;
            pick = k;
        }
    }
    /* faster than the dearest price makes it: a still dearer price, by the last line */
    const fl_support *end = &h->support[h->count - 1];
    if (end->at.time_ps > h->fastest_ps) {
        int64_t t[2] = {h->fastest_ps, end->at.time_ps < h->limit_ps ? end->at.time_ps : h->limit_ps};
        for (int k = 0; k < 2; k++) {
            long double f = fl_product(h->m, line_at(end, t[k]), t[k]);
            if (f < least)
                least = f, pick = h->count;
        }
    }
    h->bound_f = h->m ? least * (1 - 0x1p-58L) : least;
    return pick;
}

/* The envelope falls with time, so its minimum is at the limit; rounded up, since energies are whole fJ. */
static fl_wide least_energy(const fl_hunt *h) {
    const fl_wide up = (INT64_C(1) << FL_PRICE_BITS) - 1;
    fl_wide least = 0;
    for (size_t k = 0; k < h->count; k++) {
        const fl_support *s = &h->support[k];
        int64_t t = s->n ? h->limit_ps : 0; /* at price 0 the line is flat */
        fl_wide fj = (s->at.cost - (fl_wide)s->n * t + up) >> FL_PRICE_BITS;
        least = fj > least ? fj : least;
    }
    return least;
}

/* ---- schedules ---- */

static long double value(const fl_hunt *h, fl_wide energy_fj, int64_t time_ps) {
    return fl_product(h->m, energy_fj, time_ps);
}

static bool improves(const fl_hunt *h, fl_wide energy_fj, int64_t time_ps) {
    if (time_ps > h->limit_ps)
        return false;
    return h->m ? value(h, energy_fj, time_ps) < value(h, h->best.energy_fj, h->best.time_ps)
                : energy_fj < h->best.energy_fj;
}

static void keep_schedule(fl_hunt *h, const uint32_t *choice, const fl_total *total) {
    memcpy(h->choice, choice, h->t->positions * sizeof *choice);
    h->best = *total;
}

static fl_status add_price(fl_hunt *h, int64_t n, fl_diag *d) {
    fl_support s = {.n = n};
    fl_status status = fl_oracle_at_price(h->t, fl_price_at(n), h->trial, &s.at, d);
    if (status)
        return status;
    if (improves(h, s.at.energy_fj, s.at.time_ps))
        keep_schedule(h, h->trial, &s.at);
    size_t k = h->count++;
    for (; k > 0 && h->support[k - 1].n > n; k--)
        h->support[k] = h->support[k - 1];
    h->support[k] = s;
    return FL_OK;
}

/* A price strictly between two, or -1: the slope between their points, and now and then the middle of the prices, so
 * that the search cannot crawl. */
static int64_t price_between(const fl_support *a, const fl_support *b, size_t turn) {
    if (b->n - a->n < 2 || a->at.time_ps <= b->at.time_ps)
        return -1;
    fl_wide slope = ((b->at.energy_fj - a->at.energy_fj) << FL_PRICE_BITS) / ((fl_wide)a->at.time_ps - b->at.time_ps);
    if (turn % 8 == 7) /* the middle of the magnitudes, because prices span many powers of ten */
        slope = (fl_wide)sqrtl((long double)(a->n + 1) * (long double)b->n);
    if (slope <= a->n)
        return a->n + 1;
    return slope >= b->n ? b->n - 1 : (int64_t)slope;
}

static bool meets_bound(const fl_hunt *h) {
    if (!h->m)
        return h->best.energy_fj <= least_energy(h);
    return value(h, h->best.energy_fj, h->best.time_ps) <= h->bound_f * (1 + 0x1p-56L);
}

/* Adds prices until the lowest corner cannot rise any more. */
static fl_status raise_bound(fl_hunt *h, fl_diag *d) {
    for (size_t turn = 0;; turn++) {
        size_t k = lowest(h);
        if (meets_bound(h) || k + 1 >= h->count || h->count == PRICES_MAX)
            return FL_OK;
        int64_t n = price_between(&h->support[k], &h->support[k + 1], turn);
        if (n < 0)
            return FL_OK;
        fl_status s = add_price(h, n, d);
        if (s)
            return s;
    }
}

/* ---- closing the gap from above ---- */

/* Combines the first `cut` positions of one schedule with the rest of another: all cuts at the cost of one pass. */
static void mix(fl_hunt *h, const uint32_t *head, const uint32_t *tail) {
    const fl_oracle_table *t = h->t;
    uint64_t switches;
    fl_total sum = fl_oracle_total(t, tail, &switches);
    size_t best_cut = 0;
    for (size_t i = 0; i < t->positions; i++) { /* position i moves from the tail to the head */
        size_t to = i * t->choices + head[i], from = i * t->choices + tail[i];
        int64_t change = 0;
        if (i)
            change += (head[i] != head[i - 1]) - (tail[i] != head[i - 1]);
        if (i + 1 < t->positions)
            change += (tail[i + 1] != head[i]) - (tail[i + 1] != tail[i]);
        sum.time_ps += t->time_ps[to] - t->time_ps[from] + change * t->switch_ps;
        sum.energy_fj += t->energy_fj[to] - t->energy_fj[from] + (fl_wide)change * t->switch_fj;
        if (improves(h, sum.energy_fj, sum.time_ps)) {
            h->best = sum;
            best_cut = i + 1;
        }
    }
    if (best_cut) {
        memcpy(h->choice, head, best_cut * sizeof *head);
        memcpy(h->choice + best_cut, tail + best_cut, (t->positions - best_cut) * sizeof *tail);
    }
}

/* The schedules on both sides of the limit, mixed both ways. */
static fl_status mix_neighbours(fl_hunt *h, fl_diag *d) {
    size_t k = 0;
    while (k < h->count && h->support[k].at.time_ps > h->limit_ps)
        k++;
    if (!k || k == h->count)
        return FL_OK;
    uint32_t *slow = h->other, *fast = h->trial;
    fl_total unused;
    fl_status s = fl_oracle_at_price(h->t, fl_price_at(h->support[k - 1].n), slow, &unused, d);
    if (!s)
        s = fl_oracle_at_price(h->t, fl_price_at(h->support[k].n), fast, &unused, d);
    if (s)
        return s;
    mix(h, slow, fast);
    mix(h, fast, slow);
    return FL_OK;
}

/* The effect of a change of one position's choice on time and energy, including its switches. */
static void change_of(const fl_hunt *h, size_t i, uint32_t c, int64_t *ps, fl_wide *fj) {
    const fl_oracle_table *t = h->t;
    const uint32_t *now = h->choice;
    size_t to = i * t->choices + c, from = i * t->choices + now[i];
    int64_t switches = 0;
    if (i)
        switches += (c != now[i - 1]) - (now[i] != now[i - 1]);
    if (i + 1 < t->positions)
        switches += (now[i + 1] != c) - (now[i + 1] != now[i]);
    *ps = t->time_ps[to] - t->time_ps[from] + switches * t->switch_ps;
    *fj = t->energy_fj[to] - t->energy_fj[from] + (fl_wide)switches * t->switch_fj;
}

/* Makes the best change of a single position as long as one helps. */
static void polish(fl_hunt *h) {
    const fl_oracle_table *t = h->t;
    for (int turn = 0; turn < CHANGES_MAX; turn++) {
        fl_total now = h->best, found = now;
        size_t at = t->positions;
        uint32_t to = 0;
        for (size_t i = 0; i < t->positions; i++)
            for (uint32_t c = 0; c < t->choices; c++) {
                int64_t ps;
                fl_wide fj;
                change_of(h, i, c, &ps, &fj);
                if (fj >= 0 && ps >= 0)
                    continue;
                if (improves(h, now.energy_fj + fj, now.time_ps + ps)) {
                    found.energy_fj = now.energy_fj + fj;
                    found.time_ps = now.time_ps + ps;
                    h->best = found; /* the schedule to beat until the pass is over */
                    at = i;
                    to = c;
                }
            }
        if (at == t->positions)
            return;
        h->choice[at] = to;
    }
}

/* One choice from beginning to end, so that no static clock is better than the schedule. */
static void try_columns(fl_hunt *h) {
    const fl_oracle_table *t = h->t;
    for (uint32_t c = 0; c < t->choices; c++) {
        fl_total sum = {0};
        for (size_t i = 0; i < t->positions; i++) {
            sum.time_ps += t->time_ps[i * t->choices + c];
            sum.energy_fj += t->energy_fj[i * t->choices + c];
        }
        if (!improves(h, sum.energy_fj, sum.time_ps))
            continue;
        h->best = sum;
        for (size_t i = 0; i < t->positions; i++)
            h->choice[i] = c;
    }
}

/* ---- all together ---- */

static fl_status hunt(fl_hunt *h, bool *solved, fl_diag *d) {
    int m = h->m;
    fl_status s = add_price(h, 0, d);
    if (!s)
        s = add_price(h, FL_PRICE_MAX, d);
    h->m = 0; /* first the energy that the limit allows, whatever the objective */
    if (!s)
        s = raise_bound(h, d);
    h->bound_fj = least_energy(h);
    h->m = m;
    if (!s && m) {
        for (size_t k = 0; !s && k < h->count; k++) {
            const fl_support *known = &h->support[k];
            if (!improves(h, known->at.energy_fj, known->at.time_ps))
                continue;
            h->best = known->at;
            s = fl_oracle_at_price(h->t, fl_price_at(known->n), h->choice, &h->best, d);
        }
        if (s)
            return s;
        s = raise_bound(h, d);
    }
    if (!s)
        try_columns(h);
    *solved = !s && meets_bound(h);
    if (s || *solved)
        return s;
    if ((s = mix_neighbours(h, d)))
        return s;
    polish(h);
    *solved = meets_bound(h);
    if (*solved)
        return FL_OK;
    size_t k = lowest(h);
    int64_t n = h->support[k < h->count ? k : h->count - 1].n;
    return fl_oracle_labels(h->t, m, h->limit_ps, n, h->choice, &h->best, solved, d);
}

static int power_of_time(fl_objective objective) { return objective == FL_MIN_ED2P ? 2 : objective == FL_MIN_EDP; }

/* f: the bound of E T^m, in fJ ps^m. */
static void report_bound(int m, long double f, fl_wide bound_fj, fl_oracle_result *out) {
    out->bound_fj = bound_fj;
    out->bound_j = fl_joules(bound_fj);
    if (!m) {
        out->objective_bound = out->bound_j;
    } else { /* one part in 2^50 off for the change of units */
        double value = (double)(f * 1e-15L * (m == 2 ? 1e-24L : 1e-12L)) * (1 - 0x1p-50);
        out->objective_bound = value < out->objective ? value : out->objective;
    }
    out->gap_pct = out->objective_bound > 0 ? 100 * (out->objective - out->objective_bound) / out->objective_bound : 0;
}

static void report_total(fl_objective objective, fl_wide energy_fj, int64_t time_ps, fl_oracle_result *out) {
    out->feasible = true;
    out->energy_fj = energy_fj;
    out->time_ps = time_ps;
    out->energy_j = fl_joules(energy_fj);
    out->time_s = fl_seconds(time_ps);
    out->objective = fl_objective_value(objective, out->energy_j, out->time_s);
}

static void report(const fl_hunt *h, fl_objective objective, bool solved, fl_oracle_result *out) {
    fl_total total = fl_oracle_total(h->t, h->choice, &out->switches);
    report_total(objective, total.energy_fj, total.time_ps, out);
    out->bounded = h->t->exact;
    out->solved = solved && h->t->exact;
    if (!out->bounded)
        return;
    report_bound(h->m, h->bound_f, solved && !h->m ? total.energy_fj : h->bound_fj, out);
    if (solved) {
        out->objective_bound = out->objective;
        out->gap_pct = 0;
    }
}

/* Schedules with switches between and within the positions count too. */
static void report_any_switch(const fl_oracle_table *t, int m, int64_t limit_ps, fl_oracle_result *out) {
    fl_wide bound_fj;
    const long double f = fl_oracle_work_bound(t->work, m, limit_ps, &bound_fj);
    out->solved = false;
    report_bound(m, f, bound_fj, out);
}

static fl_status solve_work(const fl_oracle_table *t, fl_objective objective, int64_t limit_ps, bool want_schedule,
                            fl_oracle_result *out, fl_diag *d) {
    fl_work_plan plan;
    size_t count = 0;
    if (!fl_oracle_work_plan(t->work, power_of_time(objective), limit_ps, &plan))
        return FL_OK;
    out->bounded = true;
    report_total(objective, plan.total.fj, plan.total.ps, out);
    report_any_switch(t, power_of_time(objective), limit_ps, out);
    if (!want_schedule)
        return FL_OK;
    fl_status s = fl_oracle_work_changes(t->work, &plan, NULL, &count, d);
    out->switches = count ? count - 1 : 0;
    if (s || !(out->change = malloc((count + 1) * sizeof *out->change)))
        return s ? s : fl_no_memory(d, "the oracle");
    s = fl_oracle_work_changes(t->work, &plan, out->change, &count, d);
    if (s) {
        free(out->change);
        out->change = NULL;
    }
    return s;
}

static fl_status solve_positions(const fl_oracle_table *t, fl_objective objective, int64_t limit_ps, bool want_schedule,
                                 fl_oracle_result *out, fl_diag *d) {
    fl_hunt *h = calloc(1, sizeof *h);
    uint32_t *room = malloc((t->positions + 1) * 3 * sizeof *room);
    fl_status s = h && room ? FL_OK : fl_no_memory(d, "the oracle");
    bool solved = false;
    if (!s) {
        *h = (fl_hunt){.t = t, .m = power_of_time(objective), .limit_ps = limit_ps};
        h->choice = room;
        h->other = room + t->positions;
        h->trial = h->other + t->positions;
        s = fl_oracle_at_price(t, (fl_price){0, 1}, h->choice, &h->best, d);
    }
    if (!s && h->best.time_ps <= limit_ps) {
        h->fastest_ps = h->best.time_ps;
        s = hunt(h, &solved, d);
        if (!s)
            report(h, objective, solved, out);
        if (!s && t->work)
            report_any_switch(t, h->m, limit_ps, out);
        if (!s && want_schedule) {
            out->schedule = realloc(room, (t->positions + 1) * sizeof *room);
            room = out->schedule ? NULL : room;
            s = out->schedule ? FL_OK : fl_no_memory(d, "the oracle");
        }
    }
    free(room);
    free(h);
    return s;
}

fl_status fl_oracle_clairvoyant(const fl_oracle_table *t, fl_objective objective, int64_t limit_ps, bool want_schedule,
                                fl_oracle_result *out, fl_diag *d) {
    *out = (fl_oracle_result){
        .energy_j = NAN, .time_s = NAN, .bound_j = NAN, .gap_pct = NAN, .objective = NAN, .objective_bound = NAN};
    return t->work && !t->positions ? solve_work(t, objective, limit_ps, want_schedule, out, d)
                                    : solve_positions(t, objective, limit_ps, want_schedule, out, d);
}

fl_status fl_oracle_fastest(const fl_oracle_table *t, int64_t *time_ps, fl_diag *d) {
    fl_total total;
    if (t->work && !t->positions) {
        *time_ps = t->work->vertex[0].ps;
        return FL_OK;
    }
    fl_status s = fl_oracle_at_price(t, (fl_price){0, 1}, NULL, &total, d);
    if (!s)
        *time_ps = total.time_ps;
    return s;
}
