#include "sim/serving/signals.h"

#include <stdlib.h>

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
