/* A log of one run at one clock, extended to other clocks on a platform of which only constants are known. */
#pragma once

#include "harness/advise/subject.h"
#include "harness/chip/one_probe.h"

/* Fills to->of and to->ref. Times follow from three assumptions about how kernels depend on clocks. Powers follow from
 * the run's own power where that tells any (p->tells), else from the platform's laws, scaled to meet it. */
fl_status fl_advise_log(const char *path, const fl_log_run *run, const fl_advise_options *o, fl_advise_subject *to,
                        fl_one_probe *p, fl_diag *d);
