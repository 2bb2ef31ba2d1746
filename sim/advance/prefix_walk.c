#include "sim/advance/prefix_walk.h"

#include "sim/advance/scan_inside.h"

static inline __attribute__((always_inline)) void walk_by(fl_prefix_place *at, uint64_t stop, uint64_t t_ps,
                                                          const fl_prefix_depth depth) {
    fl_prefix_place place = *at;
    while (place.op < stop) {
        int64_t gap_ps;
        uint32_t class_id;
        const int64_t length_ps = fl_prefix_op(place.table, place.op, &gap_ps, &class_id);
        if ((uint64_t)(gap_ps + length_ps) > t_ps - place.sums.t_ps)
            break;
        fl_prefix_pass(&place, gap_ps, length_ps, class_id, depth);
    }
    *at = place;
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
