/* All work of one stream, kind by kind: hulls of time and energy, and the clairvoyant schedule that may change clocks
 * at any instant. */
#include "sim/oracle/inside.h"

#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- the lower convex hull ---- */

static int by_time(const void *a, const void *b) {
    const fl_hull_point *x = a, *y = b;
    if (x->ps != y->ps)
        return x->ps < y->ps ? -1 : 1;
    if (x->fj != y->fj)
        return x->fj < y->fj ? -1 : 1;
    return x->choice < y->choice ? -1 : x->choice > y->choice;
}

/* b lies above the line from a to c, so no price selects it. Slopes are long doubles. Keeping a point by mistake costs
 * nothing, but a dropped point must lie above by more than the rounding; hence the margin. */
static bool above(const fl_hull_point *a, const fl_hull_point *b, const fl_hull_point *c) {
    long double left = (long double)(a->fj - b->fj) * (long double)(c->ps - b->ps);
    long double right = (long double)(b->fj - c->fj) * (long double)(b->ps - a->ps);
    return left < right - right * 1e-15L;
}

size_t fl_hull(fl_hull_point *p, size_t count) {
    size_t n = 0;
    qsort(p, count, sizeof *p, by_time);
    for (size_t i = 0; i < count; i++) {
        if (n && p[i].fj >= p[n - 1].fj)
            continue; /* slower and not cheaper, so never optimal */
        while (n > 1 && above(&p[n - 2], &p[n - 1], &p[i]))
            n--;
        p[n++] = p[i];
    }
    return n;
}

/* ---- total time of each class at each clock ---- */

void fl_class_sums_free(fl_class_sums *sum) {
    free(sum->ps);
    free(sum->gap_ps);
    free(sum->worked);
    *sum = (fl_class_sums){0};
}

static void add_gaps(const fl_stream *s, fl_class_sums *sum) {
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, i, &gap_ns, &work_ns, &class_id);
        sum->gap_ps[class_id] += (fl_wide)gap_ns * FL_PS_PER_NS;
        sum->worked[class_id] += work_ns > 0;
    }
}

fl_status fl_class_sums_make(const fl_workload *w, const fl_clock_rates *const *at, size_t columns, fl_class_sums *sum,
                             fl_diag *d) {
    fl_op_block b = {0};
    *sum = (fl_class_sums){.classes = w->class_count,
                           .columns = columns,
                           .ps = calloc(columns * (w->class_count + 1), sizeof *sum->ps),
                           .gap_ps = calloc(w->class_count + 1, sizeof *sum->gap_ps),
                           .worked = calloc(w->class_count + 1, sizeof *sum->worked)};
    fl_status s = sum->ps && sum->gap_ps && sum->worked ? fl_op_block_open(&b, w, d) : fl_no_memory(d, "the oracle");
    for (uint32_t i = 0; !s && i < w->stream_count; i++) {
        const fl_stream *stream = &w->stream[i];
        add_gaps(stream, sum);
        for (uint64_t from = 0; !s && from < stream->count; from += FL_OP_BLOCK_MAX) {
            uint64_t end = stream->count - from < FL_OP_BLOCK_MAX ? stream->count : from + FL_OP_BLOCK_MAX;
            s = fl_op_block_fill(&b, stream, from, end, d);
            for (size_t k = 0; !s && k < b.class_count; k++)
                for (size_t c = 0; c < columns; c++)
                    sum->ps[b.class_id[k] * columns + c] += fl_op_block_length_ps(&b, k, at[c]->row[b.class_id[k]].mul);
        }
    }
    fl_op_block_close(&b);
    if (s)
        fl_class_sums_free(sum);
    return s;
}

int64_t fl_closed_mw(const fl_node_spec *spec, uint32_t busy) {
    int64_t mw = 0;
    for (uint32_t i = 0; i < spec->gpu_count; i++)
        if (i != busy)
            mw += (int64_t)(spec->device[spec->gpu[i]].no_context_w * 1000 + 0.5);
    return mw;
}

/* ---- making and freeing ---- */

#define ROUNDING 1e-15L /* of long doubles, relative; some hundred operations */

void fl_oracle_work_free(fl_oracle_work *work) {
    if (!work)
        return;
    fl_class_sums_free(&work->sum);
    free(work->at);
    free(work->item_of);
    free(work->point);
    free(work->first);
    free(work->step);
    free(work->vertex);
    free(work->all);
    free(work);
}

/* ---- items ---- */

static int64_t power_mw(const fl_oracle_work *work, size_t c, uint32_t class_id) {
    return (int64_t)work->at[c]->base.total_mw + work->closed_mw + work->at[c]->row[class_id].dyn_mw;
}

static int64_t idle_mw(const fl_oracle_work *work, size_t c) {
    return (int64_t)work->at[c]->base.total_mw + work->closed_mw;
}

/* The points after those of the earlier items. */
static fl_status add_item(fl_oracle_work *work, const fl_hull_point *cell, fl_hull_point *hull, size_t *room,
                          fl_diag *d) {
    memcpy(hull, cell, work->choices * sizeof *hull);
    const size_t n = fl_hull(hull, work->choices), used = work->first[work->items];
    if (fl_grow(&work->point, room, used + n, sizeof *work->point))
        return fl_no_memory(d, "the oracle");
    memcpy(work->point + used, hull, n * sizeof *hull);
    work->first[++work->items] = used + n;
    for (size_t c = 0; c < work->choices; c++) {
        work->all[c].ps += cell[c].ps;
        work->all[c].fj += cell[c].fj;
    }
    return FL_OK;
}

static fl_status add_items(fl_oracle_work *work, const fl_workload *w, const fl_class_sums *sum, fl_diag *d) {
    fl_hull_point *cell = calloc(work->choices, sizeof *cell), *hull = calloc(work->choices, sizeof *hull);
    fl_wide gap_ps = 0, longest = 0;
    size_t room = 0;
    fl_status s = cell && hull ? FL_OK : fl_no_memory(d, "the oracle");
    for (uint32_t k = 0; !s && k < w->class_count; k++) {
        fl_wide slowest = 0;
        gap_ps += sum->gap_ps[k];
        work->worked += sum->worked[k];
        work->item_of[k] = (uint32_t)work->items;
        if (!sum->worked[k])
            continue;
        for (size_t c = 0; c < work->choices; c++)
            slowest = sum->ps[k * sum->columns + c] > slowest ? sum->ps[k * sum->columns + c] : slowest;
        longest += slowest;
        if (longest + gap_ps > INT64_MAX / 2)
            break;
        for (size_t c = 0; c < work->choices; c++) {
            const int64_t mw = power_mw(work, c, k), ps = (int64_t)sum->ps[k * sum->columns + c];
            work->most_mw = mw > work->most_mw ? mw : work->most_mw;
            cell[c] = (fl_hull_point){ps, (fl_wide)ps * mw, (uint32_t)c};
        }
        s = add_item(work, cell, hull, &room, d);
    }
    if (!s && longest + gap_ps > INT64_MAX / 2)
        s = fl_refuse(d, "%s: longer than 53 days at its slowest clock, expected less", w->name);
    for (size_t c = 0; !s && c < work->choices; c++)
        cell[c] = (fl_hull_point){(int64_t)gap_ps, gap_ps * idle_mw(work, c), (uint32_t)c};
    if (!s)
        s = add_item(work, cell, hull, &room, d);
    free(cell);
    free(hull);
    return s;
}

/* ---- the hull of everything ---- */

static int by_saving(const void *a, const void *b) {
    const fl_work_step *x = a, *y = b;
    if (x->saves != y->saves)
        return x->saves > y->saves ? -1 : 1;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

static fl_status add_steps(fl_oracle_work *work, fl_diag *d) {
    const size_t room = work->first[work->items] - work->items;
    work->step = malloc((room + 1) * sizeof *work->step);
    work->vertex = calloc(room + 1, sizeof *work->vertex);
    if (!work->step || !work->vertex)
        return fl_no_memory(d, "the oracle");
    for (size_t i = 0; i < work->items; i++) {
        long double before = INFINITY;
        work->vertex[0].ps += work->point[work->first[i]].ps;
        work->vertex[0].fj += work->point[work->first[i]].fj;
        for (size_t k = work->first[i]; k + 1 < work->first[i + 1]; k++) {
            const fl_hull_point *from = &work->point[k], *to = from + 1;
            const long double saves = (long double)(from->fj - to->fj) / (long double)(to->ps - from->ps);
            before = saves < before ? saves : before; /* rounding must not reorder an item's steps */
            work->step[work->steps++] = (fl_work_step){i, k, before};
        }
    }
    qsort(work->step, work->steps, sizeof *work->step, by_saving);
    for (size_t k = 0; k < work->steps; k++) {
        const fl_hull_point *from = &work->point[work->step[k].point], *to = from + 1;
        work->vertex[k + 1] =
            (fl_work_vertex){work->vertex[k].ps + (to->ps - from->ps), work->vertex[k].fj + (to->fj - from->fj)};
    }
    return FL_OK;
}

fl_status fl_oracle_work_make(const fl_workload *w, const fl_stream *s, const fl_clock_rates **at, size_t choices,
                              int64_t closed_mw, fl_oracle_work **out, fl_diag *d) {
    fl_oracle_work *work = calloc(1, sizeof *work);
    if (!work) {
        free(at);
        return fl_no_memory(d, "the oracle");
    }
    *work = (fl_oracle_work){.s = s, .at = at, .choices = choices, .closed_mw = closed_mw};
    work->item_of = calloc(w->class_count + 1, sizeof *work->item_of);
    work->first = calloc((size_t)w->class_count + 2, sizeof *work->first);
    work->all = calloc(choices + 1, sizeof *work->all);
    fl_status status = work->item_of && work->first && work->all ? FL_OK : fl_no_memory(d, "the oracle");
    if (!status)
        status = fl_class_sums_make(w, at, choices, &work->sum, d);
    if (!status)
        status = add_items(work, w, &work->sum, d);
    if (!status)
        status = add_steps(work, d);
    if (status)
        fl_oracle_work_free(work);
    else
        *out = work;
    return status;
}

/* ---- the schedule ---- */

/* The last vertex within a limit that the first vertex holds. */
static size_t last_within(const fl_oracle_work *work, int64_t limit_ps) {
    size_t low = 0, high = work->steps;
    while (low < high) {
        const size_t middle = low + (high - low + 1) / 2;
        if (work->vertex[middle].ps <= limit_ps)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Applies step k to as much of its kind as the limit allows. */
static fl_work_plan divide(const fl_oracle_work *work, size_t k, int64_t limit_ps) {
    const fl_hull_point *from = &work->point[work->step[k].point], *to = from + 1;
    fl_work_plan p = {.total = work->vertex[k], .steps = k, .divided = true, .same = work->choices};
    for (p.op = 0; p.op < work->s->count; p.op++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(work->s, p.op, &gap_ns, &work_ns, &class_id);
        if (work_ns <= 0 || work->item_of[class_id] != work->step[k].item)
            continue;
        const int64_t fast = fl_length_ps(work_ns, work->at[from->choice]->row[class_id].mul),
                      slow = fl_length_ps(work_ns, work->at[to->choice]->row[class_id].mul),
                      fast_mw = power_mw(work, from->choice, class_id), slow_mw = power_mw(work, to->choice, class_id),
                      room = limit_ps - p.total.ps;
        if (slow - fast <= room) {
            p.total.ps += slow - fast;
            p.total.fj += (fl_wide)slow * slow_mw - (fl_wide)fast * fast_mw;
            continue;
        }
        p.slow_ps = (int64_t)((fl_wide)room * slow / (slow - fast));
        const int64_t rest = fl_rescale_ps(slow - p.slow_ps, slow, fast);
        p.total.ps += p.slow_ps + rest - fast;
        p.total.fj += (fl_wide)p.slow_ps * slow_mw + (fl_wide)rest * fast_mw - (fl_wide)fast * fast_mw;
        return p;
    }
    return p;
}

static bool is_better(int m, const fl_work_vertex *a, const fl_work_vertex *b) {
    return m ? fl_product(m, a->fj, a->ps) < fl_product(m, b->fj, b->ps) : a->fj < b->fj;
}

bool fl_oracle_work_plan(const fl_oracle_work *work, int m, int64_t limit_ps, fl_work_plan *plan) {
    if (work->vertex[0].ps > limit_ps)
        return false;
    const size_t last = last_within(work, limit_ps);
    *plan = (fl_work_plan){.total = work->vertex[last], .steps = last, .same = work->choices};
    for (size_t k = 0; m && k < last; k++)
        if (is_better(m, &work->vertex[k], &plan->total)) {
            plan->total = work->vertex[k];
            plan->steps = k;
        }
    if (last < work->steps && limit_ps > work->vertex[last].ps) {
        const fl_work_plan divided = divide(work, last, limit_ps);
        if (divided.total.ps <= limit_ps && is_better(m, &divided.total, &plan->total))
            *plan = divided;
    }
    for (size_t c = 0; c < work->choices;
         c++) /* within some picoseconds of rounding, one clock for all may be better */
        if (work->all[c].ps <= limit_ps && is_better(m, &work->all[c], &plan->total))
            *plan = (fl_work_plan){.total = work->all[c], .same = c};
    return true;
}

/* ---- the bound ---- */

/* Energy of the hull at a time that is not before its first vertex. */
static long double hull_at(const fl_oracle_work *work, int64_t ps) {
    const size_t k = last_within(work, ps);
    const fl_work_vertex *a = &work->vertex[k];
    if (k == work->steps)
        return (long double)a->fj;
    const fl_work_vertex *b = a + 1;
    return (long double)a->fj -
           (long double)(a->fj - b->fj) * ((long double)(ps - a->ps) / (long double)(b->ps - a->ps));
}

/* A schedule differs from one of real numbers by half a picosecond for each rounded length, and so do the sums behind
 * the hull. With n lengths, one for each op with work, every schedule of time T and energy E therefore lies above the
 * hull's energy at T + n ps, less the energy of n ps at the highest power. (In the dual: at each price on time, both
 * sides are off by n ps x (power + price).) */
long double fl_oracle_work_bound(const fl_oracle_work *work, int m, int64_t limit_ps, fl_wide *fj) {
    const int64_t n = work->worked < INT64_MAX / 4 ? (int64_t)work->worked : INT64_MAX / 4;
    const long double off = (long double)n * (long double)work->most_mw;
    const fl_work_vertex *end = &work->vertex[work->steps];
    int64_t last_ps = limit_ps < INT64_MAX / 2 ? limit_ps + n : INT64_MAX / 2;
    last_ps = last_ps > end->ps ? end->ps : last_ps < work->vertex[0].ps ? work->vertex[0].ps : last_ps;
    const long double at_last = hull_at(work, last_ps), least = at_last * (1 - ROUNDING) - off;
    *fj = least > 0 ? (fl_wide)least : 0;
    if (!m)
        return least > 0 ? floorl(least) : 0;
    long double f = at_last * (m == 2 ? (long double)last_ps : 1) * (long double)last_ps;
    for (size_t k = 0; k <= work->steps && work->vertex[k].ps <= last_ps; k++) {
        const long double here = fl_product(m, work->vertex[k].fj, work->vertex[k].ps);
        f = here < f ? here : f;
    }
    /* T^m is off by at most m n / T, E by `off` */
    const long double share = m * (long double)n / fmaxl((long double)work->vertex[0].ps, 1) +
                              off / fmaxl((long double)end->fj, 1) + ROUNDING;
    return share < 1 ? f * (1 - share) : 0;
}

/* ---- the changes of clock that carry it out ---- */

typedef struct writer {
    fl_oracle_change *change; /* NULL: counted only */
    size_t count;
    int64_t at_ps;
    uint32_t now;
} writer;

static void run_at(writer *to, uint32_t choice, int64_t ps) {
    if (!to->count || to->now != choice) {
        if (to->change)
            to->change[to->count] = (fl_oracle_change){to->at_ps, choice};
        to->count++;
        to->now = choice;
    }
    to->at_ps += ps;
}

static void run_op(const fl_oracle_work *work, const fl_work_plan *plan, uint64_t i, const uint32_t *item_choice,
                   writer *to) {
    int64_t gap_ns, work_ns;
    uint32_t class_id;
    fl_workload_op(work->s, i, &gap_ns, &work_ns, &class_id);
    if (gap_ns > 0)
        run_at(to, item_choice[work->items - 1], gap_ns * FL_PS_PER_NS);
    if (work_ns <= 0)
        return;
    uint32_t choice = item_choice[work->item_of[class_id]];
    if (plan->divided && work->item_of[class_id] == work->step[plan->steps].item && i <= plan->op) {
        const uint32_t slow = work->point[work->step[plan->steps].point + 1].choice;
        if (i == plan->op) {
            const int64_t slow_ps = fl_length_ps(work_ns, work->at[slow]->row[class_id].mul),
                          fast_ps = fl_length_ps(work_ns, work->at[choice]->row[class_id].mul);
            if (plan->slow_ps > 0)
                run_at(to, slow, plan->slow_ps);
            run_at(to, choice, fl_rescale_ps(slow_ps - plan->slow_ps, slow_ps, fast_ps));
            return;
        }
        choice = slow;
    }
    run_at(to, choice, fl_length_ps(work_ns, work->at[choice]->row[class_id].mul));
}

fl_status fl_oracle_work_changes(const fl_oracle_work *work, const fl_work_plan *plan, fl_oracle_change *change,
                                 size_t *count, fl_diag *d) {
    uint32_t *item_choice = malloc((work->items + 1) * sizeof *item_choice);
    size_t *point = malloc((work->items + 1) * sizeof *point);
    writer to = {.change = change};
    const bool ok = item_choice && point;
    for (size_t i = 0; ok && i < work->items; i++)
        point[i] = work->first[i];
    for (size_t k = 0; ok && k < plan->steps; k++)
        point[work->step[k].item]++;
    for (size_t i = 0; ok && i < work->items; i++)
        item_choice[i] = plan->same < work->choices ? (uint32_t)plan->same : work->point[point[i]].choice;
    for (uint64_t i = 0; ok && i < work->s->count; i++)
        run_op(work, plan, i, item_choice, &to);
    free(item_choice);
    free(point);
    *count = to.count;
    return ok ? FL_OK : fl_no_memory(d, "the oracle");
}
