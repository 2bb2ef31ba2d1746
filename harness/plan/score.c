#include "harness/plan/score.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

const char *const fl_pipeline_learn_name[FL_LEARNS] = {"all", "half", "others", "three", "first", "slow"};

/* Plans at least as slow as the median of those behind the warm-up. */
static void choose_slow(const fl_pipeline_runs *r, bool *learn) {
    const size_t first = fl_pipeline_warm_up(r) ? 1 : 0, count = r->plan_count - first;
    for (size_t i = first; i < r->plan_count; i++) {
        size_t slower = 0;
        for (size_t k = first; k < r->plan_count; k++)
            slower += r->time_s[k] > r->time_s[i] || (r->time_s[k] == r->time_s[i] && k < i);
        learn[i] = slower < count / 2;
    }
}

void fl_pipeline_learn_choose(const fl_pipeline_runs *r, fl_pipeline_learn how, bool *learn) {
    for (size_t i = 0; i < r->plan_count; i++)
        learn[i] = how == FL_LEARN_ALL || (how == FL_LEARN_HALF && i % 2 == 0) || (how == FL_LEARN_OTHERS && i % 2);
    if (how == FL_LEARN_FIRST || how == FL_LEARN_THREE)
        learn[0] = true;
    if (how == FL_LEARN_THREE) {
        size_t slowest = r->plan_count > 1;
        for (size_t i = 1; i < r->plan_count; i++)
            slowest = r->time_s[i] > r->time_s[slowest] ? i : slowest;
        learn[slowest] = learn[r->plan_count / 2] = true;
    }
    if (how == FL_LEARN_SLOW)
        choose_slow(r, learn);
}

static fl_pipeline_error error_of(double *percent, size_t count) {
    fl_pipeline_error e = {NAN, NAN, NAN};
    double sum = 0;
    if (!count)
        return e;
    for (size_t i = 0; i < count; i++)
        sum += percent[i] = fabs(percent[i]);
    gsl_sort(percent, 1, count);
    e.mean = sum / (double)count;
    e.p95 = percent[(19 * count + 19) / 20 - 1];
    e.worst = percent[count - 1];
    return e;
}

/* Without a model: what the nearest plans on both sides took, or the nearest one. `first`: not the warm-up. */
static double near_mean(const double *x, const bool *learn, size_t first, size_t count, size_t plan) {
    size_t below = plan, above = plan;
    while (below > first && !learn[below])
        below--;
    while (above + 1 < count && !learn[above])
        above++;
    if (learn[below] && learn[above])
        return (x[below] + x[above]) / 2;
    return learn[below] ? x[below] : learn[above] ? x[above] : NAN;
}

static fl_status score_limits(const fl_pipeline_fit *f, double least_w, double *time, double *energy,
                              fl_pipeline_score *s, fl_diag *d) {
    const fl_pipeline_runs *r = f->r;
    fl_status status = FL_OK;
    for (size_t k = 0; !status && k < r->cap_count; k++) {
        const double *limit = r->limit_w + k * r->ranks;
        double seconds, joules;
        bool counts = r->cap[k].plan > 0; /* the first of each family is a warm-up */
        for (uint32_t rank = 0; rank < r->ranks; rank++)
            counts = counts && limit[rank] >= least_w;
        if (!counts)
            continue;
        status = fl_pipeline_fit_limits(f, limit, &seconds, &joules, d);
        time[s->limited] = 100 * (seconds / r->cap[k].time_s - 1);
        energy[s->limited++] = 100 * (joules / r->cap[k].energy_j - 1);
    }
    s->cap_time = error_of(time, s->limited);
    s->cap_energy = error_of(energy, s->limited);
    return status;
}

fl_status fl_pipeline_score_make(const fl_pipeline_fit *f, const bool *learn, double least_limit_w,
                                 fl_pipeline_score *s, fl_diag *d) {
    const fl_pipeline_runs *r = f->r;
    const size_t room = r->plan_count + r->cap_count + 1;
    *s = (fl_pipeline_score){.seconds = calloc(room, sizeof *s->seconds), .joules = calloc(room, sizeof *s->joules)};
    double *percent = calloc(4 * room, sizeof *percent);
    double *time = percent, *energy = percent + room, *near_time = percent + 2 * room,
           *near_energy = percent + 3 * room;
    fl_status status = s->seconds && s->joules && percent ? FL_OK : fl_no_memory(d, "the score");
    const size_t first = fl_pipeline_warm_up(r) ? 1 : 0;
    size_t near = 0;
    for (size_t i = 0; !status && i < r->plan_count; i++) {
        status = fl_pipeline_fit_predict(f, i, &s->seconds[i], &s->joules[i], d);
        s->learned += learn[i];
        if (status || learn[i] || i < first)
            continue;
        time[s->left_out] = 100 * (s->seconds[i] / r->time_s[i] - 1);
        energy[s->left_out++] = 100 * (s->joules[i] / r->energy_j[i] - 1);
        near_time[near] = 100 * (near_mean(r->time_s, learn, first, r->plan_count, i) / r->time_s[i] - 1);
        near_energy[near] = 100 * (near_mean(r->energy_j, learn, first, r->plan_count, i) / r->energy_j[i] - 1);
        near += isnan(near_time[near]) ? 0 : 1;
    }
    if (!status) {
        s->time = error_of(time, s->left_out);
        s->energy = error_of(energy, s->left_out);
        s->near_time = error_of(near_time, near);
        s->near_energy = error_of(near_energy, near);
        status = score_limits(f, least_limit_w, time, energy, s, d);
    }
    free(percent);
    if (status)
        fl_pipeline_score_free(s);
    return status;
}

void fl_pipeline_score_free(fl_pipeline_score *s) {
    free(s->seconds);
    free(s->joules);
    *s = (fl_pipeline_score){0};
}
