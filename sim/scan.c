/* A lone stream between two boundaries. Nothing can disturb it there, so it is one pass over the records. */
#include "sim/gpu.h"

static inline void charge(fl_gpu *g, const fl_row *row, uint32_t class_id, int64_t ps) {
    g->window.dyn_fj += ps * row->dyn_mw;
    g->window.memory += ps * row->memory;
    g->sums.busy_ps += row->resident ? ps : 0;
    g->slot[g->slot_now].class_ps[class_id] += ps;
}

static void finish(fl_gpu *g, fl_lane *l, int64_t t) {
    if (g->rates->row[l->class_id].resident) {
        g->sums.kernels++;
        if (g->records.on)
            fl_gpu_record(g, l, t);
    }
    l->next++;
    l->phase = FL_PHASE_FRESH;
    if (l->marks < l->s->mark_count && l->next == l->s->mark[l->marks])
        l->mark_ps[l->marks++] = t;
}

/* One op, or as much of it as fits: the way for ops that meet a boundary, need an escape, or are recorded. */
static int64_t step(fl_gpu *g, fl_lane *l, int64_t t, int64_t until) {
    if (l->phase == FL_PHASE_FRESH) {
        int64_t gap_ns, work_ns;
        fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &l->class_id);
        l->phase = FL_PHASE_GAP;
        l->left_ps = gap_ns * FL_PS_PER_NS;
        l->length_ps = work_ns; /* in ns until the kernel starts */
    }
    if (l->phase == FL_PHASE_GAP) {
        if (l->left_ps > until - t) {
            l->left_ps -= until - t;
            return until;
        }
        t += l->left_ps;
        l->phase = FL_PHASE_RUN;
        l->start_ps = t;
        l->left_ps = l->length_ps = fl_length_ps(l->length_ps, g->rates->row[l->class_id].mul);
    }
    int64_t run = l->left_ps <= until - t ? l->left_ps : until - t;
    charge(g, &g->rates->row[l->class_id], l->class_id, run);
    l->left_ps -= run;
    t += run;
    if (!l->left_ps)
        finish(g, l, t);
    return t;
}

/* Whole ops while they end by `until`. Sums live in registers; this is the loop that decides the speed of the
 * simulator, and multiplications are what limits it: `plain` (neither copies nor escapes in the stream) saves one of
 * five. */
static inline __attribute__((always_inline)) int64_t sweep(fl_gpu *restrict g, fl_lane *restrict l, int64_t t,
                                                           int64_t until, uint64_t stop, const bool plain) {
    const fl_rec *restrict rec = l->s->rec;
    const fl_row *restrict row = g->rates->row;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    int64_t dyn = 0, memory = 0, busy = 0;
    uint64_t i = l->next, kernels = 0;
    for (; i < stop; i++) {
        fl_rec r = rec[i];
        if (!plain && __builtin_expect(r.class_id == FL_REC_ESCAPE, 0))
            break;
        const fl_row *k = &row[r.class_id];
        int64_t length = (int64_t)(((uint64_t)r.work_ns * k->mul + (1u << 15)) >> 16);
        int64_t end = t + r.gap_ns * FL_PS_PER_NS + length;
        if (__builtin_expect(end > until, 0))
            break;
        t = end;
        dyn += length * k->dyn_mw;
        memory += length * k->memory;
        busy += plain || k->resident ? length : 0;
        kernels += plain ? 0 : k->resident;
        class_ps[r.class_id] += length;
    }
    g->window.dyn_fj += dyn;
    g->window.memory += memory;
    g->sums.busy_ps += busy;
    g->sums.kernels += plain ? i - l->next : kernels;
    l->next = i;
    return t;
}

int64_t fl_scan_advance(fl_gpu *g, fl_lane *l, int64_t until) {
    int64_t t = g->now_ps;
    while (l->next < l->s->count) {
        if (l->phase == FL_PHASE_FRESH && !g->records.on) {
            uint64_t stop = l->marks < l->s->mark_count ? l->s->mark[l->marks] : l->s->count;
            uint64_t from = l->next;
            t = l->s->big_count || l->s->other ? sweep(g, l, t, until, stop, false) : sweep(g, l, t, until, stop, true);
            if (l->next == stop && l->next > from && l->marks < l->s->mark_count) {
                l->mark_ps[l->marks++] = t;
                continue;
            }
        }
        if (l->next >= l->s->count)
            break;
        t = step(g, l, t, until);
        if (t >= until && l->phase != FL_PHASE_FRESH)
            return t; /* an op in progress met the boundary */
    }
    if (l->next >= l->s->count)
        l->phase = FL_PHASE_DONE;
    return t;
}

void fl_scan_rescale(fl_gpu *g, fl_lane *l, const fl_clock_rates *before) {
    if (l->phase != FL_PHASE_RUN)
        return;
    int64_t gap_ns, work_ns;
    uint32_t class_id;
    fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &class_id);
    int64_t was = fl_length_ps(work_ns, before->row[class_id].mul);
    l->length_ps = fl_length_ps(work_ns, g->rates->row[class_id].mul);
    l->left_ps = fl_rescale_ps(l->left_ps, was, l->length_ps);
}
