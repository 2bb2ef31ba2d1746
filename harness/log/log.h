/* Logs of a run, step by step, and their replay.
 *
 * An fl_steplog collects what a policy saw and set, as a decisions log. The head of the log has everything that a
 * replay needs: fl_facts_to_head writes the machine's facts, fl_policy_head_put the policy with its parameters.
 * fl_replay feeds a log to the same policy here and counts decisions that differ. fl_probelog and fl_sensorlog collect
 * probes and sensor readings; fl_served_* reports requests, iterations and barriers.
 *
 * A log owns its rows until its _free. Names and policies are borrowed. FL_BAD_INPUT names the file and the key or line
 * that is missing or wrong; writers use a temporary file and a rename. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The facts that a policy received on a live machine (ladders, limits, counts, laws and times), stored to the last bit
 * in the head of its decisions log, so that the log can be replayed without a platform file. */

/* Writes the keys host.*, gpuN.*. */
fl_status fl_facts_to_head(const fl_facts *facts, fl_head *h, fl_diag *d);

/* True where the head contains facts. */
bool fl_facts_in_head(const fl_head *h);
/* Fills the facts of gpu_count GPUs. FL_BAD_INPUT with key and file where one is missing or wrong. */
fl_status fl_facts_from_head(const fl_head *h, const char *path, uint32_t gpu_count, uint64_t seed, fl_facts *facts,
                             fl_diag *d);

/* Read what a user stated (bound, deadline, length) from the head into *facts; 0 for what it lacks. FL_BAD_INPUT with
 * key and file. */
fl_status fl_stated_from_head(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d);
void fl_facts_head_free(fl_facts *facts);

/* The policy of a decisions file, described completely in its head, so that a replay needs that file alone. The keys
 * are policy, seed and gpus, set.NAME for each parameter as resolved, and table.NAME for each table. A table is stored
 * whole as JSON: a list of rows, each a list of its text key (where the table has one) and its numbers. The stated
 * facts stand beside them (log.h). */

fl_status fl_policy_head_put(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                             size_t layer_count, fl_diag *d);

typedef struct fl_policy_head { /* the parameters of a head */
    fl_layer layer;             /* its texts are borrowed from the head */
    fl_setting *setting;
    fl_table *table; /* one entry per setting; cell NULL where the setting is not a table */
} fl_policy_head;

/* Read the policy's parameters from a head. path: the file's name for diagnostics; borrowed, and also the layer's
 * origin. FL_BAD_INPUT: a table does not belong to the policy. Free *p also after a failure. */
fl_status fl_policy_head_get(fl_policy_head *p, const fl_head *h, const char *path, const fl_policy *policy,
                             fl_diag *d);
void fl_policy_head_free(fl_policy_head *p); /* accepts a zeroed struct */

/* A policy's internals over time: one row per step and GPU (device host for those of the node), one column per probe.
 */

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

/* Feeds the recorded readings of a policy to the same policy here and checks that it decides the same. */

typedef struct fl_replay_result {
    uint64_t steps, decisions, differ; /* decisions: one per step and GPU, and one per step that sets a host control */
    uint64_t rounded; /* of those that differ: power limits that rounding explains (FL_REPLAY_ROUNDED_W) */
    /* the first difference */
    uint64_t step;
    int64_t line, t_ns;
    int32_t device; /* -1 = host */
    char control[32];
    double recorded, decided; /* NAN = not set, FL_DEFAULT = handed back */
} fl_replay_result;

/* Logs of other programs are rounded: GridPilot's commands to 0.1 W and times to 0.1 ms, while it sets whole watts,
 * only if they move by 2 W, and at most once a second. So rounding explains a power limit that differs if, at that step
 * or the next one, the limits in force are at most this far apart. */
#define FL_REPLAY_ROUNDED_W 2.0

/* Signals and controls are matched by name. A column that no table contains is refused. */
fl_status fl_replay(const fl_decisions *log, const char *path, fl_instance *in, fl_replay_result *r, fl_diag *d);

/* The readings of a simulated node's sensors during a run, as a telemetry trace: what a monitor on the node would have
 * written, including noise and delays. */

typedef struct fl_sensorlog {
    fl_telemetry t;
    size_t room_t, room_d, room_v;
} fl_sensorlog;

extern const uint64_t fl_sensorlog_needs; /* for fl_run_options.watch_needs */

fl_status fl_sensorlog_open(fl_sensorlog *l, fl_diag *d);
/* Adds one row per GPU; for use in an fl_watch_function. */
fl_status fl_sensorlog_add(fl_sensorlog *l, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d);
/* Writes into the head which program ran and how long it took ("program", as `foldline record` writes it). */
fl_status fl_sensorlog_write(fl_sensorlog *l, const char *path, const char *workload, const char *platform,
                             int64_t makespan_ps, fl_diag *d);
void fl_sensorlog_free(fl_sensorlog *l);

/* What a run completed, for people and machines: requests, iterations and barriers. */

/* Print the lines of a run's text. For a server of a language model: its requests, latencies, targets and energy.
 * Otherwise requests, iterations and barrier waits, without the lines that do not apply. */
void fl_served_print(const fl_run_result *r, FILE *out);
/* Print a note if requests arrive faster than they are served. */
void fl_served_note(const fl_run_result *r, FILE *out);
/* Add "served", "requests", "iterations" and "barrier_wait_s", as far as they apply. */
void fl_served_json(cJSON *into, const fl_run_result *r);

/* Write CSV: request,arrival_ns,start_ns,end_ns,latency_ns. */
fl_status fl_served_write_requests(const char *path, const fl_service *s, fl_diag *d);
/* Write the requests of servers of a language model as CSV: request,server,arrival_ns,taken_ns,first_token_ns,done_ns,
 * prompt_tokens,output_tokens,ttft_ns,tpot_ns,tbt_max_ns,e2e_ns,ttft_missed,tbt_missed,preemptions,prefill_j,decode_j.
 * tpot_ns is empty for a single token; tbt_missed counts tokens. */
fl_status fl_served_write_batched(const char *path, const fl_served_result *r, const fl_requests *requests, fl_diag *d);
/* Write CSV: gpu,process,stream,iteration,start_ns,end_ns,time_ns. */
fl_status fl_served_write_iterations(const char *path, const fl_service *s, fl_diag *d);

/* Read the servers of the head into the facts; none if the head names none. FL_BAD_INPUT with key and file: one is
 * missing or wrong. fl_server_head_free takes them out again. */
fl_status fl_server_head_get(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d);
void fl_server_head_free(fl_facts *facts);

/* The decisions log: what a policy saw and set, step by step. */

typedef struct fl_steplog {
    fl_decisions log;
    const fl_policy *policy;
    fl_decisions_room room;
    fl_servers_room servers_room;
} fl_steplog;

/* Return true if the policy receives activity records. */
bool fl_takes_kernels(const fl_policy *policy);

/* Start a log. Its columns are the signals that the policy reads and the controls that it drives, and those of servers
 * if the samples have any. The caller fills the head (l->log.head). */
fl_status fl_steplog_open(fl_steplog *l, const fl_policy *policy, uint32_t gpu_count, fl_diag *d);
/* Add the columns of servers before the first step. */
fl_status fl_steplog_servers(fl_steplog *l, fl_diag *d);
fl_status fl_steplog_add(fl_steplog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
/* Drop the steps so far, but keep their kernel classes. */
void fl_steplog_forget(fl_steplog *l);
void fl_steplog_free(fl_steplog *l);
