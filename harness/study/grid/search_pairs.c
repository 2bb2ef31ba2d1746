#include "harness/study/grid/search_pairs.h"

#include "harness/base/work/pool.h"

#include <math.h>
#include <stdlib.h>

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
    fl_row_free(&row);
    return FL_OK;
}

fl_status fl_pairs_run(fl_trials *t, const fl_comparison_options *o, fl_pair_job *job, size_t count, fl_diag *d) {
    work w = {t, o, job};
    return fl_pool_run(run_one, &w, count, o->threads, "trials", d);
}

void fl_pair_sum_add(fl_pair_sum *sum, const fl_pair_job *job) {
    if (!job->runs)
        return;
    sum->ratio += job->ratio;
    sum->slowdown += job->slowdown;
    sum->violated += job->violated;
    sum->runs++;
}

fl_search_sum fl_pair_sum_mean(const fl_pair_sum *sum) {
    fl_search_sum mean = *sum;
    mean.ratio = sum->runs ? sum->ratio / (double)sum->runs : (double)NAN;
    mean.slowdown = sum->runs ? sum->slowdown / (double)sum->runs : (double)NAN;
    return mean;
}

size_t fl_pairs_of(const fl_comparison_options *o, const bool *use, size_t *pair) {
    size_t n = 0;
    for (size_t i = 0; i < o->scenes->count * o->seeds; i++)
        if (!use || use[i / o->seeds])
            pair[n++] = i;
    return n;
}

fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use,
                          fl_search_sum *out, fl_diag *d) {
    const size_t most = o->scenes->count * o->seeds + 1;
    size_t *pair = calloc(most, sizeof *pair);
    fl_pair_job *job = calloc(most, sizeof *job);
    *out = (fl_search_sum){0};
    fl_status s = pair && job ? FL_OK : fl_no_memory(d, "the search");
    const size_t count = s ? 0 : fl_pairs_of(o, use, pair);
    if (!s && !count)
        s = fl_refuse(d, "nothing to score on, expected at least one workload");
    for (size_t i = 0; i < count; i++)
        job[i] = (fl_pair_job){.spec = spec, .pair = pair[i]};
    if (!s)
        s = fl_pairs_run(t, o, job, count, d);
    for (size_t i = 0; !s && i < count; i++)
        fl_pair_sum_add(out, &job[i]);
    *out = fl_pair_sum_mean(out);
    free(pair);
    free(job);
    return s;
}
