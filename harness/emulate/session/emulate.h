/* The server of the simulated NVML. One process owns the simulator, the clock, the audit of set calls and the report. A
 * command and all its children reach it through the client library (harness/emulate/client/), which holds no state. */
#pragma once

#include "harness/emulate/driver/options.h"
#include "harness/emulate/driver/outcome.h"

/* Runs the command to its end, and then its remaining processes for a while. FL_HARDWARE, with the reason, where it
 * could not be emulated; everything it started has then been killed. */
fl_status fl_emulate(const fl_emulate_options *o, fl_emulate_result *r, fl_diag *d);
