/* One stream with launches by its recurrence, and the same from event to event: every instant, sum and state that a
 * boundary can show is the same, wherever the boundaries lie. */
#include "tests/support/node_fixture.h"

#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

typedef struct plan { /* of one random stream */
    fl_random g;
    uint32_t thread, stream, classes;
    uint32_t sync_one_in, op_mean_ns, host_mean_ns;
    bool others; /* copies, markers, escapes and phases among the kernels, and the thread's odd items */
} plan;

static int64_t below(plan *p, int64_t n) { return (int64_t)fl_random_below(&p->g, (uint64_t)n); }

static bool one_in(plan *p, uint64_t n) { return !fl_random_below(&p->g, n); }

/* Mostly about the mean; sometimes none at all, sometimes at the borders of a record. */
static int64_t draw_ns(plan *p, int64_t mean, int64_t border) {
    if (one_in(p, 20))
        return 0;
    return p->others && one_in(p, 300) ? border - 2 + below(p, 5) : below(p, 2 * mean + 1);
}

/* Waits for the op launched last, or for one before it, now and then for several; `launched`: so many are. */
static void add_sync(fx_rig *r, plan *p, uint64_t launched) {
    const int64_t before = draw_ns(p, p->host_mean_ns, INT64_C(1) << 32),
                  after = one_in(p, 3) ? 0 : draw_ns(p, 3 * p->host_mean_ns, INT64_C(1) << 32);
    uint64_t done = launched;
    if (one_in(p, 4))
        done -= fl_random_below(&p->g, (launched < 5000 ? launched : 5000) + 1);
    fx_sync(r, p->thread, before, after, p->stream, done);
    while (p->others && one_in(p, 10))
        FX_MUST(
            fl_workload_add_sync_wait(r->w, p->thread, (fl_wait){p->stream, fl_random_below(&p->g, launched + 1)}, d));
}

/* One launch: a kernel, or all phases of one. Returns how many ops that were. */
static uint64_t add_launch(fx_rig *r, plan *p, uint64_t launched) {
    const bool phases = p->others && one_in(p, 12);
    const uint32_t parts = phases ? 1 + (uint32_t)fl_random_below(&p->g, 5) : 0;
    for (uint32_t i = 0; i <= parts; i++) {
        const int64_t gap = one_in(p, 3) ? draw_ns(p, 3000, 1 + FL_GAP_MAX) : 0;
        int64_t work = draw_ns(p, p->op_mean_ns, one_in(p, 2) ? 1 + FL_WORK_MAX : INT64_C(1) << 32);
        uint32_t id = (uint32_t)fl_random_below(&p->g, p->classes - (p->others ? 0 : 3)); /* the last 3 are others */
        if (phases)
            id = i < parts ? p->classes - 1 : 0;
        else if (id == p->classes - 1)
            id = 0;
        if (r->w->class[id].iteration)
            work = 0;
        fx_op(r, p->stream, gap, work, id);
        if (p->others && one_in(p, 40)) /* on what its own stream has done by then: no wait at all */
            fx_wait(r, p->stream, p->stream, fl_random_below(&p->g, launched + i + 1));
    }
    const fl_item item = {.type = FL_ITEM_LAUNCH,
                          .host_ns = draw_ns(p, p->host_mean_ns, INT64_C(1) << 31),
                          .stream = p->stream,
                          .parts = parts};
    FX_MUST(fl_workload_add_item(r->w, p->thread, &item, d));
    return parts + UINT64_C(1);
}

/* A rig of one GPU. Odd seeds hold kernels alone; every third has a CPU, every fourth gates its idle GPU. */
static void build_random(fx_rig *r, uint64_t seed) {
    static const uint32_t queues[] = {1, 2, 3, 7, 60, 1024, 60000, 100000}, means[] = {300, 3000, 30000, 300000};
    plan p = {.g = fl_random_seed(seed, 191), .classes = 8, .others = seed % 2 == 0};
    fx_open(r, 1);
    r->facts.seed = seed;
    if (seed % 3 == 0)
        nx_cpu(r);
    if (seed % 4 < 2)
        r->spec.device->gate_ns = 1 + below(&p, 30000);
    if (seed % 5 == 0) {
        nx_wall(r, 60 + (double)below(&p, 80));
        nx_wall_vary(r, seed);
        nx_heat(r, 28 + (double)below(&p, 8));
    }
    r->spec.device->records_slowdown = 0.07;
    fx_random_classes(r, &p.g, p.classes, 1);
    r->w->class[5].copy = r->w->class[6].iteration = r->w->class[7].part = true;
    if (p.others && seed % 3 == 0)
        FX_MUST(fl_workload_add_host_load(r->w, &(fl_host_load){.bound = 1, .alpha = 1}, &r->w->class[2].host, d));
    p.op_mean_ns = means[below(&p, 4)];
    p.host_mean_ns = means[below(&p, 4)];
    p.sync_one_in = one_in(&p, 2) ? 3 : 100;
    p.stream = fx_stream(r, 0, 0);
    p.thread = fx_thread(r);
    r->w->launch_queue = queues[below(&p, 8)];
    if (seed % 16 == 11) { /* nothing but kernels and launches, as the way of eight at a time takes them */
        p.sync_one_in = 5000;
        r->w->launch_queue = 60;
        p.host_mean_ns = p.op_mean_ns / 2;
    }
    const uint64_t ops = 200 + fl_random_below(&p.g, 2500);
    for (uint64_t launched = 0; launched < ops;) {
        while (one_in(&p, p.sync_one_in))
            add_sync(r, &p, launched);
        launched += add_launch(r, &p, launched);
    }
    if (one_in(&p, 2))
        add_sync(r, &p, r->w->stream[p.stream].count);
    fx_finish(r, one_in(&p, 4) ? 0 : 1 + (uint32_t)below(&p, 40));
}

static fl_node *open_node(const fx_rig *r, fl_path path, const int64_t *lost_at_ns) {
    const fl_node_options o = {.w = r->w,
                               .rates = r->rates,
                               .spec = &r->spec,
                               .seed = r->facts.seed,
                               .gpu_needs = r->facts.seed % 8 < 4 ? 0 : ~UINT64_C(0),
                               .lost_at_ns = lost_at_ns,
                               .path = path};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    return n;
}

/* ---- two nodes at one boundary ---- */

static bool same_work(const fl_work *a, const fl_work *b) {
    return a->left_ps == b->left_ps && a->charged_ps == b->charged_ps && a->since_ps == b->since_ps &&
           a->start_ps == b->start_ps && a->rate == b->rate;
}

static const char *lane_differs(const fl_lane *a, const fl_lane *b) {
    if (a->next != b->next || a->launched != b->launched || a->phase != b->phase)
        return "the stream's position";
    if (*a->p.event_ps != *b->p.event_ps)
        return "the stream's next event";
    if (a->phase == FL_PHASE_RUN && (!same_work(&a->p, &b->p) || a->class_id != b->class_id ||
                                     a->length_ps != b->length_ps || a->began_ps != b->began_ps))
        return "the op in progress";
    if (a->in_parts != b->in_parts || (a->in_parts && a->began_ps != b->began_ps))
        return "the phases of a kernel";
    if (a->marks != b->marks || memcmp(a->mark_ps, b->mark_ps, a->marks * sizeof *a->mark_ps) != 0)
        return "marks";
    if (a->iterations != b->iterations ||
        memcmp(a->iteration_ps, b->iteration_ps, a->iterations * sizeof *a->iteration_ps) != 0)
        return "iterations";
    return NULL;
}

static const char *host_differs(const fl_course *a, const fl_course *b) {
    const fl_host_thread *x = &a->thread[0], *y = &b->thread[0];
    if (x->next != y->next || x->computing != y->computing || x->waiting != y->waiting)
        return "the thread's position";
    if (*x->p.event_ps != *y->p.event_ps)
        return "the thread's next event";
    if (x->computing && (!same_work(&x->p, &y->p) || x->work_ns != y->work_ns || x->load != y->load))
        return "the host time in progress";
    if (a->done != b->done || a->active != b->active || a->active_since_ps != b->active_since_ps ||
        a->sums.active_ps != b->sums.active_ps)
        return "the thread's end";
    for (uint32_t k = 0; k <= a->w->host_load_count; k++)
        if (a->sums.time_ps[k] != b->sums.time_ps[k] || a->sums.work_ps[k] != b->sums.work_ps[k])
            return "host time";
    return NULL;
}

static const char *gpu_differs(const fl_gpu *a, const fl_gpu *b) {
    if (a->sums.energy_fj != b->sums.energy_fj)
        return "energy";
    if (a->sums.busy_ps != b->sums.busy_ps || a->sums.memory != b->sums.memory || a->sums.bytes != b->sums.bytes ||
        a->sums.alu != b->sums.alu || a->sums.sms != b->sums.sms || a->sums.copy_ps != b->sums.copy_ps)
        return "activity";
    if (a->sums.kernels != b->sums.kernels || a->sums.iterations != b->sums.iterations)
        return "a count";
    if (a->active != b->active || a->resident != b->resident || a->demand_sms != b->demand_sms ||
        a->demand_memory != b->demand_memory || a->dyn_now_mw != b->dyn_now_mw || a->gate_at_ps != b->gate_at_ps ||
        fl_gpu_power_mw(a) != fl_gpu_power_mw(b))
        return "what runs now";
    if (a->slot_count != b->slot_count)
        return "clocks";
    for (uint32_t i = 0; i < a->slot_count; i++)
        if (a->slot[i].open_ps != b->slot[i].open_ps || a->slot[i].gated_ps != b->slot[i].gated_ps ||
            memcmp(a->slot[i].class_ps, b->slot[i].class_ps, a->w->class_count * sizeof *a->slot[i].class_ps) != 0)
            return "residence";
    return NULL;
}

static const char *records_differ(fl_node *a, fl_node *b) {
    const fl_kernel_record *x, *y;
    size_t count, other;
    FX_MUST(fl_node_take_records(a, &x, &count, d));
    FX_MUST(fl_node_take_records(b, &y, &other, d));
    bool same = count == other;
    for (size_t i = 0; same && i < count; i++)
        same = x[i].start_ns == y[i].start_ns && x[i].end_ns == y[i].end_ns && x[i].kind == y[i].kind;
    return same ? NULL : "records";
}

static const char *differs(fl_node *a, fl_node *b) {
    const char *what = fl_node_now(a) != fl_node_now(b) || fl_node_hash(a) != fl_node_hash(b) ? "time or hash" : NULL;
    what = what ? what : lane_differs(&a->lane[0], &b->lane[0]);
    what = what ? what : host_differs(&a->course[0], &b->course[0]);
    what = what ? what : gpu_differs(&a->gpu[0], &b->gpu[0]);
    return what ? what : records_differ(a, b);
}

/* ---- random streams, boundaries anywhere ---- */

/* Both nodes to a random instant, soon or late, with new clocks now and then, of the CPU too, and records on or off. */
static void step_both(fl_node **n, plan *p, bool quick) {
    static const int64_t means_ps[] = {200000, 4000000, 100000000, 3000000000};
    const int64_t now = fl_node_now(n[0]),
                  next = now + (quick ? 10 * FL_PS_PER_S
                                      : 1 + below(p, one_in(p, 60) ? 2 * FL_PS_PER_S : 2 * means_ps[below(p, 4)]));
    const double mhz = 500 + 100 * (double)below(p, 11), mem = one_in(p, 8) ? 400 : (double)NAN;
    const double cpu = one_in(p, 2) ? 1000 : 2000;
    const bool set = one_in(p, 2), set_cpu = n[0]->hosted && one_in(p, 3), records = one_in(p, 6), on = one_in(p, 2);
    for (int k = 0; k < 2; k++) {
        if (set)
            fl_node_set(n[k], 0, now, mhz, mem);
        if (set_cpu)
            (void)fl_node_set_cpu(n[k], now, cpu, 0, (double)NAN);
        if (records)
            fl_node_records(n[k], 0, on);
        fx_advance(n[k], next);
    }
}

enum { SEEDS = 400 };

static void test_equal_states(void) {
    uint64_t boundaries = 0, full = 0, gated = 0, ahead = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fx_rig r;
        build_random(&r, seed);
        plan p = {.g = fl_random_seed(seed, 192)};
        fl_node *n[2] = {open_node(&r, FL_PATH_EVENTS, NULL), open_node(&r, FL_PATH_AUTO, NULL)};
        const char *what = NULL;
        for (int i = 0; !what && !fl_node_done(n[0]); i++) {
            step_both(n, &p, i > 1000);
            what = differs(n[0], n[1]);
            FL_CHECK(!what, "seed %llu, boundary %d, %lld ps: %s", (unsigned long long)seed, i,
                     (long long)fl_node_now(n[0]), what);
            boundaries++;
            full += n[0]->course[0].thread[0].waiting;
            ahead += n[0]->lane[0].launched > n[0]->lane[0].next + 1;
        }
        for (uint32_t i = 0; i < n[0]->gpu[0].slot_count; i++)
            gated += n[0]->gpu[0].slot[i].gated_ps > 0;
        FL_CHECK(what || fl_node_done(n[1]), "seed %llu: one has ended", (unsigned long long)seed);
        FL_CHECK(n[0]->gpu[0].taken[FL_PATH_LAUNCHES] == 0 && n[1]->gpu[0].taken[FL_PATH_LAUNCHES] > 0 &&
                     n[1]->gpu[0].taken[FL_PATH_EVENTS] == 0,
                 "seed %llu: each by its path", (unsigned long long)seed);
        fl_node_close(n[0]);
        fl_node_close(n[1]);
        fx_close(&r);
    }
    FL_CHECK(full > 1000 && ahead > 1000 && gated > 100,
             "%llu boundaries: %llu with a thread that waits, %llu with a host ahead, %llu gated clocks",
             (unsigned long long)boundaries, (unsigned long long)full, (unsigned long long)ahead,
             (unsigned long long)gated);
}

/* ---- whole runs: what a policy sees, and the result ---- */

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    uint64_t *h = user;
    (void)d;
    const unsigned char *bytes = (const unsigned char *)sample->gpu;
    for (size_t i = 0; i < sizeof *sample->gpu; i++)
        *h = (*h ^ bytes[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < sample->record_count; i++)
        *h = (*h ^ (uint64_t)sample->record[i].end_ns) * UINT64_C(0x100000001b3);
    *h = (*h ^ (uint64_t)decision->delay_ns) * UINT64_C(0x100000001b3);
    return FL_OK;
}

static void test_equal_runs(void) {
    for (uint64_t seed = 1; seed <= 60; seed++) {
        fx_rig r;
        build_random(&r, seed);
        static const int64_t steps_us[] = {200, 3000, 50000};
        uint64_t seen[2] = {1, 1};
        fl_run_result a, b;
        fx_how how = {.needs = ~UINT64_C(0),
                      .mode = FX_RANDOM_BOTH,
                      .step_us = steps_us[seed % 3],
                      .records = seed % 4 == 1,
                      .on_step = on_step,
                      .user = &seen[0],
                      .path = FL_PATH_EVENTS};
        fx_run(&r, &how, &a);
        how.path = FL_PATH_LAUNCHES;
        how.user = &seen[1];
        fx_run(&r, &how, &b);
        FL_CHECK(seen[0] == seen[1] && a.hash == b.hash && a.makespan_ps == b.makespan_ps &&
                     a.energy_fj == b.energy_fj && memcmp(&a.ledger, &b.ledger, sizeof a.ledger) == 0 &&
                     a.cpu_energy_j == b.cpu_energy_j && a.peak_power_w == b.peak_power_w &&
                     a.wall_held_ps == b.wall_held_ps && a.mark_count == b.mark_count &&
                     memcmp(a.mark_ps, b.mark_ps, a.mark_count * sizeof *a.mark_ps) == 0,
                 "seed %llu: %.17g J in %lld ps, peak %g W by events; %.17g J in %lld ps, peak %g W by launches",
                 (unsigned long long)seed, fl_joules(a.energy_fj), (long long)a.makespan_ps, a.peak_power_w,
                 fl_joules(b.energy_fj), (long long)b.makespan_ps, b.peak_power_w);
        fl_run_result_free(&a);
        fl_run_result_free(&b);
        fx_close(&r);
    }
}

/* A GPU that falls off the bus in the middle: from there on nothing moves, and the program ends with the same error. */
static void test_lost(void) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fx_rig r;
        build_random(&r, seed);
        fl_node *whole = open_node(&r, FL_PATH_EVENTS, NULL);
        fx_to_end(whole);
        const int64_t lost_ns[1] = {fl_node_now(whole) / 2 / FL_PS_PER_NS};
        fl_node_close(whole);
        fl_node *n[2] = {open_node(&r, FL_PATH_EVENTS, lost_ns), open_node(&r, FL_PATH_AUTO, lost_ns)};
        fl_diag d[2] = {{0}, {0}};
        fl_status s[2] = {FL_OK, FL_OK};
        while (!s[0] && !s[1]) {
            for (int k = 0; k < 2; k++)
                s[k] = fl_node_advance(n[k], fl_node_now(n[k]) + lost_ns[0] * 400, &d[k]);
            const char *what = s[0] ? NULL : differs(n[0], n[1]);
            FL_CHECK(!what, "seed %llu, %lld ps: %s", (unsigned long long)seed, (long long)fl_node_now(n[0]), what);
        }
        FL_CHECK(s[0] == s[1] && strcmp(d[0].message, d[1].message) == 0, "seed %llu: %d '%s', %d '%s'",
                 (unsigned long long)seed, s[0], d[0].message, s[1], d[1].message);
        fl_node_close(n[0]);
        fl_node_close(n[1]);
        fx_close(&r);
    }
}

/* ---- what takes the path ---- */

typedef struct shape {
    const char *what;
    int streams, threads; /* ops on the second stream; launches into it by a second thread */
    bool apu, wait, arrive, short_of_one;
    bool takes;
} shape;

static bool takes(const shape *s) {
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    if (s->apu)
        nx_apu(&r);
    const uint32_t c = fx_light(&r), a = fx_stream(&r, 0, 0), t = fx_thread(&r);
    const uint32_t b = s->streams > 1 ? fx_stream(&r, 0, 1) : a, u = s->threads > 1 ? fx_thread(&r) : t;
    for (int i = 0; i < 10; i++) {
        const uint32_t to = i % 2 ? b : a;
        fx_op(&r, to, 0, 10000, c);
        if (i < 9 || !s->short_of_one)
            fx_launch(&r, i % 2 ? u : t, 1000, to);
    }
    if (s->wait)
        fx_wait(&r, a, a, 10);
    fx_sync(&r, t, 0, 0, a, 1);
    fx_finish(&r, 1);
    if (s->arrive)
        FX_MUST(fl_workload_serve(r.w, (const int64_t[]){0, 5}, 2, 1, d));
    fl_node *n = fx_node(&r, 0, false);
    fx_advance(n, FX_US_PS);
    const bool taken = n->gpu[0].taken[FL_PATH_LAUNCHES] > 0;
    FL_CHECK(taken || n->gpu[0].taken[FL_PATH_EVENTS] > 0, "%s: neither path", s->what);
    fl_node_close(n);
    fx_close(&r);
    return taken;
}

static void test_what_takes_it(void) {
    static const shape rows[] = {{.what = "one stream, one thread", .streams = 1, .threads = 1, .takes = true},
                                 {.what = "two streams", .streams = 2, .threads = 1},
                                 {.what = "two threads", .streams = 1, .threads = 2},
                                 {.what = "an APU's bus", .streams = 1, .threads = 1, .apu = true},
                                 {.what = "a wait for itself", .streams = 1, .threads = 1, .wait = true},
                                 {.what = "requests", .streams = 1, .threads = 1, .arrive = true},
                                 {.what = "an op never launched", .streams = 1, .threads = 1, .short_of_one = true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(takes(&rows[i]) == rows[i].takes, "%s: %s the recurrence", rows[i].what,
                 rows[i].takes ? "leaves" : "takes");
}

FL_SUITE("launches", {"equal_states", test_equal_states}, {"equal_runs", test_equal_runs}, {"lost", test_lost},
         {"what_takes_it", test_what_takes_it})
