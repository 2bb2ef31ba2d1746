/* The planner: bounds, one plan within a time, prices, and the frontier. */
#include "sim/pipeline/inside.h"

#include "models/math/math.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A line between two points is near enough within this share of the energy; so often a stretch is halved at most. */
#define NEAR 2e-4
enum { DEEPEST = 10 };
/* The price at the fast end grows by this factor until time is within FAST of the shortest. */
enum { DEARER = 4, DEAREST = 6 };
#define FAST 1e-5
#define FAR 2e-3   /* of the energy: a plan so far above its bound is worth a search */
#define TINY 1e-12 /* of a time */
/* Times that are tried beyond that of the cheapest mixture: a plan of few clocks may need more to be the cheapest. */
enum { LATER = 32 };
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
    if (!s)
        s = fl_plan_polish_new(&pl->polish, g, d);
    if (!s)
        s = fl_plan_all_same(g, &pl->same, &pl->same_count, d);
    pl->trial = calloc(g->part_count + 1, sizeof *pl->trial);
    if (!s && !pl->trial)
        s = fl_no_memory(d, "the planner");
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
    fl_plan_polish_free(&pl->polish);
    free(pl->line);
    free(pl->same);
    fl_plan_point_free(&pl->least);
    free(pl->trial);
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

static fl_status room_for(fl_planner *pl, fl_plan_point *p, fl_diag *d) {
    if (!p->at)
        p->at = calloc(pl->g->part_count + 1, sizeof *p->at);
    return p->at ? FL_OK : fl_no_memory(d, "the plan");
}

static void keep_trial(fl_planner *pl, fl_plan_point *p, double time_s) {
    const double joules = fl_plan_energy(pl->g, pl->trial, time_s);
    if (joules >= p->energy_j)
        return;
    p->time_s = time_s;
    p->energy_j = joules;
    memcpy(p->at, pl->trial, pl->g->part_count * sizeof *p->at);
}

/* On a ladder of few clocks what was rounded may lie above one clock for all. */
static void begin_with_same(fl_planner *pl, fl_plan_point *p) {
    const fl_plan_same *best = NULL;
    if (p->energy_j - fl_plan_bound(pl, p->time_s) < NEAR * p->energy_j)
        return;
    for (size_t i = 0; i < pl->same_count; i++)
        if (pl->same[i].time_s <= p->limit_s * (1 + TINY) && (!best || pl->same[i].energy_j < best->energy_j))
            best = &pl->same[i];
    if (!best)
        return;
    for (int k = 0; k < 2; k++) { /* in its own time, and in all that there is */
        fl_plan_at_clock(pl->g, best->mhz, pl->trial);
        keep_trial(pl, p, fl_plan_round_fill(&pl->round, k ? p->limit_s : best->time_s, pl->trial));
    }
}

/* More time than the plan of least energy takes would cost more. */
static bool take_least(search *s, size_t i) {
    const fl_plan_point *least = &s->pl->least;
    fl_plan_point *p = &s->point[i];
    if (s->limit_s[i] < s->pl->least_s)
        return false;
    p->limit_s = s->pl->least_s;
    p->time_s = least->time_s;
    p->energy_j = least->energy_j;
    memcpy(p->at, least->at, s->pl->g->part_count * sizeof *p->at);
    return true;
}

/* The lengths as clocks of the ladder, the better one of two ways. */
static void round_both(fl_planner *pl, fl_plan_point *p, const double *mean_s, double limit_s) {
    for (int k = 0; k < 2; k++)
        if (!k || p->energy_j - fl_plan_bound(pl, p->time_s) > NEAR * p->energy_j)
            keep_trial(pl, p, fl_plan_round_off(&pl->round, mean_s, limit_s, k == 1, pl->trial));
}

static fl_status take(search *s, size_t i, const double *mean_s) {
    fl_planner *pl = s->pl;
    fl_plan_point *p = &s->point[i];
    const fl_status status = room_for(pl, p, s->d);
    if (status || take_least(s, i))
        return status;
    p->limit_s = s->limit_s[i];
    p->energy_j = INFINITY;
    round_both(pl, p, mean_s, p->limit_s);
    begin_with_same(pl, p);
    return FL_OK;
}

/* What the plan takes whose every part is at its cheapest: no use is made of more time. */
static double slowest_s(fl_planner *pl) {
    const fl_plan_program *g = pl->g;
    for (size_t i = 0; i < g->part_count; i++) {
        const fl_convex *h = &g->table[g->part[i].table].hull;
        pl->dual.length_s[g->part[i].op] = h->x[h->count - 1];
    }
    return fl_critical_ends(&g->path, pl->dual.length_s, pl->dual.end_s, NULL);
}

/* The plan of least energy that takes at most limit_s, which is not less than what the cheapest mixture of clocks
 * takes. The mixture is between two clocks of the ladder at many parts; a plan has to take one of them, and with the
 * slower one of all it may take longer but less energy. mean_s: lengths of the mixture. p->at: filled. */
static void find_cheapest(fl_planner *pl, const double *mean_s, double mixture_s, double limit_s, fl_plan_point *p) {
    const double last_s = fmax(mixture_s, fmin(limit_s, slowest_s(pl)));
    p->limit_s = limit_s;
    p->energy_j = INFINITY;
    for (int k = 0; k <= LATER; k++) {
        const double may_s = k < LATER ? mixture_s + (last_s - mixture_s) * k / LATER : last_s;
        round_both(pl, p, mean_s, may_s);
    }
    begin_with_same(pl, p);
}

/* The plan of least energy of all, once for a planner. */
static fl_status find_least(fl_planner *pl, const double *mean_s, double mixture_s, fl_diag *d) {
    if (pl->least.at)
        return FL_OK;
    const fl_status s = room_for(pl, &pl->least, d);
    if (!s) {
        find_cheapest(pl, mean_s, mixture_s, INFINITY, &pl->least);
        pl->least_s = fmax(pl->least.time_s, pl->fastest_s);
    }
    return s;
}

/* A plan that may take longer than the cheapest mixture does. */
static fl_status take_slow(search *s, size_t i, const spot *slow) {
    const fl_status status = room_for(s->pl, &s->point[i], s->d);
    if (!status && !take_least(s, i))
        find_cheapest(s->pl, slow->mean, slow->line.time_s, s->limit_s[i], &s->point[i]);
    return status;
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
    if (!status)
        status = find_least(pl, slow.mean, slow.line.time_s, s->d);
    for (size_t i = 0; !status && i < s->count; i++)
        if (s->limit_s[i] > slow.line.time_s)
            status = take_slow(s, i, &slow);
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

static bool is_far(const fl_planner *pl, const fl_plan_point *p) {
    return p->energy_j - fl_plan_bound(pl, p->time_s) > FAR * p->energy_j;
}

/* From the fastest plan on: what it has found serves the next one, which has more time. */
static void improve(search *s) {
    fl_planner *pl = s->pl;
    for (size_t i = s->count; i-- > 0;) {
        fl_plan_point *p = &s->point[i];
        if (is_far(pl, p) && i + 1 < s->count) {
            memcpy(pl->trial, p[1].at, pl->g->part_count * sizeof *pl->trial);
            keep_trial(pl, p, fl_plan_round_fill(&pl->round, p->limit_s, pl->trial));
        }
        if (is_far(pl, p))
            fl_plan_polish_plan(&pl->polish, &pl->round, p->limit_s, p->at, &p->time_s, &p->energy_j);
    }
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
    if (!status)
        improve(&s);
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
    double *mean = calloc(pl->g->part_count + 1, sizeof *mean);
    if (!mean && !s)
        s = fl_no_memory(d, "the frontier");
    if (!s) {
        fl_plan_dual_solve(&pl->dual, 0, &line);
        memcpy(mean, pl->dual.mean, pl->g->part_count * sizeof *mean);
        s = find_least(pl, mean, line.time_s, d);
    }
    if (!s) {
        const double slow = pl->least_s, fast = fmin(pl->fastest_s * (1 + BEGIN), slow);
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
    free(mean);
    return s;
}
