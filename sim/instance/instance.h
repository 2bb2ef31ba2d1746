/* One policy under one host: parameters, checks of readings, and what becomes of its requests. Simulator, decision
 * replay, simulated NVML and live host all step a policy through fl_instance, so that parameters, ABI check, snapping,
 * clamping, faults and rate limits are the same everywhere. No I/O.
 *
 * Call fl_instance_open, then fl_instance_step at each step with a sample, then fl_instance_close. The host first
 * passes the sample through fl_guard (what cannot be right becomes invalid), and in tests through fl_faults. Calls that
 * can fail return FL_BAD_INPUT with policy, parameter and origin in the diagnostic, or FL_NO_MEMORY.
 *
 * Snapping: a requested clock becomes the nearest of the GPU's ladder (a tie goes down); a power limit is clamped to
 * its range. FL_DEFAULT passes unchanged. 0, other negative values, NaN and infinity are faults: the instance counts
 * them, and the last setting holds. Further faults are a control that the descriptor does not drive, an event that it
 * does not list as a wake-up, and a delay that is not positive (the last delay holds; 200 ms at first). */
#pragma once

#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- parameters: the defaults of the policy's rows, then layers of settings ---- */

typedef struct fl_setting { /* one parameter as the user gave it */
    const char *name;       /* of the parameter */
    const char *text;       /* its text form; NULL where table is given */
    const fl_table *table;  /* LIST and TABLE only; borrowed until the instance is closed */
} fl_setting;

typedef struct fl_layer { /* settings of one origin; a later layer overrides an earlier one */
    const char *origin;   /* for diagnostics: "platform v100-163w", "--set" */
    const fl_setting *setting;
    size_t count;
} fl_layer;

/* Fill a parameter struct of policy->param_size bytes that owns its tables; free it with fl_params_free.
 * FL_BAD_INPUT with policy, parameter and origin in the message; *out is then NULL. */
fl_status fl_params_resolve(void **out, const fl_policy *policy, const fl_layer *layer, size_t layer_count, fl_diag *d);

/* NULL is allowed. */
void fl_params_free(const fl_policy *policy, void *params);

/* Return the number of numeric columns of a TABLE row. *keyed says whether its first column is a text key:
 * "key:kernel|sm_mhz" is keyed, with one numeric column. *columns, if not NULL, points to the row's text after "key:".
 */
uint32_t fl_param_columns(const fl_param *row, bool *keyed, const char **columns);

/* ---- the tables of the contract (policies/policy.h) at run time ---- */

typedef enum fl_row_set {
    FL_ROWS_GPU_SIGNAL,
    FL_ROWS_HOST_SIGNAL,
    FL_ROWS_SERVER_SIGNAL,
    FL_ROWS_WAKE,
    FL_ROWS_GPU_CONTROL,
    FL_ROWS_HOST_CONTROL
} fl_row_set;
/* Signals of the host that no sensor gives: how long its own loop took, and the power that it was asked for. */
#define FL_HOST_KNOWS (FL_BIT(FL_HOST_LOOP_NS) | FL_BIT(FL_HOST_TARGET_W))

typedef struct fl_row_info {
    const char *name, *unit, *meaning;
    fl_signal_kind kind; /* signals only */
} fl_row_info;
size_t fl_rows_count(fl_row_set set);
const fl_row_info *fl_rows_at(fl_row_set set, size_t index);
int fl_rows_find(fl_row_set set, const char *name); /* index of the row; -1: no such name */

/* What a policy reads (its signal rows), as sets of signals: FL_BIT of FL_GPU_..., FL_HOST_... and FL_SERVER_.... */
typedef struct fl_reads {
    uint64_t gpu_needs, gpu_uses, gpu_instead, host_needs, server_needs, server_uses;
    uint64_t gpu, server; /* needs and uses: what a host measures, if it can */
    bool records;         /* activity records are on from the start */
    bool steps;           /* it takes records of the steps of a server's engine */
} fl_reads;
fl_reads fl_reads_of(const fl_policy *policy);

/* A policy with more signal rows is refused. */
enum { FL_SIGNAL_ROWS_MAX = 4 * FL_SIGNAL_COUNT };

/* Return the policy as a host runs it that can read `offers` (FL_BIT(FL_GPU_...)) at most. Where the host lacks a
 * needed signal and has all those that stand in for it, the policy needs these instead. It uses signals where they are
 * offered. Its signal rows are those written to `row`, room for FL_SIGNAL_ROWS_MAX, which must outlive it. */
fl_policy fl_policy_where(const fl_policy *policy, uint64_t offers, fl_signal_row *row);

/* Compare a plug-in's contract with this program's. NULL: they are the same. Otherwise returns buf with both versions
 * and the first row that differs. Reads nothing of the descriptor beyond its fl_abi. */
const char *fl_abi_difference(const fl_abi *theirs, char *buf, size_t size);

/* ---- the instance ---- */

typedef struct fl_instance_options {
    const fl_policy *policy;
    const fl_facts *facts; /* borrowed until the instance is closed */
    const fl_layer *layer; /* platform, experiment, command line */
    size_t layer_count;
    int64_t min_set_interval_ns; /* least time between two sets of one control. An earlier set waits for the first step
that is late enough, unless a later set replaces it. 0 = no limit */
    bool unwatched;              /* no reader for the probes: the policy may skip them, and no step clears them */
    const char *label, *run; /* names of policy and workload, for the message after a crash (sim/base/base.h). NULL =
                                not stated; borrowed until the instance is closed */
} fl_instance_options;

typedef struct fl_decided {
    bool set;
    double requested; /* the policy's own value */
    double value;     /* snapped and clamped, or FL_DEFAULT */
} fl_decided;

typedef struct fl_decision {
    int64_t delay_ns;
    uint64_t wake; /* FL_BIT(FL_WAKE_...): the next step comes earlier if one of these happens */
    uint32_t gpu_count;
    const fl_decided (*gpu)[FL_GPU_CONTROL_COUNT]; /* gpu_count */
    fl_decided host[FL_HOST_CONTROL_COUNT];
    const double *probe; /* probe_count cells (below); NaN = nothing */
} fl_decision;

typedef struct fl_instance_counts {
    uint64_t steps, sets, faults, snapped, clamped, held_back;
} fl_instance_counts;

typedef struct fl_instance fl_instance;

/* Resolve parameters (row, then the layers in order), check the ABI and run the policy's init. FL_BAD_INPUT: unknown
 * parameter (the message offers the nearest), bad text, out of range, a policy for servers on a node without servers,
 * or init refused. */
fl_status fl_instance_open(fl_instance **out, const fl_instance_options *options, fl_diag *d);
void fl_instance_close(fl_instance *in); /* NULL is allowed */

/* Run one step of the policy. *decision is valid until the next step or close. The sample's gpu_count and server_count
 * must equal those of the facts. */
fl_status fl_instance_step(fl_instance *in, const fl_sample *sample, const fl_decision **decision, fl_diag *d);

/* Ask the policy's route, which it must have, by the state as of its last step. */
uint32_t fl_instance_route(const fl_instance *in, const fl_route_query *query);

const fl_policy *fl_instance_policy(const fl_instance *in);
fl_instance_counts fl_instance_counts_of(const fl_instance *in);
/* Write the resolved value of parameter `index` as text into buf; a table becomes "ROWSxCOLUMNS table". Returns buf. */
char *fl_instance_param_text(const fl_instance *in, uint32_t index, char *buf, size_t size);
/* Return the resolved table of a LIST or TABLE parameter. It lives as long as the instance. */
fl_table fl_instance_param_table(const fl_instance *in, uint32_t index);

/* ---- freshness ----
 *
 * No vendor's library says when a sensor refreshed. A host therefore takes a changed value for a refresh. An unchanged
 * value counts as refreshed after the sensor's own refresh period. A counter that always moves is fresh only where it
 * moved. */

typedef struct fl_seen { /* the last value of one signal */
    double value;
    int64_t fresh_ns;
    bool known;
} fl_seen;

#define FL_SEEN_MOVES INT64_MAX /* as refresh_ns: fresh only where it moved */

/* Put a valid value into the sample, and mark it fresh by the rule of this section. Returns whether it is fresh. */
bool fl_seen_put(fl_seen *last, fl_gpu_sample *sample, int id, double value, int64_t t_ns, int64_t refresh_ns);

/* ---- injected faults ----
 *
 * Signals of sensors and servers that go missing or freeze, sets that are refused, GPUs that fall off the bus: for
 * tests and for studies of how a policy bears them. Faults act between the node and the guard, so true energy and
 * scores do not change. The exception is a lost GPU, which the node itself stops (fl_faults_lost_at).
 *
 * Times are the host's, in ns; a fault acts at from_ns <= t < until_ns. loop_ns is never touched: it is the host's own
 * stopwatch, not a sensor. */

typedef enum fl_fault_type {
    FL_FAULT_DROP,   /* the signal is missing */
    FL_FAULT_FREEZE, /* the signal holds what it showed at from_ns and is never fresh */
    FL_FAULT_REFUSE, /* sets of the control fail */
    FL_FAULT_LOST,   /* the GPU is gone from from_ns on, for good: no signal is read, no set succeeds */
    FL_FAULT_TYPE_COUNT
} fl_fault_type;

/* Values in place of a GPU's index; FL_FAULT_SERVER - i is server i. A server's signals can fail; the records of its
 * engine's steps cannot. */
enum { FL_FAULT_HOST = -1, FL_FAULT_EVERY_GPU = -2, FL_FAULT_EVERY_SERVER = -3, FL_FAULT_SERVER = -4 };
enum { FL_FAULT_EVERY_ROW = -1 }; /* instead of one signal or control */
#define FL_FAULT_FOR_EVER INT64_MAX

typedef struct fl_fault {
    fl_fault_type type;
    int32_t gpu; /* index, or one of the above */
    int32_t row; /* FL_GPU_..., FL_HOST_... or FL_SERVER_...; for REFUSE FL_SET_...; or FL_FAULT_EVERY_ROW. LOST does
                    not read it */
    int64_t from_ns, until_ns; /* LOST does not read until_ns */
} fl_fault;

typedef struct fl_faults fl_faults;

/* Open the faults of one run. They hold state (frozen values), so each run opens its own. The list is borrowed until
 * close.
 * FL_BAD_INPUT, naming the fault by its place from 1: a GPU, server or row that the node does not have, an empty time,
 * a lost host or server. */
fl_status fl_faults_open(fl_faults **out, const fl_fault *list, size_t count, uint32_t gpu_count, uint32_t server_count,
                         fl_diag *d);
void fl_faults_close(fl_faults *f); /* NULL is allowed */

/* Apply the faults to a reading at t_ns, in place. Call them at every reading; t_ns never falls. f NULL: no faults.
 * Where faults overlap on one signal, missing wins over frozen. Of two freezes the later one in the list wins, and it
 * sees what the earlier one left. A frozen value is that of the last reading at or before from_ns, or else of the first
 * one after it. A signal frozen while unknown stays unknown. A refresh that a fault hid shows at the first reading that
 * the fault lets through. */
void fl_faults_gpu(fl_faults *f, uint32_t gpu, int64_t t_ns, fl_gpu_sample *sample);
void fl_faults_host(fl_faults *f, int64_t t_ns, fl_host_sample *sample);
void fl_faults_server(fl_faults *f, uint32_t server, int64_t t_ns, fl_server_sample *sample);

/* Return whether a set of this control at t_ns fails. gpu: index, or FL_FAULT_HOST. f NULL: false. */
bool fl_faults_refuses(const fl_faults *f, int32_t gpu, int control, int64_t t_ns);

/* Return when the GPU falls off the bus, in ns; INT64_MAX = never. f NULL: never. */
int64_t fl_faults_lost_at(const fl_faults *f, uint32_t gpu);

/* ---- the guard: checks of raw readings before a policy sees them ----
 *
 * Every host uses it. Unknown is not zero: what cannot be right becomes invalid, and only for as long as it must. In
 * this order, for each signal that was read:
 * 1. Absurd: not finite, negative, or beyond the bounds that the host knows. Invalid at this step, and as if it had not
 *    been read. No signal of the contract can be negative; the guard takes a board below 0 C for a broken sensor.
 * 2. Stale: not fresh for longer than its limit, counted from when it was last fresh, or first read: invalid until it
 *    is fresh again. A counter that stands still because its sensor does must not look like zero use.
 * 3. COUNTER: what is shown never falls.
 *    A wrap: the counter starts again at 0 when it reaches the wrap that the host knows of; that much is carried over.
 *    A reset: any other fall, e.g. a driver loaded anew. Invalid at that step, then counts on from the last value
 * shown; what was used in between is unknown and left out.
 * A fall counts as a wrap where both values lie below the wrap and the use in between would be at most half of it;
 * otherwise it is a reset. So a counter must be read at least twice per wrap. Slower reading loses multiples of the
 * wrap silently. A reset from just below the wrap to a small value looks like a wrap. */

typedef struct fl_guard fl_guard; /* state of one node's signals over one run */

/* Open a guard that knows no wrap and lets nothing go stale. */
fl_status fl_guard_open(fl_guard **out, uint32_t gpu_count, fl_diag *d);
/* Guard the signals of `count` servers too. Call it at most once, after fl_guard_open. */
fl_status fl_guard_servers(fl_guard *g, uint32_t count, fl_diag *d);
void fl_guard_close(fl_guard *g); /* NULL is allowed */

/* Set the value at which a counter starts again at 0, in its unit; 0 = none known. Matters for COUNTER signals only.
 * These setters ignore a GPU or signal that does not exist. */
void fl_guard_gpu_wrap(fl_guard *g, uint32_t gpu, int signal, double wrap);
void fl_guard_host_wrap(fl_guard *g, int signal, double wrap);

/* Set the range of a signal, both ends included; at first it is 0 to infinity. The second call returns how many
 * readings were outside. */
void fl_guard_gpu_bounds(fl_guard *g, uint32_t gpu, int signal, double low, double high);
uint64_t fl_guard_gpu_absurd(const fl_guard *g, uint32_t gpu, int signal);

/* Set how long a signal may go without being fresh; 0 = for ever. */
void fl_guard_gpu_stale(fl_guard *g, uint32_t gpu, int signal, int64_t limit_ns);
void fl_guard_host_stale(fl_guard *g, int signal, int64_t limit_ns);
void fl_guard_server_stale(fl_guard *g, uint32_t server, int signal, int64_t limit_ns);

/* Check one reading at t_ns, in place; t_ns never falls. Signals that are not valid stay as they are, and no invalid
 * signal is fresh. No allocation. */
void fl_guard_gpu(fl_guard *g, uint32_t gpu, int64_t t_ns, fl_gpu_sample *sample);
void fl_guard_host(fl_guard *g, int64_t t_ns, fl_host_sample *sample);
void fl_guard_server(fl_guard *g, uint32_t server, int64_t t_ns, fl_server_sample *sample);
