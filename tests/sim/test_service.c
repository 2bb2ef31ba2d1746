/* What a run served, by hand: requests with their latencies, load and backlog; iterations from marker to marker; and
 * the time that GPUs wait for each other. Kernels of whole microseconds at the clock of their recording. */
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { REQUESTS_MAX = 5 };

static uint32_t marker(fx_rig *r) {
    const uint32_t id = fx_light(r);
    r->w->class[id].iteration = true;
    return id;
}

/* The run to its end, and what it served. */
static fl_service served(fx_rig *r) {
    fl_service s = {0};
    FX_MUST(fl_rates_new(&r->rates, r->w, &r->spec, d));
    fl_node *n = fx_node(r, 0, false);
    fx_to_end(n);
    FX_MUST(fl_service_collect(n, r->w, &s, d));
    fl_node_close(n);
    return s;
}

static void end(fx_rig *r, fl_service *s) {
    fl_service_free(s);
    FL_CHECK(!s->request && !s->iteration && !s->barrier_ps && !s->request_count && !s->iteration_count &&
                 !s->barrier_count,
             "nothing is left");
    fx_close(r);
}

static bool us(double s, double want) { return isnan(want) ? isnan(s) : fabs(s - want * 1e-6) < 1e-15; }

/* Each request takes 30 us: a kernel of 10, one of 20. */
static void test_requests(void) {
    static const struct {
        const char *what;
        size_t count;
        int64_t arrival_us[REQUESTS_MAX], start_us[REQUESTS_MAX], done_us[REQUESTS_MAX];
        double mean_us, p50_us, max_us, load;
        size_t backlog;
    } rows[] = {
        {"one", 1, {7}, {7}, {37}, 30, 30, 30, NAN, 1},
        {"far apart", 2, {0, 300}, {0, 300}, {30, 330}, 30, 30, 30, 0.1, 1},
        {"one as the other is done", 2, {0, 30}, {0, 30}, {30, 60}, 30, 30, 30, 1, 1},
        {"one just before that", 2, {0, 29}, {0, 30}, {30, 60}, 30.5, 30, 31, 30.0 / 29, 2},
        {"the first not at 0", 2, {50, 150}, {50, 150}, {80, 180}, 30, 30, 30, 0.3, 1},
        {"two after one that is done",
         3,
         {0, 100, 110},
         {0, 100, 130},
         {30, 130, 160},
         110.0 / 3,
         30,
         50,
         60.0 / 110,
         2},
        {"both at once", 2, {0, 0}, {0, 30}, {30, 60}, 45, 30, 60, HUGE_VAL, 2},
        {"two pairs", 4, {0, 10, 100, 100}, {0, 30, 100, 130}, {30, 60, 130, 160}, 42.5, 30, 60, 0.9, 2},
        {"three in a queue, then none",
         5,
         {0, 1, 2, 62, 200},
         {0, 30, 60, 90, 200},
         {30, 60, 90, 120, 230},
         (30 + 59 + 88 + 58 + 30) / 5.0,
         58,
         88,
         0.6,
         3},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t arrival_ns[REQUESTS_MAX];
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0);
        fx_op(&r, a, 0, 10000, c);
        fx_op(&r, a, 0, 20000, c);
        for (size_t k = 0; k < rows[i].count; k++)
            arrival_ns[k] = rows[i].arrival_us[k] * 1000;
        FX_MUST(fl_workload_finish(r.w, 1, d));
        FX_MUST(fl_workload_serve(r.w, arrival_ns, rows[i].count, 1, d));
        fl_service s = served(&r);
        FL_CHECK(s.request_count == rows[i].count && s.latency.count == rows[i].count, "%s: %zu requests", rows[i].what,
                 s.request_count);
        for (size_t k = 0; k < s.request_count; k++)
            FL_CHECK(s.request[k].arrival_ps == rows[i].arrival_us[k] * FX_US_PS &&
                         s.request[k].start_ps == rows[i].start_us[k] * FX_US_PS &&
                         s.request[k].done_ps == rows[i].done_us[k] * FX_US_PS,
                     "%s: request %zu from %lld to %lld ps", rows[i].what, k, (long long)s.request[k].start_ps,
                     (long long)s.request[k].done_ps);
        FL_CHECK(us(s.latency.mean_s, rows[i].mean_us) && us(s.latency.p50_s, rows[i].p50_us) &&
                     us(s.latency.max_s, rows[i].max_us),
                 "%s: mean %g, median %g, longest %g s", rows[i].what, s.latency.mean_s, s.latency.p50_s,
                 s.latency.max_s);
        FL_CHECK(isnan(rows[i].load) ? isnan(s.load)
                                     : s.load == rows[i].load || fabs(s.load / rows[i].load - 1) < 1e-12,
                 "%s: load %g", rows[i].what, s.load);
        FL_CHECK(s.backlog_max == rows[i].backlog, "%s: %zu at once", rows[i].what, s.backlog_max);
        FL_CHECK(!s.iteration_count && !s.iteration_time.count && !s.barrier_ps && !s.barrier_count,
                 "%s: no markers, no barriers", rows[i].what);
        end(&r, &s);
    }
}

typedef struct span {
    uint32_t gpu;
    int32_t stream;
    int64_t from_us, to_us;
} span;

static void check_iterations(const char *what, const fl_service *s, const span *want, size_t count, double mean_us,
                             double max_us) {
    FL_CHECK(s->iteration_count == count && s->iteration_time.count == count, "%s: %zu iterations", what,
             s->iteration_count);
    for (size_t i = 0; i < count && i < s->iteration_count; i++) {
        const fl_iteration *k = &s->iteration[i];
        FL_CHECK(k->gpu == want[i].gpu && k->process == 1 && k->stream == want[i].stream &&
                     k->start_ps == want[i].from_us * FX_US_PS && k->end_ps == want[i].to_us * FX_US_PS,
                 "%s: iteration %zu on GPU %u, stream %d: %lld to %lld ps", what, i, k->gpu, k->stream,
                 (long long)k->start_ps, (long long)k->end_ps);
    }
    FL_CHECK(us(s->iteration_time.mean_s, mean_us) && us(s->iteration_time.max_s, max_us), "%s: mean %g, longest %g s",
             what, s->iteration_time.mean_s, s->iteration_time.max_s);
}

/* Streams on two GPUs, with three markers, one and none: two iterations, for what is before the first and behind the
 * last marker is none. */
static void test_iterations(void) {
    static const span want[] = {{1, 4, 5, 15}, {1, 4, 15, 45}};
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t c = fx_light(&r), m = marker(&r), a = fx_stream(&r, 0, 3), b = fx_stream(&r, 1, 4),
                   none = fx_stream(&r, 1, 5);
    fx_op(&r, a, 0, 7000, c);
    fx_op(&r, a, 0, 0, m);
    fx_op(&r, b, 0, 5000, c);
    fx_op(&r, b, 0, 0, m);
    fx_op(&r, b, 0, 10000, c);
    fx_op(&r, b, 0, 0, m);
    fx_op(&r, b, 0, 30000, c);
    fx_op(&r, b, 0, 0, m);
    fx_op(&r, b, 0, 9000, c);
    fx_op(&r, none, 0, 2000, c);
    FX_MUST(fl_workload_finish(r.w, 1, d));
    fl_service s = served(&r);
    check_iterations("no requests", &s, want, COUNT(want), 20, 30);
    FL_CHECK(!s.request_count && !s.latency.count && isnan(s.latency.mean_s) && isnan(s.load) && !s.backlog_max,
             "and nothing arrived");
    end(&r, &s);
}

/* From the last marker of a request to the first of the next there is no iteration. */
static void test_iterations_of_requests(void) {
    static const int64_t arrival_ns[] = {0, 10000, 100000};
    static const span want[] = {{0, 2, 0, 10},  {0, 2, 10, 30},   {0, 2, 30, 40},
                                {0, 2, 40, 60}, {0, 2, 100, 110}, {0, 2, 110, 130}};
    fx_rig r;
    fx_open(&r, 1);
    const uint32_t c = fx_light(&r), m = marker(&r), a = fx_stream(&r, 0, 2);
    fx_op(&r, a, 0, 0, m);
    fx_op(&r, a, 0, 10000, c);
    fx_op(&r, a, 0, 0, m);
    fx_op(&r, a, 0, 20000, c);
    fx_op(&r, a, 0, 0, m);
    FX_MUST(fl_workload_finish(r.w, 1, d));
    FX_MUST(fl_workload_serve(r.w, arrival_ns, 3, 1, d));
    fl_service s = served(&r);
    check_iterations("three requests", &s, want, COUNT(want), 15, 20);
    FL_CHECK(s.request_count == 3 && s.request[2].done_ps == 130 * FX_US_PS, "and the requests");
    end(&r, &s);
}

/* The second GPU has done its first kernel after 5 us and waits for the first GPU until 20; the first waits from 21 to
 * 26 in turn; the third waits for nobody. */
static void test_barriers(void) {
    fx_rig r;
    fx_open(&r, 3);
    const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 1, 0), other = fx_stream(&r, 2, 0);
    fx_op(&r, a, 0, 20000, c);
    fx_op(&r, a, 0, 1000, c);
    fx_op(&r, b, 0, 5000, c);
    fx_op(&r, b, 0, 6000, c);
    fx_wait(&r, b, a, 1);
    fx_op(&r, a, 0, 2000, c);
    fx_wait(&r, a, b, 2);
    fx_op(&r, other, 0, 50000, c);
    FX_MUST(fl_workload_finish(r.w, 1, d));
    fl_service s = served(&r);
    CU_ASSERT_FATAL(s.barrier_count == 3 && s.barrier_ps);
    FL_CHECK(s.barrier_ps[0] == 5 * FX_US_PS && s.barrier_ps[1] == 15 * FX_US_PS && s.barrier_ps[2] == 0,
             "%lld, %lld, %lld ps", (long long)s.barrier_ps[0], (long long)s.barrier_ps[1], (long long)s.barrier_ps[2]);
    end(&r, &s);
}

/* Each request repeats the ops of the first and their waits: the k-th op of stream b waits for the k-th of stream a. */
static void test_repeated(void) {
    for (size_t requests = 1; requests <= 4; requests++) {
        static const int64_t arrival_ns[4] = {0, 5, 5, 90000};
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1);
        for (uint64_t k = 1; k <= 3; k++) {
            fx_op(&r, a, 100, 10000, c);
            fx_op(&r, b, 0, 2000, c);
            fx_wait(&r, b, a, k);
        }
        FX_MUST(fl_workload_serve(r.w, arrival_ns, requests, 1, d));
        const fl_stream *s = &r.w->stream[a], *after = &r.w->stream[b];
        const int64_t n = (int64_t)requests;
        FL_CHECK(s->count == 3 * requests && s->work_ns == n * 30000 && s->span_ns == n * 30300 &&
                     after->count == 3 * requests && after->work_ns == n * 6000 && after->span_ns == n * 6000,
                 "%zu requests: %llu ops, %lld ns of work in %lld", requests, (unsigned long long)s->count,
                 (long long)s->work_ns, (long long)s->span_ns);
        CU_ASSERT_FATAL(after->wait_first && after->wait_count == 3 * requests);
        for (uint32_t k = 0; k < 3 * requests; k++)
            FL_CHECK(after->wait_first[k] == k && after->wait[k].stream == a && after->wait[k].done == k + 1,
                     "%zu requests: op %u waits for %u ops of stream %u, from wait %u on", requests, k,
                     (unsigned)after->wait[k].done, after->wait[k].stream, after->wait_first[k]);
        FL_CHECK(after->wait_first[3 * requests] == 3 * requests, "and the last wait is the last");
        fx_close(&r);
    }
}

/* What all requests take together stays below 2^61 ns; the message says what one of them takes. */
static void test_too_long(void) {
    enum { MANY = 1100 };
    static const struct {
        int ops;
        int64_t work_ns;
        const char *error;
    } rows[] = {{27, INT64_C(80000000000000), "1100 requests of 2.16e+06 s each, expected less in all"},
                {30, INT64_C(80000000000000), "1100 requests of 2.4e+06 s each, expected less in all"},
                {25, INT64_C(80000000000000), NULL}};
    static int64_t arrival_ns[MANY];
    for (size_t i = 0; i < COUNT(rows); i++) {
        fx_rig r;
        fl_diag d = {0};
        fx_open(&r, 1);
        const uint32_t c = fx_light(&r), stream = fx_stream(&r, 0, 0);
        for (int k = 0; k < rows[i].ops; k++)
            fx_op(&r, stream, 0, rows[i].work_ns, c);
        const fl_status s = fl_workload_serve(r.w, arrival_ns, MANY, 1, &d);
        FL_CHECK(rows[i].error ? s == FL_BAD_INPUT && strstr(d.message, rows[i].error) : s == FL_OK, "row %zu: %d, %s",
                 i, s, d.message);
        fx_close(&r);
    }
}

/* Fewer than ten requests tell nothing; at a load of one the queue grows. */
static void test_overloaded(void) {
    static const struct {
        uint64_t requests;
        double load;
        bool is;
    } rows[] = {{10, 1, true}, {9, 5, false}, {10, 0.999, false}, {1000, 1.5, true}, {1000, NAN, false}};
    for (size_t i = 0; i < COUNT(rows); i++)
        FL_CHECK(fl_service_overloaded(rows[i].requests, rows[i].load) == rows[i].is, "row %zu", i);
}

FL_SUITE("service", {"requests", test_requests}, {"iterations", test_iterations},
         {"iterations of requests", test_iterations_of_requests}, {"barriers", test_barriers},
         {"overloaded", test_overloaded}, {"repeated", test_repeated}, {"too long", test_too_long})
