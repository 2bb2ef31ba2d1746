/* What a policy saw and set, step by step, collected during a run into a decisions trace. */
#ifndef FL_STEPLOG_H
#define FL_STEPLOG_H

#include "harness/output.h"
#include "traces/tables.h"

typedef struct fl_steplog {
    fl_decisions log;
    const fl_policy *policy;
    size_t room_t, room_delay, room_line, room_value, room_fresh, room_set;
} fl_steplog;

/* Columns: the signals the policy needs and the controls it drives. The head names platform, policy, seed and every
 * parameter as resolved. */
fl_status fl_steplog_open(fl_steplog *l, const fl_scene *scene, const fl_spec *spec, fl_diag *d);
fl_status fl_steplog_add(fl_steplog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
void fl_steplog_free(fl_steplog *l);

#endif
