/* Servers in execution: arrivals and ends of steps, event by event, and what happens at boundaries. */
#include "sim/serving/inside.h"

#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- opening and closing ---- */

static fl_status open_engine(fl_engines *v, uint32_t index, fl_gpu *gpu, fl_diag *d) {
    fl_engine *e = &v->engine[index];
    const fl_serving_server *s = &v->u->server[index];
    *e = (fl_engine){.s = s, .index = index, .last = FL_NONE, .end_ps = FL_TIME_NEVER};
    e->rank = calloc(s->gpu_count, sizeof *e->rank);
    e->member = calloc((size_t)s->rules.max_seqs + 1, sizeof *e->member);
    if (!e->rank || !e->member)
        return fl_no_memory(d, "the servers");
    for (uint32_t i = 0; i < s->gpu_count; i++)
        e->rank[i].g = &gpu[s->gpu[i]];
    fl_batching_rules rules = s->rules;
    rules.hands_over = s->role == FL_ROLE_PREFILL;
    return fl_batching_new(&e->batching, &rules, v->u->requests, d);
}

fl_status fl_engines_open(fl_engines **out, const fl_workload *w, fl_gpu *gpu, const fl_engines_needs *needs,
                          fl_diag *d) {
    const fl_serving_setup *u = w->serving;
    const size_t count = u->requests->count;
    fl_engines *v = calloc(1, sizeof *v);
    if (!v)
        return fl_no_memory(d, "the servers");
    v->u = u;
    v->ttft_ps = u->ttft_target_ns ? u->ttft_target_ns * FL_PS_PER_NS : FL_TIME_NEVER;
    v->tbt_ps = u->tbt_target_ns ? u->tbt_target_ns * FL_PS_PER_NS : FL_TIME_NEVER;
    v->records = needs->batches;
    v->engine = calloc(u->server_count, sizeof *v->engine);
    v->served = calloc(count, sizeof *v->served);
    v->last_ps = calloc(count, sizeof *v->last_ps);
    v->ready_ps = calloc(count, sizeof *v->ready_ps);
    v->output = calloc(count, sizeof *v->output);
    v->view = calloc(u->server_count, sizeof *v->view);
    v->link_ps = calloc((size_t)u->server_count * u->server_count, sizeof *v->link_ps);
    v->moved_ps = v->wake_ps = FL_TIME_NEVER;
    v->route = needs->route;
    v->route_user = needs->route_user;
    fl_status s = v->engine && v->served && v->last_ps && v->ready_ps && v->output && v->view && v->link_ps
                      ? FL_OK
                      : fl_no_memory(d, "the servers");
    for (uint32_t i = 0; !s && i < u->server_count; i++) {
        v->pools |= u->server[i].role != FL_ROLE_MIXED;
        s = open_engine(v, i, gpu, d);
    }
    if (!s)
        s = fl_engines_signals_open(v, needs->signals, d);
    if (s) {
        fl_engines_close(v);
        return s;
    }
    for (size_t i = 0; i < count; i++) {
        fl_served *r = &v->served[i];
        r->arrival_ps = fl_serving_arrival_ps(u, i);
        r->taken_ps = r->first_ps = r->done_ps = FL_TIME_NEVER;
        r->moved_ps = FL_TIME_NEVER;
        r->server = r->prefilled_by = FL_NONE;
    }
    v->next_ps = v->served[0].arrival_ps;
    *out = v;
    return FL_OK;
}

void fl_engines_close(fl_engines *v) {
    if (!v)
        return;
    for (uint32_t i = 0; v->engine && i < v->u->server_count; i++) {
        fl_engine *e = &v->engine[i];
        fl_batching_free(e->batching);
        free(e->rank);
        free(e->member);
        free(e->tbt);
        free(e->first);
        free(e->mine);
        free(e->incoming);
        free(e->signals);
    }
    free(v->engine);
    free(v->served);
    free(v->last_ps);
    free(v->ready_ps);
    free(v->output);
    free(v->transfer);
    free(v->link_ps);
    free(v->view);
    free(v->batch);
    free(v);
}

/* ---- one step ---- */

/* Up to `to`, at the powers in force since charged_ps. A power counts for the peak once time passes at it. */
static void charge(fl_engine *e, int64_t to) {
    const int64_t dt = to - e->charged_ps;
    if (dt <= 0)
        return;
    e->charged_ps = to;
    for (uint32_t i = 0; i < e->s->gpu_count; i++) {
        const fl_step_rank *r = &e->rank[i];
        fl_gpu *g = r->g;
        if (g->lost)
            continue;
        const int64_t cool_mw = (int64_t)g->rates->base.total_mw + r->sm_mw + r->memory_mw;
        fl_slot *slot = &g->slot[g->slot_now];
        slot->sm_fj += dt * r->sm_mw;
        slot->memory_fj += dt * r->memory_mw;
        g->window.dyn_fj += dt * (r->sm_mw + r->memory_mw);
        g->window.memory += dt * r->active_memory;
        if (g->profiled) {
            g->window.alu += dt * r->active_alu;
            g->window.sms += dt * FL_ROW_ONE;
        }
        g->peak_mw = cool_mw > g->peak_mw ? cool_mw : g->peak_mw;
        e->step_fj += (fl_wide)dt * (cool_mw + g->leak_mw);
    }
}

/* The scheduler hears of requests that came up to t. */
static void hand_over(fl_engines *v, fl_engine *e, int64_t t) {
    for (; e->handed < e->arrived && v->ready_ps[e->mine[e->handed]] <= t; e->handed++) {
        const uint32_t r = e->mine[e->handed];
        const fl_status s = e->s->role == FL_ROLE_DECODE ? fl_batching_land(e->batching, r, NULL)
                            : v->output[r]               ? fl_batching_arrive_again(e->batching, r, v->output[r], NULL)
                                                         : fl_batching_arrive(e->batching, r, NULL);
        if (s) {
            v->status = FL_NO_MEMORY;
            return;
        }
    }
}

/* Where a step follows another at once, an engine that schedules asynchronously has composed it as that one began. */
static bool compose(fl_engines *v, fl_engine *e, int64_t t) {
    const bool before = e->s->rules.async_scheduling && e->steps && e->ended_ps == t;
    hand_over(v, e, before ? e->begin_ps : t);
    if (v->status)
        return false;
    if (fl_batching_begin(e->batching, &e->shape))
        return true;
    hand_over(v, e, t);
    return !v->status && fl_batching_begin(e->batching, &e->shape);
}

/* e and its replicas, none of which is busy. */
static void begin_step(fl_engines *v, fl_engine *e, int64_t t) {
    uint32_t count, tokens = 0, busy = 0;
    fl_engine *group = fl_engine_group(v, e, &count);
    for (uint32_t k = 0; k < count && !v->status; k++) {
        group[k].empty = !compose(v, &group[k], t);
        if (group[k].empty)
            group[k].shape = fl_step_empty();
        tokens += group[k].shape.tokens;
        busy += !group[k].empty;
    }
    if (!busy || v->status)
        return;
    for (uint32_t k = 0; k < count; k++) {
        group[k].shape.group_tokens = count > 1 ? tokens : 0;
        group[k].busy = true;
        group[k].begin_ps = group[k].charged_ps = t;
        group[k].step_fj = 0;
        if (!group[k].empty)
            fl_step_taken(v, &group[k]);
    }
    if (!fl_step_pace(v, e))
        return;
    for (uint32_t k = 0; k < count; k++) {
        group[k].end_ps = t + group[k].length_ps;
        for (uint32_t i = 0; i < group[k].s->gpu_count; i++) {
            fl_gpu *g = group[k].rank[i].g;
            g->active = g->resident = 1;
            g->busy_since_ps = t;
            fl_gpu_wake(g, t);
        }
    }
}

static void record_kernel(const fl_engine *e, fl_gpu *g, int64_t end_ps) {
    fl_record_buffer *b = &g->records;
    if (fl_grow(&b->record, &b->room, b->count + 1, sizeof *b->record)) {
        b->failed = true; /* the node reads this at its next boundary and stops */
        return;
    }
    b->record[b->count++] = (fl_kernel_record){
        .start_ns = e->begin_ps / FL_PS_PER_NS, .end_ns = end_ps / FL_PS_PER_NS, .kind = e->index, .gpu = g->index};
}

static void record_batch(fl_engines *v, const fl_engine *e, int64_t end_ps) {
    if (fl_grow(&v->batch, &v->batch_room, v->batch_count + 1, sizeof *v->batch)) {
        v->status = FL_NO_MEMORY;
        return;
    }
    v->batch[v->batch_count++] = (fl_batch_record){.start_ns = e->begin_ps / FL_PS_PER_NS,
                                                   .end_ns = end_ps / FL_PS_PER_NS,
                                                   .server = e->index,
                                                   .prompt_tokens = e->shape.prompt_tokens,
                                                   .prompts = e->shape.prompts,
                                                   .decode_sequences = e->shape.decodes,
                                                   .kv_tokens = e->shape.kv_read};
}

static void end_step(fl_engines *v, fl_engine *e, int64_t t) {
    charge(e, t);
    for (uint32_t i = 0; i < e->s->gpu_count; i++) {
        fl_gpu *g = e->rank[i].g;
        g->active = g->resident = 0;
        g->sums.busy_ps += t - g->busy_since_ps;
        g->sums.kernels++;
        g->sums.iterations++;
        g->dyn_now_mw = 0;
        fl_gpu_rest(g, t);
        if (g->records.on)
            record_kernel(e, g, t);
    }
    if (v->records && !e->empty)
        record_batch(v, e, t);
    if (!e->empty) {
        fl_step_account(v, e);
        fl_batching_end(e->batching);
        if (e->s->role == FL_ROLE_PREFILL)
            fl_pools_send(v, e);
    }
    e->busy = false;
    e->ended_ps = t;
    e->end_ps = FL_TIME_NEVER;
}

/* ---- arrivals ---- */

static fl_engine *least_loaded(fl_engines *v) {
    fl_engine *best = NULL;
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        fl_engine *e = &v->engine[i];
        if (!e->lost && (!best || e->arrived - e->finished < best->arrived - best->finished))
            best = e;
    }
    return best;
}

/* The router knows when a server is gone: it passes it over. */
static fl_engine *next_in_turn(fl_engines *v) {
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        fl_engine *e = &v->engine[(v->next + i) % v->u->server_count];
        if (!e->lost)
            return e;
    }
    return NULL;
}

static void arrive(fl_engines *v) {
    const uint32_t request = (uint32_t)v->next;
    fl_engine *e = v->pools ? fl_pools_route(v, false, request, v->u->requests->row[request].prompt_tokens)
                   : v->u->route == FL_ROUTE_LEAST_LOADED ? least_loaded(v)
                                                          : next_in_turn(v);
    const int64_t t = v->next_ps;
    v->next++;
    v->next_ps = v->next < v->u->requests->count ? v->served[v->next].arrival_ps : FL_TIME_NEVER;
    if (e)
        fl_pools_take(v, e, request, t);
}

/* ---- the loop ---- */

static int64_t earliest(const fl_engines *v) {
    int64_t t = v->next_ps < v->tell_ps ? v->next_ps : v->tell_ps;
    t = v->moved_ps < t ? v->moved_ps : t;
    t = v->wake_ps < t ? v->wake_ps : t;
    for (uint32_t i = 0; i < v->u->server_count; i++)
        t = v->engine[i].end_ps < t ? v->engine[i].end_ps : t;
    return t;
}

int64_t fl_engines_advance(fl_engines *v, int64_t now, int64_t until) {
    const uint32_t servers = v->u->server_count;
    int64_t t = now;
    while (!v->status && !fl_engines_done(v)) {
        const int64_t next = earliest(v);
        if (next > until)
            break;
        t = next;
        v->wake_ps = v->wake_ps > t ? v->wake_ps : FL_TIME_NEVER;
        for (uint32_t i = 0; i < servers; i++)
            if (v->engine[i].end_ps == t)
                end_step(v, &v->engine[i], t);
        fl_pools_land(v, t);
        while (v->next_ps == t && !v->status)
            arrive(v);
        if (v->pools)
            fl_pools_reserve(v, t);
        for (uint32_t i = 0; i < servers && !v->status; i++) {
            fl_engine *e = &v->engine[i];
            if (!e->busy && !e->lost && e->arrived > e->finished + e->gone)
                begin_step(v, e, t);
        }
        if (v->tell_ps == t)
            fl_engines_tell(v, t);
    }
    const int64_t reached = fl_engines_done(v) ? t : until;
    for (uint32_t i = 0; i < servers; i++)
        if (v->engine[i].busy)
            charge(&v->engine[i], reached);
    v->now_ps = reached;
    return reached;
}

fl_status fl_engines_refused(const fl_engines *v, const char *name, fl_diag *d) {
    if (v->status == FL_NO_MEMORY)
        return fl_no_memory(d, "the servers");
    return fl_error(d, v->status, "%s: the length of an engine's step: %s", name, fl_model_text(v->model));
}

bool fl_engines_stuck(const fl_engines *v) {
    if (fl_engines_done(v) || v->next_ps != FL_TIME_NEVER || v->moved_ps != FL_TIME_NEVER ||
        v->wake_ps != FL_TIME_NEVER)
        return false;
    for (uint32_t i = 0; i < v->u->server_count; i++)
        if (v->engine[i].end_ps != FL_TIME_NEVER)
            return false;
    return true;
}

/* ---- at boundaries ---- */

static fl_engine *engine_of(const fl_engines *v, const fl_gpu *g, const fl_step_rank **rank) {
    for (uint32_t i = 0; i < v->u->server_count; i++)
        for (uint32_t k = 0; k < v->engine[i].s->gpu_count; k++)
            if (v->engine[i].rank[k].g == g) {
                *rank = &v->engine[i].rank[k];
                return &v->engine[i];
            }
    return NULL;
}

void fl_engines_rescale(fl_engines *v, const fl_gpu *g, int64_t t) {
    const fl_step_rank *rank;
    fl_engine *e = engine_of(v, g, &rank);
    if (!e || !e->busy)
        return;
    const int64_t was = e->length_ps;
    uint32_t count;
    fl_engine *group = fl_engine_group(v, e, &count);
    if (!fl_step_pace(v, e) || e->lost)
        return;
    for (uint32_t k = 0; k < count; k++)
        group[k].end_ps = t + fl_rescale_ps(group[k].end_ps - t, was, group[k].length_ps);
}

void fl_engines_lose(fl_engines *v, fl_gpu *g) {
    const fl_step_rank *rank;
    fl_engine *e = engine_of(v, g, &rank);
    if (!e)
        return;
    uint32_t count;
    fl_engine *group = fl_engine_group(v, e, &count);
    for (uint32_t k = 0; k < count; k++) {
        group[k].lost = true;
        group[k].end_ps = FL_TIME_NEVER;
    }
    g->dyn_now_mw = 0;
    g->active = g->resident = 0;
    for (uint32_t k = 0; k < count; k++)
        fl_pools_lose(v, &group[k], v->now_ps);
}

int64_t fl_engines_predict_mw(const fl_engines *v, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates) {
    const fl_step_rank *rank;
    const fl_engine *e = engine_of(v, g, &rank);
    return e && e->busy ? fl_step_predict_mw(v, e, rank, sm, rates) : -1;
}

uint64_t fl_engines_hash(const fl_engines *v, uint64_t h) {
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        const fl_engine *e = &v->engine[i];
        const uint64_t part[] = {e->arrived, e->finished, e->steps, e->tokens, (uint64_t)e->steps_fj};
        for (size_t k = 0; k < sizeof part / sizeof *part; k++)
            h = (h ^ part[k]) * UINT64_C(0x100000001b3);
    }
    return h;
}
