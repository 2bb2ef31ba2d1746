/* A workload: what a trace, a program, a sweep or requests ask of a node, as immutable arrays. Built once per trace and
 * platform, and shared by all runs.
 *
 * Make one with fl_build_trace, fl_build_program or fl_build_sweep; fl_workload_serve then lets it answer requests.
 * Other modules of sim build theirs with fl_workload_new, _add_..., _finish. The caller frees it with fl_workload_free.
 * Input that cannot be replayed is FL_BAD_INPUT.
 *
 * An op takes 8 bytes. Its class is its kind of kernel with the load that it puts on a device. Its work is its length
 * in ns at the reference clock of that class. Its gap is the host time in ns between the moment it could start and its
 * start. A stream is a list of ops, a thread is a list of launches and waits of the host. An island is a set of GPUs
 * that can affect each other. */
#pragma once

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_WORK_BITS = 27, FL_GAP_BITS = 21 }; /* 0.13 s and 2 ms: longer ops are rare and go into `big` */
#define FL_WORK_MAX ((1u << FL_WORK_BITS) - 1)
#define FL_GAP_MAX ((1u << FL_GAP_BITS) - 1)

typedef struct fl_rec { /* 8 bytes, from the lowest bits up */
    uint64_t work_ns : FL_WORK_BITS;
    uint64_t gap_ns : FL_GAP_BITS;
    uint64_t class_id : 16; /* FL_REC_ESCAPE: the rest is an index into `big` */
} fl_rec;

#define FL_REC_ESCAPE 0xffffu

#define FL_NONE UINT32_MAX

typedef struct fl_big {
    int64_t work_ns, gap_ns;
    uint32_t class_id;
} fl_big;

typedef struct fl_class {
    fl_load load;
    fl_measured measured; /* owned; load.measured points here where it is used */
    fl_kernel_kind kind;  /* name owned by the workload */
    bool copy;            /* a memory copy: no SM, not a resident kernel */
    bool iteration;       /* an iteration marker: no work */
    bool part;            /* a phase of a kernel that goes on: it is not counted and not recorded by itself */
    bool spins;           /* it is on the GPU and draws power while it waits for another GPU, as a collective does */
    uint32_t host;        /* how the host time before its ops loads the CPU: 0 = as the platform states, else an entry
                                    of host_load + 1 */
} fl_class;

typedef struct fl_wait { /* satisfied when `stream` has finished `done` ops */
    uint32_t stream;
    uint64_t done;
} fl_wait;

typedef struct fl_stream {
    uint32_t gpu;
    int32_t process, id;
    fl_rec *rec;
    size_t count, room;
    fl_big *big;
    size_t big_count, big_room;
    fl_wait *wait;
    size_t wait_count, wait_room;
    uint32_t
        *wait_first; /* NULL: no op waits; else op i waits for wait[wait_first[i]] .. wait[wait_first[i + 1] - 1] */
    size_t first_room;
    bool launched;  /* ops start only when a host thread has launched them */
    bool served;    /* launched request by request, with gaps as host time (see fl_workload_serve) */
    bool other;     /* not only kernels: copies or markers too */
    uint64_t *mark; /* mark_count op counts, ascending: ends of the windows of work */
    uint32_t mark_count;
    int64_t work_ns, span_ns; /* sum of work; of work and gaps */
    uint64_t iterations;      /* markers in it */
    uint64_t request_ops;     /* ops of one request; 0: nothing arrives, all of it is one pass */
} fl_stream;

typedef enum fl_item_type {
    FL_ITEM_LAUNCH,
    FL_ITEM_SYNC,
    FL_ITEM_ARRIVE, /* sleeps until the request is there, if it is not */
    FL_ITEM_DONE    /* a SYNC at whose end the request has been served */
} fl_item_type;

typedef struct fl_item { /* one step of a host thread */
    int64_t host_ns;     /* host time before it */
    int64_t after_ns;    /* SYNC: host time between the end of the wait and its return */
    union {
        uint32_t stream;  /* LAUNCH: the next op of this stream */
        uint32_t request; /* ARRIVE, DONE */
    };
    uint32_t parts; /* LAUNCH: number of ops after that one which it launches too: further phases, or a request */
    uint32_t wait_first, wait_count; /* SYNC, DONE: in the thread's waits */
    fl_item_type type;
    uint32_t load; /* of the host time before it, as in fl_class; set by fl_workload_finish */
} fl_item;

typedef struct fl_thread {
    int32_t id;
    fl_item *item;
    size_t count, room;
    fl_wait *wait;
    size_t wait_count, wait_room;
    bool server; /* it serves streams without recorded launches: the host time belongs to them */
} fl_thread;

/* The host's part before the launch of an op, in 4 bytes: host time in ns; or FL_LAUNCH_SYNC and an index into `sync`;
 * or FL_LAUNCH_OTHER, and the thread's items say more. */
#define FL_LAUNCH_SYNC 0x80000000u
#define FL_LAUNCH_OTHER UINT32_MAX

typedef struct fl_launch_sync { /* one synchronisation, then one launch */
    uint32_t before_ns;         /* host time before it */
    uint32_t after_ns;          /* from the end of its wait to the launch */
    uint32_t lag;               /* it waits for the op so many places before the one launched: 1 or more */
    uint32_t item;              /* its place among the items of the thread, modulo 2^32 */
} fl_launch_sync;

typedef struct fl_launch_plan { /* of an island that is one stream and one thread (see sim/advance/advance.h) */
    uint32_t *before;           /* by op of the stream */
    fl_launch_sync *sync;
    size_t sync_count, sync_room;
    uint32_t reach; /* the largest lag, or number of ops beyond the first of one launch */
} fl_launch_plan;

typedef struct fl_island { /* GPUs that can affect each other's course: streams of one GPU, shared threads, event waits
                            */
    uint32_t *stream, *thread, *gpu;
    uint32_t stream_count, thread_count, gpu_count;
    bool lone;                /* one stream, no launches, no waits: may be scanned */
    bool serves;              /* no streams: its GPUs are those of the servers of fl_workload.serving */
    fl_launch_plan *launches; /* one stream, and one thread that launches all of it in order; else NULL */
} fl_island;

struct fl_serving_setup;

typedef struct fl_workload {
    char *name;
    const struct fl_serving_setup
        *serving; /* requests and their servers, instead of ops (sim/serving/serving.h); else NULL */
    bool pools;   /* servers for prompts and others for outputs: static clocks come in pairs */
    fl_class *class;
    uint32_t class_count;
    size_t class_room;
    fl_stream *stream;
    uint32_t stream_count;
    size_t stream_room;
    fl_thread *thread;
    uint32_t thread_count;
    size_t thread_room;
    fl_island *island;
    uint32_t island_count;
    uint32_t gpu_count; /* highest GPU used + 1 */
    uint64_t op_count;
    uint32_t launch_queue;
    fl_host_load *host_load; /* host_load_count; index 0 stands for 1 in fl_class */
    uint32_t host_load_count;
    size_t host_load_room;
    double host_ref_mhz; /* CPU clock at which host time was recorded; 0 = the platform's */
    int64_t *arrival_ns; /* request_count, ascending; NULL: all is one pass, begun at time 0 */
    size_t request_count;
    bool barriers;      /* a stream waits for one of another GPU */
    bool gaps_are_host; /* no launches recorded: gaps count as host time */
    bool measured;      /* time and power come from measured tables */
    bool predicted;     /* they come from tables that a fit made, for every clock of the ladder */
    bool readings;      /* the board's utilisation readings were measured too */
    bool assumed;       /* some load was assumed, not known: every result must say so */
    bool untangled;     /* recorded kernels overlapped; their work no longer contains the sharing of the recording */
    double sm_min_mhz, sm_max_mhz; /* range in which the loads are known; 0, INFINITY where laws hold everywhere. What
                                      is predicted beyond it is used by runs that go there, but chosen by nobody */
    double model_time_mape_pct, model_power_mape_pct; /* of a fitted model; NAN where there is none */
} fl_workload;

/* ---- building by hand ---- */
fl_status fl_workload_new(fl_workload **out, const char *name, fl_diag *d);
void fl_workload_free(fl_workload *w);
/* Free what only a run needs: ops, waits and host threads. Names, classes and counts of the whole stay. */
void fl_workload_forget(fl_workload *w);

/* Add a class. Copies the name of kind; the load's measured curves move into the workload. *id: its index. More than
 * 65,535 are refused. */
fl_status fl_workload_add_class(fl_workload *w, const fl_load *load, const fl_kernel_kind *kind, uint32_t *id,
                                fl_diag *d);

fl_status fl_workload_add_stream(fl_workload *w, uint32_t gpu, int32_t process, int32_t id, uint32_t *index,
                                 fl_diag *d);

fl_status fl_workload_add_op(fl_workload *w, uint32_t stream, int64_t gap_ns, int64_t work_ns, uint32_t class_id,
                             fl_diag *d);
/* Let the op that was added last to `stream` wait for this. May be called several times. */
fl_status fl_workload_add_wait(fl_workload *w, uint32_t stream, fl_wait wait, fl_diag *d);

/* Finish the workload: find its islands, and cut each stream into `windows` windows of equal reference time. May be
 * called again after more was added. */
fl_status fl_workload_finish(fl_workload *w, uint32_t windows, fl_diag *d);
/* Replace the windows of a finished workload by one mark after every op, so that a run reports when each op ended. */
fl_status fl_workload_mark_ops(fl_workload *w, fl_diag *d);

/* Return whether a server of w->serving runs on this GPU. */
bool fl_workload_serves(const fl_workload *w, uint32_t gpu);

/* Return the index into `big` of a record with class FL_REC_ESCAPE. */
static inline uint64_t fl_rec_index(const fl_rec *r) {
    return (uint64_t)r->gap_ns << FL_WORK_BITS | (uint64_t)r->work_ns;
}

/* Read op i of a stream, whether it is in a record or in `big`. */
static inline void fl_workload_op(const fl_stream *s, uint64_t i, int64_t *gap_ns, int64_t *work_ns,
                                  uint32_t *class_id) {
    const fl_rec *r = &s->rec[i];
    if (r->class_id == FL_REC_ESCAPE) {
        const fl_big *b = &s->big[fl_rec_index(r)];
        *gap_ns = b->gap_ns, *work_ns = b->work_ns, *class_id = b->class_id;
    } else {
        *gap_ns = r->gap_ns, *work_ns = r->work_ns, *class_id = r->class_id;
    }
}

/* ---- from a sweep ----
 *
 * A sweep gives one time for each clock. A policy changes clocks within that time and measures parts of it, so a kernel
 * of a sweep becomes ops of about 10 ms. The table says neither how long kernels are, how much they vary, nor where
 * iterations end; the user may state all three. */

typedef struct fl_sweep_replay { /* how the workloads of a sweep are replayed */
    uint32_t repeat;             /* number of times that the workload runs, one after the other */
    uint32_t windows;            /* of work, for the slowdown of the worst 5 % of the run; 0 = none */
    double jitter;               /* coefficient of variation of an op's work, 0 to 1; 0: all alike */
    uint64_t seed;               /* of the jitter. The same seed is the same work at every clock, under every policy */
    int64_t iteration_ns;        /* work between iteration markers, about, at the highest clock; 0: no markers */
    int64_t op_ns;               /* length of an op at the highest clock, about; 0: 10 ms, and 100 ops at least */
} fl_sweep_replay;

/* ---- from a kernel trace ---- */

typedef struct fl_build_options {
    uint32_t windows;      /* of work, for the slowdown of the worst 5 % of the run; 0 = none */
    const fl_kinds *kinds; /* how kernel classes load the device; NULL = none known */
    const char *assume;    /* kernels without a row in kinds: "compute", "memory", "balanced"; NULL = refuse them */
} fl_build_options;

/* Build a workload from a kernel trace. GPUs are the trace's devices in ascending order. Recorded kernels that overlap
 * on a GPU shared it. The work of each is then the integral of the rate that sharing gave it, so that a replay at the
 * clocks of the recording takes the recorded time. */
fl_status fl_build_trace(fl_workload **out, const char *name, const fl_kernel_trace *t, const fl_node_spec *node,
                         const fl_build_options *o, fl_diag *d);

/* List the workloads of a sweep in order of appearance, as indices into s->names. The caller frees *names. */
fl_status fl_sweep_workloads(const fl_sweep *s, uint32_t **names, size_t *count, fl_diag *d);

/* What a fit found about a workload (harness/chip/chip.h makes it). */
typedef struct fl_sweep_law {
    bool predicted;                /* the sweep's rows are predictions for the whole ladder; else they were measured */
    double sm_min_mhz, sm_max_mhz; /* where the device was calibrated */
    double time_pct, power_pct;    /* expected mean absolute errors of predictions, %; NAN: all rows are measured */
    /* Per name of the sweep, a kernel's tc, tm, tl at its device's reference clocks ref_sm_mhz and ref_mem_mhz; all 0
     * where they are not known. */
    fl_load *load;
} fl_sweep_law;

/* Build a workload from one workload of a sweep. Its kernels run one after the other, cut into ops. Time and power come
 * from the rows, by monotone interpolation. Measured rows count at the platform's default memory clock (or the only
 * one) and at the highest power cap; predicted rows all count. law NULL: only the rows are known. */
fl_status fl_build_sweep(fl_workload **out, const char *file, const fl_sweep *s, uint32_t name, const fl_sweep_law *law,
                         const fl_sweep_replay *replay, const fl_node_spec *node, fl_diag *d);

/* ---- from a programs file ---- */

/* Build the workload that fl_build_trace would make of fl_synth_program's trace, without the trace and with a ninth of
 * the memory. *out is NULL, with FL_OK, where the caller must use those two instead: for programs of several streams,
 * and for every input that they refuse. */
fl_status fl_build_program(fl_workload **out, const char *name, const fl_programs *p, size_t index, uint64_t seed,
                           double seconds, const fl_node_spec *node, const fl_build_options *o, fl_diag *d);

/* ---- open-loop requests over a workload ---- */

/* Turn a finished workload into one that serves `count` requests, which arrive at arrival_ns (ascending from 0 on,
 * copied), and finish it again with `windows` windows of work.
 *
 * Each request runs the whole workload once: its streams, launches, synchronisations and waits. Arrivals do not wait. A
 * request starts when it has arrived and every op of the one before has finished. It ends when its last op has finished
 * and its host threads have returned. Where no launches were recorded, a host thread of its own starts each request,
 * and gaps stay host time. Clocks do not affect arrivals.
 *
 * After a failure only fl_workload_free may be called. */
fl_status fl_workload_serve(fl_workload *w, const int64_t *arrival_ns, size_t count, uint32_t windows, fl_diag *d);

/* Make the kernel trace of p->programs[index], recorded at the clocks that the head of p names. The same program, seed
 * and length always give the same kernels. seconds: about how long it lasts there, 0 = as stated. A program with
 * several cycles gets more or fewer of them; else every part_s is scaled. FL_BAD_INPUT for more than 1e8 kernels. */
fl_status fl_synth_program(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                           fl_diag *d);
