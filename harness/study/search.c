#include "harness/study/search.h"

#include "harness/base/pool.h"
#include "policies/random.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    size_t spec, trials;
    double sum; /* of ratios */
    bool held;
} candidate;

typedef struct round_work {
    fl_trials *t;
    const fl_comparison_options *o;
    const size_t *pair; /* scene x seeds + seed */
    size_t pairs;       /* of this round */
    candidate *c;
    double *ratio; /* candidates x pairs; NAN: not for this workload */
    bool *violated;
} round_work;

/* E, E T or E T^2 over the default's. */
static double ratio_of(const fl_comparison_options *o, const fl_row_result *row) {
    const double energy = 1 - row->energy_saving_pct / 100, time = 1 + row->score.slowdown;
    return energy * (o->objective == FL_MIN_ENERGY ? 1 : o->objective == FL_MIN_EDP ? time : time * time);
}

static fl_status run_pair(fl_trials *t, const fl_comparison_options *o, size_t spec, size_t pair, double *ratio,
                          bool *violated, fl_diag *d) {
    const size_t scene = pair / o->seeds, seed = pair % o->seeds;
    fl_row_result row;
    fl_status s = fl_trials_run(t, (scene * o->spec_count + spec) * o->seeds + seed, &row, d);
    *ratio = s || !row.policy ? (double)NAN : ratio_of(o, &row);
    *violated = !s && row.policy && row.score.violated;
    if (!s)
        fl_row_free(&row);
    return s;
}

static fl_status run_one(void *user, size_t i, fl_diag *d) {
    round_work *w = user;
    return run_pair(w->t, w->o, w->c[i / w->pairs].spec, w->pair[i % w->pairs], &w->ratio[i], &w->violated[i], d);
}

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

static int better(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    const double rx = x->trials ? x->sum / (double)x->trials : HUGE_VAL,
                 ry = y->trials ? y->sum / (double)y->trials : HUGE_VAL;
    if (x->held != y->held)
        return x->held ? -1 : 1;
    if (rx != ry)
        return rx < ry ? -1 : 1;
    return (x->spec > y->spec) - (x->spec < y->spec);
}

static fl_status run_round(round_work *w, size_t candidates, fl_search_result *out, fl_diag *d) {
    w->ratio = calloc(candidates * w->pairs + 1, sizeof *w->ratio);
    w->violated = calloc(candidates * w->pairs + 1, sizeof *w->violated);
    fl_status s = w->ratio && w->violated ? fl_pool_run(run_one, w, candidates * w->pairs, w->o->threads, "trials", d)
                                          : fl_no_memory(d, "the search");
    for (size_t i = 0; !s && i < candidates * w->pairs; i++) {
        candidate *c = &w->c[i / w->pairs];
        if (isnan(w->ratio[i]))
            continue;
        c->sum += w->ratio[i];
        c->held &= !w->violated[i];
        c->trials++;
        out->trials++;
    }
    free(w->ratio);
    free(w->violated);
    return s;
}

fl_status fl_search_run(fl_trials *t, const fl_comparison_options *o, const fl_search_options *how,
                        fl_search_result *out, fl_diag *d) {
    size_t candidates = o->spec_count, done = 0, next = 1;
    size_t *pair = calloc(o->scenes->count * o->seeds + 1, sizeof *pair),
           *scenes = calloc(o->scenes->count + 1, sizeof *scenes);
    candidate *c = calloc(candidates + 1, sizeof *c);
    *out = (fl_search_result){0};
    fl_status s = pair && scenes && c ? FL_OK : fl_no_memory(d, "the search");
    const size_t all = s ? 0 : order_pairs(o, how, pair, scenes);
    if (!s && !all)
        s = fl_refuse(d, "nothing to tune on, expected at least one workload");
    for (size_t i = 0; !s && i < candidates; i++)
        c[i] = (candidate){.spec = i, .held = true};
    for (size_t i = 0; !s && i < candidates * all; i++)
        out->whole += fl_spec_is_for(&o->spec[i / all], o->scenes->item[pair[i % all] / o->seeds]);
    while (!s && done < all) {
        round_work w = {.t = t, .o = o, .pair = pair + done, .pairs = next < all - done ? next : all - done, .c = c};
        s = run_round(&w, candidates, out, d);
        done += w.pairs;
        next = done; /* twice as many in all */
        out->rounds++;
        qsort(c, candidates, sizeof *c, better);
        const size_t kept = (size_t)ceil(how->keep * (double)candidates);
        candidates = kept < 1 ? 1 : kept;
        if (candidates == 1)
            break;
    }
    if (!s && !c[0].trials)
        s = fl_refuse(d, "no policy is for any of the workloads tuned on");
    if (!s) {
        out->winner = c[0].spec;
        out->ratio = c[0].sum / (double)c[0].trials;
        out->held = c[0].held;
    }
    free(pair);
    free(scenes);
    free(c);
    return s;
}

fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use, double *ratio,
                          bool *held, fl_diag *d) {
    double sum = 0;
    size_t n = 0, scenes = 0;
    *held = true;
    for (size_t i = 0; i < o->scenes->count; i++)
        scenes += !use || use[i];
    if (!scenes)
        return fl_refuse(d, "nothing to score on, expected at least one workload");
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < o->scenes->count * o->seeds; i++) {
        double x;
        bool violated;
        if (use && !use[i / o->seeds])
            continue;
        s = run_pair(t, o, spec, i, &x, &violated, d);
        if (s || isnan(x))
            continue;
        sum += x;
        *held &= !violated;
        n++;
    }
    *ratio = n ? sum / (double)n : (double)NAN;
    return s;
}
