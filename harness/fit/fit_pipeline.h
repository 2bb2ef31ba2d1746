/* A pipeline's times and powers from executed plans: how long each rank's forward and backward take at which clock,
 * what transfers and the end of an iteration take, and what a rank draws while it computes and while it waits. Only the
 * energy of a rank over a whole iteration is measured; its parts come from plans that mix clocks in other ways. */
#ifndef FL_FIT_PIPELINE_H
#define FL_FIT_PIPELINE_H

#include "models/stage_law.h"
#include "sim/critical.h"
#include "sim/pipeline.h"
#include "traces/pipeline_runs.h"

typedef struct fl_belief { /* what is expected before a plan has been measured */
    double mean, sd;
} fl_belief;

typedef struct fl_pipeline_beliefs {
    fl_belief share[2], wall[2]; /* forward, backward */
    fl_belief link_s, tail_s;
    fl_belief power, most, blocked; /* shares of the board's limit */
    double rank_sd;                 /* of the ranks' powers among each other, likewise */
    fl_belief s, knee, rise;
} fl_pipeline_beliefs;

/* Of any chip: see fit_pipeline_believe.c for where they are from. */
extern const fl_pipeline_beliefs fl_pipeline_any_chip;

typedef struct fl_pipeline_fit {
    const fl_pipeline_runs *r;
    fl_pipeline p; /* the program, without its fitted rows */
    fl_pipeline_order order;
    fl_node_spec node; /* boards that draw what their tables say and nothing else */
    fl_workload *w;
    fl_pipeline_op *op;
    fl_critical path;
    double limit_w;
    fl_stage_time (*time)[2];        /* by rank: forward, backward */
    double *load_s, *load_in_recv_s; /* by rank */
    double *link_s;                  /* by the lower stage of each pair of neighbours */
    double tail_s;
    double *power_w, *most_w; /* by rank: at FL_STAGE_F0, and where the limit holds it */
    double blocked_w;
    fl_stage_power law;
} fl_pipeline_fit;

/* Makes the program of r->ranks ranks in `stages` stages: 1F1B, or the list of order_file where that is not NULL.
 * f->r = r, which must outlive *f. */
fl_status fl_pipeline_fit_open(fl_pipeline_fit *f, const fl_pipeline_runs *r, uint32_t stages, uint32_t tensor_parallel,
                               const char *order_file, double limit_w, fl_diag *d);
void fl_pipeline_fit_close(fl_pipeline_fit *f);

/* Fits to the plans for which learn[plan] is true. */
fl_status fl_pipeline_fit_learn(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *believed, fl_diag *d);

/* Predicts a plan on the engine: seconds and joules of one iteration, all ranks. */
fl_status fl_pipeline_fit_predict(const fl_pipeline_fit *f, size_t plan, double *seconds, double *joules, fl_diag *d);

/* The same under a power limit of each rank, the clocks left to the boards. */
fl_status fl_pipeline_fit_limits(const fl_pipeline_fit *f, const double *limit_w, double *seconds, double *joules,
                                 fl_diag *d);

/* The fitted pipeline, a row at each of the `count` clocks for each rank; the caller frees *p. */
fl_status fl_pipeline_fit_rows(const fl_pipeline_fit *f, const double *mhz, size_t count, fl_pipeline *p, fl_diag *d);

/* What other pipelines on the same chip, fitted to all their plans, lead to expect. */
void fl_pipeline_fit_believe(const fl_pipeline_fit *const *fit, size_t count, fl_pipeline_beliefs *out);

#endif
