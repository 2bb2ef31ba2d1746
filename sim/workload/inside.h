/* What the files of sim/workload share: limits and records of a workload, ops of sweeps, the builder of traces. */
#pragma once

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_CLASSES_MAX 0xffffu

/* 25 hours: the longest op, gap before one, and host time before or after a launch or a synchronisation. */
#define FL_DURATION_MAX_NS (INT64_MAX / 100000)

/* Add a host load; equal loads share an entry. *id is the value for fl_class.host. More than 255 are refused. */
fl_status fl_workload_add_host_load(fl_workload *w, const fl_host_load *load, uint32_t *id, fl_diag *d);

/* Reserve room for `ops` ops in all, so that the array need not move as it grows. */
fl_status fl_workload_expect(fl_workload *w, uint32_t stream, size_t ops, fl_diag *d);

fl_status fl_workload_add_thread(fl_workload *w, int32_t id, uint32_t *index, fl_diag *d);
/* Refuses host times beyond FL_DURATION_MAX_NS, as fl_workload_add_op does work and gaps. */
fl_status fl_workload_add_item(fl_workload *w, uint32_t thread, const fl_item *item, fl_diag *d);
fl_status fl_workload_add_sync_wait(fl_workload *w, uint32_t thread, fl_wait wait,
                                    fl_diag *d); /* of the item added last */

void fl_workload_free_islands(fl_workload *w); /* a part of fl_workload_free */

/* work_ns <= FL_WORK_MAX, gap_ns <= FL_GAP_MAX */
static inline fl_rec fl_rec_of(uint64_t work_ns, uint64_t gap_ns, uint32_t class_id) {
    return (fl_rec){work_ns & FL_WORK_MAX, gap_ns & FL_GAP_MAX, class_id & 0xffff};
}

static inline fl_rec fl_rec_escape(uint64_t index) { return fl_rec_of(index, index >> FL_WORK_BITS, FL_REC_ESCAPE); }

typedef struct fl_sweep_ops { /* the cutting of one workload */
    fl_workload *w;
    const fl_sweep_replay *replay; /* borrowed */
    uint32_t stream;
    fl_random random;
    fl_spread spread;
} fl_sweep_ops;

/* name: of the workload as the sweep has it, so that two workloads of one seed do not vary alike. */
fl_sweep_ops fl_sweep_ops_of(fl_workload *w, const fl_sweep_replay *replay, uint32_t stream, const char *name);

/* The class of the markers, after all others: fl_scene_options looks at the first. Only where there are iterations. */
fl_status fl_sweep_ops_marker(fl_sweep_ops *o, const fl_load *like, uint32_t *id, fl_diag *d);

/* `total` ns of work of a class in ops of about 10 ms, at least 100. Without jitter they take exactly `total`; with it
 * each is drawn on its own, and `total` is their mean. With iterations the kernel is a whole number of them, all of as
 * many ops, each with a marker of class `marker` at its end. */
fl_status fl_sweep_ops_add(fl_sweep_ops *o, uint32_t class_id, uint32_t marker, int64_t total, fl_diag *d);

/* ---- the builder of a workload from a kernel trace ---- */

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
    fl_intern classes; /* by what they are made for, since a recording may have a clock for each op */
    struct fl_class_of {
        uint32_t kind, sm_mhz, device; /* trace kind, clock of recording, kind of device */
    } * made_for;                      /* by class; of the first phase */
    size_t made_for_room;
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

/* Return the GPU of a device of the trace. */
static inline uint32_t fl_builder_gpu(const fl_builder *b, int32_t device) {
    uint32_t i = 0;
    while (b->device[i] != device)
        i++;
    return i;
}

static inline int64_t fl_builder_later(int64_t a, int64_t b) { return a > b ? a : b; }

/* workload.c: all that a trace states beside its ops. fl_builder_begin allocates, and reads platform and kinds. */
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

/* trace.c: fills order with `count` ops, those of each stream by start, end and row. */
fl_status fl_builder_order(fl_builder *b, size_t *count, fl_diag *d);

/* classes.c: what the kinds file says of each kind of these ops, looked up once; then the class of an op, made at
 * its first use. */
void fl_builder_find_rows(fl_builder *b, const fl_trace_op *ops, size_t count);
const fl_kind_load *fl_builder_rows(const fl_builder *b, const fl_trace_op *op, uint32_t *phases);
fl_status fl_builder_class(fl_builder *b, const fl_trace_op *op, uint32_t *id, fl_diag *d);
/* Appends an op to a stream where one op follows the other: after *end_ns, which becomes its end. */
fl_status fl_builder_append(fl_builder *b, uint32_t stream, const fl_trace_op *op, int64_t *end_ns, fl_diag *d);

/* classes.c: launches and synchronisations in the order of their host times. The ops are in their streams. */
fl_status fl_builder_threads(fl_builder *b, fl_diag *d);

/* Make the kernels of fl_synth_program and hand them to sink one by one, stream by stream, each stream in the order of
 * time, without keeping them: *t gets head, names and kinds, and *about how many kernels there are if each takes its
 * mean time, before the first comes. The caller frees *t, also after a failure. */
typedef fl_status (*fl_program_sink)(void *user, const fl_trace_op *op, fl_diag *d);
fl_status fl_synth_program_each(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                                double *about, fl_program_sink sink, void *user, fl_diag *d);

/* Untangling: kernels that overlapped slowed each other in the recording. A replay of their recorded lengths would slow
 * them twice. Their work is the integral of the rates that sharing gave them in the recording. */

typedef struct fl_edge { /* the start or end of an op of one GPU */
    int64_t at_ns;
    uint32_t op;
    bool end;
} fl_edge;

/* Sorts edge. Adds to work[op] the ns that the op would have taken alone; row[class] holds its demands at the clocks of
 * the recording; interference in 1/65536, see fl_shares_capacity. Sets *shared where any two had to share. FL_BAD_INPUT
 * for more than 256 at once. */
fl_status fl_untangle(fl_edge *edge, size_t count, const uint32_t *class_of_op, const fl_row *row, double *work,
                      uint32_t interference, bool *shared, fl_diag *d);
