/* Drawn requests: arrivals put together once more from their definition, lengths by their bounds, and what is out of
 * range. */
#include "policies/random.h"
#include "sim/synth/synth.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"
#include "tests/support/suite.h"

#include <math.h>

#define TAU 6.283185307179586
#define DAY_S 86400.0

static fl_requests drawn(const fl_synth_requests_options *o) {
    fl_requests r;
    fl_diag d = {0};
    if (fl_synth_requests(o, &r, &d)) {
        printf("\n    %s\n", d.message);
        exit(1);
    }
    return r;
}

/* A Poisson process: exponential gaps. Without variation: one request each 1 / rate seconds. */
static void test_arrivals(void) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    o.seed = 7, o.rate = 2.5, o.seconds = 0, o.most = 200;
    fl_requests r = drawn(&o);
    fl_random g = fl_random_seed(7, 0x61);
    double count = 0;
    for (size_t i = 0; i < r.count; i++) {
        count -= log(1 - fl_random_unit(&g));
        FL_CHECK(r.row[i].t_ns == (int64_t)(count / 2.5 * 1e9 + 0.5), "request %zu at %lld ns", i,
                 (long long)r.row[i].t_ns);
    }
    FL_CHECK(r.count == 200, "%zu requests", r.count);
    const int64_t last = r.row[199].t_ns;
    fl_requests_free(&r);
    o.seconds = (double)(last + 1) / 1e9, o.most = 0; /* up to that instant: the same ones */
    r = drawn(&o);
    FL_CHECK(r.count == 200 && r.row[199].t_ns == last, "%zu requests up to the last", r.count);
    fl_requests_free(&r);
    o.seconds = (double)(last - 1) / 1e9;
    r = drawn(&o);
    FL_CHECK(r.count == 199, "%zu requests up to before it", r.count);
    fl_requests_free(&r);
    o.cv = 0, o.seconds = 10;
    r = drawn(&o);
    FL_CHECK(r.count == 25, "%zu requests at an even pace", r.count);
    for (size_t i = 0; i < r.count; i++)
        FL_CHECK(r.row[i].t_ns == 400000000 * (int64_t)(i + 1), "request %zu at %lld ns", i, (long long)r.row[i].t_ns);
    fl_requests_free(&r);
}

/* Up to each arrival as many requests are expected as have come: the integral of rate (1 - daily cos(2 pi t / day)). */
static void test_day(void) {
    static const double daily[] = {0.3, 1};
    for (size_t k = 0; k < 2; k++) {
        fl_synth_requests_options o = fl_synth_requests_standard;
        o.cv = 0, o.rate = 0.5, o.daily = daily[k], o.day_s = 1000, o.seconds = 2500, o.most = 0;
        fl_requests r = drawn(&o);
        for (size_t i = 0; i < r.count; i++) {
            const double t = (double)r.row[i].t_ns / 1e9, n = 0.5 * (t - daily[k] * 1000 / TAU * sin(TAU * t / 1000));
            FL_CHECK(fabs(n - (double)(i + 1)) < 1e-6, "daily %g: %.9g requests are expected by the arrival of %zu",
                     daily[k], n, i + 1);
            FL_CHECK(!i || r.row[i].t_ns > r.row[i - 1].t_ns, "daily %g: request %zu", daily[k], i);
        }
        const double all = 0.5 * (2500 - daily[k] * 1000 / TAU * sin(TAU * 2.5));
        FL_CHECK(r.count == (size_t)all, "daily %g: %zu of %g requests", daily[k], r.count, all);
        fl_requests_free(&r);
    }
}

/* Gamma distributed gaps: mean and coefficient of variation, within five standard errors of 20,000 gaps. */
static void test_bursts(void) {
    static const double cv[] = {0.3, 0.9, 2, 4};
    for (size_t k = 0; k < sizeof cv / sizeof *cv; k++) {
        fl_synth_requests_options o = fl_synth_requests_standard;
        enum { N = 20000 };
        o.cv = cv[k], o.rate = 10, o.seconds = 0, o.most = N;
        fl_requests r = drawn(&o);
        double sum = 0, squares = 0;
        for (size_t i = 0; i < r.count; i++) {
            const double gap = (double)(r.row[i].t_ns - (i ? r.row[i - 1].t_ns : 0)) / 1e8; /* of a mean of 1 */
            sum += gap;
            squares += gap * gap;
        }
        const double mean = sum / N, variance = squares / N - mean * mean, shape = 1 / (cv[k] * cv[k]),
                     kurtosis = 3 + 6 / shape;
        FL_CHECK(fabs(mean - 1) < 5 * cv[k] / sqrt(N), "cv %g: mean %g", cv[k], mean);
        FL_CHECK(fabs(variance / cv[k] / cv[k] - 1) < 5 * sqrt((kurtosis - 1) / N), "cv %g: variance %g", cv[k],
                 variance);
        fl_requests_free(&r);
    }
}

/* Lognormal lengths: a median, 1 at least, and so many at most. A shared beginning is cached once a prompt had it. */
static void test_lengths(void) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    o.seconds = 0, o.most = 4001, o.prompt_median = 100, o.prompt_sigma = 1, o.prompt_most = 400, o.output_median = 1.6,
    o.output_sigma = 0.5, o.output_most = 3, o.shared = 90;
    fl_requests r = drawn(&o);
    fl_random prompts = fl_random_seed(o.seed, 0x62), outputs = fl_random_seed(o.seed, 0x63);
    uint32_t longest = 0;
    size_t below = 0, most = 0, ones = 0;
    for (size_t i = 0; i < r.count; i++) {
        const fl_request_row *q = &r.row[i];
        const double p = floor(100 * exp(fl_random_normal(&prompts)) + 0.5),
                     out = floor(1.6 * exp(0.5 * fl_random_normal(&outputs)) + 0.5);
        FL_CHECK(q->prompt_tokens == fmin(400, fmax(1, p)) && q->output_tokens == fmin(3, fmax(1, out)),
                 "request %zu: %u and %u tokens", i, q->prompt_tokens, q->output_tokens);
        const uint32_t before = q->prompt_tokens < longest ? q->prompt_tokens : longest;
        FL_CHECK(q->cached_tokens == (before < 90 ? before : 90), "request %zu: %u cached of %u", i, q->cached_tokens,
                 before);
        longest = q->prompt_tokens > longest ? q->prompt_tokens : longest;
        below += q->prompt_tokens < 100;
        most += q->prompt_tokens == 400;
        ones += q->output_tokens == 1;
    }
    FL_CHECK(most > 0 && ones > 0 && fabs((double)below / 4001 - 0.5) < 0.04, "%zu below the median, %zu at the most",
             below, most);
    fl_requests_free(&r);
}

static void test_refused(void) {
    static const struct {
        const char *name;
        size_t at;
        double good, bad;
    } rows[] = {
#define AT(x) offsetof(fl_synth_requests_options, x)
        {"rate", AT(rate), 1e6, 1.1e6},
        {"rate", AT(rate), 0.01, 0},
        {"seconds", AT(seconds), 30, -1},
        {"seconds", AT(seconds), 26 * DAY_S, 26.1 * DAY_S},
        {"cv", AT(cv), 100, 101},
        {"cv", AT(cv), 0, -0.1},
        {"daily", AT(daily), 1, 1.01},
        {"daily", AT(daily), 0, -0.01},
        {"day_s", AT(day_s), 1, 0.9},
        {"day_s", AT(day_s), 26 * DAY_S, 26.1 * DAY_S},
        {"prompt_median", AT(prompt_median), 1, 0.9},
        {"prompt_sigma", AT(prompt_sigma), 10, 10.1},
        {"output_median", AT(output_median), 1, NAN},
        {"output_sigma", AT(output_sigma), 0, -1},
#undef AT
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_synth_requests_options o = fl_synth_requests_standard;
        fl_requests r;
        fl_diag d = {0};
        o.most = 3, o.seconds = 0;
        memcpy((char *)&o + rows[i].at, &rows[i].good, sizeof rows[i].good);
        FL_CHECK(fl_synth_requests(&o, &r, &d) == FL_OK, "%s of %g: %s", rows[i].name, rows[i].good, d.message);
        fl_requests_free(&r);
        memcpy((char *)&o + rows[i].at, &rows[i].bad, sizeof rows[i].bad);
        FL_CHECK(fl_synth_requests(&o, &r, &d) == FL_BAD_INPUT && strstr(d.message, rows[i].name) == d.message &&
                     !r.count,
                 "%s of %g: %s", rows[i].name, rows[i].bad, d.message);
    }
    const struct {
        const char *says;
        double seconds, rate;
        uint64_t most;
    } others[] = {{"neither seconds nor most", 0, 1, 0},
                  {"no request arrives within 1 s", 1, 0.001, 0},
                  {"request 3 arrives after more than 26 days", 0, 1 / (10 * DAY_S), 3}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        fl_synth_requests_options o = fl_synth_requests_standard;
        fl_requests r;
        fl_diag d = {0};
        o.seconds = others[i].seconds, o.rate = others[i].rate, o.most = others[i].most, o.cv = 0;
        FL_CHECK(fl_synth_requests(&o, &r, &d) == FL_BAD_INPUT && strstr(d.message, others[i].says), "%s: %s",
                 others[i].says, d.message);
    }
    fl_synth_requests_options zero = fl_synth_requests_standard;
    fl_requests r;
    fl_diag d = {0};
    zero.prompt_most = 0;
    FL_CHECK(fl_synth_requests(&zero, &r, &d) == FL_BAD_INPUT && strstr(d.message, "prompt_most"), "%s", d.message);
}

FL_SUITE("synth_requests", {"arrivals", test_arrivals}, {"a day", test_day}, {"bursts", test_bursts},
         {"lengths", test_lengths}, {"refused", test_refused})
