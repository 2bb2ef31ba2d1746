/* What can be done to a kernel trace by itself: activity of devices, sorting, separating ops that overlap. */
#include "traces/files/files.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_LANES_ROUNDING_NS 1000
#define FL_LANES_DEPENDENT_NS 20000

/* ---- activity of a device ---- */

typedef struct span {
    int64_t start_ns, end_ns;
} span;

static int by_start(const void *a, const void *b) {
    int64_t x = ((const span *)a)->start_ns, y = ((const span *)b)->start_ns;
    return (x > y) - (x < y);
}

fl_status fl_activity_make(fl_activity *a, const fl_kernel_trace *t, int32_t device, int type) {
    size_t count = 0, sorted = 1;
    memset(a, 0, sizeof *a);
    for (size_t i = 0; i < t->op_count; i++)
        count += t->ops[i].device == device && t->ops[i].type == type;
    size_t room = count ? count : 1;
    span *s = malloc(room * sizeof *s);
    a->start_ns = malloc(room * sizeof *a->start_ns);
    a->end_ns = malloc(room * sizeof *a->end_ns);
    a->before_ns = malloc(room * sizeof *a->before_ns);
    if (!s || !a->start_ns || !a->end_ns || !a->before_ns) {
        free(s);
        return FL_NO_MEMORY;
    }
    count = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i].device != device || t->ops[i].type != type)
            continue;
        s[count] = (span){t->ops[i].start_ns, t->ops[i].end_ns};
        sorted &= count == 0 || s[count - 1].start_ns <= s[count].start_ns;
        count++;
    }
    if (!sorted)
        qsort(s, count, sizeof *s, by_start);
    for (size_t i = 0; i < count; i++) {
        size_t n = a->count;
        if (n && s[i].start_ns <= a->end_ns[n - 1]) {
            a->end_ns[n - 1] = s[i].end_ns > a->end_ns[n - 1] ? s[i].end_ns : a->end_ns[n - 1];
            continue;
        }
        a->start_ns[n] = s[i].start_ns;
        a->end_ns[n] = s[i].end_ns;
        a->count++;
    }
    free(s);
    for (size_t i = 0; i < a->count; i++) {
        a->before_ns[i] = a->busy_ns;
        a->busy_ns += a->end_ns[i] - a->start_ns[i];
    }
    return FL_OK;
}

double fl_activity_until(const fl_activity *a, double t_ns) {
    size_t low = 0, high = a->count; /* spans before `low` start at or before t_ns */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((double)a->start_ns[middle] <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    double length = (double)(a->end_ns[low - 1] - a->start_ns[low - 1]), in = t_ns - (double)a->start_ns[low - 1];
    return (double)a->before_ns[low - 1] + (in < length ? in : length);
}

void fl_activity_free(fl_activity *a) {
    free(a->start_ns);
    free(a->end_ns);
    free(a->before_ns);
    memset(a, 0, sizeof *a);
}

size_t fl_activity_devices(const fl_kernel_trace *t, int32_t *device, size_t room) {
    size_t count = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        int32_t v = t->ops[i].device;
        size_t k = 0;
        while (k < count && device[k] < v)
            k++;
        if ((k < count && device[k] == v) || count == room)
            continue;
        memmove(device + k + 1, device + k, (count - k) * sizeof *device);
        device[k] = v;
        count++;
    }
    return count;
}

/* ---- sorting ---- */

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_time(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const fl_trace_op *x = (const fl_trace_op *)ops + i, *y = (const fl_trace_op *)ops + k;
    int order = three_way(x->start_ns, y->start_ns);
    order = order ? order : three_way(x->end_ns, y->end_ns);
    order = order ? order : three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    order = order ? order : three_way(x->stream, y->stream);
    return order ? order : three_way(i, k);
}

fl_status fl_ops_sort(fl_kernel_trace *t, fl_diag *d) {
    size_t n = t->op_count;
    uint32_t *from = malloc((n + 1) * sizeof *from); /* by new row: the old one */
    if (!from)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < n; i++)
        from[i] = (uint32_t)i;
    if (n)
        qsort_r(from, n, sizeof *from, by_time, t->ops);
    for (size_t i = 0; i < n; i++) { /* each cycle of the permutation once; rows that are in place stay */
        if (from[i] == i)
            continue;
        fl_trace_op first = t->ops[i];
        size_t at = i;
        while (from[at] != i) {
            size_t next = from[at];
            t->ops[at] = t->ops[next];
            from[at] = (uint32_t)at;
            at = next;
        }
        t->ops[at] = first;
        from[at] = (uint32_t)at;
    }
    free(from);
    return FL_OK;
}

/* ---- ops that overlap in one lane ---- */

static int by_lane(const fl_trace_op *x, const fl_trace_op *y) {
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    return order ? order : three_way(x->stream, y->stream);
}

static int index_by_lane(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const fl_trace_op *x = (const fl_trace_op *)ops + i, *y = (const fl_trace_op *)ops + k;
    int order = by_lane(x, y);
    order = order ? order : three_way(x->start_ns, y->start_ns);
    order = order ? order : three_way(x->end_ns, y->end_ns);
    return order ? order : three_way(i, k);
}

typedef struct side { /* a stream number of its own for ops that overlap others of one lane */
    int32_t stream;
    fl_trace_op *last;
} side;

typedef struct parting {
    side *sides; /* of the lane at hand; the first is the lane itself */
    size_t count, room;
    int64_t next_stream;
    bool dependent;
    fl_lanes_parted *out;
} parting;

typedef enum way { APART, CUT, DEPENDENT, BESIDE } way;

/* How `op` can follow `last` in one lane; `next` is the op after it in the order of starts. */
static way follows(const parting *p, const fl_trace_op *last, const fl_trace_op *op, const fl_trace_op *next) {
    if (!last || op->start_ns >= last->end_ns)
        return APART;
    const int64_t over = last->end_ns - op->start_ns;
    const bool half = over * 2 <= last->end_ns - last->start_ns;
    if (half && over <= FL_LANES_ROUNDING_NS)
        return CUT;
    const bool two = !next || by_lane(next, op) || next->start_ns >= last->end_ns; /* no third begins meanwhile */
    return p->dependent && half && two && over <= FL_LANES_DEPENDENT_NS && op->end_ns > last->end_ns ? DEPENDENT
                                                                                                     : BESIDE;
}

static fl_status place_op(parting *p, fl_trace_op *op, const fl_trace_op *next, fl_diag *d) {
    size_t k = 0;
    way how = APART;
    while (k < p->count && (how = follows(p, p->sides[k].last, op, next)) == BESIDE)
        k++;
    if (k == p->count) {
        if (p->next_stream > INT32_MAX)
            return fl_refuse(d,
                             "stream numbers already reach %d, expected smaller numbers, so that overlapping ops "
                             "can have streams of their own",
                             INT32_MAX);
        if (fl_grow(&p->sides, &p->room, p->count + 1, sizeof *p->sides))
            return fl_no_memory(d, NULL);
        p->sides[p->count++] = (side){(int32_t)p->next_stream++, NULL};
        p->out->streams++;
        how = APART;
    }
    side *s = &p->sides[k];
    if (how == CUT) {
        s->last->end_ns = op->start_ns;
        p->out->cut++;
    } else if (how == DEPENDENT) {
        op->start_ns = s->last->end_ns;
        p->out->dependent++;
    }
    s->last = op;
    p->out->moved += k > 0;
    op->stream = s->stream;
    return FL_OK;
}

fl_status fl_lanes_part(fl_kernel_trace *t, bool dependent, fl_lanes_parted *out, fl_diag *d) {
    parting p = {.dependent = dependent, .out = out};
    size_t count = 0;
    uint32_t *index = malloc((t->op_count + 1) * sizeof *index);
    *out = (fl_lanes_parted){0};
    if (!index)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < t->op_count; i++) {
        p.next_stream = t->ops[i].stream >= p.next_stream ? (int64_t)t->ops[i].stream + 1 : p.next_stream;
        if (t->ops[i].type == FL_OP_KERNEL || t->ops[i].type == FL_OP_COPY)
            index[count++] = (uint32_t)i;
    }
    out->first = p.next_stream;
    qsort_r(index, count, sizeof *index, index_by_lane, t->ops);
    fl_trace_op lane = {.device = -1};
    fl_status s = !fl_grow(&p.sides, &p.room, 1, sizeof *p.sides) ? FL_OK : fl_no_memory(d, NULL);
    for (size_t i = 0; i < count && !s; i++) {
        fl_trace_op *op = &t->ops[index[i]];
        if (by_lane(&lane, op)) {
            lane = *op;
            p.sides[0] = (side){op->stream, NULL};
            p.count = 1;
        }
        s = place_op(&p, op, i + 1 < count ? &t->ops[index[i + 1]] : NULL, d);
    }
    free(p.sides);
    free(index);
    return s;
}

bool fl_lanes_text(const fl_lanes_parted *p, int number, char *text, size_t size) {
    *text = '\0';
    if (number == 0 && p->cut)
        snprintf(text, size, "%zu ops ended up to %d ns after the next of their stream began: their ends were cut",
                 p->cut, FL_LANES_ROUNDING_NS);
    if (number == 1 && p->dependent)
        snprintf(
            text, size,
            "%zu ops began up to %d us before the one before them in their stream ended (dependent launches): they "
            "begin at its end",
            p->dependent, FL_LANES_DEPENDENT_NS / 1000);
    if (number == 2 && p->moved)
        snprintf(
            text, size,
            "%zu ops overlap others of their stream (graphs, several hardware queues): put on %zu streams of their "
            "own, numbered from %lld",
            p->moved, p->streams, (long long)p->first);
    return number < 3;
}
