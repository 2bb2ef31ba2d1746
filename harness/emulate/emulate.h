/* The simulated NVML's server: one process owns simulator, clock, audit of set calls and the report; a command and all
 * its children reach it through the client library (harness/emulate/client/), which holds no state. */
#ifndef FL_EMULATE_H
#define FL_EMULATE_H

#include "harness/emulate/emulate_options.h"
#include "harness/emulate/emulate_outcome.h"

/* Runs the command to its end, and what it left behind for a while longer. FL_HARDWARE where it could not be emulated:
 * with the reason; what it started has been killed. */
fl_status fl_emulate(const fl_emulate_options *o, fl_emulate_result *r, fl_diag *d);

#endif
