/* The latency targets of a server as bounds of a comparison, so that whoever misses them violates, and the best static
 * clock is the best of those that meet them. */
#pragma once

#include "harness/study/trial/promise.h"

/* Adds "ttft_missed_pct<=X" and "tbt_missed_pct<=X" for the targets that there are, X the share of tokens that may miss
 * them; none where there is a bound on that column already. After fl_serving_choice_check. */
fl_status fl_promises_targets(const fl_serving_choice *c, fl_promises *p, fl_diag *d);
