/* Faults on purpose: sensors, and what servers tell of themselves, that go missing or freeze, sets that are refused,
 * GPUs that fall off the bus. For tests and for studies of how a policy bears them; they act between the node and the
 * guard, so that the truth (energy, scores) stays what it is, but for a lost GPU: that one the node itself stops
 * (fl_faults_lost_at).
 *
 * Times are the host's, in ns; a fault acts at from_ns <= t < until_ns. loop_ns is never touched: it is the host's own
 * stopwatch, not a sensor. */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"

#include <stdbool.h>

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
