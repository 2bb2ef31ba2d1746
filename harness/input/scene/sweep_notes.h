/* What a reader of a result should know of the measured rows that it stands on. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

/* Appends to note[0..count), malloc'd texts: settings of workload `name` (an index into the sweep's names) that were
 * predicted where the device was not calibrated, that contradict themselves (energy is not power x time, by over 5 %),
 * and that were measured more than once. */
fl_status fl_sweep_notes(const fl_sweep *sweep, uint32_t name, char ***note, size_t *count, fl_diag *d);
/* Appends one. */
fl_status fl_sweep_note(char ***note, size_t *count, fl_diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
