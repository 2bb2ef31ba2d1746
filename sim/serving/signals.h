/* What servers tell of themselves: the third table of signals (policies/policy.h). Internal to sim/.
 *
 * Percentiles are those of a window of ten seconds, as histograms of 64 steps per power of two: what is told is the
 * upper end of a step, never less than the true percentile (nearest rank) and at most 1.6 % more. */
#pragma once

#include "sim/serving/inside.h"

/* needs: FL_BIT(FL_SERVER_...); 0: no server tells anything. */
fl_status fl_engines_signals_open(fl_engines *v, uint64_t needs, fl_diag *d);
/* Their period is over at t: what they tell until the next is what is now. */
void fl_engines_tell(fl_engines *v, int64_t t);
/* What a reader sees of one server at t. remember: freshness is counted from here. */
void fl_engines_read(fl_engines *v, uint32_t server, int64_t t, bool remember, fl_server_sample *out);
