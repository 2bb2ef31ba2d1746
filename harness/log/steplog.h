/* What a policy saw and set, step by step, collected during a run into a decisions trace. */
#ifndef FL_STEPLOG_H
#define FL_STEPLOG_H

#include "sim/instance.h"
#include "traces/decisions.h"
#include "traces/decisions_servers.h"
#include "traces/tables.h"

typedef struct fl_steplog {
    fl_decisions log;
    const fl_policy *policy;
    fl_decisions_room room;
    fl_servers_room servers_room;
} fl_steplog;

/* Kernel records are part of what it is shown. */
bool fl_takes_kernels(const fl_policy *policy);
/* As decisions files hold them; the name is borrowed. */
fl_logged_kind fl_logged_kind_of(const fl_kernel_kind *kind);
fl_logged_kernel fl_logged_kernel_of(const fl_kernel_record *record);
fl_logged_batch fl_logged_batch_of(const fl_batch_record *record);

/* Columns: the signals the policy needs and the controls it drives; those of servers where the samples have any. The head (l->log.head) is the caller's to fill. */
fl_status fl_steplog_open(fl_steplog *l, const fl_policy *policy, uint32_t gpu_count, fl_diag *d);
fl_status fl_steplog_add(fl_steplog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
void fl_steplog_free(fl_steplog *l);

#endif
