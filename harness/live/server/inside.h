/* What the files of harness/live/server share. Other modules include the public header alone. */
#pragma once

#include "harness/live/server/server.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers on an engine's Prometheus page (text exposition format 0.0.4). The names are vLLM's, old and new. Parsing
 * is a pure function of the text, which may contain anything. */

enum { FL_METRICS_BUCKETS = 48 };

typedef struct fl_metrics_histogram {
    double sum, count; /* NAN: not on the page, or not to be believed; then nothing of it is */
    uint32_t buckets;
    double bound[FL_METRICS_BUCKETS]; /* ascending; the last is infinite */
    double upto[FL_METRICS_BUCKETS];  /* values up to the bound, so the last is count */
} fl_metrics_histogram;

/* NAN: not on the page, or not to be believed. Where several engines stand on one page their numbers are added; the use
 * of their caches is averaged. */
typedef struct fl_metrics {
    double waiting, running;
    double kv_used; /* 0 to 1 */
    double prompt_tokens, cached_tokens, output_tokens, preemptions, finished;
    double kv_tokens;                 /* that the cache holds, as the configuration on the page says */
    fl_metrics_histogram ttft, tbt;   /* seconds */
    fl_metrics_histogram step_tokens; /* of the engine's steps */
    uint32_t known;                   /* lines of the metrics above */
    uint32_t lies;                    /* values that cannot be: no number, negative, counts of a histogram that fall */
    char lie[96];                     /* the metric of the first of them */
} fl_metrics;

/* text need not end in NUL. Lines of other metrics are passed over. */
void fl_metrics_read(const char *text, size_t size, fl_metrics *m);

/* Values above `value`: the rest of them. It is a sum of counts and of a share of one count, not a difference, so that
 * it never falls, not even by rounding, from one page to the next while the engine counts on. */
double fl_metrics_beyond(const fl_metrics_histogram *h, double value);

/* The value below which the share (0 to 1) of what came between two pages lies, likewise; beyond the last finite bound
 * that bound. NAN: nothing came, or they do not fit together. before NULL: since the engine began. */
double fl_metrics_quantile(const fl_metrics_histogram *now, const fl_metrics_histogram *before, double share);

typedef struct fl_page_reader fl_page_reader;

enum { FL_PAGE_WHY = 160 };

/* Looks the host up and reads a first page into *first. FL_BAD_INPUT: the URL is malformed. FL_HARDWARE: no page comes,
 * or a page without any known metric of an engine. */
fl_status fl_page_reader_open(fl_page_reader **out, const char *url, int64_t period_ns, fl_metrics *first, fl_diag *d);

/* True where a page came since the last call; then it is in *m. Never waits. */
bool fl_page_reader_take(fl_page_reader *r, fl_metrics *m);

fl_page_counts fl_page_reader_count(fl_page_reader *r);
/* Why the last exchange brought no page; "" where it did. */
void fl_page_reader_why(fl_page_reader *r, char why[FL_PAGE_WHY]);

/* Ends the thread, in the midst of an exchange too. NULL is allowed. */
void fl_page_reader_close(fl_page_reader *r);

/* What is there of an answer so far: */
typedef enum fl_page_answer {
    FL_PAGE_MORE,  /* more is to come */
    FL_PAGE_WHOLE, /* *from and *size are the page */
    FL_PAGE_WRONG  /* *why says why it is none */
} fl_page_answer;

/* ended: nothing comes after these bytes. */
fl_page_answer fl_page_answer_read(const char *bytes, size_t count, bool ended, const char **from, size_t *size,
                                   const char **why);

/* The signals of a server, made of successive pages: counters that continue after a restart of the engine, percentiles
 * over the last ten seconds, and staleness. Time is the host's. */

enum { FL_VIEW_PAGES = 64 };

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
