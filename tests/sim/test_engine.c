/* One GPU through clock changes, and whole runs: closed forms, equal bits by every way, actuators, records, ends. */
#include "tests/support/sim_fixture.h"
#include "sim/node/inside.h"

#include <pthread.h>

static const uint64_t every_signal = ~UINT64_C(0);

/* ---- a clock change in mid-kernel, exactly by the integers ---- */

typedef struct change {
    int64_t at_ps;
    double sm_mhz;
} change;

static int64_t length_at(int64_t work_ns, const fl_row *row) {
    return (int64_t)(((fl_uwide)(uint64_t)work_ns * row->mul + 32768) / 65536);
}

/* A kernel of work_ns from gap_ns on through the changes (ascending): end and energy by exact integers. */
static void by_formula(const fx_rig *r, int64_t gap_ns, int64_t work_ns, const change *ch, size_t count, int64_t *end,
                       fl_wide *fj) {
    const fl_clock_rates *now = fx_rates(r, 1000, 800);
    int64_t t = 0, start = gap_ns * 1000, length = 0, left = -1;
    *fj = 0;
    for (size_t i = 0;; i++) {
        int64_t until = i < count ? ch[i].at_ps : INT64_MAX;
        if (left < 0 && start <= until) { /* it begins at these clocks */
            *fj += (fl_wide)(start - t) * now->base.total_mw;
            t = start;
            left = length = length_at(work_ns, &now->row[0]);
        }
        if (left >= 0 && left <= until - t) {
            *end = t + left;
            *fj += (fl_wide)left * (now->base.total_mw + now->row[0].dyn_mw);
            return;
        }
        *fj += (fl_wide)(until - t) * (now->base.total_mw + (left < 0 ? 0 : now->row[0].dyn_mw));
        if (left >= 0)
            left -= until - t;
        t = until;
        now = fx_rates(r, ch[i].sm_mhz, 800);
        if (left >= 0) {
            int64_t after = length_at(work_ns, &now->row[0]);
            left = (int64_t)(((fl_wide)left * after + length / 2) / length);
            length = after;
        }
    }
}

/* The same in real numbers, from the law alone: T = work 1000 / f, P = 30 + 10 f + 100 f watts. */
static void by_law(int64_t gap_ns, int64_t work_ns, const change *ch, size_t count, double *end, double *joules) {
    double f = 1000, t = 0, start = (double)gap_ns * 1e-9, left = 1;
    *joules = 0;
    for (size_t i = 0;; i++) {
        double until = i < count ? (double)ch[i].at_ps * 1e-12 : INFINITY, idle = 30 + f * 1e-2, busy = idle + f * 0.1;
        if (t < start) {
            double to = fmin(start, until);
            *joules += (to - t) * idle;
            t = to;
        }
        double whole = (double)work_ns * 1e-9 * 1000 / f;
        if (t >= start && left * whole <= until - t) {
            *end = t + left * whole;
            *joules += left * whole * busy;
            return;
        }
        if (t < until) {
            *joules += (until - t) * busy;
            left -= (until - t) / whole;
        }
        t = until;
        f = ch[i].sm_mhz;
    }
}

static void check_changes(const char *what, int64_t gap_ns, int64_t work_ns, const change *ch, size_t count) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
    fx_op(&r, fx_stream(&r, 0, 0), gap_ns, work_ns, c);
    fx_finish(&r, 1);
    int64_t end;
    fl_wide fj;
    double end_s, joules;
    by_formula(&r, gap_ns, work_ns, ch, count, &end, &fj);
    by_law(gap_ns, work_ns, ch, count, &end_s, &joules);
    for (int only = 0; only < 2; only++) {
        fl_node *n = fx_node(&r, 0, only);
        for (size_t i = 0; i < count; i++) {
            fl_node_set(n, 0, ch[i].at_ps, ch[i].sm_mhz, NAN);
            fx_advance(n, ch[i].at_ps);
        }
        fx_to_end(n);
        FL_CHECK(fl_node_now(n) == end && fl_node_marks(n, 0)[0] == end, "%s, way %d: ends at %lld ps, expected %lld",
                 what, only, (long long)fl_node_now(n), (long long)end);
        FL_CHECK(fx_energy(n) == fj, "%s, way %d: %.20g fJ, expected %.20g", what, only, fx_f(fx_energy(n)), fx_f(fj));
        FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), end_s, 2e-5), "%s: %.12g s, by the law %.12g", what,
                 fl_seconds(fl_node_now(n)), end_s);
        FL_CHECK(fx_near(fl_joules(fx_energy(n)), joules, 2e-5), "%s: %.12g J, by the law %.12g", what,
                 fl_joules(fx_energy(n)), joules);
        fl_node_close(n);
    }
    fx_close(&r);
}

static void test_changes(void) {
    static const struct {
        const char *what;
        int64_t gap_ns, work_ns;
        change ch[3];
        size_t count;
    } rows[] = {
        {"none", 10, 1000000, {{0, 0}}, 0},
        {"halfway, to half the clock", 0, 1000000, {{500000000, 500}}, 1},
        {"halfway, to half as much again", 0, 1000000, {{500000000, 1500}}, 1},
        {"at the first instant", 0, 1000000, {{0, 700}}, 1},
        {"one ps before the end", 0, 1000000, {{999999999, 500}}, 1},
        {"in the gap", 1000000, 1000000, {{300000000, 700}}, 1},
        {"at the end of the gap", 1000000, 1000000, {{1000000000, 700}}, 1},
        {"twice in one kernel", 100, 1000000, {{200000000, 700}, {900000000, 1300}}, 2},
        {"there and back", 100, 1000000, {{200000000, 1500}, {300000000, 1000}}, 2},
        {"gap and kernel", 1000000, 333333, {{999999999, 600}, {1000000001, 1400}, {1100000000, 900}}, 3},
        {"a kernel of 256 ns", 0, 256, {{100000, 600}, {170000, 1100}}, 2},
        {"a kernel of an hour",
         70000,
         3600000000000,
         {{INT64_C(1000000000000000), 1100}, {INT64_C(2000000000000001), 600}},
         2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_changes(rows[i].what, rows[i].gap_ns, rows[i].work_ns, rows[i].ch, rows[i].count);
}

/* An op that ends at a boundary has ended: the change belongs to the next one, all of it. */
static void test_change_at_the_end(void) {
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 1);
        uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), s = fx_stream(&r, 0, 0);
        fx_op(&r, s, 0, 1000000, c);
        fx_op(&r, s, 0, 1000000, c);
        fx_finish(&r, 2);
        fl_node *n = fx_node(&r, 0, only);
        fl_node_set(n, 0, FX_MS_PS, 500, NAN);
        fx_advance(n, FX_MS_PS);
        FL_CHECK(fl_node_gpu(n, 0)->sums.kernels == 1, "way %d: the first has ended", only);
        FL_CHECK(fl_node_gpu(n, 0)->sm == 0, "way %d: the clock has changed", only);
        fx_to_end(n);
        FL_CHECK(fl_node_marks(n, s)[0] == FX_MS_PS && fl_node_now(n) == 3 * FX_MS_PS, "way %d: ends at %lld ps", only,
                 (long long)fl_node_now(n));
        fl_wide fj = (fl_wide)FX_MS_PS * 140000 + (fl_wide)2 * FX_MS_PS * 85000;
        FL_CHECK(fx_energy(n) == fj, "way %d: %g fJ, expected %g", only, fx_f(fx_energy(n)), fx_f(fj));
        fl_node_close(n);
        fx_close(&r);
    }
}

static void test_many_changes(void) {
    enum { CHANGES = 100000 };
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 1);
        uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 2000000000, c); /* 2 s of work, in steps of 17 us at random clocks */
        fx_finish(&r, 0);
        fl_random g = fl_random_seed(5, 5);
        fl_node *n = fx_node(&r, 0, only);
        double work = 0, joules = 0, f = 1;
        for (int64_t i = 1; i <= CHANGES; i++) {
            int64_t t = i * 17 * FX_US_PS;
            work += 17e-6 * f;
            joules += 17e-6 * (30 + 110 * f);
            double mhz = 500 + 100 * (double)fl_random_below(&g, 7);
            fl_node_set(n, 0, t, mhz, NAN);
            fx_advance(n, t);
            f = mhz * 1e-3;
        }
        fx_to_end(n);
        double rest = (2 - work) / f, end = CHANGES * 17e-6 + rest;
        joules += rest * (30 + 110 * f);
        FL_CHECK(fl_node_switches(n) > CHANGES / 2, "%llu switches", (unsigned long long)fl_node_switches(n));
        FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), end, 1e-6), "way %d: %.12g s, expected %.12g", only,
                 fl_seconds(fl_node_now(n)), end);
        FL_CHECK(fx_near(fl_joules(fx_energy(n)), joules, 1e-6), "way %d: %.12g J, expected %.12g", only,
                 fl_joules(fx_energy(n)), joules);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A memory clock: T = tm m_ref / m while that is the larger term. */
static void test_memory_clock(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_class(&r, 0.5, 1, 0, 0, 1, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, c);
    fx_finish(&r, 0);
    for (int only = 0; only < 2; only++) {
        fl_node *n = fx_node(&r, 0, only);
        fl_node_set(n, 0, FX_MS_PS / 4, NAN, 400);
        fx_advance(n, FX_MS_PS / 4);
        fx_to_end(n); /* a quarter at 800, the rest takes twice as long */
        FL_CHECK(fl_node_now(n) == FX_MS_PS / 4 * 7, "way %d: %lld ps", only, (long long)fl_node_now(n));
        fl_wide fj = (fl_wide)(FX_MS_PS / 4) * 90000 + (fl_wide)(FX_MS_PS / 4 * 6) * 60000;
        FL_CHECK(fx_energy(n) == fj, "way %d: %g fJ, expected %g", only, fx_f(fx_energy(n)), fx_f(fj));
        fl_node_close(n);
    }
    fx_close(&r);
}

/* ---- equal bits ---- */

static void same(const char *what, uint64_t seed, const fl_run_result *a, const fl_run_result *b, bool steps) {
    FL_CHECK(a->makespan_ps == b->makespan_ps, "%s, seed %llu: %lld ps and %lld", what, (unsigned long long)seed,
             (long long)a->makespan_ps, (long long)b->makespan_ps);
    FL_CHECK(a->energy_fj == b->energy_fj, "%s, seed %llu: %.20g fJ and %.20g", what, (unsigned long long)seed,
             fx_f(a->energy_fj), fx_f(b->energy_fj));
    FL_CHECK(a->kernels == b->kernels && a->mark_count == b->mark_count &&
                 memcmp(a->mark_ps, b->mark_ps, a->mark_count * sizeof *a->mark_ps) == 0 &&
                 memcmp(&a->ledger, &b->ledger, sizeof a->ledger) == 0,
             "%s, seed %llu: kernels, marks or parts differ", what, (unsigned long long)seed);
    if (steps)
        FL_CHECK(a->hash == b->hash && a->switches == b->switches &&
                     memcmp(&a->counts, &b->counts, sizeof a->counts) == 0 &&
                     fx_near(a->peak_power_w, b->peak_power_w, 0),
                 "%s, seed %llu: steps differ: hash %llx and %llx, %llu and %llu switches, peak %g and %g W", what,
                 (unsigned long long)seed, (unsigned long long)a->hash, (unsigned long long)b->hash,
                 (unsigned long long)a->switches, (unsigned long long)b->switches, a->peak_power_w, b->peak_power_w);
}

/* Sensors of every kind, at odd periods. */
static void add_sensors(fl_device *dev, fl_random *g) {
    for (int i = 0; i < FL_SENSOR_COUNT; i++) {
        int64_t period = 100000 + (int64_t)fl_random_below(g, 3000000);
        dev->sensor[i] = (fl_sensor_spec){.present = 1, .period_ns = period};
        dev->sensor[i].phase_ns = (int64_t)fl_random_below(g, (uint64_t)period);
        dev->sensor[i].window_ns = i == FL_SENSOR_POWER_INSTANT || i == FL_SENSOR_CLOCK || i == FL_SENSOR_ENERGY
                                       ? 0
                                       : 1 + (int64_t)fl_random_below(g, (uint64_t)(3 * period));
        dev->sensor[i].delay_ns = fl_random_below(g, 2) ? 0 : (int64_t)fl_random_below(g, (uint64_t)(2 * period));
        dev->sensor[i].noise = 1;
    }
}

static void random_rig(fx_rig *r, uint64_t seed, uint32_t gpus, uint32_t streams_per_gpu, size_t ops) {
    fl_random g = fl_random_seed(seed, 21);
    fx_open(r, gpus);
    r->facts.seed = seed;
    r->spec.device->actuator = (fl_actuator_spec){.call_ns = (int64_t)fl_random_below(&g, 200000),
                                                  .settle_ns = (int64_t)fl_random_below(&g, 3000000),
                                                  .read_ns = (int64_t)fl_random_below(&g, 50000)};
    add_sensors(r->spec.device, &g);
    fx_random_classes(r, &g, 6, 1);
    r->w->class[5].copy = true;
    for (uint32_t i = 0; i < gpus * streams_per_gpu; i++)
        fx_random_ops(r, &g, fx_stream(r, i / streams_per_gpu, (int32_t)i), ops, 40000);
    fx_finish(r, 10);
}

typedef struct digest { /* of all that a policy and a plot see */
    uint64_t h, steps, truths;
} digest;

static void feed(digest *x, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        x->h = (x->h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    digest *x = user;
    (void)d;
    x->steps++;
    feed(x, &sample->time_ns, sizeof sample->time_ns);
    feed(x, sample->gpu, sample->gpu_count * sizeof *sample->gpu);
    feed(x, &decision->delay_ns, sizeof decision->delay_ns);
    for (uint64_t i = 0; i < sample->record_count; i++)
        feed(x, &sample->record[i], sizeof *sample->record);
    return FL_OK;
}

static fl_status on_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    digest *x = user;
    (void)d;
    x->truths += t_ps == fl_node_now(node);
    return FL_OK;
}

/* A lone stream scanned, and the same by the general way: every step, reading and bit. */
static void test_scan_and_streams(void) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fx_rig r;
        random_rig(&r, seed, 1 + (uint32_t)(seed % 3), 1, 300);
        static const int64_t steps_us[] = {100, 1000, 1500, 20000};
        for (size_t i = 0; i < 4; i++) {
            digest da = {0}, db = {0};
            fx_how how = {
                .needs = every_signal, .mode = FX_RANDOM_BOTH, .step_us = steps_us[i], .on_step = on_step, .user = &da};
            how.records = i == 2;
            fl_run_result a, b;
            fx_run(&r, &how, &a);
            how.path = FL_PATH_EVENTS;
            how.user = &db;
            fx_run(&r, &how, &b);
            same("scan and streams", seed, &a, &b, true);
            FL_CHECK(da.steps > 0 && da.steps == db.steps && da.h == db.h,
                     "seed %llu, %lld us: the policy saw something else", (unsigned long long)seed,
                     (long long)steps_us[i]);
            fl_run_result_free(&a);
            fl_run_result_free(&b);
        }
        fx_close(&r);
    }
}

/* Sensors, records, truth and repetition cannot show in the course, whatever the policy does. */
static void test_observers(void) {
    for (uint64_t seed = 1; seed <= 10; seed++) {
        fx_rig r;
        random_rig(&r, seed, 1 + (uint32_t)(seed % 3), 1 + (uint32_t)(seed % 4), 100);
        digest x = {0};
        const fx_how plain = {.mode = FX_RANDOM_BOTH};
        const struct {
            const char *what;
            fx_how how;
        } rows[] = {
            {"again", plain},
            {"with sensors", {.mode = FX_RANDOM_BOTH, .needs = every_signal}},
            {"with records", {.mode = FX_RANDOM_BOTH, .records = true}},
            {"with truth", {.mode = FX_RANDOM_BOTH, .on_truth = on_truth, .truth_ns = 70001, .user = &x}},
            {"with all of them",
             {.mode = FX_RANDOM_BOTH,
              .needs = every_signal,
              .records = true,
              .on_truth = on_truth,
              .truth_ns = 333333,
              .user = &x}},
        };
        fl_run_result a, b;
        fx_run(&r, &plain, &a);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            fx_run(&r, &rows[i].how, &b);
            same(rows[i].what, seed, &a, &b, true);
            fl_run_result_free(&b);
        }
        FL_CHECK(x.truths > 10, "truth was asked for %llu times", (unsigned long long)x.truths);
        fl_run_result_free(&a);
        fx_close(&r);
    }
}

/* What the policy reads does not depend on who else watches. */
static void test_readings_with_truth(void) {
    for (uint64_t seed = 1; seed <= 10; seed++) {
        fx_rig r;
        random_rig(&r, seed, 2, 1 + seed % 2, 150);
        digest x[2] = {{0}, {0}};
        fl_run_result a, b;
        fx_how how = {.mode = FX_RANDOM, .step_us = 2500, .needs = every_signal, .on_step = on_step, .user = &x[0]};
        fx_run(&r, &how, &a);
        how.on_truth = on_truth;
        how.truth_ns = 123457;
        how.user = &x[1];
        fx_run(&r, &how, &b);
        FL_CHECK(x[0].h == x[1].h && x[0].steps == x[1].steps, "seed %llu: readings differ", (unsigned long long)seed);
        fl_run_result_free(&a);
        fl_run_result_free(&b);
        fx_close(&r);
    }
}

/* Where the boundaries lie cannot show: steps of a policy that sets nothing. */
static void test_boundaries(void) {
    for (uint64_t seed = 1; seed <= 12; seed++) {
        fx_rig r;
        random_rig(&r, seed, 1 + seed % 2, 1 + (uint32_t)(seed % 5),
                   200); /* scarce: demands sum to more than one GPU */
        fl_run_result none, some;
        fx_run(&r, &(fx_how){.mode = -1}, &none);
        static const int64_t steps_us[] = {1000, 10000, 37};
        for (size_t i = 0; i < 3; i++) {
            fx_run(&r, &(fx_how){.mode = FX_NOTHING, .step_us = steps_us[i], .needs = i == 1 ? every_signal : 0},
                   &some);
            same("boundaries", seed, &none, &some, false);
            FL_CHECK(some.switches == 0, "nothing was set");
            fl_run_result_free(&some);
        }
        fl_run_result_free(&none);
        fx_close(&r);
    }
}

/* ---- threads ---- */

enum { JOBS = 24 };

typedef struct pool {
    const fx_rig *r;
    int next;
    pthread_mutex_t lock;
    fl_run_result result[JOBS];
} pool;

static void *work(void *arg) {
    pool *p = arg;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        int i = p->next++;
        pthread_mutex_unlock(&p->lock);
        if (i >= JOBS)
            return NULL;
        fx_rig mine = *p->r; /* rates and workload are shared */
        mine.facts.seed = (uint64_t)i / 2;
        mine.facts.gpu = mine.gpu_facts;
        fx_run(&mine, &(fx_how){.mode = FX_RANDOM_BOTH, .needs = i & 1 ? every_signal : 0}, &p->result[i]);
    }
}

static void test_threads(void) {
    pool *p = fx_alloc(3, sizeof *p);
    static const int threads[] = {1, 2, 4};
    for (int k = 0; k < 3; k++) {
        fx_rig r;
        random_rig(&r, 99, 2, 2, 100); /* new rates each time, so that the threads race to build them */
        p[k].r = &r;
        pthread_mutex_init(&p[k].lock, NULL);
        pthread_t t[4];
        for (int i = 0; i < threads[k]; i++)
            if (pthread_create(&t[i], NULL, work, &p[k]))
                exit(1);
        for (int i = 0; i < threads[k]; i++)
            pthread_join(t[i], NULL);
        pthread_mutex_destroy(&p[k].lock);
        fx_close(&r);
    }
    for (int i = 0; i < JOBS; i++) {
        same("two threads", (uint64_t)i, &p[0].result[i], &p[1].result[i], true);
        same("four threads", (uint64_t)i, &p[0].result[i], &p[2].result[i], true);
        if (i & 1)
            same("sensors", (uint64_t)i / 2, &p[0].result[i - 1], &p[0].result[i], true);
    }
    for (int i = 0; i < 3 * JOBS; i++)
        fl_run_result_free(&p[i / JOBS].result[i % JOBS]);
    free(p);
}

/* ---- actuators, through a policy of fixed sets ---- */

static const char *no_init(void *state, const void *params, const fl_facts *facts) {
    (void)state, (void)params, (void)facts;
    return NULL;
}

/* At step 0 both clocks, at step 1 the SM clock again, at step 2 the default. */
static void scripted(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    (void)state, (void)params, (void)facts;
    c->delay_ns = sample->step == 3 ? 1 : 1000000; /* less than the loop: the next step comes as soon as it can */
    if (sample->step == 0) {
        fl_set_gpu(c, 0, FL_SET_SM_MHZ, 1400);
        fl_set_gpu(c, 0, FL_SET_MEM_MHZ, 400);
    } else if (sample->step == 1) {
        fl_set_gpu(c, 0, FL_SET_SM_MHZ, 520); /* snapped to 500 */
    } else if (sample->step == 2) {
        fl_set_gpu(c, 0, FL_SET_SM_MHZ, FL_DEFAULT);
        fl_set_gpu(c, 0, FL_SET_POWER_LIMIT_W, 100);
    }
}

typedef struct seen {
    int64_t time_ns[16];
    double loop_ns[16], sm_mhz[16], mem_mhz[16];
    uint64_t loop_known[16];
    size_t count;
} seen;

static fl_status remember(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    seen *s = user;
    (void)decision, (void)d;
    if (s->count < 16) {
        s->time_ns[s->count] = sample->time_ns;
        s->loop_known[s->count] = sample->host.valid & FL_BIT(FL_HOST_LOOP_NS);
        s->loop_ns[s->count] = sample->host.value[FL_HOST_LOOP_NS];
        s->sm_mhz[s->count] = sample->gpu[0].value[FL_GPU_SM_MHZ];
        s->mem_mhz[s->count++] = sample->gpu[0].value[FL_GPU_MEM_MHZ];
    }
    return FL_OK;
}

/* Read 20 us, a call 100 us, settling 1.5 ms. Step 0 at 0: SM called at 120 us, settled at 1.62 ms; memory called at
 * 220 us, settled at 1.72 ms. Step 1 at 1 ms, while both settle: SM called at 1.12, settled at 2.62 ms. Step 2 at 2 ms:
 * default called at 2.12, settled at 3.62 ms; the limit, which this node does not have, keeps its caller until 2.22 ms.
 * Step 3 at 3 ms asks for 1 ns: step 4 comes after the reading, at 3.02 ms, and then each 1 ms. */
static void test_actuator(void) {
    fl_policy policy = fx_policy(FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ));
    policy.gpu_drives |= FL_BIT(FL_SET_POWER_LIMIT_W);
    policy.init = no_init;
    policy.step = scripted;
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->sensor[FL_SENSOR_CLOCK] = (fl_sensor_spec){.present = 1};
        r.spec.device->actuator = (fl_actuator_spec){.call_ns = 100000, .settle_ns = 1500000, .read_ns = 20000};
        uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 5000000, c);
        fx_finish(&r, 0);
        seen s = {.count = 0};
        fl_run_options o = {.w = r.w, .rates = r.rates, .spec = &r.spec, .facts = &r.facts, .policy = &policy};
        o.path = only ? FL_PATH_EVENTS : FL_PATH_AUTO;
        o.on_step = remember;
        o.user = &s;
        fl_run_result result;
        FX_MUST(fl_run(&o, &result, d));
        static const struct {
            int64_t time_ns, loop_ns;
            double sm, mem;
        } rows[] = {{0, 0, 1000, 800},           {1000000, 220000, 1000, 800}, {2000000, 120000, 1400, 400},
                    {3000000, 220000, 500, 400}, {3020000, 20000, 500, 400},   {4020000, 20000, 1000, 400}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            FL_CHECK(i < s.count && s.time_ns[i] == rows[i].time_ns, "step %zu at %lld ns", i, (long long)s.time_ns[i]);
            FL_CHECK((s.loop_known[i] != 0) == (i > 0) && (i == 0 || fx_near(s.loop_ns[i], (double)rows[i].loop_ns, 0)),
                     "step %zu: the last loop took %g ns, expected %lld", i, s.loop_ns[i], (long long)rows[i].loop_ns);
            FL_CHECK(fx_near(s.sm_mhz[i], rows[i].sm, 0) && fx_near(s.mem_mhz[i], rows[i].mem, 0),
                     "step %zu: clocks %g and %g, expected %g and %g", i, s.sm_mhz[i], s.mem_mhz[i], rows[i].sm,
                     rows[i].mem);
        }
        FL_CHECK(result.switches == 4 && result.ignored_sets == 1 && result.counts.snapped == 1,
                 "%llu switches, %llu ignored, %llu snapped", (unsigned long long)result.switches,
                 (unsigned long long)result.ignored_sets, (unsigned long long)result.counts.snapped);
        /* work: 1.62 ms at 1, 1.0 ms at 1.4, 1.0 ms at 0.5, the rest at 1 */
        double end = 3.62e-3 + (5e-3 - 1.62e-3 - 1.4e-3 - 0.5e-3);
        FL_CHECK(fx_near(result.makespan_s, end, 2e-5), "way %d: %.9g s, expected %.9g", only, result.makespan_s, end);
        double joules =
            1.62e-3 * 140 + 0.1e-3 * (44 + 140) + 0.9e-3 * (39 + 140) + 1e-3 * (30 + 50) + (end - 3.62e-3) * (35 + 100);
        FL_CHECK(fx_near(result.energy_j, joules, 2e-5), "way %d: %.9g J, expected %.9g", only, result.energy_j,
                 joules);
        FL_CHECK(result.policy_cost_ps == (int64_t)(3 * 20000 + 500000 + ((int64_t)s.count - 3) * 20000) * 1000,
                 "the policy cost %lld ps in %zu steps", (long long)result.policy_cost_ps, s.count);
        fl_run_result_free(&result);
        fx_close(&r);
    }
}

/* Sets at one instant: the last one holds. More at once than can wait: the newest holds in the end. */
static void test_many_sets(void) {
    fx_rig r;
    fx_open(&r, 1);
    r.spec.device->actuator.settle_ns = 1000000;
    fx_op(&r, fx_stream(&r, 0, 0), 0, 10000000, fx_light(&r));
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_set(n, 0, 0, 1500, NAN);
    fl_node_set(n, 0, 0, 700, NAN);
    fx_advance(n, FX_MS_PS - 1);
    FL_CHECK(r.spec.device->sm_mhz[fl_node_gpu(n, 0)->sm] == 1000, "it settles one ps later");
    fx_advance(n, FX_MS_PS);
    FL_CHECK(r.spec.device->sm_mhz[fl_node_gpu(n, 0)->sm] == 700 && fl_node_switches(n) == 1, "the last one holds");
    for (int i = 0; i < 200; i++)
        fl_node_set(n, 0, FX_MS_PS + i, i % 2 ? 1300 : 900, i == 150 ? 400 : NAN);
    fx_advance(n, 3 * FX_MS_PS);
    FL_CHECK(r.spec.device->sm_mhz[fl_node_gpu(n, 0)->sm] == 1300 && fl_node_gpu(n, 0)->mem == 0, "clocks %u %u",
             fl_node_gpu(n, 0)->sm, fl_node_gpu(n, 0)->mem);
    fl_node_set(n, 0, 3 * FX_MS_PS, FL_DEFAULT, FL_DEFAULT);
    fx_advance(n, 4 * FX_MS_PS);
    FL_CHECK(r.spec.device->sm_mhz[fl_node_gpu(n, 0)->sm] == 1000 && fl_node_gpu(n, 0)->mem == 1, "the driver's own");
    fl_node_close(n);
    fx_close(&r);
}

/* ---- ends, and records ---- */

static void test_early_end(void) {
    fx_rig r;
    fx_open(&r, 3); /* GPU 0 works 1 ms, GPU 1 works 7 s, GPU 2 never */
    uint32_t c = fx_light(&r);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, c);
    fx_op(&r, fx_stream(&r, 1, 0), 0, 7000000000, c);
    fx_finish(&r, 0);
    for (int64_t step_us = 0; step_us <= 1000; step_us += 250) { /* 0: none; 250 and 1000: it ends at a step */
        fl_run_result result;
        fx_run(&r,
               &(fx_how){.mode = step_us ? FX_NOTHING : -1,
                         .step_us = step_us,
                         .path = step_us == 500 ? FL_PATH_EVENTS : FL_PATH_AUTO},
               &result);
        int64_t end = 7 * FL_PS_PER_S;
        fl_wide closed = (fl_wide)(2 * end - FX_MS_PS) * 8000, open = (fl_wide)(end + FX_MS_PS) * 140000;
        FL_CHECK(result.makespan_ps == end, "it ends at %lld ps", (long long)result.makespan_ps);
        FL_CHECK(result.ledger.part_fj[FL_PART_CLOSED] == closed, "step %lld: closed boards %g fJ, expected %g",
                 (long long)step_us, fx_f(result.ledger.part_fj[FL_PART_CLOSED]), fx_f(closed));
        FL_CHECK(result.energy_fj == open + closed, "energy %g fJ, expected %g", fx_f(result.energy_fj),
                 fx_f(open + closed));
        fl_run_result_free(&result);
    }
    fx_close(&r);
}

static fl_status keep_records(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    fl_kernel_record **to = user;
    (void)decision, (void)d;
    for (uint64_t i = 0; i < sample->record_count; i++)
        *(*to)++ = sample->record[i];
    return FL_OK;
}

static void test_records_by_hand(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t a = fx_light(&r), b = fx_class(&r, 1, 0, 0, 1, 0, 0.1), s = fx_stream(&r, 0, 5), q = fx_stream(&r, 1, 3);
    fx_op(&r, s, 10, 1000, a);
    fx_op(&r, s, 500, 2000, b);
    fx_op(&r, s, 0, 0, a);
    fx_op(&r, s, 0, 4000000, a);
    fx_op(&r, q, 0, 3510, b);
    fx_op(&r, q, 70000, 4000000, a);
    r.w->class[b].kind.grid[0] = 9;
    fx_finish(&r, 0);
    static const fl_kernel_record rows[] = {{10, 1010, 0, 5, 0, 0},
                                            {1510, 3510, 1, 5, 0, 0},
                                            {3510, 3510, 0, 5, 0, 0},
                                            {0, 3510, 1, 3, 1, 0},
                                            {3510, 4003510, 0, 5, 0, 0}};
    for (int only = 0; only < 2; only++) {
        fl_kernel_record got[16] = {{0}}, *to = got;
        fx_how how = {.mode = FX_NOTHING,
                      .step_us = 1,
                      .records = true,
                      .path = only ? FL_PATH_EVENTS : FL_PATH_AUTO,
                      .on_step = keep_records,
                      .user = &to};
        fl_run_result result;
        fx_run(&r, &how, &result);
        FL_CHECK(to - got == 5, "way %d: %td records before the last step", only, to - got);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            FL_CHECK(memcmp(&got[i], &rows[i], sizeof *rows) == 0,
                     "way %d, record %zu: %lld-%lld kind %u stream %u gpu %u", only, i, (long long)got[i].start_ns,
                     (long long)got[i].end_ns, got[i].kind, got[i].stream, got[i].gpu);
        fl_run_result_free(&result);
    }
    fx_close(&r);
}

typedef struct audit {
    int64_t last_ns, step_ns;
    uint64_t count;
    bool ordered, whole;
} audit;

static fl_status audit_records(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    audit *a = user;
    (void)decision, (void)d;
    for (uint64_t i = 0; i < sample->record_count; i++) {
        const fl_kernel_record *k = &sample->record[i];
        a->ordered &= k->end_ns >= a->last_ns && k->start_ns <= k->end_ns;
        a->whole &= k->end_ns <= sample->time_ns && k->end_ns >= a->step_ns && k->kind < sample->kind_count;
        a->last_ns = k->end_ns;
        a->count++;
    }
    a->step_ns = sample->time_ns;
    return FL_OK;
}

static void test_records(void) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        fx_rig r;
        random_rig(&r, seed, 2, 1 + (uint32_t)(seed % 3), 200);
        audit a = {.ordered = true, .whole = true};
        fl_run_result result;
        fx_run(&r, &(fx_how){.mode = FX_RANDOM, .step_us = 300, .records = true, .on_step = audit_records, .user = &a},
               &result);
        FL_CHECK(a.ordered && a.whole, "seed %llu: by end %d, within their steps %d", (unsigned long long)seed,
                 a.ordered, a.whole);
        FL_CHECK(a.count > result.kernels * 9 / 10 && a.count <= result.kernels,
                 "seed %llu: %llu records of %llu kernels", (unsigned long long)seed, (unsigned long long)a.count,
                 (unsigned long long)result.kernels);
        fl_run_result_free(&result);
        fx_close(&r);
    }
}

/* Records that end at one instant, on one stream, keep their order. */
static void test_equal_records(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t kinds[6], s = fx_stream(&r, 0, 0);
    for (int i = 0; i < 6; i++)
        kinds[i] = fx_light(&r);
    fx_op(&r, fx_stream(&r, 0, 1), 0, 5000000, kinds[0]);
    for (int i = 0; i < 6; i++)
        fx_op(&r, s, 0, 0, kinds[i]);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_records(n, 0, true);
    fx_advance(n, 1000);
    const fl_kernel_record *k;
    size_t count;
    FX_MUST(fl_node_take_records(n, &k, &count, d));
    FL_CHECK(count == 6, "%zu records", count);
    for (size_t i = 0; i < count; i++)
        FL_CHECK(k[i].kind == kinds[i], "record %zu is of kind %u", i, k[i].kind);
    fl_node_close(n);
    fx_close(&r);
}

/* ---- what is refused ---- */

/* Twenty days of work at half the clock: longer than picoseconds are counted. An end, and no loop for ever. */
static void test_too_long(void) {
    for (int mode = -1; mode <= FX_NOTHING; mode++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->default_sm_mhz = r.gpu_facts[0].default_sm_mhz = 500;
        uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
        for (int i = 0; i < 20; i++)
            fx_op(&r, s, 0, INT64_C(86400000000000), c);
        fx_finish(&r, 0);
        fl_run_result result;
        fl_diag diag = {0};
        fl_status status = fx_try(&r, &(fx_how){.mode = mode, .step_us = 1000000000000}, &result, &diag);
        FL_CHECK(status == FL_BAD_INPUT && strstr(diag.message, "26 days"), "mode %d: %d '%s'", mode, status,
                 diag.message);
        fx_close(&r);
    }
}

/* A policy that means never to be called again is no error. */
static void test_long_delay(void) {
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, fx_light(&r));
    fx_finish(&r, 0);
    fl_run_result result;
    fx_run(&r, &(fx_how){.mode = FX_RANDOM, .step_us = 1000000000000}, &result);
    FL_CHECK(result.counts.steps == 1, "%llu steps", (unsigned long long)result.counts.steps);
    fl_run_result_free(&result);
    fx_close(&r);
}

static void test_refusals(void) {
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 1, 0), 0, 1000, fx_light(&r)); /* on GPU 1 of a node with one */
    fx_finish(&r, 0);
    fl_run_result result;
    fl_diag diag = {0};
    fl_status s = fx_try(&r, &(fx_how){.mode = -1}, &result, &diag);
    FL_CHECK(s == FL_BAD_INPUT && strstr(diag.message, "uses 2 GPUs"), "%d '%s'", s, diag.message);
    fx_close(&r);

    fx_open(&r, 1); /* a table that ends at 900 MHz, at 1000 */
    double mhz[2] = {500, 900}, one[2] = {2, 1}, watts[2] = {75, 175};
    fl_measured m = {0};
    if (fl_curve_new(&m.time_ratio, mhz, one, 2) || fl_curve_new(&m.power_w, mhz, watts, 2))
        exit(1);
    fl_load load = {.sm_demand = 1, .ref_sm_mhz = 900, .ref_mem_mhz = 800, .measured = &m};
    uint32_t c;
    FX_MUST(fl_workload_add_class(r.w, &load, &(fl_kernel_kind){.name = "spmv"}, &c, d));
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, c);
    fx_finish(&r, 0);
    s = fx_try(&r, &(fx_how){.mode = -1}, &result, &diag);
    FL_CHECK(s == FL_BAD_INPUT && strstr(diag.message, "spmv") && strstr(diag.message, "1000 MHz"), "%d '%s'", s,
             diag.message);
    fx_close(&r);
}

FL_SUITE("engine", {"changes", test_changes}, {"change at the end", test_change_at_the_end},
         {"many changes", test_many_changes}, {"memory clock", test_memory_clock},
         {"scan and streams", test_scan_and_streams}, {"observers", test_observers},
         {"readings with truth", test_readings_with_truth}, {"boundaries", test_boundaries}, {"threads", test_threads},
         {"actuator", test_actuator}, {"many sets", test_many_sets}, {"early end", test_early_end},
         {"records by hand", test_records_by_hand}, {"records", test_records}, {"equal records", test_equal_records},
         {"too long", test_too_long}, {"long delay", test_long_delay}, {"refusals", test_refusals})
