/* A sweep as a source of scenes: replayed from its rows, or, with --model fitted, from what a fit knows of its
 * workloads at the whole ladder (harness/chip/sweep_chip.h). */
#pragma once

#include "harness/chip/sweep_chip.h"
#include "harness/input/scene/stated.h"
#include "sim/workload/sweep_ops.h"

typedef struct fl_sweep_model {
    const char *path; /* borrowed */
    fl_sweep sweep;
    uint32_t *names; /* count: indices of the workloads' names */
    size_t count;
    bool fitted;
    fl_sweep_chip chip;  /* of --model fitted */
    fl_sweep_chip plain; /* chip NULL: what share of the time is the memory's is not known */
} fl_sweep_model;

/* model: "table" or "fitted"; platform: as asked for. */
fl_status fl_sweep_model_open(const char *path, const char *model, const char *platform, fl_sweep_model *m, fl_diag *d);
void fl_sweep_model_free(fl_sweep_model *m);

/* names[i] on the node, and how sure the model is of it. Notes of what was assumed are added to note (count). */
fl_status fl_sweep_model_build(const fl_sweep_model *m, size_t i, const fl_node_spec *node,
                               const fl_sweep_replay *replay, fl_workload **w, fl_stated *stated, char ***note,
                               size_t *notes, fl_diag *d);
