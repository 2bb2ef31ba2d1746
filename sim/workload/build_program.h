/* A program straight into its workload, without a trace between: a ninth of the memory. */
#pragma once

#include "sim/workload/build.h"
#include "traces/files/programs.h"

/* What fl_build_trace makes of fl_synth_program's trace. *out NULL, and FL_OK, where it has to be made by those two: for
 * programs of several streams, whose kernels may have to share, and for all that they refuse, in their words. */
fl_status fl_build_program(fl_workload **out, const char *name, const fl_programs *p, size_t index, uint64_t seed,
                           double seconds, const fl_node_spec *node, const fl_build_options *o, fl_diag *d);
