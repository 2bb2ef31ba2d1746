/* The ops of a trace in the order of their streams, without a sort wherever they stand in that order already: as a rule
 * they do, as a profiler writes them by their start. */
#include "sim/workload/build_inside.h"

#include <stdlib.h>
#include <string.h>

typedef struct lane { /* one stream of the trace */
    int32_t device, process, stream;
    uint32_t count, first, last; /* ops; place of its first in the order; op seen last */
    bool unordered;
} lane;

typedef struct lanes {
    lane *item; /* ascending by device, process, stream */
    size_t count, room;
} lanes;

static int by_stream(const lane *a, const fl_trace_op *op) {
    if (a->device != op->device)
        return a->device < op->device ? -1 : 1;
    if (a->process != op->process)
        return a->process < op->process ? -1 : 1;
    return a->stream < op->stream ? -1 : a->stream > op->stream;
}

static size_t lower_bound(const lanes *l, const fl_trace_op *op) {
    size_t from = 0, to = l->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (by_stream(&l->item[middle], op) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The lane of an op, usually that of the op before. */
static lane *lane_of(lanes *l, const fl_trace_op *op, size_t *at) {
    if (*at < l->count && !by_stream(&l->item[*at], op))
        return &l->item[*at];
    *at = lower_bound(l, op);
    return *at < l->count && !by_stream(&l->item[*at], op) ? &l->item[*at] : NULL;
}

static lane *add_lane(lanes *l, const fl_trace_op *op, size_t at) {
    if (fl_grow(&l->item, &l->room, l->count + 1, sizeof *l->item))
        return NULL;
    memmove(l->item + at + 1, l->item + at, (l->count++ - at) * sizeof *l->item);
    l->item[at] = (lane){.device = op->device, .process = op->process, .stream = op->stream};
    return &l->item[at];
}

static int by_time(const void *pa, const void *pb, void *user) {
    const fl_trace_op *ops = user;
    uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
    const fl_trace_op *a = &ops[ia], *b = &ops[ib];
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return ia < ib ? -1 : 1;
}

static bool later(const fl_trace_op *a, const fl_trace_op *b) {
    return a->start_ns > b->start_ns || (a->start_ns == b->start_ns && a->end_ns > b->end_ns);
}

static fl_status find_lanes(const fl_builder *b, lanes *l, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t at = 0;
    for (uint32_t i = 0; i < b->t->op_count; i++) {
        if (ops[i].type == FL_OP_SYNC)
            continue;
        lane *x = lane_of(l, &ops[i], &at);
        if (!x && !(x = add_lane(l, &ops[i], at)))
            return fl_no_memory(d, "the workload");
        x->unordered |= x->count && later(&ops[x->last], &ops[i]);
        x->count++;
        x->last = i;
    }
    return FL_OK;
}

fl_status fl_builder_order(fl_builder *b, size_t *count, fl_diag *d) {
    lanes l = {0};
    size_t at = 0;
    fl_status s = find_lanes(b, &l, d);
    *count = 0;
    for (size_t i = 0; !s && i < l.count; i++) {
        l.item[i].first = (uint32_t)*count;
        *count += l.item[i].count;
        l.item[i].count = 0;
    }
    for (uint32_t i = 0; !s && i < b->t->op_count; i++)
        if (b->t->ops[i].type != FL_OP_SYNC) {
            lane *x = lane_of(&l, &b->t->ops[i], &at);
            b->order[x->first + x->count++] = i;
        }
    for (size_t i = 0; !s && i < l.count; i++)
        if (l.item[i].unordered)
            qsort_r(b->order + l.item[i].first, l.item[i].count, sizeof *b->order, by_time,
                    (void *)(uintptr_t)b->t->ops);
    free(l.item);
    return s;
}
