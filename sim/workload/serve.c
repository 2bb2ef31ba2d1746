/* A finished workload turned into one that serves open-loop requests. */
#include "sim/workload/inside.h"

#include "sim/base/base.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FL_SERVE_OPS_MAX = 100000000 }; /* of all requests together */

typedef struct fl_service_plan {
    fl_workload *w;
    size_t requests;
    uint64_t *ops; /* by stream: of one request */
} fl_service_plan;

static fl_wait moved(const fl_service_plan *p, fl_wait wait, size_t request) {
    return (fl_wait){wait.stream, wait.done + request * p->ops[wait.stream]};
}

static fl_status check(const fl_workload *w, const int64_t *arrival_ns, size_t count, fl_diag *d) {
    uint64_t items = w->op_count;
    for (uint32_t i = 0; i < w->thread_count; i++)
        items += w->thread[i].count;
    if (w->request_count || !count || count >= UINT32_MAX || count > FL_SERVE_OPS_MAX / items)
        return fl_refuse(d,
                         "%s: %zu requests of %llu kernels, launches and synchronisations each, expected at least one "
                         "request and at most %d of these in all",
                         w->name, count, (unsigned long long)items, FL_SERVE_OPS_MAX);
    for (size_t i = 0; i < count; i++)
        if (arrival_ns[i] < (i ? arrival_ns[i - 1] : 0) || arrival_ns[i] > INT64_MAX / 4000)
            return fl_refuse(d, "%s: request %zu arrives at %lld ns, expected ascending times from 0 to 26 days",
                             w->name, i, (long long)arrival_ns[i]);
    for (uint32_t i = 0; i < w->stream_count; i++)
        if ((fl_wide)w->stream[i].span_ns * (fl_wide)count > INT64_MAX / 4)
            return fl_refuse(d, "%s: %zu requests of %g s each, expected less in all", w->name, count,
                             (double)w->stream[i].span_ns * 1e-9);
    return FL_OK;
}

static fl_status repeat_waits(const fl_service_plan *p, fl_stream *s, uint64_t ops, fl_diag *d) {
    const size_t waits = s->wait_count;
    if (waits * p->requests >= UINT32_MAX ||
        fl_grow(&s->wait, &s->wait_room, waits * p->requests + 1, sizeof *s->wait) ||
        fl_grow(&s->wait_first, &s->first_room, ops * p->requests + 1, sizeof *s->wait_first))
        return fl_no_memory(d, "the requests");
    for (size_t r = 1; r < p->requests; r++) {
        for (size_t k = 0; k < waits; k++)
            s->wait[r * waits + k] = moved(p, s->wait[k], r);
        for (uint64_t k = 0; k < ops; k++)
            s->wait_first[r * ops + k] = (uint32_t)(r * waits) + s->wait_first[k];
    }
    s->wait_count = waits * p->requests;
    s->wait_first[ops * p->requests] = (uint32_t)s->wait_count;
    return FL_OK;
}

static fl_status repeat_stream(const fl_service_plan *p, fl_stream *s, uint64_t ops, fl_diag *d) {
    if (!ops)
        return FL_OK;
    if (fl_grow(&s->rec, &s->room, ops * p->requests, sizeof *s->rec))
        return fl_no_memory(d, "the requests");
    for (size_t r = 1; r < p->requests; r++) /* an op too long for its record stands once for all requests */
        memcpy(s->rec + r * ops, s->rec, ops * sizeof *s->rec);
    fl_status status = s->wait_first ? repeat_waits(p, s, ops, d) : FL_OK;
    s->count = ops * p->requests;
    s->request_ops = ops;
    s->work_ns *= (int64_t)p->requests;
    s->span_ns *= (int64_t)p->requests;
    return status;
}

static fl_status add_arrival(const fl_service_plan *p, uint32_t thread, size_t request, fl_diag *d) {
    return fl_workload_add_item(p->w, thread, &(fl_item){.type = FL_ITEM_ARRIVE, .request = (uint32_t)request}, d);
}

/* Waits for every op of the request. */
static fl_status add_end(const fl_service_plan *p, uint32_t thread, size_t request, fl_diag *d) {
    const fl_item item = {.type = FL_ITEM_DONE, .request = (uint32_t)request};
    fl_status s = fl_workload_add_item(p->w, thread, &item, d);
    for (uint32_t i = 0; !s && i < p->w->stream_count; i++)
        if (p->ops[i])
            s = fl_workload_add_sync_wait(p->w, thread, (fl_wait){i, (request + 1) * p->ops[i]}, d);
    return s;
}

static fl_status repeat_thread(const fl_service_plan *p, uint32_t thread, fl_diag *d) {
    fl_thread once = p->w->thread[thread];
    p->w->thread[thread] = (fl_thread){.id = once.id};
    fl_status s = FL_OK;
    for (size_t r = 0; !s && r < p->requests; r++) {
        s = add_arrival(p, thread, r, d);
        for (size_t k = 0; !s && k < once.count; k++) {
            const fl_item *item = &once.item[k];
            s = fl_workload_add_item(p->w, thread, item, d);
            for (uint32_t j = 0; !s && j < item->wait_count; j++)
                s = fl_workload_add_sync_wait(p->w, thread, moved(p, once.wait[item->wait_first + j], r), d);
        }
        if (!s)
            s = add_end(p, thread, r, d);
    }
    free(once.item);
    free(once.wait);
    return s;
}

/* Streams that nobody was seen to launch: one server launches all that a request has for them. */
static fl_status add_server(const fl_service_plan *p, fl_diag *d) {
    fl_workload *w = p->w;
    uint32_t server = 0, streams = 0;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        w->stream[i].served = !w->stream[i].launched && p->ops[i];
        streams += w->stream[i].served;
    }
    fl_status s = streams ? fl_workload_add_thread(w, -1, &server, d) : FL_OK;
    if (s || !streams)
        return s;
    w->thread[server].server = true;
    for (size_t r = 0; !s && r < p->requests; r++) {
        s = add_arrival(p, server, r, d);
        for (uint32_t i = 0; !s && i < w->stream_count; i++) {
            if (!w->stream[i].served)
                continue;
            if (p->ops[i] > UINT32_MAX)
                return fl_no_memory(d, "the requests");
            const fl_item launch = {.type = FL_ITEM_LAUNCH, .stream = i, .parts = (uint32_t)(p->ops[i] - 1)};
            s = fl_workload_add_item(w, server, &launch, d);
        }
        if (!s)
            s = add_end(p, server, r, d);
    }
    return s;
}

fl_status fl_workload_serve(fl_workload *w, const int64_t *arrival_ns, size_t count, uint32_t windows, fl_diag *d) {
    fl_service_plan p = {.w = w, .requests = count};
    fl_status s = check(w, arrival_ns, count, d);
    if (s)
        return s;
    p.ops = calloc(w->stream_count + 1, sizeof *p.ops);
    w->arrival_ns = malloc(count * sizeof *w->arrival_ns);
    if (!p.ops || !w->arrival_ns) {
        free(p.ops);
        return fl_no_memory(d, "the requests");
    }
    memcpy(w->arrival_ns, arrival_ns, count * sizeof *w->arrival_ns);
    w->request_count = count;
    w->op_count *= count;
    for (uint32_t i = 0; i < w->stream_count; i++)
        p.ops[i] = w->stream[i].count;
    const uint32_t threads = w->thread_count;
    for (uint32_t i = 0; !s && i < w->stream_count; i++)
        s = repeat_stream(&p, &w->stream[i], p.ops[i], d);
    for (uint32_t i = 0; !s && i < threads; i++)
        s = repeat_thread(&p, i, d);
    if (!s)
        s = add_server(&p, d);
    free(p.ops);
    return s ? s : fl_workload_finish(w, windows, d);
}
