/* What a name on a picture would cover: boxes, each with what it costs to cover it. They lie in a grid of pixels, so
 * that only those near the name are looked at. */
#ifndef FL_PARETO_CLUTTER_H
#define FL_PARETO_CLUTTER_H

#include "traces/diag.h"

#include <stdbool.h>

typedef struct fl_box { /* pixels, x1 <= x2, y1 <= y2 */
    double x1, y1, x2, y2;
} fl_box;

static inline bool fl_boxes_meet(const fl_box *a, const fl_box *b) {
    return a->x1 < b->x2 && b->x1 < a->x2 && a->y1 < b->y2 && b->y1 < a->y2;
}

typedef struct fl_obstacle {
    fl_box box;
    double cost, own; /* own: instead, for a name of its owner */
    size_t owner;     /* SIZE_MAX: nobody */
} fl_obstacle;

typedef struct fl_clutter_entry {
    uint32_t obstacle, next; /* next entry of the cell; 0: none */
} fl_clutter_entry;

typedef struct fl_clutter {
    fl_obstacle *item;
    size_t count, room;
    fl_clutter_entry *entry; /* entry 0 is nobody's */
    size_t entries, entry_room;
    uint32_t *head; /* first entry of each of columns x rows cells */
    size_t columns, rows;
} fl_clutter;

/* width, height: of the picture; what lies outside is found all the same. */
fl_status fl_clutter_open(fl_clutter *c, double width, double height, fl_diag *d);
void fl_clutter_close(fl_clutter *c); /* takes a zeroed struct */
fl_status fl_clutter_add(fl_clutter *c, const fl_obstacle *o, fl_diag *d);

/* What a box of `owner` covers, in cost; no more is counted once that is above `most`. Costs are whole numbers, so that
 * their order does not matter. */
double fl_clutter_cost(const fl_clutter *c, const fl_box *box, size_t owner, double most);

#endif
