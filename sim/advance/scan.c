/* A lone stream between two boundaries. Nothing can disturb it there, so one pass over the records suffices. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kernel records behind a scan. The loops over whole ops charge many at a time, and a kernel record is only two more
 * instants of each. So a second pass over what they took finds these, and no loop has to know of records. */

void fl_scan_record(fl_lane *l, const fl_scan_place *begun, uint32_t gap_mul) {
    const fl_row *row = l->gpu->rates->row;
    fl_record_buffer *b = &l->gpu->records;
    if (l->next == begun->op)
        return;
    const size_t most = b->count + (size_t)(l->next - begun->op);
    if (fl_grow(&b->record, &b->room, most, sizeof *b->record)) {
        b->failed = true; /* as in fl_lane_record */
        return;
    }
    fl_kernel_record *record = b->record + b->count;
    int64_t t = begun->t, began_ps = l->began_ps;
    bool in_parts = begun->in_parts;
    for (uint64_t i = begun->op; i < l->next; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(l->s, i, &gap_ns, &work_ns, &class_id);
        t += (int64_t)(((uint64_t)gap_ns * gap_mul + (1u << 15)) >> 16);
        began_ps = in_parts ? began_ps : t;
        t += (int64_t)(((uint64_t)work_ns * row[class_id].mul + (1u << 15)) >> 16);
        in_parts = row[class_id].resident == FL_RESIDENT_PART;
        if (row[class_id].resident == FL_RESIDENT_KERNEL)
            *record++ = (fl_kernel_record){.start_ns = began_ps / FL_PS_PER_NS,
                                           .end_ns = t / FL_PS_PER_NS,
                                           .kind = class_id,
                                           .stream = (uint32_t)l->s->id,
                                           .gpu = l->gpu->index};
    }
    b->count = (size_t)(record - b->record);
    l->began_ps = began_ps;
}

/* ---- advancing by whole ops, and the op that meets a boundary ---- */

static void finish_op(fl_gpu *g, fl_lane *l, int64_t t) {
    const uint16_t resident = g->rates->row[l->class_id].resident;
    if (resident == FL_RESIDENT_KERNEL) {
        g->sums.kernels++;
        if (g->records.on)
            fl_lane_record(l, t);
    }
    l->in_parts = resident == FL_RESIDENT_PART;
    l->next++;
    l->phase = FL_PHASE_FRESH;
    if (l->marks < l->s->mark_count && l->next == l->s->mark[l->marks])
        l->mark_ps[l->marks++] = t;
}

/* One op, or as much of it as fits. This is the way for ops that meet a boundary, need more than 32 bits, or may leave
 * the GPU idle until it is power-gated. */
static int64_t advance_op(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, uint32_t gap_mul) {
    if (l->phase == FL_PHASE_FRESH) {
        int64_t gap_ns, work_ns;
        fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &l->class_id);
        l->phase = FL_PHASE_GAP;
        l->p.left_ps = fl_length_ps(gap_ns, gap_mul);
        l->length_ps = work_ns; /* in ns until the kernel starts */
    }
    if (l->phase == FL_PHASE_GAP) {
        if (l->p.left_ps > until - t) {
            l->p.left_ps -= until - t;
            return until;
        }
        t += l->p.left_ps;
        l->phase = FL_PHASE_RUN;
        l->p.start_ps = t;
        if (!l->in_parts)
            l->began_ps = t;
        l->p.left_ps = l->length_ps = fl_length_ps(l->length_ps, g->rates->row[l->class_id].mul);
        fl_gpu_wake(g, t);
    }
    int64_t run = l->p.left_ps <= until - t ? l->p.left_ps : until - t;
    fl_gpu_charge(g, l->class_id, run);
    g->sums.busy_ps += g->rates->row[l->class_id].resident ? run : 0;
    l->p.left_ps -= run;
    l->worked_ps += run;
    t += run;
    if (!l->p.left_ps) {
        finish_op(g, l, t);
        fl_gpu_rest(g, t);
    }
    return t;
}

int64_t fl_scan_advance(fl_gpu *g, fl_lane *l, int64_t until, uint32_t gap_mul) {
    fl_scan_ops *const vector = fl_path_may(g->path, FL_PATH_VECTOR) ? fl_scan_vector() : NULL;
    fl_scan_ops *const whole_ops = vector ? vector : fl_scan_plain;
    g->taken[FL_PATH_VECTOR] += vector != NULL;
    int64_t t = g->now_ps;
    const bool sums = fl_prefix_applies(g, l, gap_mul);
    while (l->next < l->s->count) {
        bool met = false;
        if (sums && l->phase == FL_PHASE_FRESH)
            t = fl_prefix_advance(g, l, t, until, &met);
        if (!met && l->phase == FL_PHASE_FRESH && !g->gate_ps) {
            uint64_t stop = l->marks < l->s->mark_count ? l->s->mark[l->marks] : l->s->count;
            uint64_t from = l->next;
            const fl_scan_place begun = {.op = from, .t = t, .in_parts = l->in_parts};
            t = whole_ops(g, l, t, until, stop, gap_mul);
            if (g->records.on)
                fl_scan_record(l, &begun, gap_mul);
            if (l->next == stop && l->next > from && l->marks < l->s->mark_count) {
                l->mark_ps[l->marks++] = t;
                continue;
            }
        }
        if (l->next >= l->s->count)
            break;
        t = advance_op(g, l, t, until, gap_mul);
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
    l->p.left_ps = fl_rescale_ps(l->p.left_ps, was, l->length_ps);
}

void fl_scan_rescale_host(fl_lane *l, uint32_t mul_before, uint32_t mul_after) {
    if (l->phase != FL_PHASE_GAP || mul_before == mul_after)
        return;
    int64_t gap_ns, work_ns;
    uint32_t class_id;
    fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &class_id);
    l->p.left_ps = fl_rescale_ps(l->p.left_ps, fl_length_ps(gap_ns, mul_before), fl_length_ps(gap_ns, mul_after));
}
