/* A recording of kernels at every clock: simulated at each, once for each assumption about how its kernels depend on
 * the clocks, where that is not known. */
#pragma once

#include "harness/advise/subject.h"
#include "harness/chip/log_run.h"

/* Fills to->of and to->ref. run: the log of the same run, or NULL; its power scales the model's. *assumed: whether the
 * kinds had to be assumed. */
fl_status fl_advise_kernels(const char *path, const fl_kernel_trace *t, const fl_log_run *run,
                            const fl_advise_options *o, fl_advise_subject *to, bool *assumed, fl_diag *d);
