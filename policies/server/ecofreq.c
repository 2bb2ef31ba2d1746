/* EcoFreq and EcoRoute of VoltanaLLM.
 *
 * EcoFreq, the clock controller: for each server the lowest clock at which the next step of the engine
 * is predicted to meet the latency targets; the top clock while a request waits.
 *
 * From the public text: anything waiting -> the top clock; else the lowest listed clock whose predicted latency, linear
 * per clock in the batch and its tokens, is at most target (1 + margin) minus the longest wait.
 *
 * Assumed, as the text does not say it or has another engine:
 * - The published system splits prefill and decode over GPUs, each with its own target. An engine that mixes both has
 *   both limits at once: a step that decodes must meet the TBT target, a step with prompt tokens what TTFT leaves after
 *   the longest wait.
 * - The published predictor is fitted beforehand on each machine. Here it is learned while the server runs (see
 *   inside.h), so that no run beforehand is needed: the top clock holds until steps were seen there, then lower
 * ones are entered by the bound that a step takes top / f as long at most.
 * - The controller inside the engine sees the batch that comes next; this one sees the last, and takes it for the next.
 * - The program that the authors released (SGLang fork, f7789acf) differs: it starts at the lowest listed clock and
 * goes there after 5 s without a step; it decides by medians over all steps since its last look; and it has one line
 * for each tile of 128 sequences, as kernels work in tiles. rules=released does so. Its thresholds on prompt tokens and
 *   requests a second are out of reach in its own demo, and are left out.
 * - Listed clocks (published for other GPUs), margin and interval are parameters; with nothing in the batch the clock
 *   stays, as the engine then decides nothing.
 *
 * EcoRoute, the router of split servers (its state-space form, echo_lb.py), with EcoFreq's clocks. Prefill servers are
 * drawn at random. Decode servers: while the largest number n of requests is below a tile of 128, the lowest clock in
 * force, then the fewest requests. Else per server f_now, the lowest clock that meets the target at (n, KV + 2 n), and
 * f_new, the same at (n + 1, KV + prompt + 50 n); none does: the top. It is raised where f_new > f_now or f_new is the
 * top; its key is f_new if raised, else -f_now. Where the clocks of the servers differ by two listed steps or more: the
 * lowest clock. Else the smallest key, then the fewest tiles, then the most requests.
 * Assumed: times are EcoFreq's lines as learned here; the random draw is a hash of the seed and the request's number.
 */
#include "policies/server/inside.h"

#include "policies/policy.h"
#include "policies/random.h"

#include <math.h>
#include <stdint.h>

typedef struct params {
    fl_table clocks_mhz;
    double interval_ms, margin, settle_ms, tolerance;
    int64_t tile; /* of ecoroute alone */
    int64_t rules;
    double idle_s;
} params;

enum { RULES_TEXT, RULES_RELEASED };
enum { TILE = 128, TILES = 4, STEPS_MAX = 256 }; /* sequences; tiles with lines of their own; steps of a median */

typedef struct one { /* of one server; in the state of its first GPU */
    fl_drive s;
    fl_step_times line[TILES]; /* released rules; the last one is for all larger batches */
    int64_t stepped_ns;        /* when a step was seen last */
} one;

enum { PROBE_CLOCK, PROBE_PREDICTED, PROBE_LIMIT, PROBE_BLIND, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock; none while the default holds", 1},
    [PROBE_PREDICTED] = {"predicted", "s", "time of the next step at that clock", 1},
    [PROBE_LIMIT] = {"limit", "s", "longest step that the targets allow", 1},
    [PROBE_BLIND] = {"blind", "", "1: a signal is not known, so the default clock holds", 1},
};

static one *ones(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    const char *why = fl_drive_check_targets(facts);
    for (uint32_t i = 0; !why && i < facts->server_count; i++) {
        one *o = &ones(state)[facts->server[i].gpu[0]];
        fl_drive_begin(&o->s, facts, i, &p->clocks_mhz, 6, 0.5);
        for (int k = 0; k < TILES; k++)
            fl_step_times_begin(&o->line[k], o->s.times.mhz, o->s.times.clocks);
    }
    return why;
}

/* Longest step that meets both targets. Nobody waits in the queue here; who does not tell how long those in the batch
 * wait for their first token is taken for one where they do not. */
static double limit_s(const params *p, const fl_server_facts *f, const fl_drive *s, const fl_step_load *next) {
    const double tbt = (double)f->tbt_target_ns * 1e-9 * (1 + p->margin),
                 ttft = (double)f->ttft_target_ns * 1e-9 * (1 + p->margin);
    double limit = next->sequences > 0 ? tbt : INFINITY;
    if (next->prompt_tokens > 0)
        limit = fmin(limit, ttft - (isnan(s->oldest_wait_s) ? 0 : s->oldest_wait_s));
    return limit;
}

static int tile_of(double sequences) { return (int)fmin(TILES - 1, fmax(0, ceil(sequences / TILE) - 1)); }

/* The median of count values, which it sorts; of an even number the lower one. */
static double median(double *v, uint32_t count) {
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && v[k - 1] > v[k]; k--) {
            const double swap = v[k];
            v[k] = v[k - 1], v[k - 1] = swap;
        }
    return v[(count - 1) / 2];
}

/* Learn the lines of the tiles, and replace the load by medians over the steps since the last look. */
static void take_released(one *o, const fl_sample *sample, uint32_t server, fl_step_load *next) {
    double prompt[STEPS_MAX], sequences[STEPS_MAX], kv[STEPS_MAX];
    uint32_t count = 0;
    for (uint64_t i = 0; sample->batch && i < sample->batch_count; i++) {
        const fl_batch_record *b = &sample->batch[i];
        if (b->server != server)
            continue;
        const fl_step_load load = {b->prompt_tokens, b->decode_sequences, (double)b->kv_tokens};
        if (o->s.clock >= 0 && o->s.force_ns >= 0 && b->start_ns >= o->s.force_ns)
            fl_step_times_learn(&o->line[tile_of(load.sequences)], (uint32_t)o->s.clock, &load,
                                (double)(b->end_ns - b->start_ns) * 1e-9, 1);
        if (count < STEPS_MAX) {
            prompt[count] = load.prompt_tokens, sequences[count] = load.sequences;
            kv[count++] = load.kv_tokens;
        }
    }
    if (!count)
        return;
    o->stepped_ns = sample->time_ns;
    *next = (fl_step_load){median(prompt, count), median(sequences, count), median(kv, count)};
}

static void drive(const params *p, const fl_facts *facts, const fl_sample *sample, uint32_t server, one *o,
                  fl_command *c) {
    fl_drive *s = &o->s;
    const uint32_t gpu = facts->server[server].gpu[0], top = fl_drive_top(s);
    const int known = fl_drive_take(s, facts, sample, server, p->settle_ms * 1e-3);
    const int released = p->rules == RULES_RELEASED && (s->told || !(s->running > 0));
    fl_step_load next = fl_drive_load(s);
    if (released)
        take_released(o, sample, server, &next);
    const double limit = limit_s(p, &facts->server[server], s, &next);
    double time_s[FL_STEP_CLOCKS];
    uint32_t clock = top;
    fl_step_times_all(released ? &o->line[tile_of(next.sequences)] : &s->times, &next, p->tolerance, time_s);
    fl_show_gpu(c, gpu, PROBE_BLIND, !known);
    if (!known) {
        fl_drive_set_default(s, facts, server, c);
        return;
    }
    if (released && !(s->waiting > 0) && !(s->running > 0) &&
        (s->clock < 0 || (double)(sample->time_ns - o->stepped_ns) >= p->idle_s * 1e9))
        clock = 0;
    else if (s->waiting > 0 || s->clock < 0)
        clock = top;
    else if (!(s->running > 0))
        clock = (uint32_t)s->clock;
    else
        for (uint32_t i = top; i-- > 0;)
            if (time_s[i] <= limit)
                clock = i;
    fl_drive_set(s, facts, sample, server, clock, c);
    fl_show_gpu(c, gpu, PROBE_CLOCK, s->times.mhz[clock]);
    fl_show_gpu(c, gpu, PROBE_PREDICTED, isfinite(time_s[clock]) ? time_s[clock] : (double)NAN);
    fl_show_gpu(c, gpu, PROBE_LIMIT, isfinite(limit) ? limit : (double)NAN);
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->server_count; i++)
        drive(p, facts, sample, i, &ones(state)[facts->server[i].gpu[0]], c);
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

/* ---- EcoRoute ---- */

/* Index of the lowest clock whose step of this load meets the TBT target; the top where none is known to. */
static int64_t lowest(const params *p, const fl_server_facts *f, const fl_drive *s, double sequences,
                      double kv_tokens) {
    const fl_step_load load = {.sequences = sequences, .kv_tokens = kv_tokens};
    double time_s[FL_STEP_CLOCKS];
    fl_step_times_all(&s->times, &load, p->tolerance, time_s);
    uint32_t i = 0;
    while (i < fl_drive_top(s) && !(time_s[i] <= (double)f->tbt_target_ns * 1e-9 * (1 + p->margin)))
        i++;
    return i;
}

static uint32_t cheapest(const fl_route_query *q) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < q->count; i++) {
        const fl_route_view *a = &q->view[i], *b = &q->view[best];
        if (a->sm_mhz < b->sm_mhz || (a->sm_mhz <= b->sm_mhz && a->running < b->running))
            best = i;
    }
    return best;
}

typedef struct key {
    int64_t clock; /* counted from 1; negative: not raised */
    uint64_t tiles;
    uint32_t running;
} key;

static key key_of(const params *p, const fl_facts *facts, const fl_drive *s, const fl_route_query *q, uint32_t i) {
    const fl_route_view *v = &q->view[i];
    const fl_server_facts *f = &facts->server[v->server];
    const double n = v->running, kv = (double)v->kv_tokens;
    const int64_t now = lowest(p, f, s, n, kv + 2 * n), then = lowest(p, f, s, n + 1, kv + q->context_tokens + 50 * n);
    const int raised = then > now || then == fl_drive_top(s);
    const uint64_t tile = (uint64_t)p->tile;
    return (key){raised ? then + 1 : -(now + 1), (v->running + tile - 1) / tile, v->running};
}

static int is_better(const key *a, const key *b) {
    if (a->clock != b->clock)
        return a->clock < b->clock;
    return a->tiles != b->tiles ? a->tiles < b->tiles : a->running > b->running;
}

static int64_t size_of(int64_t clock) { return clock < 0 ? -clock : clock; }

static uint32_t route(const void *state, const void *param_bytes, const fl_facts *facts, const fl_route_query *q) {
    const params *p = param_bytes;
    const one *o = (const one *)((const char *)state + fl_state_rounded(0));
    if (!q->decode) {
        fl_random g = fl_random_seed(facts->seed, q->request);
        return (uint32_t)fl_random_below(&g, q->count);
    }
    uint32_t most = 0, best = 0, slowest = 0;
    for (uint32_t i = 0; i < q->count; i++)
        most = q->view[i].running > most ? q->view[i].running : most;
    if (most < (uint64_t)p->tile)
        return cheapest(q);
    key least = {0}, low = {0};
    int64_t fastest = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        const key k = key_of(p, facts, &o[facts->server[q->view[i].server].gpu[0]].s, q, i);
        if (!i || is_better(&k, &least)) {
            least = k;
            best = i;
        }
        if (!i || size_of(k.clock) < size_of(low.clock)) {
            low = k;
            slowest = i;
        }
        fastest = size_of(k.clock) > fastest ? size_of(k.clock) : fastest;
    }
    return fastest - size_of(low.clock) >= 2 ? slowest : best;
}

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(SERVER_WAITING),       FL_NEEDS(SERVER_RUNNING),      FL_USES(GPU_SM_MHZ),     FL_USES(SERVER_KV_USED_PCT),
    FL_USES(SERVER_OLDEST_WAIT_NS), FL_USES(SERVER_PROMPT_TOKENS), FL_USES(SERVER_BATCHES), FL_USES(SERVER_TBT_SUM_NS),
    FL_USES(SERVER_TBT_COUNT),      FL_USES(ENGINE_STEPS),
};

#define ECO_ROWS                                                                                                       \
    FL_DRIVE_ROW_CLOCKS,                                                                                               \
        FL_PARAM(params, interval_ms, REAL(0.1, 60000), "ms", "20",                                                    \
                 "time between decisions (assumed: published is a step)"),                                             \
        FL_DRIVE_ROW_MARGIN, FL_DRIVE_ROWS_LEARN

static const fl_param param_rows[] = {
    ECO_ROWS,
    FL_PARAM(params, rules, CHOICE("text|released"), "", "text",
             "the public text; or the released program: starts low, medians, a line for each 128 sequences"),
    FL_PARAM(params, idle_s, REAL(0, 3600), "s", "5", "released: time without a step, then the lowest clock holds"),
};
static const fl_param route_rows[] = {ECO_ROWS, FL_PARAM(params, tile, INT(1, 1000000), "", "128",
                                                         "requests of a decode server that fill a tile (published)")};

FL_POLICY(ecofreq) = {FL_POLICY_ABI, .name = "ecofreq",
                      .summary = "sets the lowest clock predicted to meet TTFT and TBT, the top one if requests wait",
                      .source = "VoltanaLLM, EcoFreq: public text, and the released program (f7789acf)",
                      FL_DRIVE_POLICY(one)};

FL_POLICY(ecoroute) = {FL_POLICY_ABI,
                       .name = "ecoroute",
                       .summary = "ecofreq, which also chooses decode servers such that few clocks rise",
                       .source = "VoltanaLLM, EcoFreq and EcoRoute",
                       .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                       .gpu_size = sizeof(one),
                       FL_SIGNAL_ROWS(signal_rows),
                       FL_PARAM_ROWS(route_rows, params),
                       FL_PROBE_ROWS(probe_rows),
                       .init = init,
                       .step = step,
                       .route = route};
