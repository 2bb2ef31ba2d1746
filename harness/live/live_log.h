/* The decisions log of a live run, written step by step: a run that is killed leaves all but its last step. The file is
 * the canonical decisions file (traces/tables.h) and replays. */
#ifndef FL_LIVE_LOG_H
#define FL_LIVE_LOG_H

#include "sim/instance.h"
#include "traces/records.h"

typedef struct fl_live_log fl_live_log;

/* Columns: what the policy needs and drives. head is copied into the file. */
fl_status fl_live_log_open(fl_live_log **out, const char *path, const fl_head *head, const fl_policy *policy,
                           fl_diag *d);
fl_status fl_live_log_add(fl_live_log *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
fl_status fl_live_log_close(fl_live_log *l, fl_diag *d); /* NULL is allowed */

/* What harness/log/policy_head.h says of the policy, mode as the source, and platform or (NULL) the facts. */
fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d);

#endif
