/* Whether two workloads are the same to a run: field by field, as arrays and their holes may lie anywhere. */
#pragma once

#include "sim/workload/workload.h"

#include <string.h>

static inline bool fl_same_waits(const fl_wait *a, size_t n, const fl_wait *b, size_t m) {
    bool same = n == m;
    for (size_t i = 0; same && i < n; i++)
        same = a[i].stream == b[i].stream && a[i].done == b[i].done;
    return same;
}

static inline bool fl_same_stream(const fl_stream *a, const fl_stream *b) {
    bool same = a->gpu == b->gpu && a->process == b->process && a->id == b->id && a->count == b->count &&
                a->launched == b->launched && a->other == b->other && a->iterations == b->iterations &&
                a->work_ns == b->work_ns && a->span_ns == b->span_ns && a->mark_count == b->mark_count &&
                !memcmp(a->mark, b->mark, a->mark_count * sizeof *a->mark) && !a->wait_first == !b->wait_first &&
                fl_same_waits(a->wait, a->wait_count, b->wait, b->wait_count);
    for (uint64_t i = 0; same && i < a->count; i++) {
        int64_t gap[2], work[2];
        uint32_t class_id[2];
        fl_workload_op(a, i, &gap[0], &work[0], &class_id[0]);
        fl_workload_op(b, i, &gap[1], &work[1], &class_id[1]);
        same = gap[0] == gap[1] && work[0] == work[1] && class_id[0] == class_id[1] &&
               (!a->wait_first || a->wait_first[i + 1] == b->wait_first[i + 1]);
    }
    return same;
}

static inline bool fl_same_thread(const fl_thread *a, const fl_thread *b) {
    bool same = a->id == b->id && a->count == b->count && fl_same_waits(a->wait, a->wait_count, b->wait, b->wait_count);
    for (size_t i = 0; same && i < a->count; i++) {
        const fl_item *x = &a->item[i], *y = &b->item[i];
        same = x->host_ns == y->host_ns && x->after_ns == y->after_ns && x->type == y->type && x->parts == y->parts &&
               x->wait_first == y->wait_first && x->wait_count == y->wait_count && x->load == y->load &&
               (x->type != FL_ITEM_LAUNCH || x->stream == y->stream);
    }
    return same;
}

static inline bool fl_same_classes(const fl_workload *a, const fl_workload *b) {
    bool same = a->class_count == b->class_count;
    for (uint32_t i = 0; same && i < a->class_count; i++) {
        const fl_class *x = &a->class[i], *y = &b->class[i];
        same = !memcmp(&x->load, &y->load, sizeof x->load) && !strcmp(x->kind.name, y->kind.name) &&
               !memcmp(x->kind.grid, y->kind.grid, sizeof x->kind.grid) && x->copy == y->copy &&
               x->iteration == y->iteration && x->part == y->part && x->host == y->host;
    }
    return same;
}

static inline bool fl_same_workload(const fl_workload *a, const fl_workload *b) {
    bool same = !strcmp(a->name, b->name) && fl_same_classes(a, b) && a->stream_count == b->stream_count &&
                a->thread_count == b->thread_count && a->island_count == b->island_count &&
                a->gpu_count == b->gpu_count && a->op_count == b->op_count && a->barriers == b->barriers &&
                a->gaps_are_host == b->gaps_are_host && a->assumed == b->assumed && a->untangled == b->untangled &&
                a->launch_queue == b->launch_queue && a->host_load_count == b->host_load_count;
    for (uint32_t i = 0; same && i < a->stream_count; i++)
        same = fl_same_stream(&a->stream[i], &b->stream[i]);
    for (uint32_t i = 0; same && i < a->thread_count; i++)
        same = fl_same_thread(&a->thread[i], &b->thread[i]);
    return same;
}
