/* A kernel trace becomes a workload: ops sorted into their streams, gaps and launches recovered from the recorded
 * times. */
#include "sim/build_inside.h"

#include "sim/untangle.h"
#include "traces/kernels.h"
#include "traces/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
            return fl_refuse(d, "%s: kernels on more than %u devices, the platform %s has %u (see --gpus)", b->w->name,
                             b->node->gpu_count, b->node->name, b->node->gpu_count);
        b->device[b->device_count++] = b->t->ops[i].device;
    }
    qsort(b->device, b->device_count, sizeof *b->device, ascending);
    return FL_OK;
}

static fl_status head_clock(const fl_builder *b, const char *key, double *mhz, fl_diag *d) {
    const char *text = fl_head_get(&b->t->head, key);
    *mhz = 0;
    if (!text)
        return FL_OK;
    char *end;
    *mhz = strtod(text, &end);
    if (end == text || *end || !(*mhz > 0) || *mhz > 1e5)
        return fl_fail(d, FL_BAD_INPUT, b->w->name, 0, 0, "head: %s is '%s', expected a clock in MHz", key, text);
    return FL_OK;
}

/* ---- order ---- */

static int by_stream(const void *pa, const void *pb, void *user) {
    const fl_trace_op *ops = user;
    uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
    const fl_trace_op *a = &ops[ia], *b = &ops[ib];
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return ia < ib ? -1 : 1;
}

static fl_status sort_into_streams(fl_builder *b, fl_diag *d) {
    size_t n = 0;
    const fl_trace_op *ops = b->t->ops, *before = NULL;
    b->origin_ns = INT64_MAX;
    for (uint32_t i = 0; i < b->t->op_count; i++) {
        int64_t first =
            ops[i].launch_ns != INT64_MIN && ops[i].launch_ns < ops[i].start_ns ? ops[i].launch_ns : ops[i].start_ns;
        if (first < b->origin_ns)
            b->origin_ns = first;
        b->stream[i] = FL_NONE;
        if (ops[i].type != FL_OP_SYNC)
            b->order[n++] = i;
    }
    qsort_r(b->order, n, sizeof *b->order, by_stream, (void *)(uintptr_t)ops);
    uint32_t stream = FL_NONE;
    uint64_t place = 0;
    for (size_t k = 0; k < n; k++) {
        const fl_trace_op *op = &ops[b->order[k]];
        if (!before || before->device != op->device || before->process != op->process || before->stream != op->stream) {
            fl_status s =
                fl_workload_add_stream(b->w, fl_builder_gpu(b, op->device), op->process, op->stream, &stream, d);
            if (s)
                return s;
            place = 0;
        }
        b->stream[b->order[k]] = stream;
        uint32_t phases;
        (void)fl_builder_rows(b, op, &phases);
        place += phases;
        b->place[b->order[k]] = place - 1; /* of its last phase */
        before = op;
        fl_status s = fl_builder_class(b, op, &b->class_of_op[b->order[k]], d);
        if (s)
            return s;
    }
    return FL_OK;
}

/* ---- what kernels did while they shared ---- */

static fl_status untangle(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = b->t->op_count;
    fl_edge *edge = malloc((2 * n + 1) * sizeof *edge);
    double *work = calloc(n + 1, sizeof *work);
    fl_row *row = calloc(b->w->class_count + 1, sizeof *row);
    fl_status s = edge && work && row ? FL_OK : fl_no_memory(d, "the workload");
    const char *alone = fl_head_get(&b->t->head, "alone"); /* each program was recorded by itself: nothing to undo */
    const bool shared = !(alone && strcmp(alone, "1") == 0);
    for (uint32_t g = 0; !s && shared && g < b->device_count; g++) {
        for (uint32_t c = 0; !s && c < b->w->class_count; c++) {
            fl_row_parts parts;
            const fl_load *l = &b->w->class[c].load;
            fl_model_status m = fl_row_make(fl_builder_device(b, g), l, l->ref_sm_mhz, l->ref_mem_mhz, &row[c], &parts);
            if (m != FL_MODEL_OK)
                s = fl_error(d, m == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT,
                             "%s: kernel '%s' was recorded at %g MHz (memory %g MHz) on %s: %s", b->w->name,
                             b->w->class[c].kind.name, l->ref_sm_mhz, l->ref_mem_mhz, b->node->name, fl_model_text(m));
            if (b->w->class[c].copy || b->w->class[c].iteration)
                row[c].sms = 0;
        }
        size_t count = 0;
        for (uint32_t i = 0; i < n; i++)
            if (b->stream[i] != FL_NONE && ops[i].device == b->device[g] && ops[i].end_ns > ops[i].start_ns) {
                edge[count++] = (fl_edge){ops[i].start_ns, i, false};
                edge[count++] = (fl_edge){ops[i].end_ns, i, true};
            }
        if (!s)
            s = fl_untangle(edge, count, b->class_of_op, row, work, fl_gpu_interference(fl_builder_device(b, g)),
                            &b->w->untangled, d);
    }
    for (size_t i = 0; !s && i < n; i++)
        b->work_ns[i] = b->w->untangled ? (int64_t)(work[i] + 0.5) : ops[i].end_ns - ops[i].start_ns;
    free(edge);
    free(work);
    free(row);
    return s;
}

/* ---- ops, with the gap between the moment each could start and its start ---- */

static fl_status add_ops(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = 0;
    for (size_t i = 0; i < b->t->op_count; i++)
        n += b->stream[i] != FL_NONE;
    for (size_t k = 0; k < n; k++) {
        uint32_t i = b->order[k];
        const fl_trace_op *op = &ops[i];
        bool first = !k || b->stream[b->order[k - 1]] != b->stream[i];
        bool launched = op->launch_ns != INT64_MIN;
        if (!first && launched != (ops[b->order[k - 1]].launch_ns != INT64_MIN))
            return fl_refuse(d,
                             "%s: row %u has %s launch_ns, others of its stream have; expected all of a stream or none",
                             b->w->name, i, launched ? "a" : "no");
        int64_t ready = first ? b->origin_ns : ops[b->order[k - 1]].end_ns;
        for (uint32_t j = 0; j < op->waits_count; j++)
            ready = fl_builder_later(ready, ops[b->t->waits[op->waits_first + j]].end_ns);
        if (launched)
            ready = fl_builder_later(ready, op->launch_ns);
        uint32_t phases;
        const fl_kind_load *row = fl_builder_rows(b, op, &phases);
        int64_t left = b->work_ns[i], part = phases > 1 ? llround((double)b->work_ns[i] * row[0].phase) : b->work_ns[i];
        fl_status s = fl_workload_add_op(b->w, b->stream[i], op->start_ns > ready ? op->start_ns - ready : 0, part,
                                         b->class_of_op[i], d);
        for (uint32_t j = 0; !s && j < op->waits_count; j++) {
            uint32_t on = b->t->waits[op->waits_first + j];
            if (b->stream[on] != FL_NONE)
                s = fl_workload_add_wait(b->w, b->stream[i], (fl_wait){b->stream[on], b->place[on] + 1}, d);
        }
        for (uint32_t p = 1; !s && p < phases; p++) {
            left -= part;
            part = p + 1 < phases ? llround((double)b->work_ns[i] * row[p].phase) : left;
            s = fl_workload_add_op(b->w, b->stream[i], 0, part < left ? part : left, b->class_of_op[i] + p, d);
        }
        if (s)
            return s;
    }
    return FL_OK;
}

/* What a fit wrote into the head of its kinds; NAN where nobody knows how wrong they are. */
static double head_error(const fl_kinds *kinds, const char *key) {
    const char *text = fl_head_get(&kinds->head, key);
    double pct;
    return text && fl_real_parse(text, &pct) == FL_NUMBER_OK && pct >= 0 ? pct : (double)NAN;
}

fl_status fl_build_trace(fl_workload **out, const char *name, const fl_kernel_trace *t, const fl_node_spec *node,
                         const fl_build_options *o, fl_diag *d) {
    fl_builder b = {.t = t, .node = node, .o = o};
    fl_status s = fl_workload_new(&b.w, name, d);
    if (s)
        return s;
    size_t n = t->op_count + 1;
    b.device = calloc(node->gpu_count + 1, sizeof *b.device);
    b.order = calloc(n, sizeof *b.order);
    b.stream = calloc(n, sizeof *b.stream);
    b.place = calloc(n, sizeof *b.place);
    b.class_of_op = calloc(n, sizeof *b.class_of_op);
    b.first_class = malloc((t->kind_count + 1) * sizeof *b.first_class);
    b.work_ns = calloc(n, sizeof *b.work_ns);
    b.rows = calloc(t->kind_count + 1, sizeof *b.rows);
    if (!b.device || !b.order || !b.stream || !b.place || !b.class_of_op || !b.first_class || !b.work_ns || !b.rows)
        s = fl_no_memory(d, "the workload");
    for (size_t i = 0; !s && i < t->kind_count; i++)
        b.first_class[i] = FL_NONE;
    if (!s)
        fl_builder_find_rows(&b);
    if (o->kinds) {
        b.w->model_time_mape_pct = head_error(o->kinds, "model_time_mape_pct");
        b.w->model_power_mape_pct = head_error(o->kinds, "model_power_mape_pct");
    }
    b.w->launch_queue = node->host.launch_queue ? node->host.launch_queue : 1024;
    b.w->gaps_are_host = !t->has_launches;
    if (!s)
        s = head_clock(&b, "cpu_mhz", &b.w->host_ref_mhz, d);
    if (!s && !(s = find_devices(&b, d)) && !(s = head_clock(&b, "sm_mhz", &b.sm_mhz, d)) &&
        !(s = head_clock(&b, "mem_mhz", &b.mem_mhz, d)) && !(s = sort_into_streams(&b, d)) && !(s = untangle(&b, d)) &&
        !(s = add_ops(&b, d)) && t->has_launches)
        s = fl_builder_threads(&b, d);
    if (!s)
        s = fl_workload_finish(b.w, o->windows, d);
    free(b.device);
    free(b.order);
    free(b.stream);
    free(b.place);
    free(b.class_of_op);
    free(b.first_class);
    free(b.link);
    free(b.work_ns);
    free(b.rows);
    if (s)
        fl_workload_free(b.w);
    else
        *out = b.w;
    return s;
}
