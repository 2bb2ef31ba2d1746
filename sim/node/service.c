#include "sim/node/service.h"

#include <math.h>
#include <stdlib.h>

/* Requests are served in the order of arrival, so those that are there when one arrives are the ones after the last
 * that was done by then. */
static size_t backlog(const fl_request *r, size_t count) {
    size_t most = 0;
    for (size_t i = 0, done = 0; i < count; i++) {
        while (done < i && r[done].done_ps <= r[i].arrival_ps)
            done++;
        most = i + 1 - done > most ? i + 1 - done : most;
    }
    return most;
}

static double load_of(const fl_request *r, size_t count) {
    const int64_t span = count > 1 ? r[count - 1].arrival_ps - r[0].arrival_ps : 0;
    fl_wide served = 0;
    for (size_t i = 0; i < count; i++)
        served += r[i].done_ps - r[i].start_ps;
    if (count < 2)
        return NAN;
    return span > 0 ? (double)served / (double)count * (double)(count - 1) / (double)span : HUGE_VAL;
}

static fl_status collect_requests(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    const size_t count = w->request_count;
    const int64_t *done = fl_node_requests(n);
    int64_t *latency = malloc((count + 1) * sizeof *latency);
    out->request = malloc((count + 1) * sizeof *out->request);
    if (!latency || !out->request) {
        free(latency);
        return fl_no_memory(d, "what the run served");
    }
    for (size_t i = 0; i < count; i++) {
        fl_request *r = &out->request[i];
        const int64_t before = i ? r[-1].done_ps : 0;
        *r = (fl_request){.arrival_ps = w->arrival_ns[i] * FL_PS_PER_NS, .done_ps = done[i]};
        r->start_ps = r->arrival_ps > before ? r->arrival_ps : before;
        latency[i] = r->done_ps - r->arrival_ps;
    }
    out->request_count = count;
    out->latency = fl_times_of(latency, count);
    out->load = load_of(out->request, count);
    out->backlog_max = backlog(out->request, count);
    free(latency);
    return FL_OK;
}

/* Markers of one stream into iterations. A pair with the start of another request between them is none. */
static void add_iterations(const fl_node *n, const fl_workload *w, uint32_t stream, fl_service *out, int64_t *length) {
    const fl_stream *s = &w->stream[stream];
    uint64_t count;
    const int64_t *at = fl_node_iterations(n, stream, &count);
    const uint64_t each = s->request_ops ? s->iterations / w->request_count : count;
    for (uint64_t k = 1; k < count; k++) {
        if (k % each == 0)
            continue;
        length[out->iteration_count] = at[k] - at[k - 1];
        out->iteration[out->iteration_count++] = (fl_iteration){s->gpu, s->process, s->id, at[k - 1], at[k]};
    }
}

static fl_status collect_iterations(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < w->stream_count; i++)
        most += w->stream[i].iterations;
    int64_t *length = malloc((most + 1) * sizeof *length);
    out->iteration = malloc((most + 1) * sizeof *out->iteration);
    if (!length || !out->iteration) {
        free(length);
        return fl_no_memory(d, "what the run served");
    }
    for (uint32_t i = 0; most && i < w->stream_count; i++)
        add_iterations(n, w, i, out, length);
    out->iteration_time = fl_times_of(length, out->iteration_count);
    free(length);
    return FL_OK;
}

static fl_status collect_barriers(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    if (!w->barriers)
        return FL_OK;
    out->barrier_ps = malloc((w->gpu_count + 1) * sizeof *out->barrier_ps);
    if (!out->barrier_ps)
        return fl_no_memory(d, "what the run served");
    for (uint32_t i = 0; i < w->gpu_count; i++)
        out->barrier_ps[i] = fl_node_gpu(n, i)->barrier_ps;
    out->barrier_count = w->gpu_count;
    return FL_OK;
}

fl_status fl_service_collect(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    fl_status s = collect_requests(n, w, out, d);
    if (!s)
        s = collect_iterations(n, w, out, d);
    return s ? s : collect_barriers(n, w, out, d);
}

void fl_service_free(fl_service *s) {
    free(s->request);
    free(s->iteration);
    free(s->barrier_ps);
    *s = (fl_service){0};
}
