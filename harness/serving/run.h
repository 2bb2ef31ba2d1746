/* A measured run of a server against its simulation: the same requests arrive, each step takes what a law says, at one
 * clock and with no GPU behind it. What a run tells of a law is how much slower or faster the engine is than it. */
#pragma once

#include "models/laws/step_law.h"
#include "sim/serving/batching.h"
#include "traces/serving/requests.h"

typedef struct fl_serving_times { /* of one request, in seconds from its arrival */
    double first_s, last_s;
} fl_serving_times;

/* times: one per request of the trace. Requests are taken between steps only, and the tokens of a step are out at its
 * end. async: the engine composes a step when the one before begins, so a request that arrives during a step waits for
 * the end of the next one (vLLM's asynchronous scheduling). sm_mhz: the clock of all steps. FL_BAD_INPUT where a
 * request can never be served. */
fl_status fl_serving_simulate(const fl_requests *requests, const fl_batching_rules *rules, const fl_step_law *law,
                              double sm_mhz, bool async, fl_serving_times *times, fl_batching_counts *counts,
                              fl_diag *d);

/* The measured times of a trace that has them. FL_BAD_INPUT where one lacks its first or last token. */
fl_status fl_serving_measured(const fl_requests *requests, fl_serving_times *times, fl_diag *d);

typedef struct fl_serving_latency { /* seconds; over requests of one output token TPOT is not defined */
    double ttft_mean, ttft_p50, ttft_p99, tpot_p50, tpot_p99, e2e_p50, e2e_p99;
} fl_serving_latency;

/* Of the requests [from, to). FL_NO_MEMORY. */
fl_status fl_serving_latency_of(const fl_requests *requests, const fl_serving_times *times, size_t from, size_t to,
                                fl_serving_latency *l, fl_diag *d);

/* By what a calibration multiplies the times of a law: all of them but the all-reduces, and the attention of decodes
 * besides. */
typedef struct fl_serving_factors {
    double all, decodes;
} fl_serving_factors;
void fl_serving_scale(fl_step_law *law, fl_serving_factors by);

/* Scales the law so that the simulated latencies of the first `learn` requests come as near to the measured ones as
 * they can: least squares of the logarithms of TPOT p50, end to end p50 and mean TTFT, and of the factors. */
fl_status fl_serving_calibrate(const fl_requests *requests, const fl_batching_rules *rules, size_t learn, double sm_mhz,
                               bool async, fl_step_law *law, fl_serving_factors *factor, fl_diag *d);
