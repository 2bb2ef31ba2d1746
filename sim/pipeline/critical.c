#include "sim/pipeline/critical.h"

#include <stdlib.h>

static bool may_go(const fl_critical *c, uint32_t stream, uint64_t at, const uint64_t *done) {
    const fl_stream *s = &c->w->stream[stream];
    if (s->wait_first)
        for (uint32_t k = s->wait_first[at]; k < s->wait_first[at + 1]; k++)
            if (done[s->wait[k].stream] < s->wait[k].done)
                return false;
    return true;
}

static fl_status sort(fl_critical *c, uint64_t *done, fl_diag *d) {
    size_t n = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t s = 0; s < c->w->stream_count; s++)
            for (; done[s] < c->w->stream[s].count && may_go(c, s, done[s], done); done[s]++) {
                c->order[n++] = (uint32_t)(c->first[s] + done[s]);
                moved = true;
            }
    }
    return n == c->count ? FL_OK : fl_refuse(d, "%s: ops wait for each other for ever", c->w->name);
}

static uint32_t stream_of(const fl_critical *c, size_t op) {
    uint32_t from = 0, to = c->w->stream_count - 1;
    while (from < to) {
        const uint32_t middle = from + (to - from + 1) / 2;
        if (c->first[middle] <= op)
            from = middle;
        else
            to = middle - 1;
    }
    return from;
}

/* What each op waits for, one list behind the other, as fl_critical_ends comes to them. */
static fl_status flatten(fl_critical *c, fl_diag *d) {
    size_t room = c->count + 1, n = 0;
    for (uint32_t s = 0; s < c->w->stream_count; s++)
        room += c->w->stream[s].wait_count;
    c->until = calloc(c->count + 1, sizeof *c->until);
    c->on = calloc(room, sizeof *c->on);
    if (!c->until || !c->on)
        return fl_no_memory(d, c->w->name);
    for (size_t k = 0; k < c->count; k++) {
        const uint32_t op = c->order[k], stream = stream_of(c, op);
        const fl_stream *s = &c->w->stream[stream];
        const size_t at = op - c->first[stream];
        if (at)
            c->on[n++] = op - 1;
        for (uint32_t i = s->wait_first ? s->wait_first[at] : 0; s->wait_first && i < s->wait_first[at + 1]; i++)
            if (s->wait[i].done)
                c->on[n++] = (uint32_t)(c->first[s->wait[i].stream] + s->wait[i].done - 1);
        c->until[k] = n;
    }
    return FL_OK;
}

fl_status fl_critical_new(fl_critical *c, const fl_workload *w, fl_diag *d) {
    *c = (fl_critical){.w = w, .first = calloc((size_t)w->stream_count + 1, sizeof *c->first)};
    uint64_t *done = calloc((size_t)w->stream_count + 1, sizeof *done);
    fl_status s = c->first && done ? FL_OK : fl_no_memory(d, w->name);
    for (uint32_t k = 0; !s && k < w->stream_count; k++)
        c->first[k + 1] = c->first[k] + w->stream[k].count;
    if (!s) {
        c->count = c->first[w->stream_count];
        c->order = calloc(c->count + 1, sizeof *c->order);
        s = c->order ? FL_OK : fl_no_memory(d, w->name);
    }
    if (!s)
        s = c->count < UINT32_MAX ? sort(c, done, d) : fl_refuse(d, "%s: too many ops", w->name);
    if (!s)
        s = flatten(c, d);
    free(done);
    if (s)
        fl_critical_free(c);
    return s;
}

void fl_critical_free(fl_critical *c) {
    free(c->first);
    free(c->order);
    free(c->until);
    free(c->on);
    *c = (fl_critical){0};
}

double fl_critical_ends(const fl_critical *c, const double *length_s, double *end_s, uint32_t *before) {
    double last = 0;
    size_t i = 0;
    for (size_t n = 0; n < c->count; n++) {
        const uint32_t op = c->order[n];
        double start = 0;
        uint32_t from = FL_NONE;
        for (; i < c->until[n]; i++) {
            const double end = end_s[c->on[i]];
            from = end > start ? c->on[i] : from;
            start = end > start ? end : start;
        }
        end_s[op] = start + length_s[op];
        last = end_s[op] > last ? end_s[op] : last;
        if (before)
            before[op] = from;
    }
    return last;
}
