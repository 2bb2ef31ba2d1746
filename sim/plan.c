#include "sim/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line between two points is near enough within this share of the energy; so often a stretch is halved at most. */
#define NEAR 2e-4
enum { DEEPEST = 10 };
/* The price at the fast end grows by this factor until time is within FAST of the shortest. */
enum { DEARER = 4, DEAREST = 6 };
#define FAST 1e-5
#define TINY 1e-12 /* of a time */
#define BEGIN 1e-4 /* of the shortest time: the frontier begins so much later, for the last of it may cost percents */

typedef struct spot { /* a line, and the mean lengths that belong to it */
    fl_plan_line line;
    double *mean;
} spot;

typedef struct search {
    fl_planner *pl;
    const double *limit_s;
    size_t count;
    fl_plan_point *point;
    double *mixed;
    fl_diag *d;
} search;

fl_status fl_planner_new(fl_planner *pl, const fl_plan_program *g, fl_diag *d) {
    *pl = (fl_planner){.g = g};
    fl_status s = fl_plan_dual_new(&pl->dual, g, d);
    if (!s)
        s = fl_plan_round_new(&pl->round, g, d);
    if (s) {
        fl_planner_free(pl);
        return s;
    }
    for (size_t i = 0; i < g->part_count; i++)
        pl->dual.length_s[g->part[i].op] = g->table[g->part[i].table].hull.x[0];
    pl->fastest_s = fl_critical_ends(&g->path, pl->dual.length_s, pl->dual.end_s, NULL);
    return FL_OK;
}

void fl_planner_free(fl_planner *pl) {
    fl_plan_dual_free(&pl->dual);
    fl_plan_round_free(&pl->round);
    free(pl->line);
    *pl = (fl_planner){0};
}

void fl_plan_point_free(fl_plan_point *p) {
    free(p->at);
    *p = (fl_plan_point){0};
}

/* ---- bounds ---- */

double fl_plan_bound(const fl_planner *pl, double time_s) {
    double most = 0;
    for (size_t i = 0; i < pl->line_count; i++)
        most = fmax(most, pl->line[i].bound - pl->line[i].price * time_s);
    return most;
}

/* The bound on energy is the highest of lines over time. On one of them t^power (bound - price t) is least at an end of
 * its stretch, for it rises and then falls. So it is enough to look where two lines meet, and at the shortest time; on
 * the lines above the others there, the value is no less than the least. */
double fl_plan_product_bound(const fl_planner *pl, int power) {
    double least = pow(pl->fastest_s, power) * fl_plan_bound(pl, pl->fastest_s);
    for (size_t i = 0; i < pl->line_count; i++)
        for (size_t k = 0; k < i; k++) {
            const fl_plan_line *a = &pl->line[i], *b = &pl->line[k];
            const double t = (a->bound - b->bound) / (a->price - b->price);
            if (a->price != b->price && t > pl->fastest_s)
                least = fmin(least, pow(t, power) * fl_plan_bound(pl, t));
        }
    return least;
}

/* ---- one plan ---- */

static fl_status take(search *s, size_t i, const double *mean_s) {
    fl_planner *pl = s->pl;
    fl_plan_point *p = &s->point[i];
    if (!p->at)
        p->at = calloc(pl->g->part_count + 1, sizeof *p->at);
    if (!p->at)
        return fl_no_memory(s->d, "the plan");
    p->limit_s = fmin(s->limit_s[i], pl->least_s); /* more time would cost more */
    p->time_s = fl_plan_round_off(&pl->round, mean_s, p->limit_s, p->at);
    p->energy_j = fl_plan_energy(pl->g, p->at, p->time_s);
    return FL_OK;
}

/* The plans whose limits lie between two spots: slower than b, no slower than a. */
static fl_status between(search *s, const spot *a, const spot *b) {
    const double span = a->line.time_s - b->line.time_s;
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < s->count; i++) {
        if (s->limit_s[i] > a->line.time_s || s->limit_s[i] <= b->line.time_s)
            continue;
        const double share = span > 0 ? (a->line.time_s - s->limit_s[i]) / span : 0;
        for (size_t k = 0; k < s->pl->g->part_count; k++)
            s->mixed[k] = (1 - share) * a->mean[k] + share * b->mean[k];
        status = take(s, i, s->mixed);
    }
    return status;
}

/* ---- prices ---- */

static fl_status ask(search *s, double price, spot *at) {
    fl_planner *pl = s->pl;
    const size_t parts = pl->g->part_count;
    at->mean = calloc(parts + 1, sizeof *at->mean);
    if (!at->mean || fl_grow(&pl->line, &pl->line_room, pl->line_count + 1, sizeof *pl->line))
        return fl_no_memory(s->d, "the planner");
    fl_plan_dual_solve(&pl->dual, price, &at->line);
    memcpy(at->mean, pl->dual.mean, parts * sizeof *at->mean);
    pl->line[pl->line_count++] = at->line;
    return FL_OK;
}

static bool any_between(const search *s, const spot *a, const spot *b) {
    for (size_t i = 0; i < s->count; i++)
        if (s->limit_s[i] <= a->line.time_s && s->limit_s[i] > b->line.time_s)
            return true;
    return false;
}

static fl_status halve(search *s, const spot *a, const spot *b, int depth) {
    spot middle = {0};
    if (!any_between(s, a, b))
        return FL_OK;
    const double price = (b->line.energy_j - a->line.energy_j) / (a->line.time_s - b->line.time_s);
    if (!depth || !(price > a->line.price) || !(price < b->line.price))
        return between(s, a, b);
    fl_status status = ask(s, price, &middle);
    const double above =
        a->line.energy_j + price * a->line.time_s - (middle.line.energy_j + price * middle.line.time_s);
    const bool inside = middle.line.time_s < a->line.time_s && middle.line.time_s > b->line.time_s;
    if (!status && (!inside || above < NEAR * a->line.energy_j)) {
        status = inside ? between(s, a, &middle) : between(s, a, b);
        if (!status && inside)
            status = between(s, &middle, b);
    } else if (!status) {
        status = halve(s, a, &middle, depth - 1);
        if (!status)
            status = halve(s, &middle, b, depth - 1);
    }
    free(middle.mean);
    return status;
}

/* All parts at their fastest: what a price beyond all others would say. */
static fl_status fastest(search *s, spot *at) {
    const fl_plan_program *g = s->pl->g;
    at->mean = calloc(g->part_count + 1, sizeof *at->mean);
    if (!at->mean)
        return fl_no_memory(s->d, "the planner");
    for (size_t i = 0; i < g->part_count; i++)
        at->mean[i] = g->table[g->part[i].table].hull.x[0];
    at->line = (fl_plan_line){.price = INFINITY, .bound = -INFINITY, .time_s = s->pl->fastest_s};
    return FL_OK;
}

/* From the slow end to the fast one, each time at a price a few times as high. */
static fl_status walk(search *s) {
    fl_planner *pl = s->pl;
    spot slow = {0}, fast = {0}, end = {0};
    fl_status status = ask(s, 0, &slow);
    pl->least_s = fmax(slow.line.time_s, pl->fastest_s);
    for (size_t i = 0; !status && i < s->count; i++)
        if (s->limit_s[i] > slow.line.time_s)
            status = take(s, i, slow.mean);
    double price = pl->g->blocked_w > 0 ? pl->g->blocked_w : 1;
    for (int k = 0; !status && k < DEAREST && slow.line.time_s > pl->fastest_s * (1 + FAST); k++, price *= DEARER) {
        fast = (spot){0};
        status = ask(s, price, &fast);
        if (!status && fast.line.time_s < slow.line.time_s) {
            status = halve(s, &slow, &fast, DEEPEST);
            free(slow.mean);
            slow = fast;
        } else {
            free(fast.mean);
        }
    }
    if (!status)
        status = fastest(s, &end);
    if (!status)
        status = between(s, &slow, &end);
    free(slow.mean);
    free(end.mean);
    return status;
}

fl_status fl_plan_within(fl_planner *pl, const double *limit_s, size_t count, fl_plan_point *point, fl_diag *d) {
    double *raised = calloc(count + 1, sizeof *raised);
    search s = {.pl = pl, .limit_s = raised, .count = count, .point = point, .d = d};
    memset(point, 0, count * sizeof *point);
    s.mixed = calloc(pl->g->part_count + 1, sizeof *s.mixed);
    fl_status status = raised && s.mixed ? FL_OK : fl_no_memory(d, "the planner");
    for (size_t i = 0; !status && i < count; i++) {
        /* The interval of the fastest spot is open below: its own limit has to lie in it. */
        raised[i] = fmax(limit_s[i], pl->fastest_s * (1 + TINY));
        if (limit_s[i] < pl->fastest_s * (1 - TINY))
            status = fl_refuse(d,
                               "no plan takes %.6g s or less, expected at least %.6g s, which all parts take at their "
                               "fastest",
                               limit_s[i], pl->fastest_s);
    }
    if (!status)
        status = walk(&s);
    for (size_t i = 0; !status && i < count; i++)
        point[i].bound_j = fl_plan_bound(pl, point[i].time_s);
    free(raised);
    free(s.mixed);
    return status;
}

/* ---- the frontier ---- */

static int by_time(const void *a, const void *b) {
    const fl_plan_point *p = a, *q = b;
    if (p->time_s != q->time_s)
        return p->time_s < q->time_s ? -1 : 1;
    return p->energy_j < q->energy_j ? -1 : p->energy_j > q->energy_j;
}

static size_t keep_best(fl_plan_point *p, size_t count) {
    size_t kept = 0;
    qsort(p, count, sizeof *p, by_time);
    for (size_t i = 0; i < count; i++)
        if (kept && p[i].energy_j >= p[kept - 1].energy_j)
            fl_plan_point_free(&p[i]);
        else
            p[kept++] = p[i];
    return kept;
}

fl_status fl_plan_frontier(fl_planner *pl, size_t count, fl_plan_point **point, size_t *found, fl_diag *d) {
    fl_plan_line line;
    double *limit = calloc(count + 1, sizeof *limit);
    fl_plan_point *all = calloc(count + 1, sizeof *all);
    fl_status s = limit && all ? FL_OK : fl_no_memory(d, "the frontier");
    *point = NULL;
    *found = 0;
    if (!s) {
        fl_plan_dual_solve(&pl->dual, 0, &line);
        const double slow = fmax(line.time_s, pl->fastest_s), fast = fmin(pl->fastest_s * (1 + BEGIN), slow);
        for (size_t i = 0; i < count; i++)
            limit[i] = slow - (slow - fast) * (double)i / (double)(count > 1 ? count - 1 : 1);
        s = fl_plan_within(pl, limit, count, all, d);
    }
    if (!s) {
        *found = keep_best(all, count);
        *point = all;
    }
    for (size_t i = 0; s && all && i < count; i++)
        fl_plan_point_free(&all[i]);
    if (s)
        free(all);
    free(limit);
    return s;
}
