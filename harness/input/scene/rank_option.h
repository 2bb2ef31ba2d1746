/* Options that say something of one rank of a pipeline: rank=R:X. */
#pragma once

#include "harness/base/cli/args.h"
#include "traces/pipeline/pipeline.h"

/* "rank=R:X", the X above 0; `what` is the option, for diagnostics. */
fl_status fl_rank_value_parse(const char *what, const char *text, uint32_t *rank, double *value, fl_diag *d);

#define FL_SLOW_HELP "makes rank R of the pipeline compute X times as long (may be repeated)"

/* Each text of --slow: a rank that computes slower (sim/pipeline/straggler.h). *p is replaced. */
fl_status fl_pipeline_slow_down(fl_pipeline *p, const fl_texts *slow, fl_diag *d);
