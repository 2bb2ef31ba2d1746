/* What the files of sim/oracle share: hulls, lengths of many kernels, prices on time, and all work kind by kind. */
#pragma once

#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Index of the best point whose makespan is at most limit_ps, or count where there is none. Of equal points the one
 * with the higher SM clock wins, then the higher memory clock. */
size_t fl_static_best(const fl_static_point *point, size_t count, fl_objective objective, int64_t limit_ps);

/* Time of the fastest schedule: the smallest limit that can be held. */
fl_status fl_oracle_fastest(const fl_oracle_table *t, int64_t *time_ps, fl_diag *d);

/* ---- hull: the points of time and energy that some price on time selects, the lower convex hull ---- */

typedef struct fl_hull_point {
    int64_t ps;
    fl_wide fj;
    uint32_t choice;
} fl_hull_point;

/* Moves the points of the hull to the front, the fastest first, each slower and cheaper than the one before. Returns
 * how many. Of equal points the lowest choice stays. */
size_t fl_hull(fl_hull_point *p, size_t count);

/* ---- lengths.c: how long many kernels of one kind take together ---- */

/* Return the sum of fl_length_ps over `count` kernels of less than 2^32 ns, in ps. low: the lowest 16 bits of each
 * kernel's work; work_ns: the work of all together. At most 2^16 kernels, each of less than 2^48 ps. Uses the vector
 * form where the processor has it. */
uint64_t fl_lengths_ps(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul);
/* The plain form, which defines the result. */
uint64_t fl_lengths_plain(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul);

/* Ops of a stretch of one stream, sorted by class, so that their lengths at many clocks cost one multiplication each.
 * Lengths are rounded op by op, as in the engine. */

#define FL_OP_BLOCK_MAX 65536 /* ops */

typedef struct fl_op_block {
    const fl_workload *w;
    fl_wide gap_ps;     /* sum */
    size_t class_count; /* classes that occur, in order of first occurrence */
    uint32_t *class_id; /* class_count */
    size_t *first;      /* class_count + 1: ops of class_id[k] are low[first[k]] .. low[first[k + 1] - 1] */
    uint16_t *low;      /* the lowest 16 bits of their work, ns */
    uint64_t *work_ns;  /* class_count: of all ops of the class together */
    uint32_t *place;    /* by class of the workload, 1 + its k, 0 where it does not occur */
    uint32_t *of;       /* class of each op while it is sorted */
    fl_big *big;        /* ops too long for 32 bits */
    size_t big_count, big_room;
} fl_op_block;

fl_status fl_op_block_open(fl_op_block *b, const fl_workload *w, fl_diag *d);
void fl_op_block_close(fl_op_block *b); /* takes a zeroed one */

/* Ops first .. end - 1 of a stream; at most FL_OP_BLOCK_MAX. */
fl_status fl_op_block_fill(fl_op_block *b, const fl_stream *s, uint64_t first, uint64_t end, fl_diag *d);

/* Sum of the lengths of the k-th class, ps. */
fl_wide fl_op_block_length_ps(const fl_op_block *b, size_t k, uint32_t mul);

/* ---- search.c, labels.c: the parts of the clairvoyant schedule ----
 *
 * A price on time is an integer n in fJ/ps (= mW) over 2^20. The priced cost 2^20 E + n T of a schedule, and with it
 * every bound, is therefore an exact 128-bit integer. Sizes: E < 2^94 fJ, T < 2^63 ps, n <= 2^60. */

#define FL_PRICE_BITS 20
#define FL_PRICE_MAX (INT64_C(1) << 60)

typedef struct fl_price { /* cost = energy E + time T */
    int64_t energy, time;
} fl_price;

static inline fl_price fl_price_at(int64_t n) { return (fl_price){INT64_C(1) << FL_PRICE_BITS, n}; }

typedef struct fl_total { /* of a schedule, switches included */
    fl_wide cost, energy_fj;
    int64_t time_ps;
} fl_total;

/* E T^m in fJ ps^m; m = 0 energy, 1 EDP, 2 ED2P. Exact for energy below 2^64 fJ, else within a relative 2^-62. */
static inline long double fl_product(int m, fl_wide energy_fj, int64_t time_ps) {
    long double f = (long double)energy_fj;
    for (int i = 0; i < m; i++)
        f *= (long double)time_ps;
    return f;
}

/* The schedule of least cost at a price by dynamic programming over positions; ties go to the faster, then to the
 * cheaper. choice: positions cells, may be NULL. */
fl_status fl_oracle_at_price(const fl_oracle_table *t, fl_price p, uint32_t *choice, fl_total *total, fl_diag *d);

/* Time and energy of a schedule, and its switches. */
fl_total fl_oracle_total(const fl_oracle_table *t, const uint32_t *choice, uint64_t *switches);

/* Searches for the optimum by labels. incumbent: a schedule (choice, total) that holds the limit; the optimum replaces
 * it. n: the price whose bound prunes best. *solved is false where there were too many labels; the incumbent is then
 * unchanged. */
fl_status fl_oracle_labels(const fl_oracle_table *t, int m, int64_t limit_ps, int64_t n, uint32_t *choice,
                           fl_total *total, bool *solved, fl_diag *d);

/* ---- work.c ---- */

/* Total time of all ops of each class at several clocks. */

typedef struct fl_class_sums { /* over all streams */
    size_t classes, columns;
    fl_wide *ps;      /* classes x columns: lengths, rounded op by op as the engine does it */
    fl_wide *gap_ps;  /* classes: host time before their ops */
    uint64_t *worked; /* classes: ops that have work */
} fl_class_sums;

/* One pass over the ops and one multiplication per op and column; 16 bytes per class and column. */
fl_status fl_class_sums_make(const fl_workload *w, const fl_clock_rates *const *at, size_t columns, fl_class_sums *sum,
                             fl_diag *d);
void fl_class_sums_free(fl_class_sums *sum); /* takes a zeroed one */

/* Power in mW of the GPUs that have no work: their boards have no context open from beginning to end. */
int64_t fl_closed_mw(const fl_node_spec *spec, uint32_t busy);

/* All work of one stream, kind by kind, and the clairvoyant schedule that may change clocks at any instant.
 *
 * Where switches are free, time and energy do not depend on the order of the work. The search therefore runs over
 * items: one for each kind of kernel, and one for the host time. An item's points are the hull of its time and energy
 * over the clocks. A step moves one item to its next cheaper point. All steps, sorted by what they save per time, the
 * best first, walk along the lower hull of everything that can be reached. Each vertex is an optimum, and between two
 * vertices one kind is divided, kernel by kernel and at last within a kernel. The schedule is therefore the optimum for
 * E, E T and E T^2 under any limit, up to the rounding of picoseconds; and the hull, lowered by that rounding, bounds
 * every schedule.
 *
 * Cost: a multiplication for each op and choice, once for a table; 16 bytes for each kind and choice, and 64 for each
 * step, of which an item has fewer than choices. A schedule needs a look at each step, and a pass over the ops where a
 * kind is divided. `foldline compare` with 81 choices takes 16 ms of the processor for 20,000 kernels of 32 kinds (a run
 * 9 ms), 0.4 s for a million (a run 0.2), 0.7 s for 40,000 kernels of 20,000 kinds, including reading and the best
 * clock per kind. */

typedef struct fl_work_step {
    size_t item, point; /* from this point of the item to the next */
    long double saves;  /* fJ for each ps; falling from step to step */
} fl_work_step;

typedef struct fl_work_vertex {
    int64_t ps;
    fl_wide fj;
} fl_work_vertex;

struct fl_oracle_work {
    const fl_stream *s;        /* borrowed from the workload, the rows from the rates: both must outlive this */
    const fl_clock_rates **at; /* choices */
    size_t choices, items;
    int64_t closed_mw;    /* of the GPUs without work */
    fl_class_sums sum;    /* by class and choice */
    uint32_t *item_of;    /* by class: its item; the host time is the last item */
    fl_hull_point *point; /* of item i: point[first[i]] .. point[first[i + 1] - 1] */
    size_t *first;        /* items + 1 */
    fl_work_step *step;
    size_t steps;
    fl_work_vertex *vertex; /* steps + 1 entries: the state after that many steps; the first is the fastest */
    fl_work_vertex *all;    /* choices entries: everything at that choice, a static run */
    uint64_t worked;        /* number of ops that have work: this many lengths were rounded */
    int64_t most_mw;        /* the highest power of any op at any choice */
};

typedef struct fl_work_plan {
    fl_work_vertex total;
    size_t steps; /* number of steps applied to all work of their items */
    bool divided; /* the next step applies to the item's ops before `op`, and to the first slow_ps of that op */
    uint64_t op;  /* of the stream; its count where the last op is reached */
    int64_t slow_ps;
    size_t same; /* everything runs at this choice; choices = not so */
} fl_work_plan;

/* at: rates by choice. *out owns it from now on, also after a failure. FL_BAD_INPUT where the work is longer than 53
 * days. */
fl_status fl_oracle_work_make(const fl_workload *w, const fl_stream *s, const fl_clock_rates **at, size_t choices,
                              int64_t closed_mw, fl_oracle_work **out, fl_diag *d);
void fl_oracle_work_free(fl_oracle_work *work); /* accepts NULL */

/* The minimum of E T^m (m = 0, 1, 2) within the limit; false where nothing holds it. It needs one pass over the ops
 * where a kind must be divided. */
bool fl_oracle_work_plan(const fl_oracle_work *work, int m, int64_t limit_ps, fl_work_plan *plan);

/* No schedule within the limit uses less energy than *fj, and none has an E T^m below the returned value (fJ ps^m). */
long double fl_oracle_work_bound(const fl_oracle_work *work, int m, int64_t limit_ps, fl_wide *fj);

/* The changes of clock that carry out a plan, from time 0 on. Returns their number. change: room for all of them; NULL:
 * it only counts. */
fl_status fl_oracle_work_changes(const fl_oracle_work *work, const fl_work_plan *plan, fl_oracle_change *change,
                                 size_t *count, fl_diag *d);
