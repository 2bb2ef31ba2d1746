/* The facts that a policy received on a live machine (ladders, limits, counts, laws and times), stored to the last bit
 * in the head of its decisions log, so that the log can be replayed without a platform file. */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

/* Writes the keys host.*, gpuN.*. */
fl_status fl_facts_to_head(const fl_facts *facts, fl_head *h, fl_diag *d);

/* True where the head contains facts. */
bool fl_facts_in_head(const fl_head *h);
/* Fills the facts of gpu_count GPUs. FL_BAD_INPUT with key and file where one is missing or wrong. */
fl_status fl_facts_from_head(const fl_head *h, const char *path, uint32_t gpu_count, uint64_t seed, fl_facts *facts,
                             fl_diag *d);

/* Writes the keys stated.*: bound, deadline and length, from any source. A value that was not stated has no key. */
fl_status fl_stated_to_head(const fl_facts *facts, fl_head *h, fl_diag *d);
/* Fills them in *facts; 0 where the head has none. FL_BAD_INPUT as above. */
fl_status fl_stated_from_head(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d);
void fl_facts_head_free(fl_facts *facts);
