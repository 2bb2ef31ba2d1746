#include "harness/live/server/host.h"

#include "harness/live/server/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
