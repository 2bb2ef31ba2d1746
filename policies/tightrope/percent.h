/* How far off the mean of a utilisation may be that comes in whole percent (nvmlUtilization_t). Readings of one level
 * are all off by the same part of a percent, and no number of them makes that smaller. A sensor's noise does, where
 * readings at one clock spread over several whole numbers. Each clock is judged by its own readings: those of two
 * clocks differ by what the clock does, and that is no noise. */
#pragma once

#include <stdint.h>

enum { FL_TIGHTROPE_PERCENTS = 101, FL_TIGHTROPE_LEVELS = 8 };

typedef struct fl_tightrope_level { /* readings at one clock */
    double clock;                   /* of the top clock; 0: free */
    uint32_t count;
    uint32_t seen[FL_TIGHTROPE_PERCENTS]; /* number of readings of each */
} fl_tightrope_level;

typedef struct fl_tightrope_percent {
    fl_tightrope_level level[FL_TIGHTROPE_LEVELS]; /* the first is the top clock */
    double count, error;                           /* of clocks that had to give way: readings, and their errors' sum */
} fl_tightrope_percent;                            /* all zero is the beginning */

/* clock: of the top clock, 0 .. 1. Readings below 0 and above 100 count as these. */
void fl_tightrope_percent_add(fl_tightrope_percent *p, double clock, double pct);

/* In percentage points: by how much the mean of the readings may be off, at the top clock or below it. */
double fl_tightrope_percent_top(const fl_tightrope_percent *p);
double fl_tightrope_percent_low(const fl_tightrope_percent *p);
