/* Offline profiling of the kernels of a programs file on a simulated node: each kernel alone, over all pairs of CPU and
 * GPU states (DynaCo, SC '13, sections 4.1 and 6). */
#pragma once

#include "harness/fit/policy/state_runs.h"
#include "harness/input/scene/node_choice.h"

typedef struct fl_profile_options {
    const char *programs; /* file, see traces/files/programs.h; its head names the kinds */
    const char *platform;
    fl_node_choice node;
    double seconds; /* approximate time for which each kernel is repeated at the clocks of the file */
    uint64_t seed;
    unsigned threads; /* 0 = all; does not affect the result */
} fl_profile_options;

/* Profiles every kernel of every program (the rows it has in its first program, one after the other, with their gaps),
 * at each CPU state that software may set, without boost and with boost, and at each SM clock of GPU 0. Fills *r or
 * leaves it zeroed. FL_BAD_INPUT for a platform without a host CPU. */
fl_status fl_profile_states(const fl_profile_options *o, fl_state_runs *r, fl_diag *d);
