/* What of a trace a workload's records hang on beside the trace itself, so that a workload that was built once can be
 * kept and taken again, by another platform too, where that would build the same records.
 *
 * A record is an op's work, gap and class. Of platform and kinds file these need three things only: which kinds of
 * kernels are which class, how many phases each has, and, where kernels overlapped, how they shared the GPU. The digest
 * is of these three. Loads, powers and all else of a class are made anew for each platform. */
#pragma once

#include "sim/build.h"

typedef struct fl_outline {
    fl_trace_op *rep; /* rep_count: the op for which each class was made, in order; its times do not matter */
    size_t rep_count, rep_room;
    int32_t *device; /* device_count: of the trace, ascending */
    uint32_t device_count;
    bool overlap;       /* kernels of one GPU overlapped */
    uint64_t digest[2]; /* two independent hashes */
} fl_outline;

void fl_outline_free(fl_outline *o);

/* fl_build_trace, and the outline of what it built. */
fl_status fl_build_trace_outline(fl_workload **out, fl_outline *outline, const char *name, const fl_kernel_trace *t,
                                 const fl_node_spec *node, const fl_build_options *o, fl_diag *d);

/* Completes a workload that has its streams and host threads only: classes, islands, windows. t: head, names and kinds
 * of the trace, and has_launches; its ops are not needed. *fits false, and the workload of no use, where fl_build_trace
 * would make other records for this node and these kinds. Fails where fl_build_trace would. */
fl_status fl_build_outline(fl_workload *w, const fl_outline *outline, const fl_kernel_trace *t,
                           const fl_node_spec *node, const fl_build_options *o, bool *fits, fl_diag *d);
