/* Requests to servers of language models in JSON: Mooncake's traces, and the results of vLLM's benchmark.
 *
 * Mooncake: github.com/kvcache-ai/Mooncake, FAST25-release/traces and its README (2026-08): an object a line with
 * timestamp (ms), input_length, output_length (tokens) and hash_ids. An id names a block of 512 tokens of the prompt
 * together with all tokens before it. vLLM: github.com/vllm-project/vllm, vllm/benchmarks/serve.py (0.8 to
 * 0.25, 2026), `vllm bench serve --save-result --save-detailed`: lists with an entry per request: input_lens,
 * output_lens, ttfts and itls (s), start_times (s of some clock; newer), errors (a text; empty: none). Without
 * --save-detailed the lists are not there. --append-result writes several objects. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

typedef struct loader {
    fl_request_rows r;
    const char *path;
    fl_intern seen; /* ids of blocks */
    int64_t *id;
    size_t ids, id_room;
    int64_t torn;
    size_t runs; /* objects of a benchmark */
    bool spaced; /* arrivals follow from a rate */
    double rate;
} loader;

static fl_status refuse(const loader *l, int64_t line, fl_diag *d, const char *what, const char *expected) {
    return fl_fail(d, FL_BAD_INPUT, l->path, line, 1, "%s, expected %s", what, expected);
}

/* A number of tokens. Absent, or not whole: false. */
static bool tokens_of(const cJSON *item, uint32_t *tokens) {
    const double x = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    *tokens = 0;
    if (!(x >= 0 && x <= FL_REQUEST_TOKENS_MOST && x == floor(x)))
        return false;
    *tokens = (uint32_t)x;
    return true;
}

/* ---- Mooncake ---- */

static bool same_id(const void *owner, uint32_t index, const void *key) {
    return ((const loader *)owner)->id[index] == *(const int64_t *)key;
}

/* How many leading blocks came before. Their ids stand for all tokens up to their end. */
static fl_status count_shared(loader *l, const cJSON *ids, size_t *shared, fl_diag *d) {
    const cJSON *item;
    bool leading = true;
    *shared = 0;
    cJSON_ArrayForEach(item, ids) {
        const double x = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
        if (!(fabs(x) < 0x1p53))
            return fl_refuse(d, "an entry of hash_ids is no number");
        const int64_t id = (int64_t)x;
        fl_intern_slot *slot = fl_intern_find(&l->seen, fl_hash(&id, sizeof id), same_id, l, &id);
        if (!slot)
            return fl_no_memory(d, l->path);
        leading = leading && slot->index != UINT32_MAX;
        *shared += leading;
        if (slot->index != UINT32_MAX)
            continue;
        if (l->ids == UINT32_MAX - 1 || fl_grow(&l->id, &l->id_room, l->ids + 1, sizeof *l->id))
            return fl_no_memory(d, l->path);
        slot->index = (uint32_t)l->ids;
        l->id[l->ids++] = id;
    }
    return FL_OK;
}

static fl_status read_line(loader *l, const cJSON *value, int64_t line, fl_diag *d) {
    const double ms = fl_json_member_real(value, "timestamp");
    fl_request_row q = {.line = line < UINT32_MAX ? (uint32_t)line : 0, .column = 1};
    size_t shared = 0;
    if (!cJSON_IsObject(value) || isnan(ms))
        return refuse(l, line, d, "the line has no number 'timestamp'",
                      "an object with timestamp, input_length, output_length");
    if (!tokens_of(cJSON_GetObjectItemCaseSensitive(value, "input_length"), &q.prompt_tokens) ||
        !tokens_of(cJSON_GetObjectItemCaseSensitive(value, "output_length"), &q.output_tokens))
        return refuse(l, line, d, "input_length or output_length is no number of tokens", "whole numbers from 0");
    if (!(ms >= 0 && ms < 9e12)) {
        refuse(l, line, d, "timestamp is below 0 or too large", "ms from the begin of the trace");
        return fl_of_values(d);
    }
    q.t_ns = (int64_t)llround(ms * 1e6);
    const fl_status s = count_shared(l, cJSON_GetObjectItemCaseSensitive(value, "hash_ids"), &shared, d);
    if (s == FL_BAD_INPUT)
        return refuse(l, line, d, "an entry of hash_ids is no number", "ids of blocks");
    const uint64_t cached = (uint64_t)shared * BLOCK;
    q.cached_tokens = cached < q.prompt_tokens ? (uint32_t)cached : q.prompt_tokens;
    return s ? s : fl_request_rows_add(&l->r, &q, NULL, d);
}

static fl_status take_line(void *user, const cJSON *value, int64_t line, fl_diag *d) {
    loader *l = user;
    return fl_left_row(&l->r.left, read_line(l, value, line, &l->r.left.own), d);
}

static bool mooncake_detect(const char *path, const char *head, size_t size) {
    (void)path;
    const char *end = memchr(head, '\n', size);
    const size_t first = end ? (size_t)(end - head) : size;
    return memmem(head, first, "\"input_length\"", 14) && memmem(head, first, "\"output_length\"", 15) &&
           memmem(head, first, "\"timestamp\"", 11);
}

/* ---- vLLM's benchmark ---- */

typedef struct lists { /* of a run; NULL: the file has none */
    const cJSON *input, *output, *ttft, *itl, *start, *error;
} lists;

/* A time in s of a list's entry as ns; INT64_MIN: none. */
static int64_t ns_of(const cJSON *item) {
    const double x = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    return x >= 0 && x < 9e9 ? (int64_t)llround(x * 1e9) : INT64_MIN;
}

static fl_status add_request(loader *l, const lists *x, size_t i, int64_t line, uint32_t model, fl_diag *d) {
    const char *error = cJSON_GetStringValue(x->error);
    const cJSON *gap;
    fl_request_row q = {.model = model, .line = line < UINT32_MAX ? (uint32_t)line : 0, .column = 1};
    fl_request_times m = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    if (error && *error)
        return fl_left_empty(&l->r.left, l->path, 0, 0, d, "request %zu failed: %.80s", i, error);
    if (!tokens_of(x->input, &q.prompt_tokens) || !tokens_of(x->output, &q.output_tokens))
        return refuse(l, line, d, "an entry of input_lens or output_lens is no number of tokens",
                      "whole numbers from 0");
    const int64_t start = ns_of(x->start), first = ns_of(x->ttft);
    q.t_ns = start != INT64_MIN ? start : l->rate > 0 ? (int64_t)llround((double)i / l->rate * 1e9) : 0;
    double sum = 0;
    cJSON_ArrayForEach(gap, x->itl) sum += cJSON_IsNumber(gap) && gap->valuedouble >= 0 ? gap->valuedouble : 0;
    if (first > 0 && sum < 9e8) {
        m.first_token_ns = q.t_ns + first;
        m.last_token_ns = x->itl ? m.first_token_ns + (int64_t)llround(sum * 1e9) : INT64_MIN;
    }
    return fl_request_rows_add(&l->r, &q, first > 0 ? &m : NULL, d);
}

static const cJSON *list_of(const cJSON *value, const char *key) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(value, key);
    return cJSON_IsArray(list) ? list->child : NULL;
}

static const cJSON *next(const cJSON *item) { return item ? item->next : NULL; }

static fl_status take_run(void *user, const cJSON *value, int64_t line, fl_diag *d) {
    loader *l = user;
    const cJSON *rate = cJSON_GetObjectItemCaseSensitive(value, "request_rate");
    const char *model = fl_json_member_text(value, "model_id");
    uint32_t name = 0;
    lists x = {list_of(value, "input_lens"), list_of(value, "output_lens"), list_of(value, "ttfts"),
               list_of(value, "itls"),       list_of(value, "start_times"), list_of(value, "errors")};
    if (l->runs++)
        return FL_OK;
    if (!x.input || !x.output)
        return refuse(l, line, d, "the result has totals alone, no lists of its requests",
                      "one of --save-result with --save-detailed");
    fl_status s = model ? fl_request_rows_name(&l->r, model, &name, d) : FL_OK;
    l->spaced = !x.start;
    l->rate = cJSON_IsNumber(rate) && rate->valuedouble > 0 ? rate->valuedouble : 0;
    for (size_t i = 0; !s && x.input && x.output; i++) {
        s = fl_left_row(&l->r.left, add_request(l, &x, i, line, name, &l->r.left.own), d);
        x = (lists){next(x.input), next(x.output), next(x.ttft), next(x.itl), next(x.start), next(x.error)};
    }
    if (!s && (x.input || x.output))
        s = refuse(l, line, d, "input_lens and output_lens have different lengths", "an entry of each per request");
    return s;
}

static bool vllm_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return memmem(head, size, "\"request_throughput\"", 20) && memmem(head, size, "\"total_input_tokens\"", 20) &&
           memmem(head, size, "\"completed\"", 11);
}

/* ---- both ---- */

static fl_status read(const char *path, bool vllm, fl_imported *out, fl_diag *d) {
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->path = path;
    fl_status s = fl_request_rows_begin(&l->r, path, out, d);
    if (!s)
        s = fl_json_each(path, NULL, vllm ? take_run : take_line, l, &l->torn, d);
    if (!s)
        s = fl_request_rows_end(&l->r, !vllm, true, d);
    if (!s && l->runs > 1)
        fl_import_lost(out, "%zu further runs in the file: left out (each needs a file of its own)", l->runs - 1);
    if (!s && vllm && l->spaced && l->rate > 0)
        fl_import_doubt(out, "no start times: requests are taken evenly at their rate of %g per s", l->rate);
    else if (!s && vllm && l->spaced)
        fl_import_doubt(out, "no start times and no rate: all requests are taken to arrive at once");
    if (!s && vllm)
        fl_import_say(out, "a request's last token is its first and the sum of the gaps that follow");
    if (!s && !vllm) {
        fl_import_say(out, "shared tokens are whole blocks of %d that an earlier prompt of the trace begins with",
                      BLOCK);
        fl_import_say(out, "no latencies, and the rate is that of the whole service, not of one server (--scale)");
    }
    if (!s)
        fl_import_torn(out, l->torn);
    if (!s)
        s = fl_import_said(out, d);
    fl_request_rows_free(&l->r);
    fl_intern_free(&l->seen);
    free(l->id);
    free(l);
    return s;
}

static fl_status mooncake_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    return read(path, false, out, d);
}

static fl_status vllm_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    return read(path, true, out, d);
}

const fl_reader fl_reader_mooncake = {"mooncake",
                                      "requests of Mooncake's traces (JSON lines)",
                                      "Mooncake, arXiv and FAST25 traces",
                                      FL_GIVES_REQUESTS | FL_GIVES_PREFIXES,
                                      mooncake_detect,
                                      mooncake_read};
const fl_reader fl_reader_vllm_bench = {"vllm-bench",       "result of vllm bench serve --save-result --save-detailed",
                                        "vLLM 0.8 to 0.25", FL_GIVES_REQUESTS | FL_GIVES_LATENCIES,
                                        vllm_detect,        vllm_read};
