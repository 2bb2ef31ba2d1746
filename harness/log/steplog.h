/* Collects during a run, step by step, what a policy saw and set, as a decisions trace. */
#pragma once

#include "sim/instance/instance.h"
#include "traces/files/decisions.h"
#include "traces/files/decisions_servers.h"
#include "traces/files/tables.h"

typedef struct fl_steplog {
    fl_decisions log;
    const fl_policy *policy;
    fl_decisions_room room;
    fl_servers_room servers_room;
} fl_steplog;

/* Whether the policy receives kernel records. */
bool fl_takes_kernels(const fl_policy *policy);

/* Of a policy that may be woken, the host's rows have two columns more: among the signals why the step came early (bits
 * FL_WAKE_...; 0: it did not), among the controls what it asks to be woken by next. */
#define FL_LOGGED_WOKEN "woken"
#define FL_LOGGED_WAKE "wake"

/* Columns: the signals the policy reads and the controls it drives, and those of servers where the samples have any.
 * The head (l->log.head) is the caller's to fill. */
fl_status fl_steplog_open(fl_steplog *l, const fl_policy *policy, uint32_t gpu_count, fl_diag *d);
/* The columns of servers, for a log that has them before its first step. */
fl_status fl_steplog_servers(fl_steplog *l, fl_diag *d);
fl_status fl_steplog_add(fl_steplog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
/* Forgets the steps so far; the kinds of their kernels stay. */
void fl_steplog_forget(fl_steplog *l);
void fl_steplog_free(fl_steplog *l);
