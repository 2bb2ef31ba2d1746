#include "harness/live/server/view.h"

#include <math.h>

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
