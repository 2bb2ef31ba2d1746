/* Kernel records, as the collector in a program would hand them out. */
#ifndef FL_EMULATE_RINGS_H
#define FL_EMULATE_RINGS_H

#include "harness/emulate/emulate_options.h"
#include "sim/node.h"

typedef struct fl_emulated_rings fl_emulated_rings;

/* A ring in the folder, which is made where it is missing; from here on the node records its kernels. o: who
 * the GPUs say they are. */
fl_status fl_rings_open(fl_emulated_rings **out, const char *folder, const fl_workload *w, fl_node *node,
                        uint32_t gpu_count, const fl_emulate_options *o, fl_diag *d);
/* origin_ns: of the clients' CLOCK_MONOTONIC, where the node's time began; it runs as fast as the session's. */
void fl_rings_start(fl_emulated_rings *r, int64_t origin_ns);
/* What ended since the last time. */
void fl_rings_push(fl_emulated_rings *r, fl_diag *d);
void fl_rings_close(fl_emulated_rings *r); /* NULL is allowed */

#endif
