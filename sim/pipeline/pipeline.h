/* Pipelines as workloads: each rank is a GPU with one stream. A transfer begins when both sides have come to it. Until
 * then the side that came first spins, as the kernel of a collective does, and draws the blocked power. So the engine
 * charges the waiting, and a clock that a policy sets slows what computes and shifts what waits for it. */
#pragma once

#include "models/laws/device.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <stdint.h>

/* The instructions of each stage by the pipeline's schedule. The caller frees *o with fl_pipeline_order_free. A
 * FL_PIPELINE_LIST is refused: its instructions are in a file, which traces/pipeline/pipeline.h reads.
 *
 * 1f1b: one forward, one backward, as DeepSpeed's TrainSchedule emits them. gpipe: all forwards, then all backwards,
 * the last microbatch first (Huang et al., "GPipe", 2019, Fig. 2c). interleaved: each rank has `chunks` parts of the
 * model (Narayanan et al., "Efficient large-scale language model training on GPU clusters", 2021, section 2.2); its
 * sends do not block. */
fl_status fl_pipeline_schedule_make(const fl_pipeline *p, fl_pipeline_order *o, fl_diag *d);

/* What an op of a rank is. */
typedef enum fl_pipeline_part {
    FL_PART_OF_MARKER,
    FL_PART_OF_FORWARD,
    FL_PART_OF_BACKWARD,
    FL_PART_OF_LOAD,
    FL_PART_OF_LOAD_IN_RECV,
    FL_PART_OF_MEETING, /* of tensor-parallel ranks */
    FL_PART_OF_TRANSFER,
    FL_PART_OF_END /* reductions and step */
} fl_pipeline_part;

typedef struct fl_pipeline_op {
    fl_pipeline_part part;
    int32_t microbatch, chunk; /* of forward and backward */
    int32_t link; /* of a transfer: the lower of the two stages that it joins; the last stage joins the first */
} fl_pipeline_op;

/* `iterations` iterations as a workload for a node of at least p->ranks GPUs. Before each forward and backward stands
 * an iteration marker, by which a policy knows where its rank is. FL_BAD_INPUT where a rank would wait for ever: says
 * who waits for whom.
 *
 * clocks, where it is not NULL: each part has the length and power that its rows give at its clock, whatever the clock
 * of the GPU; FL_BAD_INPUT where the rows do not reach so far. op, where it is not NULL: what each op is, stream by
 * stream in the order of the ops; the caller frees *op. */
fl_status fl_build_pipeline(fl_workload **out, const char *name, const fl_pipeline *p, const fl_pipeline_order *o,
                            const fl_node_spec *node, uint32_t iterations, const fl_pipeline_clocks *clocks,
                            fl_pipeline_op **op, fl_diag *d);

/* One iteration of a pipeline at the clocks of a plan, run on the engine: what the plan costs. */

/* Boards whose own power is nothing, so that they draw what a pipeline's rows say: one for each of `ranks` ranks, with
 * `count` ascending clocks, the last of which is the default. The caller frees *node with fl_node_spec_free, also after
 * a failure. */
fl_status fl_pipeline_node(fl_node_spec *node, uint32_t ranks, const int32_t *mhz, uint32_t count, fl_diag *d);

/* Seconds and joules of all ranks. clocks as in fl_build_pipeline; the node's ladder lies where every rank's rows
 * reach.
 */
fl_status fl_pipeline_run(const fl_pipeline *p, const fl_pipeline_order *o, const fl_node_spec *node,
                          const fl_pipeline_clocks *clocks, double *seconds, double *joules, fl_diag *d);
