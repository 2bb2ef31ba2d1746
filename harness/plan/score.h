/* How well a pipeline's fit predicts the plans that it has not seen, beside how well one can do without a model. */
#pragma once

#include "harness/plan/fit_pipeline.h"

typedef enum fl_pipeline_learn { /* which plans the fit learns from; it is scored on the others */
                                 FL_LEARN_ALL,
                                 FL_LEARN_HALF,   /* every other one, from the first on */
                                 FL_LEARN_OTHERS, /* those that half leaves out: a fit that shares no plan with it */
                                 FL_LEARN_THREE, /* the first, the slowest of the others and the middle one by number */
                                 FL_LEARN_FIRST,
                                 FL_LEARN_SLOW, /* the slower half; the first plan, where it is a warm-up, belongs to
                                                   neither half */
                                 FL_LEARNS
} fl_pipeline_learn;
extern const char *const fl_pipeline_learn_name[FL_LEARNS];

typedef struct fl_pipeline_error { /* percent, over plans */
    double mean, p95, worst;
} fl_pipeline_error;

typedef struct fl_pipeline_score {
    size_t learned, left_out;       /* plans; the warm-up counts as neither where it was not learned from */
    double *seconds, *joules;       /* by plan: predicted; NAN where it was not */
    fl_pipeline_error time, energy; /* NAN where nothing was left out */
    fl_pipeline_error near_time,
        near_energy; /* of the mean of the two nearest plans, by number, that were learned from */
    size_t limited;  /* runs under power limits of at least `least_limit` W each */
    fl_pipeline_error cap_time, cap_energy;
} fl_pipeline_score;

/* learn: plan_count. The first plan is a warm-up where it asks for the top clock everywhere. */
void fl_pipeline_learn_choose(const fl_pipeline_runs *r, fl_pipeline_learn how, bool *learn);

fl_status fl_pipeline_score_make(const fl_pipeline_fit *f, const bool *learn, double least_limit_w,
                                 fl_pipeline_score *s, fl_diag *d);
void fl_pipeline_score_free(fl_pipeline_score *s);
