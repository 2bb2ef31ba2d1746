/* Kernel traces of programs files, seeded: the same program, seed and length give the same kernels for ever. */
#pragma once

#include "traces/files/programs.h"

/* The trace of p->programs[index], recorded at the clocks that the head of p names. seconds: about how long it lasts
 * there, 0 = as stated: more or fewer cycles where the program has several, else every part_s scaled alike.
 * FL_BAD_INPUT where that would be more than 1e8 kernels. */
fl_status fl_synth_program(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                           fl_diag *d);
/* The same kernels handed to sink one by one, stream by stream, each stream in the order of time, with nothing kept of
 * them: *t gets head, names and kinds, and *about how many kernels there are if each takes its mean time, before the
 * first comes. The caller frees *t, also after a failure. */
typedef fl_status (*fl_program_sink)(void *user, const fl_trace_op *op, fl_diag *d);
fl_status fl_synth_program_each(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                                double *about, fl_program_sink sink, void *user, fl_diag *d);
