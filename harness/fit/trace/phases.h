/* Turns a telemetry log without kernels into a program: stretches of similar utilisation, clock and power become its
 * parts. A log cannot tell how a phase depends on the clocks; that is assumed, and marked as assumed. */
#pragma once

#include "models/laws/device.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

/* Writes OUT (a programs file) and its kinds beside it, and prints the phases. device: the log's GPU, -1 = the lowest;
 * the output says so if the log has others. source: for the heads of the files. FL_BAD_INPUT: the log has no
 * utilisation, lacks that GPU, or nothing ever ran on it. */
fl_status fl_fit_phases(const fl_telemetry *t, int32_t device, const fl_device *dev, const char *source,
                        const char *out, bool json, fl_diag *d);
