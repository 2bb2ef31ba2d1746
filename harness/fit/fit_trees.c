#include "harness/fit/fit_trees.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const double rate = 0.3, lambda = 1;
#define NOWHERE (-1e30) /* a threshold that no value is below */

typedef struct ranked {
    double x;
    size_t row;
} ranked;

typedef struct boost {
    const double *x;
    uint32_t features;
    double *slope; /* derivative of the squared error by the prediction, one for each row: prediction less target */
    ranked *order; /* room for all rows */
    size_t *row;   /* all rows; each node owns a range */
    double *tree;  /* FL_TREE_NODES x 2 */
} boost;

static int by_value(const void *a, const void *b) {
    const ranked *p = a, *q = b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->row < q->row ? -1 : p->row > q->row;
}

static double part_gain(double slope, double count) { return slope * slope / (count + lambda); }

/* The split of rows [first, first + count) that reduces the error most; false where no split reduces it. */
static bool best_split(boost *b, size_t first, size_t count, double *feature, double *threshold) {
    double all = 0, most = 1e-12;
    bool found = false;
    for (size_t i = 0; i < count; i++)
        all += b->slope[b->row[first + i]];
    for (uint32_t f = 0; f < b->features; f++) {
        double low = 0;
        for (size_t i = 0; i < count; i++) {
            const size_t row = b->row[first + i];
            b->order[i] = (ranked){b->x[row * b->features + f], row};
        }
        qsort(b->order, count, sizeof *b->order, by_value);
        for (size_t i = 0; i + 1 < count; i++) {
            low += b->slope[b->order[i].row];
            if (!(b->order[i].x < b->order[i + 1].x))
                continue;
            const double n = (double)(i + 1), gain = part_gain(low, n) + part_gain(all - low, (double)count - n) -
                                                     part_gain(all, (double)count);
            if (gain > most) {
                most = gain;
                *feature = f;
                *threshold = (b->order[i].x + b->order[i + 1].x) / 2;
                found = true;
            }
        }
    }
    return found;
}

static void grow(boost *b, uint32_t node, size_t first, size_t count) {
    double *cell = &b->tree[2 * node];
    if (node >= FL_TREE_SPLITS) {
        double all = 0;
        for (size_t i = 0; i < count; i++)
            all += b->slope[b->row[first + i]];
        cell[0] = -1;
        cell[1] = -rate * all / ((double)count + lambda);
        return;
    }
    cell[0] = 0;
    cell[1] = NOWHERE;
    size_t below = 0;
    if (best_split(b, first, count, &cell[0], &cell[1]))
        for (size_t i = 0; i < count; i++) {
            const size_t row = b->row[first + i];
            if (b->x[row * b->features + (uint32_t)cell[0]] < cell[1]) {
                b->row[first + i] = b->row[first + below];
                b->row[first + below++] = row;
            }
        }
    grow(b, 2 * node + 1, first, below);
    grow(b, 2 * node + 2, first + below, count - below);
}

fl_status fl_fit_trees(const double *x, const double *y, size_t count, uint32_t features, uint32_t trees, double *out,
                       fl_diag *d) {
    boost b = {.x = x,
               .features = features,
               .slope = malloc(count * sizeof *b.slope),
               .order = malloc(count * sizeof *b.order),
               .row = malloc(count * sizeof *b.row)};
    const bool room = b.slope && b.order && b.row;
    for (size_t i = 0; room && i < count; i++) {
        b.slope[i] = 1 - y[i]; /* the models predict values of 1 and more */
        b.row[i] = i;
    }
    for (uint32_t k = 0; room && k < trees; k++) {
        b.tree = &out[(size_t)k * FL_TREE_NODES * 2];
        grow(&b, 0, 0, count);
        const fl_table one = {.cell = b.tree, .row_count = FL_TREE_NODES, .column_count = 2};
        for (size_t i = 0; i < count; i++)
            b.slope[i] += fl_trees_predict(&one, 1, 0, &x[i * features]) - 1;
    }
    free(b.slope);
    free(b.order);
    free(b.row);
    return room ? FL_OK : fl_no_memory(d, "the trees");
}
