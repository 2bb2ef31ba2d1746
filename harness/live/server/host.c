/* Turns successive pages of a serving engine into the signals of a server. */
#include "harness/live/server/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/server/server.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_VIEW_WINDOW_NS INT64_C(10000000000) /* of the percentiles, as policies/policy.h has it */
#define FL_VIEW_STALE_NS INT64_C(3000000000)   /* a page as old as that tells nothing any more */

/* ---- two pages as signals ---- */

static bool is_counter(int id) {
#define KIND(id_, name, unit, kind, meaning) FL_##kind,
    static const fl_signal_kind KINDS[] = {FL_SERVER_SIGNALS(KIND)};
    return KINDS[id] == FL_COUNTER;
}

/* The oldest page of the window, whose counts go up to those of this one; NULL: none. */
static const fl_view_page *window_of(const fl_server_view *v) {
    const fl_view_page *found = NULL;
    const uint64_t kept = v->pages < FL_VIEW_PAGES ? v->pages : FL_VIEW_PAGES;
    for (uint64_t i = 1; i < kept; i++) {
        const fl_view_page *p = &v->page[(v->pages - 1 - i) % FL_VIEW_PAGES];
        if (v->page_ns - p->t_ns > FL_VIEW_WINDOW_NS && found)
            break;
        found = p;
    }
    return found;
}

/* The engine began anew between the two: what it counted before is not in the later one. */
static bool fell(const fl_metrics_histogram *now, const fl_metrics_histogram *before) {
    if (now->buckets != before->buckets)
        return true;
    for (uint32_t i = 0; i < now->buckets; i++)
        if (now->upto[i] < before->upto[i] || now->bound[i] != before->bound[i])
            return true;
    return false;
}

static void percentiles(fl_server_view *v, const fl_metrics_histogram *now, const fl_metrics_histogram *before,
                        int first) {
    static const double SHARE[] = {0.5, 0.95, 0.99};
    const bool fits = before && !fell(now, before);
    for (int i = 0; i < 3; i++)
        v->value[first + i] = fits ? fl_metrics_quantile(now, before, SHARE[i]) * 1e9 : (double)NAN;
}

static double late(const fl_metrics_histogram *h, int64_t target_ns) {
    return target_ns > 0 && !isnan(h->count) ? fl_metrics_beyond(h, (double)target_ns * 1e-9) : (double)NAN;
}

static void count(fl_server_view *v, int id, double raw) {
    if (isnan(raw)) {
        v->value[id] = NAN;
        return;
    }
    if (raw < v->raw[id]) {
        v->base[id] += v->raw[id];
        v->fell |= FL_BIT(id);
    }
    v->raw[id] = raw;
    v->value[id] = v->base[id] + raw;
}

void fl_server_view_take(fl_server_view *v, const fl_metrics *m, int64_t t_ns) {
    v->page_ns = t_ns;
    v->page[v->pages++ % FL_VIEW_PAGES] = (fl_view_page){t_ns, m->ttft, m->tbt};
    v->fell = 0;
    for (int id = 0; id < FL_SERVER_SIGNAL_COUNT; id++)
        v->value[id] = NAN;
    v->value[FL_SERVER_WAITING] = m->waiting;
    v->value[FL_SERVER_RUNNING] = m->running;
    v->value[FL_SERVER_KV_USED_PCT] = 100 * m->kv_used;
    count(v, FL_SERVER_PROMPT_TOKENS, m->prompt_tokens);
    count(v, FL_SERVER_CACHED_TOKENS, m->cached_tokens);
    count(v, FL_SERVER_OUTPUT_TOKENS, m->output_tokens);
    count(v, FL_SERVER_BATCHES, m->step_tokens.count);
    count(v, FL_SERVER_BATCH_TOKENS, m->step_tokens.sum);
    count(v, FL_SERVER_PREEMPTIONS, m->preemptions);
    count(v, FL_SERVER_FINISHED, m->finished);
    count(v, FL_SERVER_TTFT_SUM_NS, 1e9 * m->ttft.sum);
    count(v, FL_SERVER_TTFT_COUNT, m->ttft.count);
    count(v, FL_SERVER_TBT_SUM_NS, 1e9 * m->tbt.sum);
    count(v, FL_SERVER_TBT_COUNT, m->tbt.count);
    count(v, FL_SERVER_TTFT_MISSED, late(&m->ttft, v->ttft_target_ns));
    count(v, FL_SERVER_TBT_MISSED, late(&m->tbt, v->tbt_target_ns));
    v->restarts += v->fell != 0;
    const fl_view_page *before = window_of(v);
    percentiles(v, &m->ttft, before ? &before->ttft : NULL, FL_SERVER_TTFT_P50_NS);
    percentiles(v, &m->tbt, before ? &before->tbt : NULL, FL_SERVER_TBT_P50_NS);
}

bool fl_server_view_stale(const fl_server_view *v, int64_t t_ns) {
    return !v->pages || t_ns - v->page_ns > FL_VIEW_STALE_NS;
}

void fl_server_view_show(fl_server_view *v, uint64_t needs, int64_t t_ns, fl_server_sample *out) {
    *out = (fl_server_sample){0};
    if (fl_server_view_stale(v, t_ns))
        return;
    for (int id = 0; id < FL_SERVER_SIGNAL_COUNT; id++) {
        if (!(needs >> id & 1) || isnan(v->value[id]) || (is_counter(id) && v->fell >> id & 1))
            continue;
        out->value[id] = v->value[id];
        out->valid |= FL_BIT(id);
        out->fresh |= v->shown != v->pages ? FL_BIT(id) : 0;
    }
    v->shown = v->pages;
}

/* ---- the server of a live host ---- */

#define PERIOD_NS INT64_C(500000000) /* from one reading of the page to the next */

struct fl_server_host {
    fl_page_reader *reader;
    fl_server_view view;
    fl_metrics page; /* the last one */
    fl_server_host_options options;
    double kv_tokens; /* of the first page; NAN: not on it */
    uint64_t has, lost;
    bool away, lying;
    uint32_t *gpu;
};

fl_status fl_server_host_open(fl_server_host **out, const fl_server_host_options *o, fl_diag *d) {
    *out = NULL;
    fl_server_host *h = calloc(1, sizeof *h);
    if (!h)
        return fl_no_memory(d, "the server");
    h->options = *o;
    h->view.ttft_target_ns = o->ttft_target_ns;
    h->view.tbt_target_ns = o->tbt_target_ns;
    h->gpu = calloc(o->gpus + 1, sizeof *h->gpu);
    fl_status s =
        h->gpu ? fl_page_reader_open(&h->reader, o->url, PERIOD_NS, &h->page, d) : fl_no_memory(d, "the server");
    if (s) {
        fl_server_host_close(h);
        return s;
    }
    for (uint32_t i = 0; i < o->gpus; i++)
        h->gpu[i] = i;
    h->kv_tokens = h->page.kv_tokens;
    fl_server_view first = h->view;
    fl_server_sample sample;
    fl_server_view_take(&first, &h->page, 0);
    fl_server_view_show(&first, UINT64_MAX, 0, &sample);
    h->has = sample.valid;
    if (!isnan(h->page.ttft.count)) /* a percentile needs a second page */
        h->has |= FL_BIT(FL_SERVER_TTFT_P50_NS) | FL_BIT(FL_SERVER_TTFT_P95_NS) | FL_BIT(FL_SERVER_TTFT_P99_NS);
    if (!isnan(h->page.tbt.count))
        h->has |= FL_BIT(FL_SERVER_TBT_P50_NS) | FL_BIT(FL_SERVER_TBT_P95_NS) | FL_BIT(FL_SERVER_TBT_P99_NS);
    *out = h;
    return FL_OK;
}

void fl_server_host_close(fl_server_host *h) {
    if (!h)
        return;
    fl_page_reader_close(h->reader);
    free(h->gpu);
    free(h);
}

void fl_server_host_facts(const fl_server_host *h, fl_server_facts *f) {
    *f = (fl_server_facts){.gpu = h->gpu,
                           .gpu_count = h->options.gpus,
                           .kv_tokens = isnan(h->kv_tokens) ? 0 : (uint64_t)h->kv_tokens,
                           .ttft_target_ns = h->options.ttft_target_ns,
                           .tbt_target_ns = h->options.tbt_target_ns,
                           .target_share = h->options.target_share};
}

uint64_t fl_server_host_has(const fl_server_host *h) { return h->has; }

static void take(fl_server_host *h, int64_t t_ns, fl_effect_tell *tell, void *user) {
    char line[256];
    const uint64_t restarts = h->view.restarts;
    if (h->away && tell) {
        snprintf(line, sizeof line, "server: its page is back after %.1f s", (double)(t_ns - h->view.page_ns) * 1e-9);
        tell(user, line, false);
    }
    h->away = false;
    fl_server_view_take(&h->view, &h->page, t_ns);
    if (h->view.restarts > restarts && tell)
        tell(user, "server: its counters fell: the engine began anew, or the page lies; unknown for one page",
             restarts > 0);
    if (h->page.lies && !h->lying && tell) {
        snprintf(line, sizeof line, "server: %s on its page cannot be; unknown as long as it stands there",
                 h->page.lie);
        tell(user, line, false);
    }
    h->lying = h->page.lies > 0;
}

void fl_server_host_read(fl_server_host *h, uint64_t needs, int64_t t_ns, fl_server_sample *out, fl_effect_tell *tell,
                         void *user) {
    if (fl_page_reader_take(h->reader, &h->page))
        take(h, t_ns, tell, user);
    else if (!h->away && fl_server_view_stale(&h->view, t_ns)) {
        char why[FL_PAGE_WHY], line[FL_PAGE_WHY + 96];
        fl_page_reader_why(h->reader, why);
        snprintf(line, sizeof line, "server: no page for %.1f s (%s); its signals are unknown until it is back",
                 (double)(t_ns - h->view.page_ns) * 1e-9, *why ? why : "it is being waited for");
        h->away = true;
        h->lost++;
        if (tell)
            tell(user, line, false);
    }
    fl_server_view_show(&h->view, needs, t_ns, out);
}

fl_server_host_counts fl_server_host_count(fl_server_host *h) {
    return (fl_server_host_counts){
        .read = fl_page_reader_count(h->reader), .restarts = h->view.restarts, .lost = h->lost};
}
