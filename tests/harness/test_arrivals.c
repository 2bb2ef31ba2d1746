/* Requests that arrive by the clock, iterations and barriers: by hand, against one pass, and against queueing theory.
 */
#include "harness/input/scene/inside.h"
#include "harness/input/scene/scene.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"
#include "tests/support/node_fixture.h"
#include "tests/support/temp_file.h"
#include "tests/support/arrivals_write.h"

#define MS 1000000

static void serve(fx_rig *r, const int64_t *arrival_ns, size_t count, uint32_t windows) {
    FX_MUST(fl_workload_finish(r->w, windows, d));
    FX_MUST(fl_workload_serve(r->w, arrival_ns, count, windows, d));
    FX_MUST(fl_rates_new(&r->rates, r->w, &r->spec, d));
}

/* A run without a policy at one clock. */
static fl_run_result run_at(const fx_rig *r, double sm_mhz) {
    fl_run_result out;
    const fl_run_options o = {
        .w = r->w, .rates = r->rates, .spec = &r->spec, .facts = &r->facts, .first_sm_mhz = sm_mhz};
    FX_MUST(fl_run(&o, &out, d));
    return out;
}

static void check_request(const fl_run_result *r, size_t i, int64_t start_us, int64_t done_us) {
    const fl_request *q = &r->service.request[i];
    FL_CHECK(q->start_ps == start_us * FX_US_PS && q->done_ps == done_us * FX_US_PS,
             "request %zu: %.3f to %.3f us, expected %lld to %lld", i, (double)q->start_ps * 1e-6,
             (double)q->done_ps * 1e-6, (long long)start_us, (long long)done_us);
}

/* ---- by hand ---- */

/* No boost: 2000 MHz where nothing is set. */
static void plain_cpu(fx_rig *r) {
    nx_cpu(r);
    r->spec.host.cpu.boost_count = 0;
}

/* 10 us of kernel, 5 of host time, 10 of kernel: 25 us a request. */
static void open_plain(fx_rig *r, bool cpu) {
    fx_open(r, 1);
    if (cpu)
        plain_cpu(r);
    const uint32_t c = fx_light(r), a = fx_stream(r, 0, 0);
    fx_op(r, a, 0, 10000, c);
    fx_op(r, a, 5000, 10000, c);
}

static void test_list_by_hand(void) {
    static const int64_t arrival[] = {0, 10000, 100000, 100000};
    fx_rig r;
    open_plain(&r, false);
    serve(&r, arrival, 4, 1);
    fl_run_result out = run_at(&r, 0);
    check_request(&out, 0, 0, 25);
    check_request(&out, 1, 25, 50);
    check_request(&out, 2, 100, 125);
    check_request(&out, 3, 125, 150);
    const fl_service *s = &out.service;
    FL_CHECK(s->latency.count == 4 && fx_near(s->latency.mean_s, 35e-6, 1e-12), "mean %g", s->latency.mean_s);
    FL_CHECK(fx_near(s->latency.p50_s, 25e-6, 1e-12), "p50 %g", s->latency.p50_s); /* 25, 25, 40, 50 */
    FL_CHECK(fx_near(s->latency.p90_s, 50e-6, 1e-12) && fx_near(s->latency.max_s, 50e-6, 1e-12), "p90 %g",
             s->latency.p90_s);
    FL_CHECK(s->backlog_max == 2, "%zu at once", s->backlog_max);
    FL_CHECK(fx_near(s->load, 0.75, 1e-12), "load %g", s->load); /* 25 us x 3 per 100 us */
    FL_CHECK(out.kernels == 8, "%llu kernels", (unsigned long long)out.kernels);
    const fl_wide fj = (fl_wide)150 * FX_US_PS * 40000 + (fl_wide)80 * FX_US_PS * 100000;
    FL_CHECK(out.ledger.gpu_fj == fj, "%g fJ, expected %g", fx_f(out.ledger.gpu_fj), fx_f(fj));
    fl_run_result_free(&out);
    fx_close(&r);
}

/* An idle server draws what an idle CPU draws; in service its host computes in the gap and waits for the kernels. */
static void test_host_sleeps_between_requests(void) {
    static const int64_t arrival[] = {0, 100000};
    fx_rig r;
    open_plain(&r, true);
    serve(&r, arrival, 2, 1);
    fl_run_result out = run_at(&r, 0);
    FL_CHECK(out.makespan_ps == 125 * FX_US_PS, "%lld ps", (long long)out.makespan_ps);
    const fl_wide fj = (fl_wide)FX_US_PS * (125 * 10000 + 2 * (5 * 10000 + 20 * 5000));
    FL_CHECK(out.ledger.part_fj[FL_PART_CPU] == fj, "CPU %g fJ, expected %g", fx_f(out.ledger.part_fj[FL_PART_CPU]),
             fx_f(fj));
    fl_run_result_free(&out);
    fx_close(&r);
}

/* Recorded launches and synchronisations are part of the request; the latency ends with the return of the last one.
 * The arrival is by the clock: a slower CPU stretches the host's part alone. */
static void test_launched_requests(void) {
    static const int64_t arrival[] = {7000, 8000, 200000};
    for (int slow = 0; slow < 2; slow++) {
        fx_rig r;
        fx_open(&r, 1);
        plain_cpu(&r);
        const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), t = fx_thread(&r);
        fx_op(&r, a, 0, 10000, c);
        fx_op(&r, a, 0, 10000, c);
        fx_launch(&r, t, 4000, a);
        fx_launch(&r, t, 0, a);
        fx_sync(&r, t, 0, 6000, a, 2);
        serve(&r, arrival, 3, 1);
        fl_node *n = fx_node(&r, 0, false);
        if (slow) /* 1000 instead of 2000 MHz, bound by half: host time x 1.5 */
            fl_node_set_cpu(n, 0, 1000, 0, (double)NAN);
        fx_to_end(n);
        const int64_t host = slow ? 15 : 10, done[] = {7 + 20 + host, 7 + 2 * (20 + host), 200 + 20 + host};
        for (int i = 0; i < 3; i++)
            FL_CHECK(fl_node_requests(n)[i] == done[i] * FX_US_PS, "slow %d: request %d done at %.3f us, expected %lld",
                     slow, i, (double)fl_node_requests(n)[i] * 1e-6, (long long)done[i]);
        /* asleep until 7 us, and from the second request's end to 200 */
        const fl_cpu *cpu = fl_node_cpu(n);
        int64_t wait = 0;
        for (uint32_t i = 0; i < cpu->state_count; i++)
            wait += cpu->slot[i].wait_ps;
        FL_CHECK(wait == 3 * 20 * FX_US_PS, "slow %d: the host waited %.3f us, expected 60", slow, (double)wait * 1e-6);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A clock change within a request: what is left of it doubles, and so does what queues behind. */
static void test_change_in_a_request(void) {
    static const int64_t arrival[] = {10000, 20000};
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 20000, fx_light(&r));
    serve(&r, arrival, 2, 1);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_set(n, 0, 20 * FX_US_PS, 500, NAN);
    fx_to_end(n); /* half done by 20, the rest in 20: 40; the second 40 to 80 */
    FL_CHECK(fl_node_requests(n)[0] == 40 * FX_US_PS && fl_node_requests(n)[1] == 80 * FX_US_PS, "%lld, %lld ps",
             (long long)fl_node_requests(n)[0], (long long)fl_node_requests(n)[1]);
    fl_node_close(n);
    fx_close(&r);
}

static void test_lower_clock_longer_latency(void) {
    int64_t arrival[200];
    CU_ASSERT_FATAL(fl_poisson(3, 300, arrival, 200));
    double before = 0;
    for (double mhz = 1500; mhz >= 500; mhz -= 100) {
        fx_rig r;
        fx_open(&r, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 1 * MS, fx_light(&r));
        serve(&r, arrival, 200, 1);
        fl_run_result out = run_at(&r, mhz);
        FL_CHECK(out.service.latency.mean_s > before && out.service.latency.mean_s >= 1e-3 * 1000 / mhz,
                 "%g MHz: %g s, at the clock above %g s", mhz, out.service.latency.mean_s, before);
        before = out.service.latency.mean_s;
        fl_run_result_free(&out);
        fx_close(&r);
    }
}

/* ---- one request at time 0 is one pass: the same energies and ends, whatever is in it ---- */

static void random_pass(fx_rig *r, uint64_t seed, bool launched) {
    fl_random g = fl_random_seed(seed, 5);
    fx_open(r, 2);
    nx_cpu(r);
    fx_random_classes(r, &g, 6, 0.9);
    const uint32_t streams = 1 + (uint32_t)fl_random_below(&g, 4), t = launched ? fx_thread(r) : 0;
    for (uint32_t i = 0; i < streams; i++)
        fx_random_ops(r, &g, fx_stream(r, i % 2, (int32_t)i), 40, 20000);
    for (uint32_t i = 1; i < streams; i++) {
        fx_op(r, i, 0, 1000, 0);
        fx_wait(r, i, 0, r->w->stream[0].count);
    }
    for (uint32_t i = 0; launched && i < streams; i++)
        for (uint64_t k = 0; k < r->w->stream[i].count; k++)
            fx_launch(r, t, (int64_t)fl_random_below(&g, 3000), i);
    if (launched) /* the program ends when all its kernels have */
        fx_sync(r, t, 0, 0, 0, r->w->stream[0].count);
    for (uint32_t i = 1; launched && i < streams; i++)
        FX_MUST(fl_workload_add_sync_wait(r->w, t, (fl_wait){i, r->w->stream[i].count}, d));
}

static void test_one_request_is_one_pass(void) {
    static const int64_t now[] = {0};
    for (uint64_t seed = 0; seed < 40; seed++) {
        fx_rig a, b;
        random_pass(&a, seed, seed % 2);
        random_pass(&b, seed, seed % 2);
        fx_finish(&a, 7);
        serve(&b, now, 1, 7);
        fl_run_result x, y;
        const fx_how how = {.mode = seed % 3 ? FX_RANDOM : FX_NOTHING, .step_us = 150};
        fx_run(&a, &how, &x);
        fx_run(&b, &how, &y);
        FL_CHECK(x.makespan_ps == y.makespan_ps && x.energy_fj == y.energy_fj, "seed %llu: %lld ps %g fJ, once %lld %g",
                 (unsigned long long)seed, (long long)y.makespan_ps, fx_f(y.energy_fj), (long long)x.makespan_ps,
                 fx_f(x.energy_fj));
        for (int i = 0; i < FL_PART_COUNT; i++)
            FL_CHECK(x.ledger.part_fj[i] == y.ledger.part_fj[i], "seed %llu: part %d differs", (unsigned long long)seed,
                     i);
        FL_CHECK(x.mark_count == y.mark_count && !memcmp(x.mark_ps, y.mark_ps, x.mark_count * sizeof *x.mark_ps),
                 "seed %llu: other ends", (unsigned long long)seed);
        FL_CHECK(y.service.request[0].done_ps == y.makespan_ps, "seed %llu: served at %lld ps",
                 (unsigned long long)seed, (long long)y.service.request[0].done_ps);
        fl_run_result_free(&x);
        fl_run_result_free(&y);
        fx_close(&a);
        fx_close(&b);
    }
}

/* Requests far apart each take what one alone takes, from their arrival on, across escapes, waits and GPUs. */
static void test_requests_far_apart(void) {
    static const int64_t arrival[] = {0, 900 * MS, 1700 * MS};
    for (uint64_t seed = 0; seed < 20; seed++) {
        fx_rig r;
        random_pass(&r, seed, seed % 2);
        serve(&r, arrival, 3, 1);
        fl_run_result out = run_at(&r, 0);
        const fl_request *q = out.service.request;
        for (int i = 0; i < 3; i++)
            FL_CHECK(q[i].done_ps - q[i].arrival_ps == q[0].done_ps,
                     "seed %llu: request %d takes %lld ps, the first %lld", (unsigned long long)seed, i,
                     (long long)(q[i].done_ps - q[i].arrival_ps), (long long)q[0].done_ps);
        FL_CHECK(q[0].done_ps < 800 * FX_MS_PS, "they do not meet");
        fl_run_result_free(&out);
        fx_close(&r);
    }
}

static void test_refused(void) {
    static const int64_t good[] = {0, 1}, bad[] = {5, 4}, early[] = {-1, 4};
    static const struct {
        const char *what;
        const int64_t *at;
        size_t count;
        const char *says;
    } rows[] = {{"not ascending", bad, 2, "ascending"},
                {"before 0", early, 2, "ascending times from 0"},
                {"none", good, 0, "at least one request"},
                {"too many", good, 60000000, "at most 100000000"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        open_plain(&r, false);
        FX_MUST(fl_workload_finish(r.w, 1, d));
        fl_diag d = {0};
        FL_CHECK(fl_workload_serve(r.w, rows[i].at, rows[i].count, 1, &d) == FL_BAD_INPUT &&
                     strstr(d.message, rows[i].says),
                 "%s: '%s'", rows[i].what, d.message);
        fx_close(&r);
    }
}

/* ---- queueing theory ---- */

/* Poisson arrivals, one server, service always D: mean wait rho D / 2 (1 - rho) (Pollaczek-Khinchine). The mean of
 * 160,000 waits at a fixed seed; successive waits hang together, so that its standard error (over 60 seeds) is 0.8, 1.1
 * and 2.9 % of it: three of these are allowed. */
static void test_pollaczek_khinchine(void) {
    static const struct { double rho, allowed; } rows[] = {{0.3, 0.024}, {0.6, 0.033}, {0.85, 0.087}};
    enum { N = 160000 };
    int64_t *arrival = fx_alloc(N, sizeof *arrival);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 1 * MS, fx_light(&r));
        CU_ASSERT_FATAL(fl_poisson(11, rows[i].rho * 1e3, arrival, N));
        serve(&r, arrival, N, 1);
        fl_run_result out = run_at(&r, 0);
        const double wait = out.service.latency.mean_s - 1e-3, theory = rows[i].rho * 1e-3 / (2 * (1 - rows[i].rho));
        FL_CHECK(fabs(wait / theory - 1) < rows[i].allowed, "rho %g: mean wait %g s, theory %g s", rows[i].rho, wait,
                 theory);
        FL_CHECK(fx_near(out.service.load, rows[i].rho, 0.02), "rho %g: load %g", rows[i].rho, out.service.load);
        FL_CHECK(!fl_service_overloaded(N, out.service.load), "rho %g is no overload", rows[i].rho);
        fl_run_result_free(&out);
        fx_close(&r);
    }
    free(arrival);
}

/* Above 1 the n-th request waits about n (D - 1/rate). */
static void test_overload(void) {
    enum { N = 2000 };
    int64_t arrival[N];
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1 * MS, fx_light(&r));
    for (int i = 0; i < N; i++)
        arrival[i] = i * (MS / 2);
    serve(&r, arrival, N, 1);
    fl_run_result out = run_at(&r, 0);
    FL_CHECK(fl_service_overloaded(N, out.service.load) && fx_near(out.service.load, 2, 1e-9), "load %g",
             out.service.load);
    for (int i = 0; i < N; i += 100)
        FL_CHECK(out.service.request[i].done_ps == (i + 1) * FX_MS_PS, "request %d", i);
    FL_CHECK(fx_near(out.service.latency.max_s, N * 1e-3 - (N - 1) * 0.5e-3, 1e-9), "the last waits %g s",
             out.service.latency.max_s);
    FL_CHECK(out.service.backlog_max == N / 2 + 1, "%zu at once", out.service.backlog_max);
    fl_run_result_free(&out);
    fx_close(&r);
}

/* The order of steps and boundaries cannot show, nor can who looks. */
static void test_boundaries_do_not_show(void) {
    int64_t arrival[100];
    CU_ASSERT_FATAL(fl_poisson(5, 2000, arrival, 100));
    for (uint64_t seed = 0; seed < 8; seed++) {
        fl_run_result out[3];
        static const fx_how how[] = {{.mode = FX_NOTHING, .step_us = 1000000},
                                     {.mode = FX_NOTHING, .step_us = 37},
                                     {.mode = FX_NOTHING, .step_us = 613, .path = FL_PATH_EVENTS, .records = true}};
        for (int i = 0; i < 3; i++) {
            fx_rig r;
            random_pass(&r, seed, seed % 2);
            serve(&r, arrival, 100, 3);
            fx_run(&r, &how[i], &out[i]);
            fx_close(&r);
        }
        for (int i = 1; i < 3; i++)
            FL_CHECK(out[i].energy_fj == out[0].energy_fj &&
                         !memcmp(out[i].service.request, out[0].service.request, 100 * sizeof(fl_request)),
                     "seed %llu: steps of %lld us change the result", (unsigned long long)seed,
                     (long long)how[i].step_us);
        for (int i = 0; i < 3; i++)
            fl_run_result_free(&out[i]);
    }
}

/* ---- durations ---- */

static void test_percentiles(void) {
    static const struct {
        size_t count;
        int64_t p50, p90, p95, p99, max;
    } rows[] = {{1, 1, 1, 1, 1, 1},         {2, 1, 2, 2, 2, 2},          {10, 5, 9, 10, 10, 10},
                {100, 50, 90, 95, 99, 100}, {101, 51, 91, 96, 100, 101}, {1000, 500, 900, 950, 990, 1000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t *ps = fx_alloc(rows[i].count, sizeof *ps);
        for (size_t k = 0; k < rows[i].count; k++)
            ps[k] = (int64_t)((k * 7 + 3) % rows[i].count + 1) * FL_PS_PER_S; /* 1 .. count, mixed: 7 divides none */
        const fl_times t = fl_times_of(ps, rows[i].count);
        const double got[] = {t.p50_s, t.p90_s, t.p95_s, t.p99_s, t.max_s};
        const int64_t want[] = {rows[i].p50, rows[i].p90, rows[i].p95, rows[i].p99, rows[i].max};
        for (int k = 0; k < 5; k++)
            FL_CHECK(fx_near(got[k], (double)want[k], 1e-12), "%zu values: percentile %d is %g, expected %lld",
                     rows[i].count, k, got[k], (long long)want[k]);
        FL_CHECK(fx_near(t.mean_s, (double)(rows[i].count + 1) / 2, 1e-12), "%zu values: mean %g", rows[i].count,
                 t.mean_s);
        free(ps);
    }
    const fl_times none = fl_times_of(NULL, 0);
    FL_CHECK(!none.count && isnan(none.mean_s) && isnan(none.p99_s), "of none there is nothing to say");
}

/* A request may arrive until 26 days are over, the last instant of a run, and no later. */
static void test_latest(void) {
    static const int64_t most = INT64_MAX / 4000;
    for (int64_t over = -1; over <= 1; over++) {
        fx_rig r;
        fx_open(&r, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, fx_light(&r));
        FX_MUST(fl_workload_finish(r.w, 1, d));
        fl_diag diag = {0};
        const int64_t arrival[] = {0, most + over};
        const fl_status status = fl_workload_serve(r.w, arrival, 2, 1, &diag);
        FL_CHECK(over > 0 ? status == FL_BAD_INPUT && strstr(diag.message, "request 1 arrives at") : !status,
                 "%lld ns: %d, %s", (long long)arrival[1], status, diag.message);
        fx_close(&r);
    }
}

/* What takes no time takes no energy, and its ledger closes all the same. */
static void test_no_time(void) {
    fx_rig r;
    fx_open(&r, 2);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 0, fx_light(&r));
    fx_finish(&r, 1);
    fl_run_result out = run_at(&r, 0);
    FL_CHECK(out.makespan_ps == 0 && out.energy_fj == 0, "%lld ps, %g J", (long long)out.makespan_ps, out.energy_j);
    fl_run_result_free(&out);
    fx_close(&r);
}

typedef struct passed {
    double most;
    bool known, seen;
} passed;

static fl_status note_iterations(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    passed *p = user;
    (void)decision, (void)d;
    p->seen = true;
    p->known = fl_gpu_known(&sample->gpu[0], FL_GPU_ITERATIONS);
    p->most = p->known ? sample->gpu[0].value[FL_GPU_ITERATIONS] : -1;
    return FL_OK;
}

/* A policy is told of iterations wherever a program marks some, be it a single one; of a program without marks nothing
 * is known. */
static void test_iterations_told(void) {
    for (int marks = 0; marks < 4; marks++) {
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t kernel = fx_light(&r), mark = fx_class(&r, 0, 0, 1, 0, 0, 0), s = fx_stream(&r, 0, 0);
        r.w->class[mark].iteration = true;
        for (int i = 0; i < 10; i++) {
            fx_op(&r, s, 0, 1000000, kernel);
            if (i < marks)
                fx_op(&r, s, 0, 0, mark);
        }
        fx_finish(&r, 1);
        passed p = {0};
        fl_run_result result;
        fx_run(&r, &(fx_how){.needs = FL_BIT(FL_GPU_ITERATIONS), .on_step = note_iterations, .user = &p}, &result);
        FL_CHECK(p.seen && p.known == (marks > 0) && p.most == (marks ? marks : -1), "%d marks: known %d, %g", marks,
                 p.known, p.most);
        fl_run_result_free(&result);
        fx_close(&r);
    }
}

static void test_iterations(void) {
    static const int64_t arrival[] = {0, 100000};
    for (int served = 0; served < 2; served++) {
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t c = fx_light(&r), mark = fx_class(&r, 1, 0, 0, 0, 0, 0), a = fx_stream(&r, 0, 9);
        r.w->class[mark].iteration = true;
        for (int i = 0; i < 4; i++) { /* markers at 10, 30, 60, 100 us */
            fx_op(&r, a, 0, 10000 * (i + 1), c);
            fx_op(&r, a, 0, 0, mark);
        }
        if (served)
            serve(&r, arrival, 2, 1);
        else
            fx_finish(&r, 1);
        fl_run_result out = run_at(&r, 0);
        const fl_service *s = &out.service;
        FL_CHECK(s->iteration_count == (served ? 6u : 3u), "%zu iterations", s->iteration_count);
        for (size_t i = 0; i < s->iteration_count; i++) {
            const fl_iteration *x = &s->iteration[i];
            FL_CHECK(x->end_ps - x->start_ps == (int64_t)(i % 3 + 2) * 10 * FX_US_PS && x->gpu == 0 && x->stream == 9,
                     "iteration %zu takes %lld ps", i, (long long)(x->end_ps - x->start_ps));
        }
        FL_CHECK(fx_near(s->iteration_time.mean_s, 30e-6, 1e-12) && fx_near(s->iteration_time.max_s, 40e-6, 1e-12),
                 "mean %g s", s->iteration_time.mean_s);
        fl_run_result_free(&out);
        fx_close(&r);
    }
}

/* Two GPUs meet twice; on the second GPU two streams do. */
static void test_barriers(void) {
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), q = fx_stream(&r, 1, 0), p = fx_stream(&r, 1, 1);
    fx_op(&r, a, 0, 30000, c); /* 0-30 */
    fx_op(&r, q, 0, 10000, c); /* 0-10 */
    fx_op(&r, q, 0, 10000, c); /* 30-40: lost from 10 to 30 */
    fx_wait(&r, q, a, 1);
    fx_op(&r, a, 0, 5000, c); /* 40-45: lost from 30 to 40 */
    fx_wait(&r, a, q, 2);
    fx_op(&r, p, 0, 20000, c); /* 0-20 */
    fx_op(&r, p, 0, 10000, c); /* 30-40: lost from 20 to 30, while q does: counted once */
    fx_wait(&r, p, a, 1);
    fx_op(&r, q, 0, 10000, c); /* 45-55: at 40 p is there too, so lost from 40 to 45 */
    fx_wait(&r, q, p, 2);
    fx_wait(&r, q, a, 2);
    fx_op(&r, a, 0, 1000, c); /* needs its own GPU alone: 45-46 */
    fx_wait(&r, a, a, 2);
    fx_finish(&r, 1);
    fl_run_result out = run_at(&r, 0);
    const fl_service *s = &out.service;
    FL_CHECK(out.makespan_ps == 55 * FX_US_PS, "%lld ps", (long long)out.makespan_ps);
    FL_CHECK(s->barrier_count == 2, "%u GPUs", s->barrier_count);
    if (s->barrier_count == 2)
        FL_CHECK(s->barrier_ps[0] == 10 * FX_US_PS && s->barrier_ps[1] == 25 * FX_US_PS,
                 "lost %lld and %lld ps, expected 10 and 25 us", (long long)s->barrier_ps[0],
                 (long long)s->barrier_ps[1]);
    fl_run_result_free(&out);
    fx_close(&r);
}

/* A wait of the own GPU that ends later than the other GPU's is no time lost at a barrier. */
static void test_own_waits_are_no_barrier(void) {
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1), q = fx_stream(&r, 1, 0);
    fx_op(&r, q, 0, 20000, c);
    fx_op(&r, b, 0, 30000, c);
    fx_op(&r, a, 0, 10000, c); /* 30-40: q was there at 20, b at 30 */
    fx_wait(&r, a, q, 1);
    fx_wait(&r, a, b, 1);
    fx_finish(&r, 1);
    fl_run_result out = run_at(&r, 0);
    FL_CHECK(out.service.barrier_count == 2 && out.service.barrier_ps[0] == 0 && out.service.barrier_ps[1] == 0,
             "lost %lld ps", (long long)(out.service.barrier_count ? out.service.barrier_ps[0] : -1));
    fl_run_result_free(&out);
    fx_close(&r);
}

/* ---- drawing and reading ---- */

static void test_poisson(void) {
    enum { N = 20000 };
    static int64_t a[N], b[N];
    CU_ASSERT_FATAL(fl_poisson(1, 50, a, N) && fl_poisson(1, 50, b, N));
    FL_CHECK(!memcmp(a, b, sizeof a), "the same seed draws other times");
    double squares = 0, mean = 0;
    for (int i = 0; i < N; i++) {
        const double gap = (double)(a[i] - (i ? a[i - 1] : 0)) * 1e-9;
        CU_ASSERT(gap >= 0);
        mean += gap / N;
        squares += gap * gap / N;
    }
    FL_CHECK(fx_near(mean, 0.02, 0.03), "mean gap %g s", mean); /* 0.7 % is one standard error */
    FL_CHECK(fx_near(sqrt(squares - mean * mean), 0.02, 0.04), "deviation %g s", sqrt(squares - mean * mean));
    CU_ASSERT_FATAL(fl_poisson(2, 50, b, N));
    FL_CHECK(memcmp(a, b, sizeof a) != 0, "another seed draws the same");
    FL_CHECK(!fl_poisson(1, 1e-6, a, 100), "beyond 26 days");
}

static void test_spec(void) {
    static const struct {
        const char *text, *says; /* NULL: is taken */
    } rows[] = {{"poisson:rate=20,count=500,seed=1", NULL},
                {"poisson:rate=2.5,seconds=10", NULL},
                {"list.csv", NULL},
                {"poissonlist.csv", NULL},
                {"poisson", "no rate"},
                {"poisson:", "no rate"},
                {"poisson:rate=20", "either count=N or seconds=S"},
                {"poisson:rate=20,count=5,seconds=5", "either count=N or seconds=S"},
                {"poisson:rate=0,count=5", "rate, expected"},
                {"poisson:rate=x,count=5", "rate, expected"},
                {"poisson:rate=20,count=0", "count, expected"},
                {"poisson:rate=20,count=1.5", "count, expected"},
                {"poisson:rate=20,count=5,seed=0", "seed, expected"},
                {"poisson:rate=20,coutn=5", "did you mean 'count'"},
                {"poisson:rate=20,count", "expected rate=R"},
                {"poisson:rate=0.001,seconds=1", "rate x seconds"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_arrivals_spec spec;
        fl_diag d = {0};
        const fl_status s = fl_arrivals_spec_parse(rows[i].text, &spec, &d);
        FL_CHECK(rows[i].says ? s == FL_BAD_INPUT && strstr(d.message, rows[i].says) : s == FL_OK, "%s: %d '%s'",
                 rows[i].text, s, d.message);
    }
    fl_arrivals_spec spec;
    fl_arrivals a, b, own;
    FX_MUST(fl_arrivals_spec_parse("poisson:rate=2.5,seconds=10", &spec, d));
    FX_MUST(fl_arrivals_make(&spec, 7, 1, &a, d));
    FX_MUST(fl_arrivals_make(&spec, 8, 0, &b, d));
    FL_CHECK(a.count == 25 && b.count == 25 && !memcmp(a.t_ns, b.t_ns, 25 * sizeof *a.t_ns),
             "the second draw of seed 7 is the first of seed 8");
    FX_MUST(fl_arrivals_spec_parse("poisson:rate=2.5,count=25,seed=7", &spec, d));
    FX_MUST(fl_arrivals_make(&spec, 99, 1, &own, d));
    FL_CHECK(!memcmp(a.t_ns, own.t_ns, 25 * sizeof *a.t_ns), "a seed of its own goes before the run's");
    fl_arrivals_free(&a);
    fl_arrivals_free(&b);
    fl_arrivals_free(&own);
}

static const char good_file[] = "# foldline-arrivals 1\n# source: by hand\nt_ns\n0\n10000\n10000\n2500000000\n";

static void test_reader(void) {
    static const struct {
        const char *text, *says;
        int64_t line, column;
    } rows[] = {{"# foldline-arrivals 2\nt_ns\n0\n", "", 1, 0},
                {"# foldline-arrivals 1\nt_s\n0\n", "t_ns", 2, 1},
                {"# foldline-arrivals 1\nt_ns,t_ns\n0,1\n", "t_ns", 2, 6},
                {"# foldline-arrivals 1\nt_ns\n", "no arrivals", 0, 0},
                {"# foldline-arrivals 1\nt_ns\n5\n4\n", "expected ascending times", 4, 1},
                {"# foldline-arrivals 1\nt_ns\n5\n -3\n", "t_ns", 4, 2},
                {"# foldline-arrivals 1\nt_ns\n5\n1.5\n", "t_ns", 4, 1},
                {"# foldline-arrivals 1\nt_ns\n5,6\n", "2 fields", 3, 3},
                {"# foldline-arrivals 1\nt_ns\n3000000000000000\n", "t_ns", 3, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_arrivals a;
        fl_diag d = {0};
        const fl_status s = fl_arrivals_read(fl_temp_text("bad.csv", rows[i].text), &a, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, rows[i].says) && d.line == rows[i].line &&
                     (!rows[i].column || d.column == rows[i].column) && !a.count && !a.t_ns && !a.head.count,
                 "row %zu: %d %lld:%lld '%s'", i, s, (long long)d.line, (long long)d.column, d.message);
    }
    fl_arrivals a, b;
    FX_MUST(fl_arrivals_read(fl_temp_text("good.csv", good_file), &a, d));
    FL_CHECK(a.count == 4 && a.t_ns[3] == INT64_C(2500000000), "%zu arrivals", a.count);
    FX_MUST(arrivals_write(fl_temp_path("again.csv"), &a, d));
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path("again.csv"), &size);
    FL_CHECK(text && !strcmp(text, good_file), "comes back changed: %s", text ? text : "");
    free(text);
    FX_MUST(fl_arrivals_read(fl_temp_path("again.csv"), &b, d));
    fl_arrivals_free(&a);
    fl_arrivals_free(&b);
}

/* Cut off after every byte, and with every byte changed in every bit: taken or refused with a message, never half. */
static void test_damaged_files(void) {
    static const fl_arrivals zero;
    char text[sizeof good_file];
    for (size_t cut = 0; cut < 9 * (sizeof good_file - 1); cut++) {
        const size_t at = cut / 9, bit = cut % 9;
        memcpy(text, good_file, sizeof text);
        if (bit < 8)
            text[at] = (char)(text[at] ^ 1 << bit);
        fl_arrivals a;
        fl_diag d = {0};
        const char *path = fl_temp_write("damaged.csv", text, bit < 8 ? sizeof text - 1 : at);
        const fl_status s = fl_arrivals_read(path, &a, &d);
        bool sound = s == FL_OK ? a.count > 0 && !d.message[0]
                                : s == FL_BAD_INPUT && d.message[0] && !memcmp(&a, &zero, sizeof a);
        for (size_t i = 0; !s && i < a.count; i++)
            sound &= a.t_ns[i] >= (i ? a.t_ns[i - 1] : 0);
        FL_CHECK(sound, "byte %zu, %s %zu: %d '%s'", at, bit < 8 ? "bit" : "cut", bit, s, d.message);
        fl_arrivals_free(&a);
    }
    fl_temp_remove();
}

FL_SUITE("arrivals", {"a list by hand", test_list_by_hand},
         {"the host sleeps between requests", test_host_sleeps_between_requests},
         {"launched requests", test_launched_requests}, {"a clock change in a request", test_change_in_a_request},
         {"a lower clock, a longer latency", test_lower_clock_longer_latency},
         {"one request is one pass", test_one_request_is_one_pass}, {"requests far apart", test_requests_far_apart},
         {"refused", test_refused}, {"Pollaczek-Khinchine", test_pollaczek_khinchine}, {"overload", test_overload},
         {"boundaries do not show", test_boundaries_do_not_show}, {"percentiles", test_percentiles},
         {"iterations", test_iterations}, {"iterations told", test_iterations_told}, {"the latest", test_latest},
         {"no time", test_no_time}, {"barriers", test_barriers},
         {"own waits are no barrier", test_own_waits_are_no_barrier}, {"Poisson", test_poisson}, {"specs", test_spec},
         {"reader", test_reader}, {"damaged files", test_damaged_files})
