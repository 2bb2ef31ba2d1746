/* GPOEO's search over memory and SM clocks, as one pure function: of what is measured so far it says what is to be
 * measured next, or which clocks are to be kept.
 *
 * What the released rules leave open, and what is done here: a point beyond the bound is worse than any within it, and
 * the slower the worse; a memory clock that is not there is left out; a gear that was measured is not measured again
 * and is no try; the fits go over all points at the kept memory clock, of the third degree or as many as the points
 * allow, and the best is looked for between the lowest and the highest of them; where no fitted gear keeps the bound,
 * the best point. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FL_GPOEO_POINTS = 48 };

typedef struct fl_gpoeo_point {
    int32_t sm, mem;     /* gears */
    double energy, time; /* of a period, over those at the default clocks */
} fl_gpoeo_point;

typedef struct fl_gpoeo_search {
    int32_t low, high;  /* SM gears allowed */
    int32_t mem_count;  /* memory gears are 0 to mem_count - 1 */
    int32_t wide_below; /* below this memory gear the radius is the wide one */
    int32_t sm, mem;    /* predicted: where the search begins */
    double bound;       /* loss of performance that is allowed */
    uint32_t count;
    fl_gpoeo_point point[FL_GPOEO_POINTS];
} fl_gpoeo_search;

typedef struct fl_gpoeo_next {
    int done; /* 1: these are to be kept; 0: to be measured */
    int32_t sm, mem;
} fl_gpoeo_next;

fl_gpoeo_next fl_gpoeo_search_next(const fl_gpoeo_search *s);

/* E T^2, or for what breaks the bound a number that grows with the time and is above any other. */
double fl_gpoeo_cost(double energy, double time, double bound);

/* Least squares polynomial of degree 3, or count - 1 if that is less, through `count` >= 1 points; at x. */
double fl_gpoeo_fitted(const double *x, const double *y, uint32_t count, double at);
