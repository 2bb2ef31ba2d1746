/* fl_host_log_join: launches, synchronisations and events find their ops. */
#include "traces/profiler/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* ---- launches ---- */

#define SLACK_NS 2000

typedef struct joiner {
    fl_host_log *log;
    fl_imported *out;
    fl_kernel_trace *t;
    uint32_t *order; /* ops by device, process, stream, row: in the order of each stream */
    size_t late, filled, before, bare, vague;
    fl_diag *d;
} joiner;

static int by_stream(const fl_trace_op *x, const fl_trace_op *y) {
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    return order ? order : three_way(x->stream, y->stream);
}

static int stream_order(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    int order = by_stream((const fl_trace_op *)ops + i, (const fl_trace_op *)ops + k);
    return order ? order : three_way(i, k);
}

static void join_launches(joiner *j) {
    for (size_t i = 0; i < j->t->op_count; i++) {
        fl_trace_op *op = &j->t->ops[i];
        const fl_host_call *call = op->waits_first ? fl_host_find_call(j->log, op->waits_first) : NULL;
        if (!call)
            continue;
        op->launch_ns = call->ns < 0 ? 0 : call->ns;
        op->host_thread = call->thread;
        if (op->launch_ns > op->start_ns) {
            op->launch_ns = op->start_ns;
            j->late++;
        }
    }
}

/* One stream, order[first, end). An op without a launch of its own counts as launched with the one before it, as the
 * ops of a graph are. Ops before the first known launch were launched before the recording began, and have none. */
static void complete_stream(joiner *j, size_t first, size_t end) {
    fl_trace_op *ops = j->t->ops;
    size_t lead = first;
    while (lead < end && ops[j->order[lead]].launch_ns == INT64_MIN)
        lead++;
    if (lead == end) {
        j->bare++;
        return;
    }
    j->before += lead - first;
    for (size_t i = lead + 1; i < end; i++) {
        fl_trace_op *op = &ops[j->order[i]];
        if (op->launch_ns != INT64_MIN)
            continue;
        const fl_trace_op *like = &ops[j->order[i - 1]];
        op->launch_ns = like->launch_ns < op->start_ns ? like->launch_ns : op->start_ns;
        op->host_thread = like->host_thread;
        j->filled++;
    }
}

static fl_status note_launches(joiner *j) {
    fl_status s = FL_OK;
    if (!j->t->has_launches)
        return fl_import_note(j->out, j->d, "no launches: gaps before kernels count as host time");
    if (j->late)
        s = fl_import_note(j->out, j->d, "%zu ops start before their launch: taken as launched at their start",
                           j->late);
    if (!s && j->filled)
        s = fl_import_note(j->out, j->d,
                           "%zu ops have no launch: taken as launched with the one before in their stream", j->filled);
    if (!s && j->before)
        s = fl_import_note(j->out, j->d,
                           "%zu ops at the begin have no launch: taken as launched before the recording began",
                           j->before);
    if (!s && j->bare)
        s = fl_import_note(j->out, j->d, "%zu streams have no launches: their gaps count as host time", j->bare);
    return s;
}

static fl_status do_launches(joiner *j) {
    fl_kernel_trace *t = j->t;
    join_launches(j);
    for (size_t i = 0; i < t->op_count; i++)
        j->order[i] = (uint32_t)i;
    qsort_r(j->order, t->op_count, sizeof *j->order, stream_order, t->ops);
    for (size_t first = 0, end; first < t->op_count; first = end) {
        for (end = first + 1; end < t->op_count && by_stream(&t->ops[j->order[first]], &t->ops[j->order[end]]) == 0;
             end++)
            ;
        complete_stream(j, first, end);
    }
    t->has_launches = false;
    for (size_t i = 0; i < t->op_count; i++)
        t->has_launches = t->has_launches || t->ops[i].launch_ns != INT64_MIN;
    return note_launches(j);
}

/* ---- waits ---- */

/* The range of order that belongs to a stream of the device and process of s. */
static void find_stream(const joiner *j, const fl_sync_detail *s, int32_t stream, size_t *first, size_t *end) {
    const fl_trace_op wanted = {.device = s->device, .process = s->process, .stream = stream};
    size_t bound[2];
    for (int side = 0; side < 2; side++) {
        size_t low = 0, high = j->t->op_count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            int c = by_stream(&j->t->ops[j->order[middle]], &wanted);
            if (c < 0 || (side && c == 0))
                low = middle + 1;
            else
                high = middle;
        }
        bound[side] = low;
    }
    *first = bound[0];
    *end = bound[1];
}

/* Streams take their work in order, so that launches ascend along a stream (nearly: two threads may share one). The
 * place in order after the last op of [first, end) that was launched until `ns`. */
static size_t launched_until(const joiner *j, size_t first, size_t end, int64_t ns) {
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (j->t->ops[j->order[middle]].launch_ns <= ns)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static uint32_t last_launched(const joiner *j, const fl_sync_detail *s, int32_t stream, int64_t ns) {
    size_t first, end;
    find_stream(j, s, stream, &first, &end);
    const size_t at = launched_until(j, first, end, ns);
    const bool launches = first < end && j->t->ops[j->order[end - 1]].launch_ns != INT64_MIN;
    return launches && at > first ? j->order[at - 1] : UINT32_MAX;
}

/* The last op before an event was recorded; UINT32_MAX where the event is older than the trace. */
static uint32_t before_event(const joiner *j, const fl_sync_detail *s) {
    const fl_host_call *call = s->record ? fl_host_find_call(j->log, s->record) : NULL;
    return call && s->on >= 0 ? last_launched(j, s, s->on, call->ns) : UINT32_MAX;
}

typedef struct edge {
    uint32_t op, on;
} edge;

static int edge_order(const void *a, const void *b) {
    const edge *x = a, *y = b;
    int order = three_way(x->op, y->op);
    return order ? order : three_way(x->on, y->on);
}

/* Streams that wait for an event: their next op waits for what the event stands behind. */
static fl_status wait_streams(joiner *j) {
    fl_kernel_trace *t = j->t;
    edge *edges = NULL;
    size_t count = 0, room = 0;
    fl_status status = FL_OK;
    for (size_t i = 0; i < j->log->detail_count && !status; i++) {
        const fl_sync_detail *s = &j->log->detail[i];
        uint32_t on = s->kind == FL_SYNC_STREAM_WAIT ? before_event(j, s) : UINT32_MAX;
        size_t first, end;
        if (on == UINT32_MAX)
            continue;
        find_stream(j, s, s->stream, &first, &end);
        size_t next = launched_until(j, first, end, s->ns);
        if (next == end || j->order[next] <= on || t->ops[on].end_ns > t->ops[j->order[next]].start_ns)
            continue;
        if (fl_grow(&edges, &room, count + 1, sizeof *edges))
            status = fl_no_memory(j->d, NULL);
        else
            edges[count++] = (edge){j->order[next], on};
    }
    if (count)
        qsort(edges, count, sizeof *edges, edge_order);
    if (!status && count && fl_grow(&t->waits, &t->wait_room, t->wait_count + count, sizeof *t->waits))
        status = fl_no_memory(j->d, NULL);
    for (size_t i = 0; i < count && !status; i++) {
        fl_trace_op *op = &t->ops[edges[i].op];
        if ((i && edge_order(&edges[i - 1], &edges[i]) == 0) || op->waits_count == UINT16_MAX)
            continue;
        if (!op->waits_count)
            op->waits_first = (uint32_t)t->wait_count;
        op->waits_count++;
        t->waits[t->wait_count++] = edges[i].on;
    }
    free(edges);
    return status;
}

static int wait_order(const void *a, const void *b) {
    const fl_host_wait *x = a, *y = b;
    int order = three_way(x->start_ns, y->start_ns);
    order = order ? order : three_way(x->end_ns, y->end_ns);
    order = order ? order : three_way(x->thread, y->thread);
    return order ? order : three_way(x->correlation, y->correlation);
}

/* A [sync] row for each wait of the host: `after` is the op that it waits for, which may be one that starts later, or
 * UINT32_MAX for all that the thread launched. */
typedef struct sync_row {
    fl_trace_op op;
    uint32_t after;
    int64_t key_ns;
} sync_row;

static int sync_order(const void *a, const void *b) {
    const sync_row *x = a, *y = b;
    int order = three_way(x->key_ns, y->key_ns);
    order = order ? order : three_way(x->op.start_ns, y->op.start_ns);
    order = order ? order : three_way(x->op.end_ns, y->op.end_ns);
    return order ? order : three_way(x->op.host_thread, y->op.host_thread);
}

/* False where nothing was waited for. */
static bool resolve(joiner *j, const fl_host_wait *w, uint32_t *after) {
    *after = UINT32_MAX;
    const fl_sync_detail *s = fl_host_find_detail(j->log, w->correlation);
    if (s && s->kind == FL_SYNC_EVENT && !s->record)
        s = NULL;
    if (s && s->kind == FL_SYNC_STREAM)
        *after = last_launched(j, s, s->stream, w->start_ns);
    else if (s && s->kind == FL_SYNC_EVENT)
        *after = before_event(j, s);
    else {
        j->vague += !s && w->kind == FL_WAIT_SOME;
        return true;
    }
    /* What ends later was not waited for; the two clocks agree to a few microseconds only. */
    return *after != UINT32_MAX && j->t->ops[*after].end_ns - SLACK_NS <= w->end_ns;
}

/* The op of a blocking copy, found by its id: copies are few against the ops, so they are sorted, not the ops. */
static int copy_order(const void *a, const void *b) {
    const fl_host_wait *x = a, *y = b;
    return three_way(x->correlation, y->correlation);
}

static fl_status make_rows(joiner *j, sync_row *rows, size_t *count) {
    fl_host_log *log = j->log;
    size_t copies = 0;
    for (size_t i = 0; i < log->wait_count; i++) { /* blocking copies first */
        if (log->wait[i].kind != FL_WAIT_COPY)
            continue;
        fl_host_wait moved = log->wait[i];
        log->wait[i] = log->wait[copies];
        log->wait[copies++] = moved;
    }
    if (copies)
        qsort(log->wait, copies, sizeof *log->wait, copy_order);
    for (uint32_t i = 0; copies && i < j->t->op_count; i++) {
        const fl_trace_op *op = &j->t->ops[i];
        fl_host_wait key = {.correlation = op->waits_first};
        fl_host_wait *w =
            op->type == FL_OP_COPY && key.correlation ? bsearch(&key, log->wait, copies, sizeof key, copy_order) : NULL;
        if (!w || w->end_ns < op->end_ns || op->launch_ns == INT64_MIN) /* a copy that returns early does not wait */
            continue;
        rows[(*count)++] =
            (sync_row){.op = {.start_ns = w->start_ns, .end_ns = w->end_ns, .host_thread = w->thread}, .after = i};
        w->end_ns = INT64_MIN; /* once only */
    }
    if (log->wait_count > copies)
        qsort(log->wait + copies, log->wait_count - copies, sizeof *log->wait, wait_order);
    for (size_t i = copies; i < log->wait_count; i++) {
        const fl_host_wait *w = &log->wait[i];
        uint32_t after;
        if (!resolve(j, w, &after))
            continue;
        rows[(*count)++] =
            (sync_row){.op = {.start_ns = w->start_ns, .end_ns = w->end_ns, .host_thread = w->thread}, .after = after};
    }
    return FL_OK;
}

/* Puts the rows among the ops, which move up, and renumbers what waits. */
static fl_status merge(joiner *j, sync_row *rows, size_t count) {
    static const uint32_t NONE[3] = {0};
    fl_kernel_trace *t = j->t;
    size_t n = t->op_count;
    uint32_t kind = fl_trace_add_kind(t, "[sync]", NONE, NONE);
    if (kind == UINT32_MAX || n + count >= UINT32_MAX || fl_grow(&t->ops, &t->op_room, n + count, sizeof *t->ops) ||
        fl_grow(&t->waits, &t->wait_room, t->wait_count + count, sizeof *t->waits))
        return fl_no_memory(j->d, NULL);
    for (size_t i = 0; i < count; i++) {
        rows[i].key_ns = rows[i].op.start_ns;
        if (rows[i].after != UINT32_MAX && t->ops[rows[i].after].start_ns > rows[i].key_ns)
            rows[i].key_ns = t->ops[rows[i].after].start_ns;
    }
    qsort(rows, count, sizeof *rows, sync_order);
    size_t left = count;
    for (size_t i = n; i-- > 0;) { /* from the end: order[i] becomes the new number of op i */
        while (left && rows[left - 1].key_ns >= t->ops[i].start_ns) {
            left--;
            t->ops[i + 1 + left] = rows[left].op;
        }
        t->ops[i + left] = t->ops[i];
        j->order[i] = (uint32_t)(i + left);
    }
    while (left--)
        t->ops[left] = rows[left].op;
    t->op_count = n + count;
    for (size_t i = 0; i < t->wait_count; i++)
        t->waits[i] = j->order[t->waits[i]];
    size_t next = 0;
    for (size_t i = 0; i < t->op_count && next < count; i++) {
        fl_trace_op *op = &t->ops[i];
        if (op->type != FL_OP_SYNC)
            continue;
        op->kind = kind;
        if (rows[next].after != UINT32_MAX) {
            op->waits_first = (uint32_t)t->wait_count;
            op->waits_count = 1;
            t->waits[t->wait_count++] = j->order[rows[next].after];
        }
        next++;
    }
    return FL_OK;
}

static fl_status do_waits(joiner *j) {
    size_t count = 0;
    sync_row *rows = malloc((j->log->wait_count + 1) * sizeof *rows);
    if (!rows)
        return fl_no_memory(j->d, NULL);
    fl_status status = make_rows(j, rows, &count);
    int32_t device = j->t->ops[0].device, process = j->t->ops[0].process;
    for (size_t i = 0; i < count; i++) {
        fl_trace_op *op = &rows[i].op;
        const fl_trace_op *like = rows[i].after != UINT32_MAX ? &j->t->ops[rows[i].after] : NULL;
        op->launch_ns = INT64_MIN;
        op->bytes = -1;
        op->type = FL_OP_SYNC;
        op->device = like ? like->device : device;
        op->process = like ? like->process : process;
        op->stream = like ? like->stream : 0;
    }
    for (size_t i = 0; i < j->t->op_count; i++)
        j->t->ops[i].waits_first = 0;
    if (!status)
        status = wait_streams(j);
    if (!status && count)
        status = merge(j, rows, count);
    free(rows);
    if (!status && j->vague)
        status = fl_import_note(j->out, j->d,
                                "%zu waits for a stream or event that is not named: taken as waits for all that their "
                                "thread had launched",
                                j->vague);
    return status;
}

fl_status fl_host_log_join(fl_host_log *log, fl_imported *out, fl_diag *d) {
    fl_kernel_trace *t = &out->kernels;
    joiner j = {.log = log, .out = out, .t = t, .d = d};
    if (!t->op_count)
        return FL_OK;
    if (!(j.order = malloc(t->op_count * sizeof *j.order)))
        return fl_no_memory(d, NULL);
    fl_host_log_sort(log);
    fl_status status = do_launches(&j);
    if (!status && t->has_launches)
        status = do_waits(&j);
    for (size_t i = 0; i < t->op_count; i++) /* what is left are correlation ids */
        if (!t->ops[i].waits_count)
            t->ops[i].waits_first = 0;
    free(j.order);
    return status;
}
