/* Does the ranking of the policies survive what is not known of the model? Every draw moves the model within its error
 * (sim/gpu/rates.h, fl_rates_err), runs all policies on it, and ranks them. */
#pragma once

#include "harness/study/trial/trial.h"

typedef struct fl_ranking { /* of one policy */
    size_t first;           /* draws in which it came first */
    size_t held;            /* draws in which it held the bound on every workload */
    double mean_rank;
    double saving_pct, saving_sd_pct; /* mean over workloads, against the default in the same draw; over the draws */
    size_t workloads; /* it is ranked on; 0: it is for none, and not ranked: no first, mean_rank and savings NAN */
} fl_ranking;

typedef struct fl_model_error_options {
    size_t draws;
    double time_pct, power_pct; /* mean absolute errors; NAN: what each workload's own model says */
    uint64_t seed;
} fl_model_error_options;

/* ranking: o->spec_count, in the order of the policies. A policy that breaks the bound in a draw is ranked behind all
 * that hold it; of equals the earlier is first. The objective asked for counts, relative to the default's. What is
 * ranked are the workloads that all policies are for, policies for none of them all left aside. FL_BAD_INPUT where a
 * workload's error is not known and none is given, or no workload is left. */
fl_status fl_model_error_run(const fl_comparison_options *o, const fl_model_error_options *e, fl_ranking *ranking,
                             fl_diag *d);
void fl_model_error_print(const fl_comparison_options *o, const fl_model_error_options *e, const fl_ranking *ranking,
                          FILE *out);
