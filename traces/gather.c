#include "traces/gather.h"

#include "traces/kernels.h"

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

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_lane(const fl_trace_op *x, const fl_trace_op *y) {
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    return order ? order : three_way(x->stream, y->stream);
}

static int by_time(const fl_trace_op *x, const fl_trace_op *y) {
    int order = three_way(x->start_ns, y->start_ns);
    return order ? order : three_way(x->end_ns, y->end_ns);
}

static int index_by_time(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const fl_trace_op *x = (const fl_trace_op *)ops + i, *y = (const fl_trace_op *)ops + k;
    int order = by_time(x, y);
    order = order ? order : by_lane(x, y);
    return order ? order : three_way(i, k);
}

static int index_by_lane(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const fl_trace_op *x = (const fl_trace_op *)ops + i, *y = (const fl_trace_op *)ops + k;
    int order = by_lane(x, y);
    order = order ? order : by_time(x, y);
    return order ? order : three_way(i, k);
}

static fl_status sort_ops(fl_kernel_trace *t, uint32_t *index, fl_diag *d) {
    fl_trace_op *sorted = malloc(t->op_count * sizeof *sorted);
    if (!sorted)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < t->op_count; i++)
        index[i] = (uint32_t)i;
    qsort_r(index, t->op_count, sizeof *index, index_by_time, t->ops);
    for (size_t i = 0; i < t->op_count; i++)
        sorted[i] = t->ops[index[i]];
    free(t->ops);
    t->ops = sorted;
    t->op_room = t->op_count;
    return FL_OK;
}

typedef struct side { /* a stream number of its own for ops that overlap others of one lane */
    int32_t stream;
    fl_trace_op *last;
} side;

/* Whether `op` can follow `last` in one lane, once a little is taken off the end of `last`. */
static bool can_follow(const fl_trace_op *last, const fl_trace_op *op) {
    if (!last || op->start_ns >= last->end_ns)
        return true;
    int64_t over = last->end_ns - op->start_ns;
    return over <= FL_GATHER_OVERLAP_NS && over * 2 <= last->end_ns - last->start_ns;
}

typedef struct untangling {
    side *sides; /* of the lane at hand; the first is the lane itself */
    size_t count, room, clipped, moved, made;
    int64_t next_stream;
} untangling;

static fl_status place_op(untangling *u, fl_trace_op *op, fl_diag *d) {
    size_t k = 0;
    while (k < u->count && !can_follow(u->sides[k].last, op))
        k++;
    if (k == u->count) {
        if (u->next_stream > INT32_MAX)
            return fl_refuse(d,
                             "stream numbers already reach %d, expected smaller numbers, so that overlapping ops "
                             "can have streams of their own",
                             INT32_MAX);
        if (fl_grow(&u->sides, &u->room, u->count + 1, sizeof *u->sides))
            return fl_no_memory(d, NULL);
        u->sides[u->count++] = (side){(int32_t)u->next_stream++, NULL};
        u->made++;
    }
    side *s = &u->sides[k];
    if (s->last && op->start_ns < s->last->end_ns) {
        s->last->end_ns = op->start_ns;
        u->clipped++;
    }
    s->last = op;
    u->moved += k > 0;
    op->stream = s->stream;
    return FL_OK;
}

static fl_status untangle(fl_gather *g, uint32_t *index, fl_diag *d) {
    fl_kernel_trace *t = &g->out->kernels;
    untangling u = {.next_stream = 0};
    size_t count = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        u.next_stream = t->ops[i].stream >= u.next_stream ? (int64_t)t->ops[i].stream + 1 : u.next_stream;
        if (t->ops[i].type == FL_OP_KERNEL || t->ops[i].type == FL_OP_COPY)
            index[count++] = (uint32_t)i;
    }
    qsort_r(index, count, sizeof *index, index_by_lane, t->ops);
    int64_t first_made = u.next_stream;
    fl_trace_op lane = {.device = -1};
    fl_status status = !fl_grow(&u.sides, &u.room, 1, sizeof *u.sides) ? FL_OK : fl_no_memory(d, NULL);
    for (size_t i = 0; i < count && !status; i++) {
        fl_trace_op *op = &t->ops[index[i]];
        if (by_lane(&lane, op)) {
            lane = *op;
            u.sides[0] = (side){op->stream, NULL};
            u.count = 1;
        }
        status = place_op(&u, op, d);
    }
    free(u.sides);
    if (!status && u.clipped)
        status = fl_import_note(g->out, d,
                                "%zu ops ended up to %d ns after the next of their stream began: their ends were cut",
                                u.clipped, FL_GATHER_OVERLAP_NS);
    if (!status && u.moved)
        status = fl_import_note(g->out, d,
                                "%zu ops overlap others of their stream (graphs, dependent launches, several hardware "
                                "queues): put on %zu streams of their own, numbered from %lld",
                                u.moved, u.made, (long long)first_made);
    return status;
}

fl_status fl_gather_end(fl_gather *g, fl_diag *d) {
    fl_kernel_trace *t = &g->out->kernels;
    fl_status status = FL_OK;
    uint32_t *index = NULL;
    bool sort = g->disorder && t->wait_count == 0;
    if ((sort || g->overlap) && !(index = malloc(t->op_count * sizeof *index)))
        return fl_no_memory(d, NULL);
    if (sort)
        status = sort_ops(t, index, d);
    if (!status && sort)
        status = fl_import_note(g->out, d, "rows were not in order of time: sorted");
    if (!status && g->overlap)
        status = untangle(g, index, d);
    if (!status && g->renamed)
        status = fl_import_note(g->out, d, "%zu ops have names that are not printable UTF-8: such bytes became '?'",
                                g->renamed);
    free(index);
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
