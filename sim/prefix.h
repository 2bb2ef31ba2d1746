/* A lone stream by sums over its ops: what a clock makes of them is added up once, and a stretch between two boundaries
 * is then a difference of two sums, whatever its length. Integers wrap and sums do not depend on their order, so the
 * bits are those of the scan. Internal to sim/.
 *
 * A table belongs to one stream at one pair of clocks. It is shared by all runs, built by the run with which as many
 * ops have been scanned there as the stream has, and used where a stretch spans more than FL_PREFIX_WORTH ops. */
#ifndef FL_PREFIX_H
#define FL_PREFIX_H

#include "models/row.h"
#include "sim/workload.h"

#include <stdatomic.h>

#define FL_PREFIX_ROW 32                        /* ops between two rows of sums: 2 bytes per op */
#define FL_PREFIX_COARSE 64                     /* rows between two instants of the table of contents */
#define FL_PREFIX_PEAK 1024                     /* ops that share an entry of the highest power */
#define FL_PREFIX_WORTH 300                     /* ops: shorter stretches are scanned as fast */
#define FL_PREFIX_MOST_BYTES (INT64_C(1) << 30) /* all tables of the process together take at most so much */

struct fl_gpu;
struct fl_lane;
struct fl_clock_rates;

typedef struct fl_prefix_sums { /* over the ops before one: a cache line. uint64_t, since only differences count */
    uint64_t t_ps;              /* when it begins, gaps included, if the stream ran alone from 0 */
    uint64_t busy_ps, dyn_fj, memory, alu, sms;
    uint64_t sm_fj, memory_fj; /* parts of dyn_fj; the third is what is left of it */
} fl_prefix_sums;

typedef struct fl_prefix { /* immutable once visible */
    const fl_stream *s;
    const struct fl_clock_rates *rates;
    int64_t bytes;       /* that it takes */
    size_t rows;         /* stretches of FL_PREFIX_ROW ops that the table holds */
    fl_prefix_sums *row; /* rows + 1: before each FL_PREFIX_ROW-th op */
    uint64_t *coarse_ps; /* t_ps of each FL_PREFIX_COARSE-th row: few enough to stay in a near cache */
    int32_t *peak_mw;    /* of each FL_PREFIX_PEAK ops that take time, the highest dyn_mw; INT32_MIN where none does */
    double coarse_per_ps;
    int64_t worth_ps; /* FL_PREFIX_WORTH ops on average */
} fl_prefix;

typedef struct fl_prefix_place { /* the sums before an op that need not be a row's */
    const fl_prefix *table;      /* NULL: none is known */
    uint64_t op;
    fl_prefix_sums sums;
} fl_prefix_place;

typedef struct fl_prefix_jump { /* ops from .. to - 1, of which the residence of a slot does not tell the classes */
    const fl_prefix *table;
    uint32_t slot;
    uint64_t from, to;
} fl_prefix_jump;

/* Of each stream at one pair of clocks: its table, NULL until built, and the ops scanned there by all runs. */
typedef struct fl_prefix_cell {
    _Atomic(fl_prefix *) table;
    _Atomic uint64_t scanned;
} fl_prefix_cell;

/* stream_count cells, or NULL for want of memory. */
fl_prefix_cell *fl_prefix_cells_new(uint32_t stream_count);
void fl_prefix_cells_free(fl_prefix_cell *cell, uint32_t stream_count);
/* For tests: another limit than FL_PREFIX_MOST_BYTES, from now on. */
void fl_prefix_limit(int64_t bytes);

/* Whether tables of sums may carry a lone stream now: kernels alone, gaps as recorded, nobody watches single ops. */
bool fl_prefix_applies(const struct fl_gpu *g, const struct fl_lane *l, uint32_t gap_mul);

/* Moves a lane to which fl_prefix_applies, and which stands before an op at t, over whole ops that end by `until`: all
 * of them where there is a table for its clocks and the stretch is long, else none. Returns the instant reached. */
int64_t fl_prefix_advance(struct fl_gpu *g, struct fl_lane *l, int64_t t, int64_t until);

/* So many ops of a stream to which fl_prefix_applies were scanned in one stretch at the clocks in force: builds the
 * table where that makes it due. */
void fl_prefix_scanned(struct fl_gpu *g, const fl_stream *s, uint64_t ops);

/* The highest dyn_mw plus base of all jumps of a GPU, or `peak` where that is higher. In mW. */
int64_t fl_prefix_peak_mw(const struct fl_gpu *g, int64_t peak);

/* Turns the jumps of a GPU into residence per class, by passing over their ops. For who asks for classes. */
void fl_prefix_settle(struct fl_gpu *g);

#endif
