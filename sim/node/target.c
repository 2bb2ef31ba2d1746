/* A power target over time, and how well a run followed it. */
#include "sim/node/inside.h"

#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "traces/io/records.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The row that holds at t_ns; SIZE_MAX: none does yet. */
static size_t row_at(const fl_target *t, int64_t t_ns) {
    size_t from = 0, to = t->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (t->t_ns[middle] <= t_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return from - 1;
}

double fl_target_at(const fl_target *t, int64_t t_ns) {
    const size_t row = t ? row_at(t, t_ns) : SIZE_MAX;
    return row == SIZE_MAX ? (double)NAN : t->watts[row];
}

/* The mean from `from` to `to`; NAN where there is no target at `from`. */
static double mean_of(const fl_target *t, int64_t from, int64_t to) {
    size_t row = row_at(t, from);
    double sum = 0;
    if (row == SIZE_MAX)
        return NAN;
    for (int64_t at = from; at < to; row++) {
        const int64_t end = row + 1 < t->count && t->t_ns[row + 1] < to ? t->t_ns[row + 1] : to;
        sum += t->watts[row] * (double)(end - at);
        at = end;
    }
    return sum / (double)(to - from);
}

#define WINDOW_PS (FL_TARGET_WINDOW_NS * FL_PS_PER_NS)

void fl_follow_open(fl_follow *f, const fl_target *target) {
    *f = (fl_follow){.target = target, .next_ps = target ? WINDOW_PS : FL_TIME_NEVER};
}

void fl_follow_look(fl_follow *f, const fl_node *node, int64_t began_ps) {
    const int64_t now = fl_node_now(node), before = now - WINDOW_PS;
    fl_wide fj = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(node); i++)
        fj += fl_node_gpu(node, i)->sums.energy_fj;
    const double watts = (double)(fj - f->energy_fj) / (double)WINDOW_PS * 1e-3;
    f->energy_fj = fj;
    f->next_ps = now + WINDOW_PS;
    if (before < began_ps + FL_TARGET_AFTER_NS * FL_PS_PER_NS)
        return;
    const double want = mean_of(f->target, (before - began_ps) / FL_PS_PER_NS, (now - began_ps) / FL_PS_PER_NS);
    if (isnan(want))
        return;
    f->windows++;
    f->error_w += fabs(watts - want);
    f->above += watts > want;
}

void fl_follow_end(const fl_follow *f, fl_run_result *r) {
    r->target_error_w = f->windows ? f->error_w / (double)f->windows : (double)NAN;
    r->target_above_pct = f->windows ? 100 * (double)f->above / (double)f->windows : (double)NAN;
}
