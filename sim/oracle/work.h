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
 * kind is divided. `foldline oracle` with 81 choices takes 16 ms of the processor for 20,000 kernels of 32 kinds (a run
 * 9 ms), 0.4 s for a million (a run 0.2), 0.7 s for 40,000 kernels of 20,000 kinds, including reading and the best
 * clock per kind. Internal to sim/. */
#pragma once

#include "sim/oracle/oracle.h"
#include "sim/oracle/hull.h"
#include "sim/oracle/sums.h"

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
