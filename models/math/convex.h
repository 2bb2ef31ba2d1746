/* What a price on x picks among points (x, y): the lower left of their convex hull. Choosing the clock of a kernel is
 * such a choice, with x its time and y its energy: at any price on time only the hull's points are ever best. */
#pragma once

#include "models/math/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct fl_convex {
    double *x, *y; /* count: x ascends, y descends */
    double *slope; /* count: y given up for each further x, (y[i] - y[i + 1]) / (x[i + 1] - x[i]); descends, last 0 */
    uint32_t *choice; /* count: which of the points given it is; of equal ones the first */
    size_t count;
} fl_convex;

/* Of `count` points, at least one, all finite. The caller frees *c, also after a failure. */
fl_model_status fl_convex_new(fl_convex *c, const double *x, const double *y, size_t count);
void fl_convex_free(fl_convex *c);

/* The vertex that minimises y + price x (price >= 0), looked for from vertex `near` on; of equal ones that of the
 * smallest x. */
static inline size_t fl_convex_pick(const fl_convex *c, double price, size_t near) {
    while (near + 1 < c->count && c->slope[near] > price)
        near++;
    while (near > 0 && c->slope[near - 1] <= price)
        near--;
    return near;
}

/* y of the hull at x; beyond its ends that of the end. */
double fl_convex_at(const fl_convex *c, double x);
