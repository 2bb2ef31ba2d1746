/* What a name on a picture would cover: boxes, each with the cost of covering it. A grid of pixels holds them, so that
 * a search looks only at those near the name. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

typedef struct fl_box { /* pixels, x1 <= x2, y1 <= y2 */
    double x1, y1, x2, y2;
} fl_box;

static inline bool fl_boxes_meet(const fl_box *a, const fl_box *b) {
    return a->x1 < b->x2 && b->x1 < a->x2 && a->y1 < b->y2 && b->y1 < a->y2;
}

typedef struct fl_obstacle {
    fl_box box;
    double cost, own; /* own: the cost for a name of the same owner */
    size_t owner;     /* SIZE_MAX: no owner */
} fl_obstacle;

typedef struct fl_clutter_entry {
    uint32_t obstacle, next; /* next entry of the cell; 0: none */
} fl_clutter_entry;

typedef struct fl_clutter {
    fl_obstacle *item;
    size_t count, room;
    fl_clutter_entry *entry; /* entry 0 is unused */
    size_t entries, entry_room;
    uint32_t *head; /* first entry of each of columns x rows cells */
    size_t columns, rows;
} fl_clutter;

/* width, height: of the picture; boxes outside are found too. */
fl_status fl_clutter_open(fl_clutter *c, double width, double height, fl_diag *d);
void fl_clutter_close(fl_clutter *c); /* accepts a zeroed struct */
fl_status fl_clutter_add(fl_clutter *c, const fl_obstacle *o, fl_diag *d);

/* The cost of what a box of `owner` covers; the sum stops once it exceeds `most`. Costs are whole numbers, so their
 * order does not matter. */
double fl_clutter_cost(const fl_clutter *c, const fl_box *box, size_t owner, double most);
