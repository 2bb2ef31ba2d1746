/* Plan files: the SM clock that a plan asks for, for each forward and backward of each rank of a pipeline.
 *
 * Head "# foldline-plan 1" (published plans come without; then they may begin with other comments); keys: pipeline,
 * source. Columns: rank,instruction,first_microbatch,count,sm_mhz; optional: plan,chunk.
 *
 * A row says that a rank runs `instruction` (forward or backward) of the microbatches first_microbatch to
 * first_microbatch + count - 1 at sm_mhz, in whole MHz. The order of rows does not matter; they say nothing of the
 * order in which a rank comes to its instructions, which is the pipeline's. A file may hold several plans, one after
 * the other, by ascending numbers in the column plan; without it the file is one plan, number 0. chunk is the part of
 * the model of an interleaved schedule; 0 where not stated.
 *
 * A rank without rows is left to the driver. A rank with rows must have a clock for each of its instructions. */
#pragma once

#include "traces/pipeline/pipeline.h"

typedef struct fl_plan_row {
    uint32_t plan; /* its place among the plans of the file */
    uint32_t rank, chunk, first, count;
    bool backward;
    double sm_mhz;
    int64_t line; /* 0: of no file */
} fl_plan_row;

typedef struct fl_plans {
    fl_head head;
    char *file;
    int64_t *number; /* plan_count, ascending: as the file has them */
    size_t plan_count, plan_room;
    uint32_t ranks, chunks, microbatches; /* that the rows reach: each is one more than the highest named */
    double top_mhz;                       /* the highest clock that any plan asks for */
    fl_plan_row *row; /* sorted by plan, rank, forward before backward, chunk, microbatch; no two overlap */
    size_t row_count, row_room;
} fl_plans;

/* Whether its columns are those of a plan. A file that cannot be read is none. */
bool fl_plans_is(const char *path);
/* Fills *p or leaves it zeroed. Refuses a file without rows, clocks that are not whole, plans whose numbers do not
 * ascend, and two clocks for one instruction. */
fl_status fl_plans_read(const char *path, fl_plans *p, fl_diag *d);
/* Writes to `path` through a temporary file and a rename. The columns plan and chunk are there where more than plan 0
 * and chunk 0 is. */
fl_status fl_plans_write(const char *path, const fl_plans *p, fl_diag *d);
void fl_plans_free(fl_plans *p);

/* The place of the plan with that number; FL_BAD_INPUT where there is none, with the numbers that there are. */
fl_status fl_plans_find(const fl_plans *p, int64_t number, size_t *place, fl_diag *d);

/* A clock for each forward and backward of each rank, instruction by instruction. */
typedef struct fl_pipeline_clocks {
    double *mhz; /* [rank][backward][chunk][microbatch]; 0: left to the driver */
    uint32_t ranks, chunks, microbatches;
} fl_pipeline_clocks;

static inline double *fl_pipeline_clock(const fl_pipeline_clocks *c, uint32_t rank, bool backward, uint32_t chunk,
                                        uint32_t microbatch) {
    return &c->mhz[(((size_t)rank * 2 + backward) * c->chunks + chunk) * c->microbatches + microbatch];
}

/* Of the size of a pipeline, all 0; the caller frees it. */
fl_status fl_pipeline_clocks_new(const fl_pipeline *p, fl_pipeline_clocks *c, fl_diag *d);
void fl_pipeline_clocks_free(fl_pipeline_clocks *c);

/* The clocks of the plan at `place`, for pipeline `p`; the caller frees *c. FL_BAD_INPUT where it names a rank, chunk
 * or microbatch that p does not have, or leaves an instruction of a rank without a clock but not all of them. */
fl_status fl_plans_clocks(const fl_plans *plans, size_t place, const fl_pipeline *p, fl_pipeline_clocks *c, fl_diag *d);

/* Adds a plan, run-length coded, with a number above those that are there: how a planner makes a file. All clocks of a
 * rank are 0 or none is; they are whole MHz. Fills a zeroed struct, too. */
fl_status fl_plans_add(fl_plans *plans, int64_t number, const fl_pipeline_clocks *c, fl_diag *d);

/* Refuses, at its line, the first row of the plan at `place` that asks rank `rank` for a clock that is not among these
 * `count`, which ascend; offers the nearest. */
fl_status fl_plans_check_ladder(const fl_plans *plans, size_t place, uint32_t rank, const int32_t *mhz, uint32_t count,
                                fl_diag *d);
