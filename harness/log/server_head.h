/* What a policy was told of the servers of its node, in the head of its decisions log. */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

/* Keys servers, serverN.gpus, serverN.limits (max_seqs/token_budget/kv_tokens), serverN.targets (TTFT/TBT in ns,
 * share). Nothing where there is none. */
fl_status fl_server_head_put(const fl_facts *facts, fl_head *h, fl_diag *d);

/* Puts the servers of the head into the facts; none where the head names none. FL_BAD_INPUT with key and file where one
 * is missing or wrong. fl_server_head_free takes them out again. */
fl_status fl_server_head_get(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d);
void fl_server_head_free(fl_facts *facts);
