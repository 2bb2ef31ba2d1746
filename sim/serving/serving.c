/* Accounts of steps by request (tokens, energy), the pace of a step at the clocks in force, and the workload that
 * serves. */
#include "sim/serving/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A step as a kernel of its GPUs. Its length and loads are those of the law of its batch at the clocks in force; what
 * of its power follows from the clocks alone, and what stretches every step, are the row of the server's class. */

#define FL_STEP_MOST_S 90000.0 /* 25 hours, as the longest op (FL_DURATION_MAX_NS) */

static double mem_ratio(const fl_step_law *law, const fl_device *dev, uint32_t mem) {
    const double ref = law->ref_mem_mhz > 0 ? law->ref_mem_mhz : dev->default_mem_mhz;
    return dev->mem_mhz[mem] / ref;
}

/* One rank at its own pace. The class's row holds by how much activity records, or an error, stretch it. */
static fl_model_status alone(const fl_engine *e, const fl_step_shape *shape, const fl_device *dev, uint32_t sm,
                             uint32_t mem, const fl_row *row, fl_step_rank *out) {
    fl_step_point p;
    const fl_model_status s = fl_step_at(e->s->law, shape, dev->sm_mhz[sm], mem_ratio(e->s->law, dev, mem), &p);
    if (s != FL_MODEL_OK)
        return s;
    const double stretch = row->mul == FL_MUL_ONE ? 1 : (double)row->mul / FL_MUL_ONE;
    const double time_s = p.time_s * stretch;
    if (!(time_s >= 0) || time_s > FL_STEP_MOST_S)
        return FL_MODEL_OVERFLOW;
    out->alone_ps = llround(time_s * 1e12);
    out->alone_ps += !out->alone_ps; /* so that time goes on */
    out->compute = p.compute;
    out->memory = p.memory;
    return FL_MODEL_OK;
}

/* Its power and activity when the whole step takes length_ps: a rank that waits for slower ones spins at the SM power
 * of the step, and moves no more bytes for it. */
static void draw(fl_step_rank *r, const fl_row_parts *full, int64_t length_ps) {
    const double share = r->alone_ps == length_ps ? 1 : (double)r->alone_ps / (double)length_ps;
    r->sm_mw = (int32_t)lround(r->compute * full->sm_mw);
    r->memory_mw = (int32_t)lround(r->memory * share * full->memory_mw);
    r->active_memory = lround(r->memory * share * FL_ROW_ONE);
    r->active_alu = lround(r->compute * share * FL_ROW_ONE);
}

static bool same_clocks(const fl_gpu *a, const fl_gpu *b) {
    return a->rates == b->rates; /* one kind of device, one pair of clocks, records alike */
}

/* Returns how long the slowest rank of a server takes; -1: v->status says why it takes no time. */
static int64_t slowest(fl_engines *v, fl_engine *e) {
    int64_t length_ps = 0;
    for (uint32_t i = 0; i < e->s->gpu_count; i++) {
        fl_step_rank *r = &e->rank[i];
        const fl_gpu *g = r->g;
        if (i && same_clocks(g, r[-1].g)) {
            r->alone_ps = r[-1].alone_ps;
            r->compute = r[-1].compute;
            r->memory = r[-1].memory;
            continue;
        }
        v->model = alone(e, &e->shape, g->dev, g->sm, g->mem, &g->rates->row[e->index], r);
        if (v->model != FL_MODEL_OK) {
            v->status = FL_MODEL_FAULT;
            return -1;
        }
        length_ps = r->alone_ps > length_ps ? r->alone_ps : length_ps;
    }
    return length_ps;
}

bool fl_step_pace(fl_engines *v, fl_engine *e) {
    uint32_t count;
    fl_engine *group = fl_engine_group(v, e, &count);
    int64_t length_ps = 0;
    for (uint32_t k = 0; k < count; k++) {
        const int64_t own_ps = slowest(v, &group[k]);
        if (own_ps < 0)
            return false;
        length_ps = own_ps > length_ps ? own_ps : length_ps;
    }
    for (uint32_t k = 0; k < count; k++) {
        group[k].length_ps = length_ps;
        for (uint32_t i = 0; i < group[k].s->gpu_count; i++) {
            fl_step_rank *r = &group[k].rank[i];
            draw(r, &r->g->rates->parts[group[k].index], length_ps);
            r->g->dyn_now_mw = r->g->lost ? 0 : r->sm_mw + r->memory_mw;
        }
    }
    return true;
}

int64_t fl_step_alone_ps(const fl_engine *e, const fl_step_shape *shape) {
    fl_step_rank r = {0};
    const fl_gpu *g = e->rank[0].g;
    const fl_model_status s = alone(e, shape, g->dev, g->sm, g->mem, &g->rates->row[e->index], &r);
    return s == FL_MODEL_OK ? r.alone_ps : 1; /* no more than the whole step took, which the law knew */
}

int64_t fl_step_predict_mw(const fl_engines *v, const fl_engine *e, const fl_step_rank *r, uint32_t sm,
                           const fl_clock_rates *rates) {
    uint32_t count;
    const fl_engine *group = fl_engine_group(v, e, &count);
    fl_step_rank at = *r;
    if (alone(e, &e->shape, r->g->dev, sm, r->g->mem, &rates->row[e->index], &at) != FL_MODEL_OK)
        return -1;
    int64_t length = at.alone_ps;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < group[k].s->gpu_count; i++)
            if (&group[k].rank[i] != r && group[k].rank[i].alone_ps > length)
                length = group[k].rank[i].alone_ps;
    draw(&at, &rates->parts[e->index], length);
    return at.sm_mw + at.memory_mw;
}

/* Whose tokens and whose energy those of a step are. The steps of a row, in which the same requests decode one token
 * each and none ends, cost the same however many requests they are: what each of them gets is summed up once. */

void fl_step_taken(fl_engines *v, fl_engine *e) {
    if (!e->shape.prompts) /* who is taken from the queue computes a part of its prompt */
        return;
    size_t count;
    const fl_batch_part *part = fl_batching_parts(e->batching, &count);
    for (size_t i = 0; i < count; i++) {
        fl_served *s = &v->served[part[i].request];
        if (!part[i].admitted || s->taken_ps != FL_TIME_NEVER)
            continue;
        s->taken_ps = e->begin_ps;
        s->cached_tokens = part[i].context;
    }
}

/* ---- tokens ---- */

/* `count` tokens at `t`, each so long after the one of its request before. True where they miss the target. */
static bool note_tbt(fl_engines *v, fl_engine *e, int64_t t, int64_t tbt, uint32_t count) {
    const bool missed = tbt > v->tbt_ps;
    fl_tbt_run *before = e->tbt_runs ? &e->tbt[e->tbt_runs - 1] : NULL;
    e->tbt_count += count;
    e->tbt_sum_ps += (fl_wide)tbt * count;
    e->tbt_missed += missed ? count : 0;
    if (before && before->end_ps == t && before->tbt_ps == tbt)
        before->count += count;
    else if (e->tbt_runs == e->tbt_room && fl_grow(&e->tbt, &e->tbt_room, e->tbt_runs + 1, sizeof *e->tbt))
        v->status = FL_NO_MEMORY;
    else
        e->tbt[e->tbt_runs++] = (fl_tbt_run){t, tbt, count};
    return missed;
}

static void first_token(fl_engines *v, fl_engine *e, uint32_t request, int64_t t) {
    fl_served *s = &v->served[request];
    const int64_t ttft = t - s->arrival_ps;
    s->first_ps = t;
    s->ttft_missed = ttft > v->ttft_ps;
    if (e->ttft_count == e->first_room && fl_grow(&e->first, &e->first_room, e->ttft_count + 1, sizeof *e->first)) {
        v->status = FL_NO_MEMORY;
        return;
    }
    e->first[e->ttft_count++] = request;
    e->ttft_sum_ps += ttft;
    e->ttft_missed += s->ttft_missed;
    e->prompt_tokens += v->u->requests->row[request].prompt_tokens;
    e->cached_tokens += s->cached_tokens;
}

static void later_token(fl_engines *v, fl_engine *e, uint32_t request, int64_t t) {
    fl_served *s = &v->served[request];
    const int64_t tbt = t - v->last_ps[request];
    s->tbt_missed += note_tbt(v, e, t, tbt, 1);
    s->worst_tbt_ps = tbt > s->worst_tbt_ps ? tbt : s->worst_tbt_ps;
}

static void put_out(fl_engines *v, fl_engine *e, const fl_batch_part *part, int64_t t) {
    e->tokens++;
    if (part->first)
        first_token(v, e, part->request, t);
    else
        later_token(v, e, part->request, t);
    v->last_ps[part->request] = t;
    if (e->s->role == FL_ROLE_PREFILL || (e->s->role == FL_ROLE_MIXED && part->first))
        e->waiting_tokens -= v->u->requests->row[part->request].prompt_tokens;
    if (!part->last)
        return;
    v->served[part->request].done_ps = t;
    e->last = part->request;
    e->finished++;
    v->finished++;
}

/* ---- energy ---- */

/* What the prompts of a step draw of it. In a step of both kinds: as the times that it would take with the prompts
 * alone and with the decodes alone, at the first rank's clocks. */
static fl_wide prompts_fj(const fl_engine *e) {
    const fl_step_shape *all = &e->shape;
    if (!all->decodes || !all->prompts)
        return all->prompts ? e->step_fj : 0;
    const fl_step_shape prompts = {.tokens = all->prompt_tokens,
                                   .sequences = all->prompts,
                                   .prompts = all->prompts,
                                   .prompt_tokens = all->prompt_tokens,
                                   .pairs = all->pairs,
                                   .kv_read = all->kv_read - all->kv_decode};
    const fl_step_shape decodes = {.tokens = all->decodes,
                                   .sequences = all->decodes,
                                   .decodes = all->decodes,
                                   .kv_read = all->kv_decode,
                                   .kv_decode = all->kv_decode};
    const int64_t p = fl_step_alone_ps(e, &prompts), d = fl_step_alone_ps(e, &decodes);
    return e->step_fj * p / ((fl_wide)p + d);
}

/* Of a sum to be shared by equal parts: one part. What does not divide is carried on. */
static fl_wide each_of(fl_engine *e, fl_wide fj, uint32_t count) {
    fj += e->carry_fj;
    const fl_wide each = fj == (int64_t)fj ? (int64_t)fj / count : fj / count;
    e->carry_fj = fj - each * count;
    return each;
}

void fl_step_settle(fl_engines *v, fl_engine *e) {
    for (uint32_t i = 0; e->row_steps && i < e->members; i++) {
        fl_served *s = &v->served[e->member[i]];
        s->decode_fj += e->row_fj;
        s->tbt_missed += e->row_missed;
        s->worst_tbt_ps = e->row_worst_ps > s->worst_tbt_ps ? e->row_worst_ps : s->worst_tbt_ps;
        v->last_ps[e->member[i]] = e->row_ps;
    }
    e->row_steps = 0;
    e->row_fj = 0;
    e->row_worst_ps = 0;
    e->row_missed = 0;
}

/* ---- the two ways ---- */

static void account_row(fl_engines *v, fl_engine *e) {
    const int64_t t = e->end_ps, tbt = t - e->row_ps;
    e->row_steps++;
    e->row_missed += note_tbt(v, e, t, tbt, e->members);
    e->row_worst_ps = tbt > e->row_worst_ps ? tbt : e->row_worst_ps;
    e->row_fj += each_of(e, e->step_fj, e->members);
    e->row_ps = t;
    e->tokens += e->members;
}

static void account_parts(fl_engines *v, fl_engine *e) {
    size_t count;
    const fl_batch_part *part = fl_batching_parts(e->batching, &count);
    const fl_wide prompts = prompts_fj(e);
    const fl_wide each = e->shape.decodes ? each_of(e, e->step_fj - prompts, e->shape.decodes) : 0;
    fl_wide given = 0;
    uint64_t tokens = 0;
    uint32_t out = 0;
    for (size_t i = 0; i < count; i++) {
        fl_served *s = &v->served[part[i].request];
        if (part[i].prompt) {
            tokens += part[i].tokens;
            const fl_wide up_to = prompts * (fl_wide)tokens / e->shape.prompt_tokens;
            s->prefill_fj += up_to - given;
            given = up_to;
        } else {
            s->decode_fj += each;
        }
        if (part[i].emits)
            put_out(v, e, &part[i], e->end_ps);
        out += part[i].emits;
        e->member[i] = part[i].request;
    }
    e->members = out == count ? out : 0;
    e->row_ps = e->end_ps;
}

void fl_step_account(fl_engines *v, fl_engine *e) {
    e->steps++;
    e->computed += e->shape.tokens;
    e->steps_fj += e->step_fj;
    if (e->members && fl_batching_same(e->batching) && fl_batching_steady(e->batching) > 1) {
        account_row(v, e);
        return;
    }
    fl_step_settle(v, e);
    account_parts(v, e);
}

void fl_served_free(fl_served_result *r) {
    free(r->request);
    *r = (fl_served_result){0};
}

/* ---- the workload ---- */

static bool pools_are_whole(const fl_serving_setup *u) {
    uint32_t count[3] = {0};
    for (uint32_t i = 0; i < u->server_count; i++)
        count[u->server[i].role]++;
    if (!count[FL_ROLE_PREFILL] && !count[FL_ROLE_DECODE])
        return true;
    return count[FL_ROLE_PREFILL] && count[FL_ROLE_DECODE] && u->link.latency_ns >= 0 && u->link.bytes_per_s > 0 &&
           u->link.bytes_per_token > 0 && isfinite(u->link.bytes_per_s) && isfinite(u->link.bytes_per_token);
}

static fl_status check(const fl_serving_setup *u, const char *name, fl_diag *d) {
    if (!u->requests || !u->requests->count)
        return fl_refuse(d, "%s: no request, expected at least one", name);
    if (!u->server_count)
        return fl_refuse(d, "%s: no server, expected at least one", name);
    if (u->replicas > 1 && u->server_count % u->replicas)
        return fl_refuse(d, "%s: %u servers, expected whole groups of %u replicas", name, u->server_count, u->replicas);
    if (!(u->scale >= 0) || !isfinite(u->scale))
        return fl_refuse(d, "%s: scale %g, expected a number above 0", name, u->scale);
    if (u->ttft_target_ns < 0 || u->tbt_target_ns < 0 || u->signals_ns < 0)
        return fl_refuse(d, "%s: a latency target or period below 0, expected 0 or more", name);
    if (!(u->target_share >= 0) || u->target_share > 1)
        return fl_refuse(d, "%s: %g of all tokens are to meet the targets, expected 0 to 1", name, u->target_share);
    if (fl_serving_arrival_ps(u, u->requests->count - 1) >= FL_TIME_END)
        return fl_refuse(d, "%s: requests arrive beyond 26 days of simulated time", name);
    if (!pools_are_whole(u))
        return fl_refuse(
            d,
            "%s: pools without a prefill and a decode server, or without a link's bandwidth and the KV bytes "
            "of a token, expected all of them",
            name);
    for (uint32_t i = 0; i < u->server_count; i++) {
        const fl_serving_server *s = &u->server[i];
        if (!s->gpu_count || !s->law)
            return fl_refuse(d, "%s: server %u has no %s", name, i, s->law ? "GPU" : "law of its steps");
        if (fl_step_law_check(s->law) != FL_MODEL_OK)
            return fl_refuse(d, "%s: the law of server %u is not one: a time below 0, or none at all", name, i);
        fl_status refused = fl_batching_check(&s->rules, u->requests, d);
        if (refused)
            return refused;
        for (uint32_t k = 0; k <= i; k++) /* of one server, too */
            for (uint32_t a = 0; a < s->gpu_count; a++)
                for (uint32_t b = 0; b < (k < i ? u->server[k].gpu_count : a); b++)
                    if (s->gpu[a] == u->server[k].gpu[b])
                        return fl_refuse(d, "%s: GPU %u serves twice, expected each to be of one server", name,
                                         s->gpu[a]);
    }
    return FL_OK;
}

/* What of a step follows from the clocks but not from its batch, as the row of a class: power above the base at full
 * load, and by how much activity records, or an error of the model that is asked for, stretch it. */
static fl_status add_class(fl_workload *w, const fl_serving_server *s, uint32_t index, fl_diag *d) {
    char name[32];
    uint32_t id;
    snprintf(name, sizeof name, "step of server %u", index);
    const fl_kernel_kind kind = {.name = name, .name_id = index, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    const fl_load load = {.tl = 1,
                          .alpha = s->law->sm_load,
                          .beta = s->law->memory_load,
                          .sm_demand = 1,
                          .ref_sm_mhz = s->law->ref_sm_mhz > 0 ? s->law->ref_sm_mhz : 1000,
                          .ref_mem_mhz = s->law->ref_mem_mhz > 0 ? s->law->ref_mem_mhz : 1000};
    return fl_workload_add_class(w, &load, &kind, &id, d);
}

static fl_status add_island(fl_workload *w, const fl_serving_setup *u, fl_diag *d) {
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < u->server_count; i++)
        gpus += u->server[i].gpu_count;
    w->island = calloc(1, sizeof *w->island);
    if (!w->island)
        return fl_no_memory(d, w->name);
    w->island_count = 1;
    w->island->serves = true;
    w->island->gpu = calloc(gpus, sizeof *w->island->gpu);
    if (!w->island->gpu)
        return fl_no_memory(d, w->name);
    for (uint32_t i = 0; i < u->server_count; i++)
        for (uint32_t k = 0; k < u->server[i].gpu_count; k++) {
            const uint32_t gpu = u->server[i].gpu[k];
            w->island->gpu[w->island->gpu_count++] = gpu;
            w->gpu_count = gpu >= w->gpu_count ? gpu + 1 : w->gpu_count;
        }
    return FL_OK;
}

fl_status fl_serving_workload(fl_workload **out, const char *name, const fl_serving_setup *setup, fl_diag *d) {
    fl_workload *w = NULL;
    fl_status s = check(setup, name, d);
    if (!s)
        s = fl_workload_new(&w, name, d);
    for (uint32_t i = 0; !s && i < setup->server_count; i++)
        s = add_class(w, &setup->server[i], i, d);
    if (!s)
        s = add_island(w, setup, d);
    if (s) {
        fl_workload_free(w);
        return s;
    }
    w->serving = setup;
    w->gaps_are_host = false;
    for (uint32_t i = 0; i < setup->server_count; i++) {
        w->pools |= setup->server[i].role != FL_ROLE_MIXED;
        const fl_step_law *law = setup->server[i].law;
        w->assumed |= law->sm_count < 2;
        if (law->sm_count < 2)
            continue;
        w->sm_min_mhz = fmax(w->sm_min_mhz, law->sm_mhz[0]);
        w->sm_max_mhz = fmin(w->sm_max_mhz, law->sm_mhz[law->sm_count - 1]);
    }
    *out = w;
    return FL_OK;
}

void fl_serving_facts(const fl_serving_setup *setup, fl_server_facts *out) {
    for (uint32_t i = 0; i < setup->server_count; i++) {
        const fl_serving_server *s = &setup->server[i];
        out[i] = (fl_server_facts){.gpu = s->gpu,
                                   .gpu_count = s->gpu_count,
                                   .max_seqs = s->rules.max_seqs,
                                   .token_budget = s->rules.token_budget,
                                   .kv_tokens = s->rules.kv_blocks * s->rules.block_tokens,
                                   .ttft_target_ns = setup->ttft_target_ns,
                                   .tbt_target_ns = setup->tbt_target_ns,
                                   .target_share = setup->target_share,
                                   .role = s->role};
    }
}

int64_t fl_serving_arrival_ps(const fl_serving_setup *setup, size_t i) {
    const int64_t ns = fl_requests_scaled_ns(setup->requests->row[i].t_ns, setup->scale > 0 ? setup->scale : 1);
    return ns > FL_TIME_END / FL_PS_PER_NS ? FL_TIME_END : ns * FL_PS_PER_NS;
}
