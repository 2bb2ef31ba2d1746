/* One simulated node: its GPUs between boundaries. Whoever hosts a policy over it (a run, an emulated driver) only
 * advances it to an instant, reads it and sets it. */
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/node/host.h"
#include "sim/serving/serving.h"

typedef struct fl_node_options {
    const fl_workload *w;
    fl_rates *rates;
    const fl_node_spec *spec;
    uint64_t seed;
    uint64_t gpu_needs, host_needs;     /* signals that will be read */
    uint64_t server_needs;              /* likewise, where the workload serves */
    bool batches;                       /* records of engines' steps will be taken */
    bool counted;                       /* a collector counts kernels all along, else only while records are on */
    const int64_t *lost_at_ns;          /* per GPU: when it falls off the bus, INT64_MAX = never; NULL = none does */
    fl_path path;                       /* for tests; FL_PATH_AUTO: as fl_path_force says */
    double first_sm_mhz, first_mem_mhz; /* clocks at time 0; 0 = the driver's default */
} fl_node_options;

fl_status fl_node_open(fl_node **out, const fl_node_options *o, fl_diag *d);
void fl_node_close(fl_node *n);

/* Advances every GPU to `until`, or the whole node to the instant at which all work is done, whichever is earlier.
 * Nobody reads a sensor in between. */
fl_status fl_node_advance(fl_node *n, int64_t until, fl_diag *d);
/* From now on an advance goes no further than the next instant at which any GPU passes an iteration marker, or no
 * longer so. Sensors are then read at instants that nobody knows before, so that they make all of their boundaries. */
void fl_node_stop_at_markers(fl_node *n, bool on);
/* Whether the last advance stopped there: a marker was passed at fl_node_now. */
bool fl_node_woken(const fl_node *n);
int64_t fl_node_now(const fl_node *n);
bool fl_node_done(const fl_node *n);

/* What software reads now; of the host, see node_host.h. remember: freshness is counted from here. */
void fl_node_read(fl_node *n, uint32_t gpu, bool remember, fl_gpu_sample *out);

/* A set call on one GPU that ends at called_ps >= now; see fl_actuator_set. */
void fl_node_set(fl_node *n, uint32_t gpu, int64_t called_ps, double sm_mhz, double mem_mhz);
/* A power limit in W, FL_DEFAULT for the board's own. False where the board has no wall that could hold it. */
bool fl_node_set_limit(fl_node *n, uint32_t gpu, int64_t called_ps, double watts);
/* The limit in force there, in W; NAN where nothing holds the board to one. */
double fl_node_limit_w(const fl_node *n, uint32_t gpu);
/* See fl_cpu_set. False where the CPU is not modelled. */
bool fl_node_set_cpu(fl_node *n, int64_t called_ps, double mhz, double boost, double limit_w);
/* Kernel records on or off from now on. While they are on, what runs there takes longer by the device's share. */
void fl_node_records(fl_node *n, uint32_t gpu, bool on);
/* The same at no cost: somebody watches from outside, or is to see what a policy does without its cost. */
void fl_node_records_free(fl_node *n, uint32_t gpu, bool on);
/* Their cost alone: a collector records all along, and a policy's host charges for the records that it shows. */
void fl_node_records_slow(fl_node *n, uint32_t gpu, bool slow);

/* Kernels finished on all GPUs since the last call, by end; valid until the next advance. */
fl_status fl_node_take_records(fl_node *n, const fl_kernel_record **record, size_t *count, fl_diag *d);

/* What software reads of a server now; nothing of one that has lost a GPU. remember: as fl_node_read. */
void fl_node_read_server(fl_node *n, uint32_t server, bool remember, fl_server_sample *out);
/* Steps of engines that ended since the last call, by end; valid until the next advance. None unless asked for. */
void fl_node_take_batches(fl_node *n, const fl_batch_record **batch, size_t *count);
/* Requests that are done. */
uint64_t fl_node_served(const fl_node *n);
/* What runs on the servers; NULL where the workload serves nothing. */
struct fl_engines *fl_node_engines(const fl_node *n);
/* What a server has waiting and running now, whether or not anybody reads its signals: truth, for plots over time. */
fl_batching_counts fl_node_batching(const fl_node *n, uint32_t server);

uint32_t fl_node_gpu_count(const fl_node *n);
const fl_gpu *fl_node_gpu(const fl_node *n, uint32_t gpu); /* truth, for scores */
uint64_t fl_node_switches(const fl_node *n);               /* changes of a lock or the default, not of wall and heat */
/* When each mark of a stream was passed: stream's mark_count entries, FL_TIME_NEVER where not yet. */
const int64_t *fl_node_marks(const fl_node *n, uint32_t stream);
/* When each request had been served: request_count of the workload. */
const int64_t *fl_node_requests(const fl_node *n);
/* When a stream passed its iteration markers: *count of them so far. */
const int64_t *fl_node_iterations(const fl_node *n, uint32_t stream, uint64_t *count);
/* Residence per class of all work, also of what was passed by sums (prefix.h), which takes a pass over its ops. */
void fl_node_settle(fl_node *n);
/* A hash of every GPU's energy and every stream's position now: equal courses have equal hashes. */
uint64_t fl_node_hash(const fl_node *n);
