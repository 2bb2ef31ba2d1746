/* The optimum of a small table by labels: for each position, the schedules so far that no other beats in both time and
 * energy. Three bounds prune: the fastest rest must hold the limit, the cheapest rest must beat the incumbent, and so
 * must the rest of least priced cost (weak duality for the rest). */
#include "sim/oracle/inside.h"

#include "sim/base/base.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline fl_wide fl_priced(fl_price p, int64_t time_ps, fl_wide energy_fj) {
    return energy_fj * p.energy + (fl_wide)time_ps * p.time;
}

static inline bool fl_switch_free(const fl_oracle_table *t) { return !t->switch_ps && !t->switch_fj; }

/* The schedule of least priced cost: dynamic programming over positions x choices. */

/* Order by cost; of equal costs the faster, then the cheaper first. Adding the same value to both sides keeps the
 * order, so ties stay optimal too. */
static bool is_less(const fl_total *a, const fl_total *b) {
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->energy_fj < b->energy_fj;
}

static fl_total plus(const fl_total *a, fl_price p, int64_t time_ps, fl_wide energy_fj) {
    return (fl_total){a->cost + fl_priced(p, time_ps, energy_fj), a->energy_fj + energy_fj, a->time_ps + time_ps};
}

fl_total fl_oracle_total(const fl_oracle_table *t, const uint32_t *choice, uint64_t *switches) {
    fl_total sum = {0};
    *switches = 0;
    for (size_t i = 0; i < t->positions; i++) {
        size_t cell = i * t->choices + choice[i];
        sum.time_ps += t->time_ps[cell];
        sum.energy_fj += t->energy_fj[cell];
        if (i && choice[i] != choice[i - 1]) {
            sum.time_ps += t->switch_ps;
            sum.energy_fj += t->switch_fj;
            ++*switches;
        }
    }
    return sum;
}

/* Where a switch is free, each position is independent. */
static void each_alone(const fl_oracle_table *t, fl_price p, uint32_t *choice, fl_total *total) {
    const fl_total nothing = {0};
    *total = nothing;
    for (size_t i = 0; i < t->positions; i++) {
        const int64_t *ps = t->time_ps + i * t->choices;
        const fl_wide *fj = t->energy_fj + i * t->choices;
        size_t from = t->frontier ? t->frontier_first[i] : 0;
        size_t to = t->frontier ? t->frontier_first[i + 1] : t->choices;
        fl_total best = {0};
        uint32_t pick = 0;
        for (size_t k = from; k < to; k++) {
            uint32_t c = t->frontier ? t->frontier[k] : (uint32_t)k;
            fl_total at = {fl_priced(p, ps[c], fj[c]), fj[c], ps[c]};
            if (k == from || is_less(&at, &best)) {
                best = at;
                pick = c;
            }
        }
        if (choice)
            choice[i] = pick;
        total->cost += best.cost;
        total->energy_fj += best.energy_fj;
        total->time_ps += best.time_ps;
    }
}

fl_status fl_oracle_at_price(const fl_oracle_table *t, fl_price p, uint32_t *choice, fl_total *total, fl_diag *d) {
    if (fl_switch_free(t)) {
        each_alone(t, p, choice, total);
        return FL_OK;
    }
    fl_total *state = calloc(t->choices, sizeof *state); /* of the best schedule that ends at each choice */
    uint32_t *from = choice ? malloc(t->positions * t->choices * sizeof *from) : NULL;
    if (!state || (choice && !from)) {
        free(state);
        free(from);
        return fl_no_memory(d, "the oracle");
    }
    uint32_t best = 0;
    for (size_t i = 0; i < t->positions; i++) {
        fl_total moved = {0};
        if (i)
            moved = plus(&state[best], p, t->switch_ps, t->switch_fj);
        uint32_t next_best = 0, was = best;
        for (uint32_t c = 0; c < t->choices; c++) {
            size_t cell = i * t->choices + c;
            bool moves = i && c != was && is_less(&moved, &state[c]);
            const fl_total nothing = {0};
            const fl_total *before = !i ? &nothing : moves ? &moved : &state[c];
            state[c] = plus(before, p, t->time_ps[cell], t->energy_fj[cell]);
            if (from)
                from[cell] = moves ? was : c;
            if (is_less(&state[c], &state[next_best]))
                next_best = c;
        }
        best = next_best;
    }
    *total = state[best];
    for (size_t i = t->positions; choice && i-- > 0; best = from[i * t->choices + best])
        choice[i] = best;
    free(state);
    free(from);
    return FL_OK;
}

/* ---- the search ---- */

#define LABELS_MAX (1u << 18) /* kept */
#define TRIALS_MAX (1u << 20) /* looked at */
#define CELLS_MAX (1u << 16)  /* a larger table is not small */
#define PARENT_NONE UINT32_MAX

typedef struct fl_label {
    int64_t time_ps;
    fl_wide energy_fj;
    uint32_t choice, parent;
} fl_label;

typedef struct fl_search {
    const fl_oracle_table *t;
    int m;
    int64_t limit_ps;
    fl_price price;
    fl_wide *rest_cost, *rest_ps, *rest_fj; /* positions + 1 x choices: minimum over the rest, coming from a choice */
    fl_total best;
    long double best_f;
    fl_label *label;
    size_t count, room;
    size_t trials;
} fl_search;

/* Least cost at a price of position i and all later ones, after position i - 1 at choice c; switches included. */
static fl_wide *make_rest(const fl_oracle_table *t, fl_price p) {
    size_t n = t->choices;
    fl_wide *rest = calloc((t->positions + 1) * n, sizeof *rest);
    fl_wide change = fl_priced(p, t->switch_ps, t->switch_fj);
    for (size_t i = t->positions; rest && i-- > 0;) {
        const fl_wide *after = rest + (i + 1) * n;
        fl_wide *here = rest + i * n, least = 0;
        for (size_t c = 0; c < n; c++) {
            here[c] = fl_priced(p, t->time_ps[i * n + c], t->energy_fj[i * n + c]) + after[c];
            if (!c || here[c] < least)
                least = here[c];
        }
        for (size_t c = 0; c < n; c++)
            if (i && least + change < here[c])
                here[c] = least + change;
    }
    return rest;
}

/* E T^m is quasi-concave, so its minimum over { E >= cheapest, 2^20 E + n T >= priced, fastest <= T <= limit } is at a
 * corner: at the fastest time, or where the sloped side meets the flat one or the limit. Rounded down. */
static long double least_product(const fl_search *s, fl_wide fastest, fl_wide cheapest, fl_wide priced) {
    const long double unit = (long double)s->price.energy, n = (long double)s->price.time;
    const long double error =
        (long double)priced / unit * 0x1p-60L; /* of the values from which the slope is computed */
    long double t[2] = {(long double)fastest, (long double)fastest}, least = 0;
    if (s->price.time > 0) {
        long double meet = (long double)(priced - cheapest * s->price.energy) / n;
        long double limit = (long double)s->limit_ps;
        t[1] = meet < t[0] ? t[0] : meet > limit ? limit : meet;
    }
    for (int k = 0; k < 2; k++) {
        long double f = ((long double)priced - n * t[k]) / unit - error;
        if (f < (long double)cheapest)
            f = (long double)cheapest;
        for (int j = 0; j < s->m; j++)
            f *= t[k];
        if (!k || f < least)
            least = f;
    }
    return least * (1 - 0x1p-58L);
}

/* Whether a schedule that begins with this label, up to before position i, may still beat the best known one. */
static bool is_hopeful(const fl_search *s, const fl_label *l, size_t i) {
    size_t k = i * s->t->choices + l->choice;
    fl_wide fastest = l->time_ps + s->rest_ps[k], cheapest = l->energy_fj + s->rest_fj[k];
    if (fastest > s->limit_ps)
        return false;
    fl_wide priced = fl_priced(s->price, l->time_ps, l->energy_fj) + s->rest_cost[k];
    if (s->m)
        return least_product(s, fastest, cheapest, priced) < s->best_f;
    fl_wide at_limit = priced - (fl_wide)s->price.time * s->limit_ps;
    return cheapest < s->best.energy_fj && at_limit < s->best.energy_fj * s->price.energy;
}

static int by_time(const void *a, const void *b) {
    const fl_label *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    if (x->energy_fj != y->energy_fj)
        return x->energy_fj < y->energy_fj ? -1 : 1;
    if (x->choice != y->choice)
        return x->choice < y->choice ? -1 : 1;
    return x->parent < y->parent ? -1 : x->parent > y->parent;
}

typedef struct fl_trials { /* labels of one position that compete with each other */
    fl_label *label;
    size_t count, room;
} fl_trials;

/* Position i at choice c after each label of the layer before it. */
static fl_status try_choice(fl_search *s, size_t i, uint32_t c, size_t from, size_t to, fl_trials *trial, fl_diag *d) {
    size_t cell = i * s->t->choices + c;
    if (fl_grow(&trial->label, &trial->room, trial->count + to - from + 1, sizeof *trial->label))
        return fl_no_memory(d, "the oracle");
    if (!i) {
        fl_label l = {s->t->time_ps[cell], s->t->energy_fj[cell], c, PARENT_NONE};
        if (is_hopeful(s, &l, 1))
            trial->label[trial->count++] = l;
    }
    for (size_t k = from; k < to; k++) {
        const fl_label *before = &s->label[k];
        bool moves = before->choice != c;
        fl_label l = {before->time_ps + s->t->time_ps[cell] + (moves ? s->t->switch_ps : 0),
                      before->energy_fj + s->t->energy_fj[cell] + (moves ? s->t->switch_fj : 0), c, (uint32_t)k};
        if (is_hopeful(s, &l, i + 1))
            trial->label[trial->count++] = l;
    }
    s->trials += to - from;
    return FL_OK;
}

/* Keeps what no other trial beats in both time and energy. */
static fl_status keep_unbeaten(fl_search *s, fl_trials *trial, fl_diag *d) {
    if (fl_grow(&s->label, &s->room, s->count + trial->count + 1, sizeof *s->label))
        return fl_no_memory(d, "the oracle");
    if (trial->count)
        qsort(trial->label, trial->count, sizeof *trial->label, by_time);
    const fl_label *last = NULL;
    for (size_t k = 0; k < trial->count; k++) {
        if (last && trial->label[k].energy_fj >= last->energy_fj)
            continue;
        last = &trial->label[k];
        s->label[s->count++] = *last;
    }
    trial->count = 0;
    return FL_OK;
}

/* FL_OK with *from == *to == 0 where there were too many labels. */
static fl_status search(fl_search *s, size_t *from, size_t *to, fl_diag *d) {
    fl_trials trial = {0};
    fl_status status = FL_OK;
    *from = *to = 0;
    for (size_t i = 0; !status && i < s->t->positions; i++) {
        size_t end = s->count;
        for (uint32_t c = 0; !status && c < s->t->choices; c++) {
            status = try_choice(s, i, c, *from, *to, &trial, d);
            /* where a switch costs, only schedules that stand at the same choice compete */
            if (!status && (!fl_switch_free(s->t) || c + 1 == s->t->choices))
                status = keep_unbeaten(s, &trial, d);
            if (s->count > LABELS_MAX || s->trials > TRIALS_MAX) {
                free(trial.label);
                s->trials = TRIALS_MAX + 1;
                return status;
            }
        }
        *from = end;
        *to = s->count;
    }
    free(trial.label);
    return status;
}

static void take_best(fl_search *s, size_t from, size_t to, uint32_t *choice) {
    size_t best = to;
    for (size_t k = from; k < to; k++) {
        const fl_label *l = &s->label[k];
        long double f = fl_product(s->m, l->energy_fj, l->time_ps);
        if (s->m ? f >= s->best_f : l->energy_fj >= s->best.energy_fj)
            continue;
        best = k;
        s->best_f = f;
        s->best = (fl_total){.energy_fj = l->energy_fj, .time_ps = l->time_ps};
    }
    if (best == to)
        return; /* nothing beats the incumbent, so it is the optimum */
    uint32_t k = (uint32_t)best;
    for (size_t i = s->t->positions; i-- > 0; k = s->label[k].parent)
        choice[i] = s->label[k].choice;
}

fl_status fl_oracle_labels(const fl_oracle_table *t, int m, int64_t limit_ps, int64_t n, uint32_t *choice,
                           fl_total *total, bool *solved, fl_diag *d) {
    *solved = false;
    if (t->positions * t->choices > CELLS_MAX)
        return FL_OK;
    fl_search s = {.t = t, .m = m, .limit_ps = limit_ps, .price = fl_price_at(n), .best = *total};
    s.best_f = fl_product(m, total->energy_fj, total->time_ps);
    s.rest_cost = make_rest(t, s.price);
    s.rest_ps = make_rest(t, (fl_price){0, 1});
    s.rest_fj = make_rest(t, (fl_price){1, 0});
    fl_status status = s.rest_cost && s.rest_ps && s.rest_fj ? FL_OK : fl_no_memory(d, "the oracle");
    size_t from, to;
    if (!status)
        status = search(&s, &from, &to, d);
    if (!status && s.trials <= TRIALS_MAX) {
        take_best(&s, from, to, choice);
        *total = s.best;
        *solved = true;
    }
    free(s.rest_cost);
    free(s.rest_ps);
    free(s.rest_fj);
    free(s.label);
    return status;
}
