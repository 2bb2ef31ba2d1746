/* The host threads of a trace: launches and synchronisations in the order of their host times. */
#include "sim/workload/build_inside.h"

#include <stdlib.h>
#include <string.h>

static int64_t host_time(const fl_trace_op *op) { return op->type == FL_OP_SYNC ? op->start_ns : op->launch_ns; }

static int by_host(const void *pa, const void *pb, void *user) {
    const fl_trace_op *ops = user;
    uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
    const fl_trace_op *a = &ops[ia], *b = &ops[ib];
    if (a->host_thread != b->host_thread)
        return a->host_thread < b->host_thread ? -1 : 1;
    if (host_time(a) != host_time(b))
        return host_time(a) < host_time(b) ? -1 : 1;
    return ia < ib ? -1 : 1;
}

/* launched: by stream, the op that this thread launched last there, FL_NONE if none. */
static fl_status add_sync(fl_builder *b, uint32_t thread, uint32_t i, int64_t *now, const uint32_t *launched,
                          fl_diag *d) {
    const fl_trace_op *ops = b->t->ops, *op = &ops[i];
    int64_t over = op->start_ns;
    for (uint32_t j = 0; j < op->waits_count; j++)
        over = fl_builder_later(over, ops[b->t->waits[op->waits_first + j]].end_ns);
    for (uint32_t k = 0; !op->waits_count && k < b->w->stream_count; k++)
        if (launched[k] != FL_NONE)
            over = fl_builder_later(over, ops[launched[k]].end_ns);
    fl_item item = {.type = FL_ITEM_SYNC,
                    .host_ns = op->start_ns > *now ? op->start_ns - *now : 0,
                    .after_ns = op->end_ns > over ? op->end_ns - over : 0};
    fl_status s = fl_workload_add_item(b->w, thread, &item, d);
    for (uint32_t j = 0; !s && j < op->waits_count; j++) {
        uint32_t on = b->t->waits[op->waits_first + j];
        if (b->stream[on] != FL_NONE)
            s = fl_workload_add_sync_wait(b->w, thread, (fl_wait){b->stream[on], b->place[on] + 1}, d);
    }
    for (uint32_t k = 0; !s && !op->waits_count && k < b->w->stream_count; k++)
        if (launched[k] != FL_NONE)
            s = fl_workload_add_sync_wait(b->w, thread, (fl_wait){k, b->place[launched[k]] + 1}, d);
    *now = fl_builder_later(*now, op->end_ns);
    return s;
}

fl_status fl_builder_threads(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = 0;
    for (uint32_t i = 0; i < b->t->op_count; i++)
        if (ops[i].launch_ns != INT64_MIN || ops[i].type == FL_OP_SYNC)
            b->order[n++] = i;
    qsort_r(b->order, n, sizeof *b->order, by_host, (void *)(uintptr_t)ops);
    uint32_t *launched = malloc((b->w->stream_count + 1) * sizeof *launched);
    if (!launched)
        return fl_no_memory(d, "the workload");
    fl_status s = FL_OK;
    uint32_t thread = FL_NONE;
    int64_t now = 0;
    for (size_t k = 0; !s && k < n; k++) {
        uint32_t i = b->order[k];
        if (!k || ops[b->order[k - 1]].host_thread != ops[i].host_thread) {
            s = fl_workload_add_thread(b->w, ops[i].host_thread, &thread, d);
            memset(launched, 0xff, b->w->stream_count * sizeof *launched); /* FL_NONE */
            now = b->origin_ns;
        }
        if (s)
            break;
        if (ops[i].type == FL_OP_SYNC) {
            s = add_sync(b, thread, i, &now, launched, d);
            continue;
        }
        uint32_t phases;
        (void)fl_builder_rows(b, &ops[i], &phases);
        fl_item item = {.type = FL_ITEM_LAUNCH,
                        .parts = phases - 1,
                        .host_ns = ops[i].launch_ns > now ? ops[i].launch_ns - now : 0,
                        .stream = b->stream[i]};
        s = fl_workload_add_item(b->w, thread, &item, d);
        now = fl_builder_later(now, ops[i].launch_ns);
        launched[b->stream[i]] = i;
    }
    free(launched);
    return s;
}
