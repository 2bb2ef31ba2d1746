/* The critical path of a workload, and a pipeline as a planner sees it: tables of clocks, parts, fixed ops. */
#include "sim/pipeline/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- the critical path ---- */

static bool may_go(const fl_critical *c, uint32_t stream, uint64_t at, const uint64_t *done) {
    const fl_stream *s = &c->w->stream[stream];
    if (s->wait_first)
        for (uint32_t k = s->wait_first[at]; k < s->wait_first[at + 1]; k++)
            if (done[s->wait[k].stream] < s->wait[k].done)
                return false;
    return true;
}

static fl_status sort(fl_critical *c, uint64_t *done, fl_diag *d) {
    size_t n = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t s = 0; s < c->w->stream_count; s++)
            for (; done[s] < c->w->stream[s].count && may_go(c, s, done[s], done); done[s]++) {
                c->order[n++] = (uint32_t)(c->first[s] + done[s]);
                moved = true;
            }
    }
    return n == c->count ? FL_OK : fl_refuse(d, "%s: ops wait for each other for ever", c->w->name);
}

static uint32_t stream_of(const fl_critical *c, size_t op) {
    uint32_t from = 0, to = c->w->stream_count - 1;
    while (from < to) {
        const uint32_t middle = from + (to - from + 1) / 2;
        if (c->first[middle] <= op)
            from = middle;
        else
            to = middle - 1;
    }
    return from;
}

/* What each op waits for, one list behind the other, as fl_critical_ends comes to them. */
static fl_status flatten(fl_critical *c, fl_diag *d) {
    size_t room = c->count + 1, n = 0;
    for (uint32_t s = 0; s < c->w->stream_count; s++)
        room += c->w->stream[s].wait_count;
    c->until = calloc(c->count + 1, sizeof *c->until);
    c->on = calloc(room, sizeof *c->on);
    if (!c->until || !c->on)
        return fl_no_memory(d, c->w->name);
    for (size_t k = 0; k < c->count; k++) {
        const uint32_t op = c->order[k], stream = stream_of(c, op);
        const fl_stream *s = &c->w->stream[stream];
        const size_t at = op - c->first[stream];
        if (at)
            c->on[n++] = op - 1;
        for (uint32_t i = s->wait_first ? s->wait_first[at] : 0; s->wait_first && i < s->wait_first[at + 1]; i++)
            if (s->wait[i].done)
                c->on[n++] = (uint32_t)(c->first[s->wait[i].stream] + s->wait[i].done - 1);
        c->until[k] = n;
    }
    return FL_OK;
}

fl_status fl_critical_new(fl_critical *c, const fl_workload *w, fl_diag *d) {
    *c = (fl_critical){.w = w, .first = calloc((size_t)w->stream_count + 1, sizeof *c->first)};
    uint64_t *done = calloc((size_t)w->stream_count + 1, sizeof *done);
    fl_status s = c->first && done ? FL_OK : fl_no_memory(d, w->name);
    for (uint32_t k = 0; !s && k < w->stream_count; k++)
        c->first[k + 1] = c->first[k] + w->stream[k].count;
    if (!s) {
        c->count = c->first[w->stream_count];
        c->order = calloc(c->count + 1, sizeof *c->order);
        s = c->order ? FL_OK : fl_no_memory(d, w->name);
    }
    if (!s)
        s = c->count < UINT32_MAX ? sort(c, done, d) : fl_refuse(d, "%s: too many ops", w->name);
    if (!s)
        s = flatten(c, d);
    free(done);
    if (s)
        fl_critical_free(c);
    return s;
}

void fl_critical_free(fl_critical *c) {
    free(c->first);
    free(c->order);
    free(c->until);
    free(c->on);
    *c = (fl_critical){0};
}

double fl_critical_ends(const fl_critical *c, const double *length_s, double *end_s, uint32_t *before) {
    double last = 0;
    size_t i = 0;
    for (size_t n = 0; n < c->count; n++) {
        const uint32_t op = c->order[n];
        double start = 0;
        uint32_t from = FL_NONE;
        for (; i < c->until[n]; i++) {
            const double end = end_s[c->on[i]];
            from = end > start ? c->on[i] : from;
            start = end > start ? end : start;
        }
        end_s[op] = start + length_s[op];
        last = end_s[op] > last ? end_s[op] : last;
        if (before)
            before[op] = from;
    }
    return last;
}

/* ---- tables ---- */

static fl_status table_room(fl_plan_table *t, size_t count, fl_diag *d) {
    t->mhz = calloc(count + 1, sizeof *t->mhz);
    t->time_s = calloc(count + 1, sizeof *t->time_s);
    t->power_w = calloc(count + 1, sizeof *t->power_w);
    t->over_j = calloc(count + 1, sizeof *t->over_j);
    t->front = calloc(count + 1, sizeof *t->front);
    return t->mhz && t->time_s && t->power_w && t->over_j && t->front ? FL_OK : fl_no_memory(d, "the planner");
}

/* A clock belongs there where none takes at most as long for at most as much; of two alike the lower one. */
static void find_front(fl_plan_table *t) {
    size_t n = 0;
    for (double last = -INFINITY;;) { /* the fastest that is slower than the last, of these the cheapest */
        size_t next = t->count;
        for (size_t k = 0; k < t->count; k++)
            if (t->time_s[k] > last && (!n || t->over_j[k] < t->over_j[t->front[n - 1]]) &&
                (next == t->count || t->time_s[k] < t->time_s[next] ||
                 (t->time_s[k] == t->time_s[next] && t->over_j[k] < t->over_j[next])))
                next = k;
        if (next == t->count)
            break;
        last = t->time_s[next];
        t->front[n++] = (uint32_t)next;
    }
    t->front_count = n;
}

/* What a class takes and draws at each clock of its rank's ladder. */
static fl_status make_table(fl_plan_program *g, fl_plan_table *t, uint32_t rank, uint32_t chunk, bool backward,
                            uint32_t class_id, double limit_w, fl_diag *d) {
    const fl_device *dev = &g->node->device[g->node->gpu[rank]];
    const fl_measured *m = &g->w->class[class_id].measured;
    const fl_pipeline_what what = backward ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
    size_t rows;
    const double blocked_w = fl_pipeline_rows(g->p, rank, chunk, FL_PIPELINE_BLOCKED, &rows)->power_w;
    const fl_pipeline_row *row = fl_pipeline_rows(g->p, rank, chunk, what, &rows);
    fl_status s = table_room(t, dev->sm_count, d);
    for (uint32_t k = 0; !s && k < dev->sm_count; k++) {
        double ratio, watts;
        if (fl_curve_at(m->time_ratio, dev->sm_mhz[k], 0, &ratio) || fl_curve_at(m->power_w, dev->sm_mhz[k], 0, &watts))
            return fl_fail(d, FL_BAD_INPUT, g->p->file, 0, 0,
                           "rank %u: %s is known from %g to %g MHz, expected all of the ladder, also %d MHz", rank,
                           fl_pipeline_what_name[what], row[0].sm_mhz, row[rows - 1].sm_mhz, dev->sm_mhz[k]);
        if (watts > limit_w)
            continue;
        t->mhz[t->count] = dev->sm_mhz[k];
        t->time_s[t->count] = round(row[rows - 1].time_s * ratio * 1e9) / 1e9;
        t->power_w[t->count] = round(watts * 1000) / 1000;
        t->over_j[t->count] = (t->power_w[t->count] - round(blocked_w * 1000) / 1000) * t->time_s[t->count];
        t->count++;
    }
    if (!s && !t->count)
        return fl_fail(d, FL_BAD_INPUT, g->p->file, 0, 0,
                       "rank %u: its %s draws more than the limit of %g W at every clock, expected a higher limit",
                       rank, fl_pipeline_what_name[what], limit_w);
    if (!s)
        find_front(t);
    if (!s && fl_convex_new(&t->hull, t->time_s, t->over_j, t->count))
        s = fl_no_memory(d, "the planner");
    return s;
}

/* ---- parts ---- */

static fl_status add_part(fl_plan_program *g, size_t op, uint32_t rank, uint32_t class_id, const double *limit_w,
                          fl_diag *d) {
    const fl_pipeline_op *what = &g->op[op];
    const bool backward = what->part == FL_PART_OF_BACKWARD;
    const uint32_t chunk = (uint32_t)what->chunk, table = (rank * 2 + backward) * g->p->chunks + chunk;
    fl_status s = FL_OK;
    if (!g->table[table].mhz)
        s = make_table(g, &g->table[table], rank, chunk, backward, class_id, limit_w ? limit_w[rank] : INFINITY, d);
    g->part[g->part_count++] = (fl_plan_part){(uint32_t)op, table};
    return s;
}

static fl_status add_ops(fl_plan_program *g, const double *limit_w, fl_diag *d) {
    fl_status s = FL_OK;
    for (uint32_t rank = 0; !s && rank < g->w->stream_count; rank++)
        for (size_t i = 0; !s && i < g->w->stream[rank].count; i++) {
            const size_t op = g->path.first[rank] + i;
            const bool part = g->op[op].part == FL_PART_OF_FORWARD || g->op[op].part == FL_PART_OF_BACKWARD;
            int64_t gap_ns, work_ns;
            uint32_t class_id;
            fl_workload_op(&g->w->stream[rank], i, &gap_ns, &work_ns, &class_id);
            g->fixed_s[op] = part ? 0 : (double)work_ns * 1e-9;
            g->part_of[op] = part ? (uint32_t)g->part_count : FL_NONE;
            if (part)
                s = add_part(g, op, rank, class_id, limit_w, d);
        }
    return s;
}

static fl_status check_end(const fl_pipeline *p, const fl_pipeline_order *o, fl_diag *d) {
    for (uint32_t stage = 0; stage < o->stages; stage++) {
        const fl_pipeline_list *l = &o->stage[stage];
        if (!l->count || l->item[l->count - 1].type != FL_DO_STEP)
            return fl_fail(d, FL_BAD_INPUT, p->order ? p->order : p->file, 0, 0,
                           "stage %u does not end with 'step', expected that of each stage: what a plan saves is "
                           "counted until all ranks end",
                           stage);
    }
    return FL_OK;
}

fl_status fl_plan_program_new(fl_plan_program *g, const fl_pipeline *p, const fl_pipeline_order *order,
                              const fl_node_spec *node, const double *limit_w, fl_diag *d) {
    *g = (fl_plan_program){.p = p, .order = order, .node = node};
    fl_status s = check_end(p, order, d);
    if (!s)
        s = fl_build_pipeline(&g->w, "the planner", p, order, node, 1, NULL, &g->op, d);
    if (!s)
        s = fl_critical_new(&g->path, g->w, d);
    if (!s) {
        g->table_count = (size_t)p->ranks * 2 * p->chunks;
        g->fixed_s = calloc(g->path.count + 1, sizeof *g->fixed_s);
        g->part_of = calloc(g->path.count + 1, sizeof *g->part_of);
        g->part = calloc(g->path.count + 1, sizeof *g->part);
        g->table = calloc(g->table_count, sizeof *g->table);
        s = g->fixed_s && g->part && g->part_of && g->table ? FL_OK : fl_no_memory(d, "the planner");
    }
    for (uint32_t rank = 0; !s && rank < p->ranks; rank++) {
        size_t count;
        g->blocked_w += round(fl_pipeline_rows(p, rank, 0, FL_PIPELINE_BLOCKED, &count)->power_w * 1000) / 1000;
    }
    if (!s)
        s = add_ops(g, limit_w, d);
    if (s)
        fl_plan_program_free(g);
    return s;
}

void fl_plan_program_free(fl_plan_program *g) {
    for (size_t i = 0; g->table && i < g->table_count; i++) {
        free(g->table[i].mhz);
        free(g->table[i].time_s);
        free(g->table[i].power_w);
        free(g->table[i].over_j);
        free(g->table[i].front);
        fl_convex_free(&g->table[i].hull);
    }
    free(g->table);
    free(g->part);
    free(g->part_of);
    free(g->fixed_s);
    free(g->op);
    if (g->w)
        fl_critical_free(&g->path);
    fl_workload_free(g->w);
    *g = (fl_plan_program){0};
}

/* ---- what a choice costs ---- */

double fl_plan_time(const fl_plan_program *g, const uint32_t *at, double *length_s, double *end_s) {
    for (size_t i = 0; i < g->path.count; i++)
        length_s[i] = g->fixed_s[i];
    for (size_t i = 0; i < g->part_count; i++)
        length_s[g->part[i].op] = g->table[g->part[i].table].time_s[at[i]];
    return fl_critical_ends(&g->path, length_s, end_s, NULL);
}

double fl_plan_energy(const fl_plan_program *g, const uint32_t *at, double time_s) {
    double joules = time_s * g->blocked_w;
    for (size_t i = 0; i < g->part_count; i++)
        joules += g->table[g->part[i].table].over_j[at[i]];
    return joules;
}

/* Where the clocks have the part's. */
static double *clock_of(const fl_plan_program *g, const fl_pipeline_clocks *c, const fl_plan_part *part) {
    const fl_pipeline_op *op = &g->op[part->op];
    return fl_pipeline_clock(c, part->table / (2 * g->p->chunks), op->part == FL_PART_OF_BACKWARD, (uint32_t)op->chunk,
                             (uint32_t)op->microbatch);
}

bool fl_plan_allows(const fl_plan_program *g, const fl_pipeline_clocks *c) {
    for (size_t i = 0; i < g->part_count; i++) {
        const fl_plan_table *t = &g->table[g->part[i].table];
        const double mhz = *clock_of(g, c, &g->part[i]);
        size_t k = 0;
        while (k < t->count && t->mhz[k] != mhz)
            k++;
        if (k == t->count)
            return false;
    }
    return true;
}

fl_status fl_plan_clocks(const fl_plan_program *g, const uint32_t *at, fl_pipeline_clocks *c, fl_diag *d) {
    const fl_pipeline *p = g->p;
    if (fl_pipeline_clocks_new(p, c, d))
        return FL_NO_MEMORY;
    const size_t each = (size_t)2 * p->chunks * p->microbatches; /* a list may leave some out: they get the default */
    for (size_t i = 0; i < p->ranks * each; i++)
        c->mhz[i] = g->node->device[g->node->gpu[i / each]].default_sm_mhz;
    for (size_t i = 0; i < g->part_count; i++)
        *clock_of(g, c, &g->part[i]) = g->table[g->part[i].table].mhz[at[i]];
    return FL_OK;
}
