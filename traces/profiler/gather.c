/* Gathering the ops of a profiler's file: names, kinds, order, overlaps. */
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/profiler/inside.h"
#include "traces/profiler/profiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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

static int by_place(const void *a, const void *b) {
    const fl_trace_op *x = *(const fl_trace_op *const *)a, *y = *(const fl_trace_op *const *)b;
    const int64_t p[] = {x->device, x->process, x->stream, x->start_ns, x->end_ns, x->kind},
                  q[] = {y->device, y->process, y->stream, y->start_ns, y->end_ns, y->kind};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* A stream does not run one kernel twice at the same time. A few such ops may be branches of a graph. */
static fl_status check_twice(const fl_kernel_trace *t, fl_diag *d) {
    const fl_trace_op **op = malloc((t->op_count + 1) * sizeof *op);
    size_t count = 0, twice = 0;
    if (!op)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < t->op_count; i++)
        if ((t->ops[i].type == FL_OP_KERNEL || t->ops[i].type == FL_OP_COPY) && t->ops[i].end_ns > t->ops[i].start_ns)
            op[count++] = &t->ops[i];
    qsort(op, count, sizeof *op, by_place);
    for (size_t i = 1; i < count; i++)
        twice += by_place(&op[i - 1], &op[i]) == 0;
    free(op);
    if (twice <= FL_LEFT_ROWS || (double)twice <= 2 * FL_LEFT_SHARE * (double)count)
        return FL_OK;
    return fl_refuse(
        d,
        "%zu of %zu kernels and copies are there again, in the same stream and to the nanosecond at the same "
        "time: expected each once (was a report written into the file twice?)",
        twice, count);
}

fl_status fl_gather_end(fl_gather *g, fl_diag *d) {
    fl_kernel_trace *t = &g->out->kernels;
    fl_status status = FL_OK;
    fl_lanes_parted parted = {0};
    char text[256];
    if (g->disorder && !t->wait_count && !(status = fl_ops_sort(t, d)))
        status = fl_import_note(g->out, d, "rows were not in order of time: sorted");
    if (!status && g->overlap)
        status = check_twice(t, d);
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

/* ---- kernels of several files of one run ---- */

enum { DEVICES_MAX = 1024 };

/* Which GPU a device of a file is, as the head says it ("gpu.0: rank 3", or a UUID); NULL: not known. */
static const char *gpu_of(const fl_kernel_trace *t, int32_t device) {
    char key[24];
    snprintf(key, sizeof key, FL_GPU_KEY "%d", device);
    return fl_head_get(&t->head, key);
}

typedef struct renumbering { /* of the devices of a further file */
    int32_t device[DEVICES_MAX], becomes[DEVICES_MAX];
    size_t count;
    int32_t shared; /* a device in both files, where neither file tells whether it is one GPU; -1: none */
} renumbering;

static bool has(const int32_t *list, size_t count, int32_t device) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == device)
            return true;
    return false;
}

/* The number of the rank where it is free, since ranks of a node count as its GPUs do; else the next free one. */
static int32_t free_number(const char *gpu, const int32_t *taken, size_t count) {
    int rank = -1, number = 0;
    if (sscanf(gpu, "rank %d", &rank) == 1 && rank >= 0 && !has(taken, count, rank))
        return rank;
    while (has(taken, count, number))
        number++;
    return number;
}

/* Devices with the same number are one GPU, or two, as their files say. */
static fl_status renumber(fl_imported *run, const fl_imported *more, renumbering *r, fl_diag *d) {
    int32_t taken[2 * DEVICES_MAX];
    size_t count = fl_activity_devices(&run->kernels, taken, DEVICES_MAX);
    *r = (renumbering){.shared = -1};
    r->count = fl_activity_devices(&more->kernels, r->device, DEVICES_MAX);
    for (size_t i = 0; i < r->count; i++)
        r->becomes[i] = has(taken, count, r->device[i]) ? -1 : r->device[i];
    for (size_t i = 0; i < r->count; i++)
        if (r->becomes[i] >= 0)
            taken[count++] = r->device[i];
    for (size_t i = 0; i < r->count; i++) {
        const char *one = gpu_of(&run->kernels, r->device[i]), *other = gpu_of(&more->kernels, r->device[i]);
        if (r->becomes[i] >= 0)
            continue;
        r->becomes[i] = r->device[i];
        if (!one || !other)
            r->shared = r->device[i];
        if (!one || !other || !strcmp(one, other))
            continue;
        r->becomes[i] = free_number(other, taken, count);
        taken[count++] = r->becomes[i];
        const fl_status s = fl_import_note(run, d, "device %d of %s is another GPU than that of %s: numbered %d",
                                           r->device[i], other, one, r->becomes[i]);
        if (s)
            return s;
    }
    return FL_OK;
}

/* Threads of two ranks may have one number, where each runs in a container of its own. */
typedef struct threads {
    int32_t number[DEVICES_MAX], becomes[DEVICES_MAX];
    size_t count;
} threads;

static void add_threads(threads *all, const fl_kernel_trace *t) {
    for (size_t i = 0; i < t->op_count; i++) {
        const int32_t n = t->ops[i].host_thread;
        if (n < 0 || (all->count && all->number[all->count - 1] == n) || all->count == DEVICES_MAX ||
            has(all->number, all->count, n))
            continue;
        all->becomes[all->count] = n;
        all->number[all->count++] = n;
    }
}

static bool is_apart(const fl_imported *run, const fl_imported *more, const renumbering *r) {
    for (size_t i = 0; i < r->count; i++) {
        const char *other = gpu_of(&more->kernels, r->device[i]);
        bool known = false;
        for (size_t k = 0; other && k < run->kernels.head.count; k++) {
            const fl_head_entry *e = &run->kernels.head.entry[k];
            if (strncmp(e->key, FL_GPU_KEY, strlen(FL_GPU_KEY)) != 0)
                continue;
            if (!strcmp(e->value, other))
                return false;
            known = true;
        }
        if (!known)
            return false;
    }
    return r->count > 0;
}

static void renumber_threads(const fl_imported *run, const fl_imported *more, threads *t) {
    threads first = {0};
    int32_t next = 0;
    add_threads(&first, &run->kernels);
    add_threads(t, &more->kernels);
    for (size_t i = 0; i < t->count; i++) {
        if (!has(first.number, first.count, t->number[i]))
            continue;
        while (has(first.number, first.count, next) || has(t->number, t->count, next) || has(t->becomes, i, next))
            next++;
        t->becomes[i] = next;
    }
}

static int32_t now(const int32_t *number, const int32_t *becomes, size_t count, int32_t n) {
    for (size_t i = 0; i < count; i++)
        if (number[i] == n)
            return becomes[i];
    return n;
}

typedef struct span { /* a kernel, and the file it is of */
    const fl_trace_op *op;
    bool more;
} span;

static int by_lane(const void *a, const void *b) {
    const fl_trace_op *x = ((const span *)a)->op, *y = ((const span *)b)->op;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static size_t take_spans(const fl_kernel_trace *t, bool more, span *to) {
    size_t n = 0;
    for (size_t i = 0; i < t->op_count; i++)
        if (t->ops[i].type == FL_OP_KERNEL)
            to[n++] = (span){&t->ops[i], more};
    return n;
}

/* One stream of one process runs one kernel at a time. Where the kernels of two files overlap in one, they are not of
 * one stream, and so perhaps of two GPUs. */
static fl_status check_shared(fl_imported *run, const fl_imported *more, int32_t device, fl_diag *d) {
    span *all = malloc((run->kernels.op_count + more->kernels.op_count + 1) * sizeof *all);
    if (!all)
        return fl_no_memory(d, NULL);
    size_t count = take_spans(&run->kernels, false, all);
    count += take_spans(&more->kernels, true, all + count);
    qsort(all, count, sizeof *all, by_lane);
    int64_t until[2] = {INT64_MIN, INT64_MIN};
    bool overlap = false;
    for (size_t i = 0; i < count && !overlap; i++) {
        const fl_trace_op *op = all[i].op, *before = i ? all[i - 1].op : op;
        if (op->device != before->device || op->process != before->process || op->stream != before->stream)
            until[0] = until[1] = INT64_MIN;
        overlap = op->start_ns < until[!all[i].more];
        until[all[i].more] = op->end_ns > until[all[i].more] ? op->end_ns : until[all[i].more];
    }
    free(all);
    if (overlap)
        return fl_refuse(
            d,
            "two files have kernels of device %d, of one process and stream, at the same time, so they may be "
            "of two GPUs: expected files that tell them apart (distributedInfo, or 'rankN' in the file names)",
            device);
    fl_import_lost(run, "several files have a device %d, and no rank or UUID: taken as one GPU", device);
    return fl_import_said(run, d);
}

static fl_status merge_heads(fl_kernel_trace *t, const fl_kernel_trace *more, const renumbering *r, fl_diag *d) {
    fl_head renamed = {0};
    bool good = fl_head_merge(&renamed, &more->head);
    for (size_t i = 0; good && i < renamed.count; i++) { /* keys of GPUs follow their numbers */
        char *end, **key = &renamed.entry[i].key;
        const long device =
            strncmp(*key, FL_GPU_KEY, strlen(FL_GPU_KEY)) ? -1 : strtol(*key + strlen(FL_GPU_KEY), &end, 10);
        for (size_t k = 0; good && device >= 0 && k < r->count; k++)
            if (r->device[k] == device && r->becomes[k] != device) {
                free(*key);
                good = asprintf(key, FL_GPU_KEY "%d", r->becomes[k]) >= 0;
                *key = good ? *key : NULL;
                break;
            }
    }
    good = good && fl_head_merge(&t->head, &renamed);
    fl_head_free(&renamed);
    return good ? FL_OK : fl_no_memory(d, NULL);
}

fl_status fl_join_append(fl_imported *run, const fl_imported *more, fl_diag *d) {
    fl_imported all = {0};
    fl_gather g = {.out = &all};
    renumbering r;
    threads thread = {0};
    const fl_kernel_trace *part[2] = {&run->kernels, &more->kernels};
    fl_kernel_trace *t = &all.kernels;
    fl_status status = renumber(run, more, &r, d);
    if (!status && is_apart(run, more, &r))
        renumber_threads(run, more, &thread);
    if (!status && r.shared >= 0)
        status = check_shared(run, more, r.shared, d);
    if (!status && !fl_head_merge(&t->head, &run->kernels.head))
        status = fl_no_memory(d, NULL);
    if (!status)
        status = merge_heads(t, &more->kernels, &r, d);
    for (size_t p = 0; p < 2 && !status; p++) {
        size_t first = t->op_count;
        for (size_t i = 0; i < part[p]->op_count && !status; i++) {
            fl_trace_op op = part[p]->ops[i];
            const fl_trace_kind *kind = &part[p]->kinds[op.kind];
            const char *name = part[p]->names[kind->name];
            if (p) {
                op.device = now(r.device, r.becomes, r.count, op.device);
                op.host_thread = now(thread.number, thread.becomes, thread.count, op.host_thread);
            }
            if (fl_grow(&t->waits, &t->wait_room, t->wait_count + op.waits_count, sizeof *t->waits))
                status = fl_no_memory(d, NULL);
            for (size_t w = 0; w < op.waits_count && !status; w++)
                t->waits[t->wait_count + w] = part[p]->waits[op.waits_first + w] + (uint32_t)first;
            op.waits_first = (uint32_t)t->wait_count;
            t->wait_count += op.waits_count;
            if (!status)
                status = fl_gather_op(&g, name, strlen(name), kind->grid, kind->block, &op, d);
        }
    }
    if (!status)
        status = fl_gather_end(&g, d);
    fl_gather_free(&g);
    if (status) {
        fl_imported_free(&all);
        return status;
    }
    fl_kernel_trace_free(&run->kernels);
    run->kernels = all.kernels;
    status = fl_import_take_notes(run, &all, NULL, d);
    all.kernels = (fl_kernel_trace){0};
    fl_imported_free(&all);
    return status;
}
