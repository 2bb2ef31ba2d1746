/* One iteration of a pipeline at the clocks of a plan, run on the engine: what the plan costs. */
#pragma once

#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"

/* Boards whose own power is nothing, so that they draw what a pipeline's rows say: one for each of `ranks` ranks, with
 * `count` ascending clocks, the last of which is the default. The caller frees *node with fl_node_spec_free, also after
 * a failure. */
fl_status fl_pipeline_node(fl_node_spec *node, uint32_t ranks, const int32_t *mhz, uint32_t count, fl_diag *d);

/* Seconds and joules of all ranks. clocks as in fl_build_pipeline; the node's ladder lies where every rank's rows
 * reach.
 */
fl_status fl_pipeline_run(const fl_pipeline *p, const fl_pipeline_order *o, const fl_node_spec *node,
                          const fl_pipeline_clocks *clocks, double *seconds, double *joules, fl_diag *d);
