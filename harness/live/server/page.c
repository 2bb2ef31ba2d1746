/* Parses an engine's page of metrics. */
#include "harness/live/server/inside.h"

#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Spellings of one metric: those of a newer release come later and count alone where both are there. */
static const struct row {
    const char *name;
    size_t at; /* of the double, or of the histogram */
    uint32_t rank;
    enum { VALUE, MEAN, BUCKET, SUM, COUNT } kind;
} ROWS[] = {
#define NUMBER(name_, member, rank_, kind_)                                                                            \
    { name_, offsetof(fl_metrics, member), rank_, kind_ }
#define HISTOGRAM(name_, member, rank_)                                                                                \
    NUMBER(name_ "_bucket", member, rank_, BUCKET), NUMBER(name_ "_sum", member, rank_, SUM),                          \
        NUMBER(name_ "_count", member, rank_, COUNT)
    NUMBER("vllm:num_requests_waiting", waiting, 1, VALUE),
    NUMBER("vllm:num_requests_running", running, 1, VALUE),
    NUMBER("vllm:gpu_cache_usage_perc", kv_used, 1, MEAN),
    NUMBER("vllm:kv_cache_usage_perc", kv_used, 2, MEAN),
    NUMBER("vllm:prompt_tokens_total", prompt_tokens, 1, VALUE),
    NUMBER("vllm:generation_tokens_total", output_tokens, 1, VALUE),
    NUMBER("vllm:gpu_prefix_cache_hits_total", cached_tokens, 1, VALUE),
    NUMBER("vllm:prefix_cache_hits_total", cached_tokens, 2, VALUE),
    NUMBER("vllm:num_preemptions_total", preemptions, 1, VALUE),
    NUMBER("vllm:request_success_total", finished, 1, VALUE),
    HISTOGRAM("vllm:time_to_first_token_seconds", ttft, 1),
    HISTOGRAM("vllm:time_per_output_token_seconds", tbt, 1),
    HISTOGRAM("vllm:inter_token_latency_seconds", tbt, 2),
    HISTOGRAM("vllm:iteration_tokens_total", step_tokens, 1),
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };
static const char CONFIG[] = "vllm:cache_config_info";

typedef struct reading {
    fl_metrics *m;
    uint32_t rank[ROW_COUNT], series[ROW_COUNT]; /* of the first row of each metric: its spelling so far; of a MEAN */
} reading;

typedef struct line { /* of the page: name{labels} value */
    const char *name, *labels, *value;
    size_t name_size, labels_size, value_size;
} line;

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* False where the line has no such form. */
static bool split(const char *at, const char *end, line *l) {
    *l = (line){.name = at};
    while (at < end && *at != '{' && !blank(*at))
        at++;
    l->name_size = (size_t)(at - l->name);
    if (at < end && *at == '{') {
        bool quoted = false;
        l->labels = ++at;
        for (; at < end && (quoted || *at != '}'); at++) {
            if (*at == '\\' && quoted && at + 1 < end)
                at++;
            else if (*at == '"')
                quoted = !quoted;
        }
        if (at >= end)
            return false;
        l->labels_size = (size_t)(at++ - l->labels);
    }
    while (at < end && blank(*at))
        at++;
    l->value = at;
    while (at < end && !blank(*at))
        at++;
    l->value_size = (size_t)(at - l->value);
    return l->name_size > 0 && l->value_size > 0;
}

/* The label's value into text; false where it is not there or too long. Values with quotes in them are no numbers. */
static bool label(const line *l, const char *name, char *text, size_t room) {
    const size_t size = strlen(name);
    if (!l->labels)
        return false;
    const char *end = l->labels + l->labels_size;
    for (const char *at = l->labels; (size_t)(end - at) >= size + 2; at++) {
        if ((at != l->labels && at[-1] != ',' && at[-1] != ' ') || memcmp(at, name, size) != 0 || at[size] != '=' ||
            at[size + 1] != '"')
            continue;
        const char *from = at + size + 2, *until = memchr(from, '"', (size_t)(end - from));
        if (!until || (size_t)(until - from) >= room)
            return false;
        memcpy(text, from, (size_t)(until - from));
        text[until - from] = '\0';
        return true;
    }
    return false;
}

static double number(const char *text, size_t size) {
    char copy[64];
    double v;
    if (size >= sizeof copy)
        return NAN;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return fl_real_parse(copy, &v) == FL_NUMBER_OK ? v : (double)NAN;
}

static void lied(fl_metrics *m, const char *name, size_t size) {
    if (!m->lies++)
        snprintf(m->lie, sizeof m->lie, "%.*s", (int)(size < sizeof m->lie ? size : sizeof m->lie - 1), name);
}

static void no_histogram(fl_metrics_histogram *h) { *h = (fl_metrics_histogram){.sum = NAN, .count = NAN}; }

/* Several series have the same bounds; the buckets of one come in ascending order. */
static bool put_bucket(fl_metrics_histogram *h, const line *l, double v) {
    char text[64];
    double bound = INFINITY;
    if (!label(l, "le", text, sizeof text))
        return false;
    if (strcmp(text, "+Inf") != 0 && fl_real_parse(text, &bound) != FL_NUMBER_OK)
        return false;
    uint32_t i = 0;
    while (i < h->buckets && h->bound[i] < bound)
        i++;
    if (i < h->buckets && h->bound[i] == bound) {
        h->upto[i] += v;
        return true;
    }
    if (i < h->buckets || h->buckets == FL_METRICS_BUCKETS)
        return false;
    h->bound[h->buckets] = bound;
    h->upto[h->buckets++] = v;
    return true;
}

static void put(reading *r, const struct row *row, const line *l) {
    fl_metrics *m = r->m;
    char *to = (char *)m + row->at;
    const double v = number(l->value, l->value_size);
    fl_metrics_histogram *h = row->kind >= BUCKET ? (fl_metrics_histogram *)(void *)to : NULL;
    double *value = h ? (row->kind == SUM ? &h->sum : &h->count) : (double *)(void *)to;
    size_t first = 0;
    while (ROWS[first].at != row->at)
        first++;
    uint32_t *rank = &r->rank[first], *series = &r->series[first];
    if (row->rank < *rank)
        return;
    if (row->rank > *rank) {
        if (h)
            no_histogram(h);
        else
            *value = NAN;
        *series = 0;
    }
    *rank = row->rank;
    m->known++;
    if (!isfinite(v) || v < 0) {
        lied(m, l->name, l->name_size);
        *rank = UINT32_MAX; /* nothing of it is believed */
        if (h)
            no_histogram(h);
        else
            *value = NAN;
        return;
    }
    if (row->kind == BUCKET) {
        if (!put_bucket(h, l, v)) {
            lied(m, l->name, l->name_size);
            *rank = UINT32_MAX;
            no_histogram(h);
        }
        return;
    }
    if (row->kind == MEAN)
        *value = ++*series == 1 ? v : *value + (v - *value) / *series;
    else
        *value = isnan(*value) ? v : *value + v;
}

static void config(fl_metrics *m, const line *l) {
    char blocks[32], size[32];
    double a, b;
    if (label(l, "num_gpu_blocks", blocks, sizeof blocks) && label(l, "block_size", size, sizeof size) &&
        fl_real_parse(blocks, &a) == FL_NUMBER_OK && fl_real_parse(size, &b) == FL_NUMBER_OK && a > 0 && b > 0 &&
        a * b < 1e15)
        m->kv_tokens = isnan(m->kv_tokens) ? a * b : m->kv_tokens + a * b;
}

/* A histogram whose counts fall from one bound to the next, or that does not end in its count, says nothing. */
static void check(fl_metrics *m, fl_metrics_histogram *h, const char *name) {
    if (!h->buckets || isnan(h->sum) || isnan(h->count)) {
        no_histogram(h);
        return;
    }
    bool sound = isinf(h->bound[h->buckets - 1]) && h->upto[h->buckets - 1] == h->count;
    for (uint32_t i = 1; i < h->buckets; i++)
        sound = sound && h->upto[i] >= h->upto[i - 1];
    if (sound)
        return;
    lied(m, name, strlen(name));
    no_histogram(h);
}

void fl_metrics_read(const char *text, size_t size, fl_metrics *m) {
    reading r = {.m = m};
    const char *const end = text + size;
    *m = (fl_metrics){.waiting = NAN,
                      .running = NAN,
                      .kv_used = NAN,
                      .prompt_tokens = NAN,
                      .cached_tokens = NAN,
                      .output_tokens = NAN,
                      .preemptions = NAN,
                      .finished = NAN,
                      .kv_tokens = NAN};
    no_histogram(&m->ttft);
    no_histogram(&m->tbt);
    no_histogram(&m->step_tokens);
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *until = stop ? stop : end;
        line l;
        if (*at != '#' && split(at, until, &l)) {
            if (l.name_size == sizeof CONFIG - 1 && !memcmp(l.name, CONFIG, l.name_size))
                config(m, &l);
            for (size_t i = 0; i < ROW_COUNT; i++)
                if (strlen(ROWS[i].name) == l.name_size && !memcmp(l.name, ROWS[i].name, l.name_size))
                    put(&r, &ROWS[i], &l);
        }
        at = until + 1;
    }
    check(m, &m->ttft, "vllm:time_to_first_token_seconds");
    check(m, &m->tbt, "vllm:inter_token_latency_seconds");
    check(m, &m->step_tokens, "vllm:iteration_tokens_total");
    if (m->kv_used > 1) {
        lied(m, "vllm:kv_cache_usage_perc", 24);
        m->kv_used = NAN;
    }
}

double fl_metrics_beyond(const fl_metrics_histogram *h, double value) {
    double low = 0, before = 0;
    for (uint32_t i = 0; i < h->buckets && isfinite(h->bound[i]); i++) {
        if (value < h->bound[i]) {
            const double share = value > low ? (h->bound[i] - value) / (h->bound[i] - low) : 1;
            return (h->count - h->upto[i]) + (h->upto[i] - before) * share;
        }
        low = h->bound[i];
        before = h->upto[i];
    }
    return h->count - before;
}

double fl_metrics_quantile(const fl_metrics_histogram *now, const fl_metrics_histogram *before, double share) {
    if (isnan(now->count) || (before && (before->buckets != now->buckets || isnan(before->count))))
        return NAN;
    double low = 0, below = 0;
    const double all = now->count - (before ? before->count : 0), wanted = share * all;
    if (!(all > 0))
        return NAN;
    for (uint32_t i = 0; i < now->buckets && isfinite(now->bound[i]); i++) {
        const double upto = now->upto[i] - (before ? before->upto[i] : 0);
        if (upto >= wanted && upto > below)
            return low + (now->bound[i] - low) * (wanted > below ? (wanted - below) / (upto - below) : 0);
        low = now->bound[i];
        below = upto > below ? upto : below;
    }
    return low;
}
