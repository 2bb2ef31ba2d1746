/* Arrivals, and servers of a language model with their requests. */
#include "harness/input/scene/inside.h"

#include "harness/base/json/json.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/base/base.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrivals ---- */

enum { COUNT_MAX = 100000000 };

static const char name[] = "poisson";

static fl_status fail(const char *text, const char *what, fl_diag *d) {
    return fl_refuse(d, "arrivals '%s': %s", text, what);
}

static fl_status set(const char *text, const char *key, const char *value, fl_arrivals_spec *spec, double *seconds,
                     fl_diag *d) {
    static const char *const known[] = {"rate", "count", "seconds", "seed"};
    double x;
    int64_t n;
    const bool real = fl_real_parse(value, &x) == FL_NUMBER_OK, whole = fl_int_parse(value, &n) == FL_NUMBER_OK;
    if (!strcmp(key, "rate")) {
        spec->per_s = x;
        return real && x >= 1e-6 && x <= 1e9 ? FL_OK
                                             : fail(text, "rate, expected requests per second from 1e-6 to 1e9", d);
    }
    if (!strcmp(key, "count")) {
        spec->count = (size_t)n;
        return whole && n >= 1 && n <= COUNT_MAX ? FL_OK : fail(text, "count, expected a number from 1 to 1e8", d);
    }
    if (!strcmp(key, "seconds")) {
        *seconds = x;
        return real && x > 0 && x <= 26 * 86400.0 ? FL_OK : fail(text, "seconds, expected above 0, at most 26 days", d);
    }
    if (!strcmp(key, "seed")) {
        spec->seed = (uint64_t)n;
        return whole && n >= 1 ? FL_OK : fail(text, "seed, expected a whole number from 1 on", d);
    }
    const char *near = fl_nearest(key, known, sizeof known / sizeof *known);
    return near ? fl_refuse(d, "arrivals '%s': no '%s', did you mean '%s'?", text, key, near)
                : fail(text, "expected rate=R, count=N or seconds=S, and seed=N", d);
}

static fl_status parse_pairs(const char *text, char *copy, fl_arrivals_spec *spec, fl_diag *d) {
    double seconds = 0;
    char *save = NULL;
    fl_status s = FL_OK;
    for (char *pair = strtok_r(copy, ",", &save); !s && pair; pair = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(pair, '=');
        if (!equals)
            return fail(text, "expected rate=R, count=N or seconds=S, and seed=N", d);
        *equals = 0;
        s = set(text, pair, equals + 1, spec, &seconds, d);
    }
    if (s)
        return s;
    if (!(spec->per_s > 0))
        return fail(text, "no rate, expected rate=R in requests per second", d);
    if (!spec->count == !(seconds > 0))
        return fail(text, "expected either count=N or seconds=S", d);
    if (seconds > 0) {
        const double count = round(seconds * spec->per_s);
        if (!(count >= 1 && count <= COUNT_MAX))
            return fail(text, "rate x seconds, expected from 1 to 1e8 requests", d);
        spec->count = (size_t)count;
    }
    return FL_OK;
}

fl_status fl_arrivals_spec_parse(const char *text, fl_arrivals_spec *spec, fl_diag *d) {
    const size_t size = sizeof name - 1;
    *spec = (fl_arrivals_spec){0};
    if (strncmp(text, name, size) != 0 || (text[size] && text[size] != ':')) {
        spec->file = text;
        return FL_OK;
    }
    char *copy = strdup(text[size] ? text + size + 1 : "");
    fl_status s = copy ? parse_pairs(text, copy, spec, d) : fl_no_memory(d, "the arrivals");
    free(copy);
    return s;
}

fl_status fl_arrivals_make(const fl_arrivals_spec *spec, uint64_t run_seed, uint64_t draw, fl_arrivals *a, fl_diag *d) {
    *a = (fl_arrivals){0};
    if (spec->file)
        return fl_arrivals_read(spec->file, a, d);
    a->t_ns = malloc(spec->count * sizeof *a->t_ns);
    if (!a->t_ns)
        return fl_no_memory(d, "the arrivals");
    a->count = spec->count;
    if (fl_poisson((spec->seed ? spec->seed : run_seed) + draw, spec->per_s, a->t_ns, a->count))
        return FL_OK;
    fl_arrivals_free(a);
    return fl_refuse(d, "%zu arrivals at %g per second go beyond 26 days", spec->count, spec->per_s);
}

/* ---- servers as a user asks for them ---- */

static const char *const routes[] = {"round-robin", "least-loaded"};

bool fl_serving_choice_any(const fl_serving_choice *c) {
    return c->server || c->requests || c->scale > 0 || c->servers || c->pools || c->link || c->kv_bytes > 0 ||
           c->kv_blocks || c->token_budget || c->route || c->ttft || c->tbt || c->target_share > 0;
}

static fl_status find_route(const char *text, fl_route *route, fl_diag *d) {
    const size_t count = sizeof routes / sizeof *routes;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, routes[i])) {
            *route = i ? FL_ROUTE_LEAST_LOADED : FL_ROUTE_ROUND_ROBIN;
            return FL_OK;
        }
    const char *near = fl_nearest(text, routes, count);
    return near ? fl_refuse(d, "route '%s', did you mean '%s'?", text, near)
                : fl_refuse(d, "route '%s', expected round-robin or least-loaded", text);
}

static fl_status find_target(const char *what, const char *text, int64_t *ns, fl_diag *d) {
    *ns = 0;
    if (!text || !fl_duration_parse(text, ns, NULL))
        return FL_OK;
    return fl_refuse(d, "%s '%.40s', expected a time such as 2s or 100ms", what, text);
}

/* "4+4" */
static fl_status find_pools(const char *text, uint32_t count[2], fl_diag *d) {
    unsigned prefill = 0, decode = 0;
    int end = 0;
    if (sscanf(text, "%4u+%4u%n", &prefill, &decode, &end) != 2 || text[end] || !prefill || !decode ||
        prefill + decode > 1024)
        return fl_refuse(d, "pools '%.40s', expected numbers of prefill and decode servers, such as 4+4", text);
    count[0] = prefill;
    count[1] = decode;
    return FL_OK;
}

/* "16,20us" */
static fl_status find_link(const char *text, fl_serving_link *link, fl_diag *d) {
    char number[32] = "";
    const char *comma = strchr(text, ',');
    double gb_s;
    if (comma && (size_t)(comma - text) < sizeof number)
        memcpy(number, text, (size_t)(comma - text));
    if (fl_real_parse(number, &gb_s) != FL_NUMBER_OK || !(gb_s >= 1e-3 && gb_s <= 1e6) ||
        fl_duration_parse(comma + 1, &link->latency_ns, NULL))
        return fl_refuse(d, "link '%.40s', expected GB/s and a latency, such as 16,20us", text);
    link->bytes_per_s = gb_s * 1e9;
    return FL_OK;
}

/* Fills route, scale, targets and share of *setup. After fl_serving_choice_check. */
static fl_status fl_serving_choice_resolve(const fl_serving_choice *c, fl_serving_setup *setup, fl_diag *d) {
    setup->scale = c->scale > 0 ? c->scale : 1;
    setup->target_share = c->target_share > 0 ? c->target_share : FL_TARGET_SHARE;
    setup->route = FL_ROUTE_ROUND_ROBIN;
    uint32_t count[2];
    fl_status s = c->route ? find_route(c->route, &setup->route, d) : FL_OK;
    if (!s && c->pools)
        s = find_pools(c->pools, count, d);
    if (!s)
        s = find_link(c->link ? c->link : FL_LINK_ASSUMED, &setup->link, d);
    if (!s)
        s = find_target("ttft", c->ttft, &setup->ttft_target_ns, d);
    return s ? s : find_target("tbt", c->tbt, &setup->tbt_target_ns, d);
}

fl_status fl_serving_choice_check(const fl_serving_choice *c, fl_diag *d) {
    const struct {
        bool given;
        const char *name;
    } part[] = {{c->scale > 0, "--scale"},
                {c->servers > 0, "--servers"},
                {c->pools != NULL, "--pools"},
                {c->link != NULL, "--link"},
                {c->kv_bytes > 0, "--kv-bytes"},
                {c->kv_blocks > 0, "--kv-blocks"},
                {c->token_budget > 0, "--token-budget"},
                {c->route != NULL, "--route"},
                {c->ttft != NULL, "--ttft"},
                {c->tbt != NULL, "--tbt"},
                {c->target_share > 0, "--target-share"}};
    fl_serving_setup ignored;
    if (c->requests && !c->server)
        return fl_fail(d, FL_BAD_INPUT, c->requests, 1, 0,
                       "has requests, which a server answers, expected a server's file with it (foldline fit serving "
                       "makes one)");
    if (c->server && !c->requests)
        return fl_fail(
            d, FL_BAD_INPUT, c->server, 1, 0,
            "is a server, expected the requests that it answers, a second file (foldline synth requests draws some)");
    for (size_t i = 0; !c->server && i < sizeof part / sizeof *part; i++)
        if (part[i].given)
            return fl_refuse(d,
                             "%s is of a server and does nothing here, expected two files with it: "
                             "a server (foldline fit "
                             "serving) and its requests (foldline synth requests)",
                             part[i].name);
    if (c->pools && (c->servers || c->route))
        return fl_refuse(d, "--pools states the servers and has a routing of its own, expected no %s with it",
                         c->servers ? "--servers" : "--route");
    if (!c->pools && (c->link || c->kv_bytes > 0))
        return fl_refuse(d, "%s is of pools, expected --pools P+D with it", c->link ? "--link" : "--kv-bytes");
    if (c->target_share > 0 && !c->ttft && !c->tbt)
        return fl_refuse(d, "--target-share is of latencies, expected --ttft TIME or --tbt TIME with it");
    return fl_serving_choice_resolve(c, &ignored, d);
}

void fl_serving_choice_merge(fl_serving_choice *c, const fl_serving_choice *rest) {
    c->server = c->server ? c->server : rest->server;
    c->requests = c->requests ? c->requests : rest->requests;
    c->scale = c->scale > 0 ? c->scale : rest->scale;
    c->servers = c->servers ? c->servers : rest->servers;
    c->pools = c->pools ? c->pools : rest->pools;
    c->link = c->link ? c->link : rest->link;
    c->kv_bytes = c->kv_bytes > 0 ? c->kv_bytes : rest->kv_bytes;
    c->kv_blocks = c->kv_blocks ? c->kv_blocks : rest->kv_blocks;
    c->token_budget = c->token_budget ? c->token_budget : rest->token_budget;
    c->route = c->route ? c->route : rest->route;
    c->ttft = c->ttft ? c->ttft : rest->ttft;
    c->tbt = c->tbt ? c->tbt : rest->tbt;
    c->target_share = c->target_share > 0 ? c->target_share : rest->target_share;
}

static fl_status get_text(const fl_json *root, const char *key, const char **into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_text(root, key, into, d);
}

/* Checks the meaning of a key here, where the message can name the file. */
static fl_status check_key(const fl_json *root, const char *key, const fl_serving_choice *c, fl_diag *d) {
    fl_serving_setup ignored;
    fl_diag why = {0};
    fl_json at;
    if (!fl_json_has(root, key) || !fl_serving_choice_resolve(c, &ignored, &why))
        return FL_OK;
    const fl_status s = fl_json_get(root, key, &at, d);
    return s ? s : fl_json_fail(&at, d, "%s", why.message);
}

fl_status fl_serving_choice_read(const fl_json *root, fl_serving_choice *c, fl_diag *d) {
    fl_status s =
        c->scale > 0 || !fl_json_has(root, "scale") ? FL_OK : fl_json_get_real(root, "scale", 1e-6, 1e6, &c->scale, d);
    if (!s && !c->servers && fl_json_has(root, "servers"))
        s = fl_json_get_int(root, "servers", 1, 1024, &c->servers, d);
    if (!s && !(c->kv_bytes > 0) && fl_json_has(root, "kv_bytes"))
        s = fl_json_get_real(root, "kv_bytes", 1, 1e9, &c->kv_bytes, d);
    if (!s && !c->kv_blocks && fl_json_has(root, "kv_blocks"))
        s = fl_json_get_int(root, "kv_blocks", 1, INT64_C(1000000000000), &c->kv_blocks, d);
    if (!s && !c->token_budget && fl_json_has(root, "token_budget"))
        s = fl_json_get_int(root, "token_budget", 1, 1000000000, &c->token_budget, d);
    if (!s && !(c->target_share > 0) && fl_json_has(root, "target_share"))
        s = fl_json_get_real(root, "target_share", 1e-6, 1, &c->target_share, d);
    if (s || (s = get_text(root, "route", &c->route, d)) || (s = check_key(root, "route", c, d)) ||
        (s = get_text(root, "pools", &c->pools, d)) || (s = check_key(root, "pools", c, d)) ||
        (s = get_text(root, "link", &c->link, d)) || (s = check_key(root, "link", c, d)) ||
        (s = get_text(root, "ttft", &c->ttft, d)) || (s = check_key(root, "ttft", c, d)) ||
        (s = get_text(root, "tbt", &c->tbt, d)))
        return s;
    return check_key(root, "tbt", c, d);
}

/* ---- serving files ---- */

enum { DECODES = 64, CONTEXT = 1024 }; /* of the step that shows the range over an assumption */

static bool copy(double **to, const double *from, size_t count) {
    *to = malloc(count * sizeof **to);
    if (*to)
        memcpy(*to, from, count * sizeof **to);
    return *to != NULL;
}

static fl_status copy_grid(fl_step_grid *to, const fl_serving_points *from, bool table, fl_diag *d) {
    if (from->count && (!copy(&to->at, from->at, from->count) || !copy(&to->time_s, from->value, from->count) ||
                        (!table && !copy(&to->kv, from->kv, from->count))))
        return fl_no_memory(d, "the tables of a step law");
    to->count = from->count;
    return FL_OK;
}

fl_status fl_serving_file_law(const fl_serving *s, fl_step_law *law, fl_diag *d) {
    fl_step_law l = fl_step_law_none();
    /* The rows of the file are named as the members of the law. */
#define TAKE(name, standard, least, most) l.name = (__typeof__(l.name))s->number[FL_SERVING_##name];
    FL_SERVING_NUMBERS_ALL(TAKE)
#undef TAKE
    l.sm_count = s->sm_count;
    memcpy(l.sm_mhz, s->sm_mhz, s->sm_count * sizeof *l.sm_mhz);
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < FL_STEP_GRIDS; i++)
        status = copy_grid(&l.grid[i], &s->table[i], i <= FL_SERVING_BY_SEQUENCE - FL_SERVING_BY_TOKENS, d);
    if (!status && fl_step_law_skew(&l) != FL_MODEL_OK)
        status = fl_no_memory(d, "the experts of a step law");
    if (!status && fl_step_law_check(&l) != FL_MODEL_OK)
        status = fl_fail(d, FL_BAD_INPUT, s->file, 0, 0,
                         "its numbers are no law of a step, expected times that are positive for every batch");
    if (status)
        fl_step_law_free(&l);
    *law = l;
    return status;
}

fl_status fl_serving_file_rules(const fl_serving *s, uint64_t kv_blocks, fl_batching_rules *rules, fl_diag *d) {
    const uint64_t blocks = kv_blocks ? kv_blocks : s->kv_blocks;
    if (!blocks)
        return fl_fail(d, FL_BAD_INPUT, s->file, fl_head_line(&s->head, "kv_blocks"), 0,
                       "how many KV blocks the server has is not known, expected '# kv_blocks: N' or --kv-blocks N");
    *rules = fl_batching_defaults();
    rules->max_seqs = s->max_seqs;
    rules->token_budget = s->token_budget;
    rules->block_tokens = s->block_tokens;
    rules->kv_blocks = blocks;
    rules->max_model_len = s->max_model_len;
    rules->chunked_prefill = s->chunked_prefill;
    rules->prefix_cache = s->prefix_cache;
    rules->async_scheduling = s->async_scheduling;
    return FL_OK;
}

fl_status fl_serving_file_take(fl_serving *s, const fl_step_law *law, fl_diag *d) {
#define PUT(name, standard, least, most) s->number[FL_SERVING_##name] = (double)law->name;
    FL_SERVING_NUMBERS_ALL(PUT)
#undef PUT
    s->sm_count = law->sm_count;
    memcpy(s->sm_mhz, law->sm_mhz, law->sm_count * sizeof *s->sm_mhz);
    fl_status status = FL_OK;
    for (size_t k = 0; k < FL_STEP_GRIDS; k++) {
        const fl_step_grid *g = &law->grid[k];
        s->table[k].count = 0;
        for (size_t i = 0; !status && i < g->count; i++)
            status = fl_serving_add_point(&s->table[k], g->at[i], g->kv ? g->kv[i] : 0, g->time_s[i], d);
    }
    return status;
}

typedef struct cost { /* of a step, on one GPU; joules: NAN without a device */
    double s, j;
} cost;

/* busy_s: of the SMs, and of the memory. */
static double joules(const fl_step_law *law, const fl_device *dev, double sm_mhz, double time_s,
                     const double busy_s[2]) {
    fl_base base;
    double sm_w, memory_w;
    if (!dev || fl_base_make(dev, sm_mhz, dev->default_mem_mhz, &base) != FL_MODEL_OK ||
        fl_power_dynamic(dev, law->sm_load, law->memory_load, sm_mhz, dev->default_mem_mhz, &sm_w, &memory_w) !=
            FL_MODEL_OK)
        return NAN;
    return 1e-3 * base.total_mw * time_s + sm_w * busy_s[0] + memory_w * busy_s[1];
}

static cost cost_of(const fl_step_law *law, const fl_device *dev, const fl_step_shape *shape, double sm_mhz) {
    fl_step_point p = {0};
    (void)fl_step_at(law, shape, sm_mhz, 1, &p);
    return (cost){p.time_s, joules(law, dev, sm_mhz, p.time_s, (double[2]){p.compute * p.time_s, p.memory * p.time_s})};
}

/* With skewed routing over even routing, without attention. */
static cost skewed_over_even(const fl_step_law *law, const fl_device *dev, double mhz, uint32_t tokens) {
    fl_step_law even = *law, skewed = *law;
    const fl_step_shape shape = {.tokens = tokens, .sequences = 1, .group_tokens = tokens * law->replicas};
    even.popularity = skewed.popularity = NULL;
    skewed.expert_skew = law->expert_skew > 0 ? law->expert_skew : FL_SKEW_ASSUMED;
    if (fl_step_law_skew(&skewed) != FL_MODEL_OK)
        return (cost){NAN, NAN};
    const cost x = cost_of(&skewed, dev, &shape, mhz), y = cost_of(&even, dev, &shape, mhz);
    free(skewed.popularity);
    return (cost){x.s / y.s, x.j / y.j};
}

/* Percent of a step's time, without attention, in which data-parallel replicas exchange tokens. */
static double exchange_pct(const fl_step_law *law, double mhz, uint32_t tokens) {
    const fl_step_shape shape = {.tokens = tokens, .sequences = 1, .group_tokens = tokens * law->replicas};
    return 100 * law->exchanges * (law->exchange_s + law->exchange_token_s * shape.group_tokens) /
           fl_step_time_s(law, &shape, mhz, 1);
}

static double nearest_clock(const fl_device *dev, double mhz) {
    double near = dev->sm_mhz[0];
    for (uint32_t i = 1; i < dev->sm_count; i++)
        near = fabs(dev->sm_mhz[i] - mhz) < fabs(near - mhz) ? dev->sm_mhz[i] : near;
    return near;
}

/* Append to a text that may be full. */
__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t size, const char *format, ...) {
    const size_t used = strlen(buf);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(buf + used, size - used, format, list);
    va_end(list);
}

char *fl_serving_clocks_text(const fl_step_law *law, char *buf, size_t size) {
    *buf = '\0';
    if (law->sm_count < 2)
        append(buf, size,
               "clocks were not measured: compute is assumed to go as 1/SM clock, memory as 1/memory clock%s",
               law->ref_sm_mhz > 0 ? "" : ", from a clock that is not known");
    else
        append(buf, size, "clocks were measured on:");
    for (uint32_t i = 0; law->sm_count > 1 && i < law->sm_count; i++)
        append(buf, size, "%s %g%s", i ? "," : "", law->sm_mhz[i], i + 1 < law->sm_count ? "" : " MHz");
    return buf;
}

static void put_routing(const fl_step_law *law, const fl_device *dev, double mhz, const uint32_t tokens[2], char *buf,
                        size_t size) {
    const cost prompts = skewed_over_even(law, dev, mhz, tokens[0]),
               decodes = skewed_over_even(law, dev, mhz, tokens[1]);
    append(
        buf, size,
        "assumed: %s routing to experts%s (with Zipf popularity of exponent %g steps of %u tokens take %.3g times as "
        "long as evenly routed ones, of %u %.3g times",
        law->expert_skew > 0 ? "skewed" : "even", law->expert_load > 0 ? "" : ", power of experts as of dense products",
        law->expert_skew > 0 ? law->expert_skew : FL_SKEW_ASSUMED, tokens[0], prompts.s, tokens[1], decodes.s);
    if (law->exchanges)
        append(buf, size, "; exchanges among replicas take %.2g and %.2g %% of the time",
               exchange_pct(law, mhz, tokens[0]), exchange_pct(law, mhz, tokens[1]));
    if (prompts.j > 0)
        append(buf, size, "; joules per token: %.3g and %.3g times", prompts.j, decodes.j);
    append(buf, size, ")");
}

/* At a lower clock a step may take as long as before, or longer by the ratio of the clocks. */
static void put_clocks(const fl_step_law *law, const fl_device *dev, double mhz, char *buf, size_t size) {
    fl_step_shape shape = {0};
    fl_step_point p = {0};
    for (int i = 0; i < DECODES; i++)
        fl_step_add_decode(&shape, CONTEXT);
    shape.group_tokens = shape.tokens * law->replicas;
    (void)fl_step_at(law, &shape, mhz, 1, &p);
    const double low = dev ? nearest_clock(dev, mhz / 2) : mhz / 2, most = mhz / low;
    const double compute_s = p.compute * p.time_s, memory_s = p.memory * p.time_s;
    const cost now = cost_of(law, dev, &shape, mhz), then = cost_of(law, dev, &shape, low);
    append(buf, size, "%s times%s at other clocks (at ",
           *buf ? ";" : "assumed:", law->sm_count < 2 ? "" : " of experts");
    if (dev)
        append(buf, size, "%g of %g MHz", low, mhz);
    else
        append(buf, size, "half the SM clock");
    append(buf, size, " %d decodes take %.3g times as long; 1 to %.3g is possible", DECODES, then.s / now.s, most);
    if (then.j > 0)
        append(buf, size, "; joules per token: %.3g times; %.3g to %.3g is possible", then.j / now.j,
               joules(law, dev, low, p.time_s, (double[2]){compute_s, memory_s}) / now.j,
               joules(law, dev, low, most * p.time_s, (double[2]){most * compute_s, memory_s}) / now.j);
    append(buf, size, ")");
}

char *fl_serving_assumed_text(const fl_step_law *law, const fl_device *dev, uint32_t token_budget, uint32_t max_seqs,
                              char *buf, size_t size) {
    const double mhz = dev ? dev->default_sm_mhz : law->ref_sm_mhz > 0 ? law->ref_sm_mhz : 1000;
    *buf = '\0';
    if (law->experts)
        put_routing(law, dev, mhz, (uint32_t[2]){token_budget, max_seqs}, buf, size);
    if (law->sm_count < 2 || (law->experts && !(law->expert_clock > 0)))
        put_clocks(law, dev, mhz, buf, size);
    return buf;
}

char *fl_serving_beyond_text(const fl_step_law *law, uint32_t token_budget, char *buf, size_t size) {
    const fl_step_grid *t = &law->by_tokens;
    *buf = '\0';
    if (t->count && t->at[t->count - 1] < token_budget)
        snprintf(buf, size,
                 "steps of more than %g tokens were not measured, and the budget allows %u: their time is taken "
                 "proportional to the tokens",
                 t->at[t->count - 1], token_budget);
    return buf;
}

/* ---- servers and requests of a scene ---- */

/* Servers alike, with GPUs one after the other. */
static fl_status make_servers(fl_serving_scene *s, uint32_t count, const fl_batching_rules *rules, fl_diag *d) {
    const uint32_t each = s->stated.tensor_parallel;
    s->gpu = calloc((size_t)count * each + 1, sizeof *s->gpu);
    s->server = calloc((size_t)count + 1, sizeof *s->server);
    s->facts = calloc((size_t)count + 1, sizeof *s->facts);
    if (!s->gpu || !s->server || !s->facts)
        return fl_no_memory(d, "the servers");
    for (uint32_t i = 0; i < count * each; i++)
        s->gpu[i] = i;
    for (uint32_t i = 0; i < count; i++)
        s->server[i] =
            (fl_serving_server){.rules = *rules, .law = &s->law, .gpu = s->gpu + (size_t)i * each, .gpu_count = each};
    s->setup.server = s->server;
    s->setup.server_count = count;
    s->setup.requests = &s->requests;
    return FL_OK;
}

static fl_status read_requests(const char *path, fl_requests *r, fl_diag *d) {
    fl_left_out left;
    const fl_status s = fl_requests_open(path, r, &left, d);
    if (!s)
        fl_left_tell(path, &left);
    return s;
}

fl_status fl_serving_scene_open(const fl_serving_choice *c, fl_serving_scene **out, fl_diag *d) {
    fl_batching_rules rules = {0};
    fl_serving_scene *s = *out = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(c->server)))
        return fl_no_memory(d, "the servers");
    s->law = fl_step_law_none();
    uint32_t pool[2] = {0, 0};
    fl_status status = c->pools ? find_pools(c->pools, pool, d) : FL_OK;
    const uint32_t count = c->pools ? pool[0] + pool[1] : (uint32_t)(c->servers ? c->servers : 1);
    if (!status)
        status = fl_serving_read(c->server, &s->stated, d);
    const uint32_t replicas = (uint32_t)s->stated.number[FL_SERVING_replicas];
    if (!status && (uint64_t)count * s->stated.tensor_parallel * replicas > FL_SERVING_GPUS_MAX)
        status = fl_refuse(d, "%u servers of %u GPUs each, expected at most %d GPUs", count,
                           s->stated.tensor_parallel * replicas, FL_SERVING_GPUS_MAX);
    if (!status)
        status = fl_serving_file_rules(&s->stated, (uint64_t)c->kv_blocks, &rules, d);
    if (!status && c->token_budget)
        rules.token_budget = (uint32_t)c->token_budget;
    if (!status)
        status = fl_serving_file_law(&s->stated, &s->law, d);
    if (!status)
        status = read_requests(c->requests, &s->requests, d);
    if (!status)
        status = fl_serving_choice_resolve(c, &s->setup, d);
    s->setup.replicas = replicas;
    s->setup.link.bytes_per_token = c->kv_bytes > 0 ? c->kv_bytes : s->law.kv_bytes;
    if (!status && c->pools && !(s->setup.link.bytes_per_token > 0))
        status = fl_fail(d, FL_BAD_INPUT, c->server, 0, 0,
                         "how many bytes the KV cache of a token takes is not known, expected a row kv_bytes or "
                         "--kv-bytes N");
    if (!status)
        status = make_servers(s, count * replicas, &rules, d);
    for (uint32_t i = 0; !status && c->pools && i < count * replicas; i++)
        s->server[i].role = i < pool[0] * replicas ? FL_ROLE_PREFILL : FL_ROLE_DECODE;
    if (!status)
        fl_serving_facts(&s->setup, s->facts);
    return status;
}

void fl_serving_scene_free(fl_serving_scene *s) {
    if (!s)
        return;
    fl_step_law_free(&s->law);
    fl_serving_free(&s->stated);
    fl_requests_free(&s->requests);
    free(s->gpu);
    free(s->server);
    free(s->facts);
    free(s->path);
    free(s);
}

uint32_t fl_serving_scene_gpus(const fl_serving_scene *s) { return s->setup.server_count * s->stated.tensor_parallel; }

char *fl_serving_scene_clocks(const fl_serving_scene *s, char *buf, size_t size) {
    const char *gpu = fl_head_get(&s->stated.head, "gpu"), *fitted = fl_head_get(&s->stated.head, "fitted");
    char beyond[256];
    fl_serving_clocks_text(&s->law, buf, size);
    if (s->law.experts)
        append(buf, size, "; routing to experts is assumed to be %s", s->law.expert_skew > 0 ? "skewed" : "even");
    if (gpu)
        append(buf, size, "; steps of %.80s", gpu);
    if (fitted)
        append(buf, size, ", law from %.160s", fitted);
    if (s->law.time_error >= 0)
        append(buf, size, ", mean error in time %.2g %% on %s that the fit did not see", 100 * s->law.time_error,
               s->law.sm_count > 1 ? "clocks" : "batches");
    if (s->law.power_error >= 0)
        append(buf, size, ", in power %.2g %%", 100 * s->law.power_error);
    if (*fl_serving_beyond_text(&s->law, s->setup.server[0].rules.token_budget, beyond, sizeof beyond))
        append(buf, size, "; %s", beyond);
    return buf;
}
