/* Kernel records behind a scan. The loops over whole ops charge many at a time, and a kernel record is only two more
 * instants of each. So a second pass over what they took finds these, and no loop has to know of records. */
#include "sim/advance/scan_inside.h"

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
