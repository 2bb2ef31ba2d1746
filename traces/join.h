/* Kernels and telemetry of one run on one clock. The profiler and the tool that reads the sensors count time from
 * different points; telemetry time = kernel time + offset. */
#ifndef FL_JOIN_H
#define FL_JOIN_H

#include "traces/import.h"

typedef struct fl_clock_offset {
    int64_t offset_ns;
    double error_ns;    /* about so much to either side: sampling, and the width of the peak */
    double r, next_r;   /* correlation there, and at the best offset apart from it (0 = none) */
    const char *signal; /* which was correlated with the activity of kernels; borrowed from the telemetry */
    bool sure;          /* r is at least 0.7 and the runner-up explains clearly less (see join_find.c) */
} fl_clock_offset;

/* Finds the offset at which the kernels' activity explains utilisation or power best. FL_BAD_INPUT where nothing can be
 * said: no common device, no such signal, no variation. Devices must already have the same numbers. */
fl_status fl_join_find(const fl_kernel_trace *k, const fl_telemetry *t, fl_clock_offset *found, fl_diag *d);

/* Where kernels and telemetry have one device each, of different numbers, the telemetry's becomes that of the kernels
 * (noted). */
fl_status fl_join_devices(fl_imported *run, fl_diag *d);

/* Puts the telemetry on the kernels' clock (both later, where it would begin before 0) and gives each kernel the SM
 * clock that was read while it ran: the mean of the readings in its span, else the nearest not farther than two
 * intervals. Heads: clock_offset_ns (of the telemetry), sm_mhz, mem_mhz, device. Notes how many kernels have a clock.
 */
fl_status fl_join(fl_imported *run, int64_t offset_ns, fl_diag *d);

/* Appends the ops of another trace of the same run and clock; streams are kept as they are. */
fl_status fl_join_append(fl_imported *run, const fl_imported *more, fl_diag *d);

#endif
