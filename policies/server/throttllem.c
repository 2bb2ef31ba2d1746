/* throttLL'eM: for each server the lowest clock at which the projected batch is predicted to meet the latency targets.
 *
 * From the public text: project batch size and KV cache over the next steps from predicted output lengths; predict the
 * engine's iterations per second from batch, KV cache and clock; choose the lowest clock at which requests meet their
 * time between tokens and their deadline; the top clock where none does, and where the projection says that the KV
 * cache runs over.
 *
 * Assumed, as the text does not say it or has more than signals tell:
 * - Output lengths are predicted for each request there. Here a request is as long as the finished ones were in the
 *   mean, and the running ones have half of that to go.
 * - Iterations per second come from boosted trees fitted beforehand. Here they are 1 over the step time of
 *   inside.h, learned while the server runs.
 * - The deadline there is of a whole request. The facts state TTFT and TBT: a batch whose steps meet TBT meets the rest
 *   of a deadline, so what remains is that the oldest waiting request gets its first token in time, through all prompts
 *   that wait, in steps of a whole token budget.
 * - All that waits is taken into the batch, as far as max_seqs lets it. */
#include "policies/server/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

typedef struct params {
    fl_table clocks_mhz;
    double interval_ms, margin, settle_ms, tolerance, kv_limit_pct;
    int64_t prompt_tokens, output_tokens;
} params;

typedef struct one { /* server */
    fl_drive s;
    double finished, output, prompts, firsts; /* counters at the first sample that had them; NAN: not yet */
    double output_mean, prompt_mean;          /* tokens of a request */
} one;

enum { PROBE_CLOCK, PROBE_BATCH, PROBE_KV, PROBE_STEP, PROBE_FIRST, PROBE_BLIND, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock; none while the default holds", 1},
    [PROBE_BATCH] = {"batch", "", "projected requests in the batch", 1},
    [PROBE_KV] = {"kv", "%", "projected share of the KV cache in use; none where its size is not known", 1},
    [PROBE_STEP] = {"step", "s", "predicted time of a step of that batch", 1},
    [PROBE_FIRST] = {"first", "s", "predicted time until the oldest waiting request has its first token", 1},
    [PROBE_BLIND] = {"blind", "", "1: a signal is not known, so the default clock holds", 1},
};

static one *ones(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    const char *why = fl_drive_check_targets(facts);
    for (uint32_t i = 0; !why && i < facts->server_count; i++) {
        one *o = &ones(state)[facts->server[i].gpu[0]];
        fl_drive_begin(&o->s, facts, i, &p->clocks_mhz, 6, 0.5);
        o->finished = o->output = o->prompts = o->firsts = NAN;
        o->output_mean = (double)p->output_tokens;
        o->prompt_mean = (double)p->prompt_tokens;
    }
    return why;
}

/* The mean of what two counters say since the first sample; `before` where they say nothing yet. */
static double mean_of(const fl_server_sample *u, int tokens, int requests, double *tokens_at, double *requests_at,
                      double before) {
    const double t = fl_drive_value(u, tokens), n = fl_drive_value(u, requests);
    if (isnan(*tokens_at) || isnan(*requests_at) || t < *tokens_at || n < *requests_at) {
        *tokens_at = t;
        *requests_at = n;
    }
    const double mean = (t - *tokens_at) / (n - *requests_at);
    return n > *requests_at && mean > 0 ? mean : before;
}

typedef struct projection {
    fl_step_load decode;  /* a step when all that waits is in the batch */
    fl_step_load prefill; /* a step that also computes prompts, as many tokens as the budget has */
    double prefill_steps; /* until the last waiting prompt is computed */
    int over;             /* the KV cache runs over */
    double kv_pct;        /* NAN: not known */
} projection;

static projection project(const params *p, const fl_server_facts *f, const one *o) {
    const double batch = o->s.running + o->s.waiting, most = f->max_seqs ? f->max_seqs : batch,
                 budget = f->token_budget ? (double)f->token_budget : 2048, queue = o->s.waiting * o->prompt_mean,
                 sequences = fmin(batch, most), kv = o->s.kv_tokens + queue + sequences * o->output_mean / 2;
    projection j = {.decode = {.sequences = sequences, .kv_tokens = kv}, .kv_pct = NAN};
    j.prefill = j.decode;
    j.prefill.prompt_tokens = fmin(budget, fmax(queue, o->s.prompt_tokens));
    j.prefill_steps = ceil(queue / budget);
    if (f->kv_tokens) {
        j.kv_pct = 100 * kv / (double)f->kv_tokens;
        j.over = j.kv_pct > p->kv_limit_pct;
    }
    return j;
}

typedef struct times { /* of the projected steps at each clock */
    double decode[FL_STEP_CLOCKS], prefill[FL_STEP_CLOCKS];
} times;

/* Seconds from its arrival until the oldest waiting request has its first token; 0: none waits. */
static double first_token(const one *o, const projection *j, const times *t, uint32_t clock) {
    if (!(j->prefill_steps > 0))
        return 0;
    const double waited = isnan(o->s.oldest_wait_s) ? INFINITY : o->s.oldest_wait_s;
    return waited + j->prefill_steps * t->prefill[clock];
}

static int meets(const params *p, const fl_server_facts *f, const one *o, const projection *j, const times *t,
                 uint32_t clock) {
    const double tbt = (double)f->tbt_target_ns * 1e-9 * (1 + p->margin),
                 ttft = (double)f->ttft_target_ns * 1e-9 * (1 + p->margin);
    return t->decode[clock] <= tbt && first_token(o, j, t, clock) <= ttft;
}

static double shown(double v) { return isfinite(v) ? v : (double)NAN; }

static void drive(const params *p, const fl_facts *facts, const fl_sample *sample, uint32_t server, one *o,
                  fl_command *c) {
    const fl_server_facts *f = &facts->server[server];
    const uint32_t gpu = f->gpu[0], top = fl_drive_top(&o->s);
    const int known = fl_drive_take(&o->s, facts, sample, server, p->settle_ms * 1e-3);
    uint32_t clock = top;
    fl_show_gpu(c, gpu, PROBE_BLIND, !known);
    if (!known) {
        fl_drive_set_default(&o->s, facts, server, c);
        return;
    }
    const fl_server_sample *u = &sample->server[server];
    o->output_mean = mean_of(u, FL_SERVER_OUTPUT_TOKENS, FL_SERVER_FINISHED, &o->output, &o->finished, o->output_mean);
    o->prompt_mean = mean_of(u, FL_SERVER_PROMPT_TOKENS, FL_SERVER_TTFT_COUNT, &o->prompts, &o->firsts, o->prompt_mean);
    const projection j = project(p, f, o);
    times t;
    fl_step_times_all(&o->s.times, &j.decode, p->tolerance, t.decode);
    fl_step_times_all(&o->s.times, &j.prefill, p->tolerance, t.prefill);
    if (!(j.decode.sequences > 0))
        clock = o->s.clock < 0 ? top : (uint32_t)o->s.clock; /* nothing to do: nothing to decide */
    else
        for (uint32_t i = top; !j.over && i-- > 0;)
            if (meets(p, f, o, &j, &t, i))
                clock = i;
    fl_drive_set(&o->s, facts, sample, server, clock, c);
    fl_show_gpu(c, gpu, PROBE_CLOCK, o->s.times.mhz[clock]);
    fl_show_gpu(c, gpu, PROBE_BATCH, j.decode.sequences);
    fl_show_gpu(c, gpu, PROBE_KV, shown(j.kv_pct));
    fl_show_gpu(c, gpu, PROBE_STEP, shown(t.decode[clock]));
    fl_show_gpu(c, gpu, PROBE_FIRST, shown(first_token(o, &j, &t, clock)));
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->server_count; i++)
        drive(p, facts, sample, i, &ones(state)[facts->server[i].gpu[0]], c);
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_DRIVE_ROW_CLOCKS,
    FL_PARAM(params, interval_ms, REAL(0.1, 60000), "ms", "100", "time between decisions (assumed)"),
    FL_DRIVE_ROW_MARGIN,
    FL_PARAM(params, kv_limit_pct, REAL(1, 1000), "%", "100",
             "projected use of the KV cache that calls for the top clock"),
    FL_PARAM(params, prompt_tokens, INT(1, 10000000), "", "512", "prompt of a request before any was seen (assumed)"),
    FL_PARAM(params, output_tokens, INT(1, 10000000), "", "256", "output of a request before any finished (assumed)"),
    FL_DRIVE_ROWS_LEARN,
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(SERVER_WAITING),      FL_NEEDS(SERVER_RUNNING),       FL_USES(GPU_SM_MHZ),
    FL_USES(SERVER_KV_USED_PCT),   FL_USES(SERVER_OLDEST_WAIT_NS), FL_USES(SERVER_PROMPT_TOKENS),
    FL_USES(SERVER_OUTPUT_TOKENS), FL_USES(SERVER_BATCHES),        FL_USES(SERVER_FINISHED),
    FL_USES(SERVER_TTFT_COUNT),    FL_USES(SERVER_TBT_SUM_NS),     FL_USES(SERVER_TBT_COUNT),
    FL_USES(ENGINE_STEPS),
};

FL_POLICY(throttllem) = {
    FL_POLICY_ABI, .name = "throttllem",
    .summary = "sets the lowest clock at which the projected batch is predicted to meet both latency targets",
    .source = "throttLL'eM, projection and minimum frequency", FL_DRIVE_POLICY(one)};
