/* What was measured of executed plans of a pipeline: files with a common beginning.
 *
 *   BASE.plans.csv         the clocks that each plan asks for (traces/pipeline/plan.h)
 *   BASE.measured.csv      plan,rank,iter_time_s,iter_energy_j,plan_time_s,plan_energy_j: of one iteration
 *   BASE.instructions.csv  plan,rank,kind,sm_mhz,count,time_mean_s,time_sd_s: kind forward, backward, load,
 *                          load_in_recv
 *   BASE.caps.csv          may be absent: family,plan,rank,power_limit_w,plan_time_s,plan_energy_j: runs under a power
 *                          limit of each rank, the clocks left to the boards
 *
 * Columns beyond these are left alone, and so are comment lines: the layout is that of the measurements published with
 * Perseus (SOSP '24), as one table per kind. */
#pragma once

#include "traces/pipeline/plan.h"

typedef struct fl_run_row {
    double time_s, energy_j; /* of the rank; both above 0 */
} fl_run_row;

typedef struct fl_part_row {
    uint32_t plan, rank, count;
    fl_pipeline_what what;
    double sm_mhz, mean_s, sd_s;
    int64_t line;
} fl_part_row;

typedef struct fl_cap_run { /* a run under power limits */
    int64_t plan;           /* number, within its family */
    char family[24];
    double time_s, energy_j;
} fl_cap_run;

typedef struct fl_pipeline_runs {
    int64_t *plan; /* plan_count: numbers as the files have them */
    size_t plan_count;
    uint32_t ranks, microbatches;
    double top_mhz;     /* the highest clock that any plan asks for */
    fl_plan_row *asked; /* by plan, rank, forward then backward, and microbatch */
    size_t asked_count;
    fl_run_row *run;           /* [plan][rank] */
    double *time_s, *energy_j; /* by plan: of the whole iteration, all ranks */
    fl_part_row *part; /* by plan and rank, else as the file has them */
    size_t part_count, part_room;
    fl_cap_run *cap;
    double *limit_w; /* [cap][rank]; 0 = not stated */
    size_t cap_count, cap_room, limit_room;
} fl_pipeline_runs;

/* Reads the three files, or leaves *r zeroed. Refuses files without a plan, a plan that does not ask one clock for
 * every microbatch of every rank, and one that was not measured. */
fl_status fl_pipeline_runs_read(const char *base, fl_pipeline_runs *r, fl_diag *d);
/* The first row of what a rank of a plan asked for, and of what was measured of it; one past the last where there is
 * none of it or of a later one. */
size_t fl_pipeline_runs_asked(const fl_pipeline_runs *r, uint32_t plan, uint32_t rank);
size_t fl_pipeline_runs_part(const fl_pipeline_runs *r, uint32_t plan, uint32_t rank);
void fl_pipeline_runs_free(fl_pipeline_runs *r);
