/* How fast a counter runs, and how much its units differ: from the readings at which it had moved.
 *
 * A reading sees the end of a unit late, by anything up to the time between readings. Units that differ make the ends
 * wander, late readings do not: that tells the two apart. For each spread of a ladder a filter follows time and seconds
 * per unit (Kalman, "A new approach to linear filtering and prediction problems", 1960), and adds up how likely the
 * readings are. Errors are told by the worst of the spreads that the readings leave possible, so a run that has seen
 * little holds its units to be very uneven. */
#ifndef FL_TIGHTROPE_RATE_H
#define FL_TIGHTROPE_RATE_H

#include <stdint.h>

enum { FL_TIGHTROPE_SPREADS = 28 };

typedef struct fl_tightrope_filter {
    double time_s, unit_s;  /* end of the last unit, from the stretch's first; mean duration of a unit */
    double vtt, vtu, vuu;   /* their variances and covariance */
    double weight, weighed; /* reference: sum of 1 / variance of unit_s over the stretches kept, of unit_s / variance */
    double likely;          /* log-likelihood of this spread over the run */
} fl_tightrope_filter;

typedef struct fl_tightrope_rate {
    fl_tightrope_filter filter[FL_TIGHTROPE_SPREADS];
    int64_t first_ns;               /* first end of the stretch */
    double edges, units;            /* of the stretch: ends seen, units from the first to the last */
    double kept_s;                  /* time that the reference stands on */
    double last_s, last_variance_s; /* last end seen, from the first; variance of its lateness */
} fl_tightrope_rate;

typedef struct fl_tightrope_pace {
    double unit_s; /* seconds per unit; 0: not known */
    double error;  /* its relative standard error */
    double spread; /* relative variance of a unit x its seconds: of a time's work that is relative variance x time */
} fl_tightrope_pace;

/* All zero is the beginning. A stretch is a time at one clock. */
void fl_tightrope_rate_stretch(fl_tightrope_rate *r);

/* A reading showed the end of a unit, anything up to late_s (> 0) ago; units (> 0) ended since the last end passed. */
void fl_tightrope_rate_edge(fl_tightrope_rate *r, int64_t now_ns, double late_s, double units);

/* The stretch belongs to the reference; the next one begins. */
void fl_tightrope_rate_keep(fl_tightrope_rate *r);

/* Pace of the stretch, at the likeliest spread. */
fl_tightrope_pace fl_tightrope_rate_now(const fl_tightrope_rate *r);

/* Pace of the stretches kept, and with now of the present one too; at the likeliest spread. */
fl_tightrope_pace fl_tightrope_rate_reference(const fl_tightrope_rate *r, int now);

/* How far off, relative, the reference may be: at so many standard errors, whatever the spread. */
double fl_tightrope_rate_error(const fl_tightrope_rate *r, double sigmas, int now);

/* Least time, in seconds, that so many units take at the reference's pace; sure_s of it were measured. */
double fl_tightrope_rate_least(const fl_tightrope_rate *r, double sigmas, int now, double units, double sure_s);

#endif
