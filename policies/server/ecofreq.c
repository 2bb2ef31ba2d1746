/* EcoFreq, the clock controller of VoltanaLLM: for each server the lowest clock at which the next step of the engine
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
 *   server.h), so that no run beforehand is needed: the top clock holds until steps were seen there, then lower
 * ones are entered by the bound that a step takes top / f as long at most.
 * - The controller inside the engine sees the batch that comes next; this one sees the last, and takes it for the next.
 * - Listed clocks (published for other GPUs), margin and interval are parameters; with nothing in the batch the clock
 *   stays, as the engine then decides nothing. */
#include "policies/server/inside.h"

#include "policies/policy.h"
#include "policies/server/server.h"

#include <math.h>
#include <stdint.h>

typedef struct params {
    fl_table clocks_mhz;
    double interval_ms, margin, settle_ms, tolerance;
} params;

enum { PROBE_CLOCK, PROBE_PREDICTED, PROBE_LIMIT, PROBE_BLIND, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock; none while the default holds", 1},
    [PROBE_PREDICTED] = {"predicted", "s", "time of the next step at that clock", 1},
    [PROBE_LIMIT] = {"limit", "s", "longest step that the targets allow", 1},
    [PROBE_BLIND] = {"blind", "", "1: a signal is not known, so the default clock holds", 1},
};

static fl_drive *drives(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    const char *why = fl_drive_check_targets(facts);
    for (uint32_t i = 0; !why && i < facts->server_count; i++) {
        fl_drive_begin(&drives(state)[facts->server[i].gpu[0]], facts, i, &p->clocks_mhz, 6, 0.5);
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

static void drive(const params *p, const fl_facts *facts, const fl_sample *sample, uint32_t server, fl_drive *s,
                  fl_command *c) {
    const uint32_t gpu = facts->server[server].gpu[0], top = fl_drive_top(s);
    const int known = fl_drive_take(s, facts, sample, server, p->settle_ms * 1e-3);
    const fl_step_load next = fl_drive_load(s);
    const double limit = limit_s(p, &facts->server[server], s, &next);
    double time_s[FL_STEP_CLOCKS];
    uint32_t clock = top;
    fl_step_times_all(&s->times, &next, p->tolerance, time_s);
    fl_show_gpu(c, gpu, PROBE_BLIND, !known);
    if (!known) {
        fl_drive_set_default(s, facts, server, c);
        return;
    }
    if (s->waiting > 0 || s->clock < 0)
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
        drive(p, facts, sample, i, &drives(state)[facts->server[i].gpu[0]], c);
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_DRIVE_ROW_CLOCKS,
    FL_PARAM(params, interval_ms, REAL(0.1, 60000), "ms", "20",
             "time between decisions (assumed: published is a step)"),
    FL_DRIVE_ROW_MARGIN,
    FL_DRIVE_ROWS_LEARN,
};

FL_POLICY(ecofreq) = {FL_POLICY_ABI,
                      .name = "ecofreq",
                      .summary = "lowest clock whose predicted step meets TTFT and TBT; the top while requests wait",
                      .source = "VoltanaLLM, EcoFreq",
                      .gpu_uses = FL_BIT(FL_GPU_SM_MHZ),
                      .server_needs = FL_BIT(FL_SERVER_WAITING) | FL_BIT(FL_SERVER_RUNNING),
                      .server_uses = FL_BIT(FL_SERVER_KV_USED_PCT) | FL_BIT(FL_SERVER_OLDEST_WAIT_NS) |
                                     FL_BIT(FL_SERVER_PROMPT_TOKENS) | FL_BIT(FL_SERVER_BATCHES) |
                                     FL_BIT(FL_SERVER_TBT_SUM_NS) | FL_BIT(FL_SERVER_TBT_COUNT),
                      .uses_batches = 1,
                      FL_DRIVE_POLICY(fl_drive)};
