/* A pipeline's times and powers from executed plans: how long each rank's forward and backward take at which clock,
 * what transfers and the end of an iteration take, and what a rank draws while it computes and while it waits. Only the
 * energy of a rank over a whole iteration is measured; its parts come from plans that mix clocks in other ways. */
#pragma once

#include "harness/plan/program.h"

/* Fits to the plans for which learn[plan] is true. */
fl_status fl_pipeline_fit_learn(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *believed, fl_diag *d);

/* Predicts a plan on the engine: seconds and joules of one iteration, all ranks. */
fl_status fl_pipeline_fit_predict(const fl_pipeline_fit *f, size_t plan, double *seconds, double *joules, fl_diag *d);

/* The same under a power limit of each rank, the clocks left to the boards. */
fl_status fl_pipeline_fit_limits(const fl_pipeline_fit *f, const double *limit_w, double *seconds, double *joules,
                                 fl_diag *d);

/* The fitted pipeline, a row at each of the `count` clocks for each rank; the caller frees *p. */
fl_status fl_pipeline_fit_rows(const fl_pipeline_fit *f, const double *mhz, size_t count, fl_pipeline *p, fl_diag *d);

/* The same rows, each the mean over fits to `twins` halves of the plans of learn, which are drawn by chance: a planner
 * exploits what one fit gets wrong, and the mean gets less wrong (Breiman, "Bagging predictors", 1996). *f is fitted to
 * all of them afterwards. */
fl_status fl_pipeline_fit_twins(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, uint32_t twins,
                                fl_pipeline *p, const double *mhz, size_t count, fl_diag *d);
