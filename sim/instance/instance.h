/* One policy under one host. Simulator, decision replay, simulated NVML and live host all step a policy through here,
 * so that parameters, ABI check, snapping, clamping, faults and rate limits are the same everywhere. No I/O.
 *
 * Snapping: a requested clock becomes the nearest of the GPU's ladder (a tie goes down); a power limit is clamped to
 * its range. A request of FL_DEFAULT passes as it is. 0, negative (but FL_DEFAULT), NaN and infinity are faults:
 * counted, and the last setting holds. So are a control that the descriptor does not drive, an event that it does not
 * say it may be woken by, and a delay that is not positive (the last delay holds; 200 ms at first). */
#pragma once

#include "policies/policy.h"
#include "sim/instance/params.h"
#include "sim/instance/rows.h"
#include "traces/io/diag.h"

#include <stdbool.h>

typedef struct fl_instance_options {
    const fl_policy *policy;
    const fl_facts *facts; /* borrowed until the instance is closed */
    const fl_layer *layer; /* platform, experiment, command line */
    size_t layer_count;
    int64_t min_set_interval_ns; /* a control is set at most this often; a set that comes too early is kept and made at
                                    the first step that may, unless a later one replaces it. 0 = no limit */
    bool unwatched; /* nobody reads the probes: a policy may leave them out, and they are not cleared before a step */
    const char *label, *run; /* of the policy, and what it runs over; for the line of a crash (sim/base/stepping.h). NULL =
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

/* A second instance in the same state, by copying bytes: it decides alike. */
fl_status fl_instance_copy(fl_instance **out, const fl_instance *in, fl_diag *d);

const fl_policy *fl_instance_policy(const fl_instance *in);
fl_instance_counts fl_instance_counts_of(const fl_instance *in);
/* The resolved value of parameter `index` in text form (tables as "ROWSxCOLUMNS table"), into buf. Returns buf. */
char *fl_instance_param_text(const fl_instance *in, uint32_t index, char *buf, size_t size);
/* The resolved table of a LIST or TABLE parameter; lives as long as the instance. */
fl_table fl_instance_param_table(const fl_instance *in, uint32_t index);
/* Cells of decision->probe: per-node probes take one, per-GPU ones gpu_count, in the order of the descriptor. */
size_t fl_instance_probe_count(const fl_instance *in);
