/* What a run served: requests with their latencies, iterations with their times, time lost at barriers. */
#pragma once

#include "sim/node/node.h"
#include "sim/base/times.h"

typedef struct fl_request {
    int64_t arrival_ps, start_ps, done_ps; /* taken up: when it was there and the one before had been served */
} fl_request;

typedef struct fl_iteration { /* from a marker of a stream to its next, in one request where there are several */
    uint32_t gpu;
    int32_t process, stream;
    int64_t start_ps, end_ps;
} fl_iteration;

typedef struct fl_service {
    fl_request *request; /* request_count, in the order of arrival */
    size_t request_count;
    fl_times latency;        /* done - arrival, queueing included */
    double load;             /* mean time of service x rate of arrival; NAN for fewer than two requests */
    size_t backlog_max;      /* most requests that were there and not yet served, the one in service included */
    fl_iteration *iteration; /* iteration_count, stream by stream */
    size_t iteration_count;
    fl_times iteration_time;
    int64_t *barrier_ps; /* per GPU, barrier_count of them: time during which a stream waited only for another GPU;
                            none where no stream ever does */
    uint32_t barrier_count;
} fl_service;

/* Requests arrive faster than they are served: latencies grow through the run. Fewer than ten tell nothing. */
static inline bool fl_service_overloaded(uint64_t requests, double load) { return requests >= 10 && load >= 1; }

fl_status fl_service_collect(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d);
void fl_service_free(fl_service *s);
