#include "harness/study/grid/search.h"

#include "policies/random.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    size_t spec, done; /* done: pairs, from the first on */
    fl_pair_sum sum;
} candidate;

typedef struct search {
    fl_trials *t;
    const fl_comparison_options *o;
    const size_t *pair;
    size_t pairs; /* in all */
    candidate *c; /* count, the best first after each round */
    size_t count;
} search;

/* ---- the order of the pairs ---- */

/* Workloads in turn, each with its seeds in a seeded order: an early round sees as many different ones as it can. */
static size_t order_pairs(const fl_comparison_options *o, const fl_search_options *how, size_t *pair, size_t *scenes) {
    fl_random r = fl_random_seed(how->seed, UINT64_C(0x736561726368));
    size_t used = 0, n = 0;
    for (size_t i = 0; i < o->scenes->count; i++)
        if (!how->use || how->use[i])
            scenes[used++] = i;
    for (size_t i = used; i > 1; i--) {
        const size_t k = (size_t)fl_random_below(&r, i), swap = scenes[i - 1];
        scenes[i - 1] = scenes[k];
        scenes[k] = swap;
    }
    for (size_t seed = 0; seed < o->seeds; seed++)
        for (size_t i = 0; i < used; i++)
            pair[n++] = scenes[i] * o->seeds + (seed + i) % o->seeds;
    return n;
}

/* ---- ranking ---- */

/* One that broke a bound is behind all that may hold them; one that is for nothing tuned on is last. */
static int class_of(const candidate *c, size_t pairs) {
    return !c->sum.runs && c->done == pairs ? 2 : c->sum.violated > 0;
}

static int better(const void *a, const void *b, void *user) {
    const candidate *x = a, *y = b;
    const size_t pairs = *(const size_t *)user;
    const int cx = class_of(x, pairs), cy = class_of(y, pairs);
    const double rx = x->sum.runs ? x->sum.ratio / (double)x->sum.runs : HUGE_VAL,
                 ry = y->sum.runs ? y->sum.ratio / (double)y->sum.runs : HUGE_VAL;
    if (cx != cy)
        return cx - cy;
    if (cx == 1 && x->sum.violated * y->sum.runs != y->sum.violated * x->sum.runs) /* who breaks a larger share */
        return x->sum.violated * y->sum.runs > y->sum.violated * x->sum.runs ? 1 : -1;
    if (x->done != y->done) /* dropped before: known by less */
        return x->done > y->done ? -1 : 1;
    if (rx != ry)
        return rx < ry ? -1 : 1;
    return (x->spec > y->spec) - (x->spec < y->spec);
}

/* Runs the first `active` candidates on the pairs up to `goal` that they have not seen, and ranks all. */
static fl_status run_round(search *w, size_t active, size_t goal, fl_search_result *out, fl_diag *d) {
    size_t jobs = 0;
    for (size_t i = 0; i < active; i++)
        jobs += goal > w->c[i].done ? goal - w->c[i].done : 0;
    fl_pair_job *job = calloc(jobs + 1, sizeof *job);
    if (!job)
        return fl_no_memory(d, "the search");
    size_t n = 0;
    for (size_t i = 0; i < active; i++)
        for (size_t k = w->c[i].done; k < goal; k++)
            job[n++] = (fl_pair_job){.spec = w->c[i].spec, .pair = w->pair[k], .of = i};
    fl_status s = fl_pairs_run(w->t, w->o, job, jobs, d);
    for (size_t i = 0; !s && i < jobs; i++) {
        fl_pair_sum_add(&w->c[job[i].of].sum, &job[i]);
        out->trials += job[i].runs;
    }
    for (size_t i = 0; !s && i < active; i++)
        w->c[i].done = goal > w->c[i].done ? goal : w->c[i].done;
    free(job);
    out->rounds++;
    qsort_r(w->c, w->count, sizeof *w->c, better, &w->pairs);
    return s;
}

static fl_status halve(search *w, double keep, fl_search_result *out, fl_diag *d) {
    const bool bounded = isfinite(w->o->bound) || (w->o->promises && w->o->promises->count);
    size_t active = w->count, goal = 1;
    for (;;) {
        const fl_status s = run_round(w, active, goal, out, d);
        if (s)
            return s;
        const candidate *first = &w->c[0];
        if (active > 1 && goal < w->pairs) {
            const size_t kept = (size_t)ceil(keep * (double)active);
            active = kept < 1 ? 1 : kept;
            if (active > 1 || bounded) {
                goal = 2 * goal < w->pairs ? 2 * goal : w->pairs;
                continue;
            }
            return FL_OK;
        }
        /* one is left, or all pairs are used: who leads has to be known on all */
        if (!bounded || first->done == w->pairs)
            return FL_OK;
        active = 1;
        goal = 2 * first->done < w->pairs ? 2 * first->done : w->pairs;
    }
}

fl_status fl_search_run(fl_trials *t, const fl_comparison_options *o, const fl_search_options *how,
                        fl_search_result *out, fl_diag *d) {
    size_t *pair = calloc(o->scenes->count * o->seeds + 1, sizeof *pair),
           *scenes = calloc(o->scenes->count + 1, sizeof *scenes);
    search w = {.t = t, .o = o, .pair = pair, .count = o->spec_count, .c = calloc(o->spec_count + 1, sizeof *w.c)};
    *out = (fl_search_result){0};
    fl_status s = pair && scenes && w.c ? FL_OK : fl_no_memory(d, "the search");
    w.pairs = s ? 0 : order_pairs(o, how, pair, scenes);
    if (!s && !w.pairs)
        s = fl_refuse(d, "nothing to tune on, expected at least one workload");
    for (size_t i = 0; !s && i < w.count; i++)
        w.c[i].spec = i;
    for (size_t i = 0; !s && i < w.count * w.pairs; i++)
        out->whole += fl_spec_is_for(&o->spec[i / w.pairs], o->scenes->item[pair[i % w.pairs] / o->seeds]);
    if (!s)
        s = halve(&w, how->keep, out, d);
    if (!s && !w.c[0].sum.runs)
        s = fl_refuse(d, "no policy supports any of the workloads to tune on, expected one that does");
    if (!s) {
        out->winner = w.c[0].spec;
        out->sum = fl_pair_sum_mean(&w.c[0].sum);
    }
    free(pair);
    free(scenes);
    free(w.c);
    return s;
}
