/* What an engine says of itself on its Prometheus page (text exposition format 0.0.4), as plain numbers. The names are
 * vLLM's, old and new. A pure function of the text: whoever sends it may send anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
