/* Rows of a sweep that did not run at the clock they name: throttled, a clock that was requested but not reached, or
 * mislabelled. The sweep itself reveals them, by two properties that sound rows have and unsound rows lack.
 *
 * Call fl_unsound_find and free the result with fl_unsound_free. Nothing is random and no row is changed; the caller
 * decides what to leave out or relabel.
 *
 * First, each workload has a smooth curve. ln T and ln P follow the logarithms of the clocks smoothly: each is a
 * Gaussian process with a free level and slopes, and a smooth part of AMPLITUDE over LENGTH (models/chip/row_curve.c).
 * A row's distance from the curve of the other rows is [K^-1 y]_i / [K^-1]_ii, with the variance 1 / [K^-1]_ii. The
 * wrong row of a workload stands out most, its neighbours less. The deviations are scaled by what the sweep's own rows
 * show, by setting and by workload. So a kink that all workloads share, or a workload that repeats badly, does not
 * count as a finding.
 *
 * Second, a clock is the same in all workloads. A core-bound workload has a constant T f on every chip. Where all
 * workloads that are core-bound at a clock are off by the same share, the clock ran at another frequency than the file
 * says.
 *
 * The method misses a wrong clock in a workload whose time and power hardly depend on the clock; for the same reason
 * that does no harm. A row that is off by less than FAR in time and power counts as sound. Where a time falls faster
 * than the clock rises, the memory changes with the clock (a V100 between 600 and 705 MHz), and no row is judged. */
#pragma once

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <stddef.h>
#include <stdint.h>

typedef enum fl_unsound_kind {
    FL_SOUND,
    FL_UNSOUND_SLOWER, /* time and power are those of a lower clock: throttled, or not reached */
    FL_UNSOUND_FASTER, /* time and power are those of a higher clock: mislabelled */
    FL_UNSOUND_STUCK,  /* no faster, and draws no more, than at the next lower clock: not reached */
    FL_UNSOUND_LINE,   /* off the curve, and no clock explains it */
    FL_UNSOUND_CLOCK   /* the clock is wrong in the whole sweep, see fl_unsound_clock */
} fl_unsound_kind;

typedef struct fl_unsound_row {
    fl_unsound_kind kind;
    double ran_mhz;             /* the clock that its time and power fit; NAN = not determined */
    double time_pct, power_pct; /* distance from its workload's curve; NAN = not known */
} fl_unsound_row;

typedef struct fl_unsound_clock {
    double sm_mhz, ran_mhz; /* the clock that the rows name, and the one they ran at */
    double sd_pct;          /* standard deviation of ran_mhz */
    uint32_t workloads;     /* number of workloads that show it */
    int clear;              /* no other clock of the sweep equals ran_mhz, so its rows may be relabelled */
} fl_unsound_clock;

#define FL_UNSOUND_CLOCKS 32

typedef struct fl_unsound {
    fl_unsound_row *row; /* one entry per row, owned */
    size_t rows;         /* number of rows that are not sound */
    fl_unsound_clock clock[FL_UNSOUND_CLOCKS];
    size_t clocks;
} fl_unsound;

void fl_unsound_free(fl_unsound *found);

const char *fl_unsound_text(fl_unsound_kind kind); /* static: "ran slower than its clock", .. */

/* Finds the rows of models/unsound/unsound.h. */

/* row: sorted by workload, memory clock, SM clock; all numbers valid (time > 0; power NaN = not known). The function
 * does not judge a workload of fewer than five rows: its rows are FL_SOUND, but for a lowest clock at which its time is
 * longer than any clock of that name allows. NO_MEMORY is the only failure. Call
 * fl_unsound_free after success. */
fl_model_status fl_unsound_find(const fl_chip_row *row, size_t count, fl_unsound *found);
