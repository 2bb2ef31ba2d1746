/* How far off the mean of a utilisation may be that comes in whole percent (nvmlUtilization_t). Readings of one level
 * are all off by the same part of a percent, and no number of them makes that smaller. A sensor's noise does, where
 * readings of a level spread over several whole numbers. */
#pragma once

enum { FL_TIGHTROPE_PERCENTS = 101 };

typedef struct fl_tightrope_percent {
    double count;
    float seen[FL_TIGHTROPE_PERCENTS]; /* number of readings of each */
} fl_tightrope_percent;                /* all zero is the beginning */

/* Readings below 0 and above 100 count as these. */
void fl_tightrope_percent_add(fl_tightrope_percent *p, double pct);

/* In percentage points: by how much the mean of the readings may be off. */
double fl_tightrope_percent_error(const fl_tightrope_percent *p);
