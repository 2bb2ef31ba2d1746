#include "sim/oracle/ops.h"

#include "sim/oracle/lengths.h"
#include "sim/gpu/work.h"

#include <stdlib.h>

fl_status fl_op_block_open(fl_op_block *b, const fl_workload *w, fl_diag *d) {
    *b = (fl_op_block){.w = w};
    b->class_id = malloc(FL_OP_BLOCK_MAX * sizeof *b->class_id);
    b->first = malloc((FL_OP_BLOCK_MAX + 2) * sizeof *b->first);
    b->low = malloc(FL_OP_BLOCK_MAX * sizeof *b->low);
    b->work_ns = malloc(FL_OP_BLOCK_MAX * sizeof *b->work_ns);
    b->of = malloc(FL_OP_BLOCK_MAX * sizeof *b->of);
    b->place = calloc(w->class_count + 1, sizeof *b->place);
    if (b->class_id && b->first && b->low && b->work_ns && b->of && b->place)
        return FL_OK;
    fl_op_block_close(b);
    return fl_no_memory(d, "the oracle");
}

void fl_op_block_close(fl_op_block *b) {
    free(b->class_id);
    free(b->first);
    free(b->low);
    free(b->work_ns);
    free(b->of);
    free(b->place);
    free(b->big);
    *b = (fl_op_block){0};
}

static void sort_by_class(fl_op_block *b, const fl_stream *s, uint64_t first, size_t count) {
    size_t *at = b->first + 1; /* of class k: first counts, then the place of its next op, then its end */
    for (size_t k = 0, sum = 0; k < b->class_count; k++) {
        size_t ops = at[k];
        at[k] = sum;
        sum += ops;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, first + i, &gap_ns, &work_ns, &class_id);
        if (work_ns <= UINT32_MAX)
            b->low[at[b->of[i]]++] = (uint16_t)work_ns;
    }
    b->first[0] = 0;
}

fl_status fl_op_block_fill(fl_op_block *b, const fl_stream *s, uint64_t first, uint64_t end, fl_diag *d) {
    size_t count = (size_t)(end - first);
    for (size_t k = 0; k < b->class_count; k++)
        b->place[b->class_id[k]] = 0;
    b->class_count = b->big_count = 0;
    b->gap_ps = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, first + i, &gap_ns, &work_ns, &class_id);
        b->gap_ps += (fl_wide)gap_ns * FL_PS_PER_NS;
        if (!b->place[class_id]) {
            b->class_id[b->class_count] = class_id;
            b->place[class_id] = (uint32_t)++b->class_count;
            b->first[b->class_count] = 0;
            b->work_ns[b->class_count - 1] = 0;
        }
        b->of[i] = b->place[class_id] - 1;
        if (work_ns <= UINT32_MAX) {
            b->first[b->of[i] + 1]++;
            b->work_ns[b->of[i]] += (uint64_t)work_ns;
            continue;
        }
        if (fl_grow(&b->big, &b->big_room, b->big_count + 1, sizeof *b->big))
            return fl_no_memory(d, "the oracle");
        b->big[b->big_count++] = (fl_big){work_ns, gap_ns, class_id};
    }
    sort_by_class(b, s, first, count);
    return FL_OK;
}

fl_wide fl_op_block_length_ps(const fl_op_block *b, size_t k, uint32_t mul) {
    fl_wide all = (fl_wide)fl_lengths_ps(b->low + b->first[k], b->first[k + 1] - b->first[k], b->work_ns[k], mul);
    for (size_t i = 0; i < b->big_count; i++)
        if (b->big[i].class_id == b->class_id[k])
            all += fl_length_ps(b->big[i].work_ns, mul);
    return all;
}
