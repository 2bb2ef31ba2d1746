/* How long each rank's forward and backward take at which clock. */
#include "harness/plan/program.h"

#include "models/math/least.h"

#include <math.h>

typedef struct times { /* of one part: what was measured at each clock */
    double clock[FL_PF_CLOCKS_MAX], log_s[FL_PF_CLOCKS_MAX], sd[FL_PF_CLOCKS_MAX];
    size_t count;
    const fl_belief *share;
    fl_belief wall;
    double start; /* of log_t0 */
} times;

static void add_time(times *t, double *weight, double clock, double mean_s, double count) {
    size_t k = 0;
    while (k < t->count && t->clock[k] != clock)
        k++;
    if (k == FL_PF_CLOCKS_MAX)
        return; /* more clocks than any ladder has */
    if (k == t->count) {
        t->count++;
        t->clock[k] = clock;
        t->log_s[k] = weight[k] = 0;
    }
    t->log_s[k] += mean_s * count;
    weight[k] += count;
}

static void gather(const fl_pipeline_fit *f, uint32_t rank, fl_pipeline_what what, const bool *learn, times *t) {
    double weight[FL_PF_CLOCKS_MAX];
    t->count = 0;
    for (size_t i = 0; i < f->r->part_count; i++) {
        const fl_part_row *p = &f->r->part[i];
        if (p->rank == rank && p->what == what && learn[p->plan])
            add_time(t, weight, fl_pf_clock(f, p->sm_mhz), p->mean_s, p->count);
    }
    for (size_t k = 0; k < t->count; k++) {
        t->log_s[k] = log(t->log_s[k] / weight[k]);
        t->sd[k] = sqrt(FL_PF_SD_INSTRUCTION * FL_PF_SD_INSTRUCTION + FL_PF_SD_ONE * FL_PF_SD_ONE / weight[k]);
    }
}

static fl_stage_time time_of(const times *t, const double *x) {
    /* A share and a wall that no part can have would give no logarithm. */
    return (fl_stage_time){.log_t0 = t->start + 0.1 * x[0],
                           .share = fmin(fmax(fl_pf_believed(t->share, x[1]), 0), 1),
                           .wall = fmax(fl_pf_believed(&t->wall, x[2]), 0.2)};
}

static void time_residuals(void *user, const double *x, double *residual) {
    const times *t = user;
    const fl_stage_time law = time_of(t, x);
    for (size_t k = 0; k < t->count; k++)
        residual[k] = (log(fl_stage_law_at(&law, t->clock[k])) - t->log_s[k]) / hypot(FL_PF_SD_LAW, t->sd[k]);
    residual[t->count] = x[1];
    residual[t->count + 1] = x[2];
}

fl_status fl_pf_learn_time(fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn, const fl_pipeline_beliefs *b,
                           fl_diag *d) {
    const fl_pipeline_what what = k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
    times t = {.share = &b->share[k], .wall = fl_pf_wall(f, rank, k, learn, b)};
    double x[3] = {0};
    gather(f, rank, what, learn, &t);
    if (!t.count)
        return fl_refuse(d, "no %s of rank %u was measured in the plans to learn from", fl_pipeline_what_name[what],
                         rank);
    t.start = t.log_s[0];
    if (fl_least_squares(time_residuals, &t, x, 3, t.count + 2))
        return fl_error(d, FL_MODEL_FAULT, "the times of rank %u cannot be fitted", rank);
    fl_stage_time_free(&f->time[rank][k]);
    f->time[rank][k] = time_of(&t, x);
    return fl_stage_time_correct(&f->time[rank][k], t.clock, t.log_s, t.sd, t.count) ? fl_no_memory(d, "the fit")
                                                                                     : FL_OK;
}
