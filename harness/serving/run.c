/* A measured run of a server against its simulation, and its calibration. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- the loop ---- */

typedef struct replica {
    fl_batching *b;
    fl_step_shape shape;
    size_t arrived;
    bool steps; /* it has requests in the step in progress */
} replica;

typedef struct group { /* replicas that step together */
    replica *of;
    uint32_t count;
    const fl_step_law *law;
    double sm_mhz;
} group;

static void note(fl_batching *b, const fl_requests *r, double now_s, fl_serving_times *times) {
    size_t count;
    const fl_batch_part *part = fl_batching_parts(b, &count);
    for (size_t i = 0; i < count; i++) {
        fl_serving_times *t = &times[part[i].request];
        const double since_s = now_s - 1e-9 * (double)r->row[part[i].request].t_ns;
        if (part[i].first)
            t->first_s = since_s;
        if (part[i].last)
            t->last_s = since_s;
    }
}

static fl_batching *least_loaded(const group *g) {
    size_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < g->count; i++) {
        const uint64_t has = g->of[i].arrived - fl_batching_count(g->of[i].b).finished;
        if (has < least) {
            least = has;
            best = i;
        }
    }
    g->of[best].arrived++;
    return g->of[best].b;
}

/* Returns how long the step takes; 0: no replica has a request. */
static double begin(const group *g) {
    uint32_t tokens = 0, busy = 0;
    double slowest = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        replica *r = &g->of[i];
        r->steps = fl_batching_begin(r->b, &r->shape);
        busy += r->steps;
        if (!r->steps)
            r->shape = fl_step_empty();
        tokens += r->shape.tokens;
    }
    for (uint32_t i = 0; busy && i < g->count; i++) {
        g->of[i].shape.group_tokens = g->count > 1 ? tokens : 0;
        slowest = fmax(slowest, fl_step_time_s(g->law, &g->of[i].shape, g->sm_mhz, 1));
    }
    return slowest;
}

static void end(const group *g, const fl_requests *r, double now_s, fl_serving_times *times) {
    for (uint32_t i = 0; i < g->count; i++) {
        if (!g->of[i].steps)
            continue;
        if (fl_batching_steady(g->of[i].b) <= 1) /* before the last of a row of equal steps no request begins or ends */
            note(g->of[i].b, r, now_s, times);
        fl_batching_end(g->of[i].b);
    }
}

static void add_counts(fl_batching_counts *sum, const fl_batching_counts *c) {
    sum->steps += c->steps;
    sum->preemptions += c->preemptions;
    sum->cached_tokens += c->cached_tokens;
}

fl_status fl_serving_simulate(const fl_requests *r, const fl_batching_rules *rules, const fl_step_law *law,
                              double sm_mhz, bool async, fl_serving_times *times, fl_batching_counts *counts,
                              fl_diag *d) {
    group g = {.count = law->replicas, .law = law, .sm_mhz = sm_mhz};
    double now_s = 0, composed_s = 0; /* composed_s: when the next step is composed */
    size_t next = 0;
    g.of = fl_must(calloc(g.count, sizeof *g.of));
    *counts = (fl_batching_counts){0};
    fl_status s = fl_batching_check(rules, r, d);
    for (uint32_t i = 0; !s && i < g.count; i++)
        s = fl_batching_new(&g.of[i].b, rules, r, d);
    while (!s) {
        while (!s && next < r->count && 1e-9 * (double)r->row[next].t_ns <= composed_s)
            s = fl_batching_arrive(least_loaded(&g), (uint32_t)next++, d);
        if (s)
            break;
        const double step_s = begin(&g);
        if (step_s > 0) {
            composed_s = now_s;
            now_s += step_s;
            end(&g, r, now_s, times);
            if (!async)
                composed_s = now_s;
        } else if (next < r->count) {
            composed_s = now_s = fmax(now_s, 1e-9 * (double)r->row[next].t_ns);
        } else {
            break;
        }
    }
    for (uint32_t i = 0; i < g.count; i++) {
        const fl_batching_counts c = s ? (fl_batching_counts){0} : fl_batching_count(g.of[i].b);
        add_counts(counts, &c);
        fl_batching_free(g.of[i].b);
    }
    free(g.of);
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
#define LATENCY_SD 0.01
enum { GRID = 4 }; /* points on either side of the middle */

static void scale_points(double *time_s, size_t count, double factor) {
    for (size_t i = 0; i < count; i++)
        time_s[i] *= factor;
}

void fl_serving_scale(fl_step_law *law, fl_serving_factors by) {
    double *const time[] = {&law->host_s,         &law->host_sequence_s, &law->token,       &law->sequence,
                            &law->weights_s,      &law->weights_clock,   &law->pair,        &law->chunk_key,
                            &law->expert_floor_s, &law->expert_s,        &law->expert_token};
    double *const decodes[] = {&law->kv_s, &law->kv_clock, &law->decode, &law->kv_beside_s, &law->decode_beside};
    for (size_t i = 0; i < sizeof time / sizeof *time; i++)
        *time[i] *= by.all;
    for (size_t i = 0; i < sizeof decodes / sizeof *decodes; i++)
        *decodes[i] *= by.all * by.decodes;
    scale_points(law->by_tokens.time_s, law->by_tokens.count, by.all);
    scale_points(law->by_sequence.time_s, law->by_sequence.count, by.all);
    scale_points(law->by_chunk.time_s, law->by_chunk.count, by.all);
    scale_points(law->by_experts.time_s, law->by_experts.count, by.all);
    scale_points(law->by_decodes.time_s, law->by_decodes.count, by.all * by.decodes);
    scale_points(law->by_decodes_beside.time_s, law->by_decodes_beside.count, by.all * by.decodes);
}

typedef struct calibration {
    const fl_requests *requests;
    const fl_batching_rules *rules;
    fl_step_law *law;
    size_t learn;
    double sm_mhz;
    bool async;
    fl_serving_times *times;
    fl_serving_latency measured;
} calibration;

static double square_of(double simulated, double measured) {
    const double x = log(simulated / measured);
    return isfinite(x) ? x * x : 0; /* TPOT where every request has one token */
}

/* The law, which stands at `now`, moved to `wanted`, and how far the latencies are off there. */
static fl_status distance(const calibration *c, fl_serving_factors *now, fl_serving_factors wanted, double *off,
                          fl_diag *d) {
    fl_batching_counts counts;
    const fl_serving_latency *m = &c->measured;
    fl_serving_scale(c->law, (fl_serving_factors){wanted.all / now->all, wanted.decodes / now->decodes});
    *now = wanted;
    const fl_status s = fl_serving_simulate(c->requests, c->rules, c->law, c->sm_mhz, c->async, c->times, &counts, d);
    if (s)
        return s;
    const fl_serving_latency l = fl_serving_latency_of(c->requests, c->times, 0, c->learn);
    *off = square_of(l.tpot_p50, m->tpot_p50) + square_of(l.e2e_p50, m->e2e_p50) +
           square_of(l.ttft_mean, m->ttft_mean) + pow(log(wanted.all) / ALL_SD, 2) * LATENCY_SD * LATENCY_SD +
           pow(log(wanted.decodes) / DECODES_SD, 2) * LATENCY_SD * LATENCY_SD;
    return FL_OK;
}

/* The distance has many small steps (a request more or less in a batch), so it is looked at on grids, each finer and
 * around the best of the one before. */
static fl_status search(const calibration *c, fl_serving_factors *now, fl_diag *d) {
    static const double STEP[] = {0.04, 0.01, 0.0025};
    fl_serving_factors best = {1, 1};
    double least = INFINITY;
    fl_status s = FL_OK;
    for (size_t round = 0; !s && round < sizeof STEP / sizeof *STEP; round++) {
        const fl_serving_factors centre = best;
        for (int i = -GRID; !s && i <= GRID; i++)
            for (int k = -GRID; !s && k <= GRID; k++) {
                double off = 0;
                const fl_serving_factors wanted = {centre.all * exp(STEP[round] * i),
                                                   centre.decodes * exp(2 * STEP[round] * k)};
                s = distance(c, now, wanted, &off, d);
                if (!s && off < least) {
                    least = off;
                    best = wanted;
                }
            }
    }
    fl_serving_scale(c->law, (fl_serving_factors){best.all / now->all, best.decodes / now->decodes});
    *now = best;
    return s;
}

fl_status fl_serving_calibrate(const fl_requests *r, const fl_batching_rules *rules, size_t learn, double sm_mhz,
                               bool async, fl_step_law *law, fl_serving_factors *factor, fl_diag *d) {
    calibration c = {.requests = r, .rules = rules, .law = law, .learn = learn, .sm_mhz = sm_mhz, .async = async};
    c.times = fl_must(calloc(r->count + 1, sizeof *c.times));
    *factor = (fl_serving_factors){1, 1};
    fl_status s = fl_serving_measured(r, c.times, d);
    if (!s) {
        c.measured = fl_serving_latency_of(r, c.times, 0, learn);
        s = search(&c, factor, d);
    }
    free(c.times);
    return s;
}
