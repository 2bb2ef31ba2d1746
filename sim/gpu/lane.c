#include "sim/gpu/lane.h"

void fl_lane_record(const fl_lane *l, int64_t end_ps) {
    fl_record_buffer *b = &l->gpu->records;
    if (fl_grow(&b->record, &b->room, b->count + 1, sizeof *b->record)) {
        b->failed = true; /* the run reads this at its next boundary and stops */
        return;
    }
    b->record[b->count++] = (fl_kernel_record){.start_ns = l->began_ps / FL_PS_PER_NS,
                                               .end_ns = end_ps / FL_PS_PER_NS,
                                               .kind = l->class_id,
                                               .stream = (uint32_t)l->s->id,
                                               .gpu = l->gpu->index};
}
