/* A telemetry log without kernels: stretches over which utilisation, clock and power stay alike become the parts of a
 * program. What a log cannot tell, how a phase depends on the clocks, is assumed and marked so. */
#ifndef FL_FIT_TRACE_PHASES_H
#define FL_FIT_TRACE_PHASES_H

#include "models/device.h"
#include "traces/diag.h"
#include "traces/records.h"

/* Writes OUT (a programs file) and its kinds beside it, and prints the phases. device: the log's GPU, -1 = the lowest;
 * where it has others that is said. source: for their heads. FL_BAD_INPUT where the log has no utilisation, lacks that
 * GPU, or nothing ever ran on it. */
fl_status fl_fit_phases(const fl_telemetry *t, int32_t device, const fl_device *dev, const char *source,
                        const char *out, bool json, fl_diag *d);

#endif
