/* A policy's internals over time: one row per step and GPU (device host for those of the node), one column per probe.
 */
#pragma once

#include "sim/instance/instance.h"

typedef struct fl_probelog {
    const fl_policy *policy;
    uint32_t gpu_count;
    size_t cells, step_count; /* cells: values of one step, as in fl_decision.probe */
    int64_t *t_ns;
    double *value; /* step_count x cells */
    size_t room_t, room_value;
} fl_probelog;

void fl_probelog_open(fl_probelog *l, const fl_policy *policy, uint32_t gpu_count);
fl_status fl_probelog_add(fl_probelog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
/* Writes CSV: t_ns,device, then the probes by name; empty = nothing to show. Uses a temporary file and a rename. */
fl_status fl_probelog_write(const fl_probelog *l, const char *path, fl_diag *d);
void fl_probelog_free(fl_probelog *l);
