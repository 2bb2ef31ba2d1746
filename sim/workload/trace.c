/* A workload of a kernel trace: order, gaps, and ops in their streams. */
#include "sim/workload/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The ops of a trace in the order of their streams, without a sort wherever they stand in that order already: as a rule
 * they do, as a profiler writes them by their start. */

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

/* A kernel trace becomes a workload: ops sorted into their streams, gaps and launches recovered from the recorded
 * times. */

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static fl_status find_devices(fl_builder *b, fl_diag *d) {
    for (size_t i = 0; i < b->t->op_count; i++) {
        uint32_t k = 0;
        while (k < b->device_count && b->device[k] != b->t->ops[i].device)
            k++;
        if (k < b->device_count)
            continue;
        if (b->device_count == b->node->gpu_count)
            return fl_builder_too_many(b, d);
        b->device[b->device_count++] = b->t->ops[i].device;
    }
    qsort(b->device, b->device_count, sizeof *b->device, ascending);
    return FL_OK;
}

/* ---- order of the ops ---- */

static void note_origin(fl_builder *b) {
    const fl_trace_op *ops = b->t->ops;
    b->origin_ns = INT64_MAX;
    for (uint32_t i = 0; i < b->t->op_count; i++) {
        const int64_t first =
            ops[i].launch_ns != INT64_MIN && ops[i].launch_ns < ops[i].start_ns ? ops[i].launch_ns : ops[i].start_ns;
        b->origin_ns = first < b->origin_ns ? first : b->origin_ns;
        b->stream[i] = FL_NONE;
    }
}

static fl_status sort_into_streams(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops, *before = NULL;
    note_origin(b);
    fl_status s = fl_builder_order(b, &b->ordered, d);
    uint32_t stream = FL_NONE;
    uint64_t place = 0;
    for (size_t k = 0; !s && k < b->ordered; k++) {
        const fl_trace_op *op = &ops[b->order[k]];
        if (!before || before->device != op->device || before->process != op->process || before->stream != op->stream) {
            s = fl_workload_add_stream(b->w, fl_builder_gpu(b, op->device), op->process, op->stream, &stream, d);
            if (s)
                return s;
            place = 0;
        }
        b->stream[b->order[k]] = stream;
        uint32_t phases;
        (void)fl_builder_rows(b, op, &phases);
        place += phases;
        if (b->place)
            b->place[b->order[k]] = place - 1; /* of its last phase */
        before = op;
        s = fl_builder_class(b, op, &b->class_of_op[b->order[k]], d);
    }
    return s;
}

/* ---- what kernels did while they shared ---- */

/* Whether two kernels of a GPU ran at once. In doubt, because a GPU's streams are not written by their start: yes. */
static bool overlaps(const fl_builder *b, uint32_t gpu) {
    const fl_trace_op *ops = b->t->ops;
    int64_t end_ns = INT64_MIN;
    for (size_t i = 0; i < b->t->op_count; i++) {
        if (ops[i].device != b->device[gpu] || b->stream[i] == FL_NONE || ops[i].end_ns <= ops[i].start_ns)
            continue;
        if (ops[i].start_ns < end_ns)
            return true;
        end_ns = ops[i].end_ns;
    }
    return false;
}

static fl_status untangle_gpu(fl_builder *b, uint32_t g, fl_edge *edge, double *work, const fl_row *row, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t count = 0;
    for (uint32_t i = 0; i < b->t->op_count; i++)
        if (b->stream[i] != FL_NONE && ops[i].device == b->device[g] && ops[i].end_ns > ops[i].start_ns) {
            edge[count++] = (fl_edge){ops[i].start_ns, i, false};
            edge[count++] = (fl_edge){ops[i].end_ns, i, true};
        }
    return fl_untangle(edge, count, b->class_of_op, row, work, fl_gpu_interference(fl_builder_device(b, g)),
                       &b->w->untangled, d);
}

/* A kernel that has the GPU to itself gets all that it asks for: nothing to undo where none ran at once. */
static fl_status untangle(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    const size_t n = b->t->op_count;
    const bool shared = fl_builder_shares(b);
    fl_row *row = calloc(b->w->class_count + 1, sizeof *row);
    fl_edge *edge = NULL;
    double *work = NULL;
    fl_status s = row ? FL_OK : fl_no_memory(d, "the workload");
    for (uint32_t g = 0; !s && shared && g < b->device_count; g++)
        b->overlap |= overlaps(b, g);
    if (!s && b->overlap &&
        (!(edge = malloc((2 * n + 1) * sizeof *edge)) || !(work = calloc(n + 1, sizeof *work)) ||
         !(b->work_ns = calloc(n + 1, sizeof *b->work_ns))))
        s = fl_no_memory(d, "the workload");
    for (uint32_t g = 0; !s && shared && g < b->device_count; g++) {
        s = fl_builder_demands(b, g, row, d);
        if (!s && b->overlap)
            s = untangle_gpu(b, g, edge, work, row, d);
    }
    for (size_t i = 0; !s && b->overlap && i < n; i++)
        b->work_ns[i] = b->w->untangled ? (int64_t)(work[i] + 0.5) : ops[i].end_ns - ops[i].start_ns;
    free(edge);
    free(work);
    free(row);
    return s;
}

/* ---- ops, with the gap between the moment each could start and its start ---- */

static fl_status add_ops(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    for (size_t k = 0; k < b->ordered; k++) {
        uint32_t i = b->order[k];
        const fl_trace_op *op = &ops[i];
        bool first = !k || b->stream[b->order[k - 1]] != b->stream[i];
        bool launched = op->launch_ns != INT64_MIN;
        int64_t ready = first ? b->origin_ns : ops[b->order[k - 1]].end_ns;
        for (uint32_t j = 0; j < op->waits_count; j++)
            ready = fl_builder_later(ready, ops[b->t->waits[op->waits_first + j]].end_ns);
        if (launched)
            ready = fl_builder_later(ready, op->launch_ns);
        uint32_t phases;
        const fl_kind_load *row = fl_builder_rows(b, op, &phases);
        const int64_t work = b->work_ns ? b->work_ns[i] : op->end_ns - op->start_ns;
        int64_t left = work, part = phases > 1 ? llround((double)work * row[0].phase) : work;
        fl_status s = fl_workload_add_op(b->w, b->stream[i], op->start_ns > ready ? op->start_ns - ready : 0, part,
                                         b->class_of_op[i], d);
        for (uint32_t j = 0; !s && j < op->waits_count; j++) {
            uint32_t on = b->t->waits[op->waits_first + j];
            if (b->stream[on] != FL_NONE)
                s = fl_workload_add_wait(b->w, b->stream[i], (fl_wait){b->stream[on], b->place[on] + 1}, d);
        }
        for (uint32_t p = 1; !s && p < phases; p++) {
            left -= part;
            part = p + 1 < phases ? llround((double)work * row[p].phase) : left;
            s = fl_workload_add_op(b->w, b->stream[i], 0, part < left ? part : left, b->class_of_op[i] + p, d);
        }
        if (s)
            return s;
    }
    return FL_OK;
}

static fl_status make_room(fl_builder *b, fl_diag *d) {
    const fl_kernel_trace *t = b->t;
    const size_t n = t->op_count + 1;
    b->order = malloc(n * sizeof *b->order);
    b->stream = malloc(n * sizeof *b->stream);
    b->class_of_op = calloc(n, sizeof *b->class_of_op);
    if (t->wait_count || t->has_launches)
        b->place = calloc(n, sizeof *b->place);
    return b->order && b->stream && b->class_of_op && (b->place || !(t->wait_count || t->has_launches))
               ? fl_builder_begin(b, d)
               : fl_no_memory(d, "the workload");
}

/* ---- one stream, one op after the other ---- */

/* The plainest trace has nothing to sort, wait for or untangle. */
static bool is_lone(const fl_kernel_trace *t) {
    const fl_trace_op *ops = t->ops;
    bool lone = t->op_count && !t->wait_count && !t->has_launches;
    for (size_t i = 0; lone && i < t->op_count; i++)
        lone = ops[i].type != FL_OP_SYNC && ops[i].device == ops->device && ops[i].process == ops->process &&
               ops[i].stream == ops->stream && ops[i].end_ns >= ops[i].start_ns &&
               (!i || ops[i].start_ns >= ops[i - 1].end_ns);
    return lone;
}

/* Without the tables by op, which at 12 bytes an op are more than the workload. */
static fl_status build_lone(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    int64_t end_ns = ops->start_ns;
    uint32_t stream;
    fl_status s = fl_workload_add_stream(b->w, fl_builder_gpu(b, ops->device), ops->process, ops->stream, &stream, d);
    for (size_t i = 0; !s && i < b->t->op_count; i++)
        s = fl_builder_append(b, stream, &ops[i], &end_ns, d);
    return s ? s : fl_builder_check_demands(b, d);
}

static fl_status build_any(fl_builder *b, fl_diag *d) {
    fl_status s = sort_into_streams(b, d);
    if (!s && !(s = untangle(b, d)) && !(s = add_ops(b, d)) && b->t->has_launches)
        s = fl_builder_threads(b, d);
    return s;
}

fl_status fl_build_trace(fl_workload **out, const char *name, const fl_kernel_trace *t, const fl_node_spec *node,
                         const fl_build_options *o, fl_diag *d) {
    fl_builder b = {.t = t, .node = node, .o = o};
    fl_status s = fl_workload_new(&b.w, name, d);
    if (s)
        return s;
    const bool lone = is_lone(t);
    s = lone ? fl_builder_begin(&b, d) : make_room(&b, d);
    if (!s)
        fl_builder_find_rows(&b, t->ops, t->op_count);
    if (!s && !(s = fl_builder_host_clock(&b, d)) && !(s = find_devices(&b, d)) && !(s = fl_builder_clocks(&b, d)))
        s = lone ? build_lone(&b, d) : build_any(&b, d);
    if (!s)
        s = fl_workload_finish(b.w, o->windows, d);
    fl_builder_end(&b);
    if (s)
        fl_workload_free(b.w);
    else
        *out = b.w;
    return s;
}
