/* Canonical telemetry, sweep and decisions files, and the log of the GEEPAFS daemon. Readers fill the struct or leave
 * it zeroed; writers use a temporary file and a rename. */
#pragma once

#include "traces/io/io.h"
#include "traces/io/records.h"

fl_status fl_telemetry_read(const char *path, fl_telemetry *t, fl_diag *d);
fl_status fl_telemetry_write(const char *path, const fl_telemetry *t, fl_diag *d);

fl_status fl_decisions_read(const char *path, fl_decisions *r, fl_diag *d);
fl_status fl_decisions_write(const char *path, const fl_decisions *r, fl_diag *d);
