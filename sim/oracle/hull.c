#include "sim/oracle/hull.h"

#include <stdbool.h>
#include <stdlib.h>

static int by_time(const void *a, const void *b) {
    const fl_hull_point *x = a, *y = b;
    if (x->ps != y->ps)
        return x->ps < y->ps ? -1 : 1;
    if (x->fj != y->fj)
        return x->fj < y->fj ? -1 : 1;
    return x->choice < y->choice ? -1 : x->choice > y->choice;
}

/* b lies above the line from a to c, so no price selects it. Slopes are long doubles. Keeping a point by mistake costs
 * nothing, but a dropped point must lie above by more than the rounding; hence the margin. */
static bool above(const fl_hull_point *a, const fl_hull_point *b, const fl_hull_point *c) {
    long double left = (long double)(a->fj - b->fj) * (long double)(c->ps - b->ps);
    long double right = (long double)(b->fj - c->fj) * (long double)(b->ps - a->ps);
    return left < right - right * 1e-15L;
}

size_t fl_hull(fl_hull_point *p, size_t count) {
    size_t n = 0;
    qsort(p, count, sizeof *p, by_time);
    for (size_t i = 0; i < count; i++) {
        if (n && p[i].fj >= p[n - 1].fj)
            continue; /* slower and not cheaper, so never optimal */
        while (n > 1 && above(&p[n - 2], &p[n - 1], &p[i]))
            n--;
        p[n++] = p[i];
    }
    return n;
}
