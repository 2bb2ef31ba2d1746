/* Telemetry that lies beside a kernel trace: X.telemetry.csv of X.csv, as foldline import writes the two. */
#pragma once

#include "traces/import/import.h"

/* Adds it to *run, read from path, where it is there and both heads name the same clock_offset_ns: then both are of one
 * import, and on one clock. Where it is there and they do not, a note says that it was left out. Nothing happens to a
 * run without kernels, or that has telemetry. */
fl_status fl_trace_beside(const char *path, fl_imported *run, fl_diag *d);
