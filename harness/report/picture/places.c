/* The front of policies, and where their marks and names stand. */
#include "harness/report/picture/inside.h"

#include "harness/base/work/work.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- what names must not cover ---- */

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

void fl_clutter_open(fl_clutter *c, double width, double height) {
    *c = (fl_clutter){.columns = 1 + (size_t)(width / CELL), .rows = 1 + (size_t)(height / CELL), .entries = 1};
    c->head = fl_must(calloc(c->columns * c->rows, sizeof *c->head));
}

void fl_clutter_close(fl_clutter *c) {
    free(c->item);
    free(c->entry);
    free(c->head);
    *c = (fl_clutter){0};
}

void fl_clutter_add(fl_clutter *c, const fl_obstacle *o) {
    const cells in = cells_of(c, &o->box);
    const size_t more = (in.x2 - in.x1 + 1) * (in.y2 - in.y1 + 1);
    fl_must_have(c->entries + more <= UINT32_MAX);
    fl_must_grow(&c->item, &c->room, c->count + 1, sizeof *c->item);
    fl_must_grow(&c->entry, &c->entry_room, c->entries + more, sizeof *c->entry);
    for (size_t y = in.y1; y <= in.y2; y++)
        for (size_t x = in.x1; x <= in.x2; x++) {
            uint32_t *head = &c->head[y * c->columns + x];
            c->entry[c->entries] = (fl_clutter_entry){(uint32_t)c->count, *head};
            *head = (uint32_t)c->entries++;
        }
    c->item[c->count++] = *o;
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

/* ---- the front ---- */

typedef struct point {
    double x, y; /* more is better */
    size_t spot;
} point;

static int best_first(const void *a, const void *b) {
    const point *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? 1 : -1;
    if (p->y != q->y)
        return p->y < q->y ? 1 : -1;
    return (p->spot > q->spot) - (p->spot < q->spot);
}

static int from_left(const void *a, const void *b, void *user) {
    const fl_plane *m = user;
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const double x = m->spot[i].x.mean, y = m->spot[k].x.mean;
    return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

void fl_plane_front(fl_plane *m) {
    const double wx = m->lead.x.more ? 1 : -1, wy = m->lead.y.more ? 1 : -1;
    point *at = fl_must(malloc((m->count + 1) * sizeof *at));
    m->front = fl_must(malloc((m->count + 1) * sizeof *m->front));
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++)
        if (!m->s->item[m->spot[i].item].baseline && !m->spot[i].hollow)
            at[n++] = (point){wx * m->spot[i].x.mean, wy * m->spot[i].y.mean, i};
    qsort(at, n, sizeof *at, best_first);
    double highest = -HUGE_VAL; /* of the spots that are better in x */
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && at[end].x == at[i].x; end++)
            if (at[end].y == at[i].y && at[i].y > highest) {
                m->spot[at[end].spot].front = true;
                m->front[m->fronts++] = at[end].spot;
            }
        highest = fmax(highest, at[i].y);
    }
    free(at);
    qsort_r(m->front, m->fronts, sizeof *m->front, from_left, m);
}

/* ---- where marks stand ---- */

/* Spots that have no place yet, in cells as wide as two marks that would hide each other: lists from `head` on through
 * `next`. */
typedef struct pareto_places_cells {
    double near,
        width; /* width of a cell: a little larger than near, so that rounding never separates two marks by two cells */
    size_t columns, rows, *head, *next; /* SIZE_MAX: end */
} pareto_places_cells;

static size_t cell_at(double at, double width, size_t count) {
    const double cell = at / width;
    return !(cell >= 1) ? 0 : cell >= (double)count ? count - 1 : (size_t)cell;
}

static size_t *pareto_places_cell_of(const pareto_places_cells *c, double x, double y) {
    return &c->head[cell_at(y, c->width, c->rows) * c->columns + cell_at(x, c->width, c->columns)];
}

static void open_cells(const fl_plane *m, double near, pareto_places_cells *c) {
    const double width = 1.01 * near;
    *c = (pareto_places_cells){.near = near,
                               .width = width,
                               .columns = 1 + (size_t)(m->p->width / width),
                               .rows = 1 + (size_t)(m->p->height / width)};
    c->head = fl_must(malloc(c->columns * c->rows * sizeof *c->head));
    c->next = fl_must(malloc((m->count + 1) * sizeof *c->next));
    for (size_t i = 0; i < c->columns * c->rows; i++)
        c->head[i] = SIZE_MAX;
    for (size_t i = m->count; i-- > 0;) {
        size_t *head = pareto_places_cell_of(c, m->spot[i].px, m->spot[i].py);
        c->next[i] = *head;
        *head = i;
    }
}

/* Takes the spots of one cell that stand at the place of spot i out of the cell. */
static void claim(fl_plane *m, const pareto_places_cells *c, size_t *link, size_t i) {
    const fl_spot *at = &m->spot[i];
    while (*link != SIZE_MAX) {
        fl_spot *o = &m->spot[*link];
        if (fabs(o->px - at->px) >= c->near || fabs(o->py - at->py) >= c->near) {
            link = &c->next[*link];
        } else {
            o->place = i;
            *link = c->next[*link];
        }
    }
}

static void place_all(fl_plane *m, const pareto_places_cells *c) {
    for (size_t i = 0; i < m->count; i++) {
        const size_t x = cell_at(m->spot[i].px, c->width, c->columns), y = cell_at(m->spot[i].py, c->width, c->rows);
        if (m->spot[i].place != SIZE_MAX)
            continue;
        for (size_t row = y ? y - 1 : 0; row <= y + 1 && row < c->rows; row++)
            for (size_t column = x ? x - 1 : 0; column <= x + 1 && column < c->columns; column++)
                claim(m, c, &c->head[row * c->columns + column], i);
    }
}

static void gather_members(fl_plane *m) {
    size_t *next = m->first + 1; /* first counts, then where a place's next member goes; at the end first[place + 1] */
    memset(m->first, 0, (m->count + 2) * sizeof *m->first);
    for (size_t i = 0; i < m->count; i++)
        next[m->spot[i].place + 1]++;
    for (size_t i = 1; i < m->count; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < m->count; i++)
        m->member[next[m->spot[i].place]++] = i;
}

/* Policies stand within baselines, the best of them first. */
static void ring_place(fl_plane *m, size_t place) {
    const size_t there = m->first[place + 1] - m->first[place];
    const double step = fmin(0.9, 6.0 / (double)there);
    size_t ring = 0;
    for (int baseline = 0; baseline < 2; baseline++)
        for (size_t i = m->first[place]; i < m->first[place + 1]; i++) {
            fl_spot *o = &m->spot[m->member[i]];
            if (m->s->item[o->item].baseline != (baseline != 0))
                continue;
            if (ring) {
                o->size = 1.2 + step * (double)ring;
                o->thick = 0.65 * step;
            }
            ring++;
        }
}

void fl_plane_places(fl_plane *m) {
    const double near = m->count > FL_BARS_MAX ? 1.5 : 5; /* about the size of their marks */
    pareto_places_cells c = {0};
    for (size_t i = 0; i < m->count; i++) {
        m->spot[i].px = fl_picture_px(m->p, m->spot[i].x.mean);
        m->spot[i].py = fl_picture_py(m->p, m->spot[i].y.mean);
        m->spot[i].place = SIZE_MAX;
    }
    if (!m->first)
        m->first = fl_must(malloc((m->count + 2) * sizeof *m->first));
    if (!m->member)
        m->member = fl_must(malloc((m->count + 1) * sizeof *m->member));
    open_cells(m, near, &c);
    place_all(m, &c);
    free(c.head);
    free(c.next);
    gather_members(m);
    for (size_t i = 0; i < m->count; i++)
        if (m->first[i + 1] - m->first[i] > 1) {
            ring_place(m, i);
            m->ringed = true;
        }
}

void fl_plane_close(fl_plane *m) {
    free(m->spot);
    free(m->front);
    free(m->first);
    free(m->member);
    free(m->segment);
    fl_clutter_close(&m->clutter);
}
