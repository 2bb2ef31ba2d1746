/* How fast a counter runs, and how much its units differ: from the readings at which it had moved.
 *
 * A reading sees the end of a unit late, by anything up to the time between readings. Units that differ make the ends
 * wander, late readings do not: that tells the two apart. For each spread of a ladder a filter follows time and seconds
 * per unit (Kalman, "A new approach to linear filtering and prediction problems", 1960), and adds up how likely the
 * readings are. Errors are told by the worst of the spreads that the readings leave possible, so a run that has seen
 * little holds its units to be very uneven.
 *
 * Units often differ in cycles: the kernels of an iteration, then a wait. Unit by unit that looks like a wide spread;
 * over longer times it averages out. So the same is done with every end that comes at least 16, 64 or 256 ms after the
 * last one. There the filters also differ in a part of the lateness that does not add up, as a cycle's does not. The
 * line that leaves the least error counts, unless a line of longer times shows that it misses what adds up (bursts).
 *
 * The last line has every block of so many units: as many as a cycle seems to have. It is told by other ends than those
 * that it then takes, so that its choice flatters no error. */
#pragma once

#include <stdint.h>

enum { FL_TIGHTROPE_LINES = 5, FL_TIGHTROPE_FILTERS = 112, FL_TIGHTROPE_ENDS_KEPT = 256 };

/* Deviations from visit to visit at the top clock that are held back where units are unlike in parts of the program:
 * the policy is at the top more often in some parts than in others, so that more visits make this no smaller. */
#define FL_TIGHTROPE_WANDERS 2

typedef struct fl_tightrope_filter {
    double time_s, unit_s;  /* end of the last unit, from the stretch's first; mean duration of a unit */
    double vtt, vtu, vuu;   /* their variances and covariance */
    double weight, weighed; /* reference: sum of 1 / variance of unit_s over the stretches kept, of unit_s / variance */
    double weight_square, square; /* the same of 1 / variance^2, of unit_s^2 / variance */
    double likely;                /* log-likelihood of this filter over the run */
} fl_tightrope_filter;

typedef struct fl_tightrope_line {
    fl_tightrope_filter filter[FL_TIGHTROPE_FILTERS];
    double edges, units; /* of the stretch: ends taken, units from the first to the last */
    double open_units;   /* since the last end taken */
    double first_s;      /* first end taken, from the stretch's */
    double last_s;       /* last end taken, from the first taken */
    double last_variance_s;
    double samples; /* differences between ends, of the run */
    double kept;    /* stretches of the reference */
} fl_tightrope_line;

typedef struct fl_tightrope_rate {
    fl_tightrope_line line[FL_TIGHTROPE_LINES];
    int64_t first_ns; /* first end of the stretch */
    double edges;     /* ends seen in it */
    double last_s;    /* last end seen, from the first */
    double kept_s;    /* time that the reference stands on */
    double block;     /* units of a block; 0: not known yet */
    uint32_t ends;    /* kept, of units in a row */
    float end_s[FL_TIGHTROPE_ENDS_KEPT];
} fl_tightrope_rate;

typedef struct fl_tightrope_pace {
    double unit_s;  /* seconds per unit; 0: not known */
    double error;   /* its relative standard error */
    double spread;  /* relative variance of a unit x its seconds: of a time's work that is relative variance x time */
    double cycle;   /* variance of an end's time that does not add up, in s^2 */
    double every_s; /* least time between the ends that it stands on */
    double block_s; /* time of a block, where it stands on blocks */
    double wander;  /* of the pace from stretch to stretch beyond its error, relative deviation */
} fl_tightrope_pace;

/* All zero is the beginning. A stretch is a time at one clock. */
void fl_tightrope_rate_stretch(fl_tightrope_rate *r);

/* A reading showed the end of a unit, anything up to late_s (> 0) ago; units (> 0) ended since the last end passed. */
void fl_tightrope_rate_edge(fl_tightrope_rate *r, int64_t now_ns, double late_s, double units);

/* The stretch belongs to the reference; the next one begins. */
void fl_tightrope_rate_keep(fl_tightrope_rate *r);

/* Pace of the stretch, by the likeliest filter. */
fl_tightrope_pace fl_tightrope_rate_now(const fl_tightrope_rate *r);

/* Pace of the stretches kept, and with now of the present one too; by the likeliest filter. */
fl_tightrope_pace fl_tightrope_rate_reference(const fl_tightrope_rate *r, int now);

/* How far off, relative, the reference may be: at so many standard errors, whatever spread and cycle are. */
double fl_tightrope_rate_error(const fl_tightrope_rate *r, double sigmas, int now);

/* The variance of so many means is that much above the expected one by chance, at two standard errors (Wilson and
 * Hilferty, "The distribution of chi-square", 1931). */
double fl_tightrope_by_chance(double count);

/* Least time, in seconds, that so many units take at the reference's pace; sure_s of it were measured. */
double fl_tightrope_rate_least(const fl_tightrope_rate *r, double sigmas, int now, double units, double sure_s);
