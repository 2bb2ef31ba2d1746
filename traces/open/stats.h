/* A trace in numbers: its length, its kernels, how busy the devices were, the gaps, power and energy. */
#pragma once

#include "traces/import/import.h"

enum { FL_STATS_GAPS = 5 }; /* classes of gaps: below 10 us, 100 us, 1 ms, 10 ms, longer */

typedef struct fl_device_stats {
    int32_t device;
    size_t kernels, copies, streams; /* streams: distinct process and stream */
    double span_s;                   /* from the first start to the last end on the device */
    double busy_s, copy_s;           /* time with some kernel (copy) resident */
    double kernel_s;                 /* sum of the kernels' durations; divided by busy_s: how many ran at once */
    size_t gaps;                     /* between kernels, all streams together */
    double gap_s, longest_gap_s;     /* total, and the longest */
    size_t gap_count[FL_STATS_GAPS];
    double gap_class_s[FL_STATS_GAPS];
    /* From the telemetry, NAN where there is none. Over the kernels' span where there are kernels, else over all
     * readings. */
    double power_w, energy_j; /* mean power; energy from the energy counter where there is one, else power over time */
    double sm_mhz, sm_mhz_min, sm_mhz_max, util_pct;
    size_t readings;
    double interval_s; /* median between readings */
} fl_device_stats;

typedef struct fl_name_stats { /* statistics of all kernels of one name */
    const char *name;          /* borrowed from the trace */
    size_t count, kinds;       /* kinds: distinct grids and blocks */
    double total_s, min_s, max_s;
} fl_name_stats;

typedef struct fl_stats {
    double duration_s, first_s;
    size_t kernels, copies, syncs, iterations, kinds, names, streams, processes;
    bool has_launches, has_clocks;
    fl_device_stats *device;
    size_t device_count;
    fl_name_stats *name; /* kernels only; the longest total first */
    size_t name_count;
} fl_stats;

/* For kernels, telemetry, or both on one clock. Fills *s or leaves it zeroed; it borrows names from run. */
fl_status fl_stats_make(fl_stats *s, const fl_imported *run, fl_diag *d);
void fl_stats_free(fl_stats *s);

/* One row per device and bin of time: t_s,device,busy_pct,copy_pct,power_w,sm_mhz,util_gpu_pct; empty = not known. */
fl_status fl_stats_write_series(const char *path, const fl_imported *run, size_t bins, fl_diag *d);
