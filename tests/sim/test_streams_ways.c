/* The shortcuts through several streams against the general way: random workloads, cut by random boundaries, and all
 * that can be seen of a node compared at each of them. */
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/node_fixture.h"

#include <string.h>

/* What a case draws by its seed; how scarce its GPU is decides which shortcut applies. */
enum { CALM, EDGE, SCARCE, BANDWIDTH, KINDS_OF_CASE };

typedef struct play { /* what is done to the node on the way; equal for every path */
    uint64_t seed;
    int64_t step_ps; /* mean */
    int64_t lost_ns[FX_GPUS_MAX];
    bool records, sets, sensed, hosted;
} play;

static int64_t one_of(fl_random *g, const int64_t *v, size_t count) { return v[fl_random_below(g, count)]; }

/* Round lengths make many ops end at one instant; long ones pass boundaries and the limits of exact doubles. */
static int64_t draw_work(fl_random *g, bool round) {
    static const int64_t rounded[] = {0, 1000, 1000, 2000, 4000, 30000};
    const uint64_t pick = fl_random_below(g, 400);
    if (pick == 2 && fl_random_below(g, 50) == 0)
        return INT64_C(2251799900000); /* 2^51 ps and 86 us: later than instants ahead are counted */
    if (pick == 0)
        return 60000000 + (int64_t)fl_random_below(g, 20000000); /* about 2^36 ps */
    if (pick == 1)
        return 1 + (int64_t)fl_random_below(g, 3000000000); /* beyond a boundary, or nearly nothing */
    return round ? one_of(g, rounded, 6) : (int64_t)fl_random_below(g, 80000);
}

static int64_t draw_gap(fl_random *g, bool round, bool gaps) {
    static const int64_t rounded[] = {0, 0, 1000, 3000};
    if (!gaps || fl_random_below(g, 3) == 0)
        return 0;
    if (fl_random_below(g, 30) == 0)
        return 1 + FL_GAP_MAX + (int64_t)fl_random_below(g, 100000); /* an escape */
    return round ? one_of(g, rounded, 4) : (int64_t)fl_random_below(g, 6000);
}

static void add_classes(fx_rig *r, fl_random *g, uint32_t kind, uint32_t streams) {
    const double fair = 1.0 / streams, most = kind == CALM ? 0.9 * fair : kind == EDGE ? fmin(1, 2.2 * fair) : 1;
    for (uint32_t i = 0; i < 7; i++) {
        const double tm = kind == CALM ? 0 : kind == EDGE ? most * fl_random_unit(g) : fl_random_unit(g);
        const double sms = kind == BANDWIDTH ? fair : most * (0.05 + 0.95 * fl_random_unit(g));
        fx_class(r, 1, tm, 0, fl_random_unit(g), fl_random_unit(g), i == 6 ? most : sms);
    }
    if (fl_random_below(g, 2)) {
        FX_MUST(fl_workload_add_host_load(r->w, &(fl_host_load){.bound = 0, .alpha = 1}, &r->w->class[1].host, d));
        FX_MUST(fl_workload_add_host_load(r->w, &(fl_host_load){.bound = 1, .upc = 2}, &r->w->class[2].host, d));
    }
    r->w->class[3].copy = true;
    r->w->class[4].iteration = true;
    r->w->class[5].part = true;
}

static void open_case(fx_rig *r, play *p, uint64_t seed) {
    static const uint32_t counts[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 40};
    fl_random g = fl_random_seed(seed, 1919);
    const uint32_t kind = (uint32_t)(seed % KINDS_OF_CASE);
    const uint32_t streams = seed % 40 == 39 ? 200 : counts[fl_random_below(&g, 10)];
    const uint32_t gpus = 1 + (uint32_t)(fl_random_below(&g, 4) == 0);
    const bool round = fl_random_below(&g, 2), gaps = fl_random_below(&g, 4) > 0;
    fx_open(r, gpus);
    r->facts.seed = seed;
    r->spec.device->interference = kind == BANDWIDTH ? 0.3 : 0;
    r->spec.device->gate_ns = fl_random_below(&g, 3) ? 0 : 1 + (int64_t)fl_random_below(&g, 20000);
    if (fl_random_below(&g, 2))
        nx_cpu(r);
    if (fl_random_below(&g, 3) == 0)
        nx_wall(r, 100 + 30 * (double)fl_random_below(&g, 10));
    nx_wall_vary(r, seed);
    if (fl_random_below(&g, 4) == 0)
        nx_heat(r, 50);
    nx_host_sensors(r);
    add_classes(r, &g, kind, streams);
    for (uint32_t i = 0; i < gpus * streams; i++) {
        const uint32_t s = fx_stream(r, i / streams, (int32_t)i);
        const size_t ops =
            fl_random_below(&g, 12) ? 400 / streams + 3 + fl_random_below(&g, 60) : fl_random_below(&g, 3);
        for (size_t k = 0; k < ops + (i == 0); k++) /* some streams have none */
            fx_op(r, s, draw_gap(&g, round, gaps), draw_work(&g, round), (uint32_t)fl_random_below(&g, 7));
        if (ops > 2 && seed % 7 == 6 && i % streams && r->w->stream[s - 1].count > 1)
            fx_wait(r, s, s - 1, 2);
    }
    fx_finish(r, (uint32_t)fl_random_below(&g, 12));
    *p = (play){.seed = seed, .hosted = r->spec.host.cpu.count > 0};
    static const int64_t steps_us[] = {3, 40, 700, 20000, 1500000};
    p->step_ps = one_of(&g, steps_us, 5) * FX_US_PS;
    p->records = fl_random_below(&g, 3) == 0;
    p->sets = fl_random_below(&g, 3) > 0;
    p->sensed = fl_random_below(&g, 2);
    for (uint32_t i = 0; i < FX_GPUS_MAX; i++)
        p->lost_ns[i] = fl_random_below(&g, 8) ? INT64_MAX : (int64_t)fl_random_below(&g, 1000000);
}

/* ---- all that can be seen ---- */

typedef struct digest {
    uint64_t h;
} digest;

static void feed(digest *x, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        x->h = (x->h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

#define FEED(x, value) feed(x, &(value), sizeof(value))

static void feed_gpu(digest *x, const fx_rig *r, const fl_gpu *g) {
    const int64_t busy = g->sums.busy_ps,
                  state[] = {g->sm,         g->mem,           g->now_ps,      g->leak_mw,    g->active,  g->resident,
                             g->demand_sms, g->demand_memory, g->scarce,      g->dyn_now_mw, g->peak_mw, g->gate_at_ps,
                             busy,          g->sums.copy_ps,  g->wall_held_ps};
    FEED(x, state);
    FEED(x, g->sums.energy_fj);
    FEED(x, g->sums.memory);
    FEED(x, g->sums.bytes);
    FEED(x, g->sums.alu);
    FEED(x, g->sums.sms);
    FEED(x, g->sums.kernels);
    FEED(x, g->sums.iterations);
    for (uint32_t i = 0; i < g->slot_count; i++) {
        FEED(x, g->slot[i].open_ps);
        FEED(x, g->slot[i].gated_ps);
        feed(x, g->slot[i].class_ps, r->w->class_count * sizeof *g->slot[i].class_ps);
    }
}

static void look(digest *x, const fx_rig *r, const play *p, fl_node *n) {
    const int64_t now = fl_node_now(n);
    const uint64_t hash = fl_node_hash(n);
    FEED(x, now);
    FEED(x, hash);
    for (uint32_t i = 0; i < fl_node_gpu_count(n); i++) {
        feed_gpu(x, r, fl_node_gpu(n, i));
        if (p->sensed) {
            fl_gpu_sample seen;
            memset(&seen, 0, sizeof seen);
            fl_node_read(n, i, true, &seen);
            FEED(x, seen);
        }
    }
    const fl_wide energy = fl_node_energy_fj(n);
    FEED(x, energy);
    if (p->hosted && p->sensed) {
        fl_host_sample seen;
        memset(&seen, 0, sizeof seen);
        fl_node_read_host(n, true, &seen);
        FEED(x, seen);
    }
    const fl_kernel_record *record;
    size_t count;
    FX_MUST(fl_node_take_records(n, &record, &count, d));
    if (count)
        feed(x, record, count * sizeof *record);
}

static void act(fl_random *g, const fx_rig *r, const play *p, fl_node *n) {
    const int64_t now = fl_node_now(n);
    for (uint32_t i = 0; i < fl_node_gpu_count(n); i++) {
        const uint64_t pick = fl_random_below(g, 12);
        if (p->sets && pick < 4)
            fl_node_set(n, i, now + (int64_t)fl_random_below(g, 4000000), 500 + 100 * (double)fl_random_below(g, 11),
                        pick ? NAN : 400);
        if (p->records && pick == 5)
            fl_node_records(n, i, fl_random_below(g, 2));
        if (p->records && pick == 6)
            fl_node_records_free(n, i, fl_random_below(g, 2));
    }
    if (p->sets && p->hosted && fl_random_below(g, 5) == 0)
        fl_node_set_cpu(n, now, r->spec.host.cpu.mhz[fl_random_below(g, 2)], NAN, NAN);
}

/* The course of a node by one path: a digest of each boundary into `out`, at most `room`; the number of them. */
static size_t course_of(const fx_rig *r, const play *p, fl_path path, uint64_t *out, size_t room) {
    fl_random g = fl_random_seed(p->seed, 77);
    fl_node_options o = {.w = r->w,
                         .rates = r->rates,
                         .spec = &r->spec,
                         .seed = p->seed,
                         .gpu_needs = p->sensed ? ~UINT64_C(0) : 0,
                         .host_needs = p->sensed ? ~UINT64_C(0) : 0,
                         .lost_at_ns = p->lost_ns,
                         .path = path};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    digest x = {UINT64_C(0xcbf29ce484222325)};
    size_t count = 0;
    fl_diag diag = {0};
    for (; !fl_node_done(n) && count < room; count++) {
        const int64_t step = 1 + (int64_t)fl_random_below(&g, 2 * (uint64_t)p->step_ps);
        if (fl_node_advance(n, fl_node_now(n) + step, &diag)) /* a lost GPU: it can never end */
            break;
        look(&x, r, p, n);
        act(&g, r, p, n);
        out[count] = x.h;
    }
    for (uint32_t i = 0; i < r->w->stream_count; i++) {
        uint64_t iterations;
        const int64_t *at = fl_node_iterations(n, i, &iterations);
        feed(&x, at, iterations * sizeof *at);
        feed(&x, fl_node_marks(n, i), r->w->stream[i].mark_count * sizeof(int64_t));
    }
    if (fl_node_done(n)) {
        fl_run_result result = {0};
        FX_MUST(fl_run_collect(n, r->w, &r->spec, true, &result, d));
        FEED(&x, result.energy_fj);
        FEED(&x, result.node_energy_j);
        FEED(&x, result.ledger);
        fl_run_result_free(&result);
    }
    fl_node_close(n);
    out[count++] = x.h;
    return count;
}

static void test_ways(void) {
    enum { CASES = 400, ROOM = 700 };
    static const fl_path ways[] = {FL_PATH_AUTO, FL_PATH_VECTOR};
    uint64_t *want = fx_alloc(ROOM + 1, sizeof *want), *got = fx_alloc(ROOM + 1, sizeof *got);
    for (uint64_t seed = 0; seed < CASES; seed++) {
        fx_rig r;
        play p;
        open_case(&r, &p, seed);
        const size_t count = course_of(&r, &p, FL_PATH_EVENTS, want, ROOM);
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const size_t now = course_of(&r, &p, ways[k], got, ROOM);
            size_t i = 0;
            while (i < count && i < now && want[i] == got[i])
                i++;
            FL_CHECK(i == count && now == count, "seed %llu, %s: differs from the general way at boundary %zu of %zu",
                     (unsigned long long)seed, fl_path_names[ways[k]], i, count);
        }
        fx_close(&r);
    }
    free(want);
    free(got);
    FL_CHECK(!fl_streams_lanes_here() || fl_path_taken(FL_PATH_VECTOR) > CASES, "vectors carried %llu stretches",
             (unsigned long long)fl_path_taken(FL_PATH_VECTOR));
}

FL_SUITE("streams by every way", {"ways", test_ways})
