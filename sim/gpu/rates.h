/* Rows of a workload per device and pair of clocks: built when a clock is first used, by whichever run comes first, and
 * shared by all. Immutable once visible. */
#pragma once

#include "sim/gpu/prefix_table.h"

typedef struct fl_clock_rates {
    fl_base base;
    const fl_row *row;         /* class_count */
    const fl_row_parts *parts; /* class_count */
    int32_t max_dyn_mw;        /* over the classes: no mix of n kernels draws more than n times this above the base */
    fl_prefix_cell *prefix;    /* by stream */
} fl_clock_rates;

typedef struct fl_rates fl_rates;

/* A model that is wrong by about so much, otherwise: what --model-error draws from. */
typedef struct fl_model_error {
    double time_pct, power_pct; /* mean absolute errors */
    uint64_t seed;
} fl_model_error;

/* Before the first use: each row's length and power are moved by errors drawn for its class, smooth over the clocks
 * (a lognormal's; in time 0 at the reference clock and growing away from it, in power at every clock), the base's power
 * by errors of the device. Where the reference is an end of the ladder, the mean absolute errors over it are those
 * given; nearer its middle they are smaller. */
void fl_rates_err(fl_rates *r, const fl_model_error *e);

/* Borrows both for its life. */
fl_status fl_rates_new(fl_rates **out, const fl_workload *w, const fl_node_spec *node, fl_diag *d);
void fl_rates_free(fl_rates *r);
/* Counts a run with them, and returns how many that makes. */
uint32_t fl_rates_used(fl_rates *r);

/* Thread-safe. device: kind of GPU; sm, mem: ladder indices. */
fl_status fl_rates_at(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out, fl_diag *d);
/* The same while kernel records are on: kernels are longer by the device's share and time, at the same power. */
fl_status fl_rates_recorded(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out,
                            fl_diag *d);
