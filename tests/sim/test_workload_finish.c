/* What closing a workload finds, against a look at every pair: which GPUs can affect each other, what streams hold
 * beside kernels, who waits for another GPU, and where windows of work end. */
#include "models/laws/laws.h"
#include "policies/random.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

enum { GPUS_MAX = 6, STREAMS_MAX = 12, THREADS_MAX = 4 };

static const uint64_t seed = 91;

typedef struct drawn {
    fx_rig r;
    uint32_t kernel, marker, copy;
    uint32_t gpus, streams, threads;
    bool touch[GPUS_MAX][GPUS_MAX]; /* directly */
    uint64_t markers[STREAMS_MAX];
    bool other[STREAMS_MAX], waits[STREAMS_MAX], launched[STREAMS_MAX], barriers, any_marker;
    uint32_t thread_gpu[THREADS_MAX]; /* one of those that it touches */
} drawn;

static void touch(drawn *x, uint32_t a, uint32_t b) { x->touch[a][b] = x->touch[b][a] = true; }

static void draw(drawn *x, fl_random *g) {
    *x = (drawn){.gpus = 1 + (uint32_t)fl_random_below(g, GPUS_MAX)};
    fx_open(&x->r, 1);
    fl_workload *w = x->r.w;
    x->kernel = fx_class(&x->r, 1, 0, 0, 1, 0, 0.1);
    x->marker = fx_class(&x->r, 1, 0, 0, 1, 0, 0.1);
    x->copy = fx_class(&x->r, 1, 0, 0, 1, 0, 0.1);
    if (fl_random_below(g, 2)) {
        w->class[x->marker].iteration = true;
        x->any_marker = true;
    }
    w->class[x->copy].copy = true;
    x->streams = x->gpus + (uint32_t)fl_random_below(g, STREAMS_MAX - GPUS_MAX + 1);
    for (uint32_t i = 0; i < x->streams; i++) {
        const uint32_t s = fx_stream(&x->r, i < x->gpus ? i : (uint32_t)fl_random_below(g, x->gpus), (int32_t)i);
        const int ops = 1 + (int)fl_random_below(g, 6);
        for (int k = 0; k < ops; k++) {
            const uint32_t id = fl_random_below(g, 4) ? x->kernel : fl_random_below(g, 2) ? x->marker : x->copy;
            fx_op(&x->r, s, (int64_t)fl_random_below(g, 500), 100 + (int64_t)fl_random_below(g, 400), id);
            x->markers[s] += id == x->marker && x->any_marker;
            x->other[s] |= id == x->copy || (id == x->marker && x->any_marker);
            if (s > 0 && !fl_random_below(g, 12)) {
                const uint32_t on = (uint32_t)fl_random_below(g, s);
                fx_wait(&x->r, s, on, 1);
                x->waits[s] = true;
                x->barriers |= w->stream[on].gpu != w->stream[s].gpu;
                touch(x, w->stream[on].gpu, w->stream[s].gpu);
            }
        }
    }
    x->threads = (uint32_t)fl_random_below(g, THREADS_MAX);
    for (uint32_t i = 0; i < x->threads; i++) {
        const uint32_t t = fx_thread(&x->r), first = (uint32_t)fl_random_below(g, x->streams);
        x->thread_gpu[i] = w->stream[first].gpu;
        if (fl_random_below(g, 2)) { /* it only waits */
            fx_sync(&x->r, t, 10, 10, first, 1);
        } else {
            fx_launch(&x->r, t, 10, first);
            x->launched[first] = true;
        }
        if (!fl_random_below(g, 3)) {
            const uint32_t on = (uint32_t)fl_random_below(g, x->streams);
            fx_sync(&x->r, t, 5, 5, on, 1);
            touch(x, w->stream[on].gpu, x->thread_gpu[i]);
        }
    }
}

static bool within(const uint32_t *list, uint32_t count, uint32_t value) {
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        found |= list[i] == value;
    return found;
}

static const fl_island *island_of(const fl_workload *w, uint32_t gpu) {
    const fl_island *found = NULL;
    for (uint32_t k = 0; k < w->island_count; k++)
        if (within(w->island[k].gpu, w->island[k].gpu_count, gpu))
            found = &w->island[k];
    return found;
}

/* GPUs are of one island where a chain of waits and threads leads from the one to the other. */
static void check_islands(drawn *x, int n) {
    const fl_workload *w = x->r.w;
    bool reach[GPUS_MAX][GPUS_MAX];
    for (uint32_t a = 0; a < x->gpus; a++)
        for (uint32_t b = 0; b < x->gpus; b++)
            reach[a][b] = a == b || x->touch[a][b];
    for (uint32_t k = 0; k < x->gpus; k++)
        for (uint32_t a = 0; a < x->gpus; a++)
            for (uint32_t b = 0; b < x->gpus; b++)
                reach[a][b] |= reach[a][k] && reach[k][b];
    uint32_t gpus = 0, streams = 0, threads = 0;
    for (uint32_t k = 0; k < w->island_count; k++) {
        gpus += w->island[k].gpu_count;
        streams += w->island[k].stream_count;
        threads += w->island[k].thread_count;
        for (uint32_t i = 1; i < w->island[k].gpu_count; i++)
            FL_CHECK(w->island[k].gpu[i] > w->island[k].gpu[i - 1], "case %d: GPUs of island %u", n, k);
    }
    FL_CHECK(gpus == x->gpus && streams == x->streams && threads == x->threads, "case %d: %u, %u, %u", n, gpus, streams,
             threads);
    for (uint32_t a = 0; a < x->gpus; a++)
        for (uint32_t b = 0; b < x->gpus; b++)
            FL_CHECK((island_of(w, a) == island_of(w, b)) == reach[a][b], "seed %d, case %d: GPUs %u and %u", (int)seed,
                     n, a, b);
    for (uint32_t i = 0; i < x->streams; i++) {
        const fl_island *is = island_of(w, w->stream[i].gpu);
        FL_CHECK(is && within(is->stream, is->stream_count, i), "seed %d, case %d: stream %u", (int)seed, n, i);
        const bool lone = is && is->gpu_count == 1 && is->stream_count == 1 && is->thread_count == 0 && !x->waits[i] &&
                          !x->any_marker && !w->stream[i].launched;
        FL_CHECK(!is || is->lone == (is->stream_count == 1 && lone), "seed %d, case %d: stream %u is alone: %d",
                 (int)seed, n, i, is ? is->lone : -1);
    }
    for (uint32_t i = 0; i < x->threads; i++) {
        const fl_island *is = island_of(w, x->thread_gpu[i]);
        FL_CHECK(is && within(is->thread, is->thread_count, i), "seed %d, case %d: thread %u", (int)seed, n, i);
    }
}

/* The k-th of some windows ends with the op with which k of so many parts of the stream's time have passed. An op here
 * is never as long as a window. */
static void check_marks(const drawn *x, uint32_t windows, int n) {
    for (uint32_t i = 0; i < x->streams; i++) {
        const fl_stream *s = &x->r.w->stream[i];
        int64_t longest = 0, passed = 0;
        for (uint64_t k = 0; k < s->count; k++) {
            int64_t gap, work;
            uint32_t id;
            fl_workload_op(s, k, &gap, &work, &id);
            longest = gap + work > longest ? gap + work : longest;
        }
        if (longest * windows >= s->span_ns)
            continue;
        uint32_t mark = 0;
        for (uint64_t k = 0; k < s->count; k++) {
            int64_t gap, work;
            uint32_t id;
            fl_workload_op(s, k, &gap, &work, &id);
            passed += gap + work;
            if (passed * windows >= s->span_ns * (int64_t)(mark + 1)) {
                FL_CHECK(mark < s->mark_count && s->mark[mark] == k + 1, "case %d: stream %u, window %u ends with %d",
                         n, i, mark, mark < s->mark_count ? (int)s->mark[mark] : -1);
                mark++;
            }
        }
        FL_CHECK(mark == windows && s->mark_count == windows && s->mark[windows - 1] == s->count,
                 "case %d: stream %u has %u windows of %u", n, i, s->mark_count, windows);
    }
}

static void test_random(void) {
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random g = fl_random_seed(seed, 0);
    for (int n = 0; n < 300; n++) {
        drawn x;
        draw(&x, &g);
        const uint32_t windows = (uint32_t)fl_random_below(&g, 4);
        for (int again = 0; again < 2; again++) { /* closed twice, the same comes out */
            FX_MUST(fl_workload_finish(x.r.w, windows, d));
            check_islands(&x, n);
            FL_CHECK(x.r.w->barriers == x.barriers, "seed %d, case %d: barriers", (int)seed, n);
            for (uint32_t i = 0; i < x.streams; i++)
                FL_CHECK(x.r.w->stream[i].iterations == x.markers[i] && x.r.w->stream[i].other == x.other[i],
                         "seed %d, case %d: stream %u passes %d markers", (int)seed, n, i,
                         (int)x.r.w->stream[i].iterations);
            if (windows)
                check_marks(&x, windows, n);
        }
        FX_MUST(fl_workload_mark_ops(x.r.w, d));
        for (uint32_t i = 0; i < x.streams; i++) {
            const fl_stream *s = &x.r.w->stream[i];
            FL_CHECK(s->mark_count == s->count && s->mark[0] == 1 && s->mark[s->count - 1] == s->count,
                     "case %d: a mark behind every op", n);
        }
        fx_close(&x.r);
    }
}

/* So many streams may share a GPU, and no more; those of another GPU are not counted. */
static void test_streams_of_a_gpu(void) {
    static const struct {
        uint32_t streams[2];
        const char *error;
    } rows[] = {{{FL_SHARES_MAX, 1}, NULL},
                {{FL_SHARES_MAX, FL_SHARES_MAX}, NULL},
                {{FL_SHARES_MAX + 1, 1}, "257 streams on GPU 0, expected at most 256"},
                {{1, FL_SHARES_MAX + 1}, "257 streams on GPU 1, expected at most 256"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 2);
        const uint32_t c = fx_light(&r);
        for (uint32_t g = 0; g < 2; g++)
            for (uint32_t k = 0; k < rows[i].streams[g]; k++)
                fx_op(&r, fx_stream(&r, g, (int32_t)k), 0, 1000, c);
        fl_diag d = {0};
        const fl_status s = fl_workload_finish(r.w, 0, &d);
        FL_CHECK(s == (rows[i].error ? FL_BAD_INPUT : FL_OK), "row %zu: status %d, %s", i, s, d.message);
        FL_CHECK(!rows[i].error || strstr(d.message, rows[i].error), "row %zu: '%s'", i, d.message);
        fx_close(&r);
    }
}

FL_SUITE("workload_finish", {"random", test_random}, {"streams of a GPU", test_streams_of_a_gpu})
