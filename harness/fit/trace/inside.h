/* What the files of harness/fit/trace share. Other modules include the public header alone. */
#pragma once

#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kernels of several recordings of one program at different clocks, gathered by kind (name, grid, block). */

enum { FL_TRACE_CLOCKS = 64 };

typedef struct fl_seen_kernel {          /* one kind */
    uint32_t name;                       /* index into names */
    fl_kernel_point at[FL_TRACE_CLOCKS]; /* ascending by clock; until fitted, time: sum in ns, weight: count */
    size_t clocks;
    double total_ns;
    bool fitted;
    fl_kernel_fit fit;
} fl_seen_kernel;

typedef struct fl_seen_name { /* a name that gets a row in the kinds file */
    char *text;
    double total_ns, own_ns; /* own: of kinds seen at two clocks or more */
    double c, l, mape, unseen, unseen_ns;
} fl_seen_name;

typedef struct fl_fit_seen {
    fl_seen_kernel *kernel;
    size_t kernel_count, kernel_room;
    fl_intern kernels, texts;
    char **names;
    size_t name_count, name_room;
    fl_seen_name *name;                /* name_count, after fl_seen_fit */
    double total_ns, own_ns, named_ns; /* time of all kernels; of kinds with terms of their own; of kinds that borrow
                                          the terms of their name */
    double any_c, any_l;               /* mean over time: for kernels whose names occurred at one clock only */
    double mape_pct, unseen_pct;       /* weighted by time; unseen is NAN where no kind occurred at three clocks */
    double ref_mhz;                    /* the highest clock seen */
} fl_fit_seen;

/* Adds the kernels of a recording. sm_mhz: the clock of kernels that give none; 0 = not given. FL_BAD_INPUT where a
 * kernel's clock is not known. */
fl_status fl_seen_add(fl_fit_seen *s, const char *path, const fl_kernel_trace *t, double sm_mhz, fl_diag *d);
/* Fits every kind that occurred at two clocks or more. A name takes the mean of its kinds, weighted by time.
 * FL_BAD_INPUT where no kind did. */
fl_status fl_seen_fit(fl_fit_seen *s, double sharpness, fl_diag *d);
void fl_seen_free(fl_fit_seen *s);

/* The recording of an external power meter: the true course of a board's power. */

typedef struct fl_meter {
    double *time_s, *watts; /* count; seconds from the first sample, strictly rising */
    size_t count, time_room, watts_room;
} fl_meter;

/* Reads a telemetry file that foldline import reads (node_power_w, else power_w), or a CSV with one of the columns t_s,
 * t_ms, t_us or t_ns, and power_w. Lines that begin with '#' are ignored. FL_BAD_INPUT where times do not rise or fewer
 * than two samples are known. */
fl_status fl_meter_read(const char *path, fl_meter *m, fl_diag *d);
void fl_meter_free(fl_meter *m);

/* Turns a telemetry log without kernels into a program: stretches of similar utilisation, clock and power become its
 * parts. A log cannot tell how a phase depends on the clocks; that is assumed, and marked as assumed. */

/* Writes OUT (a programs file) and its kinds beside it, and prints the phases. device: the log's GPU, -1 = the lowest;
 * the output says so if the log has others. source: for the heads of the files. FL_BAD_INPUT: the log has no
 * utilisation, lacks that GPU, or nothing ever ran on it. */
fl_status fl_fit_phases(const fl_telemetry *t, int32_t device, const fl_device *dev, const char *source,
                        const char *out, bool json, fl_diag *d);

/* The power of a program's kernels, from recordings that carry telemetry: two scales, for core activity and for memory
 * activity, that fit the recordings' mean power best. */

typedef struct fl_trace_power {
    double alpha, beta; /* scales; 1 where no recording tells */
    size_t recordings;  /* recordings in the fit; 0 = the scales are assumed */
    double mape_pct;    /* mean error on these recordings */
    double unseen_pct;  /* mean error on each recording when it is left out; NAN with fewer than two */
} fl_trace_power;

/* file: count recordings; only those with kernels and power_w are used. sm_mhz: clocks for recordings that give none, 0
 * = not given. seen: fitted. The function uses the kernels of a recording's first device, and that device's power. */
fl_trace_power fl_fit_trace_power(const fl_device *dev, const fl_fit_seen *seen, double sharpness,
                                  const fl_imported *file, const double *sm_mhz, size_t count);

/* The memory term of the law for core c and rest l at the reference clock, where the time is 1. */
double fl_fit_trace_memory(double c, double l, double sharpness);
