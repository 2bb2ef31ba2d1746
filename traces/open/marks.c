#include "traces/open/marks.h"

#include "traces/files/kernels.h"

#include <stdlib.h>

fl_status fl_trace_marks_add(fl_trace_marks *m, int64_t time_ns, int32_t device, int32_t process, fl_diag *d) {
    if (fl_grow(&m->mark, &m->room, m->count + 1, sizeof *m->mark))
        return fl_no_memory(d, "the markers");
    m->mark[m->count++] = (fl_trace_mark){time_ns, device, process};
    return FL_OK;
}

void fl_trace_marks_free(fl_trace_marks *m) {
    free(m->mark);
    *m = (fl_trace_marks){0};
}

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_lane(const void *a, const void *b) {
    const fl_trace_op *x = a, *y = b;
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    order = order ? order : three_way(x->stream, y->stream);
    return order ? order : three_way(x->start_ns, y->start_ns);
}

static int by_time(const void *a, const void *b) {
    const fl_trace_mark *x = a, *y = b;
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    return order ? order : three_way(x->time_ns, y->time_ns);
}

/* The longest run of one stream among the sorted ops of that device and process. */
static const fl_trace_op *busiest(const fl_trace_op *op, size_t count, int32_t device, int32_t process,
                                  size_t *length) {
    const fl_trace_op *best = NULL;
    *length = 0;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && op[next].device == op[i].device && op[next].process == op[i].process &&
                           op[next].stream == op[i].stream;)
            next++;
        if (op[i].device == device && op[i].process == process && next - i > *length) {
            best = &op[i];
            *length = next - i;
        }
    }
    return best;
}

/* The markers of one device and process into its busiest stream; both are sorted. */
static fl_status place_all(const fl_trace_mark *mark, size_t marks, const fl_trace_op *op, size_t ops, uint32_t kind,
                           fl_kernel_trace *t) {
    fl_status s = FL_OK;
    for (size_t i = 0, k = 0; !s && ops && i < marks; i++) {
        while (k < ops && op[k].start_ns < mark[i].time_ns)
            k++;
        const int64_t ended = k ? op[k - 1].end_ns : INT64_MIN, at = ended > mark[i].time_ns ? ended : mark[i].time_ns;
        s = fl_trace_add_op(t, &(fl_trace_op){.start_ns = at,
                                              .end_ns = at,
                                              .launch_ns = INT64_MIN,
                                              .bytes = -1,
                                              .kind = kind,
                                              .device = mark[i].device,
                                              .process = mark[i].process,
                                              .stream = op->stream,
                                              .host_thread = -1,
                                              .type = FL_OP_ITERATION});
    }
    return s;
}

fl_status fl_trace_marks_place(fl_trace_marks *m, fl_kernel_trace *t, fl_diag *d) {
    static const uint32_t NONE[3] = {0};
    if (!m->count)
        return FL_OK;
    const size_t ops = t->op_count;
    fl_trace_op *sorted = calloc(ops + 1, sizeof *sorted);
    const uint32_t kind = fl_trace_add_kind(t, "[iteration]", NONE, NONE);
    fl_status s = sorted && kind != UINT32_MAX ? FL_OK : FL_NO_MEMORY;
    for (size_t i = 0; !s && i < ops; i++)
        sorted[i] = t->ops[i];
    if (!s)
        qsort(sorted, ops, sizeof *sorted, by_lane);
    qsort(m->mark, m->count, sizeof *m->mark, by_time);
    for (size_t i = 0, next; !s && i < m->count; i = next) {
        const fl_trace_mark *first = &m->mark[i];
        size_t length;
        for (next = i + 1;
             next < m->count && m->mark[next].device == first->device && m->mark[next].process == first->process;)
            next++;
        const fl_trace_op *of = busiest(sorted, ops, first->device, first->process, &length);
        s = place_all(first, next - i, of, length, kind, t);
    }
    free(sorted);
    return s ? fl_no_memory(d, "the markers") : FL_OK;
}
