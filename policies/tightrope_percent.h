/* How far off the mean of a utilisation may be that comes in whole percent (nvmlUtilization_t): readings that do not
 * differ are all off by the same part of a percent, and no number of them makes that smaller. Noise of a percent or
 * more lets their mean tell more than each of them. */
#pragma once

typedef struct fl_tightrope_percent {
    double count, sum, square; /* readings of the window, in percent: their number, sum, and squares */
    double apart, free;        /* of all windows that ended: squares about the window's mean; one reading less each */
} fl_tightrope_percent;        /* all zero is the beginning */

void fl_tightrope_percent_add(fl_tightrope_percent *p, double pct);

/* The window, at one clock, ends. */
void fl_tightrope_percent_end(fl_tightrope_percent *p);

/* In percent: by how much the mean of many readings may be off. */
double fl_tightrope_percent_error(const fl_tightrope_percent *p);
