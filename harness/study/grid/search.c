/* Searches parameters by successive halving, and checks the winner. */
#include "harness/study/grid/grid.h"

#include "harness/base/work/work.h"
#include "harness/study/trial/trial.h"
#include "policies/random.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct fl_pair_job {
    size_t spec, pair, of;  /* pair: scene x seeds + seed; of: the caller's */
    double ratio, slowdown; /* what came out: objective over the default's; a share */
    bool runs, violated;    /* runs: the spec is for this workload */
    fl_row_result *row;     /* receives the row; NULL = not asked for */
} fl_pair_job;

typedef fl_search_sum fl_pair_sum; /* sums in the place of means */

/* ---- candidates on pairs of workload and seed ---- */

typedef struct work {
    fl_trials *t;
    const fl_comparison_options *o;
    fl_pair_job *job;
} work;

/* E, E T or E T^2 over the default's. */
static double ratio_of(const fl_comparison_options *o, const fl_row_result *row) {
    const double energy = 1 - row->energy_saving_pct / 100, time = 1 + row->score.slowdown;
    return energy * (o->objective == FL_MIN_ENERGY ? 1 : o->objective == FL_MIN_EDP ? time : time * time);
}

static fl_status run_one(void *user, size_t i, fl_diag *d) {
    work *w = user;
    const fl_comparison_options *o = w->o;
    fl_pair_job *job = &w->job[i];
    const size_t scene = job->pair / o->seeds, seed = job->pair % o->seeds;
    fl_row_result row;
    fl_status s = fl_trials_run(w->t, (scene * o->spec_count + job->spec) * o->seeds + seed, &row, d);
    if (s)
        return s;
    job->runs = row.policy != NULL;
    if (job->runs) {
        job->ratio = ratio_of(o, &row);
        job->slowdown = row.score.slowdown;
        job->violated = row.violated > 0;
    }
    if (job->row)
        *job->row = row;
    else
        fl_row_free(&row);
    return FL_OK;
}

/* Fills what came out of each job, on o->threads threads. */
static fl_status fl_pairs_run(fl_trials *t, const fl_comparison_options *o, fl_pair_job *job, size_t count,
                              fl_diag *d) {
    work w = {t, o, job};
    return fl_pool_run(run_one, &w, count, o->threads, "trials", d);
}

static void fl_pair_sum_add(fl_pair_sum *sum, const fl_pair_job *job) {
    if (!job->runs)
        return;
    sum->ratio += job->ratio;
    sum->slowdown += job->slowdown;
    sum->violated += job->violated;
    sum->runs++;
}

static fl_search_sum fl_pair_sum_mean(const fl_pair_sum *sum) {
    fl_search_sum mean = *sum;
    mean.ratio = sum->runs ? sum->ratio / (double)sum->runs : (double)NAN;
    mean.slowdown = sum->runs ? sum->slowdown / (double)sum->runs : (double)NAN;
    return mean;
}

/* The pairs of the scenes used (by scene; NULL = all), in order; how many. pair: room for scenes x seeds. */
static size_t fl_pairs_of(const fl_comparison_options *o, const bool *use, size_t *pair) {
    size_t n = 0;
    for (size_t i = 0; i < o->scenes->count * o->seeds; i++)
        if (!use || use[i / o->seeds])
            pair[n++] = i;
    return n;
}

fl_search_sum fl_search_sum_of(const fl_row_result *mean) {
    return (fl_search_sum){.ratio = 1 - mean->objective_saving_pct / 100,
                           .slowdown = mean->score.slowdown,
                           .runs = mean->rows,
                           .violated = (size_t)mean->violated};
}

fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use,
                          fl_row_result *mean, fl_diag *d) {
    const size_t most = o->scenes->count * o->seeds + 1;
    size_t *pair = fl_must(calloc(most, sizeof *pair)), runs = 0;
    fl_pair_job *job = fl_must(calloc(most, sizeof *job));
    fl_row_result *row = fl_must(calloc(most, sizeof *row));
    const fl_row_result **member = fl_must(calloc(most, sizeof *member));
    double *room = fl_must(calloc(most, sizeof *room));
    const size_t count = fl_pairs_of(o, use, pair);
    for (size_t i = 0; i < count; i++)
        job[i] = (fl_pair_job){.spec = spec, .pair = pair[i], .row = &row[i]};
    const fl_status s =
        count ? fl_pairs_run(t, o, job, count, d) : fl_refuse(d, "nothing to score on, expected at least one workload");
    for (size_t i = 0; !s && i < count; i++)
        if (row[i].policy)
            member[runs++] = &row[i];
    *mean = (fl_row_result){.workload = "mean", .policy = o->spec[spec].label, .seed = o->seed};
    if (!s)
        fl_row_mean(member, runs, room, mean);
    for (size_t i = 0; i < count; i++)
        fl_row_free(&row[i]);
    free(pair);
    free(job);
    free(row);
    free(member);
    free(room);
    return s;
}

/* ---- checking the winner ---- */

/* Draws `count` of the pairs to the front. */
static void draw(size_t *pair, size_t of, size_t count) {
    fl_random r = fl_random_seed(FL_SEARCH_CHECK_SEED, UINT64_C(0x636865636b));
    for (size_t i = 0; i < count; i++) {
        const size_t k = i + (size_t)fl_random_below(&r, of - i), swap = pair[i];
        pair[i] = pair[k];
        pair[k] = swap;
    }
}

static void compare(const fl_pair_sum *sum, size_t specs, size_t winner, fl_search_check *out) {
    out->winner = fl_pair_sum_mean(&sum[winner]);
    out->best_spec = SIZE_MAX;
    for (size_t i = 0; i < specs; i++) {
        const fl_search_sum here = fl_pair_sum_mean(&sum[i]);
        if (here.runs != out->winner.runs)
            continue;
        out->compared++;
        if (here.violated)
            continue;
        out->held++;
        if (out->best_spec == SIZE_MAX || here.ratio < out->best.ratio ||
            (here.ratio == out->best.ratio && i == winner)) {
            out->best_spec = i;
            out->best = here;
        }
    }
}

fl_status fl_search_check_run(fl_trials *t, const fl_comparison_options *o, const bool *use, size_t winner,
                              fl_search_check *out, fl_diag *d) {
    const size_t specs = o->spec_count;
    size_t *pair = fl_must(calloc(o->scenes->count * o->seeds + 1, sizeof *pair));
    fl_pair_job *job = fl_must(calloc(specs * FL_SEARCH_CHECK_PAIRS + 1, sizeof *job));
    fl_pair_sum *sum = fl_must(calloc(specs + 1, sizeof *sum));
    *out = (fl_search_check){.of = fl_pairs_of(o, use, pair)};
    out->pairs = out->of < FL_SEARCH_CHECK_PAIRS ? out->of : FL_SEARCH_CHECK_PAIRS;
    draw(pair, out->of, out->pairs);
    for (size_t i = 0; i < specs * out->pairs; i++)
        job[i] = (fl_pair_job){.spec = i / out->pairs, .pair = pair[i % out->pairs]};
    fl_status s = fl_pairs_run(t, o, job, specs * out->pairs, d);
    for (size_t i = 0; !s && i < specs * out->pairs; i++)
        fl_pair_sum_add(&sum[job[i].spec], &job[i]);
    if (!s)
        compare(sum, specs, winner, out);
    if (!s && out->best_spec != SIZE_MAX && out->best_spec != winner) {
        fl_row_result mean;
        s = fl_search_score(t, o, out->best_spec, use, &mean, d);
        out->everywhere = fl_search_sum_of(&mean);
    }
    free(pair);
    free(job);
    free(sum);
    return s;
}

/* ---- successive halving ---- */

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
    fl_pair_job *job = fl_must(calloc(jobs + 1, sizeof *job));
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
    size_t *pair = fl_must(calloc(o->scenes->count * o->seeds + 1, sizeof *pair)),
           *scenes = fl_must(calloc(o->scenes->count + 1, sizeof *scenes));
    search w = {
        .t = t, .o = o, .pair = pair, .count = o->spec_count, .c = fl_must(calloc(o->spec_count + 1, sizeof *w.c))};
    *out = (fl_search_result){0};
    w.pairs = order_pairs(o, how, pair, scenes);
    fl_status s = w.pairs ? FL_OK : fl_refuse(d, "nothing to tune on, expected at least one workload");
    for (size_t i = 0; i < w.count; i++)
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
    for (size_t i = 0; !s && how->rank && i < w.count; i++)
        how->rank[i] = (fl_search_rank){w.c[i].spec, fl_pair_sum_mean(&w.c[i].sum)};
    free(pair);
    free(scenes);
    free(w.c);
    return s;
}
