/* Rows of a sweep that did not run at the clock they name: throttled, asked for and not reached, mislabelled. They are
 * found from the sweep itself, by two things that sound rows have and these lack.
 *
 * A workload's own curve. ln T and ln P follow the logarithms of the clocks smoothly. Each is a Gaussian process with a
 * free level and slopes, and a smooth part of AMPLITUDE over LENGTH (row_curve.c). What a row is off by, with the row
 * itself left out, is [K^-1 y]_i / [K^-1]_ii with the variance 1 / [K^-1]_ii: of all rows of a workload the one that is
 * wrong stands out most, its neighbours less. The deviations are scaled with what the sweep's own rows show, by setting
 * and by workload, so that a kink that all workloads have, or a workload that repeats badly, is no finding.
 *
 * The same clock in all workloads. A core-bound workload has T f constant, whatever the chip. Where it is out of line
 * by the same share in all that are core-bound there, the clock ran at another frequency than the file says.
 *
 * What cannot be told: a clock that is off in a workload whose time and power hardly know the clock. That does no harm,
 * for the same reason. A row that is off by less than FAR in time and power is taken for sound. Where a time falls
 * faster than the clock rises, the memory changes with the clock (a V100 between 600 and 705 MHz), and no row is
 * judged. */
#ifndef FL_UNSOUND_H
#define FL_UNSOUND_H

#include <stddef.h>
#include <stdint.h>

typedef enum fl_unsound_kind {
    FL_SOUND,
    FL_UNSOUND_SLOWER, /* time and power are those of a lower clock: throttled, or not reached */
    FL_UNSOUND_FASTER, /* those of a higher one: mislabelled */
    FL_UNSOUND_STUCK,  /* no faster and no hotter than at the next lower clock: not reached */
    FL_UNSOUND_LINE,   /* out of line, and no clock explains it */
    FL_UNSOUND_CLOCK   /* its clock is wrong in the whole sweep, see fl_unsound_clock */
} fl_unsound_kind;

typedef struct fl_unsound_row {
    fl_unsound_kind kind;
    double ran_mhz;             /* what its time and power look like; NAN = not told */
    double time_pct, power_pct; /* off its workload's curve; NAN = not known */
} fl_unsound_row;

typedef struct fl_unsound_clock {
    double sm_mhz, ran_mhz; /* what the rows say, and what they ran at */
    double sd_pct;          /* of ran_mhz */
    uint32_t workloads;     /* that tell it */
    int clear;              /* no other clock of the sweep is that one: its rows may be relabelled */
} fl_unsound_clock;

#define FL_UNSOUND_CLOCKS 32

typedef struct fl_unsound {
    fl_unsound_row *row; /* one for each row, owned */
    size_t rows;         /* that are not sound */
    fl_unsound_clock clock[FL_UNSOUND_CLOCKS];
    size_t clocks;
} fl_unsound;

void fl_unsound_free(fl_unsound *found);

const char *fl_unsound_text(fl_unsound_kind kind); /* static: "ran slower than its clock", .. */

#endif
