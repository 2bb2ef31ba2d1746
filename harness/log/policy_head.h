/* What a decisions file says of the policy that decided, so that it replays from that file alone: keys policy, seed and
 * gpus, set.NAME for each parameter as resolved, and table.NAME for each table, whole, as JSON: a list of rows, each a
 * list of its text key (where the table has one) and its numbers. Beside them what was stated (facts_head.h). */
#ifndef FL_POLICY_HEAD_H
#define FL_POLICY_HEAD_H

#include "sim/instance.h"
#include "traces/records.h"

fl_status fl_policy_head_put(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                             size_t layer_count, fl_diag *d);

typedef struct fl_policy_head { /* the parameters of a head */
    fl_layer layer;             /* texts are borrowed from the head */
    fl_setting *setting;
    fl_table *table; /* of each setting; cell NULL where it is none */
} fl_policy_head;

/* FL_BAD_INPUT where a table is not the policy's. path: of the file, for diagnostics; borrowed, as the layer's origin.
 * To be freed either way. */
fl_status fl_policy_head_get(fl_policy_head *p, const fl_head *h, const char *path, const fl_policy *policy,
                             fl_diag *d);
void fl_policy_head_free(fl_policy_head *p); /* takes a zeroed struct */

#endif
