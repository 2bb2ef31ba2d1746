/* Request traces: read, written, imported from Azure's, refused; synthetic ones. */
#include "sim/synth/synth.h"
#include "traces/import/inside.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"
#include "tests/support/import_fixture.h"

#include <inttypes.h>
#include <math.h>

#define HEAD "# foldline-requests 1\n# source: x\n"
#define PLAIN "t_ns,prompt_tokens,output_tokens\n"

static fl_status read_text(const char *text, fl_requests *r, fl_diag *d) {
    memset(r, 0xaa, sizeof *r);
    return fl_requests_read(fl_temp_text("r.csv", text), r, NULL, d);
}

static void test_read(void) {
    fl_requests r;
    fl_diag d = {0};
    CU_ASSERT_FATAL(read_text(HEAD PLAIN "0,374,44\n5,1,1\n5,16777216,16777216\n", &r, &d) == FL_OK);
    FL_CHECK(r.count == 3 && r.row[0].t_ns == 0 && r.row[0].prompt_tokens == 374 && r.row[0].output_tokens == 44 &&
                 r.row[2].t_ns == 5 && r.row[2].prompt_tokens == 16777216 && !r.row[0].cached_tokens && !r.times,
             "%zu rows", r.count);
    FL_CHECK(r.row[1].line == 5 && r.row[1].column == 3 && strstr(r.file, "r.csv") &&
                 !strcmp(fl_head_get(&r.head, "source"), "x") && !strcmp(r.names[r.row[0].model], ""),
             "line %u column %u of %s", r.row[1].line, r.row[1].column, r.file);
    fl_requests_free(&r);
    /* any order of columns, no head, empty cells */
    CU_ASSERT_FATAL(
        read_text("class,cached_tokens,output_tokens,model,prompt_tokens,t_ns\nhigh,32,7,m,33,10\n,,7,m,33,20\n", &r,
                  &d) == FL_OK);
    FL_CHECK(r.count == 2 && r.row[0].cached_tokens == 32 && !r.row[1].cached_tokens &&
                 r.row[0].model == r.row[1].model && !strcmp(r.names[r.row[0].class], "high") &&
                 !strcmp(r.names[r.row[1].class], "") && !strcmp(r.names[r.row[0].model], "m"),
             "classes and models");
    fl_requests_free(&r);
}

static void test_measured(void) {
    fl_requests r;
    fl_diag d = {0};
    CU_ASSERT_FATAL(read_text("t_ns,prompt_tokens,output_tokens,queued_ns,scheduled_ns,first_token_ns,last_token_ns\n"
                              "0,9,2,5,6,7,8\n3,9,1,,,9,9\n",
                              &r, &d) == FL_OK);
    FL_CHECK(r.times && r.times[0].queued_ns == 5 && r.times[0].scheduled_ns == 6 && r.times[0].first_token_ns == 7 &&
                 r.times[0].last_token_ns == 8 && r.times[1].queued_ns == INT64_MIN && r.times[1].last_token_ns == 9,
             "times of a measured run");
    fl_requests_free(&r);
}

static void test_written(void) {
    static const char *const CASE[] = {
        HEAD PLAIN "0,374,44\n5,1,1\n",
        HEAD "t_ns,prompt_tokens,output_tokens,model,class,cached_tokens\n0,9,1,\"m,2\",,0\n1,9,2,,low,9\n",
        HEAD "t_ns,prompt_tokens,output_tokens,class,queued_ns,last_token_ns\n0,9,1,high,4,\n1,9,2,,,7\n",
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_requests r;
        fl_diag d = {0};
        size_t size = 0;
        char out[600];
        FL_CHECK(read_text(CASE[i], &r, &d) == FL_OK, "case %zu: %s", i, d.message);
        snprintf(out, sizeof out, "%s", fl_temp_path("w.csv"));
        FL_CHECK(fl_requests_write(out, &r, &d) == FL_OK, "case %zu: %s", i, d.message);
        char *text = fl_temp_slurp(out, &size);
        FL_CHECK(text && !strcmp(text, CASE[i]), "case %zu comes back as '%s'", i, text);
        free(text);
        fl_requests_free(&r);
    }
}

static void test_refused(void) {
    static const struct {
        const char *text;
        int64_t line, column;
        const char *says;
    } CASE[] = {
        {HEAD PLAIN "5,9,9\n4,9,9\n", 5, 1, "t_ns is 4 after 5, expected ascending times"},
        {HEAD PLAIN "0,0,9\n", 4, 3, "prompt_tokens is '0', expected a whole number from 1 to 16777216"},
        {HEAD PLAIN "0,9,0\n", 4, 5, "output_tokens is '0', expected a whole number from 1 to 16777216"},
        {HEAD PLAIN "0,9,16777217\n", 4, 5, "expected a whole number from 1 to 16777216"},
        {HEAD PLAIN "0,-9,1\n", 4, 3, "prompt_tokens is '-9'"},
        {HEAD PLAIN "0,9.5,1\n", 4, 3, "prompt_tokens is '9.5'"},
        {HEAD PLAIN "-1,9,1\n", 4, 1, "t_ns is '-1'"},
        {HEAD PLAIN "2246400000000001,9,1\n", 4, 1, "t_ns is"},
        {HEAD PLAIN "0,,1\n", 4, 3, "prompt_tokens"},
        {HEAD PLAIN "0,9\n", 4, 0, "2 fields, expected 3"},
        {HEAD "t_ns,prompt_tokens,output_tokens,cached_tokens\n0,9,1,10\n", 4, 7,
         "cached_tokens is '10', expected a whole number from 0 to 9"},
        {HEAD "t_ns,prompt_tokens\n0,9\n", 3, 0, "output_tokens"},
        {HEAD "t_ns,prompt_tokens,output_token\n0,9,1\n", 3, 20,
         "unknown column 'output_token', expected 'output_tokens'"},
        {HEAD "t_ns,prompt_tokens,output_tokens,queued_ns\n7,9,1,6\n", 4, 7,
         "queued_ns is 6, expected at least t_ns, 7"},
        {HEAD "t_ns,prompt_tokens,output_tokens,last_token_ns,first_token_ns\n7,9,1,8,9\n", 4, 7,
         "last_token_ns is 8, expected at least first_token_ns, 9"},
        {HEAD PLAIN, 0, 0, "no requests, expected at least one row"},
        {"# foldline-arrivals 1\nt_ns\n0\n", 1, 0, "foldline-arrivals"},
        {"", 0, 0, "empty"},
    };
    static const fl_requests zero;
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_requests r;
        fl_diag d = {0};
        FL_CHECK(read_text(CASE[i].text, &r, &d) == FL_BAD_INPUT && strstr(d.message, CASE[i].says) &&
                     (!CASE[i].line || d.line == CASE[i].line) && (!CASE[i].column || d.column == CASE[i].column) &&
                     !memcmp(&r, &zero, sizeof r),
                 "case %zu: %" PRId64 ":%" PRId64 " %s", i, d.line, d.column, d.message);
    }
}

static void test_azure(void) {
    fl_imported in;
    fl_diag d = {0};
    const fl_request_row *r;
    const char *path =
        fl_temp_text("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
                              "2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51,1,0\n"
                              "2023-11-17 18:15:46.680590001+00:00,1,1\n");
    CU_ASSERT_FATAL(fl_reader_read(&fl_reader_azure_llm, path, NULL, &in, &d) == FL_OK);
    r = in.requests.row;
    FL_CHECK(in.requests.count == 3 && strstr(in.note[0], "1 of 4 rows without a value") &&
                 strstr(in.note[0], "line 4") && r[0].t_ns == 0 && r[1].t_ns == 4314579000 &&
                 r[1].prompt_tokens == 396 && r[1].output_tokens == 109 && r[2].t_ns == INT64_C(86400000000001) &&
                 r[2].line == 5,
             "%" PRId64 " ns", r[1].t_ns);
    fl_imported_free(&in);
    static const struct {
        const char *rows;
        int64_t line, column;
        const char *says;
    } CASE[] = {
        {"2023-11-16 18:15:46.1,1,1\n2023-11-16 18:15:46.0,1,1\n", 3, 1, "before that of the row above"},
        {"2023-11-16 18:15,1,1\n", 2, 1, "expected a time such as 2023-11-16 18:15:46.6805900"},
        {"6023-11-16 18:15:46,1,1\n", 2, 1, "expected a time such as 2023-11-16 18:15:46.6805900"},
        {"2023-13-16 18:15:46,1,1\n", 2, 1, "expected a time"},
        {"2023-11-16 18:15:46.,1,1\n", 2, 1, "expected a time"},
        {"2023-11-16 18:15:46+99:00,1,1\n", 2, 1, "expected a time"},
        {"2023-11-16 18:15:46,-1,1\n", 2, 21, "ContextTokens is '-1'"},
        {"2023-11-16 18:15:46,1,x\n", 2, 23, "GeneratedTokens is 'x'"},
        {"2023-11-16 18:15:46,1,1\n2024-11-16 18:15:46,1,1\n", 3, 1, "at most 26 days after the first"},
        {"2023-11-16 18:15:46,1,0\n", 2, 21, "no prompt or output tokens"},
    };
    static const fl_imported zero;
    fl_left_strict = true;
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[400];
        snprintf(text, sizeof text, "TIMESTAMP,ContextTokens,GeneratedTokens\n%s", CASE[i].rows);
        d = (fl_diag){0};
        FL_CHECK(fl_reader_read(&fl_reader_azure_llm, fl_temp_text("b.csv", text), NULL, &in, &d) == FL_BAD_INPUT &&
                     strstr(d.message, CASE[i].says) && d.line == CASE[i].line && d.column == CASE[i].column &&
                     !memcmp(&in, &zero, sizeof in),
                 "case %zu: %" PRId64 ":%" PRId64 " %s", i, d.line, d.column, d.message);
    }
    fl_left_strict = false;
}

static void test_scaled(void) {
    static const struct {
        int64_t t_ns;
        double scale;
        int64_t at_ns;
    } CASE[] = {{1000, 1, 1000},
                {1000, 2, 500},
                {1001, 2, 501},
                {1000, 0.5, 2000},
                {10, 3, 3},
                {0, 7, 0},
                {INT64_C(2246400000000000), 1, INT64_C(2246400000000000)},
                {INT64_C(2246400000000000), 1e-9, INT64_MAX}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        FL_CHECK(fl_requests_scaled_ns(CASE[i].t_ns, CASE[i].scale) == CASE[i].at_ns, "case %zu: %" PRId64, i,
                 fl_requests_scaled_ns(CASE[i].t_ns, CASE[i].scale));
}

/* ---- synthetic ---- */

static void synth(const fl_synth_requests_options *o, fl_requests *r) {
    fl_diag d = {0};
    if (fl_synth_requests(o, r, &d)) {
        printf("\n    %s", d.message);
        CU_FAIL_FATAL("no requests");
    }
}

/* 40,000 requests: the mean gap is known to 0.5 % x cv, its variation to about 1 % for the Poisson process and 3 % at
 * 3; medians and sigmas to 0.6 and 0.4 %. Bounds are four times that. */
static void test_moments(void) {
    static const double cv[] = {0, 0.5, 1, 3};
    enum { N = 40000 };
    for (size_t c = 0; c < sizeof cv / sizeof *cv; c++) {
        fl_synth_requests_options o = fl_synth_requests_standard;
        fl_requests r;
        o.seed = 7 + c;
        o.seconds = 0;
        o.most = N;
        o.rate = 5;
        o.cv = cv[c];
        o.prompt_most = o.output_most = FL_REQUEST_TOKENS_MOST;
        synth(&o, &r);
        double sum = 0, squares = 0, log_sum = 0, log_squares = 0;
        for (size_t i = 0; i < N; i++) {
            const double gap = (double)(r.row[i].t_ns - (i ? r.row[i - 1].t_ns : 0)) * 1e-9,
                         l = log(r.row[i].prompt_tokens);
            sum += gap;
            squares += gap * gap;
            log_sum += l;
            log_squares += l * l;
        }
        const double mean = sum / N, sd = sqrt(fmax(0, squares / N - mean * mean));
        FL_CHECK(r.count == N && fabs(mean * 5 - 1) < 0.02 * cv[c] + 1e-6, "cv %g, seed %zu: mean gap %g", cv[c], 7 + c,
                 mean);
        FL_CHECK(fabs(sd / mean - cv[c]) < 0.04 * cv[c] * (cv[c] > 1 ? 3 : 1) + 1e-6, "cv %g, seed %zu: %g", cv[c],
                 7 + c, sd / mean);
        const double log_mean = log_sum / N, sigma = sqrt(log_squares / N - log_mean * log_mean);
        FL_CHECK(fabs(log_mean - log(1020)) < 0.024 && fabs(sigma - 1) < 0.016, "seed %zu: median %g, sigma %g", 7 + c,
                 exp(log_mean), sigma);
        fl_requests_free(&r);
    }
}

/* A day of an hour: the quarter around noon has (1 + 0.8 x 2 sqrt(2) / pi) / 4 of the requests, the first and last
 * eighth (1 - ...) / 4. */
static void test_day(void) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    fl_requests r;
    o.rate = 20;
    o.daily = 0.8;
    o.day_s = o.seconds = 3600;
    synth(&o, &r);
    double noon = 0, night = 0;
    for (size_t i = 0; i < r.count; i++) {
        const double t = (double)r.row[i].t_ns * 1e-9 / 3600;
        noon += t >= 0.375 && t < 0.625;
        night += t < 0.125 || t >= 0.875;
    }
    const double n = (double)r.count, swing = 0.8 * 2 * sqrt(2) / M_PI;
    FL_CHECK(fabs(n / 72000 - 1) < 0.02, "%g requests, expected 72000", n);
    FL_CHECK(fabs(noon / n * 4 - (1 + swing)) < 0.03 && fabs(night / n * 4 - (1 - swing)) < 0.03, "noon %g, night %g",
             noon / n * 4, night / n * 4);
    fl_requests_free(&r);
}

static void test_seeds(void) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    fl_requests a, b, c;
    o.shared = 500;
    synth(&o, &a);
    synth(&o, &b);
    FL_CHECK(a.count == b.count && !memcmp(a.row, b.row, a.count * sizeof *a.row), "the same seed, other requests");
    for (size_t i = 0; i < a.count; i++)
        FL_CHECK(a.row[i].cached_tokens <= a.row[i].prompt_tokens && a.row[i].cached_tokens <= 500 &&
                     (i || !a.row[i].cached_tokens) && (!i || a.row[i].t_ns >= a.row[i - 1].t_ns) &&
                     a.row[i].prompt_tokens <= 8192 && a.row[i].output_tokens >= 1 &&
                     a.row[i].t_ns <= INT64_C(600000000000),
                 "request %zu", i);
    o.prompt_sigma = 0;
    synth(&o, &c);
    FL_CHECK(a.count == c.count && a.row[9].t_ns == c.row[9].t_ns && a.row[9].output_tokens == c.row[9].output_tokens &&
                 c.row[9].prompt_tokens == 1020,
             "another length of prompts changes prompts only");
    fl_requests_free(&c);
    o.seed = 2;
    synth(&o, &c);
    FL_CHECK(a.row[0].t_ns != c.row[0].t_ns, "another seed, the same requests");
    fl_requests_free(&a);
    fl_requests_free(&b);
    fl_requests_free(&c);
}

static void test_synth_refused(void) {
    static const struct {
        const char *says;
        double rate, seconds, daily, sigma;
    } CASE[] = {{"rate is 0, expected 1e-06 to 1e+06", 0, 600, 0, 1},
                {"rate is nan", NAN, 600, 0, 1},
                {"seconds is -1", 1, -1, 0, 1},
                {"neither seconds nor most is given", 1, 0, 0, 1},
                {"daily is 1.5", 1, 600, 1.5, 1},
                {"prompt_sigma is 11", 1, 600, 0, 11},
                {"no request arrives within 0.01 s", 1, 0.01, 0, 1}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        static const fl_requests zero;
        fl_synth_requests_options o = fl_synth_requests_standard;
        fl_requests r;
        fl_diag d = {0};
        o.rate = CASE[i].rate;
        o.seconds = CASE[i].seconds;
        o.daily = CASE[i].daily;
        o.prompt_sigma = CASE[i].sigma;
        FL_CHECK(fl_synth_requests(&o, &r, &d) == FL_BAD_INPUT && strstr(d.message, CASE[i].says) &&
                     !memcmp(&r, &zero, sizeof r),
                 "case %zu: %s", i, d.message);
    }
}

/* Each option at its lowest and highest is taken, and just beyond them refused by its name. */
static void test_synth_borders(void) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    const struct {
        const char *name;
        double *member, low, high, step;
    } rows[] = {{"cv is", &o.cv, 0, 100, 1e-6},
                {"daily is", &o.daily, 0, 1, 1e-6},
                {"day_s is", &o.day_s, 1, 26 * 86400, 1e-3},
                {"prompt_median is", &o.prompt_median, 1, FL_REQUEST_TOKENS_MOST, 1e-3},
                {"prompt_sigma is", &o.prompt_sigma, 0, 10, 1e-6},
                {"output_median is", &o.output_median, 1, FL_REQUEST_TOKENS_MOST, 1e-3},
                {"output_sigma is", &o.output_sigma, 0, 10, 1e-6},
                {"seconds is", &o.seconds, -1, 26 * 86400, 1e-3}};
    o.rate = 10;
    o.seconds = 86400;
    o.most = 3;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int at = 0; at < 4; at++) {
            const double kept = *rows[i].member;
            const double value[] = {rows[i].low, rows[i].high, rows[i].low - rows[i].step, rows[i].high + rows[i].step};
            const bool refused = at >= 2 || value[at] < 0;
            fl_requests r;
            fl_diag d = {0};
            *rows[i].member = value[at];
            const fl_status s = fl_synth_requests(&o, &r, &d);
            FL_CHECK(refused ? s == FL_BAD_INPUT && !strncmp(d.message, rows[i].name, strlen(rows[i].name))
                             : s == FL_OK && r.count == 3,
                     "%s %.9g: status %d, %s", rows[i].name, value[at], (int)s, d.message);
            fl_requests_free(&r);
            *rows[i].member = kept;
        }
    uint32_t *const most[] = {&o.prompt_most, &o.output_most};
    for (size_t i = 0; i < 2; i++) {
        const uint32_t kept = *most[i], value[] = {1, FL_REQUEST_TOKENS_MOST, 0, FL_REQUEST_TOKENS_MOST + 1};
        for (int at = 0; at < 4; at++) {
            fl_requests r;
            fl_diag d = {0};
            *most[i] = value[at];
            FL_CHECK(fl_synth_requests(&o, &r, &d) == (at < 2 ? FL_OK : FL_BAD_INPUT), "at most %u tokens: %s",
                     value[at], d.message);
            fl_requests_free(&r);
        }
        *most[i] = kept;
    }
}

FL_SUITE("requests", {"read", test_read}, {"times of a measured run", test_measured},
         {"written and read", test_written}, {"refused with line and column", test_refused},
         {"Azure's trace", test_azure}, {"arrivals at another rate", test_scaled}, {"synthetic: moments", test_moments},
         {"synthetic: a day", test_day}, {"synthetic: seeds", test_seeds}, {"synthetic: refused", test_synth_refused},
         {"synthetic: borders", test_synth_borders})
