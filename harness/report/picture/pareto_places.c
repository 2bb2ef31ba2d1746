#include "harness/report/picture/pareto_plane.h"

#include "harness/report/picture/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

fl_status fl_plane_front(fl_plane *m, size_t named, fl_diag *d) {
    const double wx = m->lead.x.more ? 1 : -1, wy = m->lead.y.more ? 1 : -1;
    point *at = malloc((m->count + 1) * sizeof *at);
    m->front = malloc((m->count + 1) * sizeof *m->front);
    size_t n = 0;
    if (!at || !m->front) {
        free(at);
        return fl_no_memory(d, "a picture");
    }
    for (size_t i = 0; i < m->count; i++)
        if (!m->s->item[m->spot[i].item].baseline)
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
    for (size_t i = 0; m->fronts > named && i < m->fronts; i++)
        m->spot[m->front[i]].number = i + 1;
    return FL_OK;
}

/* ---- places ---- */

/* Spots that have no place yet, in cells as wide as two marks that would hide each other: lists from `head` on through
 * `next`. */
typedef struct cells {
    double near,
        width; /* width of a cell: a little larger than near, so that rounding never separates two marks by two cells */
    size_t columns, rows, *head, *next; /* SIZE_MAX: end */
} cells;

static size_t cell_at(double at, double width, size_t count) {
    const double cell = at / width;
    return !(cell >= 1) ? 0 : cell >= (double)count ? count - 1 : (size_t)cell;
}

static size_t *cell_of(const cells *c, double x, double y) {
    return &c->head[cell_at(y, c->width, c->rows) * c->columns + cell_at(x, c->width, c->columns)];
}

static fl_status open_cells(const fl_plane *m, double near, cells *c, fl_diag *d) {
    const double width = 1.01 * near;
    *c = (cells){.near = near,
                 .width = width,
                 .columns = 1 + (size_t)(m->p->width / width),
                 .rows = 1 + (size_t)(m->p->height / width)};
    c->head = malloc(c->columns * c->rows * sizeof *c->head);
    c->next = malloc((m->count + 1) * sizeof *c->next);
    if (!c->head || !c->next) {
        free(c->head);
        free(c->next);
        return fl_no_memory(d, "a picture");
    }
    for (size_t i = 0; i < c->columns * c->rows; i++)
        c->head[i] = SIZE_MAX;
    for (size_t i = m->count; i-- > 0;) {
        size_t *head = cell_of(c, m->spot[i].px, m->spot[i].py);
        c->next[i] = *head;
        *head = i;
    }
    return FL_OK;
}

/* Takes the spots of one cell that stand at the place of spot i out of the cell. */
static void claim(fl_plane *m, const cells *c, size_t *link, size_t i) {
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

static void place_all(fl_plane *m, const cells *c) {
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

fl_status fl_plane_places(fl_plane *m, fl_diag *d) {
    const double near = m->count > FL_BARS_MAX ? 1.5 : 5; /* about the size of their marks */
    cells c = {0};
    for (size_t i = 0; i < m->count; i++) {
        m->spot[i].px = fl_picture_px(m->p, m->spot[i].x.mean);
        m->spot[i].py = fl_picture_py(m->p, m->spot[i].y.mean);
        m->spot[i].place = SIZE_MAX;
    }
    if (!m->first)
        m->first = malloc((m->count + 2) * sizeof *m->first);
    if (!m->member)
        m->member = malloc((m->count + 1) * sizeof *m->member);
    const fl_status st = m->first && m->member ? open_cells(m, near, &c, d) : fl_no_memory(d, "a picture");
    if (st)
        return st;
    place_all(m, &c);
    free(c.head);
    free(c.next);
    gather_members(m);
    for (size_t i = 0; i < m->count; i++)
        if (m->first[i + 1] - m->first[i] > 1) {
            ring_place(m, i);
            m->ringed = true;
        }
    return FL_OK;
}

void fl_plane_close(fl_plane *m) {
    free(m->spot);
    free(m->front);
    free(m->first);
    free(m->member);
    free(m->segment);
    fl_clutter_close(&m->clutter);
}
