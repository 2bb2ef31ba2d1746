/* Kernel traces of profilers (Nsight Systems, Kineto, rocprof), joined with telemetry on one clock.
 *
 * The readers themselves are rows of traces/open/open.h; open their files with fl_trace_open. To join, call
 * fl_join_devices, fl_join_find for the offset of the clocks, and fl_join. All work on an fl_imported that the caller
 * owns. FL_BAD_INPUT where no offset can be found.
 *
 * The profiler and the tool that reads the sensors count time from different origins: telemetry time = kernel time +
 * offset. */
#pragma once

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_clock_offset {
    int64_t offset_ns;
    double error_ns;    /* approximate error to either side: sampling, and the width of the peak */
    double r, next_r;   /* correlation at the offset, and at the best offset clearly apart from it (0 = none) */
    const char *signal; /* the signal that was correlated with the kernels' activity; borrowed from the telemetry */
    bool sure;          /* r is at least 0.7 and the runner-up explains clearly less (see offset.c) */
} fl_clock_offset;

/* Finds the offset at which the kernels' activity best explains utilisation or power. FL_BAD_INPUT where that is
 * impossible: no common device, no such signal, no variation. The devices must already have the same numbers. */
fl_status fl_join_find(const fl_kernel_trace *k, const fl_telemetry *t, fl_clock_offset *found, fl_diag *d);

/* If kernels and telemetry have one device each, with different numbers, give the telemetry the kernels' number, with a
 * note. */
fl_status fl_join_devices(fl_imported *run, fl_diag *d);

/* Puts the telemetry on the kernels' clock (and shifts both later, where it would begin before 0). Gives each kernel
 * the SM clock that was read while it ran: the mean of the readings in its span, else the nearest reading within two
 * intervals. Sets the head keys clock_offset_ns (of the telemetry), sm_mhz, mem_mhz, device. Notes how many kernels
 * have a clock. */
fl_status fl_join(fl_imported *run, int64_t offset_ns, fl_diag *d);

/* Appends the ops of another trace of the same run and clock; streams keep their numbers. Devices that share a number
 * are two GPUs where their heads say so (FL_GPU_KEY), and one where the heads say that or nothing (a doubt).
 * FL_BAD_INPUT where nothing is said and kernels of both files overlap in one stream. */
fl_status fl_join_append(fl_imported *run, const fl_imported *more, fl_diag *d);
