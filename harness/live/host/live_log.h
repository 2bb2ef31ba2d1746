/* The decisions log of a live run, written step by step: a run that is killed leaves all but its last steps. A thread
 * of its own writes, so that a disk that stands still (a network's) holds up no step of control: up to 64 MiB wait for
 * it, further steps are lost and counted. The file is the canonical decisions file (traces/files/tables.h) and replays. */
#pragma once

#include "sim/instance/instance.h"
#include "traces/io/records.h"

typedef struct fl_live_log fl_live_log;

/* Columns: what the policy reads and drives. head is copied into the file. */
fl_status fl_live_log_open(fl_live_log **out, const char *path, const fl_head *head, const fl_policy *policy,
                           fl_diag *d);
/* FL_IO where the file took no more at an earlier step. */
fl_status fl_live_log_add(fl_live_log *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
/* A line that is no part of any step, where it stands (a comment to whoever replays): what became of a set. */
void fl_live_log_note(fl_live_log *l, const char *line);
/* Waits until all is written. FL_IO where a step was lost. NULL is allowed. */
fl_status fl_live_log_close(fl_live_log *l, fl_diag *d);
void fl_live_log_limit(fl_live_log *l, size_t room); /* bytes that may wait, for tests */

/* What harness/log/policy_head.h says of the policy, mode as the source, and platform or (NULL) the facts. */
fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d);
