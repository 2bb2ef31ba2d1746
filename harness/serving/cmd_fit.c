/* A server's law of steps, from layer tables, from step tables over clocks, and from a measured run. */
#include "harness/serving/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One all-reduce of tensor parallel ranks, where nobody measured it: two RTX PRO 6000 on PCIe, 100 us and 0.4 us a
 * token (a prototype of this simulator beside a measured vLLM run; without it a step was 36 % too short). Ranks joined
 * by NVLink take less. */
#define FL_SERVING_REDUCE_US 100
#define FL_SERVING_REDUCE_TOKEN_US 0.4
/* What a step takes beside its layers, where nobody measured it: an engine prepares its input (tokens, positions, slots
 * and block tables are copied and gathered) and hands on what it sampled, some twenty small kernels and copies of 10 us
 * each that no layer table has. All else of the host's work runs beside the step before (asynchronous scheduling). */
#define FL_SERVING_HOST_US 200

/* Assumed: the time of one exchange of tokens among data-parallel replicas. An all-reduce consists of a reduce-scatter
 * and an all-gather. Dispatch and combine are taken as half of it each, which is half of the numbers above. Those were
 * measured with a model of hidden size 5120. The time of a token is proportional to the hidden size, and to the share
 * (R - 1) / R that a rank of R gets from the others; it was measured for R = 2. */
#define FL_SERVING_EXCHANGE_US 50
#define FL_SERVING_EXCHANGE_TOKEN_US 0.2
#define FL_SERVING_REDUCE_HIDDEN 5120

static const fl_command_help help = {
    "fit serving",
    "--dense FILE --per-sequence FILE --attention FILE --layers N --sm-mhz MHZ | --steps FILE | SERVER.csv, [--run "
    "REQUESTS] [-o FILE]",
    "Fits the time that a server of language models takes for a batch step, and how a step loads the GPU; says how "
    "well it predicts what it has not seen.",
    "Layer tables (kernel times of one block), step tables (times and powers of whole steps over clocks) or the "
    "serving "
    "file of an earlier fit; harness/manual/formats/serving.md describes them.\n\n"
    "Layer tables may have the columns sm_mhz and power_w. Of one clock they say nothing of others: there the law "
    "assumes that compute goes as 1/clock. They lack what an "
    "engine does between steps and the all-reduces of tensor parallel ranks: both are assumed where nothing is stated "
    "(--host-us; --all-reduce-us, from two RTX PRO 6000 on PCIe).\n\n"
    "--run simulates the requests of a measured run on the law, and sets the latencies beside the measured ones. With "
    "--calibrate half the law's times are scaled until the first half of the requests comes out right, and the other "
    "half shows how well that does; with all, all of them.\n\n"
    "Power (power_w at several clocks) becomes constants of a platform: --base PLATFORM --platform-out FILE writes one "
    "that "
    "draws it. The serving file itself holds no watts."};

typedef struct options {
    const char *dense, *per_sequence, *attention, *moe, *steps, *serving, *run, *calibrate, *out, *model, *gpu, *source;
    const char *base, *platform_out;
    int64_t layers, tensor, data, experts, top_k, hidden, max_seqs, budget, block, kv_blocks, model_len;
    double sm_mhz, kv_bytes, host_us, reduce_us, reduce_token_us, exchange_us, exchange_token_us, skew, leave_out;
    bool no_chunks, no_prefix, no_async, eager, expert_parallel, json;
} options;

typedef struct comparison { /* of a run: all requests, and those that calibration did not see */
    fl_serving_latency simulated, measured;
    fl_served_summary sum;
    size_t from, to;
} comparison;

typedef struct result {
    fl_diag unwritten; /* why the platform could not be written; status FL_OK: it was */
    fl_serving file;
    fl_step_law law;
    fl_serving_errors left_out, experts;
    fl_serving_spread layers_spread, experts_spread;
    fl_serving_steps_fit steps;
    comparison all, unseen;
    fl_serving_latency skewed; /* of all, with the other routing */
    fl_serving_factors factor;
} result;

/* ---- what it writes ---- */

/* Of a token in an all-reduce or an exchange. us: measured, among two ranks, at FL_SERVING_REDUCE_HIDDEN. */
static double token_s(double stated_us, double us, int64_t hidden, int64_t ranks) {
    const double of_two = 2 * (double)(ranks - 1) / (double)ranks;
    return 1e-6 * (stated_us >= 0 ? stated_us : us * (double)hidden / FL_SERVING_REDUCE_HIDDEN * of_two);
}

static void limits_of(const options *o, fl_serving *s) {
    s->tensor_parallel = (uint32_t)o->tensor;
    s->max_seqs = (uint32_t)o->max_seqs;
    s->token_budget = (uint32_t)o->budget;
    s->block_tokens = (uint32_t)o->block;
    s->kv_blocks = (uint64_t)o->kv_blocks;
    s->max_model_len = (uint64_t)o->model_len;
    s->chunked_prefill = !o->no_chunks;
    s->prefix_cache = !o->no_prefix;
    s->async_scheduling = !o->no_async;
    const char *const text[][2] = {{"model", o->model}, {"gpu", o->gpu}, {"source", o->source}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (text[i][1])
            fl_must_have(fl_head_set(&s->head, text[i][0], text[i][1]));
}

static fl_status from_layers(const options *o, result *r, fl_diag *d) {
    fl_serving_layers t = {
        .blocks = (uint32_t)o->layers,
        .graphs = !o->eager,
        .sm_mhz = o->sm_mhz,
        .host_s = 1e-6 * o->host_us,
        .reduce_s = 1e-6 * o->reduce_us,
        .reduce_token_s = token_s(o->reduce_token_us, FL_SERVING_REDUCE_TOKEN_US, o->hidden, o->tensor),
        .experts = (uint32_t)o->experts,
        .top_k = (uint32_t)o->top_k,
        .data_parallel = (uint32_t)o->data,
        .expert_parallel = o->expert_parallel,
        .exchange_s = 1e-6 * o->exchange_us,
        .exchange_token_s = token_s(o->exchange_token_us, FL_SERVING_EXCHANGE_TOKEN_US, o->hidden, o->data)};
    fl_left_out left[4];
    fl_status s = FL_OK;
    if (!o->dense || !o->per_sequence || !o->attention)
        s = fl_refuse(d, "layer tables come in threes, expected --dense, --per-sequence and --attention");
    else if (!o->layers)
        s = fl_refuse(d, "of how many blocks the model is made is not known, expected --layers N");
    if (!s)
        s = fl_layers_read(o->dense, "tokens", &t.dense, &left[0], d);
    if (!s)
        s = fl_layers_read(o->per_sequence, "sequences", &t.per_sequence, &left[1], d);
    if (!s)
        s = fl_attention_read(o->attention, &t.attention, &left[2], d);
    if (!s && o->moe)
        s = fl_expert_rows_read(o->moe, &t.moe, &left[3], d);
    const char *const file[] = {o->dense, o->per_sequence, o->attention, o->moe};
    for (size_t i = 0; !s && i < (o->moe ? 4 : 3); i++)
        fl_left_tell(file[i], &left[i]);
    if (!s && o->moe)
        fl_serving_experts_take(&t);
    if (!s)
        s = fl_serving_clocks_fit(&t, &r->file, &r->steps, &r->left_out, &r->experts, d);
    r->law = r->steps.law;
    fl_layers_free(&t.dense);
    fl_layers_free(&t.per_sequence);
    fl_attention_free(&t.attention);
    fl_expert_rows_free(&t.moe);
    r->experts_spread = fl_serving_errors_spread(&r->experts);
    r->layers_spread = fl_serving_errors_spread(&r->left_out);
    if (!s && r->left_out.count && !r->steps.rows)
        r->law.time_error = r->layers_spread.mean / 100;
    fl_must_have(fl_head_set(&r->file.head, "fitted", "layer tables"));
    return s;
}

static fl_status from_steps(const options *o, result *r, fl_diag *d) {
    fl_step_rows rows;
    fl_left_out left;
    fl_status s = fl_step_rows_read(o->steps, &rows, &left, d);
    if (!s)
        fl_left_tell(o->steps, &left);
    if (!s)
        s = fl_serving_steps_make(&rows, &r->file, o->leave_out, &r->steps, d);
    fl_step_rows_free(&rows);
    if (s)
        return s;
    r->law = r->steps.law;
    fl_must_have(fl_head_set(&r->file.head, "fitted", "step tables"));
    return FL_OK;
}

static fl_status make_law(const options *o, result *r, fl_diag *d) {
    const bool layers = o->dense || o->per_sequence || o->attention;
    if (layers + !!o->steps + !!o->serving != 1)
        return fl_refuse(d, "expected one of: layer tables (--dense, --per-sequence, --attention), --steps, a server");
    if (o->serving) {
        fl_status s = fl_serving_read(o->serving, &r->file, d);
        if (!s && o->kv_blocks)
            r->file.kv_blocks = (uint64_t)o->kv_blocks;
        return s ? s : fl_serving_file_law(&r->file, &r->law, d);
    }
    fl_serving_init(&r->file);
    limits_of(o, &r->file);
    if (!layers || !o->moe) {
        if (o->experts || o->top_k || o->data > 1 || o->expert_parallel || o->skew > 0)
            return fl_refuse(d, "experts and data-parallel replicas without their table, expected --moe FILE");
        return layers ? from_layers(o, r, d) : from_steps(o, r, d);
    }
    const fl_status s = from_layers(o, r, d);
    r->law.expert_skew = o->skew;
    fl_must_have(s || fl_step_law_skew(&r->law) == FL_MODEL_OK);
    return s;
}

static void compare(const fl_requests *q, const fl_serving_times *simulated, const fl_serving_times *measured,
                    size_t from, comparison *c) {
    c->from = from;
    c->to = q->count;
    c->simulated = fl_serving_latency_of(q, simulated, from, q->count);
    c->measured = fl_serving_latency_of(q, measured, from, q->count);
}

/* The run again with skewed routing where the law's is even, and the other way round: the range of what is assumed. */
static fl_status other_routing(result *r, const fl_requests *q, const fl_batching_rules *rules, double mhz,
                               fl_serving_times *simulated, fl_diag *d) {
    fl_step_law other = r->law;
    fl_served_summary ignored;
    other.popularity = NULL;
    other.expert_skew = r->law.expert_skew > 0 ? 0 : FL_SKEW_ASSUMED;
    fl_must_have(fl_step_law_skew(&other) == FL_MODEL_OK);
    const fl_status s = fl_serving_simulate(q, rules, &other, mhz, simulated, &ignored, d);
    if (!s)
        r->skewed = fl_serving_latency_of(q, simulated, 0, q->count);
    free(other.popularity);
    return s;
}

static fl_status against_run(const options *o, result *r, fl_diag *d) {
    static const char *const name[] = {"none", "half", "all"};
    fl_requests q = {0};
    fl_batching_rules rules;
    fl_left_out left;
    fl_serving_times *simulated = NULL, *measured = NULL;
    size_t how = 0;
    while (strcmp(o->calibrate, name[how]) != 0)
        how++;
    const double mhz = r->law.ref_sm_mhz > 0 ? r->law.ref_sm_mhz : r->law.sm_mhz[r->law.sm_count - 1];
    fl_status s = fl_serving_file_rules(&r->file, 0, &rules, d);
    if (!s)
        s = fl_requests_open(o->run, &q, &left, d);
    if (!s)
        fl_left_tell(o->run, &left);
    if (!s) {
        simulated = fl_must(calloc(q.count + 1, sizeof *simulated));
        measured = fl_must(calloc(q.count + 1, sizeof *measured));
        s = fl_serving_measured(&q, measured, d);
    }
    const size_t learn = how == 0 ? 0 : how == 1 ? q.count / 2 : q.count;
    if (!s && how && !learn)
        s = fl_refuse(d, "%zu requests, expected at least 2 to calibrate with a half of them", q.count);
    if (!s && how)
        s = fl_serving_calibrate(&q, &rules, learn, mhz, &r->law, &r->factor, d);
    if (!s)
        s = fl_serving_simulate(&q, &rules, &r->law, mhz, simulated, &r->all.sum, d);
    if (!s)
        compare(&q, simulated, measured, 0, &r->all);
    if (!s && how == 1)
        compare(&q, simulated, measured, learn, &r->unseen);
    if (!s && r->law.experts)
        s = other_routing(r, &q, &rules, mhz, simulated, d);
    if (how)
        fl_must_have(fl_head_set(&r->file.head, "calibrated", how == 1 ? "with half of a run" : "with a run"));
    free(simulated);
    free(measured);
    fl_requests_free(&q);
    return s;
}

static fl_status make(const options *o, result *r, fl_diag *d) {
    fl_status s = make_law(o, r, d);
    if (o->kv_bytes > 0)
        r->law.kv_bytes = o->kv_bytes;
    if (!s && o->run)
        s = against_run(o, r, d);
    if (s || !o->platform_out)
        return s;
    s = r->steps.rows ? fl_serving_steps_platform(&r->steps, o->base, o->platform_out, d)
                      : fl_refuse(d, "--platform-out without powers over clocks, expected tables with them");
    if (s != FL_IO)
        return s;
    r->unwritten = *d; /* the fit is printed also without its file */
    return FL_OK;
}

static fl_status write_file(const char *path, result *r, fl_diag *d) {
    const fl_status s = fl_serving_file_take(&r->file, &r->law, d);
    return s ? s : fl_serving_write(path, &r->file, d);
}

/* ---- what it prints ---- */

static void print_spread(const char *what, const fl_serving_spread *e) {
    printf("%-34s %5.2f %% mean, %5.2f %% median, %5.2f %% p95, %5.2f %% worst, bias %+5.2f %%\n", what, e->mean,
           e->median, e->p95, e->worst, e->bias);
}

static const struct { /* of a comparison */
    const char *name, *key;
    size_t at;
} LATENCIES[] = {{"TTFT mean", "ttft_mean", offsetof(fl_serving_latency, ttft_mean)},
                 {"TTFT p50", NULL, offsetof(fl_serving_latency, ttft_p50)},
                 {"TTFT p99", NULL, offsetof(fl_serving_latency, ttft_p99)},
                 {"TPOT p50", "tpot_p50", offsetof(fl_serving_latency, tpot_p50)},
                 {"TPOT p99", "tpot_p99", offsetof(fl_serving_latency, tpot_p99)},
                 {"end to end p50", "e2e_p50", offsetof(fl_serving_latency, e2e_p50)},
                 {"end to end p99", "e2e_p99", offsetof(fl_serving_latency, e2e_p99)}};

static double latency(const fl_serving_latency *l, size_t i) {
    return *(const double *)(const void *)((const char *)l + LATENCIES[i].at);
}

static void print_comparison(const char *what, const comparison *c) {
    printf("\n%s: requests %zu to %zu\n%-14s %12s %12s %10s\n", what, c->from, c->to - 1, "s", "measured", "simulated",
           "error");
    for (size_t i = 0; i < sizeof LATENCIES / sizeof *LATENCIES; i++) {
        const double simulated = latency(&c->simulated, i), measured = latency(&c->measured, i);
        printf("%-14s %12.4f %12.4f %+8.2f %%\n", LATENCIES[i].name, measured, simulated,
               100 * (simulated / measured - 1));
    }
}

static void print_law(const fl_step_law *l, uint32_t token_budget, uint32_t max_seqs) {
    char clocks[FL_SERVING_CLOCKS_TEXT], assumed[FL_SERVING_CLOCKS_TEXT], beyond[FL_SERVING_CLOCKS_TEXT];
    if (*fl_serving_assumed_text(l, NULL, token_budget, max_seqs, assumed, sizeof assumed))
        printf("%s\n", assumed);
    printf("%s\n", fl_serving_clocks_text(l, clocks, sizeof clocks));
    if (l->by_tokens.count)
        printf("tokens: %zu measured points from %.3f ms at %g to %.3f ms at %g, sharpness %.2f\n", l->by_tokens.count,
               1e3 * l->by_tokens.time_s[0], l->by_tokens.at[0], 1e3 * l->by_tokens.time_s[l->by_tokens.count - 1],
               l->by_tokens.at[l->by_tokens.count - 1], l->sharpness);
    else
        printf("host %.3f ms + %.4f ms/sequence; (%.4f ms q(n) + %.4f ms s) GHz/f with %.3f ms + %.3f ms GHz/f of "
               "weights, sharpness %.2f\n",
               1e3 * l->host_s, 1e3 * l->host_sequence_s, 1e3 * l->token, 1e3 * l->sequence, 1e3 * l->weights_s,
               1e3 * l->weights_clock, l->sharpness);
    if (*fl_serving_beyond_text(l, token_budget, beyond, sizeof beyond))
        printf("%s\n", beyond);
    printf("attention: %.3g ps GHz/f per query and key; %.3g ns + %.3g ns GHz/f per token of KV, %.3g ns beside a "
           "prompt chunk\n",
           1e12 * l->pair, 1e9 * l->kv_s, 1e9 * l->kv_clock, 1e9 * l->kv_beside_s);
    if (l->reduces)
        printf("all-reduces: %u a step, %.1f us + %.3f us a token each\n", l->reduces, 1e6 * l->reduce_s,
               1e6 * l->reduce_token_s);
    if (l->experts)
        printf("experts: %u, %u for a token, on %u ranks in %u slices; %.1f us + |%.3f us a token, %.2f us an expert| "
               "at the tables' clock, sharpness %.2f, all blocks together\n",
               l->experts, l->top_k, l->expert_ranks, l->expert_slices, 1e6 * l->expert_floor_s,
               1e9 * l->expert_token / l->ref_sm_mhz, 1e6 * l->expert_s, l->expert_sharpness);
    if (l->exchanges)
        printf("exchanges of %u replicas: %u a step, %.1f us + %.3f us a token each\n", l->replicas, l->exchanges,
               1e6 * l->exchange_s, 1e6 * l->exchange_token_s);
}

static void print_text(const options *o, const result *r) {
    print_law(&r->law, r->file.token_budget, r->file.max_seqs);
    if (r->experts.count)
        print_spread("experts, by the equation alone", &r->experts_spread);
    if (r->left_out.count)
        print_spread("decode batches left out: time", &r->layers_spread);
    if (r->steps.rows)
        fl_serving_steps_print(&r->steps);
    if (!o->run)
        return;
    if (r->factor.all > 0)
        printf("\ncalibrated: the law's times were multiplied by %.4f, the attention of decodes by %.4f besides, "
               "experts and their exchanges by %.4f\n",
               r->factor.all, r->factor.decodes, r->factor.experts);
    print_comparison("the run", &r->all);
    if (r->law.experts)
        printf("with %s routing: TTFT mean %.4f, TPOT p50 %.4f, end to end p50 %.4f\n",
               r->law.expert_skew > 0 ? "even" : "skewed", r->skewed.ttft_mean, r->skewed.tpot_p50, r->skewed.e2e_p50);
    if (r->unseen.to)
        print_comparison("not looked at by the calibration", &r->unseen);
    printf("\n%llu steps, %llu preemptions, %llu tokens found in the prefix cache\n",
           (unsigned long long)r->all.sum.steps, (unsigned long long)r->all.sum.preemptions,
           (unsigned long long)r->all.sum.cached_tokens);
}

static void put_comparison(cJSON *json, const char *name, const comparison *c) {
    cJSON *o = cJSON_AddObjectToObject(json, name);
    for (size_t i = 0; i < sizeof LATENCIES / sizeof *LATENCIES; i++) {
        if (!LATENCIES[i].key)
            continue;
        const double simulated = latency(&c->simulated, i), measured = latency(&c->measured, i);
        cJSON *one = cJSON_AddObjectToObject(o, LATENCIES[i].key);
        fl_json_add_real(one, "measured_s", measured);
        fl_json_add_real(one, "simulated_s", simulated);
        fl_json_add_real(one, "error_pct", 100 * (simulated / measured - 1));
    }
}

static void print_json(const options *o, const result *r) {
    char clocks[FL_SERVING_CLOCKS_TEXT];
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "clocks", fl_serving_clocks_text(&r->law, clocks, sizeof clocks));
    if (r->left_out.count)
        fl_serving_spread_json(json, "left_out_time", &r->layers_spread);
    if (r->steps.rows)
        fl_serving_steps_json(json, &r->steps);
    if (r->factor.all > 0) {
        fl_json_add_real(json, "factor", r->factor.all);
        fl_json_add_real(json, "factor_decodes", r->factor.decodes);
        fl_json_add_real(json, "factor_experts", r->factor.experts);
    }
    fl_serving_assumed_text(&r->law, NULL, r->file.token_budget, r->file.max_seqs, clocks, sizeof clocks);
    cJSON_AddStringToObject(json, "assumed", clocks);
    if (r->experts.count)
        fl_serving_spread_json(json, "experts_time", &r->experts_spread);
    if (o->run)
        put_comparison(json, "run", &r->all);
    if (o->run && r->law.experts) {
        cJSON *other = cJSON_AddObjectToObject(json, r->law.expert_skew > 0 ? "even_routing" : "skewed_routing");
        fl_json_add_real(other, "ttft_mean_s", r->skewed.ttft_mean);
        fl_json_add_real(other, "tpot_p50_s", r->skewed.tpot_p50);
        fl_json_add_real(other, "e2e_p50_s", r->skewed.e2e_p50);
    }
    if (r->unseen.to)
        put_comparison(json, "unseen", &r->unseen);
    fl_json_tell(json);
}

int fl_cmd_fit_serving(int argc, char **argv) {
    options o = {.calibrate = "none",
                 .tensor = 1,
                 .data = 1,
                 .hidden = FL_SERVING_REDUCE_HIDDEN,
                 .exchange_us = FL_SERVING_EXCHANGE_US,
                 .exchange_token_us = -1,
                 .max_seqs = 256,
                 .budget = 2048,
                 .block = 16,
                 .host_us = FL_SERVING_HOST_US,
                 .reduce_us = FL_SERVING_REDUCE_US,
                 .reduce_token_us = -1,
                 .base = "generic"};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"dense", "FILE", FL_OPTION_TEXT, &o.dense, 0, 0, "layer table: layer, tokens, time_us",
         FL_FOR_INPUT | FL_MOST_USED},
        {"per-sequence", "FILE", FL_OPTION_TEXT, &o.per_sequence, 0, 0, "layer table: layer, sequences, time_us",
         FL_FOR_INPUT},
        {"attention", "FILE", FL_OPTION_TEXT, &o.attention, 0, 0,
         "layer table: prefill_chunk, kv_prefill, n_decode, kv_decode, time_us", FL_FOR_INPUT},
        {"moe", "FILE", FL_OPTION_TEXT, &o.moe, 0, 0,
         "layer table of a mixture of experts: tokens, activated_experts, time_us", FL_FOR_INPUT},
        {"layers", "N", FL_OPTION_INT, &o.layers, 1, 10000, "blocks of the model, for layer tables"},
        {"sm-mhz", "MHZ", FL_OPTION_REAL, &o.sm_mhz, 1, 1e5, "SM clock of layer tables without a column sm_mhz",
         FL_FOR_INPUT},
        {"steps", "FILE", FL_OPTION_TEXT, &o.steps, 0, 0,
         "step table: phase, sm_mhz, batch, tokens, context_tokens, time_s, power_w", FL_FOR_INPUT | FL_MOST_USED},
        {"leave-out", "MHZ", FL_OPTION_REAL, &o.leave_out, 1, 1e5,
         "with --steps: learn without this clock (each is left out in turn, for the errors, in any case)"},
        {"run", "REQUESTS", FL_OPTION_TEXT, &o.run, 0, 0,
         "a measured run: request trace with first_token_ns and last_token_ns", FL_FOR_INPUT | FL_MOST_USED},
        {"calibrate", "none|half|all", FL_OPTION_CHOICE, &o.calibrate, 0, 0,
         "requests of the run that scale the law (none)"},
        {"max-seqs", "N", FL_OPTION_INT, &o.max_seqs, 1, 1000000, "requests that run at once (256)"},
        {"token-budget", "N", FL_OPTION_INT, &o.budget, 1, 1 << 24, "tokens of one step (2048)"},
        {"block-tokens", "N", FL_OPTION_INT, &o.block, 1, 1 << 20, "tokens of one KV block (16)"},
        {"kv-blocks", "N", FL_OPTION_INT, &o.kv_blocks, 1, 1e12, "KV blocks that requests can use (not known)"},
        {"kv-bytes", "N", FL_OPTION_REAL, &o.kv_bytes, 1, 1e9,
         "KV cache of a token, of all GPUs of a server: 2 x layers x KV heads x head size x bytes (not known)"},
        {"max-model-len", "N", FL_OPTION_INT, &o.model_len, 1, 1e12, "tokens of prompt and output together (any)"},
        {"no-chunked-prefill", NULL, FL_OPTION_FLAG, &o.no_chunks, 0, 0, "a prompt is computed in one step"},
        {"no-prefix-cache", NULL, FL_OPTION_FLAG, &o.no_prefix, 0, 0, "prefixes that prompts share are computed anew"},
        {"no-async", NULL, FL_OPTION_FLAG, &o.no_async, 0, 0,
         "a step is composed when the one before has ended, not when it begins"},
        {"eager", NULL, FL_OPTION_FLAG, &o.eager, 0, 0, "the engine runs no captured graphs, which pad small batches"},
        {"tensor-parallel", "N", FL_OPTION_INT, &o.tensor, 1, FL_SERVING_GPUS_MAX,
         "GPUs that compute each step together; layer tables are those of one rank (1)"},
        {"host-us", "US", FL_OPTION_REAL, &o.host_us, 0, 1e6,
         "of a step that no layer table has (" FL_AS_TEXT(FL_SERVING_HOST_US) ", assumed)"},
        {"all-reduce-us", "US", FL_OPTION_REAL, &o.reduce_us, 0, 1e6,
         "of one all-reduce among them (" FL_AS_TEXT(FL_SERVING_REDUCE_US) ")"},
        {"all-reduce-token-us", "US", FL_OPTION_REAL, &o.reduce_token_us, 0, 1e6,
         "and for each token (" FL_AS_TEXT(FL_SERVING_REDUCE_TOKEN_US) " among two at the hidden size below)"},
        {"data-parallel", "N", FL_OPTION_INT, &o.data, 1, FL_SERVING_GPUS_MAX,
         "with --moe: replicas that step together and share the experts (1)"},
        {"expert-parallel", NULL, FL_OPTION_FLAG, &o.expert_parallel, 0, 0,
         "each GPU holds whole experts, else a slice of each"},
        {"experts", "N", FL_OPTION_INT, &o.experts, 1, FL_EXPERTS_MOST, "of a block (the most of the table)"},
        {"top-k", "N", FL_OPTION_INT, &o.top_k, 1, FL_EXPERTS_MOST,
         "experts that a token chooses (those of the table's row of one token)"},
        {"expert-skew", "S", FL_OPTION_REAL, &o.skew, 0, 10,
         "exponent of the experts' popularity by Zipf's law (0: even)"},
        {"hidden", "N", FL_OPTION_INT, &o.hidden, 1, 1 << 20,
         "hidden size of the model, for all-reduces and exchanges (" FL_AS_TEXT(FL_SERVING_REDUCE_HIDDEN) ")"},
        {"exchange-us", "US", FL_OPTION_REAL, &o.exchange_us, 0, 1e6,
         "of one exchange among replicas (" FL_AS_TEXT(FL_SERVING_EXCHANGE_US) ")"},
        {"exchange-token-us", "US", FL_OPTION_REAL, &o.exchange_token_us, 0, 1e6,
         "and for each token (" FL_AS_TEXT(FL_SERVING_EXCHANGE_TOKEN_US) " among two at the hidden size above)"},
        {"model", "TEXT", FL_OPTION_TEXT, &o.model, 0, 0, "what to call the model in the file"},
        {"gpu", "TEXT", FL_OPTION_TEXT, &o.gpu, 0, 0, "what to call the GPU"},
        {"source", "TEXT", FL_OPTION_TEXT, &o.source, 0, 0, "where the measurements come from", FL_FOR_INPUT},
        {"base", "PLATFORM", FL_OPTION_TEXT, &o.base, 0, 0, "for what powers do not tell of a platform (generic)",
         FL_FOR_MACHINE},
        {"platform-out", "FILE", FL_OPTION_OUTPUT, &o.platform_out, 0, 0, "a platform that draws the measured powers",
         FL_FOR_OUTPUT},
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the serving file", FL_FOR_OUTPUT | FL_MOST_USED},
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    result r = {0};
    o.serving = rest.count ? rest.item[0] : NULL;
    fl_status s = rest.count > 1 ? fl_refuse(&d, "%zu files, expected one server", rest.count) : make(&o, &r, &d);
    if (!s && o.json)
        print_json(&o, &r);
    else if (!s)
        print_text(&o, &r);
    if (!s && o.out)
        s = write_file(o.out, &r, &d);
    if (!s && r.unwritten.status)
        s = (d = r.unwritten).status;
    if (s)
        status = fl_command_fail(help.name, &d);
    fl_serving_free(&r.file);
    fl_step_law_free(&r.law);
    fl_serving_errors_free(&r.left_out);
    fl_serving_errors_free(&r.experts);
    fl_command_end(option, sizeof option / sizeof *option, &rest);
    return status;
}
