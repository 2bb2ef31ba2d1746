/* Rows of a workload per device and pair of clocks: built when a clock is first used, by whichever run comes first, and
 * shared by all. Immutable once visible. */
#ifndef FL_RATES_H
#define FL_RATES_H

#include "sim/workload.h"

typedef struct fl_clock_rates {
    fl_base base;
    const fl_row *row;         /* class_count */
    const fl_row_parts *parts; /* class_count */
    int32_t max_dyn_mw;        /* over the classes: no mix of n kernels draws more than n times this above the base */
} fl_clock_rates;

typedef struct fl_rates fl_rates;

/* Borrows both for its life. */
fl_status fl_rates_new(fl_rates **out, const fl_workload *w, const fl_node_spec *node, fl_diag *d);
void fl_rates_free(fl_rates *r);

/* Thread-safe. device: kind of GPU; sm, mem: ladder indices. */
fl_status fl_rates_at(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out, fl_diag *d);

#endif
