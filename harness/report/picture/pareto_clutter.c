#include "harness/report/picture/pareto_clutter.h"

#include <stdlib.h>

enum { CELL = 16 }; /* pixels: about a name's height */

static size_t cell_of(double at, size_t count) {
    const double cell = at / CELL;
    return !(cell >= 1) ? 0 : cell >= (double)count ? count - 1 : (size_t)cell;
}

typedef struct cells {
    size_t x1, y1, x2, y2;
} cells;

static cells cells_of(const fl_clutter *c, const fl_box *b) {
    return (cells){cell_of(b->x1, c->columns), cell_of(b->y1, c->rows), cell_of(b->x2, c->columns),
                   cell_of(b->y2, c->rows)};
}

fl_status fl_clutter_open(fl_clutter *c, double width, double height, fl_diag *d) {
    *c = (fl_clutter){.columns = 1 + (size_t)(width / CELL), .rows = 1 + (size_t)(height / CELL), .entries = 1};
    c->head = calloc(c->columns * c->rows, sizeof *c->head);
    return c->head ? FL_OK : fl_no_memory(d, "a picture");
}

void fl_clutter_close(fl_clutter *c) {
    free(c->item);
    free(c->entry);
    free(c->head);
    *c = (fl_clutter){0};
}

fl_status fl_clutter_add(fl_clutter *c, const fl_obstacle *o, fl_diag *d) {
    const cells in = cells_of(c, &o->box);
    const size_t more = (in.x2 - in.x1 + 1) * (in.y2 - in.y1 + 1);
    if (c->entries + more > UINT32_MAX || fl_grow(&c->item, &c->room, c->count + 1, sizeof *c->item) ||
        fl_grow(&c->entry, &c->entry_room, c->entries + more, sizeof *c->entry))
        return fl_no_memory(d, "a picture");
    for (size_t y = in.y1; y <= in.y2; y++)
        for (size_t x = in.x1; x <= in.x2; x++) {
            uint32_t *head = &c->head[y * c->columns + x];
            c->entry[c->entries] = (fl_clutter_entry){(uint32_t)c->count, *head};
            *head = (uint32_t)c->entries++;
        }
    c->item[c->count++] = *o;
    return FL_OK;
}

double fl_clutter_cost(const fl_clutter *c, const fl_box *box, size_t owner, double most) {
    const cells in = cells_of(c, box);
    double cost = 0;
    for (size_t y = in.y1; y <= in.y2; y++)
        for (size_t x = in.x1; x <= in.x2; x++)
            for (uint32_t e = c->head[y * c->columns + x]; e; e = c->entry[e].next) {
                const fl_obstacle *o = &c->item[c->entry[e].obstacle];
                if (!fl_boxes_meet(box, &o->box))
                    continue;
                const size_t left = cell_of(o->box.x1, c->columns), top = cell_of(o->box.y1, c->rows);
                if (x != (left > in.x1 ? left : in.x1) || y != (top > in.y1 ? top : in.y1))
                    continue; /* already counted in the first cell that both lie in */
                cost += o->owner == owner ? o->own : o->cost;
                if (cost > most)
                    return cost;
            }
    return cost;
}
