/* An engine's page as numbers, and its pages one after the other as the signals of a server. */
#include "harness/live/server/inside.h"
#include "harness/live/server/server.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

/* ---- one page ---- */

#define BUCKETS(name, a, b, c)                                                                                         \
    name "_bucket{le=\"0.1\"} " a "\n" name "_bucket{le=\"0.5\"} " b "\n" name "_bucket{le=\"+Inf\"} " c "\n"

static fl_metrics of(const char *text) {
    fl_metrics m;
    fl_metrics_read(text, strlen(text), &m);
    return m;
}

static bool same(double a, double b) { return isnan(a) ? isnan(b) : fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

static void test_numbers(void) {
    const struct {
        const char *what, *text;
        size_t at;
        double expected;
    } cases[] = {
#define FIELD(member) offsetof(fl_metrics, member)
        {"a gauge", "vllm:num_requests_waiting 3\n", FIELD(waiting), 3},
        {"without an end of line", "vllm:num_requests_running 2.0", FIELD(running), 2},
        {"two engines are added",
         "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} 5\n", FIELD(running), 7},
        {"caches are averaged",
         "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n", FIELD(kv_used),
         0.375},
        {"the old name", "vllm:gpu_cache_usage_perc 0.5\n", FIELD(kv_used), 0.5},
        {"the newer name alone counts", "vllm:kv_cache_usage_perc 0.2\nvllm:gpu_cache_usage_perc 0.5\n", FIELD(kv_used),
         0.2},
        {"in whatever order", "vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.2\n", FIELD(kv_used), 0.2},
        {"more than all of a cache cannot be", "vllm:kv_cache_usage_perc 1.5\n", FIELD(kv_used), NAN},
        {"a label with braces and quotes", "vllm:prompt_tokens_total{m=\"a \\\"b\\\" {c}\"} 9\n", FIELD(prompt_tokens),
         9},
        {"a time stamp behind", "vllm:generation_tokens_total 12 1700000000000\n", FIELD(output_tokens), 12},
        {"reasons to finish are added",
         "vllm:request_success_total{finished_reason=\"stop\"} "
         "4\nvllm:request_success_total{finished_reason=\"length\"} 2\n",
         FIELD(finished), 6},
        {"the cache's size", "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\"} 1\n", FIELD(kv_tokens),
         1600},
        {"of no blocks it is not known", "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1\n",
         FIELD(kv_tokens), NAN},
        {"a comment is none", "# vllm:num_requests_waiting 3\n", FIELD(waiting), NAN},
        {"another metric is none", "vllm:num_requests_waiting_more 3\n", FIELD(waiting), NAN},
        {"no number", "vllm:num_requests_waiting NaN\n", FIELD(waiting), NAN},
        {"negative", "vllm:num_requests_waiting -1\n", FIELD(waiting), NAN},
        {"infinite", "vllm:num_requests_waiting +Inf\n", FIELD(waiting), NAN},
        {"once no number, never one", "vllm:num_requests_waiting NaN\nvllm:num_requests_waiting 3\n", FIELD(waiting),
         NAN},
        {"a torn label", "vllm:num_requests_waiting{engine=\"0 3\n", FIELD(waiting), NAN},
        {"no value", "vllm:num_requests_waiting\n", FIELD(waiting), NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fl_metrics m = of(cases[i].text);
        double is;
        memcpy(&is, (const char *)&m + cases[i].at, sizeof is);
        FL_CHECK(same(is, cases[i].expected), "%s: %g, expected %g", cases[i].what, is, cases[i].expected);
    }
}

static void test_lies(void) {
    static const char TTFT[] = "vllm:time_to_first_token_seconds";
    static const struct {
        const char *what, *text;
        bool believed;
    } cases[] = {
        {"a histogram",
         BUCKETS("vllm:time_to_first_token_seconds", "2", "6", "8") "vllm:time_to_first_token_seconds_sum 3\n"
                                                                    "vllm:time_to_first_token_seconds_count 8\n",
         true},
        {"of two engines",
         BUCKETS("vllm:time_to_first_token_seconds", "2", "6", "8")
             BUCKETS("vllm:time_to_first_token_seconds", "0", "1", "2") "vllm:time_to_first_token_seconds_sum 3\n"
                                                                        "vllm:time_to_first_token_seconds_count 10\n",
         true},
        {"that falls",
         BUCKETS("vllm:time_to_first_token_seconds", "6", "2", "8") "vllm:time_to_first_token_seconds_sum 3\n"
                                                                    "vllm:time_to_first_token_seconds_count 8\n",
         false},
        {"that does not end in its count",
         BUCKETS("vllm:time_to_first_token_seconds", "2", "6", "8") "vllm:time_to_first_token_seconds_sum 3\n"
                                                                    "vllm:time_to_first_token_seconds_count 9\n",
         false},
        {"without a bound", "vllm:time_to_first_token_seconds_bucket 3\n", false},
        {"with one negative",
         BUCKETS("vllm:time_to_first_token_seconds", "-2", "6", "8") "vllm:time_to_first_token_seconds_sum 3\n"
                                                                     "vllm:time_to_first_token_seconds_count 8\n",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fl_metrics m = of(cases[i].text);
        FL_CHECK(!isnan(m.ttft.count) == cases[i].believed && (m.lies == 0) == cases[i].believed,
                 "a histogram %s: count %g, %u lies", cases[i].what, m.ttft.count, m.lies);
        FL_CHECK(cases[i].believed || !strncmp(m.lie, TTFT, sizeof TTFT - 1), "%s: '%s'", cases[i].what, m.lie);
    }
}

/* 0 to 0.1: 2, to 0.5: 4 more, beyond: 2. */
static void test_quantiles(void) {
    const fl_metrics m =
        of(BUCKETS("vllm:time_to_first_token_seconds", "2", "6", "8") "vllm:time_to_first_token_seconds_sum 3\n"
                                                                      "vllm:time_to_first_token_seconds_count 8\n");
    static const struct {
        double share, value;
    } cases[] = {{0.125, 0.05}, {0.25, 0.1}, {0.5, 0.3}, {0.75, 0.5}, {0.99, 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FL_CHECK(same(fl_metrics_quantile(&m.ttft, NULL, cases[i].share), cases[i].value), "%g of all: %g, expected %g",
                 cases[i].share, fl_metrics_quantile(&m.ttft, NULL, cases[i].share), cases[i].value);
    FL_CHECK(isnan(fl_metrics_quantile(&m.ttft, &m.ttft, 0.5)), "nothing came between a page and itself");
}

/* ---- pages one after the other ---- */

static fl_metrics page(double tokens, double late) {
    char text[1024];
    snprintf(text, sizeof text,
             "vllm:num_requests_waiting 1\nvllm:generation_tokens_total %g\n" BUCKETS(
                 "vllm:inter_token_latency_seconds", "%g", "%g",
                 "%g") "vllm:inter_token_latency_seconds_sum %g\nvllm:inter_token_latency_seconds_count %g\n",
             tokens, tokens - late, tokens, tokens, 0.05 * tokens, tokens);
    return of(text);
}

static fl_server_view view;

static double shown(int64_t t_ns, int id) {
    fl_server_sample s;
    fl_server_view_show(&view, UINT64_MAX, t_ns, &s);
    return fl_server_known(&s, id) ? s.value[id] : (double)NAN;
}

static void test_view(void) {
    const int64_t second = 1000000000;
    fl_server_sample s;
    view = (fl_server_view){.tbt_target_ns = 100000000};
    FL_CHECK(fl_server_view_stale(&view, 0), "no page came, and it is not stale");
    fl_metrics m = page(1000, 0);
    fl_server_view_take(&view, &m, 0);
    fl_server_view_show(&view, UINT64_MAX, 0, &s);
    FL_CHECK(fl_server_fresh(&s, FL_SERVER_OUTPUT_TOKENS) && s.value[FL_SERVER_OUTPUT_TOKENS] == 1000, "%g tokens",
             s.value[FL_SERVER_OUTPUT_TOKENS]);
    fl_server_view_show(&view, UINT64_MAX, second, &s);
    FL_CHECK(fl_server_known(&s, FL_SERVER_WAITING) && !s.fresh, "without a new page nothing is fresh");
    fl_server_view_show(&view, FL_BIT(FL_SERVER_WAITING), second, &s);
    FL_CHECK(s.valid == FL_BIT(FL_SERVER_WAITING), "more than was asked for is shown");
    FL_CHECK(isnan(shown(second, FL_SERVER_TBT_P99_NS)), "a percentile of one page");
    m = page(1100, 10);
    fl_server_view_take(&view, &m, 2 * second);
    FL_CHECK(same(shown(2 * second, FL_SERVER_TBT_MISSED), 10), "%g tokens were late, expected 10",
             shown(2 * second, FL_SERVER_TBT_MISSED));
    FL_CHECK(same(shown(2 * second, FL_SERVER_TBT_P50_NS), 1e8 * 50 / 90), "median %g, expected %g",
             shown(2 * second, FL_SERVER_TBT_P50_NS), 1e8 * 50 / 90);
    FL_CHECK(same(shown(2 * second, FL_SERVER_TBT_SUM_NS), 55e9), "sum %g", shown(2 * second, FL_SERVER_TBT_SUM_NS));
    FL_CHECK(!isnan(shown(5 * second, FL_SERVER_WAITING)), "a page of three seconds tells still");
    FL_CHECK(isnan(shown(5 * second + 1, FL_SERVER_WAITING)), "an older one does not");
    /* the engine begins anew: its counters go on from where they were, unknown for one page */
    m = page(50, 0);
    fl_server_view_take(&view, &m, 6 * second);
    FL_CHECK(isnan(shown(6 * second, FL_SERVER_OUTPUT_TOKENS)) && shown(6 * second, FL_SERVER_WAITING) == 1,
             "a counter that fell is unknown for one page, a gauge is not");
    FL_CHECK(view.restarts == 1, "%llu restarts", (unsigned long long)view.restarts);
    m = page(80, 0);
    fl_server_view_take(&view, &m, 7 * second);
    FL_CHECK(shown(7 * second, FL_SERVER_OUTPUT_TOKENS) == 1180, "%g tokens, expected 1100 + 80",
             shown(7 * second, FL_SERVER_OUTPUT_TOKENS));
    /* a page without the metric: unknown, and the count goes on */
    m = of("vllm:num_requests_waiting 1\n");
    fl_server_view_take(&view, &m, 8 * second);
    FL_CHECK(isnan(shown(8 * second, FL_SERVER_OUTPUT_TOKENS)), "it is not on the page");
    m = page(90, 0);
    fl_server_view_take(&view, &m, 9 * second);
    FL_CHECK(shown(9 * second, FL_SERVER_OUTPUT_TOKENS) == 1190, "%g tokens, expected 1190",
             shown(9 * second, FL_SERVER_OUTPUT_TOKENS));
}

/* A target between two bounds: the late tokens are a share of a bucket. While tokens come in time, their number stays:
 * the difference of all tokens and those in time would fall by its rounding, as if the engine had begun anew. */
static void test_late_between_bounds(void) {
    view = (fl_server_view){.tbt_target_ns = 210000000};
    for (int i = 0; i < 2000; i++) {
        const double tokens = 10 + i;
        fl_metrics m =
            page(tokens, 7); /* seven of 0.1 to 0.5 s, of which a straight line has 5.075 later than 0.21 s */
        fl_server_view_take(&view, &m, i * INT64_C(1000000));
        const double late = shown(i * INT64_C(1000000), FL_SERVER_TBT_MISSED);
        FL_CHECK(same(late, 5.075), "%g tokens: %.17g are late, expected 5.075", tokens, late);
    }
    FL_CHECK(!view.restarts, "the engine counted on, and %llu restarts are told", (unsigned long long)view.restarts);
}

/* ---- the texts around a page ---- */

static void test_urls(void) {
    static const struct {
        const char *text, *host, *port, *path; /* host NULL: refused */
    } cases[] = {{"http://127.0.0.1:8000/metrics", "127.0.0.1", "8000", "/metrics"},
                 {"http://node7", "node7", "80", "/metrics"},
                 {"http://node7/", "node7", "80", "/metrics"},
                 {"http://node7/x?y=1", "node7", "80", "/x?y=1"},
                 {"http://[::1]:8000", "::1", "8000", "/metrics"},
                 {"https://node7/metrics", NULL, NULL, NULL},
                 {"node7:8000", NULL, NULL, NULL},
                 {"http://", NULL, NULL, NULL},
                 {"http://:80/", NULL, NULL, NULL},
                 {"http://a:0/", NULL, NULL, NULL},
                 {"http://a:65536/", NULL, NULL, NULL},
                 {"http://a:8x/", NULL, NULL, NULL},
                 {"http://a:12345678901/", NULL, NULL, NULL},
                 {"http://a b/", NULL, NULL, NULL},
                 {"http://a/x\r\nHost: b", NULL, NULL, NULL},
                 {"http://[::1", NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fl_page_url u;
        fl_diag d = {0};
        const bool ok = !fl_page_url_parse(cases[i].text, &u, &d);
        FL_CHECK(ok == (cases[i].host != NULL), "%s: %s", cases[i].text, ok ? "taken" : d.message);
        if (ok && cases[i].host)
            FL_CHECK(!strcmp(u.host, cases[i].host) && !strcmp(u.port, cases[i].port) && !strcmp(u.path, cases[i].path),
                     "%s: host %s, port %s, path %s", cases[i].text, u.host, u.port, u.path);
    }
}

static void test_answers(void) {
    static const struct {
        const char *text;
        bool ended;
        fl_page_answer expected;
        const char *page;
    } cases[] = {{"HTTP/1.0 200 OK\r\n\r\nabc", true, FL_PAGE_WHOLE, "abc"},
                 {"HTTP/1.0 200 OK\r\n\r\nabc", false, FL_PAGE_MORE, NULL},
                 {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcd", false, FL_PAGE_WHOLE, "abc"},
                 {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", false, FL_PAGE_MORE, NULL},
                 {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", true, FL_PAGE_WRONG, NULL},
                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc", false, FL_PAGE_WRONG, NULL},
                 {"HTTP/1.0 404 Not Found\r\n\r\n", false, FL_PAGE_WRONG, NULL},
                 {"HTTP/1.0 200 OK\r\n", true, FL_PAGE_WRONG, NULL},
                 {"HT", false, FL_PAGE_MORE, NULL},
                 {"", true, FL_PAGE_WRONG, NULL},
                 {"SSH-2.0", false, FL_PAGE_WRONG, NULL},
                 {"HTTP/1.0\r\n\r\n", false, FL_PAGE_WRONG, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *from = NULL, *why;
        size_t size = 0;
        const fl_page_answer is =
            fl_page_answer_read(cases[i].text, strlen(cases[i].text), cases[i].ended, &from, &size, &why);
        FL_CHECK(is == cases[i].expected, "'%s': %d, expected %d", cases[i].text, is, cases[i].expected);
        FL_CHECK(is != FL_PAGE_WHOLE || (size == strlen(cases[i].page) && !memcmp(from, cases[i].page, size)),
                 "'%s': %zu bytes", cases[i].text, size);
    }
}

FL_SUITE("metrics_page", {"numbers", test_numbers}, {"lies", test_lies}, {"quantiles", test_quantiles},
         {"pages one after the other", test_view}, {"late tokens between two bounds", test_late_between_bounds},
         {"URLs", test_urls}, {"answers", test_answers})
