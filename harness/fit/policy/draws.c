/* Fits a distribution replay to published results of other policies. */
#include "harness/fit/policy/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/draws/draws.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- the fit ---- */

/* The grids and the seeds, fixed before the first result. An experiment's seeds begin at 1. */
#define EXPONENT_STEP 0.05
#define CV_STEP 0.01
#define SLOPE_STEP 0.01
#define WITHIN 0.5 /* of the logarithm: one standard deviation */
#define BETTER 2.0 /* of the logarithm: two standard deviations, for a law with one more parameter */
enum { EXPONENTS = 61, SLOPES = 10, CVS = 40, FIRST_SEED = 1001, GREEDY_RUNS = 10, UCB_RUNS = 40 };

typedef struct outcome {
    double exponent, best_mhz, slope, energy_j; /* of epsilon-greedy */
    double likely;                              /* the largest of the exponents' likelihoods */
    double ratio, regret;
} outcome;

typedef struct work {
    const fl_draws_fit *f;
    double cv;
    outcome *by_cv, *by_row; /* CVS; row_count */
} work;

/* ---- step 1: run times ---- */

static void take_times(const fl_draws_fit *f, double c, fl_draws_row *w) {
    const double p = w->sharpness, top = f->mhz[f->clock_count - 1];
    for (uint32_t i = 0; i < f->clock_count; i++) {
        const double t = w->top_time_s * pow(pow(c * top / f->mhz[i], p) + 1 - pow(c, p), 1 / p);
        w->time_s[i] = round(100 * t) / 100;
    }
}

static double round_robin_j(const fl_draws_fit *f, const fl_draws_row *w) {
    double over = 0, under = 0;
    for (uint32_t i = 0; i < f->clock_count; i++) {
        over += w->energy_j[i] / w->time_s[i];
        under += 1 / w->time_s[i];
    }
    return over / under;
}

/* The share, on a grid of a thousandth, whose round robin is nearest; of equally near ones the smaller. */
static void find_share(const fl_draws_fit *f, fl_draws_row *w) {
    double best = INFINITY, share = w->core_share;
    for (int i = 0; isnan(w->core_share) && i <= 1000; i++) {
        take_times(f, i / 1000.0, w);
        const double miss = fabs(round_robin_j(f, w) - w->round_robin_j);
        if (miss < best) {
            best = miss;
            share = i / 1000.0;
        }
    }
    w->core_share = share;
    take_times(f, share, w);
    w->round_robin_fit_j = round_robin_j(f, w);
}

/* ---- step 2: runs ---- */

static fl_status make_draws(const fl_draws_fit *f, const fl_draws_row *w, const fl_draws_options *o, fl_draws *out,
                            fl_diag *d) {
    fl_sweep_row row[FL_DRAWS_CLOCKS_MAX];
    char *names[] = {(char *)w->name};
    const fl_sweep sweep = {.names = names, .name_count = 1, .rows = row, .row_count = f->clock_count};
    for (uint32_t i = 0; i < f->clock_count; i++)
        row[i] = (fl_sweep_row){.sm_mhz = f->mhz[i],
                                .time_s = w->time_s[i],
                                .energy_j = w->energy_j[i],
                                .energy_cv = NAN,
                                .ratio = NAN,
                                .ratio_cv = NAN};
    return fl_draws_make(out, &sweep, 0, o, d);
}

static const fl_policy *policy(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    return NULL;
}

/* Energy of each run, and the regret after the number of steps of its publication (NAN where a run ended earlier). */
static fl_status runs(const fl_draws_fit *f, const fl_draws *draws, const char *name, size_t count, double *energy_j,
                      double *regret, fl_diag *d) {
    const size_t mark = (size_t)f->regret_steps / FL_DRAWS_MARK - 1;
    const fl_gpu_facts gpu = {.name = "draws", .sm = {f->mhz, f->clock_count}};
    fl_facts facts = {.gpu_count = 1, .gpu = &gpu};
    const fl_draws_run run = {.draws = draws, .facts = &facts, .policy = policy(name)};
    for (size_t k = 0; k < count; k++) {
        fl_draws_result r;
        facts.seed = FIRST_SEED + k;
        const fl_status s = fl_draws_replay(&run, &r, d);
        if (s)
            return s;
        energy_j[k] = r.energy_j;
        regret[k] = mark < r.mark_count ? r.regret_mark[mark] : (double)NAN;
        fl_draws_result_free(&r);
    }
    return FL_OK;
}

/* How well ten runs agree with a row that is the mean of ten others: the logarithm of the normal density of their
 * difference. Its deviation is that of the runs times sqrt(2/10), but at least what a table of four digits can show. */
static double log_likelihood(const double *energy_j, double published_j, double *mean) {
    double sq = 0;
    *mean = 0;
    for (size_t k = 0; k < GREEDY_RUNS; k++)
        *mean += energy_j[k] / GREEDY_RUNS;
    for (size_t k = 0; k < GREEDY_RUNS; k++)
        sq += (energy_j[k] - *mean) * (energy_j[k] - *mean) / (GREEDY_RUNS - 1);
    const double sd = fmax(sqrt(sq * 2 / GREEDY_RUNS), 1e-4 * published_j), z = (*mean - published_j) / sd;
    return -0.5 * z * z - log(sd);
}

/* Mean energy of epsilon-greedy under one law of the ratio, and how likely its published row is. Its clocks do not
 * depend on the scale of the ratio, which is 1 here. */
static fl_status try_law(const fl_draws_fit *f, const fl_draws_row *w, double cv, fl_draws_options law, double *likely,
                         double *mean, fl_diag *d) {
    double energy_j[GREEDY_RUNS], regret[GREEDY_RUNS];
    fl_draws draws;
    law.step_ms = f->step_ms;
    law.energy_cv = law.ratio_cv = cv;
    law.ratio = 1;
    fl_status s = make_draws(f, w, &law, &draws, d);
    if (s)
        return s;
    s = runs(f, &draws, "epsilon-greedy", GREEDY_RUNS, energy_j, regret, d);
    fl_draws_free(&draws);
    *likely = log_likelihood(energy_j, w->epsilon_greedy_j, mean);
    return s;
}

/* The smallest exponent whose likelihood is within one standard deviation of the largest. */
static fl_status find_exponent(const fl_draws_fit *f, const fl_draws_row *w, double cv, outcome *out, fl_diag *d) {
    double likely[EXPONENTS], mean[EXPONENTS];
    out->likely = -INFINITY;
    for (size_t i = 0; i < EXPONENTS; i++) {
        const fl_draws_options law = {.ratio_exponent = EXPONENT_STEP * (double)i};
        const fl_status s = try_law(f, w, cv, law, &likely[i], &mean[i], d);
        if (s)
            return s;
        out->likely = fmax(out->likely, likely[i]);
    }
    size_t found = 0;
    while (likely[found] < out->likely - WITHIN)
        found++;
    out->exponent = EXPONENT_STEP * (double)found;
    out->energy_j = mean[found];
    return FL_OK;
}

/* A best clock and a slope, where they are likelier by far than any exponent: the smallest slope whose likelihood is
 * within one standard deviation of the largest, and its likeliest clock. */
static fl_status find_best(const fl_draws_fit *f, const fl_draws_row *w, double cv, outcome *out, fl_diag *d) {
    double likely[SLOPES][FL_DRAWS_CLOCKS_MAX], mean[SLOPES][FL_DRAWS_CLOCKS_MAX], most[SLOPES], all = -INFINITY;
    for (size_t i = 0; i < SLOPES; i++) {
        most[i] = -INFINITY;
        for (size_t k = 0; k < f->clock_count; k++) {
            const fl_draws_options law = {.best_mhz = f->mhz[k], .slope = SLOPE_STEP * (double)(i + 1)};
            const fl_status s = try_law(f, w, cv, law, &likely[i][k], &mean[i][k], d);
            if (s)
                return s;
            most[i] = fmax(most[i], likely[i][k]);
        }
        all = fmax(all, most[i]);
    }
    if (all < out->likely + BETTER)
        return FL_OK;
    size_t i = 0, k = 0;
    while (most[i] < all - WITHIN)
        i++;
    while (likely[i][k] < most[i])
        k++;
    out->exponent = 0;
    out->best_mhz = f->mhz[k];
    out->slope = SLOPE_STEP * (double)(i + 1);
    out->energy_j = mean[i][k];
    return FL_OK;
}

/* ---- step 3: the scale ---- */

/* Regret of a round robin after n steps, with a ratio of 1 at the top clock. */
static double round_robin_regret(const fl_draws *draws, uint64_t n) {
    double best = -INFINITY, sum = 0;
    for (size_t i = 0; i < draws->clock_count; i++)
        best = fmax(best, -draws->clock[i].energy_j * draws->clock[i].ratio);
    for (uint64_t t = 0; t < n; t++) {
        const fl_draw_clock *c = &draws->clock[t % draws->clock_count];
        sum += best + c->energy_j * c->ratio;
    }
    return sum;
}

/* ---- step 4: the deviation ---- */

static fl_status one_cv(void *user, size_t i, fl_diag *d) {
    const work *w = user;
    const fl_draws_fit *f = w->f;
    const fl_draws_row *row = &f->row[f->regret_row];
    outcome *out = &w->by_cv[i];
    const double cv = CV_STEP * (double)(i + 1);
    double energy_j[UCB_RUNS], regret[UCB_RUNS];
    fl_draws draws;
    fl_status s = find_exponent(f, row, cv, out, d);
    fl_draws_options o = {
        .step_ms = f->step_ms, .energy_cv = cv, .ratio_cv = cv, .ratio = 1, .ratio_exponent = out->exponent};
    if (s || (s = make_draws(f, row, &o, &draws, d)))
        return s;
    out->ratio = f->round_robin_regret / round_robin_regret(&draws, f->regret_steps);
    fl_draws_free(&draws);
    o.ratio = out->ratio;
    if ((s = make_draws(f, row, &o, &draws, d)))
        return s;
    s = runs(f, &draws, "energyucb", UCB_RUNS, energy_j, regret, d);
    fl_draws_free(&draws);
    for (size_t k = 0; k < UCB_RUNS; k++)
        out->regret += regret[k] / UCB_RUNS;
    return s;
}

static fl_status one_row(void *user, size_t i, fl_diag *d) {
    const work *w = user;
    const fl_status s = find_exponent(w->f, &w->f->row[i], w->cv, &w->by_row[i], d);
    /* the scale and the deviation rest on the exponent of this row */
    return s || i == w->f->regret_row ? s : find_best(w->f, &w->f->row[i], w->cv, &w->by_row[i], d);
}

fl_status fl_draws_fit_run(fl_draws_fit *f, unsigned threads, fl_diag *d) {
    outcome by_cv[CVS] = {{0}}, by_row[FL_DRAWS_WORKLOADS_MAX] = {{0}};
    work w = {.f = f, .by_cv = by_cv, .by_row = by_row};
    for (uint32_t i = 0; i < f->row_count; i++)
        find_share(f, &f->row[i]);
    fl_status s = fl_pool_run(one_cv, &w, CVS, threads, "deviations", d);
    if (s)
        return s;
    size_t best = 0;
    for (size_t i = 0; i < CVS; i++) {
        if (isnan(by_cv[i].regret))
            return fl_refuse(d, "%s is over before step %llu", f->row[f->regret_row].name,
                             (unsigned long long)f->regret_steps);
        if (fabs(by_cv[i].regret - f->energyucb_regret) < fabs(by_cv[best].regret - f->energyucb_regret))
            best = i;
    }
    f->cv = w.cv = CV_STEP * (double)(best + 1);
    f->ratio = by_cv[best].ratio;
    f->energyucb_regret_fit = by_cv[best].regret;
    s = fl_pool_run(one_row, &w, f->row_count, threads, "exponents", d);
    for (uint32_t i = 0; !s && i < f->row_count; i++) {
        f->row[i].exponent = by_row[i].exponent;
        f->row[i].best_mhz = by_row[i].best_mhz;
        f->row[i].slope = by_row[i].slope;
        f->row[i].epsilon_greedy_fit_j = by_row[i].energy_j;
    }
    return s;
}

/* ---- reading the published results ---- */

static fl_status read_clocks(const fl_json *root, fl_draws_fit *f, fl_diag *d) {
    fl_json list;
    fl_status s = fl_json_get_array(root, "sm_mhz", &list, d);
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        int64_t mhz;
        if (f->clock_count == FL_DRAWS_CLOCKS_MAX)
            return fl_json_fail(&list, d, "too many clocks, expected %d at most", FL_DRAWS_CLOCKS_MAX);
        if ((s = fl_json_int(&e, 1, 100000, &mhz, d)))
            return s;
        if (f->clock_count && mhz >= f->mhz[f->clock_count - 1])
            return fl_json_fail(&e, d, "%lld, expected descending clocks", (long long)mhz);
        f->mhz[f->clock_count++] = (int32_t)mhz;
    }
    if (!s && f->clock_count < 2)
        return fl_json_fail(&list, d, "expected two clocks or more");
    for (uint32_t i = 0; !s && i < f->clock_count / 2; i++) { /* the clocks of the struct ascend */
        const int32_t swap = f->mhz[i];
        f->mhz[i] = f->mhz[f->clock_count - 1 - i];
        f->mhz[f->clock_count - 1 - i] = swap;
    }
    return s;
}

static fl_status read_row(const fl_json *at, const fl_draws_fit *f, double top_w, double sharpness, fl_draws_row *w,
                          fl_diag *d) {
    static const char *const known[] = {"energy_kj",  "round_robin_kj", "epsilon_greedy_kj",
                                        "top_time_s", "core_share",     "sharpness"};
    fl_json list;
    fl_status s = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!s)
        s = fl_json_get_array(at, "energy_kj", &list, d);
    if (!s && fl_json_count(&list) != f->clock_count)
        return fl_json_fail(&list, d, "expected one energy for each of %u clocks", f->clock_count);
    fl_json e = s ? (fl_json){0} : fl_json_first(&list);
    for (uint32_t i = f->clock_count; !s && i-- > 0; e = fl_json_next(&list, &e)) {
        s = fl_json_real(&e, 1e-9, 1e12, &w->energy_j[i], d);
        w->energy_j[i] *= 1e3;
    }
    if (!s)
        s = fl_json_get_real(at, "round_robin_kj", 1e-9, 1e12, &w->round_robin_j, d);
    if (!s)
        s = fl_json_get_real(at, "epsilon_greedy_kj", 1e-9, 1e12, &w->epsilon_greedy_j, d);
    w->round_robin_j *= 1e3;
    w->epsilon_greedy_j *= 1e3;
    w->core_share = NAN;
    w->top_time_s = round(100 * w->energy_j[f->clock_count - 1] / top_w) / 100;
    if (!s && fl_json_has(at, "top_time_s"))
        s = fl_json_get_real(at, "top_time_s", 1e-3, 1e9, &w->top_time_s, d);
    if (!s && fl_json_has(at, "core_share"))
        s = fl_json_get_real(at, "core_share", 0, 1, &w->core_share, d);
    w->sharpness = sharpness;
    if (!s && fl_json_has(at, "sharpness"))
        s = fl_json_get_real(at, "sharpness", 1, 100, &w->sharpness, d);
    return s;
}

static fl_status read_rows(const fl_json *root, fl_draws_fit *f, fl_diag *d) {
    fl_json all;
    double top_w = 0, sharpness = 1;
    fl_status s = fl_json_get_real(root, "top_power_w", 1e-3, 1e9, &top_w, d);
    if (!s)
        s = fl_json_get_real(root, "sharpness", 1, 100, &sharpness, d);
    if (!s)
        s = fl_json_get_object(root, "workloads", &all, d);
    for (fl_json e = s ? (fl_json){0} : fl_json_first(&all); !s && e.node; e = fl_json_next(&all, &e)) {
        if (f->row_count == FL_DRAWS_WORKLOADS_MAX)
            return fl_json_fail(&all, d, "too many workloads, expected %d at most", FL_DRAWS_WORKLOADS_MAX);
        if ((s = fl_json_object(&e, d)))
            return s;
        f->row[f->row_count].name = e.node->string;
        s = read_row(&e, f, top_w, sharpness, &f->row[f->row_count++], d);
    }
    return s;
}

static fl_status read_regret(const fl_json *root, fl_draws_fit *f, fl_diag *d) {
    fl_json at;
    const char *name;
    int64_t steps;
    fl_status s = fl_json_get_object(root, "regret", &at, d);
    if (!s)
        s = fl_json_get_text(&at, "workload", &name, d);
    if (!s)
        s = fl_json_get_int(&at, "steps", FL_DRAWS_MARK, 1000000, &steps, d);
    if (!s)
        s = fl_json_get_real(&at, "round_robin", 1e-9, 1e15, &f->round_robin_regret, d);
    if (!s)
        s = fl_json_get_real(&at, "energyucb", 1e-9, 1e15, &f->energyucb_regret, d);
    if (s)
        return s;
    if (steps % FL_DRAWS_MARK)
        return fl_json_fail(&at, d, "steps: %lld, expected thousands", (long long)steps);
    f->regret_steps = (uint64_t)steps;
    for (f->regret_row = 0; f->regret_row < f->row_count; f->regret_row++)
        if (!strcmp(f->row[f->regret_row].name, name))
            return FL_OK;
    return fl_json_fail(&at, d, "no workload '%s'", name);
}

fl_status fl_draws_read(const char *path, cJSON **tree, fl_draws_fit *f, fl_diag *d) {
    static const char *const known[] = {"foldline_published_draws",
                                        "source",
                                        "assumed",
                                        "step_ms",
                                        "sharpness",
                                        "top_power_w",
                                        "sm_mhz",
                                        "regret",
                                        "workloads"};
    int64_t version;
    fl_status s = fl_json_read(path, tree, d);
    if (s)
        return s;
    const fl_json root = fl_json_root(*tree, path);
    if ((s = fl_json_known(&root, known, sizeof known / sizeof *known, d)) ||
        (s = fl_json_get_int(&root, "foldline_published_draws", 1, 1, &version, d)) ||
        (s = fl_json_get_real(&root, "step_ms", 0.01, 1e5, &f->step_ms, d)) || (s = read_clocks(&root, f, d)) ||
        (s = read_rows(&root, f, d)))
        return s;
    return read_regret(&root, f, d);
}
