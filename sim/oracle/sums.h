/* Total time of all ops of each class at each of some clocks. Internal to sim/. */
#pragma once

#include "sim/gpu/rates.h"
#include "sim/base/wide.h"

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
