/* Several streams, host threads and GPUs: cases by hand, order, and a second simulator that shares no line with the
 * first. */
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
#include "tests/support/node_fixture.h"
#include "tests/support/sim_reference.h"

/* ---- by hand ---- */

static void check_end(const char *what, const fl_node *n, double end_s, double joules) {
    FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), end_s, 2e-5), "%s: %.9g s, expected %.9g", what,
             fl_seconds(fl_node_now(n)), end_s);
    FL_CHECK(fx_near(fl_joules(fx_energy(n)), joules, 2e-5), "%s: %.9g J, expected %.9g", what, fl_joules(fx_energy(n)),
             joules);
}

/* Two kernels, or three, of `ms` each from 0 on; ends by hand. Base 40 W; a kernel draws its dynamic power times its
 * rate. */
static void test_shares_by_hand(void) {
    static const struct {
        const char *what;
        struct {
            double tc, tm, alpha, beta, sms, ms;
        } k[3];
        double end_ms[3];
    } rows[] = {
        /* 1 + 1 > 1: both at 1/2; the first ends after 2 ms, the other has 1 ms left and runs alone */
        {"all SMs, twice", {{1, 0, 1, 0, 1, 1}, {1, 0, 1, 0, 1, 2}}, {2, 3}},
        /* 0.25 has its demand, the other gets 0.75 of 1 */
        {"a small one beside a large one", {{1, 0, 1, 0, 0.25, 2}, {1, 0, 1, 0, 1, 3}}, {2, 3.5}},
        /* SMs suffice, bandwidth does not: 1 + 1 > 1 */
        {"all bandwidth, twice", {{0, 1, 0.2, 1, 0.3, 1}, {0, 1, 0.1, 1, 0.3, 1}}, {2, 2}},
        /* bandwidth 0.3 and 1: the second gets 0.7 until the first ends at 1 ms, then all */
        {"little and all bandwidth", {{1, 0.3, 0.2, 0.3, 0.3, 1}, {0, 1, 0.1, 1, 0.3, 2}}, {1, 2.3}},
        /* SM demands 1/4, 5/8, 3/4: fair shares 1/4, 3/8, 3/8, so rates 1, 3/5, 1/2. At 1 ms the first ends and the
           others get a half each: rates 4/5 and 2/3. The second has 0.4 left, so it ends at 1.5; the third has 1.5 -
           1/3 left then. */
        {"three by max-min", {{1, 0, 1, 0, 0.25, 1}, {1, 0, 1, 0, 0.625, 1}, {1, 0, 1, 0, 0.75, 2}}, {1, 1.5, 8.0 / 3}},
        /* bandwidth 0.2, 0.5, 1: level 0.4: rates 1, 0.8, 0.4. At 1 ms the first ends; 0.5 has its half, the third 0.5:
           the second has 0.2 left and ends at 1.2; the third has 2 - 0.4 - 0.1 = 1.5 left */
        {"three by bandwidth", {{1, 0.2, 0, 0, 0.1, 1}, {1, 0.5, 0, 0, 0.1, 1}, {0, 1, 0, 0, 0.1, 2}}, {1, 1.2, 2.7}},
        /* SMs first: 1 and 1 get a half each; what they then ask of the bandwidth is 0.5 + 0.5, which fits */
        {"SMs, then bandwidth", {{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, {2, 2}},
        {"a third that needs no SM", {{1, 0, 1, 0, 1, 1}, {1, 0, 1, 0, 1, 1}, {1, 0, 0, 0, 0, 3}}, {2, 2, 3}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        double end = 0, joules = 0;
        uint32_t count = rows[i].k[2].ms > 0 ? 3 : 2;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t c = fx_class(&r, rows[i].k[k].tc, rows[i].k[k].tm, 0, rows[i].k[k].alpha, rows[i].k[k].beta,
                                  rows[i].k[k].sms);
            fx_op(&r, fx_stream(&r, 0, (int32_t)k), 0, (int64_t)(rows[i].k[k].ms * 1e6), c);
            end = fmax(end, rows[i].end_ms[k] * 1e-3);
            joules += rows[i].k[k].ms * 1e-3 * (rows[i].k[k].alpha * 100 + rows[i].k[k].beta * 50);
        }
        fx_finish(&r, 1);
        fl_node *n = fx_node(&r, 0, false);
        fx_to_end(n);
        check_end(rows[i].what, n, end, joules + end * 40);
        for (uint32_t k = 0; k < count; k++)
            FL_CHECK(fx_near((double)fl_node_marks(n, k)[0], rows[i].end_ms[k] * 1e9, 2e-5),
                     "%s: kernel %u ends at %lld ps", rows[i].what, k, (long long)fl_node_marks(n, k)[0]);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Shares round down to 1/65536, work done rounds down and ends round up to a picosecond: of three that want all SMs
 * each runs at 21845/65536 until the first ends, then two at a half, then the longest alone. */
static void test_rounding(void) {
    for (int64_t i = 0; i < 300; i++) { /* short ones, and some around 2^36 and 2^46 ps */
        int64_t work = i < 250 ? 1 + 7 * i : i < 275 ? 68719450 + 3 * (i - 250) : 70368743900 + 17 * (i - 275);
        fx_rig r;
        fx_open(&r, 1);
        uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
        int64_t left[3] = {work * 1000, 2 * work * 1000 + 5000, 3 * work * 1000 + 11000}, end[3];
        for (int k = 0; k < 3; k++)
            fx_op(&r, fx_stream(&r, 0, k), 0, left[k] / 1000, c);
        fx_finish(&r, 1);
        end[0] = (int64_t)(((fl_wide)left[0] * 65536 + 21844) / 21845);
        for (int k = 1; k < 3; k++)
            left[k] -= (int64_t)((fl_wide)end[0] * 21845 / 65536);
        end[1] = end[0] + 2 * left[1];
        end[2] = end[1] + left[2] - left[1];
        fl_node *n = fx_node(&r, 0, false);
        fx_to_end(n);
        for (uint32_t k = 0; k < 3; k++)
            FL_CHECK(fl_node_marks(n, k)[0] == end[k], "%lld ns, kernel %u ends at %lld ps, expected %lld",
                     (long long)work, k, (long long)fl_node_marks(n, k)[0], (long long)end[k]);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* What ends at one instant is taken away, what follows it begins, and only then are shares set: the third stream keeps
 * its rate beside two streams of short equal kernels and is never rounded on the way. */
static void test_shares_are_set_once(void) {
    for (int gaps = 0; gaps < 2; gaps++) {
        fx_rig r;
        fx_open(&r, 1);
        uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1);
        uint32_t longest = fx_stream(&r, 0, 2), last = gaps ? fx_stream(&r, 0, 3) : 0;
        for (int i = 0; i < 1000; i++) {
            fx_op(&r, a, 0, 1001, c);
            fx_op(&r, b, 0, 1001, c);
        }
        fx_op(&r, longest, 0, 900007, c);
        if (gaps) /* a wait: the way for streams that depend on each other */
            fx_op(&r, last, 0, 1, c), fx_wait(&r, last, a, 1000);
        fx_finish(&r, 1);
        fl_node *n = fx_node(&r, 0, false);
        fx_to_end(n);
        int64_t end = (INT64_C(900007000) * 65536 + 21844) / 21845;
        FL_CHECK(fl_node_marks(n, longest)[0] == end, "way %d: it ends at %lld ps, expected %lld", gaps,
                 (long long)fl_node_marks(n, longest)[0], (long long)end);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A clock change while two share: both rates of progress change, the shares stay. */
static void test_shared_change(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, c);
    fx_op(&r, fx_stream(&r, 0, 1), 0, 1000000, c);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_set(n, 0, FX_MS_PS, 500, NAN);
    fx_advance(n, FX_MS_PS);
    FL_CHECK(fl_node_gpu(n, 0)->slot[0].class_ps[c] == FX_MS_PS, "half of each is done");
    fx_to_end(n);
    check_end("a shared change", n, 3e-3, 1e-3 * 140 + 2e-3 * 85);
    fl_node_close(n);
    fx_close(&r);
}

/* A copy holds no SM and is no kernel; a marker counts as an iteration. */
static void test_copies_and_markers(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), copy = fx_class(&r, 0, 1, 0, 0, 0.5, 1),
             mark = fx_class(&r, 1, 0, 0, 0, 0, 1);
    r.w->class[copy].copy = true;
    r.w->class[mark].iteration = true;
    uint32_t s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 1000000, c);
    fx_op(&r, s, 0, 0, mark);
    fx_op(&r, s, 0, 1000000, c);
    fx_op(&r, s, 0, 0, mark);
    fx_op(&r, fx_stream(&r, 0, 1), 0, 3000000, copy);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_records(n, 0, true);
    fx_to_end(n);
    const fl_gpu *g = fl_node_gpu(n, 0);
    FL_CHECK(g->sums.kernels == 2 && g->sums.iterations == 2, "%llu kernels, %llu iterations",
             (unsigned long long)g->sums.kernels, (unsigned long long)g->sums.iterations);
    FL_CHECK(g->sums.busy_ps == 2 * FX_MS_PS, "a kernel was resident for %lld ps", (long long)g->sums.busy_ps);
    FL_CHECK(fl_node_now(n) == 3 * FX_MS_PS, "the copy slows nothing: %lld ps", (long long)fl_node_now(n));
    const fl_kernel_record *k;
    size_t count;
    FX_MUST(fl_node_take_records(n, &k, &count, d));
    FL_CHECK(count == 2 && k[0].end_ns == 1000000 && k[1].end_ns == 2000000, "%zu records", count);
    fl_node_close(n);
    fx_close(&r);
}

/* ---- waits, launches, synchronisations ---- */

static void check_marks(const char *what, const fl_node *n, uint32_t stream, const int64_t *us, size_t count) {
    const int64_t *mark = fl_node_marks(n, stream);
    for (size_t i = 0; i < count; i++)
        FL_CHECK(mark[i] == us[i] * FX_US_PS, "%s: op %zu of stream %u ends at %.3f us, expected %lld", what, i, stream,
                 (double)mark[i] * 1e-6, (long long)us[i]);
}

/* Equal ops and windows as many as ops: each mark is an op's end. */
static void test_event_waits(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1), q = fx_stream(&r, 1, 0);
    for (int i = 0; i < 3; i++)
        fx_op(&r, a, 0, 10000, c); /* 0-10, 10-20, then waits */
    fx_wait(&r, a, b, 1);
    fx_wait(&r, a, q, 2);
    fx_op(&r, b, 0, 10000, c);
    fx_wait(&r, b, a, 1); /* 10-20 */
    fx_op(&r, b, 0, 10000, c);
    fx_wait(&r, b, a, 3);
    fx_op(&r, q, 0, 10000, c); /* 0-10 */
    fx_op(&r, q, 5000, 10000, c);
    fx_wait(&r, q, b, 1); /* from 20 on, then 5 of gap: 25-35 */
    fx_finish(&r, 3);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n); /* a's third: 35-45; b's second: 45-55 */
    check_marks("event waits", n, a, (const int64_t[]){10, 20, 45}, 3);
    check_marks("event waits", n, b, (const int64_t[]){20, 55}, 2);
    FL_CHECK(fl_node_now(n) == 55 * FX_US_PS, "the node ends at %lld ps", (long long)fl_node_now(n));
    fl_wide fj = (fl_wide)55 * FX_US_PS * 2 * 40000 + (fl_wide)70 * FX_US_PS * 100000;
    FL_CHECK(fx_energy(n) == fj, "energy %g, expected %g", fx_f(fx_energy(n)), fx_f(fj));
    fl_node_close(n);
    fx_close(&r);
}

/* A clock change on one GPU shifts what waits for it on another. */
static void test_wait_across_a_change(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), q = fx_stream(&r, 1, 0);
    fx_op(&r, a, 0, 10000, c);
    fx_op(&r, q, 0, 10000, c);
    fx_wait(&r, q, a, 1);
    fx_finish(&r, 1);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_set(n, 0, 5 * FX_US_PS, 500, NAN);
    fl_node_set(n, 1, 20 * FX_US_PS, 500, NAN);
    fx_to_end(n); /* a: 5 at full, 5 at half: 15; q: 15-20 at full, the rest at half: 30 */
    check_marks("across a change", n, a, (const int64_t[]){15}, 1);
    check_marks("across a change", n, q, (const int64_t[]){30}, 1);
    fl_node_close(n);
    fx_close(&r);
}

static void test_launches(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1), t = fx_thread(&r);
    for (int i = 0; i < 3; i++)
        fx_op(&r, a, 2000, 10000, c);
    for (int i = 0; i < 2; i++)
        fx_op(&r, b, 0, 10000, c);
    fx_launch(&r, t, 3000, a);         /* at 3: 2 of gap, runs 5-15 */
    fx_launch(&r, t, 4000, a);         /* at 7: after 15, and 2 of gap: 17-27 */
    fx_launch(&r, t, 1000, b);         /* at 8: 8-18 */
    fx_sync(&r, t, 1000, 5000, a, 2);  /* at 9: until 27, returns at 32 */
    fx_launch(&r, t, 7000, b);         /* at 39: 39-49 */
    fx_sync(&r, t, 20000, 1000, b, 1); /* at 59: long over, returns at 60 */
    fx_launch(&r, t, 0, a);            /* at 60: 62-72 */
    fx_sync(&r, t, 0, 4000, a, 3);     /* until 72, returns at 76: the program ends there */
    fx_finish(&r, 3);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    const fl_stream *s = &r.w->stream[a];
    FL_CHECK(s->mark_count == 3, "%u marks", s->mark_count);
    check_marks("launches", n, a, (const int64_t[]){15, 27, 72}, 3);
    check_marks("launches", n, b, (const int64_t[]){18, 49}, 2);
    FL_CHECK(fl_node_now(n) == 76 * FX_US_PS, "the program ends at %lld ps", (long long)fl_node_now(n));
    fl_node_close(n);
    fx_close(&r);
}

/* A queue of two: the third launch waits until an op of the stream has finished, and so does all after it. */
static void test_full_queue(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1), t = fx_thread(&r);
    for (int i = 0; i < 4; i++)
        fx_op(&r, a, 0, 10000, c);
    fx_op(&r, b, 0, 10000, c);
    for (int i = 0; i < 4; i++)
        fx_launch(&r, t, 1000, a); /* at 1, 2; at 3 full until 11; at 12 full until 21 */
    fx_launch(&r, t, 3000, b);     /* at 24 */
    fx_finish(&r, 4);
    r.w->launch_queue = 2;
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    check_marks("a full queue", n, a, (const int64_t[]){11, 21, 31, 41}, 4);
    check_marks("a full queue", n, b, (const int64_t[]){34}, 1);
    fl_node_close(n);
    fx_close(&r);
}

/* Two host threads: one waits for what the other launches, on another GPU. */
static void test_two_threads(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), q = fx_stream(&r, 1, 0), t = fx_thread(&r), u = fx_thread(&r);
    fx_op(&r, a, 0, 10000, c);
    fx_op(&r, q, 0, 10000, c);
    fx_launch(&r, t, 2000, a);     /* 2-12 */
    fx_sync(&r, u, 0, 1000, a, 1); /* until 12, returns at 13 */
    fx_launch(&r, u, 2000, q);     /* at 15 */
    fx_sync(&r, t, 0, 0, q, 1);    /* until 25 */
    fx_finish(&r, 1);
    FL_CHECK(r.w->island_count == 1, "%u islands", r.w->island_count);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    check_marks("two threads", n, a, (const int64_t[]){12}, 1);
    check_marks("two threads", n, q, (const int64_t[]){25}, 1);
    FL_CHECK(fl_node_now(n) == 25 * FX_US_PS, "the node ends at %lld ps", (long long)fl_node_now(n));
    fl_node_close(n);
    fx_close(&r);
}

static void stuck_cycle(fx_rig *r, uint32_t c) {
    uint32_t a = fx_stream(r, 0, 41), b = fx_stream(r, 0, 42);
    fx_op(r, a, 0, 1000, c);
    fx_op(r, a, 0, 1000, c);
    fx_wait(r, a, b, 1);
    fx_op(r, b, 0, 1000, c);
    fx_wait(r, b, a, 2);
}

static void stuck_on_itself(fx_rig *r, uint32_t c) {
    uint32_t a = fx_stream(r, 0, 41);
    fx_op(r, a, 0, 1000, c);
    fx_wait(r, a, a, 1);
}

/* What can be seen before the run is refused when the workload is closed. */
static void stuck_beyond_the_end(fx_rig *r, uint32_t c) {
    uint32_t a = fx_stream(r, 0, 40), b = fx_stream(r, 1, 41);
    fx_op(r, a, 0, 1000, c);
    fx_op(r, b, 0, 1000, c);
    fx_wait(r, b, a, 2);
}

static void stuck_not_launched(fx_rig *r, uint32_t c) {
    uint32_t a = fx_stream(r, 0, 41), t = fx_thread(r);
    fx_op(r, a, 0, 1000, c);
    fx_op(r, a, 0, 1000, c);
    fx_launch(r, t, 10, a);
}

static void stuck_beyond_sync(fx_rig *r, uint32_t c) {
    uint32_t a = fx_stream(r, 0, 41), t = fx_thread(r);
    fx_op(r, a, 0, 1000, c);
    fx_launch(r, t, 10, a);
    fx_sync(r, t, 0, 0, a, 2);
}

/* The thread waits for an op that it launches later; the other stream's work goes on meanwhile. */
static void stuck_sync(fx_rig *r, uint32_t c) {
    uint32_t a = fx_stream(r, 0, 40), t = fx_thread(r);
    fx_op(r, fx_stream(r, 0, 39), 0, 1000000, c);
    fx_op(r, a, 0, 1000, c);
    fx_sync(r, t, 10, 0, a, 1);
    fx_launch(r, t, 10, a);
}

/* Deadlocks end with a clear line, with and without a policy. */
static void test_stuck(void) {
    static const struct {
        const char *what, *text; /* NULL: refused before the run */
        void (*build)(fx_rig *r, uint32_t c);
    } rows[] = {{"a cycle", "stream 41", stuck_cycle},
                {"a wait for itself", "stream 41", stuck_on_itself},
                {"a wait beyond the end", NULL, stuck_beyond_the_end},
                {"never launched", "stream 41", stuck_not_launched},
                {"a sync beyond the end", NULL, stuck_beyond_sync},
                {"a sync for ever", "for ever", stuck_sync}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int mode = -1; mode <= FX_RANDOM; mode++) {
            fx_rig r;
            fx_open(&r, 2);
            rows[i].build(&r, fx_light(&r));
            fl_run_result result;
            fl_diag diag = {0};
            if (!rows[i].text) {
                fl_status refused = fl_workload_finish(r.w, 2, &diag);
                FL_CHECK(refused == FL_BAD_INPUT && strstr(diag.message, "does not exist"), "%s: %d '%s'", rows[i].what,
                         refused, diag.message);
                fx_close(&r);
                break;
            }
            fx_finish(&r, 2);
            fl_status s = fx_try(&r, &(fx_how){.mode = mode}, &result, &diag);
            FL_CHECK(s == FL_BAD_INPUT && strstr(diag.message, rows[i].text) && strstr(diag.message, "for ever"),
                     "%s, mode %d: status %d, '%s'", rows[i].what, mode, s, diag.message);
            fx_close(&r);
        }
}

/* ---- with a host CPU ---- */

/* A node at 1000 MHz, where the CPU-bound part of host time takes twice as long. */
static fl_node *slow_host(const fx_rig *r) {
    fl_node *n = fx_node(r, 0, false);
    FL_CHECK(fl_node_set_cpu(n, 0, 1000, 0, (double)NAN), "the CPU is modelled");
    return n;
}

/* Host time before each launch is of the kind that the launched op says: the CPU clock stretches it by that, and it is
 * counted there. After the last synchronisation it is of the platform's kind: half of it bound. */
static void test_item_loads(void) {
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    const uint32_t free = fx_light(&r), bound = fx_light(&r), plain = fx_light(&r);
    FX_MUST(fl_workload_add_host_load(r.w, &(fl_host_load){.bound = 0, .alpha = 1}, &r.w->class[free].host, d));
    FX_MUST(fl_workload_add_host_load(r.w, &(fl_host_load){.bound = 1, .alpha = 1}, &r.w->class[bound].host, d));
    const uint32_t s = fx_stream(&r, 0, 0), t = fx_thread(&r), order[] = {free, bound, plain, bound, free};
    for (size_t i = 0; i < 5; i++) {
        fx_op(&r, s, 0, 10000, order[i]);
        fx_launch(&r, t, 100000, s); /* at 100, 300, 450, 650, 750 us */
    }
    fx_sync(&r, t, 0, 100000, s, 5); /* until 760, returns at 910 */
    fx_finish(&r, 5);
    fl_node *n = slow_host(&r);
    fx_to_end(n);
    check_marks("loads", n, s, (const int64_t[]){110, 310, 460, 660, 760}, 5);
    FL_CHECK(fl_node_now(n) == 910 * FX_US_PS, "the thread ends at %lld ps", (long long)fl_node_now(n));
    const int64_t *time = fl_node_cpu(n)->slot[0].time_ps;
    FL_CHECK(time[0] == 300 * FX_US_PS && time[1] == 200 * FX_US_PS && time[2] == 400 * FX_US_PS,
             "computed %lld, %lld, %lld ps", (long long)time[0], (long long)time[1], (long long)time[2]);
    fl_node_close(n);
    fx_close(&r);
}

/* One launch starts all phases of its kernel, and each takes its place in the queue. */
static void test_parts(void) {
    fx_rig r;
    fx_open(&r, 1);
    const uint32_t part = fx_light(&r), last = fx_light(&r), s = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1);
    const uint32_t t = fx_thread(&r);
    r.w->class[part].part = true;
    for (int i = 0; i < 3; i++) {
        fx_op(&r, s, 0, 10000, part);
        fx_op(&r, s, 0, 10000, part);
        fx_op(&r, s, 0, 10000, last);
        const fl_item item = {.type = FL_ITEM_LAUNCH, .host_ns = 1000, .stream = s, .parts = 2};
        FX_MUST(fl_workload_add_item(r.w, t, &item, d)); /* at 1; at 2; at 3 full until 31 */
    }
    fx_op(&r, b, 0, 10000, last);
    fx_launch(&r, t, 1000, b); /* at 32 */
    r.w->launch_queue = 4;     /* the second launch still finds room, and makes six */
    fx_finish(&r, 9);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    check_marks("parts", n, s, (const int64_t[]){11, 21, 31, 41, 51, 61, 71, 81, 91}, 9);
    check_marks("parts", n, b, (const int64_t[]){42}, 1);
    FL_CHECK(fl_node_gpu(n, 0)->sums.kernels == 4, "%llu kernels", (unsigned long long)fl_node_gpu(n, 0)->sums.kernels);
    fl_node_close(n);
    fx_close(&r);
}

/* The gaps of a stream without launches are host time, and on an APU they take their share of the bus beside another
 * stream's kernel. The bus holds 80 GB/s, all of which the kernel wants; at rate 1 the gap wants 16, or all too. */
static void test_gap_traffic(void) {
    static const struct {
        double bytes_per_s;
        int64_t gap_ms, kernel_ms, gap_end_ms, kernel_end_ms;
        const char *what;
    } rows[] = {
        {0, 300, 80, 300, 80, "a gap that moves nothing"},
        {16e9, 300, 80, 300, 100, "a gap that takes a fifth"},
        {16e9, 40, 80, 40, 88, "until it is over"},
        {80e9, 100, 80, 180, 160, "a gap that shares evenly, and is held back itself"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        nx_cpu(&r);
        nx_apu(&r);
        r.spec.host.budget_w = 0;
        r.spec.host.bus_min = r.spec.host.bus_max = 0.8;
        r.spec.host.cpu.bytes_per_s = rows[i].bytes_per_s;
        r.spec.host.cpu.bound = 0;
        const uint32_t all = fx_class(&r, 0.1, 1, 0, 0, 1, 0.5), light = fx_light(&r);
        const uint32_t kernel = fx_stream(&r, 0, 0), gap = fx_stream(&r, 0, 1);
        fx_op(&r, kernel, 0, rows[i].kernel_ms * 1000000, all);
        fx_op(&r, gap, rows[i].gap_ms * 1000000, 1000000, light);
        fx_finish(&r, 1);
        fl_node *n = fx_node(&r, 0, false);
        fx_to_end(n);
        FL_CHECK(fx_near((double)fl_node_marks(n, kernel)[0], (double)(rows[i].kernel_end_ms * FX_MS_PS), 1e-4),
                 "%s: the kernel ends at %lld ps", rows[i].what, (long long)fl_node_marks(n, kernel)[0]);
        FL_CHECK(fx_near((double)fl_node_marks(n, gap)[0], (double)((rows[i].gap_end_ms + 1) * FX_MS_PS), 1e-4),
                 "%s: the op behind the gap ends at %lld ps", rows[i].what, (long long)fl_node_marks(n, gap)[0]);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A host thread that has ended, recorded or of a stream without launches, waits for nothing any more: it draws no
 * power. */
static void test_ended_threads(void) {
    for (int threads = 0; threads < 2; threads++) {
        fx_rig r;
        fx_open(&r, 1);
        nx_cpu(&r);
        r.spec.host.cpu.bound = 0;
        const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1);
        fx_op(&r, a, threads ? 0 : 10000, 90000, c);  /* until 100 us: computes 10, waits 90 */
        fx_op(&r, b, threads ? 0 : 10000, 990000, c); /* until 1000 us: computes 10, waits 990 */
        if (threads) {
            const uint32_t t[] = {fx_thread(&r), fx_thread(&r)};
            for (int i = 0; i < 2; i++) {
                fx_launch(&r, t[i], 10000, i ? b : a);
                fx_sync(&r, t[i], 0, 0, i ? b : a, 1);
            }
        }
        fx_finish(&r, 1);
        fl_node *n = slow_host(&r);
        fx_to_end(n);
        const fl_cpu_slot *slot = &fl_node_cpu(n)->slot[0];
        FL_CHECK(slot->time_ps[0] == 20 * FX_US_PS && slot->wait_ps == (90 + 990) * FX_US_PS,
                 "recorded %d: computed %lld ps, waited %lld", threads, (long long)slot->time_ps[0],
                 (long long)slot->wait_ps);
        const fl_wide fj = FX_US_PS * (fl_wide)(1000 * 10000 + 20 * 5000 + 1080 * 2500);
        FL_CHECK(fl_node_cpu(n)->sums.cpu_fj == fj, "recorded %d: %.12g J, expected %.12g", threads,
                 fl_joules(fl_node_cpu(n)->sums.cpu_fj), fl_joules(fj));
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- order ---- */

enum { ORDER_STREAMS = 7, ORDER_CLASSES = 5 };

typedef struct plan { /* of a workload, before its streams and classes have places */
    fl_load load[ORDER_CLASSES];
    int64_t gap[ORDER_STREAMS][40], work[ORDER_STREAMS][40];
    uint32_t class_id[ORDER_STREAMS][40];
    int wait_stream[ORDER_STREAMS][40]; /* -1: none; else for all ops of that stream before this one's number */
    bool waits, equal;
} plan;

static void make_plan(plan *p, uint64_t seed) {
    fl_random g = fl_random_seed(seed, 31);
    p->waits = seed % 2;
    p->equal = seed % 3 == 0; /* all streams alike: every event is simultaneous with six others */
    for (int i = 0; i < ORDER_CLASSES; i++)
        p->load[i] = (fl_load){.tc = fl_random_unit(&g),
                               .tm = fl_random_unit(&g),
                               .tl = 0.1,
                               .alpha = fl_random_unit(&g),
                               .beta = fl_random_unit(&g),
                               .sm_demand = fl_random_unit(&g),
                               .ref_sm_mhz = 1000,
                               .ref_mem_mhz = 800};
    for (int s = 0; s < ORDER_STREAMS; s++)
        for (int i = 0; i < 40; i++) {
            p->gap[s][i] = fl_random_below(&g, 2) ? 0 : 1000;
            p->work[s][i] = 1000 * (int64_t)fl_random_below(&g, 20); /* coarse, so that many end together */
            p->class_id[s][i] = (uint32_t)fl_random_below(&g, ORDER_CLASSES);
            p->wait_stream[s][i] = fl_random_below(&g, 4) ? -1 : (int)fl_random_below(&g, ORDER_STREAMS);
            if (p->equal && s) {
                p->gap[s][i] = p->gap[0][i];
                p->work[s][i] = p->work[0][i];
                p->class_id[s][i] = p->class_id[0][i];
            }
        }
}

static void shuffle(fl_random *g, uint32_t *v, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        v[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = (uint32_t)fl_random_below(g, i), x = v[i - 1];
        v[i - 1] = v[k];
        v[k] = x;
    }
}

static void run_plan(const plan *p, uint64_t order, fl_run_result *result) {
    fx_rig r;
    fx_open(&r, 2);
    r.facts.seed = 9;
    uint32_t stream_at[ORDER_STREAMS], class_at[ORDER_CLASSES], where[ORDER_STREAMS], id[ORDER_CLASSES];
    fl_random g = fl_random_seed(order, 32);
    shuffle(&g, stream_at, ORDER_STREAMS);
    shuffle(&g, class_at, ORDER_CLASSES);
    if (!order) {
        for (uint32_t i = 0; i < ORDER_STREAMS; i++)
            stream_at[i] = i;
        for (uint32_t i = 0; i < ORDER_CLASSES; i++)
            class_at[i] = i;
    }
    for (uint32_t i = 0; i < ORDER_CLASSES; i++)
        FX_MUST(fl_workload_add_class(r.w, &p->load[class_at[i]], &(fl_kernel_kind){.name = "k"}, &id[class_at[i]], d));
    for (uint32_t i = 0; i < ORDER_STREAMS; i++)
        where[stream_at[i]] =
            fx_stream(&r, stream_at[i] == 6, (int32_t)stream_at[i]); /* the last on a GPU of its own */
    for (uint32_t i = 0; i < ORDER_STREAMS; i++) {
        uint32_t s = stream_at[i];
        for (int k = 0; k < 40; k++) {
            fx_op(&r, where[s], p->gap[s][k], p->work[s][k], id[p->class_id[s][k]]);
            if (p->waits && p->wait_stream[s][k] >= 0)
                fx_wait(&r, where[s], where[p->wait_stream[s][k]], (uint64_t)k);
        }
    }
    fx_finish(&r, 0);
    fx_run(&r, &(fx_how){.mode = FX_RANDOM_BOTH, .step_us = 20}, result);
    fx_close(&r);
}

static void test_order(void) {
    for (uint64_t seed = 1; seed <= 24; seed++) {
        plan p;
        make_plan(&p, seed);
        fl_run_result a, b;
        run_plan(&p, 0, &a);
        FL_CHECK(a.switches > 2, "seed %llu: %llu switches", (unsigned long long)seed, (unsigned long long)a.switches);
        for (uint64_t order = 1; order <= 4; order++) {
            run_plan(&p, order, &b);
            FL_CHECK(a.makespan_ps == b.makespan_ps && a.energy_fj == b.energy_fj && a.kernels == b.kernels &&
                         a.switches == b.switches && fx_near(a.peak_power_w, b.peak_power_w, 0) &&
                         memcmp(&a.ledger, &b.ledger, sizeof a.ledger) == 0,
                     "seed %llu, order %llu: %lld and %lld ps, %.20g and %.20g fJ, peak %g and %g W",
                     (unsigned long long)seed, (unsigned long long)order, (long long)a.makespan_ps,
                     (long long)b.makespan_ps, fx_f(a.energy_fj), fx_f(b.energy_fj), a.peak_power_w, b.peak_power_w);
            fl_run_result_free(&b);
        }
        fl_run_result_free(&a);
    }
}

/* ---- against the second simulator ---- */

/* Rounds of ops over all streams; an op of round k waits only for rounds before it, so that nothing hangs. */
static void build_random(fx_rig *r, fl_random *g, uint32_t gpus, double sms_max, bool scarce, bool threads) {
    uint32_t streams = 2 + (uint32_t)fl_random_below(g, REF_STREAMS - 1), s[REF_STREAMS], t[REF_THREADS], rounds = 30;
    for (int i = 0; i < 5; i++) {
        double tc = fl_random_unit(g), tm = fl_random_unit(g);
        if (!scarce)
            tc = 1, tm *= 0.05; /* at every clock of the ladder all the streams' bandwidth fits */
        fx_class(r, tc, tm, 0.1, fl_random_unit(g), fl_random_unit(g), sms_max * fl_random_unit(g));
    }
    for (uint32_t i = 0; i < streams; i++)
        s[i] = fx_stream(r, i % gpus, (int32_t)i);
    uint32_t thread_count = threads ? 1 + (uint32_t)fl_random_below(g, REF_THREADS) : 0;
    for (uint32_t i = 0; i < thread_count; i++)
        t[i] = fx_thread(r);
    fx_op(r, s[0], 0, 3000000, 0); /* holds the GPUs together to the end */
    if (threads)
        fx_launch(r, t[0], 10, s[0]);
    for (uint32_t i = 1; i < streams; i++) {
        fx_op(r, s[i], 0, 1000, 0);
        fx_wait(r, s[i], s[0], 0);
        if (threads)
            fx_launch(r, t[i % thread_count], 10, s[i]);
    }
    for (uint32_t k = 1; k < rounds; k++) {
        for (uint32_t i = 0; i < streams; i++) {
            fx_op(r, s[i], (int64_t)fl_random_below(g, 3) * 3000, 20000 + (int64_t)fl_random_below(g, 300000),
                  (uint32_t)fl_random_below(g, 5));
            if (!fl_random_below(g, 3))
                fx_wait(r, s[i], s[fl_random_below(g, streams)], k - fl_random_below(g, 2));
            if (threads)
                fx_launch(r, t[i % thread_count], (int64_t)fl_random_below(g, 20000), s[i]);
        }
        for (uint32_t i = 0; i < thread_count; i++)
            if (!fl_random_below(g, 4))
                fx_sync(r, t[i], 2000, 3000, s[fl_random_below(g, streams)], k);
    }
    for (uint32_t i = 1; i < streams; i++) { /* all GPUs' contexts stay open to the end: they are one island */
        fx_op(r, s[0], 0, 1000, 0);
        fx_wait(r, s[0], s[i], 0);
        if (threads)
            fx_launch(r, t[0], 0, s[0]);
    }
    if (threads && fl_random_below(g, 2))
        fx_sync(r, t[0], 0, 7000, s[0], rounds + streams - 1);
}

static void against_reference(const char *what, uint64_t seed, bool scarce, bool threads, bool quantised,
                              double tolerance) {
    fl_random g = fl_random_seed(seed, 41);
    fx_rig r;
    uint32_t gpus = 1 + (uint32_t)(seed % 3);
    fx_open(&r, gpus);
    build_random(&r, &g, gpus, scarce ? 1 : 0.1, scarce, threads);
    fx_finish(&r, 1);
    r.w->launch_queue = 3;
    ref_change change[40];
    size_t changes = seed % 4 ? 40 : 0;
    int64_t at[40], t = 0;
    for (size_t i = 0; i < changes; i++) {
        at[i] = t += (int64_t)fl_random_below(&g, 500 * FX_US_PS);
        change[i] = (ref_change){.at = fl_seconds(t), .gpu = (uint32_t)fl_random_below(&g, gpus)};
        change[i].sm_mhz = fl_random_below(&g, 4) ? 500 + 100 * (double)fl_random_below(&g, 11) : NAN;
        change[i].mem_mhz = !scarce ? NAN : fl_random_below(&g, 3) ? NAN : 400 * (1 + (double)fl_random_below(&g, 2));
    }
    fl_node *n = fx_node(&r, 0, false);
    for (size_t i = 0; i < changes; i++) {
        fl_node_set(n, change[i].gpu, at[i], change[i].sm_mhz, change[i].mem_mhz);
        fx_advance(n, at[i]);
    }
    fx_to_end(n);
    ref x = {.r = &r, .quantised = quantised};
    bool ends = ref_run(&x, change, changes);
    FL_CHECK(ends, "%s, seed %llu: the reference hangs", what, (unsigned long long)seed);
    FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), x.t, tolerance), "%s, seed %llu: %.12g s, the reference %.12g (%.2g)",
             what, (unsigned long long)seed, fl_seconds(fl_node_now(n)), x.t, fl_seconds(fl_node_now(n)) / x.t - 1);
    FL_CHECK(fx_near(fl_joules(fx_energy(n)), x.joules, tolerance),
             "%s, seed %llu: %.12g J, the reference %.12g (%.2g)", what, (unsigned long long)seed,
             fl_joules(fx_energy(n)), x.joules, fl_joules(fx_energy(n)) / x.joules - 1);
    for (uint32_t s = 0; s < r.w->stream_count; s++)
        FL_CHECK(fx_near(fl_seconds(fl_node_marks(n, s)[0]), x.last_end[s], tolerance),
                 "%s, seed %llu: stream %u ends at %.12g s, %.12g", what, (unsigned long long)seed, s,
                 fl_seconds(fl_node_marks(n, s)[0]), x.last_end[s]);
    fl_node_close(n);
    fx_close(&r);
}

static void test_reference(void) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        against_reference("nothing scarce", seed, false, seed & 1, false, 1e-6);
        against_reference("scarce, shares in 1/65536", seed, true, seed & 1, true, 1e-6);
        /* a share of one in eight, rounded down to 1/65536, is up to 1.2e-4 too small */
        against_reference("scarce, real shares", seed, true, seed & 1, false, 1e-4);
    }
}

FL_SUITE("streams", {"shares by hand", test_shares_by_hand}, {"rounding", test_rounding},
         {"shares are set once", test_shares_are_set_once}, {"shared change", test_shared_change},
         {"copies and markers", test_copies_and_markers}, {"event waits", test_event_waits},
         {"wait across a change", test_wait_across_a_change}, {"launches", test_launches},
         {"full queue", test_full_queue}, {"two threads", test_two_threads}, {"stuck", test_stuck},
         {"loads of items", test_item_loads}, {"launches of phases", test_parts},
         {"gap traffic on an APU", test_gap_traffic}, {"ended threads", test_ended_threads}, {"order", test_order},
         {"reference", test_reference})
