#include "models/math/convex.h"

#include <stdlib.h>

typedef struct point {
    double x, y;
    uint32_t choice;
} point;

static int by_x(const void *a, const void *b) {
    const point *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    if (p->y != q->y)
        return p->y < q->y ? -1 : 1;
    return p->choice < q->choice ? -1 : p->choice > q->choice;
}

/* b lies on or above the line from a to c. */
static int above(const point *a, const point *b, const point *c) {
    return (a->y - b->y) * (c->x - b->x) <= (b->y - c->y) * (b->x - a->x);
}

static size_t keep(point *p, size_t count) {
    size_t kept = 0;
    qsort(p, count, sizeof *p, by_x);
    for (size_t i = 0; i < count; i++) {
        if (kept && p[i].y >= p[kept - 1].y)
            continue; /* slower, and not cheaper */
        while (kept > 1 && above(&p[kept - 2], &p[kept - 1], &p[i]))
            kept--;
        p[kept++] = p[i];
    }
    return kept;
}

fl_model_status fl_convex_new(fl_convex *c, const double *x, const double *y, size_t count) {
    point *p = calloc(count, sizeof *p);
    *c = (fl_convex){.x = calloc(count, sizeof *c->x),
                     .y = calloc(count, sizeof *c->y),
                     .slope = calloc(count, sizeof *c->slope),
                     .choice = calloc(count, sizeof *c->choice)};
    if (!p || !c->x || !c->y || !c->slope || !c->choice) {
        free(p);
        return FL_MODEL_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        p[i] = (point){x[i], y[i], (uint32_t)i};
    c->count = keep(p, count);
    for (size_t i = 0; i < c->count; i++) {
        c->x[i] = p[i].x;
        c->y[i] = p[i].y;
        c->choice[i] = p[i].choice;
        if (i + 1 < c->count)
            c->slope[i] = (p[i].y - p[i + 1].y) / (p[i + 1].x - p[i].x);
    }
    free(p);
    return FL_MODEL_OK;
}

void fl_convex_free(fl_convex *c) {
    free(c->x);
    free(c->y);
    free(c->slope);
    free(c->choice);
    *c = (fl_convex){0};
}

double fl_convex_at(const fl_convex *c, double x) {
    size_t low = 0, high = c->count - 1;
    if (x <= c->x[0])
        return c->y[0];
    if (x >= c->x[high])
        return c->y[high];
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(c->x[middle] <= x ? &low : &high) = middle;
    }
    return c->y[low] - c->slope[low] * (x - c->x[low]);
}
