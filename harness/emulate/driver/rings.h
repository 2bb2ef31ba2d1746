/* Kernel records and iteration markers, delivered in the way of the collector in a program. */
#pragma once

#include "harness/emulate/driver/options.h"
#include "sim/node/node.h"

#define FL_RINGS_MARKER "iteration" /* the name of each marker */

typedef struct fl_emulated_rings fl_emulated_rings;

/* Creates a ring in the folder, and the folder where it is missing. From then on the node records its kernels. o: the
 * identities of the GPUs. */
fl_status fl_rings_open(fl_emulated_rings **out, const char *folder, const fl_workload *w, fl_node *node,
                        uint32_t gpu_count, const fl_emulate_options *o, fl_diag *d);
/* origin_ns: the clients' CLOCK_MONOTONIC at the node's time 0; both clocks run at the same speed. */
void fl_rings_start(fl_emulated_rings *r, int64_t origin_ns);
/* Delivers the kernels that ended, and the markers that were passed, since the last call. */
void fl_rings_push(fl_emulated_rings *r, fl_diag *d);
bool fl_rings_wake(const fl_emulated_rings *r); /* whether a reader wants to be woken by markers */
void fl_rings_close(fl_emulated_rings *r);      /* accepts NULL */
