/* The integer arithmetic of work in progress, which every way of advancing shares, and the tables of prefix sums.
 *
 * Work is counted in the picoseconds that it takes alone at the present clocks. Work done rounds down and ends round
 * up, so that work never ends early. When a clock lands in mid-kernel, fl_rescale_ps converts what is left. The
 * functions are pure; fl_prefix_new alone allocates. */
#pragma once

#include "models/laws/laws.h"
#include "sim/base/base.h"
#include "sim/workload/workload.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* ---- tables of prefix sums: contents, and the memory that all of them may take ----
 *
 * sim/advance/advance.h describes their use. */

#define FL_PREFIX_ROW 32     /* ops between two rows of sums: 2 bytes per op */
#define FL_PREFIX_COARSE 64  /* rows between two instants of the table of contents */
#define FL_PREFIX_PEAK 1024  /* ops that share an entry of the highest power */
#define FL_PREFIX_WORTH 300  /* ops: shorter stretches are scanned as fast */
#define FL_PREFIX_SCANS 2ULL /* of the whole stream at a clock, before its table is built */

struct fl_clock_rates;

typedef struct fl_prefix_sums { /* sums over the ops before one op, in one cache line; unsigned, since only differences
                                   matter */
    uint64_t t_ps;              /* start of the op, including gaps, if the stream ran alone from 0 */
    uint64_t busy_ps, dyn_fj, memory, alu, sms;
    uint64_t sm_fj, memory_fj; /* parts of dyn_fj; the third is what is left of it */
} fl_prefix_sums;

typedef enum fl_prefix_depth {                   /* which of these sums a caller needs, besides t_ps */
                               FL_PREFIX_BUSY,   /* busy_ps */
                               FL_PREFIX_ENERGY, /* all but alu and sms */
                               FL_PREFIX_PROFILE /* all */
} fl_prefix_depth;

typedef struct fl_prefix { /* immutable once visible */
    const fl_stream *s;
    const struct fl_clock_rates *rates;
    int64_t bytes;       /* that it takes */
    size_t rows;         /* stretches of FL_PREFIX_ROW ops that the table holds */
    fl_prefix_sums *row; /* rows + 1: before each FL_PREFIX_ROW-th op */
    uint64_t *coarse_ps; /* t_ps of each FL_PREFIX_COARSE-th row: few enough to stay in a near cache */
    float *rows_a_ps;    /* rows per ps after each of these instants, about; 0 after the last */
    int32_t *peak_mw;    /* of each FL_PREFIX_PEAK ops that take time, the highest dyn_mw; INT32_MIN where none does */
    int32_t most_mw;     /* the highest of them */
    int64_t worth_ps;    /* FL_PREFIX_WORTH ops on average */
} fl_prefix;

typedef struct fl_prefix_place { /* the sums before an op that need not start a row */
    const fl_prefix *table;      /* NULL: none is known */
    uint64_t op;
    fl_prefix_sums sums;
} fl_prefix_place;

typedef struct fl_prefix_look { /* where to look for the row of an instant, known ahead of time */
    const fl_prefix *table;     /* NULL: nothing is known */
    uint64_t t_ps;              /* the instant on that table; its row is among low .. high, likely `at` */
    size_t low, high, at;
    size_t last;      /* the highest row of the last query; a row beyond it needs a new search */
    int64_t ahead_ps; /* how far ahead of a boundary the instant lay last time; 0: there was none */
    size_t rows;      /* and how many rows of the table that was, about */
} fl_prefix_look;

typedef struct fl_prefix_jump { /* ops from .. to - 1, whose classes the residence of a slot does not contain */
    const fl_prefix *table;
    uint32_t slot;
    uint64_t from, to;
} fl_prefix_jump;

/* The table of one stream at one pair of clocks, NULL until built, and the number of ops that all runs scanned there.
 */
typedef struct fl_prefix_cell {
    _Atomic(fl_prefix *) table;
    _Atomic uint64_t scanned;
} fl_prefix_cell;

/* An empty table for a stream, its arrays allocated but not filled; NULL where the limit or memory does not allow it.
 */
fl_prefix *fl_prefix_new(const fl_stream *s, const struct fl_clock_rates *rates);
size_t fl_prefix_rows(const fl_stream *s); /* rows of a table of this stream; `row` has one more entry after the last */
size_t fl_prefix_peaks(size_t rows);       /* entries of peak_mw */
/* Replaces FL_PREFIX_MOST_BYTES as the limit for tables that are built from now on. */
void fl_prefix_limit(int64_t bytes);

/* ---- arithmetic of work ---- */

/* Return the length of an op at the clocks in force, in ps: work_ns x mul in 16.16, rounded. mul is FL_MUL_ONE
 * (models/laws/laws.h) at the reference clock. */
static inline int64_t fl_length_ps(int64_t work_ns, uint32_t mul) {
    return (int64_t)(((fl_uwide)(uint64_t)work_ns * mul + (1u << 15)) >> 16);
}

typedef struct fl_work { /* a kernel, or a stretch of host time, on its way */
    int64_t left_ps;     /* as of since_ps */
    int64_t charged_ps;  /* of the work since since_ps; below zero: work before it that has not been charged */
    int64_t since_ps;    /* last change of rate or clock */
    int64_t start_ps;    /* when a kernel began; up to when the time of host work is charged */
    int64_t *event_ps;   /* when it ends, FL_TIME_NEVER while waiting: a cell of its course */
    uint32_t rate;       /* in 1/65536 */
} fl_work;

/* Return the work of p that is done at t, in ps. */
static inline int64_t fl_work_done(const fl_work *p, int64_t t) {
    int64_t dt = t - p->since_ps;
    if (p->rate == FL_SHARE_ONE)
        return dt < p->left_ps ? dt : p->left_ps;
    int64_t done = dt < INT64_C(1) << 46 ? dt * p->rate >> 16 : (int64_t)(((fl_uwide)(uint64_t)dt * p->rate) >> 16);
    return done < p->left_ps ? done : p->left_ps;
}

/* Return when `left` ps of work end, at a rate in 1/65536 that holds since `since`. Ends beyond FL_TIME_NEVER become
 * FL_TIME_NEVER - 1. */
static inline int64_t fl_work_ends(int64_t since, int64_t left, uint32_t rate) {
    if (rate == FL_SHARE_ONE)
        return since + left;
    if (left <
        INT64_C(1) << 36) { /* exact in doubles: below 2^53, and the quotient is 1/rate away from a wrong floor */
        double up = (double)(left << 16) + (double)(rate - 1);
        return since + (int64_t)(up / (double)rate);
    }
    const fl_uwide takes = (((fl_uwide)(uint64_t)left << 16) + rate - 1) / rate;
    return takes < (fl_uwide)(FL_TIME_NEVER - since) ? since + (int64_t)takes : FL_TIME_NEVER - 1;
}

/* Return what is left of an op after a change of its length, rounded to the nearest ps. An equal length changes
 * nothing. */
static inline int64_t fl_rescale_ps(int64_t left, int64_t before, int64_t after) {
    if (before == after || before <= 0)
        return before <= 0 ? after : left;
    return (int64_t)(((fl_wide)left * after + before / 2) / before);
}
