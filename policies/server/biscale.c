/* biscale-decode: the decode half of BiScale's second tier. For each step of a server's engine, the lowest clock at
 * which the step is predicted to meet the target of the time between tokens (TBT).
 *
 * Source: BiScale (arXiv 2602.18755, 2026), abstract; a vLLM fork that matches it in all points; AFlex's second
 * version, which quotes the paper's sections 4.4.1 to 4.6. Clocks are tried from the lowest on, and the first whose
 * predicted time is within the target is set. If none is, the top clock is. From a use of the KV cache of 80 % on the
 * top clock holds.
 *
 * Assumed:
 * - The published predictor is a boosted tree, whose file is not public. Here the server's law answers: a table with
 * one line for each clock, as `fit serving` fits them, linear between its clocks. Without a table the lines are learned
 *   while the server runs (inside.h), as ecofreq learns them.
 * - The published controller sees the batch that comes next. This one sees the last step, and takes it for the next.
 * - The prefill half needs the lengths and waits of waiting requests, which no signal gives: a step with a prompt in it
 *   holds the top clock. */
#include "policies/server/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

typedef struct params {
    fl_table clocks_mhz, law;
    double interval_ms, margin, kv_limit_pct, settle_ms, tolerance;
} params;

enum { LAW_MHZ, LAW_BASE_MS, LAW_SEQUENCE_US, LAW_KV_US, LAW_COLUMNS };

enum { PROBE_CLOCK, PROBE_PREDICTED, PROBE_FULL, PROBES };
static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock; none while the default holds", 1},
    [PROBE_PREDICTED] = {"predicted", "s", "time of the next step at that clock", 1},
    [PROBE_FULL] = {"full", "", "1: the KV cache is too full for a lower clock", 1},
};

static fl_drive *drives(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    const char *why = fl_drive_check(facts);
    for (uint32_t i = 1; i < p->law.row_count; i++)
        if (!(p->law.cell[i * LAW_COLUMNS] > p->law.cell[(i - 1) * LAW_COLUMNS]))
            return "law must have ascending clocks";
    for (uint32_t i = 0; !why && i < facts->server_count; i++) {
        if (!(facts->server[i].tbt_target_ns > 0))
            why = "needs a TBT target of every server";
        fl_drive_begin(&drives(state)[facts->server[i].gpu[0]], facts, i, &p->clocks_mhz, 10, 0.2);
    }
    return why;
}

static double law_row(const fl_table *law, uint32_t row, const fl_step_load *load) {
    const double *r = &law->cell[row * LAW_COLUMNS];
    return r[LAW_BASE_MS] * 1e-3 + r[LAW_SEQUENCE_US] * 1e-6 * load->sequences + r[LAW_KV_US] * 1e-6 * load->kv_tokens;
}

/* The server's law, linear between its clocks; NAN outside of them. */
static double law_time(const fl_table *law, const fl_step_load *load, double mhz) {
    for (uint32_t i = 0; i < law->row_count; i++) {
        const double at = law->cell[i * LAW_COLUMNS];
        if (at < mhz)
            continue;
        if (at == mhz)
            return law_row(law, i, load);
        if (!i)
            return NAN;
        const double below = law->cell[(i - 1) * LAW_COLUMNS], share = (mhz - below) / (at - below);
        return law_row(law, i - 1, load) * (1 - share) + law_row(law, i, load) * share;
    }
    return NAN;
}

static void drive(const params *p, const fl_facts *facts, const fl_sample *sample, uint32_t server, fl_drive *s,
                  fl_command *c) {
    const uint32_t gpu = facts->server[server].gpu[0], top = fl_drive_top(s);
    const int known = fl_drive_take(s, facts, sample, server, p->settle_ms * 1e-3);
    const double limit_s = (double)facts->server[server].tbt_target_ns * 1e-9 * (1 + p->margin);
    double time_s[FL_STEP_CLOCKS];
    if (!known) {
        fl_drive_set_default(s, facts, server, c);
        return;
    }
    fl_step_load next = fl_drive_load(s);
    if (s->told)
        next.kv_tokens = s->kv_read;
    fl_step_times_all(&s->times, &next, p->tolerance, time_s);
    for (uint32_t i = 0; p->law.row_count && i <= top; i++)
        time_s[i] = law_time(&p->law, &next, s->times.mhz[i]);
    const double used_pct = fl_drive_value(&sample->server[server], FL_SERVER_KV_USED_PCT);
    const int full = used_pct >= p->kv_limit_pct;
    uint32_t clock = top;
    if (s->clock >= 0 && !(s->running > 0) && !(s->waiting > 0))
        clock = (uint32_t)s->clock; /* nothing to decide */
    else if (s->clock >= 0 && !full && !(s->waiting > 0) && !(next.prompt_tokens > 0))
        for (uint32_t i = top; i-- > 0;)
            clock = time_s[i] <= limit_s ? i : clock;
    fl_drive_set(s, facts, sample, server, clock, c);
    fl_show_gpu(c, gpu, PROBE_CLOCK, s->times.mhz[clock]);
    fl_show_gpu(c, gpu, PROBE_PREDICTED, isfinite(time_s[clock]) ? time_s[clock] : (double)NAN);
    fl_show_gpu(c, gpu, PROBE_FULL, full);
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->server_count; i++)
        drive(p, facts, sample, i, &drives(state)[facts->server[i].gpu[0]], c);
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, clocks_mhz, LIST(1, 100000), "MHz", "",
             "clocks to choose from, 15 at most; none: ten from a fifth of the top to the top (as many as published)"),
    FL_PARAM(params, law, TABLE("sm_mhz|base_ms|sequence_us|kv_us"), "", "",
             "time of a decode step at each clock: base + sequences x sequence_us + KV tokens x kv_us; none: learned"),
    FL_PARAM(params, interval_ms, REAL(0.1, 60000), "ms", "20",
             "time between decisions (assumed: published is a step)"),
    FL_PARAM(params, margin, REAL(-0.9, 10), "", "-0.05",
             "above the target that is allowed; -0.05 aims 5 % below it, as AFlex states"),
    FL_PARAM(params, kv_limit_pct, REAL(1, 1000), "%", "80", "use of the KV cache that calls for the top clock"),
    FL_DRIVE_ROWS_LEARN,
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(SERVER_WAITING),    FL_NEEDS(SERVER_RUNNING),      FL_USES(GPU_SM_MHZ),
    FL_USES(SERVER_KV_USED_PCT), FL_USES(SERVER_PROMPT_TOKENS), FL_USES(SERVER_BATCHES),
    FL_USES(SERVER_TBT_SUM_NS),  FL_USES(SERVER_TBT_COUNT),     FL_USES(ENGINE_STEPS),
};

FL_POLICY(biscale_decode) = {FL_POLICY_ABI, .name = "biscale-decode",
                             .summary = "lowest clock whose predicted decode step meets TBT; the top beside prompts",
                             .source = "BiScale, tier 2, decode (arXiv 2602.18755; rules by a fork and by AFlex)",
                             FL_DRIVE_POLICY(fl_drive)};
