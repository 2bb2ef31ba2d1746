/* GPOEO's period detection: of the strongest frequencies of a trace, the period whose iterations resemble each other
 * most; found again in the later parts of the trace, or not trusted.
 *
 * What the released rules leave open, and what is done here: the mean is taken off before the transform (it is padded
 * with zeros); levels are four equal bands between the least and the largest sample of a period; a group is what lies
 * in one band of the first of two adjacent periods, weighted with its share of the samples; the mean that a difference
 * is taken over is that of the magnitudes of both periods; refinement tries steps of 1 %; parts begin up to half of the
 * trace later. */
#pragma once

#include "policies/readings.h"

#define FL_GPOEO_TRACE_S 25.0   /* the shortest trace */
#define FL_GPOEO_LONGEST_S 15.0 /* of a period */
#define FL_GPOEO_PERIODS 5.3    /* so many a trace must hold */

typedef struct fl_gpoeo_work { /* scratch */
    fl_fft fft;
    double x[FL_FFT_MAX], y[FL_FFT_MAX];
} fl_gpoeo_work;

typedef struct fl_gpoeo_period {
    double period_s; /* NAN: none was found */
    int stable;
} fl_gpoeo_period;

/* 100 P / limit with U and V added or taken off, whichever deviates most: of the four traces that with the largest
 * deviation, into x. limit_w 0: without P. */
void fl_gpoeo_composite(const fl_readings *r, double limit_w, double *x);

/* How unlike adjacent periods of x are, 0: all alike; INFINITY where x holds fewer than two. period: in samples. */
double fl_gpoeo_unlike(const double *x, uint32_t n, double period);

/* The period of n samples of x, in samples; NAN: none. *first: that of the highest peak. */
double fl_gpoeo_best(fl_gpoeo_work *w, const double *x, uint32_t n, double spacing_s, double *first);

fl_gpoeo_period fl_gpoeo_find(fl_gpoeo_work *w, const fl_readings *r, double limit_w, double spread);

/* By how much a trace of that length is to be made longer; 0: its period is stable, or no more is tried. */
double fl_gpoeo_missing_s(double length_s, fl_gpoeo_period p);
