/* What a recording of kernels says of every clock: simulated at each, once for each way of assuming how its kernels
 * depend on clocks where nobody knows. */
#ifndef FL_ADVISE_KERNELS_H
#define FL_ADVISE_KERNELS_H

#include "harness/advise/advise_subject.h"
#include "harness/chip/log_run.h"

/* Fills to->of and to->ref. run: what a log says of the same run, or NULL: its power anchors the model's. *assumed:
 * whether kinds had to be. */
fl_status fl_advise_kernels(const char *path, const fl_kernel_trace *t, const fl_log_run *run,
                            const fl_advise_options *o, fl_advise_subject *to, bool *assumed, fl_diag *d);

#endif
