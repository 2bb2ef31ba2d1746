/* Pipelines as workloads: each rank is a GPU with one stream. A transfer begins when both sides have come to it. Until
 * then the side that came first spins, as the kernel of a collective does, and draws the blocked power. So the engine
 * charges the waiting, and a clock that a policy sets slows what computes and shifts what waits for it. */
#ifndef FL_SIM_PIPELINE_H
#define FL_SIM_PIPELINE_H

#include "sim/workload.h"
#include "traces/pipeline_order.h"

/* The instructions of each stage by the pipeline's schedule. Of a FL_PIPELINE_LIST they are read from its file. The
 * caller frees *o with fl_pipeline_order_free.
 *
 * 1f1b: one forward, one backward, as DeepSpeed's TrainSchedule emits them. gpipe: all forwards, then all backwards,
 * the last microbatch first (Huang et al., "GPipe", 2019, Fig. 2c). interleaved: each rank has `chunks` parts of the
 * model (Narayanan et al., "Efficient large-scale language model training on GPU clusters", 2021, section 2.2); its
 * sends do not block. */
fl_status fl_pipeline_schedule_make(const fl_pipeline *p, fl_pipeline_order *o, fl_diag *d);

/* `iterations` iterations as a workload for a node of at least p->ranks GPUs. Before each forward and backward stands
 * an iteration marker, by which a policy knows where its rank is. FL_BAD_INPUT where a rank would wait for ever: says
 * who waits for whom. */
fl_status fl_build_pipeline(fl_workload **out, const char *name, const fl_pipeline *p, const fl_pipeline_order *o,
                            const fl_node_spec *node, uint32_t iterations, fl_diag *d);

#endif
