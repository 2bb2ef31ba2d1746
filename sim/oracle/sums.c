#include "sim/oracle/sums.h"

#include "sim/oracle/ops.h"

#include <stdlib.h>

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
