/* Whether two kernel traces hold the same, to the last op, name and wait. */
#pragma once

#include "traces/io/records.h"

#include <string.h>

static inline bool fl_same_ops(const fl_kernel_trace *a, const fl_kernel_trace *b) {
    for (size_t i = 0; i < a->op_count; i++) {
        const fl_trace_op *x = &a->ops[i], *y = &b->ops[i];
        if (x->start_ns != y->start_ns || x->end_ns != y->end_ns || x->launch_ns != y->launch_ns ||
            x->bytes != y->bytes || x->kind != y->kind || x->device != y->device || x->process != y->process ||
            x->stream != y->stream || x->host_thread != y->host_thread || x->waits_count != y->waits_count ||
            x->waits_first != y->waits_first || x->sm_mhz != y->sm_mhz || x->type != y->type)
            return false;
    }
    return true;
}

static inline bool fl_same_trace(const fl_kernel_trace *a, const fl_kernel_trace *b) {
    if (a->head.count != b->head.count || a->name_count != b->name_count || a->kind_count != b->kind_count ||
        a->op_count != b->op_count || a->wait_count != b->wait_count || a->has_launches != b->has_launches)
        return false;
    for (size_t i = 0; i < a->head.count; i++)
        if (strcmp(a->head.entry[i].key, b->head.entry[i].key) != 0 ||
            strcmp(a->head.entry[i].value, b->head.entry[i].value) != 0)
            return false;
    for (size_t i = 0; i < a->name_count; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return memcmp(a->kinds, b->kinds, a->kind_count * sizeof *a->kinds) == 0 &&
           (a->wait_count == 0 || memcmp(a->waits, b->waits, a->wait_count * sizeof *a->waits) == 0) &&
           fl_same_ops(a, b);
}
