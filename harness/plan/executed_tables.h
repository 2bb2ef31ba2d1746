/* What is kept of executed plans (harness/plan/executed.h). */
#pragma once

#include "traces/pipeline/plan.h"

typedef struct fl_executed_part { /* one kind of instruction of a rank at one clock */
    int64_t plan;
    uint32_t rank;
    fl_pipeline_what what;
    int32_t mhz;
    size_t count, switched;         /* in an iteration; of these after a forward or backward at another clock */
    double samples, mean_s, square; /* square: sum of squares about the mean */
} fl_executed_part;

typedef struct fl_executed_run { /* means and standard deviations over iterations */
    int64_t plan;
    uint32_t rank;
    size_t iterations;
    double time_s[2], energy_j[2], plan_s[2], plan_j[2];
} fl_executed_run;

typedef struct fl_executed {
    uint32_t ranks, stages, microbatches;
    fl_plans plans;
    fl_executed_run *run;
    size_t run_count, run_room;
    fl_executed_part *part;
    size_t part_count, part_room;
} fl_executed;
