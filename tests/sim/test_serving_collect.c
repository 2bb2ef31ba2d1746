/* What a run served in all, put together a second time from its requests, one by one. */
#include "tests/support/serving_fixture.h"

#include <stdlib.h>

#define TTFT_NS INT64_C(30000000)
#define TBT_NS INT64_C(5200000)

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean, nearest ranks and the longest. */
static void check_times(const char *what, const fl_times *got, double *s, size_t count) {
    double sum = 0;
    qsort(s, count, sizeof *s, by_value);
    for (size_t i = 0; i < count; i++)
        sum += s[i];
    const size_t rank[] = {(count * 50 + 99) / 100, (count * 90 + 99) / 100, (count * 95 + 99) / 100,
                           (count * 99 + 99) / 100};
    const double is[] = {got->p50_s, got->p90_s, got->p95_s, got->p99_s};
    for (int i = 0; i < 4; i++)
        FL_CHECK(fx_near(is[i], s[rank[i] - 1], 1e-12), "%s: percentile %d is %.12g s, expected %.12g", what, i, is[i],
                 s[rank[i] - 1]);
    FL_CHECK(got->count == count && fx_near(got->mean_s, sum / (double)count, 1e-12) &&
                 fx_near(got->max_s, s[count - 1], 1e-12),
             "%s: %d, mean %.12g s, longest %.12g s", what, (int)got->count, got->mean_s, got->max_s);
}

static double s_of(int64_t ps) { return (double)ps * 1e-12; }

/* Requests that come over four minutes or so, the lengths and gaps of which are drawn; in every other minute they come
 * more densely. */
static void draw(sx_rig *x, fl_random *g, bool at_once) {
    int64_t t = 0;
    for (int i = 0; i < 160; i++) {
        const bool dense = t / INT64_C(60000000000) % 2;
        sx_request(x, t, 1 + (uint32_t)fl_random_below(g, 3000), 1 + (uint32_t)fl_random_below(g, 30));
        t += at_once ? 0 : (int64_t)(fl_random_unit(g) * (dense ? 1.5e9 : 4e9)) * (fl_random_below(g, 3) ? 1 : 0);
    }
}

static void check_run(uint64_t seed, bool at_once) {
    sx_rig x;
    fl_random g = fl_random_seed(seed, 4);
    sx_open(&x, 2, 1);
    x.setup.ttft_target_ns = TTFT_NS;
    x.setup.tbt_target_ns = TBT_NS;
    x.setup.target_share = seed % 2 ? 0.9 : 0.5; /* a half is met, nine tenths are not */
    draw(&x, &g, at_once);
    sx_finish(&x);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    const fl_served_summary *sum = &run.served.sum;
    const size_t n = run.served.request_count;
    static double ttft[256], e2e[256], tpot[256];
    size_t tpots = 0, first_missed = 0, met = 0;
    uint64_t later_missed = 0, output = 0, prompt = 0;
    fl_wide given = 0;
    double worst_s = -1, worst_missed = -1, worst_ttft = -1;
    for (size_t i = 0; i < n; i++) {
        const fl_served *r = &run.served.request[i];
        const fl_request_row *row = &x.requests.row[i];
        ttft[i] = s_of(r->first_ps - r->arrival_ps);
        e2e[i] = s_of(r->done_ps - r->arrival_ps);
        const double mean = row->output_tokens > 1 ? s_of(r->done_ps - r->first_ps) / (row->output_tokens - 1) : 0;
        if (row->output_tokens > 1)
            tpot[tpots++] = floor(mean * 1e12 + 1e-3) * 1e-12; /* whole ps */
        FL_CHECK(r->ttft_missed == (r->first_ps - r->arrival_ps > TTFT_NS * 1000), "seed %d, request %zu", (int)seed,
                 i);
        first_missed += r->ttft_missed;
        met += !r->ttft_missed && mean <= 1e-9 * TBT_NS ? 1 : 0;
        later_missed += r->tbt_missed;
        output += row->output_tokens;
        prompt += row->prompt_tokens;
        given += r->prefill_fj + r->decode_fj;
    }
    for (int64_t minute = 0; minute < 10; minute++) {
        double count = 0, missed = 0, wait = 0;
        for (size_t i = 0; i < n; i++) {
            const fl_served *r = &run.served.request[i];
            const uint32_t tokens = x.requests.row[i].output_tokens;
            if (x.requests.row[i].t_ns / INT64_C(60000000000) != minute)
                continue;
            count++;
            wait += s_of(r->first_ps - r->arrival_ps);
            missed += r->ttft_missed || (tokens > 1 && s_of(r->done_ps - r->first_ps) / (tokens - 1) > 1e-9 * TBT_NS);
        }
        if (count > 0 &&
            (missed / count > worst_missed || (missed / count >= worst_missed && wait / count > worst_ttft))) {
            worst_s = 60 * (double)minute;
            worst_missed = missed / count;
            worst_ttft = wait / count;
        }
    }
    const double span = s_of(run.makespan_ps), late = (double)later_missed / (double)(output - n),
                 arriving = 1e-9 * (double)(x.requests.row[n - 1].t_ns - x.requests.row[0].t_ns);
    FL_CHECK(n == 160 && (at_once || (first_missed > 5 && met > 5)) && later_missed > 5 && sum->met == (seed % 2 == 0),
             "seed %d says little: %zu, %zu, %d", (int)seed, first_missed, met, (int)later_missed);
    check_times("TTFT", &sum->ttft, ttft, n);
    check_times("end to end", &sum->e2e, e2e, n);
    check_times("TPOT", &sum->tpot, tpot, tpots);
    FL_CHECK(sum->requests == n && sum->output_tokens == output && sum->prompt_tokens == prompt &&
                 sum->tbt.count == output - n,
             "seed %d: %d requests, %d tokens of %d", (int)seed, (int)sum->requests, (int)sum->output_tokens,
             (int)output);
    FL_CHECK(fx_near(sum->ttft_missed, (double)first_missed / (double)n, 1e-12) &&
                 fx_near(sum->tbt_missed, late, 1e-12) && sum->targets &&
                 sum->met == (first_missed <= (seed % 2 ? n / 10 : n / 2) && late <= (seed % 2 ? 0.1 : 0.5)),
             "seed %d: missed %g and %g, met %d", (int)seed, sum->ttft_missed, sum->tbt_missed, sum->met);
    FL_CHECK(sum->worst_minute_s == worst_s && fx_near(sum->worst_minute_missed, worst_missed, 1e-12) &&
                 fx_near(sum->worst_minute_ttft_s, worst_ttft, 1e-9),
             "seed %d: worst at %g s, %g, %g s; expected %g s, %g, %g s", (int)seed, sum->worst_minute_s,
             sum->worst_minute_missed, sum->worst_minute_ttft_s, worst_s, worst_missed, worst_ttft);
    double second = 0, last = 0, end = 0;
    for (size_t i = 0; i < n; i++) {
        const double wait = s_of(run.served.request[i].taken_ps - run.served.request[i].arrival_ps) / (double)(n / 4);
        end += i >= n - n / 20 ? 5 * wait : 0;
        second += i >= n / 4 && i < n / 2 ? wait : 0;
        last += i >= n - n / 4 ? wait : 0;
    }
    FL_CHECK(at_once ? !sum->overloaded
                     : fx_near(sum->wait_second_s, second, 1e-12) && fx_near(sum->wait_last_s, last, 1e-12) &&
                           sum->overloaded == (fmin(last, end) >= arriving / 20 && last >= 1.5 * second),
             "seed %d: waits of %g and %g s, expected %g and %g", (int)seed, sum->wait_second_s, sum->wait_last_s,
             second, last);
    FL_CHECK(at_once ? isnan(sum->offered_per_s) : fx_near(sum->offered_per_s, (double)(n - 1) / arriving, 1e-12),
             "seed %d: %g requests/s offered", (int)seed, sum->offered_per_s);
    FL_CHECK(fx_near(sum->requests_per_s, (double)n / span, 1e-12) &&
                 fx_near(sum->tokens_per_s, (double)output / span, 1e-12) &&
                 fx_near(sum->goodput, (double)met / span, 1e-12),
             "seed %d: %g, %g, %g per s", (int)seed, sum->requests_per_s, sum->tokens_per_s, sum->goodput);
    FL_CHECK(given == sum->serving_fj && sum->serving_fj + sum->idle_fj == run.energy_fj &&
                 fx_near(sum->j_per_request * (double)n, run.energy_j, 1e-12) &&
                 fx_near(sum->j_per_token * (double)output, run.energy_j, 1e-12),
             "seed %d: %g J per request, %g per token of %g", (int)seed, sum->j_per_request, sum->j_per_token,
             run.energy_j);
    fl_run_result_free(&run);
    sx_close(&x);
}

static void test_summary(void) {
    for (uint64_t seed = 0; seed < 4; seed++)
        check_run(seed, seed == 3);
}

FL_SUITE("serving_collect", {"summary", test_summary})
