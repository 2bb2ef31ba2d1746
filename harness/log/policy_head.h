/* The policy of a decisions file, described completely in its head, so that a replay needs that file alone. The keys
 * are policy, seed and gpus, set.NAME for each parameter as resolved, and table.NAME for each table. A table is stored
 * whole as JSON: a list of rows, each a list of its text key (where the table has one) and its numbers. The stated
 * facts stand beside them (facts_head.h). */
#pragma once

#include "sim/instance/instance.h"
#include "traces/io/records.h"

fl_status fl_policy_head_put(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                             size_t layer_count, fl_diag *d);

typedef struct fl_policy_head { /* the parameters of a head */
    fl_layer layer;             /* its texts are borrowed from the head */
    fl_setting *setting;
    fl_table *table; /* one entry per setting; cell NULL where the setting is not a table */
} fl_policy_head;

/* FL_BAD_INPUT where a table does not belong to the policy. path: the file's name for diagnostics; borrowed, and also
 * the layer's origin. Free *p in either case. */
fl_status fl_policy_head_get(fl_policy_head *p, const fl_head *h, const char *path, const fl_policy *policy,
                             fl_diag *d);
void fl_policy_head_free(fl_policy_head *p); /* accepts a zeroed struct */
