#include "sim/prefix_walk.h"

#include "sim/scan_inside.h"

static inline __attribute__((always_inline)) void walk_by(fl_prefix_place *at, uint64_t stop, uint64_t t_ps,
                                                          const fl_prefix_depth depth) {
    const fl_prefix *p = at->table;
    const fl_row *row = p->rates->row;
    const fl_row_parts *parts = p->rates->parts;
    fl_prefix_sums add = {0};
    uint64_t i = at->op, t = at->sums.t_ps;
    for (; i < stop; i++) {
        int64_t gap_ps;
        uint32_t class_id;
        const uint64_t length = (uint64_t)fl_prefix_op(p, i, &gap_ps, &class_id);
        const fl_row *k = &row[class_id];
        if ((uint64_t)gap_ps + length > t_ps - t)
            break;
        t += (uint64_t)gap_ps + length;
        add.busy_ps += length;
        if (depth == FL_PREFIX_BUSY)
            continue;
        add.dyn_fj += length * (uint64_t)(int64_t)k->dyn_mw;
        add.memory += length * k->memory;
        add.sm_fj += length * (uint64_t)(int64_t)parts[class_id].sm_mw;
        add.memory_fj += length * (uint64_t)(int64_t)parts[class_id].memory_mw;
        add.alu += depth == FL_PREFIX_PROFILE ? length * k->alu : 0;
        add.sms += depth == FL_PREFIX_PROFILE ? length * k->sms : 0;
    }
    add.t_ps = t - at->sums.t_ps;
    fl_prefix_add(at, i, &add);
}

void fl_prefix_walk_one(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth) {
    if (depth == FL_PREFIX_BUSY)
        walk_by(at, stop, t_ps, FL_PREFIX_BUSY);
    else if (depth == FL_PREFIX_ENERGY)
        walk_by(at, stop, t_ps, FL_PREFIX_ENERGY);
    else
        walk_by(at, stop, t_ps, FL_PREFIX_PROFILE);
}

bool fl_prefix_walks_eight(void) {
#if FL_SCAN_X86
    return fl_scan_vector() == fl_scan_avx512;
#else
    return false;
#endif
}

void fl_prefix_walk(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth) {
#if FL_SCAN_X86
    if (at->op + 8 <= stop && fl_prefix_walks_eight() && fl_prefix_walk_eight(at, stop, t_ps, depth))
        return;
#endif
    fl_prefix_walk_one(at, stop, t_ps, depth);
}
