/* The plain loop of a scan over whole ops, which defines its twins in vector registers, and the choice of the fastest
 * loop of this CPU. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whole ops of a lone stream, one after the other; the vector loops do the same with several ops at a time. */

/* Takes whole ops while they end by `until`. Sums live in registers. Multiplications cost most. Three cases save some:
 * a stream of kernels alone (`other` is false), a host clock that leaves gaps as recorded (`scaled` is false), and a
 * GPU whose profile no one reads (`deep` is false). */
static inline __attribute__((always_inline)) int64_t sweep(fl_gpu *restrict g, fl_lane *restrict l, int64_t t,
                                                           int64_t until, uint64_t stop, uint32_t gap_mul,
                                                           const bool other, const bool scaled, const bool deep) {
    const fl_row *restrict row = g->rates->row;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    fl_scan_sums sum = {0};
    uint64_t i = l->next;
    for (; i < stop; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(l->s, i, &gap_ns, &work_ns, &class_id);
        if (__builtin_expect(((uint64_t)gap_ns | (uint64_t)work_ns) > UINT32_MAX, 0))
            break;
        const fl_row *k = &row[class_id];
        int64_t length = (int64_t)(((uint64_t)work_ns * k->mul + (1u << 15)) >> 16);
        int64_t gap = scaled ? (int64_t)(((uint64_t)gap_ns * gap_mul + (1u << 15)) >> 16) : gap_ns * FL_PS_PER_NS;
        int64_t end = t + gap + length;
        if (__builtin_expect(end > until, 0))
            break;
        t = end;
        class_ps[class_id] += length;
        sum.worked += length;
        sum.dyn_fj += length * k->dyn_mw;
        sum.memory += length * k->memory;
        sum.alu += deep ? length * k->alu : 0;
        sum.sms += deep ? length * k->sms : 0;
        sum.busy += other && !k->resident ? 0 : length;
        sum.kernels += !other || k->resident == FL_RESIDENT_KERNEL;
    }
    fl_scan_add(g, l, i, &sum);
    return t;
}

int64_t fl_scan_plain(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, uint64_t stop, uint32_t gap_mul) {
    if (l->s->other || g->profiled)
        return sweep(g, l, t, until, stop, gap_mul, true, true, true);
    return gap_mul == FL_MUL_ONE ? sweep(g, l, t, until, stop, gap_mul, false, false, false)
                                 : sweep(g, l, t, until, stop, gap_mul, false, true, false);
}
