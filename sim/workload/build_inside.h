/* The insides of a workload's making from a kernel trace: the builder that its parts share. */
#pragma once

#include "sim/workload/build.h"

typedef struct fl_builder {
    const fl_kernel_trace *t;
    const fl_node_spec *node;
    const fl_build_options *o;
    fl_workload *w;
    int32_t *device; /* distinct device ids, ascending; position = GPU */
    uint32_t device_count;
    uint32_t *order;  /* ops sorted by device, process, stream, start, row */
    uint32_t *stream; /* by op: its stream, FL_NONE for synchronisations */
    size_t ordered;   /* how many are in it: all but synchronisations */
    uint64_t *place;  /* by op: its position there; NULL where nothing waits for an op */
    uint32_t *class_of_op;
    uint32_t *first_class; /* chains of classes by trace kind: one per clock of recording and kind of device */
    struct fl_link {
        uint32_t next;
        uint32_t sm_mhz, device;
    } * link; /* by class */
    size_t link_room;
    struct fl_rows { /* by trace kind: what the kinds file says of it */
        const fl_kind_load *first;
        uint32_t phases;
        bool known;
    } * rows;
    bool overlap;     /* kernels of one GPU overlapped */
    int64_t *work_ns; /* by op, at the clocks of the recording, alone; NULL: as long as they were recorded */
    int64_t origin_ns;
    double sm_mhz, mem_mhz; /* of the recording; 0 = the device's default */
} fl_builder;

static inline const fl_device *fl_builder_device(const fl_builder *b, uint32_t gpu) {
    return &b->node->device[b->node->gpu[gpu]];
}

/* The GPU that stands for a device of the trace. */
static inline uint32_t fl_builder_gpu(const fl_builder *b, int32_t device) {
    uint32_t i = 0;
    while (b->device[i] != device)
        i++;
    return i;
}

static inline int64_t fl_builder_later(int64_t a, int64_t b) { return a > b ? a : b; }

/* builder.c: what a trace says beside its ops. begin: room, and what platform and kinds say of the whole. */
fl_status fl_builder_begin(fl_builder *b, fl_diag *d);
void fl_builder_end(fl_builder *b); /* frees all but the workload */
fl_status fl_builder_host_clock(fl_builder *b, fl_diag *d);
fl_status fl_builder_clocks(fl_builder *b, fl_diag *d);
fl_status fl_builder_too_many(const fl_builder *b, fl_diag *d);
bool fl_builder_shares(const fl_builder *b); /* kernels that overlapped slowed each other in the recording */
/* What each class asks of a GPU at the clocks of the recording, into row[class_count]. */
fl_status fl_builder_demands(const fl_builder *b, uint32_t gpu, fl_row *row, fl_diag *d);
/* What untangling would refuse, on one GPU where nothing overlaps. */
fl_status fl_builder_check_demands(const fl_builder *b, fl_diag *d);

/* build_order.c: fills order with `count` ops, those of each stream by start, end and row. */
fl_status fl_builder_order(fl_builder *b, size_t *count, fl_diag *d);

/* build_classes.c: what the kinds file says of each kind of these ops, looked up once; then the class of an op, made at
 * its first use. */
void fl_builder_find_rows(fl_builder *b, const fl_trace_op *ops, size_t count);
const fl_kind_load *fl_builder_rows(const fl_builder *b, const fl_trace_op *op, uint32_t *phases);
fl_status fl_builder_class(fl_builder *b, const fl_trace_op *op, uint32_t *id, fl_diag *d);
/* Appends an op to a stream where one op follows the other: after *end_ns, which becomes its end. */
fl_status fl_builder_append(fl_builder *b, uint32_t stream, const fl_trace_op *op, int64_t *end_ns, fl_diag *d);

/* build_threads.c: launches and synchronisations in the order of their host times. The ops are in their streams. */
fl_status fl_builder_threads(fl_builder *b, fl_diag *d);
