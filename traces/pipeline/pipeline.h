/* Files about pipelines of training: pipeline files, lists of instructions, plans of clocks, and measured runs of
 * plans.
 *
 * Each has a _read that fills a struct or leaves it zeroed, and refuses with file, line and column; the caller frees by
 * its _free. Pipelines and plans can be built in memory (_add) and written. sim/pipeline makes workloads of them.
 *
 * harness/manual/formats/pipelines.md specifies each file. Rank r is stage r mod stages, and of the tensor-parallel
 * group of its stage member (r / stages) mod tensor_parallel. */
#pragma once

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_PIPELINE_WHAT(X)                                                                                            \
    X(FORWARD, forward)                                                                                                \
    X(BACKWARD, backward)                                                                                              \
    X(LOAD, load)                                                                                                      \
    X(LOAD_IN_RECV, load_in_recv)                                                                                      \
    X(ACT, act)                                                                                                        \
    X(GRAD, grad)                                                                                                      \
    X(REDUCE_TIED, reduce_tied)                                                                                        \
    X(REDUCE_DATA, reduce_data)                                                                                        \
    X(STEP, step)                                                                                                      \
    X(BLOCKED, blocked)

#define FL_ROW_PIPELINE_WHAT(id, name) FL_PIPELINE_##id,
typedef enum fl_pipeline_what { FL_PIPELINE_WHAT(FL_ROW_PIPELINE_WHAT) FL_PIPELINE_WHATS } fl_pipeline_what;
extern const char *const fl_pipeline_what_name[FL_PIPELINE_WHATS];

typedef enum fl_pipeline_schedule {
    FL_PIPELINE_1F1B,
    FL_PIPELINE_GPIPE,
    FL_PIPELINE_INTERLEAVED,
    FL_PIPELINE_LIST,
    FL_PIPELINE_SCHEDULES
} fl_pipeline_schedule;
extern const char *const fl_pipeline_schedule_name[FL_PIPELINE_SCHEDULES];

#define FL_PIPELINE_ALL (-1) /* rank or chunk of a row that holds for all */
enum { FL_PIPELINE_RANKS_MAX = 1024, FL_PIPELINE_CHUNKS_MAX = 64, FL_PIPELINE_MICROBATCHES_MAX = 1000000 };
/* Forwards of all ranks in one iteration; and of these, how often one meets another of its tensor-parallel group. A
 * file of a few lines may state many, and each costs about 500 bytes. */
enum { FL_PIPELINE_PARTS_MAX = 1000000, FL_PIPELINE_MEETINGS_MAX = 8000000 };

typedef struct fl_pipeline_row {
    int32_t rank, chunk;
    fl_pipeline_what what;
    double sm_mhz, time_s, power_w; /* NAN where the row has none */
    int64_t line;
} fl_pipeline_row;

typedef struct fl_pipeline {
    fl_head head;
    char *file;
    fl_pipeline_schedule schedule;
    uint32_t stages, microbatches, chunks, data_parallel, tensor_parallel;
    double limit_w;       /* the boards' power limit while the rows were measured; 0: not stated */
    uint32_t ranks;       /* stages x tensor_parallel x data_parallel */
    char *order;          /* path of the list of a FL_PIPELINE_LIST, else NULL */
    fl_pipeline_row *row; /* sorted by what, rank, chunk and clock */
    size_t row_count, row_room;
} fl_pipeline;

/* Fills *p or leaves it zeroed. Refuses, with line and column, unknown keys' values and names, ranks and chunks that do
 * not exist, two rows of one rank, what, chunk and clock, ranks without forward, backward or blocked, and what
 * fl_pipeline_check_size refuses. */
fl_status fl_pipeline_read(const char *path, fl_pipeline *p, fl_diag *d);
/* Writes to `path` through a temporary file and a rename. */
fl_status fl_pipeline_write(const char *path, const fl_pipeline *p, fl_diag *d);
void fl_pipeline_free(fl_pipeline *p);

/* The rows of a rank, ascending by clock: its own, else those of "*"; of either those of its chunk, else those of any.
 * *count: how many; where it is 0 the result is NULL. They belong to p. */
const fl_pipeline_row *fl_pipeline_rows(const fl_pipeline *p, uint32_t rank, uint32_t chunk, fl_pipeline_what what,
                                        size_t *count);

/* Return the highest power of a forward or backward, in W. */
double fl_pipeline_most_w(const fl_pipeline *p);

/* FL_BAD_INPUT where the ranks have more to do than FL_PIPELINE_PARTS_MAX and FL_PIPELINE_MEETINGS_MAX allow. */
fl_status fl_pipeline_check_size(const fl_pipeline *p, fl_diag *d);

/* Building one in memory. Adds a row; after the last, fl_pipeline_finish sorts them and refuses what fl_pipeline_read
 * does. */
fl_status fl_pipeline_add(fl_pipeline *p, const fl_pipeline_row *row, fl_diag *d);
fl_status fl_pipeline_finish(fl_pipeline *p, fl_diag *d);

/* ---- lists: what each stage does in one iteration, instruction by instruction ---- */

/* An activation goes from stage s to s + 1, a gradient back. A pair (send one, receive the other) is one instruction
 * that ends when both transfers have. */
#define FL_INSTRUCTIONS(X)                                                                                             \
    X(LOAD, load)                                                                                                      \
    X(FORWARD, forward)                                                                                                \
    X(BACKWARD, backward)                                                                                              \
    X(SEND_ACT, send_act)                                                                                              \
    X(RECV_ACT, recv_act)                                                                                              \
    X(SEND_GRAD, send_grad)                                                                                            \
    X(RECV_GRAD, recv_grad)                                                                                            \
    X(SEND_ACT_RECV_GRAD, send_act_recv_grad)                                                                          \
    X(SEND_GRAD_RECV_ACT, send_grad_recv_act)                                                                          \
    X(REDUCE_TIED, reduce_tied)                                                                                        \
    X(REDUCE_DATA, reduce_data)                                                                                        \
    X(STEP, step)

#define FL_ROW_INSTRUCTION(id, name) FL_DO_##id,
typedef enum fl_instruction_type { FL_INSTRUCTIONS(FL_ROW_INSTRUCTION) FL_INSTRUCTION_TYPES } fl_instruction_type;
extern const char *const fl_instruction_name[FL_INSTRUCTION_TYPES];

typedef struct fl_instruction {
    fl_instruction_type type;
    int32_t microbatch, microbatch2; /* of a pair: the one sent, the one received; -1: none */
    int32_t chunk;
} fl_instruction;

typedef struct fl_pipeline_list {
    fl_instruction *item;
    size_t count, room;
} fl_pipeline_list;

typedef struct fl_pipeline_order {
    fl_pipeline_list *stage; /* stages */
    uint32_t stages;
} fl_pipeline_order;

/* Fills *o for `stages` stages and microbatches below `microbatches`, or leaves it zeroed. It does not check what
 * the instructions mean together. */
fl_status fl_pipeline_order_read(const char *path, uint32_t stages, uint32_t microbatches, fl_pipeline_order *o,
                                 fl_diag *d);
/* Count the stages of such a file. */
fl_status fl_pipeline_order_stages(const char *path, uint32_t *stages, fl_diag *d);
bool fl_pipeline_order_same(const fl_pipeline_order *x, const fl_pipeline_order *y);
fl_status fl_pipeline_order_new(fl_pipeline_order *o, uint32_t stages, fl_diag *d);
fl_status fl_pipeline_order_add(fl_pipeline_order *o, uint32_t stage, fl_instruction item, fl_diag *d);
void fl_pipeline_order_free(fl_pipeline_order *o);

/* ---- plan files ----
 *
 * The SM clock that a plan asks for, for each forward and backward of each rank of a pipeline. */

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

/* Return whether a file has the columns of a plan; false if it cannot be read. */
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

/* Allocate clocks for all parts of a pipeline, all 0. The caller frees *c. */
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

/* ---- measured runs of plans: files with a common beginning ----
 *
 * BASE.plans.csv, BASE.measured.csv, BASE.instructions.csv and BASE.caps.csv, which may be absent. The layout is that
 * of the measurements published with Perseus (SOSP 2024). */

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
    fl_part_row *part;         /* by plan and rank, else as the file has them */
    size_t part_count, part_room;
    fl_cap_run *cap;
    double *limit_w; /* [cap][rank]; 0 = not stated */
    size_t cap_count, cap_room, limit_room;
} fl_pipeline_runs;

/* Reads the three files, or leaves *r zeroed. Refuses files without a plan, a plan that does not ask one clock for
 * every microbatch of every rank, and one that was not measured. */
fl_status fl_pipeline_runs_read(const char *base, fl_pipeline_runs *r, fl_diag *d);
/* Return the first row of `asked`, or of `part`, of a rank of a plan. Without such a row, return the first one of a
 * later rank, or one past the last. */
size_t fl_pipeline_runs_asked(const fl_pipeline_runs *r, uint32_t plan, uint32_t rank);
size_t fl_pipeline_runs_part(const fl_pipeline_runs *r, uint32_t plan, uint32_t rank);
void fl_pipeline_runs_free(fl_pipeline_runs *r);
