/* One policy under one host. Simulator, decision replay, simulated NVML and live host all step a policy through here,
 * so that parameters, ABI check, snapping, clamping, faults and rate limits are the same everywhere. No I/O.
 *
 * Snapping: a requested clock becomes the nearest of the GPU's ladder (a tie goes down); a power limit is clamped to
 * its range. A request of FL_DEFAULT passes as it is. 0, negative (but FL_DEFAULT), NaN and infinity are faults:
 * counted, and the last setting holds. So are a control that the descriptor does not drive, an event that it does not
 * say it may be woken by, and a delay that is not positive (the last delay holds; 200 ms at first). */
#pragma once

#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parameter struct of a policy, filled from its rows and the layers of settings over them. */

typedef struct fl_setting { /* one parameter as someone gave it */
    const char *name;       /* of the parameter */
    const char *text;       /* its text form; NULL where table is given */
    const fl_table *table;  /* LIST and TABLE only; borrowed until the instance is closed */
} fl_setting;

typedef struct fl_layer { /* settings of one origin; a later layer overrides an earlier one */
    const char *origin;   /* for diagnostics: "platform v100-163w", "--set" */
    const fl_setting *setting;
    size_t count;
} fl_layer;

/* On FL_OK, *out is a struct of policy->param_size bytes with tables of its own; free it with fl_params_free.
 * FL_BAD_INPUT with policy, parameter and origin in the message; *out is then NULL. */
fl_status fl_params_resolve(void **out, const fl_policy *policy, const fl_layer *layer, size_t layer_count, fl_diag *d);

/* NULL is allowed. */
void fl_params_free(const fl_policy *policy, void *params);

/* Columns of numbers of a TABLE row; *keyed says whether its first column is the text key ("key:kernel|sm_mhz" is
 * keyed, with one column of numbers). Names are not copied: *columns, where not NULL, is the row's text after "key:".
 */
uint32_t fl_param_columns(const fl_param *row, bool *keyed, const char **columns);

/* The tables of the contract at run time: rows by name, and the comparison of a plug-in's tables with these. */

/* Row of a table by name, -1 where there is none. The kind of table: */
typedef enum fl_row_set {
    FL_ROWS_GPU_SIGNAL,
    FL_ROWS_HOST_SIGNAL,
    FL_ROWS_SERVER_SIGNAL,
    FL_ROWS_WAKE,
    FL_ROWS_GPU_CONTROL,
    FL_ROWS_HOST_CONTROL
} fl_row_set;
typedef struct fl_row_info {
    const char *name, *unit, *meaning;
    fl_signal_kind kind; /* signals only */
} fl_row_info;
size_t fl_rows_count(fl_row_set set);
const fl_row_info *fl_rows_at(fl_row_set set, size_t index);
int fl_rows_find(fl_row_set set, const char *name);

/* NULL where the plug-in was built against this very contract; else text in buf: both versions and the first row that
 * differs. Reads nothing of the descriptor beyond its fl_abi. */
const char *fl_abi_difference(const fl_abi *theirs, char *buf, size_t size);

typedef struct fl_instance_options {
    const fl_policy *policy;
    const fl_facts *facts; /* borrowed until the instance is closed */
    const fl_layer *layer; /* platform, experiment, command line */
    size_t layer_count;
    int64_t min_set_interval_ns; /* a control is set at most this often; a set that comes too early is kept and made at
                                    the first step that may, unless a later one replaces it. 0 = no limit */
    bool unwatched; /* nobody reads the probes: a policy may leave them out, and they are not cleared before a step */
    const char *label, *run; /* of the policy, and what it runs over; for the line of a crash (sim/base/base.h). NULL =
                                not stated; borrowed until the instance is closed */
} fl_instance_options;

typedef struct fl_decided {
    bool set;
    double requested; /* as the policy said it */
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

/* Resolves parameters (row, then the layers in order), checks the ABI and runs init. FL_BAD_INPUT with the policy,
 * parameter and origin in the message: unknown parameter (nearest offered), bad text, out of range, a policy for
 * servers where there is none, init refused. */
fl_status fl_instance_open(fl_instance **out, const fl_instance_options *options, fl_diag *d);
void fl_instance_close(fl_instance *in); /* NULL is allowed */

/* Runs one step. *decision is valid until the next step or close. The sample's gpu_count and server_count must equal
 * those of the facts. */
fl_status fl_instance_step(fl_instance *in, const fl_sample *sample, const fl_decision **decision, fl_diag *d);

const fl_policy *fl_instance_policy(const fl_instance *in);
fl_instance_counts fl_instance_counts_of(const fl_instance *in);
/* The resolved value of parameter `index` in text form (tables as "ROWSxCOLUMNS table"), into buf. Returns buf. */
char *fl_instance_param_text(const fl_instance *in, uint32_t index, char *buf, size_t size);
/* The resolved table of a LIST or TABLE parameter; lives as long as the instance. */
fl_table fl_instance_param_table(const fl_instance *in, uint32_t index);

/* When did a sensor refresh? No vendor's library tells: a changed value says so. One that did not change is taken for
 * refreshed once as long has passed as its sensor needs at least; a counter that always moves refreshed only where it
 * moved. */

typedef struct fl_seen { /* of one signal */
    double value;
    int64_t fresh_ns;
    bool known;
} fl_seen;

#define FL_SEEN_MOVES INT64_MAX /* as refresh_ns: fresh only where it moved */

/* Puts a value into the sample, valid, and fresh where it is. Returns whether it is. */
bool fl_seen_put(fl_seen *last, fl_gpu_sample *sample, int id, double value, int64_t t_ns, int64_t refresh_ns);

/* Faults on purpose: sensors, and what servers tell of themselves, that go missing or freeze, sets that are refused,
 * GPUs that fall off the bus. For tests and for studies of how a policy bears them; they act between the node and the
 * guard, so that the truth (energy, scores) stays what it is, but for a lost GPU: that one the node itself stops
 * (fl_faults_lost_at).
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

/* Instead of the index of a GPU; FL_FAULT_SERVER - i is server i. Of a server only signals can fail: the records of its
 * engine's steps come all the same. */
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

/* Faults of one run; they hold state (frozen values), so each run opens its own. The list is lent until close.
 * FL_BAD_INPUT, naming the fault by its place from 1: a GPU, server or row that the node does not have, an empty time,
 * a lost host or server. */
fl_status fl_faults_open(fl_faults **out, const fl_fault *list, size_t count, uint32_t gpu_count, uint32_t server_count,
                         fl_diag *d);
void fl_faults_close(fl_faults *f); /* NULL is allowed */

/* What of the sensors' reading at t_ns comes through, in place; t_ns never falls. NULL: all of it. Call them at every
 * reading. Where faults overlap on one signal, missing wins over frozen, and a later freeze of the list over an earlier
 * one, of which it sees what that left. A signal frozen while it was unknown stays unknown; a frozen value is that of
 * the last reading at or before from_ns, or of the first one after it where there was none. Refreshes that a fault hid
 * are told at the first reading that it lets through. */
void fl_faults_gpu(fl_faults *f, uint32_t gpu, int64_t t_ns, fl_gpu_sample *sample);
void fl_faults_host(fl_faults *f, int64_t t_ns, fl_host_sample *sample);
void fl_faults_server(fl_faults *f, uint32_t server, int64_t t_ns, fl_server_sample *sample);

/* True where a set of this control at t_ns fails. gpu: index, or FL_FAULT_HOST. NULL: never. */
bool fl_faults_refuses(const fl_faults *f, int32_t gpu, int control, int64_t t_ns);

/* When the GPU falls off the bus; INT64_MAX = never, as with NULL. */
int64_t fl_faults_lost_at(const fl_faults *f, uint32_t gpu);

/* What every host does to raw readings before a policy sees them. Unknown is not zero: what cannot be right becomes
 * invalid, and stays so only as long as it must. In this order, for each signal that was read:
 *
 * 1. Not finite, negative (no signal of the contract can be; a board below 0 C is taken for a broken sensor), or beyond
 *    the bounds that the host knows of: invalid at this step, and as if it had not been read.
 * 2. Stale: not fresh for longer than its limit, counted from when it was last fresh, or first read: invalid until it
 *    is fresh again. A counter that stands still because its sensor does must not look like zero use.
 * 3. COUNTER: what is shown never falls.
 *    A wrap: the counter starts again at 0 when it reaches the wrap that the host knows of; that much is carried over.
 *    A reset: any other fall, e.g. a driver loaded anew. Invalid at that step, then counts on from the last value
 * shown; what was used in between is unknown and left out.
 *
 * A fall is taken for a wrap where both values lie below the wrap and the use that it means is at most half of it; else
 * for a reset. So a counter must be read at least twice per wrap. Two wraps between two readings cannot be told from
 * one, nor one wrap from none where the value did not fall: both lose a multiple of the wrap, silently. Nor can a reset
 * from just below the wrap to a small value be told from a wrap. */

typedef struct fl_guard fl_guard; /* state of one node's signals over one run */

/* At first no wrap is known and nothing goes stale. */
fl_status fl_guard_open(fl_guard **out, uint32_t gpu_count, fl_diag *d);
/* Once, after fl_guard_open: the signals of so many servers are guarded too. Until then there is no server. */
fl_status fl_guard_servers(fl_guard *g, uint32_t count, fl_diag *d);
void fl_guard_close(fl_guard *g); /* NULL is allowed */

/* The value at which a counter starts again at 0, in its unit; 0 = none known. Read for COUNTER signals only. A GPU or
 * signal that there is not is passed over, here and below. */
void fl_guard_gpu_wrap(fl_guard *g, uint32_t gpu, int signal, double wrap);
void fl_guard_host_wrap(fl_guard *g, int signal, double wrap);

/* What a signal can be, both ends included; until then anything from 0 on. And how often one was none of it. */
void fl_guard_gpu_bounds(fl_guard *g, uint32_t gpu, int signal, double low, double high);
uint64_t fl_guard_gpu_absurd(const fl_guard *g, uint32_t gpu, int signal);

/* How long a signal may go without being fresh; 0 = for ever. */
void fl_guard_gpu_stale(fl_guard *g, uint32_t gpu, int signal, int64_t limit_ns);
void fl_guard_host_stale(fl_guard *g, int signal, int64_t limit_ns);
void fl_guard_server_stale(fl_guard *g, uint32_t server, int signal, int64_t limit_ns);

/* One reading, in place, at t_ns, which never falls. Signals that are not valid are left alone; nothing is fresh that
 * is not valid. No allocation. */
void fl_guard_gpu(fl_guard *g, uint32_t gpu, int64_t t_ns, fl_gpu_sample *sample);
void fl_guard_host(fl_guard *g, int64_t t_ns, fl_host_sample *sample);
void fl_guard_server(fl_guard *g, uint32_t server, int64_t t_ns, fl_server_sample *sample);
