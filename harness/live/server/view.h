/* The signals of a server as its pages tell them one after the other: counters that go on where an engine began anew,
 * percentiles over the last ten seconds, and what is stale. Time is the host's. */
#pragma once

#include "harness/live/server/metrics_page.h"
#include "policies/policy.h"

enum { FL_VIEW_PAGES = 64 };
#define FL_VIEW_WINDOW_NS INT64_C(10000000000) /* of the percentiles, as policies/policy.h has it */
#define FL_VIEW_STALE_NS INT64_C(3000000000)   /* a page as old as that tells nothing any more */

typedef struct fl_view_page { /* what a window needs of a page */
    int64_t t_ns;
    fl_metrics_histogram ttft, tbt;
} fl_view_page;

typedef struct fl_server_view {            /* zeroed, but for the targets, before the first page */
    int64_t ttft_target_ns, tbt_target_ns; /* 0: not stated, so nobody counts late tokens */
    int64_t page_ns;                       /* when the last page came */
    uint64_t pages, restarts;              /* counters that fell are those of an engine that began anew */
    double value[FL_SERVER_SIGNAL_COUNT];  /* as of the last page; NAN: not known */
    double base[FL_SERVER_SIGNAL_COUNT];   /* of counters: what engines before this one had counted */
    double raw[FL_SERVER_SIGNAL_COUNT];    /* of counters: as the last page that had them */
    uint64_t fell;                         /* counters that fell on the last page: unknown for that page */
    uint64_t shown;                        /* pages as of the last fl_server_view_show */
    fl_view_page page[FL_VIEW_PAGES];
} fl_server_view;

/* A page came at t_ns. */
void fl_server_view_take(fl_server_view *v, const fl_metrics *m, int64_t t_ns);

/* The signals among `needs` at t_ns; all are fresh the first time after a page, and none is valid once it is stale. */
void fl_server_view_show(fl_server_view *v, uint64_t needs, int64_t t_ns, fl_server_sample *out);

/* The last page is too old, or there is none. */
bool fl_server_view_stale(const fl_server_view *v, int64_t t_ns);
