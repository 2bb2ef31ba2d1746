/* Gathering the ops of a profiler's file: names, kinds, order, overlaps. */
#include "traces/profiler/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- one op ---- */

static bool same_kind(const void *owner, uint32_t index, const void *key) {
    return memcmp((const fl_trace_kind *)owner + index, key, sizeof(fl_trace_kind)) == 0;
}

static bool same_lane(const void *owner, uint32_t index, const void *key) {
    const fl_gather_lane *a = (const fl_gather_lane *)owner + index;
    const int32_t *k = key;
    return a->device == k[0] && a->process == k[1] && a->stream == k[2];
}

static bool is_plain(const char *name, size_t size) {
    unsigned bad = 0;
    for (size_t i = 0; i < size; i++)
        bad |= (unsigned char)name[i] < 0x20 || (unsigned char)name[i] > 0x7e;
    return !bad;
}

static bool printable(const char *name, size_t size) {
    for (size_t n; size; name += n, size -= n)
        if ((n = fl_utf8(name, size)) == 0)
            return false;
    return true;
}

static uint32_t intern(fl_gather *g, const char *name, size_t size) {
    fl_kernel_trace *t = &g->out->kernels;
    if (is_plain(name, size) || printable(name, size))
        return fl_intern_text(&g->names, &t->names, &t->name_count, &t->name_room, name, size);
    char *clean = malloc(size + 1);
    if (!clean)
        return UINT32_MAX;
    memcpy(clean, name, size);
    fl_printable(clean, size);
    g->renamed++;
    uint32_t index = fl_intern_text(&g->names, &t->names, &t->name_count, &t->name_room, clean, size);
    free(clean);
    return index;
}

/* Notes where the op's lane has come to, so that an ordered trace needs no sorting afterwards. */
static bool follow_lane(fl_gather *g, const fl_trace_op *op) {
    const int32_t key[3] = {op->device, op->process, op->stream};
    if (!g->lane_count || !same_lane(g->lane, (uint32_t)g->last_lane, key)) {
        fl_intern_slot *slot = fl_intern_find(&g->lanes, fl_hash(key, sizeof key), same_lane, g->lane, key);
        if (!slot)
            return false;
        if (slot->index == UINT32_MAX) {
            if (fl_grow(&g->lane, &g->lane_room, g->lane_count + 1, sizeof *g->lane))
                return false;
            g->lane[g->lane_count] = (fl_gather_lane){op->device, op->process, op->stream, 0};
            slot->index = (uint32_t)g->lane_count++;
        }
        g->last_lane = slot->index;
    }
    fl_gather_lane *at = &g->lane[g->last_lane];
    g->overlap = g->overlap || op->start_ns < at->end_ns;
    at->end_ns = op->end_ns > at->end_ns ? op->end_ns : at->end_ns;
    return true;
}

fl_status fl_gather_op(fl_gather *g, const char *name, size_t size, const uint32_t grid[3], const uint32_t block[3],
                       fl_trace_op *op, fl_diag *d) {
    fl_kernel_trace *t = &g->out->kernels;
    fl_trace_kind kind = {.name = intern(g, name, size)};
    if (kind.name == UINT32_MAX)
        return fl_no_memory(d, NULL);
    memcpy(kind.grid, grid, sizeof kind.grid);
    memcpy(kind.block, block, sizeof kind.block);
    fl_intern_slot *slot = fl_intern_find(&g->kinds, fl_hash(&kind, sizeof kind), same_kind, t->kinds, &kind);
    if (!slot)
        return fl_no_memory(d, NULL);
    if (slot->index == UINT32_MAX) {
        if (fl_grow(&t->kinds, &t->kind_room, t->kind_count + 1, sizeof kind))
            return fl_no_memory(d, NULL);
        t->kinds[t->kind_count] = kind;
        slot->index = (uint32_t)t->kind_count++;
    }
    op->kind = slot->index;
    op->type = (uint8_t)fl_op_type_of(t->names[kind.name]);
    g->disorder = g->disorder || op->start_ns < g->last_start_ns;
    g->last_start_ns = op->start_ns;
    if ((op->type == FL_OP_KERNEL || op->type == FL_OP_COPY) && !follow_lane(g, op))
        return fl_no_memory(d, NULL);
    return !fl_trace_add_op(t, op) ? FL_OK : fl_no_memory(d, NULL);
}

/* ---- the whole ---- */

fl_status fl_gather_end(fl_gather *g, fl_diag *d) {
    fl_kernel_trace *t = &g->out->kernels;
    fl_status status = FL_OK;
    fl_lanes_parted parted = {0};
    char text[256];
    if (g->disorder && !t->wait_count && !(status = fl_ops_sort(t, d)))
        status = fl_import_note(g->out, d, "rows were not in order of time: sorted");
    if (!status && g->overlap)
        status = fl_lanes_part(t, false, &parted, d);
    for (int i = 0; !status && fl_lanes_text(&parted, i, text, sizeof text); i++)
        status = *text ? fl_import_note(g->out, d, "%s", text) : FL_OK;
    if (!status && g->renamed)
        status = fl_import_note(g->out, d, "%zu ops have names that are not printable UTF-8: such bytes became '?'",
                                g->renamed);
    g->out->has_kernels = !status;
    return status;
}

void fl_gather_free(fl_gather *g) {
    fl_intern_free(&g->names);
    fl_intern_free(&g->kinds);
    fl_intern_free(&g->lanes);
    free(g->lane);
    memset(g, 0, sizeof *g);
}
