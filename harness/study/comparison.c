#include "harness/study/comparison.h"

#include "harness/base/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_comparison_add(fl_comparison *c, const fl_row_result *row, fl_diag *d) {
    if (fl_grow(&c->row, &c->room, c->count + 1, sizeof *c->row))
        return fl_no_memory(d, "the comparison");
    c->row[c->count++] = *row;
    return FL_OK;
}

/* Means over workloads and seeds, cells that are not defined left out; `violated` counts. */
static bool same_group(const fl_row_result *a, const fl_row_result *b) {
    return !strcmp(a->policy, b->policy) &&
           (a->variant && b->variant ? !strcmp(a->variant, b->variant) : a->variant == b->variant);
}

/* What a mean is a mean of: the policy, and the variant of the node where there are any. */
static fl_status mean_label(fl_comparison *c, const fl_row_result *row, const char **label, fl_diag *d) {
    char *text;
    *label = row->policy;
    if (!row->variant)
        return FL_OK;
    if (fl_grow(&c->label, &c->label_room, c->label_count + 1, sizeof *c->label) ||
        asprintf(&text, "%s [%s]", row->policy, row->variant) < 0)
        return fl_no_memory(d, "the comparison");
    *label = c->label[c->label_count++] = text;
    return FL_OK;
}

fl_status fl_comparison_means(fl_comparison *c, fl_diag *d) {
    size_t rows = c->count;
    double *value = malloc((rows + 1) * sizeof *value);
    if (!value)
        return fl_no_memory(d, "the comparison");
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < rows; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= same_group(&c->row[k], &c->row[i]);
        if (seen)
            continue;
        fl_row_result mean = {.workload = "mean", .seed = c->row[i].seed};
        s = mean_label(c, &c->row[i], &mean.policy, d);
        if (s)
            break;
        double half;
#define FL_MEAN(field)                                                                                                 \
    do {                                                                                                               \
        size_t n = 0;                                                                                                  \
        for (size_t k = i; k < rows; k++)                                                                              \
            if (same_group(&c->row[k], &c->row[i]))                                                                    \
                value[n++] = (double)c->row[k].field;                                                                  \
        fl_mean_interval(value, n, &mean.field, &half);                                                                \
    } while (0)
        FL_MEAN(score.energy_j);
        FL_MEAN(score.makespan_s);
        FL_MEAN(score.mean_power_w);
        FL_MEAN(score.peak_power_w);
        FL_MEAN(score.edp);
        FL_MEAN(score.ed2p);
        FL_MEAN(score.slowdown);
        FL_MEAN(score.worst_window_slowdown);
        FL_MEAN(score.regret_static_j);
        FL_MEAN(score.regret_static_pct);
        FL_MEAN(score.regret_clairvoyant_j);
        FL_MEAN(score.regret_clairvoyant_pct);
        FL_MEAN(score.regret_at_own_slowdown_j);
        FL_MEAN(energy_saving_pct);
        FL_MEAN(node_energy_j);
        FL_MEAN(policy_cost_s);
        FL_MEAN(oracle_j);
        FL_MEAN(oracle_bound_j);
        FL_MEAN(oracle_gap_pct);
        FL_MEAN(reward_regret);
        FL_MEAN(latency.mean_s);
        FL_MEAN(latency.p50_s);
        FL_MEAN(latency.p90_s);
        FL_MEAN(latency.p95_s);
        FL_MEAN(latency.p99_s);
        FL_MEAN(latency.max_s);
        FL_MEAN(energy_per_request_j);
        FL_MEAN(offered_load);
#undef FL_MEAN
        size_t n = 0;
        uint64_t switches = 0;
        for (size_t k = i; k < rows; k++)
            if (same_group(&c->row[k], &c->row[i])) {
                mean.violated += c->row[k].violated;
                switches += c->row[k].score.switches;
                mean.workloads += c->row[k].seed == mean.seed;
                n++;
            }
        mean.score.switches = (switches + n / 2) / n;
        s = fl_comparison_add(c, &mean, d);
    }
    free(value);
    c->mean_first = rows;
    return s;
}

typedef struct work {
    fl_trials *trials;
    fl_row_result *row;
} work;

static fl_status run_one(void *user, size_t i, fl_diag *d) {
    work *w = user;
    return fl_trials_run(w->trials, i, &w->row[i], d);
}

/* Moves a row into the comparison; what it kept is freed where that fails. */
static fl_status move_row(fl_comparison *c, fl_row_result *row, fl_diag *d) {
    fl_status s = fl_comparison_add(c, row, d);
    if (s)
        fl_row_free(row);
    row->kept = NULL;
    return s;
}

static fl_status collect(const fl_comparison_options *o, work *w, fl_comparison *c, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0, at = 0; !s && i < o->scenes->count; i++) {
        fl_row_result baseline[FL_BASELINES];
        size_t count = 0;
        s = fl_trials_baselines(w->trials, i, baseline, &count, d);
        for (size_t k = 0; !s && k < count; k++)
            s = move_row(c, &baseline[k], d);
        for (size_t k = 0; !s && k < o->spec_count * o->seeds; k++, at++) {
            if (!w->row[at].policy)
                continue;
            c->ignored_sets += w->row[at].ignored_sets;
            c->faults += w->row[at].faults;
            s = move_row(c, &w->row[at], d);
        }
    }
    return s ? s : fl_comparison_means(c, d);
}

fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d) {
    const size_t runs = fl_trials_count(o);
    work w = {.row = calloc(runs + 1, sizeof *w.row)};
    *c = (fl_comparison){0};
    fl_status s = w.row ? fl_trials_open(&w.trials, o, d) : fl_no_memory(d, "the comparison");
    if (!s)
        s = fl_pool_run(run_one, &w, runs, o->threads, "policies", d);
    if (!s)
        s = collect(o, &w, c, d);
    for (size_t i = 0; w.row && i < runs; i++)
        fl_row_free(&w.row[i]);
    free(w.row);
    fl_trials_close(w.trials);
    if (s)
        fl_comparison_free(c);
    return s;
}

void fl_comparison_free(fl_comparison *c) {
    for (size_t i = 0; i < c->count; i++)
        fl_row_free(&c->row[i]);
    for (size_t i = 0; i < c->label_count; i++)
        free(c->label[i]);
    free(c->label);
    free(c->row);
    *c = (fl_comparison){0};
}
