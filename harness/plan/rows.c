/* The rows of `foldline plan`: baselines, the frontier, few clocks, measured plans. */
#include "harness/plan/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/device.h"
#include "sim/oracle/oracle.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_ROW_PLANNED_NAME(id, name) #name,
const char *const fl_planned_kind_name[FL_PLANNED_KIND_COUNT] = {FL_PLANNED_KINDS(FL_ROW_PLANNED_NAME)};

#define TINY 1e-9 /* of a time: the engine counts whole picoseconds */

typedef struct maker {
    const fl_plan_ask *ask;
    fl_planned *r;
    uint32_t *at; /* by part */
    int32_t *mhz; /* by rank */
    fl_diag *d;
} maker;

/* ---- rows ---- */

/* Runs the clocks on the engine, and on that of the judge. */
static fl_status add_clocks(maker *m, fl_planned_kind kind, int64_t number, const fl_pipeline_clocks *c) {
    const fl_training *t = m->ask->t, *judge = m->ask->judge;
    fl_planned *r = m->r;
    fl_must_grow(&r->row, &r->room, r->count + 1, sizeof *r->row);
    fl_planned_row *row = &r->row[r->count];
    *row = (fl_planned_row){
        .kind = kind, .number = number, .judge_s = NAN, .judge_j = NAN, .measured_s = NAN, .measured_j = NAN};
    fl_status s = fl_pipeline_run(&t->p, &t->order, t->node, c, &row->time_s, &row->energy_j, m->d);
    row->bound_j = fl_plan_allows(&r->g, c) ? 0 : (double)NAN;
    if (!s && judge)
        s = fl_pipeline_run(&judge->p, &judge->order, judge->node, c, &row->judge_s, &row->judge_j, m->d);
    if (!s)
        r->count++;
    return s;
}

static fl_status add_places(maker *m, fl_planned_kind kind, int64_t number, const uint32_t *at, bool keep) {
    fl_pipeline_clocks c;
    fl_status s = fl_plan_clocks(&m->r->g, at, &c, m->d);
    if (s)
        return s;
    s = add_clocks(m, kind, number, &c);
    if (!s && keep)
        s = fl_plans_add(&m->r->plans, number, &c, m->d);
    fl_pipeline_clocks_free(&c);
    return s;
}

static double value_of(fl_objective o, const fl_planned_row *row) {
    return fl_objective_value(o, row->energy_j, row->time_s);
}

size_t fl_planned_best(const fl_planned *r, fl_planned_kind kind, fl_objective objective) {
    size_t best = r->count;
    for (size_t i = 0; i < r->count; i++)
        if (r->row[i].kind == kind && r->row[i].time_s <= r->limit_s * (1 + TINY) &&
            (best == r->count || value_of(objective, &r->row[i]) < value_of(objective, &r->row[best])))
            best = i;
    return best;
}

/* ---- the plans ---- */

/* The plan of least energy within the time; a frontier, too, where another objective is asked for; or that alone. */
static fl_status find_points(const maker *m, fl_plan_point **point, size_t *found) {
    const fl_plan_ask *ask = m->ask;
    fl_planned *r = m->r;
    fl_status s = FL_OK;
    if (ask->frontier || ask->objective != FL_MIN_ENERGY)
        s = fl_plan_frontier(&r->pl, ask->points, point, found, m->d);
    if (s || ask->frontier)
        return s;
    *point = fl_must(realloc(*point, (*found + 1) * sizeof **point));
    return fl_plan_within(&r->pl, &r->limit_s, 1, &(*point)[(*found)++], m->d);
}

static fl_status no_plan(const maker *m) {
    return fl_refuse(m->d,
                     "no plan takes %.6g s or less, expected at least %.6g s, which all parts take at their fastest",
                     m->r->limit_s, m->r->pl.fastest_s);
}

static fl_status add_plans(maker *m) {
    fl_planned *r = m->r;
    fl_plan_point *point = NULL;
    size_t found = 0, best = SIZE_MAX;
    if (r->limit_s < r->pl.fastest_s * (1 - TINY))
        return no_plan(m);
    fl_status s = find_points(m, &point, &found);
    double least = INFINITY;
    for (size_t i = 0; !s && i < found; i++) {
        const double value = fl_objective_value(m->ask->objective, point[i].energy_j, point[i].time_s);
        if (point[i].time_s <= r->limit_s * (1 + TINY) && value < least) {
            least = value;
            best = i;
        }
    }
    if (!s && best == SIZE_MAX)
        s = no_plan(m);
    for (size_t i = 0; !s && i < found; i++)
        if (m->ask->frontier || i == best) {
            if (i == best)
                r->chosen = r->count;
            s = add_places(m, FL_PLANNED_PLAN, m->ask->frontier ? (int64_t)i : 0, point[i].at, true);
        }
    for (size_t i = 0; i < found; i++)
        fl_plan_point_free(&point[i]);
    free(point);
    return s;
}

/* ---- few clocks ---- */

static void all_at(maker *m, int32_t mhz) {
    for (uint32_t rank = 0; rank < m->ask->t->p.ranks; rank++)
        m->mhz[rank] = mhz;
    fl_plan_at_clocks(&m->r->g, m->mhz, m->at);
}

static fl_status add_default(maker *m) {
    const fl_node_spec *node = m->ask->t->node;
    for (uint32_t rank = 0; rank < m->ask->t->p.ranks; rank++)
        m->mhz[rank] = (int32_t)node->device[node->gpu[rank]].default_sm_mhz;
    fl_plan_at_clocks(&m->r->g, m->mhz, m->at);
    m->r->standard = m->r->count;
    return add_places(m, FL_PLANNED_DEFAULT, -1, m->at, false);
}

static fl_status add_static(maker *m) {
    const fl_device *dev = &m->ask->t->node->device[m->ask->t->node->gpu[0]];
    fl_status s = FL_OK;
    for (uint32_t k = 0; !s && k < dev->sm_count; k++) {
        all_at(m, dev->sm_mhz[k]);
        s = add_places(m, FL_PLANNED_STATIC, dev->sm_mhz[k], m->at, false);
    }
    return s;
}

static int by_price(const void *a, const void *b) {
    const double x = ((const fl_plan_line *)a)->price, y = ((const fl_plan_line *)b)->price;
    return x < y ? -1 : x > y;
}

/* A clock for each rank at the prices that the frontier was found by. Each begins at the best static clock of its price
 * or at what the price before it found, whichever costs less. */
static fl_status add_ranks(maker *m) {
    fl_planned *r = m->r;
    const size_t before = r->count, ranks = m->ask->t->p.ranks;
    int32_t *last = fl_must(calloc(ranks, sizeof *last));
    fl_plan_line *line = fl_must(calloc(r->pl.line_count + 1, sizeof *line));
    fl_status s = FL_OK;
    memcpy(line, r->pl.line, r->pl.line_count * sizeof *line);
    qsort(line, r->pl.line_count, sizeof *line, by_price);
    for (size_t k = 0; !s && k < r->pl.line_count; k++) {
        size_t best = 0;
        double least = INFINITY, time_s, energy_j;
        for (size_t i = 0; i < before; i++) {
            const double cost = r->row[i].energy_j + line[k].price * r->row[i].time_s;
            if (r->row[i].kind == FL_PLANNED_STATIC && cost < least) {
                least = cost;
                best = i;
            }
        }
        all_at(m, (int32_t)r->row[best].number);
        if (k && r->row[r->count - 1].energy_j + line[k].price * r->row[r->count - 1].time_s < least)
            memcpy(m->mhz, last, ranks * sizeof *last);
        s = fl_plan_rank_clocks(&r->g, line[k].price, m->mhz, m->at, &time_s, &energy_j, m->d);
        const bool same = k && !memcmp(m->mhz, last, ranks * sizeof *last);
        memcpy(last, m->mhz, ranks * sizeof *last);
        if (!s && !same)
            s = add_places(m, FL_PLANNED_RANK, -1, m->at, false);
    }
    free(last);
    free(line);
    return s;
}

/* ---- measured plans ---- */

static bool all_at_top(const fl_plans *plans, size_t place) {
    for (size_t i = 0; i < plans->row_count; i++)
        if (plans->row[i].plan == place && plans->row[i].sm_mhz != plans->top_mhz)
            return false;
    return true;
}

static fl_status add_measured(maker *m) {
    fl_pipeline_runs runs = {0};
    fl_plans plans = {0};
    if (!m->ask->measured)
        return FL_OK;
    char *file = fl_must_print("%s.plans.csv", m->ask->measured);
    fl_status s = fl_pipeline_runs_read(m->ask->measured, &runs, m->d);
    if (!s)
        s = fl_plans_read(file, &plans, m->d);
    for (size_t i = 0; !s && i < plans.plan_count; i++) {
        fl_pipeline_clocks c;
        s = fl_plans_clocks(&plans, i, &m->ask->t->p, &c, m->d);
        if (s)
            break;
        s = add_clocks(m, FL_PLANNED_MEASURED, plans.number[i], &c);
        fl_pipeline_clocks_free(&c);
        if (!s) {
            fl_planned_row *row = &m->r->row[m->r->count - 1];
            row->measured_s = runs.time_s[i];
            row->measured_j = runs.energy_j[i];
            row->warm_up = i == 0 && all_at_top(&plans, i);
        }
    }
    free(file);
    fl_plans_free(&plans);
    fl_pipeline_runs_free(&runs);
    return s;
}

/* ---- all of it ---- */

static fl_status check_judge(const fl_plan_ask *ask, fl_diag *d) {
    const fl_pipeline *p = &ask->t->p, *j = ask->judge ? &ask->judge->p : p;
    if (p->ranks == j->ranks && p->chunks == j->chunks && p->microbatches == j->microbatches)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, j->file, 0, 0,
                   "%u ranks, %u chunks and %u microbatches, expected %u, %u and %u, as %s has them", j->ranks,
                   j->chunks, j->microbatches, p->ranks, p->chunks, p->microbatches, p->file);
}

fl_status fl_planned_make(const fl_plan_ask *ask, fl_planned *r, fl_diag *d) {
    const fl_training *t = ask->t;
    maker m = {.ask = ask, .r = r, .d = d};
    *r = (fl_planned){0};
    fl_status s = check_judge(ask, d);
    if (!s)
        s = fl_plan_program_new(&r->g, &t->p, &t->order, t->node, ask->limit_w, d);
    if (!s)
        s = fl_planner_new(&r->pl, &r->g, d);
    m.at = fl_must(calloc(r->g.part_count + 1, sizeof *m.at));
    m.mhz = fl_must(calloc(t->p.ranks, sizeof *m.mhz));
    if (!s)
        s = add_default(&m);
    if (!s) {
        r->limit_s = fmin(ask->time_s, r->row[r->standard].time_s * (1 + ask->slowdown));
        s = add_plans(&m);
    }
    if (!s)
        s = add_static(&m);
    if (!s)
        s = add_ranks(&m);
    if (!s)
        s = add_measured(&m);
    for (size_t i = 0; !s && i < r->count; i++)
        if (!isnan(r->row[i].bound_j))
            r->row[i].bound_j = fl_plan_bound(&r->pl, r->row[i].time_s);
    free(m.at);
    free(m.mhz);
    if (s)
        fl_planned_free(r);
    return s;
}

void fl_planned_free(fl_planned *r) {
    fl_planner_free(&r->pl);
    fl_plan_program_free(&r->g);
    fl_plans_free(&r->plans);
    free(r->row);
    *r = (fl_planned){0};
}
