/* Collects during a run, step by step, what a policy saw and set, as a decisions trace. */
#ifndef FL_STEPLOG_H
#define FL_STEPLOG_H

#include "sim/instance.h"
#include "traces/decisions.h"
#include "traces/tables.h"

typedef struct fl_steplog {
    fl_decisions log;
    const fl_policy *policy;
    fl_decisions_room room;
} fl_steplog;

/* Whether the policy receives kernel records. */
bool fl_takes_kernels(const fl_policy *policy);
/* A kernel's kind and record in the form of decisions files; the name is borrowed. */
fl_logged_kind fl_logged_kind_of(const fl_kernel_kind *kind);
fl_logged_kernel fl_logged_kernel_of(const fl_kernel_record *record);

/* The columns are the signals that the policy needs and the controls that it drives. The caller fills the head
 * (l->log.head). */
fl_status fl_steplog_open(fl_steplog *l, const fl_policy *policy, uint32_t gpu_count, fl_diag *d);
fl_status fl_steplog_add(fl_steplog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
void fl_steplog_free(fl_steplog *l);

#endif
