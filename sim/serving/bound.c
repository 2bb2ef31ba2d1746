/* The least energy that serving a list of requests can take. */
#include "sim/serving/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { TOKENS_MOST = 1 << 24 };

#define ROUNDING 1e-9 /* of a step's length to picoseconds; its powers, to milliwatts, are taken off the boards' */

/* ---- the least price of a second at the reference clock ---- */

typedef struct price {
    double ref_mhz, sm_w, memory_w; /* of a busy second there, of all ranks of a server */
} price;

static double reference_mhz(const fl_step_law *law) { return law->ref_sm_mhz > 0 ? law->ref_sm_mhz : 1000; }

/* At one pair of clocks of one rank. */
static void price_at(const fl_step_law *law, const fl_device *dev, const fl_clock_rates *at, uint32_t server,
                     uint32_t sm, uint32_t mem, double *sm_w, double *memory_w) {
    const double stretch = (double)at->row[server].mul / FL_MUL_ONE, slower = reference_mhz(law) / dev->sm_mhz[sm],
                 ref_mem = law->ref_mem_mhz > 0 ? law->ref_mem_mhz : dev->default_mem_mhz,
                 memory = ref_mem / dev->mem_mhz[mem], moved = law->weights_clock > 0 ? fmin(memory, slower) : memory;
    *sm_w = at->parts[server].sm_mw * 1e-3 * stretch * slower;
    *memory_w = at->parts[server].memory_mw * 1e-3 * stretch * moved;
}

static fl_status price_of(const fl_serving_setup *u, uint32_t server, fl_rates *rates, const fl_node_spec *spec,
                          price *out, fl_diag *d) {
    const fl_serving_server *s = &u->server[server];
    *out = (price){.ref_mhz = reference_mhz(s->law)};
    for (uint32_t k = 0; k < s->gpu_count; k++) {
        const uint32_t kind = spec->gpu[s->gpu[k]];
        const fl_device *dev = &spec->device[kind];
        double sm_w = INFINITY, memory_w = INFINITY;
        for (uint32_t i = 0; i < dev->sm_count * dev->mem_count; i++) {
            const uint32_t sm = i % dev->sm_count, mem = i / dev->sm_count;
            const fl_clock_rates *at;
            double sm_here, memory_here;
            fl_status status = fl_rates_at(rates, kind, sm, mem, &at, d);
            if (status)
                return status;
            price_at(s->law, dev, at, server, sm, mem, &sm_here, &memory_here);
            sm_w = fmin(sm_w, sm_here);
            memory_w = fmin(memory_w, memory_here);
        }
        out->sm_w += sm_w;
        out->memory_w += memory_w;
    }
    return FL_OK;
}

/* ---- the least power of the boards ---- */

static fl_status least_mw(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, uint32_t gpu, double *out,
                          fl_diag *d) {
    const fl_device *dev = &spec->device[spec->gpu[gpu]];
    if (!fl_workload_serves(w, gpu)) {
        *out = dev->no_context_w * 1000 - 1;
        return FL_OK;
    }
    *out = INFINITY;
    for (uint32_t i = 0; i < dev->sm_count * dev->mem_count; i++) {
        const fl_clock_rates *at;
        fl_status s = fl_rates_at(rates, spec->gpu[gpu], i % dev->sm_count, i / dev->sm_count, &at, d);
        if (s)
            return s;
        const fl_base *base = &at->base;
        *out = fmin(*out, base->total_mw - (dev->gate_ns ? base->static_mw + base->tree_mw : 0) - 1);
    }
    return FL_OK;
}

/* ---- what a step of n tokens, or of s sequences, adds ---- */

/* Joules of a step's matrix products and output head alone. */
static double cost_of(const fl_step_law *law, const price *p, uint32_t tokens, uint32_t sequences) {
    const fl_step_shape shape = {.tokens = tokens, .sequences = sequences};
    fl_step_point at;
    if (fl_step_at(law, &shape, p->ref_mhz, 1, &at) != FL_MODEL_OK) /* a law without matrix products */
        return 0;
    return at.time_s * (at.compute * p->sm_w + at.memory * p->memory_w);
}

/* The law without what the bound leaves out. Its tables are borrowed. */
static fl_step_law products_of(const fl_step_law *law, bool heads) {
    fl_step_law one = *law;
    one.host_s = one.host_sequence_s = 0;
    one.reduces = one.experts = one.exchanges = 0;
    if (!heads) {
        one.sequence = 0;
        one.by_sequence.count = 0;
    }
    return one;
}

/* Joules of the cheapest server: by_tokens[n - 1], n up to most_tokens, and by_sequences[s - 1]. */
static void add_server(const fl_serving_server *s, const price *p, double *by_tokens, uint32_t most_tokens,
                       double *by_sequences, uint32_t most_sequences) {
    const fl_step_law tokens = products_of(s->law, false), all = products_of(s->law, true);
    const double one = cost_of(&tokens, p, 1, 1);
    for (uint32_t n = 1; n <= most_tokens && n <= s->rules.token_budget; n++)
        by_tokens[n - 1] = fmin(by_tokens[n - 1], cost_of(&tokens, p, n, 1));
    for (uint32_t n = 1; n <= most_sequences && n <= s->rules.max_seqs; n++)
        by_sequences[n - 1] = fmin(by_sequences[n - 1], fmax(0, cost_of(&all, p, 1, n) - one));
}

/* The largest a steps + b sum, over lines a + b x with a, b >= 0 that lie nowhere above y[x - 1], x = 1 .. count. The
 * places of the lower convex hull are left in `hull`. */
static double least_sum(const double *y, uint32_t *hull, uint32_t count, double steps, double sum) {
    uint32_t corners = 0;
    double flat = INFINITY, steep = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        flat = fmin(flat, y[i]);
        steep = fmin(steep, y[i] / (i + 1));
        while (corners > 1) {
            const uint32_t b = hull[corners - 1], a = hull[corners - 2];
            if ((y[b] - y[a]) * (i - a) < (y[i] - y[a]) * (b - a))
                break;
            corners--;
        }
        hull[corners++] = i;
    }
    double best = fmax(flat * steps, steep * sum);
    for (uint32_t k = 1; k < corners; k++) {
        const uint32_t a = hull[k - 1], b = hull[k];
        const double slope = (y[b] - y[a]) / (b - a), at_zero = y[a] - slope * (a + 1);
        if (slope >= 0 && at_zero >= 0)
            best = fmax(best, at_zero * steps + slope * sum);
    }
    return best;
}

/* ---- how much there is to do ---- */

typedef struct rules { /* the most generous of all servers */
    uint64_t budget, sequences, blocks;
    uint32_t block_tokens;
    bool cached;
} rules;

static rules most_generous(const fl_serving_setup *u) {
    rules r = {.block_tokens = u->server[0].rules.block_tokens};
    for (uint32_t i = 0; i < u->server_count; i++) {
        const fl_batching_rules *s = &u->server[i].rules;
        r.budget = s->token_budget > r.budget ? s->token_budget : r.budget;
        r.sequences = s->max_seqs > r.sequences ? s->max_seqs : r.sequences;
        r.blocks = s->kv_blocks > r.blocks ? s->kv_blocks : r.blocks;
        r.block_tokens = s->block_tokens > r.block_tokens ? s->block_tokens : r.block_tokens;
        r.cached |= s->prefix_cache;
    }
    return r;
}

/* Blocks that a request holds for itself while its tokens come out, one step each, summed over these steps: no fewer
 * than so many tokens take. */
static double held(const rules *r, const fl_request_row *row, uint32_t shared) {
    const double first = (double)row->prompt_tokens - shared, n = row->output_tokens;
    return (n * first + n * (n - 1) / 2) / r->block_tokens;
}

static void count_work(const fl_serving_setup *u, const rules *r, fl_serving_bound *out) {
    double blocks = 0, longest = 0;
    for (size_t i = 0; i < u->requests->count; i++) {
        const fl_request_row *row = &u->requests->row[i];
        const uint32_t shared = r->cached && row->cached_tokens < row->prompt_tokens ? row->cached_tokens
                                : r->cached                                          ? row->prompt_tokens - 1
                                                                                     : 0;
        out->tokens += (double)row->prompt_tokens - shared + row->output_tokens - 1;
        out->parts += row->output_tokens;
        blocks += held(
            r, row, r->cached ? row->prompt_tokens < row->cached_tokens ? row->prompt_tokens : row->cached_tokens : 0);
        longest = fmax(longest, row->output_tokens);
    }
    out->steps = fmax(fmax(longest, out->parts / (double)r->sequences),
                      fmax(out->tokens / (double)r->budget, blocks / (double)r->blocks));
}

/* ---- all of it ---- */

/* Tokens that all requests have: no step computes more. */
static uint64_t all_tokens(const fl_requests *requests) {
    uint64_t all = 0;
    for (size_t i = 0; i < requests->count; i++)
        all += (uint64_t)requests->row[i].prompt_tokens + requests->row[i].output_tokens;
    return all;
}

static fl_status add_steps(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const rules *r,
                           fl_serving_bound *out, fl_diag *d) {
    const fl_serving_setup *u = w->serving;
    const uint64_t all = all_tokens(u->requests), most_tokens = all < r->budget ? all : r->budget,
                   most_sequences = u->requests->count < r->sequences ? u->requests->count : r->sequences;
    if (most_tokens > TOKENS_MOST || most_sequences > TOKENS_MOST)
        return FL_OK; /* such a step is not looked at: the boards alone */
    const uint32_t tokens = (uint32_t)most_tokens, sequences = (uint32_t)most_sequences,
                   room = tokens > sequences ? tokens : sequences;
    double *by_tokens = malloc(tokens * sizeof *by_tokens), *by_sequences = malloc(sequences * sizeof *by_sequences);
    uint32_t *hull = malloc(room * sizeof *hull);
    fl_status s = by_tokens && by_sequences && hull ? FL_OK : fl_no_memory(d, "the bound of serving");
    for (uint32_t i = 0; !s && i < tokens; i++)
        by_tokens[i] = INFINITY;
    for (uint32_t i = 0; !s && i < sequences; i++)
        by_sequences[i] = INFINITY;
    for (uint32_t i = 0; !s && i < u->server_count; i++) {
        price p;
        s = price_of(u, i, rates, spec, &p, d);
        if (!s)
            add_server(&u->server[i], &p, by_tokens, tokens, by_sequences, sequences);
    }
    if (!s)
        out->steps_j = (1 - ROUNDING) * (least_sum(by_tokens, hull, tokens, out->steps, out->tokens) +
                                         least_sum(by_sequences, hull, sequences, out->steps, out->parts));
    free(by_tokens);
    free(by_sequences);
    free(hull);
    return s;
}

fl_status fl_serving_bound_of(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, fl_serving_bound *out,
                              fl_diag *d) {
    const rules r = most_generous(w->serving);
    const double until_s = fl_seconds(fl_serving_arrival_ps(w->serving, w->serving->requests->count - 1));
    *out = (fl_serving_bound){0};
    for (uint32_t i = 0; i < spec->gpu_count; i++) {
        double mw;
        fl_status s = least_mw(w, rates, spec, i, &mw, d);
        if (s)
            return s;
        out->floor_j += fmax(0, mw) * 1e-3 * until_s;
    }
    count_work(w->serving, &r, out);
    fl_status s = add_steps(w, rates, spec, &r, out, d);
    out->energy_j = out->floor_j + out->steps_j;
    return s;
}
