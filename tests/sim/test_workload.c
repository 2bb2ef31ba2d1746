/* The workload's arrays: what is stored is what was given, whatever its size, and what no engine could run is refused.
 */
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

static void check_op(const fl_stream *s, uint64_t i, int64_t gap, int64_t work, uint32_t class_id) {
    int64_t g, t;
    uint32_t c;
    fl_workload_op(s, i, &g, &t, &c);
    FL_CHECK(g == gap && t == work && c == class_id, "op %llu is %lld %lld %u, expected %lld %lld %u",
             (unsigned long long)i, (long long)g, (long long)t, c, (long long)gap, (long long)work, class_id);
}

static void test_escapes(void) {
    static const int64_t gaps[] = {0, 1, FL_GAP_MAX, FL_GAP_MAX + 1, 3600000000000};
    static const int64_t works[] = {0, 1, FL_WORK_MAX, FL_WORK_MAX + 1, 3600000000000};
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
    int64_t span = 0;
    for (int i = 0; i < 25; i++) {
        fx_op(&r, s, gaps[i / 5], works[i % 5], c);
        span += gaps[i / 5] + works[i % 5];
    }
    for (int i = 0; i < 25; i++)
        check_op(&r.w->stream[s], (uint64_t)i, gaps[i / 5], works[i % 5], c);
    FL_CHECK(r.w->stream[s].span_ns == span, "span %lld", (long long)r.w->stream[s].span_ns);
    FL_CHECK(r.w->stream[s].big_count == 16, "%zu escapes, expected 16", r.w->stream[s].big_count);
    FL_CHECK(sizeof(fl_rec) == 8 && sizeof(fl_row) == 16, "a record has %zu bytes, a row %zu", sizeof(fl_rec),
             sizeof(fl_row));
    fx_finish(&r, 0);
    fl_node *n[2] = {fx_node(&r, 0, false), fx_node(&r, 0, true)};
    for (int i = 0; i < 2; i++) { /* at the reference clock an op lasts its work, exactly */
        fx_to_end(n[i]);
        FL_CHECK(fl_node_now(n[i]) == span * 1000, "way %d ends at %lld ps, expected %lld", i,
                 (long long)fl_node_now(n[i]), (long long)span * 1000);
        fl_node_close(n[i]);
    }
    fx_close(&r);
}

static void test_bad_ops(void) {
    static const int64_t bad[][2] = {{-1, 5}, {5, -1}, {INT64_MAX, 5}, {5, INT64_MAX}, {INT64_MIN, 5}};
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fl_diag d = {0};
        fl_status status = fl_workload_add_op(r.w, s, bad[i][0], bad[i][1], c, &d);
        FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, "expected"), "row %zu: status %d, '%s'", i, status,
                 d.message);
    }
    fl_diag d = {0};
    fl_status status = fl_workload_finish(r.w, 0, &d);
    FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, "no kernel"), "an empty workload: %d '%s'", status, d.message);
    const int64_t most = FL_DURATION_MAX_NS;
    FL_CHECK(fl_workload_add_op(r.w, s, most + 1, 5, c, &d) && fl_workload_add_op(r.w, s, 5, most + 1, c, &d),
             "longer than the longest");
    fx_op(&r, s, most, most, c);
    check_op(&r.w->stream[s], 0, most, most, c);
    fx_close(&r);
}

/* What a builder in error could make the engine run off with is refused as the workload is closed. */
static void test_unsound(void) {
    enum { STREAM_WAITS, STREAM_STREAM, SYNC_WAITS, SYNC_STREAM, LAUNCHES, HOST, AFTER, ARRIVES, DONE, QUEUE, CASES };
    static const char *const what[CASES] = {"a wait for an op too many",
                                            "a wait for another stream",
                                            "a synchronisation with an op too many",
                                            "a synchronisation with another stream",
                                            "a launch for another stream",
                                            "a negative host time",
                                            "a negative host time after a synchronisation",
                                            "a request that does not arrive",
                                            "a request that is not served",
                                            "no launch queue"};
    for (int k = 0; k < CASES; k++)
        for (int bad = 0; bad < 2; bad++) {
            fx_rig r;
            fx_open(&r, 1);
            const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1), t = fx_thread(&r);
            fx_op(&r, a, 0, 10, c);
            fx_op(&r, a, 0, 10, c);
            fx_op(&r, b, 0, 10, c);
            fx_wait(&r, b, k == STREAM_STREAM && bad ? 2 : a, k == STREAM_WAITS && bad ? 3 : 2);
            fx_launch(&r, t, 5, a);
            fx_launch(&r, t, 5, a);
            fx_sync(&r, t, 5, 5, k == SYNC_STREAM && bad ? 2 : a, k == SYNC_WAITS && bad ? 3 : 2);
            fl_thread *thread = &r.w->thread[t];
            if (k == LAUNCHES)
                thread->item[0].stream = bad ? 2 : a;
            if (k == HOST)
                thread->item[1].host_ns = bad ? -1 : 0;
            if (k == AFTER)
                thread->item[2].after_ns = bad ? -1 : 0;
            if (k == ARRIVES || k == DONE) {
                r.w->request_count = 3;
                r.w->arrival_ns = fx_alloc(3, sizeof *r.w->arrival_ns);
                thread->item[2].type = k == ARRIVES ? FL_ITEM_ARRIVE : FL_ITEM_DONE;
                thread->item[2].request = bad ? 3 : 2;
            }
            r.w->launch_queue = k == QUEUE ? !bad : 1024;
            fl_diag d = {0};
            const fl_status status = fl_workload_finish(r.w, 1, &d);
            FL_CHECK(bad ? status == FL_BAD_INPUT && strstr(d.message, "does not exist") : !status, "%s%s: '%s'",
                     bad ? "" : "without ", what[k], d.message);
            fx_close(&r);
        }
}

/* Streams that share a GPU are at most FL_SHARES_MAX, on whichever GPU. */
static void test_streams_of_each(void) {
    for (uint32_t gpu = 0; gpu < 2; gpu++)
        for (int over = 0; over < 2; over++) {
            fx_rig r;
            fx_open(&r, 2);
            const uint32_t c = fx_light(&r);
            fx_op(&r, fx_stream(&r, 1 - gpu, 0), 0, 10, c);
            for (int i = 0; i < FL_SHARES_MAX + over; i++)
                fx_op(&r, fx_stream(&r, gpu, i), 0, 10, c);
            fl_diag d = {0};
            const fl_status status = fl_workload_finish(r.w, 1, &d);
            FL_CHECK(over ? status == FL_BAD_INPUT && strstr(d.message, "streams on GPU") : !status, "GPU %u: '%s'",
                     gpu, d.message);
            fx_close(&r);
        }
}

/* The host time before a launch is of the kind that the launched op says, also behind a launch of several ops. */
static void test_host_loads(void) {
    fx_rig r;
    fx_open(&r, 1);
    const uint32_t plain = fx_light(&r), loaded = fx_light(&r), s = fx_stream(&r, 0, 0), t = fx_thread(&r);
    uint32_t id, again, other;
    FX_MUST(fl_workload_add_host_load(r.w, &(fl_host_load){0.5, 1, 2, 3}, &id, d));
    FX_MUST(fl_workload_add_host_load(r.w, &(fl_host_load){0.5, 1, 2, 4}, &other, d));
    FX_MUST(fl_workload_add_host_load(r.w, &(fl_host_load){0.5, 1, 2, 3}, &again, d));
    FL_CHECK(id == 1 && other == 2 && again == 1, "equal loads share an entry: %u %u %u", id, other, again);
    r.w->class[loaded].host = other;
    const uint32_t ops[] = {plain, plain, plain, loaded, plain, loaded};
    for (size_t i = 0; i < 6; i++)
        fx_op(&r, s, 0, 10, ops[i]);
    static const uint32_t want[] = {0, 2, 0, 2};
    fx_launch(&r, t, 5, s); /* three ops */
    r.w->thread[t].item[0].parts = 2;
    for (size_t i = 1; i < 4; i++)
        fx_launch(&r, t, 5, s);
    fx_finish(&r, 0);
    for (size_t i = 0; i < 4; i++)
        FL_CHECK(r.w->thread[t].item[i].load == want[i], "launch %zu: %u", i, r.w->thread[t].item[i].load);
    fx_close(&r);
}

/* Host time has the limit that ops have: a wait of a century would be simulated to its end. */
static void test_bad_items(void) {
    static const int64_t most = FL_DURATION_MAX_NS;
    const struct {
        int64_t host, after;
        fl_status status;
    } row[] = {{0, 0, FL_OK},
               {most, most, FL_OK},
               {-1, 0, FL_BAD_INPUT},
               {0, -1, FL_BAD_INPUT},
               {most + 1, 0, FL_BAD_INPUT},
               {0, most + 1, FL_BAD_INPUT},
               {0, INT64_C(3400000000000000000), FL_BAD_INPUT}};
    fx_rig r;
    fx_open(&r, 1);
    uint32_t s = fx_stream(&r, 0, 0), thread = fx_thread(&r);
    fx_op(&r, s, 0, 5, fx_light(&r));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int sync = 0; sync < 2; sync++) {
            fl_diag d = {0};
            const fl_item item = {.type = sync ? FL_ITEM_SYNC : FL_ITEM_LAUNCH,
                                  .host_ns = row[i].host,
                                  .after_ns = row[i].after,
                                  .stream = sync ? 0 : s};
            const fl_status status = fl_workload_add_item(r.w, thread, &item, &d);
            FL_CHECK(status == row[i].status && (!status || strstr(d.message, "25 hours")), "row %zu: %d '%s'", i,
                     status, d.message);
        }
    fx_close(&r);
}

static void test_most_classes(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t id = 0;
    for (uint32_t i = 0; i < 65535; i++) {
        id = fx_light(&r);
        if (id != i)
            break;
    }
    FL_CHECK(id == 65534, "the last class is %u", id);
    fl_load load = r.w->class[0].load;
    fl_kernel_kind kind = {.name = "more"};
    fl_diag d = {0};
    fl_status status = fl_workload_add_class(r.w, &load, &kind, &id, &d);
    FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, "65535"), "one more: %d '%s'", status, d.message);
    uint32_t s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 1000, 65534);
    fx_op(&r, s, 70000, 1000, 65534);
    check_op(&r.w->stream[s], 0, 0, 1000, 65534);
    check_op(&r.w->stream[s], 1, 70000, 1000, 65534);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    FL_CHECK(fl_node_now(n) == 72000000, "it ends at %lld ps", (long long)fl_node_now(n));
    fl_node_close(n);
    fx_close(&r);
}

static void test_most_streams(void) {
    for (uint32_t extra = 0; extra < 2; extra++) {
        fx_rig r;
        fx_open(&r, 2);
        uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
        for (uint32_t i = 0; i < 256 + extra; i++)
            fx_op(&r, fx_stream(&r, 0, (int32_t)i), 0, 1000, c);
        fx_op(&r, fx_stream(&r, 1, 0), 0, 1000, c); /* another GPU's does not count */
        fl_diag diag = {0};
        fl_status status = fl_workload_finish(r.w, 4, &diag);
        if (extra) {
            FL_CHECK(status == FL_BAD_INPUT && strstr(diag.message, "257 streams") && strstr(diag.message, "256"),
                     "%d '%s'", status, diag.message);
        } else {
            FL_CHECK(status == FL_OK, "256 streams: '%s'", diag.message);
            FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
            fl_node *n = fx_node(&r, 0, false);
            fx_to_end(n); /* each at 1/256 of its speed */
            FL_CHECK(fl_node_now(n) == 256000000, "256 equal kernels end at %lld ps", (long long)fl_node_now(n));
            fl_node_close(n);
        }
        fx_close(&r);
    }
}

static void test_waits_are_kept(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1);
    fx_op(&r, a, 0, 10, c);
    fx_op(&r, b, 0, 10, c);
    fx_op(&r, b, 0, 10, c);
    fx_wait(&r, b, a, 1);
    fx_wait(&r, b, a, 2);
    fx_op(&r, b, 0, 10, c);
    fx_op(&r, b, 0, 10, c);
    fx_wait(&r, b, a, 3);
    static const uint32_t first[] = {0, 0, 2, 2, 3};
    const fl_stream *s = &r.w->stream[b];
    for (int i = 0; i < 5; i++)
        FL_CHECK(s->wait_first[i] == first[i], "op %d's waits begin at %u, expected %u", i, s->wait_first[i], first[i]);
    FL_CHECK(s->wait[0].done == 1 && s->wait[1].done == 2 && s->wait[2].done == 3 && s->wait[2].stream == a,
             "the waits");
    fx_close(&r);
}

static void test_islands(void) {
    fx_rig r;
    fx_open(&r, 4);
    uint32_t c = fx_light(&r), s[4];
    for (uint32_t i = 0; i < 4; i++) {
        s[i] = fx_stream(&r, i, 0);
        fx_op(&r, s[i], 0, 1000, c);
    }
    fx_op(&r, s[3], 0, 1000, c);
    fx_wait(&r, s[3], s[1], 1); /* joins GPUs 1 and 3 */
    fx_finish(&r, 0);
    FL_CHECK(r.w->island_count == 3, "%u islands", r.w->island_count);
    FL_CHECK(r.w->island[0].lone && r.w->island[2].lone && !r.w->island[1].lone, "only GPUs 0 and 2 are alone");
    FL_CHECK(r.w->island[1].gpu_count == 2 && r.w->island[1].gpu[0] == 1 && r.w->island[1].gpu[1] == 3,
             "GPUs 1 and 3 meet");
    fx_close(&r);

    fx_open(&r, 4);
    c = fx_light(&r);
    uint32_t thread = fx_thread(&r);
    for (uint32_t i = 0; i < 4; i++) {
        s[i] = fx_stream(&r, i, 0);
        fx_op(&r, s[i], 0, 1000, c);
    }
    fx_launch(&r, thread, 0, s[0]);
    fx_launch(&r, thread, 0, s[2]); /* one thread launches on GPUs 0 and 2 and waits for 3 */
    fx_sync(&r, thread, 0, 0, s[3], 1);
    fx_finish(&r, 0);
    FL_CHECK(r.w->island_count == 2 && r.w->island[0].gpu_count == 3 && r.w->island[1].lone, "a thread joins its GPUs");
    fx_close(&r);
}

/* Windows of work: every mark ascends, the last is the end, and no window is larger than its share and one op. */
static void test_marks(void) {
    for (uint64_t seed = 1; seed <= 50; seed++) {
        fl_random g = fl_random_seed(seed, 3);
        fx_rig r;
        fx_open(&r, 1);
        fx_random_classes(&r, &g, 3, 1);
        uint32_t s = fx_stream(&r, 0, 0), windows = 1 + (uint32_t)fl_random_below(&g, 20);
        fx_random_ops(&r, &g, s, 1 + fl_random_below(&g, 200), 50000);
        fx_finish(&r, windows);
        const fl_stream *st = &r.w->stream[s];
        FL_CHECK(st->mark_count >= 1 && st->mark_count <= windows, "seed %llu: %u marks for %u windows",
                 (unsigned long long)seed, st->mark_count, windows);
        for (uint32_t i = 1; i < st->mark_count; i++)
            FL_CHECK(st->mark[i] > st->mark[i - 1], "seed %llu: mark %u does not ascend", (unsigned long long)seed, i);
        FL_CHECK(st->mark[st->mark_count - 1] == st->count, "seed %llu: the last mark", (unsigned long long)seed);
        fl_node *n[2] = {fx_node(&r, 0, false), fx_node(&r, 0, true)};
        for (int i = 0; i < 2; i++)
            fx_to_end(n[i]);
        const int64_t *a = fl_node_marks(n[0], s), *b = fl_node_marks(n[1], s);
        for (uint32_t i = 0; i < st->mark_count; i++)
            FL_CHECK(a[i] == b[i] && a[i] <= fl_node_now(n[0]), "seed %llu: mark %u at %lld and %lld",
                     (unsigned long long)seed, i, (long long)a[i], (long long)b[i]);
        FL_CHECK(a[st->mark_count - 1] == fl_node_now(n[0]), "seed %llu: the last mark is the end",
                 (unsigned long long)seed);
        fl_node_close(n[0]);
        fl_node_close(n[1]);
        fx_close(&r);
    }
}

static void test_small_streams(void) {
    fx_rig r; /* one op; no op; only ops without length */
    fx_open(&r, 3);
    uint32_t c = fx_light(&r);
    fx_op(&r, fx_stream(&r, 0, 0), 5, 7, c);
    fx_stream(&r, 1, 0);
    uint32_t s = fx_stream(&r, 2, 0);
    for (int i = 0; i < 100; i++)
        fx_op(&r, s, 0, 0, c);
    fx_finish(&r, 5);
    for (int only = 0; only < 2; only++) {
        fl_node *n = fx_node(&r, 0, only);
        fx_to_end(n);
        FL_CHECK(fl_node_now(n) == 12000, "it ends at %lld ps, expected 12000", (long long)fl_node_now(n));
        FL_CHECK(fl_node_gpu(n, 0)->sums.kernels == 1 && fl_node_gpu(n, 1)->sums.kernels == 0 &&
                     fl_node_gpu(n, 2)->sums.kernels == 100,
                 "kernels counted wrongly");
        fl_wide expected = INT64_C(12000) * 40000 + INT64_C(7000) * 100000 + 2 * INT64_C(12000) * 8000;
        FL_CHECK(fx_energy(n) == expected, "%g fJ, expected %g", fx_f(fx_energy(n)), fx_f(expected));
        fl_node_close(n);
    }
    fx_close(&r);
}

FL_SUITE("workload", {"escapes", test_escapes}, {"bad ops", test_bad_ops}, {"unsound", test_unsound},
         {"streams of each GPU", test_streams_of_each}, {"host loads", test_host_loads},
         {"bad host times", test_bad_items}, {"most classes", test_most_classes}, {"most streams", test_most_streams},
         {"waits", test_waits_are_kept}, {"islands", test_islands}, {"marks", test_marks},
         {"small streams", test_small_streams})
