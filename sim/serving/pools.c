/* Pools of servers: prompts on some, outputs on others; which server a request goes to, and how its KV moves. */
#include "sim/serving/inside.h"

#include "sim/base/base.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- routing ---- */

static fl_route_view view_of(const fl_engine *e, bool all) {
    const fl_gpu *g = e->rank[0].g;
    const uint64_t here = e->arrived - e->finished - e->gone;
    return (fl_route_view){.server = e->index,
                           .running = (uint32_t)(here + e->incoming_count - e->incoming_from + e->moving),
                           .waiting_tokens = e->waiting_tokens,
                           .kv_tokens = all ? fl_batching_count(e->batching).blocks_used * e->s->rules.block_tokens : 0,
                           .sm_mhz = g->dev->sm_mhz[g->sm]};
}

uint32_t fl_route_fewest(const fl_route_query *q) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < q->count; i++)
        if (q->decode ? q->view[i].running < q->view[best].running
                      : q->view[i].waiting_tokens < q->view[best].waiting_tokens)
            best = i;
    return best;
}

fl_engine *fl_pools_route(fl_engines *v, bool decode, uint32_t request, uint32_t context) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        const fl_engine *e = &v->engine[i];
        if (!e->lost && (e->s->role == FL_ROLE_DECODE) == decode)
            v->view[count++] = view_of(e, v->route != NULL);
    }
    if (!count)
        return NULL;
    const fl_route_query q = {
        .decode = decode, .request = request, .context_tokens = context, .view = v->view, .count = count};
    const uint32_t chosen = v->route ? v->route(v->route_user, &q) : count;
    return &v->engine[v->view[chosen < count ? chosen : fl_route_fewest(&q)].server];
}

void fl_pools_take(fl_engines *v, fl_engine *e, uint32_t request, int64_t t) {
    v->served[request].server = e->index;
    v->ready_ps[request] = t;
    if (e->s->role != FL_ROLE_DECODE)
        e->waiting_tokens += v->u->requests->row[request].prompt_tokens;
    if (fl_grow(&e->mine, &e->mine_room, e->arrived + 1, sizeof *e->mine))
        v->status = FL_NO_MEMORY;
    else
        e->mine[e->arrived++] = request;
}

/* ---- transfers ---- */

/* Puts a transfer into the queue of a decode server. Without one the request stays where it is. */
static void line_up(fl_engines *v, uint32_t request, uint32_t from, uint32_t tokens) {
    fl_engine *to = fl_pools_route(v, true, request, tokens);
    if (!to)
        return;
    if (fl_grow(&to->incoming, &to->incoming_room, to->incoming_count + 1, sizeof *to->incoming)) {
        v->status = FL_NO_MEMORY;
        return;
    }
    to->incoming[to->incoming_count++] =
        (fl_transfer){.request = request, .from = from, .to = to->index, .tokens = tokens, .end_ps = FL_TIME_NEVER};
}

void fl_pools_send(fl_engines *v, fl_engine *e) {
    size_t count;
    const uint32_t *held = fl_batching_held(e->batching, &count);
    for (size_t i = 0; i < count; i++) {
        e->gone++;
        line_up(v, held[i], e->index, fl_batching_context(e->batching, held[i]));
    }
}

static int64_t length_ps(const fl_serving_link *l, uint32_t tokens) {
    const int64_t bytes_ps = llround(tokens * l->bytes_per_token / l->bytes_per_s * 1e12);
    return l->latency_ns * FL_PS_PER_NS + (bytes_ps > 0 ? bytes_ps : 1);
}

/* One after another on the link between two servers. */
static void start(fl_engines *v, fl_engine *to, fl_transfer x, int64_t t) {
    int64_t *link = &v->link_ps[(size_t)x.from * v->u->server_count + x.to];
    if (fl_grow(&v->transfer, &v->transfer_room, v->transfers + 1, sizeof *v->transfer)) {
        v->status = FL_NO_MEMORY;
        return;
    }
    x.end_ps = (*link > t ? *link : t) + length_ps(&v->u->link, x.tokens);
    *link = x.end_ps;
    to->moving++;
    v->moved_ps = x.end_ps < v->moved_ps ? x.end_ps : v->moved_ps;
    v->transfer[v->transfers++] = x;
}

void fl_pools_reserve(fl_engines *v, int64_t t) {
    for (uint32_t i = 0; i < v->u->server_count && !v->status; i++) {
        fl_engine *e = &v->engine[i];
        while (!e->lost && e->incoming_from < e->incoming_count && !v->status) {
            const fl_transfer x = e->incoming[e->incoming_from];
            bool fits;
            v->status = fl_batching_reserve(e->batching, x.request, x.tokens,
                                            fl_batching_output(v->engine[x.from].batching, x.request), &fits);
            if (v->status || !fits)
                break;
            e->incoming_from++;
            start(v, e, x, t);
        }
    }
}

static void find_next(fl_engines *v) {
    v->moved_ps = FL_TIME_NEVER;
    for (size_t i = 0; i < v->transfers; i++)
        v->moved_ps = v->transfer[i].end_ps < v->moved_ps ? v->transfer[i].end_ps : v->moved_ps;
}

void fl_pools_land(fl_engines *v, int64_t t) {
    size_t left = 0;
    if (v->moved_ps != t)
        return;
    for (size_t i = 0; i < v->transfers; i++) {
        const fl_transfer x = v->transfer[i];
        if (x.end_ps != t) {
            v->transfer[left++] = x;
            continue;
        }
        fl_engine *to = &v->engine[x.to];
        fl_batching_release(v->engine[x.from].batching, x.request);
        v->served[x.request].prefilled_by = x.from;
        v->served[x.request].moved_ps = t;
        to->moving--;
        v->moved++;
        fl_pools_take(v, to, x.request, t);
    }
    v->transfers = left;
    find_next(v);
}

/* ---- losses ---- */

/* Tokens that a request had put out on a server, or before it came there. */
static uint32_t output_of(const fl_engines *v, const fl_engine *e, uint32_t request) {
    const uint32_t here = fl_batching_output(e->batching, request);
    return here > v->output[request] ? here : v->output[request];
}

/* All that it computed is lost: a prefill server computes its prompt and its output again. */
static void restart(fl_engines *v, uint32_t request, uint32_t output, int64_t t) {
    fl_engine *e = fl_pools_route(v, false, request, v->u->requests->row[request].prompt_tokens + output);
    v->output[request] = output;
    if (e)
        fl_pools_take(v, e, request, t);
}

/* What was on its way to a lost server goes to another one, as long as its source has it; what came from one restarts.
 */
static void turn_back(fl_engines *v, const fl_transfer *x, bool reserved, int64_t t) {
    const fl_engine *from = &v->engine[x->from], *to = &v->engine[x->to];
    if (!from->lost && !to->lost)
        return;
    if (reserved && !to->lost)
        fl_batching_cancel(to->batching, x->request);
    if (from->lost)
        restart(v, x->request, output_of(v, from, x->request), t);
    else
        line_up(v, x->request, x->from, x->tokens);
}

void fl_pools_lose(fl_engines *v, fl_engine *lost, int64_t t) {
    size_t left = 0;
    if (lost->s->role == FL_ROLE_MIXED)
        return;
    fl_step_settle(v, lost);
    for (size_t i = 0; i < v->transfers; i++) {
        const fl_transfer x = v->transfer[i];
        if (x.from != lost->index && x.to != lost->index) {
            v->transfer[left++] = x;
            continue;
        }
        v->engine[x.to].moving--;
        turn_back(v, &x, true, t);
    }
    v->transfers = left;
    find_next(v);
    for (uint32_t i = 0; i < v->u->server_count; i++) {
        fl_engine *e = &v->engine[i];
        size_t kept = e->incoming_from;
        for (size_t k = kept, count = e->incoming_count; k < count; k++) {
            const fl_transfer x = e->incoming[k];
            if (x.from == lost->index || x.to == lost->index)
                turn_back(v, &x, false, t);
            else
                e->incoming[kept++] = x;
        }
        e->incoming_count = kept; /* none was put into this queue meanwhile: what goes elsewhere avoids a lost server */
    }
    for (uint64_t i = 0, count = lost->arrived; i < count; i++) {
        const uint32_t r = lost->mine[i];
        if (v->served[r].server != lost->index || v->served[r].done_ps != FL_TIME_NEVER ||
            fl_batching_is_held(lost->batching, r))
            continue;
        restart(v, r, output_of(v, lost, r), t);
    }
    lost->gone = lost->arrived - lost->finished;
    v->wake_ps = t;
}
