/* A measured run of a server against its simulation, and its calibration. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- the simulation ---- */

/* A node of boards with one pair of clocks, which draw nothing. */
static fl_status open_node(fl_node_spec *spec, uint32_t gpus, int32_t sm_mhz, int32_t mem_mhz, fl_diag *d) {
    fl_device *dev = spec->device = fl_must(calloc(1, sizeof *dev));
    spec->gpu = fl_must(calloc(gpus, sizeof *spec->gpu));
    spec->gpu_count = gpus;
    spec->device_count = dev->sm_count = dev->mem_count = 1;
    dev->sm_mhz = fl_must(malloc(sizeof *dev->sm_mhz));
    dev->mem_mhz = fl_must(malloc(sizeof *dev->mem_mhz));
    dev->b0_w = fl_must(calloc(1, sizeof *dev->b0_w));
    dev->default_sm_mhz = *dev->sm_mhz = sm_mhz;
    dev->default_mem_mhz = *dev->mem_mhz = mem_mhz;
    dev->sharpness = INFINITY;
    const double mhz[] = {1, 1e5}, volt[] = {1, 1};
    return fl_curve_new(&dev->voltage, mhz, volt, 2) == FL_MODEL_OK ? FL_OK : fl_no_memory(d, "the boards");
}

fl_status fl_serving_simulate(const fl_requests *r, const fl_batching_rules *rules, const fl_step_law *law,
                              double sm_mhz, fl_serving_times *times, fl_served_summary *sum, fl_diag *d) {
    uint32_t gpu[FL_SERVING_GPUS_MAX];
    fl_serving_server server[FL_SERVING_GPUS_MAX];
    const fl_serving_setup setup = {.requests = r,
                                    .server = server,
                                    .server_count = law->replicas,
                                    .replicas = law->replicas,
                                    .route = FL_ROUTE_LEAST_LOADED};
    for (uint32_t i = 0; i < law->replicas; i++) {
        gpu[i] = i;
        server[i] = (fl_serving_server){.rules = *rules, .law = law, .gpu = &gpu[i], .gpu_count = 1};
    }
    fl_node_spec spec = {0};
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_run_result run = {0};
    fl_status s = open_node(&spec, law->replicas, (int32_t)lround(sm_mhz),
                            law->ref_mem_mhz > 0 ? (int32_t)lround(law->ref_mem_mhz) : 1000, d);
    if (!s)
        s = fl_serving_workload(&w, "the run", &setup, d);
    if (!s)
        s = fl_rates_new(&rates, w, &spec, d);
    if (!s)
        s = fl_run(&(fl_run_options){.w = w, .rates = rates, .spec = &spec, .facts = &(fl_facts){.seed = 1}}, &run, d);
    for (size_t i = 0; !s && i < r->count; i++) {
        const fl_served *one = &run.served.request[i];
        times[i].first_s = fl_seconds(one->first_ps - one->arrival_ps);
        times[i].last_s = fl_seconds(one->done_ps - one->arrival_ps);
    }
    *sum = run.served.sum;
    fl_run_result_free(&run);
    fl_rates_free(rates);
    fl_workload_free(w);
    fl_node_spec_free(&spec);
    return s;
}

/* ---- latencies ---- */

fl_status fl_serving_measured(const fl_requests *r, fl_serving_times *times, fl_diag *d) {
    if (!r->times)
        return fl_fail(d, FL_BAD_INPUT, r->file, 0, 0,
                       "no times of its requests, expected columns first_token_ns and last_token_ns");
    for (size_t i = 0; i < r->count; i++) {
        const fl_request_times *t = &r->times[i];
        if (t->first_token_ns == INT64_MIN || t->last_token_ns == INT64_MIN)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->row[i].line, 0,
                           "a request without first_token_ns or last_token_ns, expected both");
        times[i].first_s = 1e-9 * (double)(t->first_token_ns - r->row[i].t_ns);
        times[i].last_s = 1e-9 * (double)(t->last_token_ns - r->row[i].t_ns);
    }
    return FL_OK;
}

static double quantile(double *x, size_t n, double q) {
    if (!n)
        return NAN;
    gsl_sort(x, 1, n);
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at, above = i + 1 < n ? i + 1 : i;
    return x[i] + (x[above] - x[i]) * (at - (double)i);
}

fl_serving_latency fl_serving_latency_of(const fl_requests *r, const fl_serving_times *times, size_t from, size_t to) {
    double *x = fl_must(malloc((to - from + 1) * sizeof *x)), sum = 0;
    fl_serving_latency l;
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        sum += x[n++] = times[i].first_s;
    l.ttft_mean = n ? sum / (double)n : NAN;
    l.ttft_p50 = quantile(x, n, 0.5);
    l.ttft_p99 = quantile(x, n, 0.99);
    n = 0;
    for (size_t i = from; i < to; i++)
        x[n++] = times[i].last_s;
    l.e2e_p50 = quantile(x, n, 0.5);
    l.e2e_p99 = quantile(x, n, 0.99);
    n = 0;
    for (size_t i = from; i < to; i++)
        if (r->row[i].output_tokens > 1)
            x[n++] = (times[i].last_s - times[i].first_s) / (r->row[i].output_tokens - 1);
    l.tpot_p50 = quantile(x, n, 0.5);
    l.tpot_p99 = quantile(x, n, 0.99);
    free(x);
    return l;
}

/* ---- calibration ---- */

/* What is expected before a run was measured: the law is a few percent off, the attention of decodes more (layer tables
 * have equal contexts, and batches have not); and a latency that is simulated with the right law is off by a percent.
 */
#define ALL_SD 0.05
#define DECODES_SD 0.15
#define EXPERTS_SD 0.15 /* routing and exchanges are assumed: as far off as the attention of decodes may be */
#define LATENCY_SD 0.01
enum { GRID = 4 }; /* points on either side of the middle */

void fl_serving_scale(fl_step_law *law, fl_serving_factors by) {
    double *const time[] = {&law->host_s,    &law->host_sequence_s, &law->token, &law->sequence,
                            &law->weights_s, &law->weights_clock,   &law->pair,  &law->chunk_key};
    double *const decodes[] = {&law->kv_s, &law->kv_clock, &law->decode, &law->kv_beside_s, &law->decode_beside};
    double *const experts[] = {&law->expert_floor_s, &law->expert_s,   &law->expert_clock,
                               &law->expert_token,   &law->exchange_s, &law->exchange_token_s};
    for (size_t i = 0; i < sizeof time / sizeof *time; i++)
        *time[i] *= by.all;
    for (size_t i = 0; i < sizeof decodes / sizeof *decodes; i++)
        *decodes[i] *= by.all * by.decodes;
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++)
        *experts[i] *= by.all * by.experts;
    const double table[FL_STEP_GRIDS] = {1, 1, by.decodes, by.decodes, 1, by.experts};
    for (size_t k = 0; k < FL_STEP_GRIDS; k++)
        for (size_t i = 0; i < law->grid[k].count; i++)
            law->grid[k].time_s[i] *= by.all * table[k];
}

typedef struct calibration {
    const fl_requests *requests;
    const fl_batching_rules *rules;
    fl_step_law *law;
    size_t learn;
    double sm_mhz;
    fl_serving_times *times;
    fl_serving_latency measured;
} calibration;

static double square_of(double simulated, double measured) {
    const double x = log(simulated / measured);
    return isfinite(x) ? x * x : 0; /* TPOT where every request has one token */
}

/* Move the law, which stands at `now`, to `wanted`. */
static void move(const calibration *c, fl_serving_factors *now, fl_serving_factors wanted) {
    fl_serving_scale(c->law, (fl_serving_factors){wanted.all / now->all, wanted.decodes / now->decodes,
                                                  wanted.experts / now->experts});
    *now = wanted;
}

static double square_beyond(double factor, double sd) { return pow(log(factor) / sd * LATENCY_SD, 2); }

/* How far the latencies are off at the factors `by`. */
static fl_status distance(const calibration *c, fl_serving_factors *now, fl_serving_factors by, double *off,
                          fl_diag *d) {
    fl_served_summary ignored;
    const fl_serving_latency *m = &c->measured;
    move(c, now, by);
    const fl_status s = fl_serving_simulate(c->requests, c->rules, c->law, c->sm_mhz, c->times, &ignored, d);
    if (s)
        return s;
    const fl_serving_latency l = fl_serving_latency_of(c->requests, c->times, 0, c->learn);
    *off = square_of(l.tpot_p50, m->tpot_p50) + square_of(l.e2e_p50, m->e2e_p50) +
           square_of(l.ttft_mean, m->ttft_mean) + square_beyond(by.all, ALL_SD) +
           square_beyond(by.decodes, DECODES_SD) + square_beyond(by.experts, EXPERTS_SD);
    return FL_OK;
}

/* The distance has many small steps (a request more or less in a batch), so it is looked at on grids, each finer and
 * around the best of the one before. */
static fl_status search(const calibration *c, fl_serving_factors *now, fl_diag *d) {
    static const double STEP[] = {0.04, 0.01, 0.0025};
    fl_serving_factors best = {1, 1, 1};
    double least = INFINITY;
    fl_status s = FL_OK;
    for (size_t round = 0; !s && round < sizeof STEP / sizeof *STEP; round++)
        for (int experts = 0; experts <= (c->law->experts > 0); experts++) {
            const fl_serving_factors centre = best;
            for (int i = -GRID; !s && i <= GRID; i++)
                for (int k = -GRID; !s && k <= GRID; k++) {
                    fl_serving_factors wanted = centre;
                    double off = 0;
                    wanted.all *= exp(STEP[round] * i);
                    *(experts ? &wanted.experts : &wanted.decodes) *= exp(2 * STEP[round] * k);
                    s = distance(c, now, wanted, &off, d);
                    if (!s && off < least) {
                        least = off;
                        best = wanted;
                    }
                }
        }
    move(c, now, best);
    return s;
}

fl_status fl_serving_calibrate(const fl_requests *r, const fl_batching_rules *rules, size_t learn, double sm_mhz,
                               fl_step_law *law, fl_serving_factors *factor, fl_diag *d) {
    calibration c = {.requests = r, .rules = rules, .law = law, .learn = learn, .sm_mhz = sm_mhz};
    c.times = fl_must(calloc(r->count + 1, sizeof *c.times));
    *factor = (fl_serving_factors){1, 1, 1};
    fl_status s = fl_serving_measured(r, c.times, d);
    if (!s) {
        c.measured = fl_serving_latency_of(r, c.times, 0, learn);
        s = search(&c, factor, d);
    }
    free(c.times);
    return s;
}
