/* What the files of harness/log share. Other modules include the public header alone. */
#pragma once

#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

/* Writes the keys stated.*: bound, deadline and length, from any source. A value that was not stated has no key. */
fl_status fl_stated_to_head(const fl_facts *facts, fl_head *h, fl_diag *d);

/* Keys servers, serverN.gpus, serverN.limits (max_seqs/token_budget/kv_tokens), serverN.targets (TTFT/TBT in ns,
 * share). Nothing where there is none. */
fl_status fl_server_head_put(const fl_facts *facts, fl_head *h, fl_diag *d);

/* The two extra columns of the host's rows for a policy that may be woken. "woken", among the signals: why the step
 * came early (bits FL_WAKE_...; 0: it did not). "wake", among the controls: by what the policy asks to be woken next.
 */
#define FL_LOGGED_WOKEN "woken"
#define FL_LOGGED_WAKE "wake"
