/* The facts of a machine, in the head of a decisions log. */
#include "harness/log/inside.h"

#include "harness/log/log.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_GPU = 9, NUMBERS_HOST = 6, NUMBERS_LAW = 5 };

/* ---- writing ---- */

static fl_status set_pair(fl_head *h, const char *who, const char *what, const char *value, fl_diag *d) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", who, what);
    return fl_head_set(h, key, value) ? FL_OK : fl_no_memory(d, "the facts");
}

static fl_status put_ladder(fl_head *h, const char *who, const char *what, fl_ladder l, fl_diag *d) {
    fl_text t;
    if (!l.count)
        return FL_OK;
    FILE *f = fl_text_open(&t);
    for (uint32_t i = 0; f && i < l.count; i++)
        fprintf(f, "%s%d", i ? "/" : "", l.mhz[i]);
    char *text = fl_text_close(&t, NULL);
    fl_status s = text ? set_pair(h, who, what, text, d) : fl_no_memory(d, "the facts");
    free(text);
    return s;
}

static fl_status put_list(fl_head *h, const char *who, const char *what, const double *v, uint32_t count, fl_diag *d) {
    fl_text t;
    FILE *f = fl_text_open(&t);
    for (uint32_t i = 0; f && i < count; i++)
        fprintf(f, "%s%.17g", i ? "/" : "", v[i]);
    char *text = f ? fl_text_close(&t, NULL) : NULL;
    fl_status s = text ? set_pair(h, who, what, text, d) : fl_no_memory(d, "the facts");
    free(text);
    return s;
}

static fl_status put_number(fl_head *h, const char *who, const char *what, int64_t number, fl_diag *d) {
    char text[32];
    if (!number)
        return FL_OK;
    snprintf(text, sizeof text, "%" PRId64, number);
    return set_pair(h, who, what, text, d);
}

/* What is not known has no key. */
static fl_status put_dynamics(fl_head *h, const char *who, const fl_gpu_facts *g, fl_diag *d) {
    const fl_power_law *l = &g->law;
    const double v[NUMBERS_LAW] = {l->a_w, l->a0_w, l->b_w, l->b0_w, l->c_w};
    fl_status s = l->volt ? put_list(h, who, "volt", l->volt, g->sm.count, d) : FL_OK;
    if (!s && l->volt)
        s = put_list(h, who, "law", v, NUMBERS_LAW, d);
    if (!s)
        s = put_number(h, who, "power_lag_ns", g->power_lag_ns, d);
    if (!s)
        s = put_number(h, who, "settle_ns", g->settle_ns, d);
    return s ? s : put_number(h, who, "records_ns", g->records_ns, d);
}

fl_status fl_stated_to_head(const fl_facts *facts, fl_head *h, fl_diag *d) {
    fl_status s = facts->bound > 0 ? put_list(h, "stated", "bound", &facts->bound, 1, d) : FL_OK;
    if (!s)
        s = put_number(h, "stated", "deadline_ns", facts->deadline_ns, d);
    if (!s)
        s = put_number(h, "stated", "expected_ns", facts->expected_ns, d);
    return s ? s : put_number(h, "stated", "streams", (int64_t)facts->streams, d);
}

fl_status fl_facts_to_head(const fl_facts *facts, fl_head *h, fl_diag *d) {
    const fl_host_facts *c = &facts->host;
    const double host[NUMBERS_HOST] = {c->power_min_w,      c->power_max_w, c->power_default_w,
                                       c->peak_bytes_per_s, c->cores,       c->apu};
    fl_status s = put_list(h, "host", "numbers", host, NUMBERS_HOST, d);
    if (!s && c->name && *c->name)
        s = set_pair(h, "host", "name", c->name, d);
    if (!s)
        s = put_ladder(h, "host", "cpu_mhz", c->cpu, d);
    if (!s)
        s = put_ladder(h, "host", "boost_mhz", c->boost, d);
    for (uint32_t i = 0; !s && i < facts->gpu_count; i++) {
        const fl_gpu_facts *g = &facts->gpu[i];
        char who[16];
        snprintf(who, sizeof who, "gpu%u", i);
        const double v[NUMBERS_GPU] = {g->default_sm_mhz,   g->default_mem_mhz, g->power_min_w,
                                       g->power_max_w,      g->power_default_w, g->tdp_w,
                                       g->peak_bytes_per_s, g->sm_count,        g->cores_per_sm};
        s = set_pair(h, who, "name", g->name && *g->name ? g->name : "GPU", d);
        if (!s)
            s = put_ladder(h, who, "sm_mhz", g->sm, d);
        if (!s)
            s = put_ladder(h, who, "mem_mhz", g->mem, d);
        if (!s)
            s = put_list(h, who, "numbers", v, NUMBERS_GPU, d);
        if (!s)
            s = put_dynamics(h, who, g, d);
    }
    return s;
}

/* ---- reading ---- */

typedef struct source {
    const fl_head *head;
    const char *path;
    char who[16];
} source;

static const char *get(const source *from, const char *what) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", from->who, what);
    return fl_head_get(from->head, key);
}

static fl_status wrong(const source *from, const char *what, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, from->path, 0, 0, "head: %s.%s is missing or wrong", from->who, what);
}

static fl_status get_list(const source *from, const char *what, double *v, uint32_t count, fl_diag *d) {
    const char *at = get(from, what);
    for (uint32_t i = 0; i < count; i++) {
        char *end = NULL;
        v[i] = at ? strtod(at, &end) : 0;
        if (!at || end == at || !isfinite(v[i]) || v[i] < 0 || *end != (i + 1 < count ? '/' : '\0'))
            return wrong(from, what, d);
        at = end + 1;
    }
    return FL_OK;
}

static fl_status get_number(const source *from, const char *what, int64_t *number, fl_diag *d) {
    const char *at = get(from, what);
    char *end = NULL;
    *number = 0;
    if (!at)
        return FL_OK;
    errno = 0;
    const long long v = strtoll(at, &end, 10);
    if (end == at || *end || errno || v <= 0)
        return wrong(from, what, d);
    *number = v;
    return FL_OK;
}

/* The ladder is known. A head without a law is of a machine whose law nobody knew. */
static fl_status get_dynamics(const source *from, fl_gpu_facts *g, fl_diag *d) {
    double v[NUMBERS_LAW], *volt = NULL;
    fl_status s = get_number(from, "power_lag_ns", &g->power_lag_ns, d);
    if (!s)
        s = get_number(from, "settle_ns", &g->settle_ns, d);
    if (!s)
        s = get_number(from, "records_ns", &g->records_ns, d);
    if (s || !get(from, "law"))
        return s;
    if (!g->sm.count)
        return wrong(from, "sm_mhz", d);
    if (!(volt = calloc(g->sm.count, sizeof *volt)))
        return fl_no_memory(d, "the facts");
    g->law.volt = volt;
    if ((s = get_list(from, "volt", volt, g->sm.count, d)) || (s = get_list(from, "law", v, NUMBERS_LAW, d)))
        return s;
    g->law = (fl_power_law){volt, v[0], v[1], v[2], v[3], v[4]};
    return FL_OK;
}

fl_status fl_stated_from_head(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d) {
    const source from = {.head = h, .path = path, .who = "stated"};
    int64_t streams = 0;
    fl_status s = get_number(&from, "deadline_ns", &facts->deadline_ns, d);
    if (!s)
        s = get_number(&from, "expected_ns", &facts->expected_ns, d);
    if (!s)
        s = get_number(&from, "streams", &streams, d);
    facts->streams = (uint64_t)streams;
    facts->bound = 0;
    return s || !get(&from, "bound") ? s : get_list(&from, "bound", &facts->bound, 1, d);
}

static fl_status get_ladder(const source *from, const char *what, fl_ladder *l, fl_diag *d) {
    const char *at = get(from, what);
    *l = (fl_ladder){0};
    if (!at)
        return FL_OK;
    uint32_t count = 1;
    for (const char *c = at; *c; c++)
        count += *c == '/';
    int32_t *mhz = calloc(count, sizeof *mhz);
    if (!mhz)
        return fl_no_memory(d, "the facts");
    l->mhz = mhz;
    l->count = count;
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        long v = strtol(at, &end, 10);
        if (end == at || v <= 0 || v > 1000000 || (i && v <= mhz[i - 1]) || *end != (i + 1 < count ? '/' : '\0'))
            return wrong(from, what, d);
        mhz[i] = (int32_t)v;
        at = end + 1;
    }
    return FL_OK;
}

static fl_status get_gpu(source *from, uint32_t i, fl_gpu_facts *g, fl_diag *d) {
    double v[NUMBERS_GPU];
    snprintf(from->who, sizeof from->who, "gpu%u", i);
    if (!(g->name = get(from, "name")))
        return wrong(from, "name", d);
    fl_status s = get_list(from, "numbers", v, NUMBERS_GPU, d);
    if (!s)
        s = get_ladder(from, "sm_mhz", &g->sm, d);
    if (!s)
        s = get_ladder(from, "mem_mhz", &g->mem, d);
    if (s)
        return s;
    if (v[7] > 1e6 || v[8] > 1e6)
        return wrong(from, "numbers", d);
    g->default_sm_mhz = v[0];
    g->default_mem_mhz = v[1];
    g->power_min_w = v[2];
    g->power_max_w = v[3];
    g->power_default_w = v[4];
    g->tdp_w = v[5];
    g->peak_bytes_per_s = v[6];
    g->sm_count = (uint32_t)v[7];
    g->cores_per_sm = (uint32_t)v[8];
    return get_dynamics(from, g, d);
}

static fl_status get_host(source *from, fl_host_facts *c, fl_diag *d) {
    double v[NUMBERS_HOST];
    snprintf(from->who, sizeof from->who, "host");
    fl_status s = get_list(from, "numbers", v, NUMBERS_HOST, d);
    if (!s)
        s = get_ladder(from, "cpu_mhz", &c->cpu, d);
    if (!s)
        s = get_ladder(from, "boost_mhz", &c->boost, d);
    if (s)
        return s;
    if (v[4] > 1e6)
        return wrong(from, "numbers", d);
    c->name = get(from, "name") ? get(from, "name") : "";
    c->power_min_w = v[0];
    c->power_max_w = v[1];
    c->power_default_w = v[2];
    c->peak_bytes_per_s = v[3];
    c->cores = (uint32_t)v[4];
    c->apu = v[5] > 0;
    return FL_OK;
}

bool fl_facts_in_head(const fl_head *h) { return fl_head_get(h, "gpu0.numbers") != NULL; }

fl_status fl_facts_from_head(const fl_head *h, const char *path, uint32_t gpu_count, uint64_t seed, fl_facts *facts,
                             fl_diag *d) {
    source from = {.head = h, .path = path};
    fl_gpu_facts *gpu = calloc(gpu_count + 1, sizeof *gpu);
    *facts = (fl_facts){.seed = seed, .gpu_count = gpu_count, .gpu = gpu};
    if (!gpu)
        return fl_no_memory(d, "the facts");
    fl_status s = get_host(&from, &facts->host, d);
    for (uint32_t i = 0; !s && i < gpu_count; i++)
        s = get_gpu(&from, i, &gpu[i], d);
    if (s)
        fl_facts_head_free(facts);
    return s;
}

static void free_ladder(fl_ladder *l) { free((int32_t *)(uintptr_t)l->mhz); }

void fl_facts_head_free(fl_facts *facts) {
    fl_gpu_facts *gpu = (fl_gpu_facts *)(uintptr_t)facts->gpu;
    for (uint32_t i = 0; gpu && i < facts->gpu_count; i++) {
        free_ladder(&gpu[i].sm);
        free_ladder(&gpu[i].mem);
        free((double *)(uintptr_t)gpu[i].law.volt);
    }
    free_ladder(&facts->host.cpu);
    free_ladder(&facts->host.boost);
    free(gpu);
    *facts = (fl_facts){0};
}
