/* Pipeline files: one iteration of pipeline-parallel training, as what each rank does and how long that takes.
 *
 * Head "# foldline-pipeline 1"; keys:
 *   schedule         1f1b, gpipe, interleaved, or list (what each stage does is stated in the file that `order` names)
 *   stages, microbatches                   both from 1
 *   chunks           parts of the model on each rank, of an interleaved schedule; 1 where not stated
 *   data_parallel, tensor_parallel         both 1 where not stated
 *   order            of a list: a file beside this one (traces/pipeline/order.h)
 *   source           where the numbers come from
 * Columns: rank,what,sm_mhz,time_s,power_w; optional: chunk.
 *
 * There are stages x tensor_parallel x data_parallel ranks, each one GPU. Rank r is stage r mod stages, and of the
 * tensor-parallel group of its stage member (r / stages) mod tensor_parallel.
 *
 * rank "*" states a row for every rank that has none of its own. what, and what the row has:
 *   forward, backward       sm_mhz, time_s and power_w: one row per clock, at least one; between two a monotone curve
 *   load                    time_s: what the first and last stage take to load a microbatch
 *   load_in_recv            time_s: the same, taken while an activation is received
 *   act, grad               time_s: what a transfer takes from this rank to its neighbour; 0 where not stated
 *   reduce_tied, reduce_data, step         time_s: the end of an iteration; 0 where not stated
 *   blocked                 power_w: of the board while it waits, transfers or loads; must be stated
 */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

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

/* FL_BAD_INPUT where the ranks have more to do than FL_PIPELINE_PARTS_MAX and FL_PIPELINE_MEETINGS_MAX allow. */
fl_status fl_pipeline_check_size(const fl_pipeline *p, fl_diag *d);

/* Building one in memory. Adds a row; after the last, fl_pipeline_finish sorts them and refuses what fl_pipeline_read
 * does. */
fl_status fl_pipeline_add(fl_pipeline *p, const fl_pipeline_row *row, fl_diag *d);
fl_status fl_pipeline_finish(fl_pipeline *p, fl_diag *d);
