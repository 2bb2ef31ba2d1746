/* What the files of sim/node share: the node's insides (node.c, island.c, open.c), results (result.c), and the parts of
 * a run (run.c, sets.c). */
#pragma once

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_readout_view { /* of one GPU; zeroed before the first reading */
    fl_seen last[FL_GPU_SIGNAL_COUNT];
} fl_readout_view;

/* Reduce `raw` to what a host of that library sees at t_ns, of the signals among `needs`. */
void fl_readout_show(const fl_readout *r, fl_readout_view *view, uint64_t needs, int64_t t_ns, const fl_gpu_sample *raw,
                     fl_gpu_sample *out);

/* Round a number of the contract's unit to the whole steps of the library. */
double fl_readout_whole(const fl_readout *r, int id, double value);

/* What software reads of the host now. remember: freshness is counted from here. */
void fl_node_read_host(fl_node *n, bool remember, fl_host_sample *out);

const struct fl_cpu *fl_node_cpu(const fl_node *n); /* NULL: not modelled */
fl_wide fl_node_comm_fj(const fl_node *n);          /* copies between host and GPUs */

/* See fl_cpu_set. False where the CPU is not modelled. */
bool fl_node_set_cpu(fl_node *n, int64_t called_ps, double mhz, double boost, double limit_w);
/* Activity records on or off from now on. While they are on, what runs there takes longer by the device's share. */
void fl_node_records(fl_node *n, uint32_t gpu, bool on);

/* Read the signals of a server as software sees them now; none of a server that has lost a GPU. remember: freshness
 * counts from here. */
void fl_node_read_server(fl_node *n, uint32_t server, bool remember, fl_server_sample *out);
/* Steps of engines that ended since the last call, by end; valid until the next advance. None unless asked for. */
void fl_node_take_batches(fl_node *n, const fl_batch_record **batch, size_t *count);
/* Return the number of requests that are done. */
uint64_t fl_node_served(const fl_node *n);
/* Return the servers in execution; NULL where the workload serves nothing. */
struct fl_engines *fl_node_engines(const fl_node *n);

/* How well the GPUs' power follows a target: the mean power of each window against the mean target in it. The caller
 * looks at each multiple of the window, which is next_ps. began_ps: the host's time 0. */
typedef struct fl_follow {
    const fl_target *target;
    int64_t next_ps;
    fl_wide energy_fj;
    uint64_t windows, above;
    double error_w; /* sum over windows */
} fl_follow;
void fl_follow_open(fl_follow *f, const fl_target *target);
void fl_follow_look(fl_follow *f, const fl_node *node, int64_t began_ps);
void fl_follow_end(const fl_follow *f, fl_run_result *r);

/* When each mark of a stream was passed: stream's mark_count entries, FL_TIME_NEVER where not yet. */
const int64_t *fl_node_marks(const fl_node *n, uint32_t stream);
/* When each request had been served: request_count of the workload. */
const int64_t *fl_node_requests(const fl_node *n);

/* Residence per class of all work, also of what was passed by sums (sim/advance/advance.h), which takes a pass over its
 * ops. */
void fl_node_settle(fl_node *n);
/* A hash of every GPU's energy and every stream's position now: equal courses have equal hashes. */
uint64_t fl_node_hash(const fl_node *n);

/* Largest power of a GPU in mW: of the kernels that ran, in the way they shared it; where none ran, of the idle board,
 * with or without a context. The contribution of heat counts with its maximum, whenever that occurred. */
int64_t fl_ledger_peak_mw(const fl_gpu *g);

/* Return the largest power of the host, mW: CPU, copies and the rest of the node, each at its own maximum. The CPU's
 * value is a mean between two instants at which the node stands still. */
int64_t fl_ledger_host_peak_mw(const fl_node *n, const fl_node_spec *spec);

fl_status fl_service_collect(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d);

/* Fills *r from a node whose work has ended, but for what the loop and the policy's instance count. Its arrays belong
 * to *r, also on failure. classes: those too that take a pass over what was jumped over (sim/advance/advance.h).
 * FL_NO_MEMORY, or FL_MODEL_FAULT where the ledger does not close. */
fl_status fl_run_collect(fl_node *node, const fl_workload *w, const fl_node_spec *spec, bool classes, fl_run_result *r,
                         fl_diag *d);

typedef struct fl_node fl_node;

typedef struct fl_limit_pending { /* a power limit on its way; per GPU the newest alone */
    int64_t at_ps;                /* FL_TIME_NEVER = none */
    double watts;
} fl_limit_pending;

struct fl_node {
    const fl_workload *w;
    const fl_node_spec *spec;
    fl_rates *rates;
    fl_path path; /* FL_PATH_AUTO, or what a test forces */
    uint64_t seed;
    uint32_t gpu_count;
    fl_gpu *gpu;
    fl_actuator *actuator;
    fl_limit_pending *limit;
    fl_wall *wall;
    fl_heat *heat;
    fl_sense **sense;
    int64_t *lost_ps;           /* per GPU, FL_TIME_NEVER = never */
    fl_lane *lane;              /* by stream */
    fl_lane **lanes;            /* pointers to them, for the courses */
    fl_course *course;          /* by island */
    bool *finished;             /* by island */
    bool *stalled;              /* by island: it waits for a lost GPU for ever */
    bool stops, woken;          /* see fl_node_stop_at_markers */
    int64_t *ended;             /* by island */
    int64_t *request_ps;        /* by request: when it had been served */
    struct fl_engines *serving; /* of the island that serves; NULL = none does */
    int64_t now;
    uint64_t switches;
    fl_kernel_record *record;
    size_t record_count, record_room;
    /* what all GPUs share */
    bool meets;  /* any of the following is there */
    bool hosted; /* the CPU is modelled */
    fl_cpu cpu;
    fl_host_sense *host_sense;
    int64_t bus_ps;    /* next change of an APU's bandwidth */
    int64_t budget_ps; /* next dealing out of the GPUs' budget */
    fl_wide *dealt_fj; /* per GPU: energy at the last dealing */
    int64_t static_mw, comm_mw;
    bool copies;
};

static inline int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* One stream, which nothing else can disturb: it is scanned. */
static inline bool fl_node_is_lone(const fl_node *n, uint32_t island) {
    return n->w->island[island].lone && n->path != FL_PATH_EVENTS && !n->course[island].shared_bus;
}

/* The CPU's power warms the die that the GPU is on. */
static inline bool fl_node_one_die(const fl_node *n) { return n->hosted && n->spec->host.apu; }

/* The servers of a workload that serves; does nothing for another. The courses are open. */
struct fl_node_options;

/* The earliest instant at which something must be done to a GPU of the island; until at most. Sensors are read at
 * read_ps and not before. */
int64_t fl_node_boundary(fl_node *n, const fl_island *is, int64_t now, int64_t until, int64_t read_ps);
/* An island to `until`, or to its end; where it stops at markers, to the next of them. */
fl_status fl_node_advance_island(fl_node *n, uint32_t k, int64_t until, int64_t read_ps, fl_diag *d);
/* A GPU on which nothing moves: idles to `until`, its sensors and actuators going on. Where it stands there already,
 * what is due at that instant still happens. */
fl_status fl_node_idle_to(fl_node *n, uint32_t gpu, int64_t until, int64_t read_ps, fl_diag *d);

/* needs: FL_BIT(FL_HOST_...) of the signals that somebody reads. The GPUs are open. */
fl_status fl_node_host_open(fl_node *n, uint64_t needs, fl_diag *d);
void fl_node_host_close(fl_node *n);

/* All stand at n->now, charged up to it. */
void fl_node_host_at(fl_node *n);

/* Tell a run's guard when signals are stale and where counters wrap. */
void fl_run_guard(fl_guard *guard, const fl_node_spec *spec);
/* Servers tell their signals every signals_ns: unknown after a second without any, or after five such times. */
void fl_run_guard_servers(fl_guard *guard, const fl_serving_setup *u);

/* ---- what the policy of a run sees of the servers: their signals, and records of their engines' steps ---- */

typedef struct fl_run_servers {
    fl_server_sample *sample; /* count */
    uint32_t count;           /* 0: the workload serves nothing, or the policy reads nothing of servers */
    bool batches;             /* the policy reads records of steps */
    fl_batch_record *batch;
    size_t batch_room;
} fl_run_servers;

/* policy may be NULL. FL_BAD_INPUT where it needs signals of servers and the workload has none. */
fl_status fl_run_servers_open(fl_run_servers *r, const fl_workload *w, const fl_policy *policy, fl_diag *d);
void fl_run_servers_close(fl_run_servers *r);

/* Put signals and records into *sample, valid until the next call. Records have the host's time, whose 0 is at
 * began_ps. Drop records of steps that began before it. */
fl_status fl_run_servers_read(fl_run_servers *r, fl_node *n, int64_t began_ps, fl_sample *sample, fl_diag *d);

/* ---- the sets of a decision on a simulated node, call by call, as a live host makes them ---- */

typedef struct fl_run_switch { /* of the activity records of one GPU */
    bool on;
    bool to;       /* what they become */
    int64_t at_ps; /* when the calls of that step have ended; FL_TIME_NEVER: no switch is due */
} fl_run_switch;

typedef struct fl_run_own { /* the host of one GPU, where each has its own */
    int64_t free_ps;        /* when its calls have ended */
    int64_t cost_ps;        /* how long they took, so far */
    uint64_t looked;        /* markers that it has come for */
} fl_run_own;

typedef struct fl_run_sets {
    fl_node *node;
    const fl_node_spec *spec;
    const fl_readout *reader; /* sets as a live host of that library does; NULL: whatever the node has */
    fl_faults *faults;        /* may be NULL */
    bool records_free;        /* activity records take no time */
    fl_run_switch *records;   /* by GPU */
    fl_run_own *own;          /* by GPU; NULL where one host has them all */
    int64_t cost_ps;          /* of one host: how long its calls took, so far */
    uint32_t recording;       /* GPUs whose records are on */
    uint64_t refused;         /* sets, by a fault */
    uint64_t ignored;         /* sets of what the node does not have */
} fl_run_sets;

fl_status fl_run_sets_open(fl_run_sets *h, fl_node *node, const fl_node_spec *spec, const fl_readout *reader,
                           fl_faults *faults, bool records_free, fl_diag *d);
void fl_run_sets_close(fl_run_sets *h);

/* Carries a decision out from t on, one call after the other; returns when the last call ends. A switch of records is
 * left to the caller, at its at_ps. Where each GPU has its own host they work side by side. Then `woken` (the step came
 * before its time, at a marker) leaves out the hosts that passed no marker and have nothing to set. */
int64_t fl_run_carry_out(fl_run_sets *h, const fl_decision *dec, bool woken, int64_t t);
/* How long all calls so far took, ps: of the one host, or of the busiest. */
int64_t fl_run_sets_cost(const fl_run_sets *h);
/* Activity records of a GPU, on or off from now on. */
void fl_run_record(fl_run_sets *h, uint32_t gpu, bool on);
