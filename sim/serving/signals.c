/* What is reported of servers: the result of a run, and their signals. */
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/serving/inside.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- energy of requests ---- */

/* Energy of requests and tokens: how it is spread, over all requests and by their lengths. */

/* DynamoLLM (Stojkovic et al., HPCA 2025, Table 2): below the first is short, below the second medium. */
static const uint32_t PROMPT[] = {256, 1024}, OUTPUT[] = {100, 350};

static uint32_t length_of(uint32_t tokens, const uint32_t *border) {
    return tokens < border[0] ? 0 : tokens < border[1] ? 1 : 2;
}

uint32_t fl_served_class_of(uint32_t prompt_tokens, uint32_t output_tokens) {
    return 3 * length_of(prompt_tokens, PROMPT) + length_of(output_tokens, OUTPUT);
}

const char *const fl_served_class_name[FL_SERVED_CLASSES] = {"SS", "SM", "SL", "MS", "MM", "ML", "LS", "LM", "LL"};

/* Statistics of joules: fl_times_of of picojoules, as a picosecond is to a second. class: FL_SERVED_CLASSES = all. */
static void spread(const fl_engines *v, uint32_t class, int64_t *pj, fl_served_energy *out) {
    const fl_request_row *row = v->u->requests->row;
    size_t n = 0;
    *out = (fl_served_energy){0};
    for (int per_token = 0; per_token < 2; per_token++) {
        n = 0;
        for (size_t i = 0; i < v->u->requests->count; i++) {
            if (class < FL_SERVED_CLASSES && fl_served_class_of(row[i].prompt_tokens, row[i].output_tokens) != class)
                continue;
            const fl_wide all = (v->served[i].prefill_fj + v->served[i].decode_fj) / 1000;
            out->output_tokens += per_token ? row[i].output_tokens : 0;
            pj[n++] = (int64_t)(per_token ? all / row[i].output_tokens : all);
        }
        *(per_token ? &out->token_j : &out->request_j) = fl_times_of(pj, n);
    }
    out->requests = n;
}

/* Fill sum->energy and sum->class from requests that are done and whose energies add up. */
static fl_status served_spread_energy(const fl_engines *v, fl_served_summary *sum, fl_diag *d) {
    int64_t *pj = malloc(v->u->requests->count * sizeof *pj);
    if (!pj)
        return fl_no_memory(d, "what the run served");
    spread(v, FL_SERVED_CLASSES, pj, &sum->energy);
    for (uint32_t c = 0; c < FL_SERVED_CLASSES; c++)
        spread(v, c, pj, &sum->class[c]);
    free(pj);
    return FL_OK;
}

/* ---- the result ---- */

#define MINUTE_PS (60 * FL_PS_PER_S)

/* What is still to be handed out, and a check that all has been. */
static fl_status close_books(fl_engines *v, fl_wide *steps_fj, fl_diag *d) {
    fl_wide given = 0;
    *steps_fj = 0;
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        fl_engine *e = &v->engine[i];
        fl_step_settle(v, e);
        if (e->arrived) /* a prefill server, or a lost one, may have finished none */
            v->served[e->last != FL_NONE ? e->last : e->mine[0]].decode_fj += e->carry_fj;
        e->carry_fj = 0;
        *steps_fj += e->steps_fj;
        const fl_batching_counts c = fl_batching_count(e->batching);
        if ((c.blocks_used && !e->lost) || c.output_tokens != e->tokens)
            return fl_error(d, FL_MODEL_FAULT, "server %u keeps %llu KV blocks, and %llu of its %llu tokens were told",
                            i, (unsigned long long)c.blocks_used, (unsigned long long)e->tokens,
                            (unsigned long long)c.output_tokens);
    }
    for (size_t i = 0; i < v->u->requests->count; i++) {
        const fl_served *s = &v->served[i];
        given += s->prefill_fj + s->decode_fj;
        if (s->done_ps == FL_TIME_NEVER)
            return fl_error(d, FL_MODEL_FAULT, "request %zu was never done, though the run has ended", i);
    }
    if (given == *steps_fj)
        return FL_OK;
    return fl_error(d, FL_MODEL_FAULT, "the requests' energy does not add up: %.17g J, in all steps %.17g J",
                    fl_joules(given), fl_joules(*steps_fj));
}

static fl_status times_between(const fl_engines *v, fl_times *out, fl_diag *d) {
    size_t runs = 0;
    for (uint32_t i = 0; i < v->u->server_count; i++)
        runs += v->engine[i].tbt_runs;
    fl_time_run *run = malloc((runs + 1) * sizeof *run);
    if (!run)
        return fl_no_memory(d, "what the run served");
    runs = 0;
    for (uint32_t i = 0; i < v->u->server_count; i++)
        for (size_t k = 0; k < v->engine[i].tbt_runs; k++)
            run[runs++] = (fl_time_run){v->engine[i].tbt[k].tbt_ps, v->engine[i].tbt[k].count};
    *out = fl_times_of_runs(run, runs);
    free(run);
    return FL_OK;
}

/* Mean time between the tokens of one request; 0 with one token. */
static int64_t tpot_ps(const fl_served *s, uint32_t output_tokens) {
    return output_tokens > 1 ? (s->done_ps - s->first_ps) / (output_tokens - 1) : 0;
}

static fl_status times_of_requests(const fl_engines *v, fl_served_summary *sum, fl_diag *d) {
    const size_t count = v->u->requests->count;
    const fl_request_row *row = v->u->requests->row;
    int64_t *ps = malloc(count * sizeof *ps);
    if (!ps)
        return fl_no_memory(d, "what the run served");
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (row[i].output_tokens > 1)
            ps[n++] = tpot_ps(&v->served[i], row[i].output_tokens);
    sum->tpot = fl_times_of(ps, n);
    for (size_t i = 0; i < count; i++)
        ps[i] = v->served[i].first_ps - v->served[i].arrival_ps;
    sum->ttft = fl_times_of(ps, count);
    for (size_t i = 0; i < count; i++)
        ps[i] = v->served[i].done_ps - v->served[i].arrival_ps;
    sum->e2e = fl_times_of(ps, count);
    free(ps);
    return FL_OK;
}

static bool met_both(const fl_engines *v, size_t i) {
    const fl_served *s = &v->served[i];
    return !s->ttft_missed && tpot_ps(s, v->u->requests->row[i].output_tokens) <= v->tbt_ps;
}

static void find_worst_minute(const fl_engines *v, fl_served_summary *sum) {
    sum->worst_minute_missed = sum->worst_minute_ttft_s = -1;
    for (size_t i = 0, next; i < v->u->requests->count; i = next) {
        const int64_t minute = v->served[i].arrival_ps / MINUTE_PS;
        fl_wide ttft = 0;
        size_t missed = 0;
        for (next = i; next < v->u->requests->count && v->served[next].arrival_ps / MINUTE_PS == minute; next++) {
            ttft += v->served[next].first_ps - v->served[next].arrival_ps;
            missed += !met_both(v, next);
        }
        const double share = (double)missed / (double)(next - i);
        const double ttft_s = (double)ttft / (double)(next - i) * 1e-12;
        if (share < sum->worst_minute_missed ||
            (share <= sum->worst_minute_missed && ttft_s <= sum->worst_minute_ttft_s))
            continue;
        sum->worst_minute_s = (double)minute * 60;
        sum->worst_minute_missed = share;
        sum->worst_minute_ttft_s = ttft_s;
    }
}

/* Mean seconds that the requests [from, to) waited: for their first step, and in pools for their KV on the decode side
 * too. */
static double mean_wait_s(const fl_engines *v, size_t from, size_t to) {
    fl_wide sum = 0;
    for (size_t i = from; i < to; i++) {
        const fl_served *s = &v->served[i];
        sum += s->taken_ps - s->arrival_ps + (s->moved_ps == FL_TIME_NEVER ? 0 : s->moved_ps - s->first_ps);
    }
    return fl_real(sum) * 1e-12 / (double)(to - from);
}

/* The rule was fixed before any result was looked at. Where requests arrive faster than they are served, their waits
 * grow in proportion to time: those of the last quarter wait 7/3 times as long as those of the second, where a queue
 * that does not grow gives 1. Half as long again lies between the two. A twentieth of the time of arrivals means, by
 * Little's law, that a twentieth of all requests stand in the queue: the limit of `plot serving-load`. The last
 * twentieth of the requests waits that long too: a burst in the last quarter that was served before the end is no
 * overload (this part was added after such a burst had been called one). */
static void find_overload(const fl_engines *v, double arriving_s, fl_served_summary *sum) {
    const size_t n = v->u->requests->count;
    if (n < FL_OVERLOAD_LEAST || !(arriving_s > 0))
        return;
    sum->wait_second_s = mean_wait_s(v, n / 4, n / 2);
    sum->wait_last_s = mean_wait_s(v, n - n / 4, n);
    sum->overloaded = fmin(sum->wait_last_s, mean_wait_s(v, n - (n + 19) / 20, n)) >= arriving_s / 20 &&
                      sum->wait_last_s >= 1.5 * sum->wait_second_s;
}

static double share_of(uint64_t part, uint64_t all) { return all ? (double)part / (double)all : 0; }

static void add_counts(fl_engines *v, fl_served_summary *sum) {
    uint64_t ttft_missed = 0, tbt_missed = 0;
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        const fl_engine *e = &v->engine[i];
        sum->steps += e->steps;
        sum->preemptions += fl_batching_count(e->batching).preemptions;
        sum->computed_tokens += e->computed;
        sum->output_tokens += e->tokens;
        sum->prompt_tokens += e->prompt_tokens;
        sum->cached_tokens += e->cached_tokens;
        ttft_missed += e->ttft_missed;
        tbt_missed += e->tbt_missed;
    }
    sum->requests = v->u->requests->count;
    sum->ttft_missed = share_of(ttft_missed, sum->requests);
    sum->tbt_missed = share_of(tbt_missed, sum->output_tokens - sum->requests);
    const double most = 1 - v->u->target_share + 1e-12; /* 1 - 0.9 is a little less than a tenth */
    sum->targets = v->u->ttft_target_ns || v->u->tbt_target_ns;
    sum->met = sum->ttft_missed <= most && sum->tbt_missed <= most;
}

static uint64_t requests_that_met(const fl_engines *v) {
    uint64_t met = 0;
    for (size_t i = 0; i < v->u->requests->count; i++)
        met += met_both(v, i);
    return met;
}

fl_status fl_served_collect(fl_engines *v, int64_t makespan_ps, fl_wide node_fj, double score_j, fl_served_result *r,
                            fl_diag *d) {
    fl_served_summary *sum = &r->sum;
    fl_status s = close_books(v, &sum->serving_fj, d);
    if (!s)
        s = times_between(v, &sum->tbt, d);
    if (!s)
        s = times_of_requests(v, sum, d);
    if (!s)
        s = served_spread_energy(v, sum, d);
    if (s)
        return s;
    for (size_t i = 0; i < v->u->requests->count; i++)
        for (uint32_t k = 0; k < v->u->server_count; k++)
            v->served[i].preemptions += fl_batching_preemptions(v->engine[k].batching, (uint32_t)i);
    sum->moved = v->moved;
    add_counts(v, sum);
    find_worst_minute(v, sum);
    const double makespan_s = fl_seconds(makespan_ps);
    sum->idle_fj = node_fj - sum->serving_fj;
    sum->idle_share = node_fj > 0 ? fl_real(sum->idle_fj) / fl_real(node_fj) : 0;
    const int64_t arriving_ps = v->served[sum->requests - 1].arrival_ps - v->served[0].arrival_ps;
    find_overload(v, fl_seconds(arriving_ps), sum);
    sum->offered_per_s = arriving_ps > 0 ? (double)(sum->requests - 1) / fl_seconds(arriving_ps) : (double)NAN;
    sum->requests_per_s = (double)sum->requests / makespan_s;
    sum->tokens_per_s = (double)sum->output_tokens / makespan_s;
    sum->goodput = (double)requests_that_met(v) / makespan_s;
    sum->j_per_request = score_j / (double)sum->requests;
    sum->j_per_token = score_j / (double)sum->output_tokens;
    r->request = v->served;
    r->request_count = v->u->requests->count;
    v->served = NULL;
    return FL_OK;
}

/* ---- signals ---- */

#define WINDOW_PS (10 * FL_PS_PER_S) /* "about the last ten seconds": policies/policy.h */

enum { STEPS = 64, STEP_BITS = 6, ROWS = 58 }; /* row 0: 0..63 ns one by one; row k: 64 steps of 2^(k - 1) ns */

typedef struct fl_span_counts { /* a histogram of durations in ns */
    uint64_t all, row[ROWS];
    uint32_t step[ROWS][STEPS];
} fl_span_counts;

typedef struct fl_engine_signals {
    uint64_t needs;
    bool windows;                                /* somebody reads percentiles */
    size_t tbt_in, tbt_out, first_in, first_out; /* of engine.tbt and engine.first: up to which they have come in,
                                                    and gone out again */
    fl_span_counts ttft, tbt;
    fl_server_sample shown; /* where signals have a period: those of the last one */
    bool seen;              /* by the reader who remembers */
} fl_engine_signals;

#define PERCENTILES                                                                                                    \
    (FL_BIT(FL_SERVER_TTFT_P50_NS) | FL_BIT(FL_SERVER_TTFT_P95_NS) | FL_BIT(FL_SERVER_TTFT_P99_NS) |                   \
     FL_BIT(FL_SERVER_TBT_P50_NS) | FL_BIT(FL_SERVER_TBT_P95_NS) | FL_BIT(FL_SERVER_TBT_P99_NS))

fl_status fl_engines_signals_open(fl_engines *v, uint64_t needs, fl_diag *d) {
    v->signals_ps = v->u->signals_ns * FL_PS_PER_NS;
    v->tell_ps = needs && v->signals_ps ? 0 : FL_TIME_NEVER;
    for (uint32_t i = 0; needs && i < v->u->server_count; i++) {
        fl_engine_signals *s = v->engine[i].signals = calloc(1, sizeof *s);
        if (!s)
            return fl_no_memory(d, "the servers");
        s->needs = needs;
        s->windows = (needs & PERCENTILES) != 0;
        s->seen = true;
    }
    return FL_OK;
}

/* ---- windows ---- */

static void count_span(fl_span_counts *c, int64_t ps, int64_t count) {
    const uint64_t ns = (uint64_t)(ps / FL_PS_PER_NS);
    uint32_t row = 0, step = (uint32_t)ns;
    if (ns >= STEPS) {
        row = 64 - STEP_BITS - (uint32_t)__builtin_clzll(ns);
        step = (uint32_t)(ns >> (row - 1)) & (STEPS - 1);
    }
    c->step[row][step] += (uint32_t)count;
    c->row[row] += (uint64_t)count;
    c->all += (uint64_t)count;
}

/* Nearest rank, as fl_times_of. */
static double percentile_ns(const fl_span_counts *c, uint64_t percent) {
    uint64_t rank = (c->all * percent + 99) / 100;
    uint32_t row = 0, step = 0;
    while (row < ROWS - 1 && rank > c->row[row])
        rank -= c->row[row++];
    while (step < STEPS - 1 && rank > c->step[row][step])
        rank -= c->step[row][step++];
    return row ? (double)(((uint64_t)STEPS + step + 1) << (row - 1)) - 1 : step;
}

static void move_windows(const fl_engines *v, fl_engine *e, int64_t t) {
    fl_engine_signals *s = e->signals;
    for (; s->tbt_in < e->tbt_runs; s->tbt_in++)
        count_span(&s->tbt, e->tbt[s->tbt_in].tbt_ps, e->tbt[s->tbt_in].count);
    for (; s->tbt_out < s->tbt_in && e->tbt[s->tbt_out].end_ps <= t - WINDOW_PS; s->tbt_out++)
        count_span(&s->tbt, e->tbt[s->tbt_out].tbt_ps, -(int64_t)e->tbt[s->tbt_out].count);
    for (; s->first_in < e->ttft_count; s->first_in++) {
        const fl_served *r = &v->served[e->first[s->first_in]];
        count_span(&s->ttft, r->first_ps - r->arrival_ps, 1);
    }
    for (; s->first_out < s->first_in; s->first_out++) {
        const fl_served *r = &v->served[e->first[s->first_out]];
        if (r->first_ps > t - WINDOW_PS)
            break;
        count_span(&s->ttft, r->first_ps - r->arrival_ps, -1);
    }
}

/* ---- what is told ---- */

static void put(fl_server_sample *out, int id, double value) {
    out->value[id] = value;
    out->valid |= FL_BIT(id);
}

static double whole_ns(fl_wide ps) { return fl_real(ps / FL_PS_PER_NS); }

static double oldest_wait_ns(const fl_engines *v, fl_engine *e, int64_t t) {
    while (e->oldest < e->arrived && v->served[e->mine[e->oldest]].first_ps != FL_TIME_NEVER)
        e->oldest++;
    return e->oldest < e->arrived ? (double)((t - v->served[e->mine[e->oldest]].arrival_ps) / FL_PS_PER_NS) : 0;
}

static void put_percentiles(fl_server_sample *out, const fl_span_counts *c, int first) {
    static const uint64_t percent[] = {50, 95, 99};
    for (int i = 0; i < 3 && c->all; i++) /* of nothing there is no percentile */
        put(out, first + i, percentile_ns(c, percent[i]));
}

static void tell(const fl_engines *v, fl_engine *e, int64_t t, fl_server_sample *out) {
    const fl_batching_counts c = fl_engine_count(e);
    *out = (fl_server_sample){0};
    put(out, FL_SERVER_WAITING, c.waiting);
    put(out, FL_SERVER_RUNNING, c.running);
    put(out, FL_SERVER_KV_USED_PCT, 100.0 * (double)c.blocks_used / (double)e->s->rules.kv_blocks);
    put(out, FL_SERVER_OLDEST_WAIT_NS, oldest_wait_ns(v, e, t));
    put(out, FL_SERVER_PROMPT_TOKENS, (double)e->prompt_tokens);
    put(out, FL_SERVER_CACHED_TOKENS, (double)e->cached_tokens);
    put(out, FL_SERVER_OUTPUT_TOKENS, (double)e->tokens);
    put(out, FL_SERVER_BATCHES, (double)e->steps);
    put(out, FL_SERVER_BATCH_TOKENS, (double)e->computed);
    put(out, FL_SERVER_PREEMPTIONS, (double)c.preemptions);
    put(out, FL_SERVER_ARRIVED, (double)e->arrived);
    put(out, FL_SERVER_FINISHED, (double)e->finished);
    put(out, FL_SERVER_TTFT_SUM_NS, whole_ns(e->ttft_sum_ps));
    put(out, FL_SERVER_TTFT_COUNT, (double)e->ttft_count);
    put(out, FL_SERVER_TBT_SUM_NS, whole_ns(e->tbt_sum_ps));
    put(out, FL_SERVER_TBT_COUNT, (double)e->tbt_count);
    put(out, FL_SERVER_TTFT_MISSED, (double)e->ttft_missed);
    put(out, FL_SERVER_TBT_MISSED, (double)e->tbt_missed);
    if (e->signals->windows) {
        move_windows(v, e, t);
        put_percentiles(out, &e->signals->ttft, FL_SERVER_TTFT_P50_NS);
        put_percentiles(out, &e->signals->tbt, FL_SERVER_TBT_P50_NS);
    }
    out->fresh = out->valid;
}

void fl_engines_tell(fl_engines *v, int64_t t) {
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        fl_engine *e = &v->engine[i];
        if (!e->lost)
            tell(v, e, t, &e->signals->shown);
        e->signals->seen = false;
    }
    v->tell_ps += v->signals_ps;
}

void fl_engines_read(fl_engines *v, uint32_t server, int64_t t, bool remember, fl_server_sample *out) {
    fl_engine *e = &v->engine[server];
    fl_engine_signals *s = e->signals;
    *out = (fl_server_sample){0};
    if (!s || e->lost) /* an engine that has lost a GPU does not answer */
        return;
    if (v->signals_ps) {
        *out = s->shown;
        out->fresh = s->seen ? 0 : out->valid;
        s->seen |= remember;
    } else {
        tell(v, e, t, out);
    }
    out->valid &= s->needs;
    out->fresh &= s->needs;
}
