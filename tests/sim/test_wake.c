/* Steps at iteration markers: a policy that asks for it is stepped exactly when one is passed, whatever the way of
 * advancing, and to stop there changes nothing of the course. */
#include "tests/support/reads.h"
#include "tests/support/node_fixture.h"

#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define ALL_SENSORS (FL_BIT(FL_GPU_SIGNAL_COUNT) - 1)

/* ---- a policy that waits for markers ---- */

typedef struct waiter_params {
    int64_t delay_us, wake, clocks;
    fl_table delays; /* instead of delay_us, one after the other */
} waiter_params;

typedef struct waiter_state {
    fl_random random;
} waiter_state;

static const char *waiter_init(void *state, const void *params, const fl_facts *facts) {
    (void)params;
    ((waiter_state *)state)->random = fl_random_seed(facts->seed, 3);
    return NULL;
}

static void waiter_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                        fl_command *command) {
    const waiter_params *p = params;
    waiter_state *s = state;
    command->delay_ns = p->delay_us * 1000;
    if (p->delays.row_count)
        command->delay_ns = (int64_t)p->delays.cell[sample->step % p->delays.row_count];
    command->wake = p->wake ? FL_BIT(FL_WAKE_MARKER) : 0;
    for (uint32_t i = 0; p->clocks && i < facts->gpu_count; i++)
        fl_set_gpu(command, i, FL_SET_SM_MHZ,
                   facts->gpu[i].sm.mhz[fl_random_below(&s->random, facts->gpu[i].sm.count)]);
}

static const fl_param waiter_rows[] = {
    FL_PARAM(waiter_params, delay_us, INT(1, 1000000000), "us", "1000000", "until the next step"),
    FL_PARAM(waiter_params, wake, BOOL, "", "1", "asks for markers"),
    FL_PARAM(waiter_params, clocks, BOOL, "", "0", "sets clocks at random"),
    FL_PARAM(waiter_params, delays, LIST(1, 1e15), "ns", "", "until the next steps, in turn"),
};

static fl_policy waiter(uint64_t needs, bool declared) {
    fl_policy p = {FL_POLICY_ABI,
                   .name = "waiter",
                   .summary = "waits for markers",
                   .source = "none",
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                   .wakes = declared ? FL_BIT(FL_WAKE_MARKER) : 0,
                   .param_count = FL_COUNT(waiter_rows),
                   .param = waiter_rows,
                   .param_size = sizeof(waiter_params),
                   .state_size = sizeof(waiter_state),
                   .init = waiter_init,
                   .step = waiter_step};
    rx_read(&p, (rx_set){.gpu = needs | FL_BIT(FL_GPU_ITERATIONS)});
    return p;
}

/* ---- what it saw ---- */

enum { STEPS_MAX = 4096 };

typedef struct seen {
    size_t count;
    struct {
        int64_t t_ns;
        uint32_t woken;
        double markers[FX_GPUS_MAX];
    } step[STEPS_MAX];
    fl_gpu_sample gpu[STEPS_MAX]; /* of GPU 0 */
} seen;

static fl_status note(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    seen *s = user;
    (void)decision;
    if (s->count == STEPS_MAX)
        return fl_refuse(d, "more steps than there is room for");
    s->step[s->count].t_ns = sample->time_ns;
    s->step[s->count].woken = sample->woken;
    for (uint32_t i = 0; i < sample->gpu_count; i++)
        s->step[s->count].markers[i] = sample->gpu[i].value[FL_GPU_ITERATIONS];
    s->gpu[s->count++] = sample->gpu[0];
    return FL_OK;
}

typedef struct how {
    const char *delay_us, *wake, *clocks;
    const fl_table *delays;
    uint64_t needs;
    bool undeclared;
    fl_path path;
    int64_t truth_ns;
} how;

static fl_status count_looks(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    (void)user, (void)node, (void)t_ps, (void)d;
    return FL_OK;
}

static void run(const fx_rig *r, const how *h, seen *s, fl_run_result *result) {
    const fl_policy policy = waiter(h->needs, !h->undeclared);
    fl_setting setting[4];
    size_t count = 0;
    if (h->delay_us)
        setting[count++] = (fl_setting){.name = "delay_us", .text = h->delay_us};
    if (h->wake)
        setting[count++] = (fl_setting){.name = "wake", .text = h->wake};
    if (h->clocks)
        setting[count++] = (fl_setting){.name = "clocks", .text = h->clocks};
    if (h->delays)
        setting[count++] = (fl_setting){.name = "delays", .table = h->delays};
    const fl_layer layer = {.origin = "test", .setting = setting, .count = count};
    const fl_run_options o = {.hashed = true,
                              .w = r->w,
                              .rates = r->rates,
                              .spec = &r->spec,
                              .facts = &r->facts,
                              .policy = &policy,
                              .layer = &layer,
                              .layer_count = 1,
                              .path = h->path,
                              .on_step = note,
                              .on_truth = h->truth_ns ? count_looks : NULL,
                              .truth_ns = h->truth_ns,
                              .user = s};
    s->count = 0;
    FX_MUST(fl_run(&o, result, d));
}

static uint32_t marker_class(fx_rig *r) {
    const uint32_t id = fx_class(r, 1, 0, 0, 0, 0, 0);
    r->w->class[id].iteration = true;
    return id;
}

/* ---- by hand ----
 * GPU 0: 10 ms, marker, 20 ms, marker, 30 ms. GPU 1: 10 ms, marker, 5 ms, marker, 1 ms. */

static void open_hand(fx_rig *r, bool one_island) {
    static const int64_t MS[2][3] = {{10, 20, 30}, {10, 5, 1}};
    fx_open(r, 2);
    const uint32_t light = fx_light(r), marker = marker_class(r);
    for (uint32_t g = 0; g < 2; g++)
        fx_stream(r, g, (int32_t)g);
    for (uint32_t g = 0; g < 2; g++)
        for (int k = 0; k < 3; k++) {
            fx_op(r, g, 0, MS[g][k] * 1000000, light);
            if (one_island && g && !k) /* the first of GPU 1 waits for nothing that keeps it */
                fx_wait(r, g, 0, 0);
            if (k < 2)
                fx_op(r, g, 0, 0, marker);
        }
    fx_finish(r, 0);
}

typedef struct expected {
    int64_t t_us;
    uint32_t woken;
    double markers[2];
} expected;

static void check_steps(const char *what, const seen *s, const expected *e, size_t count) {
    FL_CHECK(s->count == count, "%s: %zu steps, expected %zu", what, s->count, count);
    for (size_t i = 0; i < count && i < s->count; i++)
        FL_CHECK(s->step[i].t_ns == e[i].t_us * 1000 && s->step[i].woken == e[i].woken &&
                     s->step[i].markers[0] == e[i].markers[0] && s->step[i].markers[1] == e[i].markers[1],
                 "%s: step %zu at %lld ns, woken %u, markers %g and %g, expected %lld us, %u, %g and %g", what, i,
                 (long long)s->step[i].t_ns, s->step[i].woken, s->step[i].markers[0], s->step[i].markers[1],
                 (long long)e[i].t_us, e[i].woken, e[i].markers[0], e[i].markers[1]);
}

static void test_by_hand(void) {
    static const expected AT_MARKERS[] = {{0, 0, {0, 0}}, {10000, 1, {1, 1}}, {15000, 1, {1, 2}}, {30000, 1, {2, 2}}};
    /* Every 15 ms: at 15 the step is due anyway, at 25 and 30 + 15 nothing is passed. */
    static const expected DUE_TOO[] = {
        {0, 0, {0, 0}}, {10000, 1, {1, 1}}, {15000, 1, {1, 2}}, {30000, 0, {2, 2}}, {45000, 0, {2, 2}}};
    static const expected NOT_ASKED[] = {{0, 0, {0, 0}}, {15000, 0, {1, 2}}, {30000, 0, {2, 2}}, {45000, 0, {2, 2}}};
    static seen s;
    for (int one_island = 0; one_island < 2; one_island++) {
        fx_rig r;
        fl_run_result result;
        open_hand(&r, one_island);
        run(&r, &(how){0}, &s, &result);
        check_steps("woken", &s, AT_MARKERS, FL_COUNT(AT_MARKERS));
        FL_CHECK(result.counts.faults == 0, "%llu faults", (unsigned long long)result.counts.faults);
        fl_run_result_free(&result);
        run(&r, &(how){.truth_ns = 4000000}, &s, &result); /* 10 ms is no point of the grid, 20 ms is */
        check_steps("woken, truth looked at", &s, AT_MARKERS, FL_COUNT(AT_MARKERS));
        fl_run_result_free(&result);
        run(&r, &(how){.truth_ns = 5000000}, &s, &result); /* 10, 15 and 30 ms are */
        check_steps("woken, truth looked at there", &s, AT_MARKERS, FL_COUNT(AT_MARKERS));
        fl_run_result_free(&result);
        run(&r, &(how){.delay_us = "15000"}, &s, &result);
        check_steps("due too", &s, DUE_TOO, FL_COUNT(DUE_TOO));
        fl_run_result_free(&result);
        run(&r, &(how){.delay_us = "15000", .wake = "0"}, &s, &result);
        check_steps("not asked for", &s, NOT_ASKED, FL_COUNT(NOT_ASKED));
        fl_run_result_free(&result);
        run(&r, &(how){.delay_us = "15000", .undeclared = true}, &s, &result);
        check_steps("not declared", &s, NOT_ASKED, FL_COUNT(NOT_ASKED));
        FL_CHECK(result.counts.faults == FL_COUNT(NOT_ASKED), "%llu faults, expected one a step",
                 (unsigned long long)result.counts.faults);
        fl_run_result_free(&result);
        fx_close(&r);
    }
}

/* Reading takes 3 ms a GPU, 6 ms in all: from 10 to 16 ms the host is busy. What was passed at 15 wakes it at 16. */
static void test_busy_host(void) {
    static const expected BUSY[] = {{0, 0, {0, 0}}, {10000, 1, {1, 1}}, {16000, 1, {1, 2}}, {30000, 1, {2, 2}}};
    /* It is due at 16 ms, when it is ready: it comes no earlier for what was passed meanwhile. */
    static const expected DUE[] = {{0, 0, {0, 0}},     {6000, 0, {0, 0}},  {12000, 0, {1, 1}}, {18000, 0, {1, 2}},
                                   {24000, 0, {1, 2}}, {30000, 0, {2, 2}}, {36000, 0, {2, 2}}, {42000, 0, {2, 2}},
                                   {48000, 0, {2, 2}}, {54000, 0, {2, 2}}};
    static seen s;
    fx_rig r;
    fl_run_result result;
    open_hand(&r, false);
    r.spec.device->actuator.read_ns = 3000000;
    run(&r, &(how){0}, &s, &result);
    check_steps("a busy host", &s, BUSY, FL_COUNT(BUSY));
    fl_run_result_free(&result);
    run(&r, &(how){.delay_us = "6000"}, &s, &result);
    check_steps("a host that is always busy", &s, DUE, FL_COUNT(DUE));
    fl_run_result_free(&result);
    fx_close(&r);
}

/* ---- at random ---- */

enum { ROUNDS = 60, OPS = 40 };

/* Streams with markers, launched or not, alone or beside others, some of which wait for another GPU. */
static void make_case(fx_rig *r, uint64_t seed, bool whole_ns) {
    fl_random g = fl_random_seed(seed, 9);
    const uint32_t gpus = 1 + (uint32_t)fl_random_below(&g, 3);
    fx_open(r, gpus);
    if (whole_ns)
        fx_light(r);
    else
        fx_random_classes(r, &g, 4, 1);
    const uint32_t marker = marker_class(r), kinds = marker;
    uint32_t first[FX_GPUS_MAX];
    for (uint32_t i = 0; i < gpus; i++) {
        const uint32_t streams = 1 + (uint32_t)fl_random_below(&g, 3);
        const bool launched = !whole_ns && fl_random_below(&g, 2);
        for (uint32_t k = 0; k < streams; k++) {
            const uint32_t s = fx_stream(r, i, (int32_t)(i * 8 + k));
            first[i] = k ? first[i] : s;
            const uint32_t thread = launched ? fx_thread(r) : 0;
            for (uint32_t n = 0; n < OPS; n++) {
                const bool mark = fl_random_below(&g, 3) == 0;
                fx_op(r, s, mark || whole_ns ? 0 : (int64_t)fl_random_below(&g, 3) * 100,
                      mark ? 0 : 1 + (int64_t)fl_random_below(&g, 300000),
                      mark ? marker : (uint32_t)fl_random_below(&g, kinds));
                if (i && !k && n == OPS / 2 && seed % 2)
                    fx_wait(r, s, first[i - 1], OPS / 2);
                if (launched)
                    fx_launch(r, thread, (int64_t)fl_random_below(&g, 20000), s);
            }
        }
    }
    fx_finish(r, 0);
}

static int by_time(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The instants at which the workload passes markers with nobody about, in ps, each once. */
static size_t marker_times(const fx_rig *r, int64_t *t, fl_wide *energy) {
    fl_node *n = fx_node(r, 0, false);
    size_t count = 0, kept = 0;
    fx_to_end(n);
    for (uint32_t i = 0; i < r->w->stream_count; i++) {
        uint64_t passed;
        const int64_t *at = fl_node_iterations(n, i, &passed);
        for (uint64_t k = 0; k < passed; k++)
            t[count++] = at[k];
    }
    *energy = fx_energy(n);
    const int64_t end = fl_node_now(n);
    fl_node_close(n);
    qsort(t, count, sizeof *t, by_time);
    for (size_t i = 0; i < count; i++)
        if (t[i] < end && t[i] &&
            (!kept || t[i] != t[kept - 1])) /* at the start a step is due, at the end none comes */
            t[kept++] = t[i];
    return kept;
}

static void test_at_random(void) {
    static const fl_path PATHS[] = {FL_PATH_AUTO, FL_PATH_PLAIN, FL_PATH_EVENTS, FL_PATH_LAUNCHES};
    static seen s;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        fx_rig r;
        static int64_t t[FX_GPUS_MAX * 8 * OPS];
        fl_wide alone;
        make_case(&r, seed, false);
        const size_t count = marker_times(&r, t, &alone);
        for (size_t p = 0; p < FL_COUNT(PATHS); p++) {
            fl_run_result result;
            run(&r, &(how){.delay_us = "100000000", .path = PATHS[p]}, &s, &result);
            size_t same = s.count == count + 1 ? 1 : 0;
            while (same && same <= count && s.step[same].t_ns == t[same - 1] / FL_PS_PER_NS && s.step[same].woken == 1)
                same++;
            FL_CHECK(same == count + 1, "seed %llu, path %s: %zu steps, expected %zu; the first that differs is %zu",
                     (unsigned long long)seed, fl_path_names[PATHS[p]], s.count, count + 1, same);
            FL_CHECK(fabs(result.gpu_energy_j - fl_joules(alone)) <= 1e-12 * fl_joules(alone),
                     "seed %llu, path %s: %.17g J, expected %.17g", (unsigned long long)seed, fl_path_names[PATHS[p]],
                     result.gpu_energy_j, fl_joules(alone));
            fl_run_result_free(&result);
        }
        fx_close(&r);
    }
}

/* Clocks change at markers, in no time: the same course by every path. */
static void test_paths_with_sets(void) {
    static const fl_path PATHS[] = {FL_PATH_PLAIN, FL_PATH_EVENTS, FL_PATH_LAUNCHES};
    static seen a, b;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        fx_rig r;
        fl_run_result first, other;
        make_case(&r, seed, false);
        run(&r, &(how){.clocks = "1", .needs = ALL_SENSORS}, &a, &first);
        for (size_t p = 0; p < FL_COUNT(PATHS); p++) {
            run(&r, &(how){.clocks = "1", .needs = ALL_SENSORS, .path = PATHS[p]}, &b, &other);
            const bool same = a.count == b.count && !memcmp(a.step, b.step, a.count * sizeof *a.step) &&
                              first.hash == other.hash && first.makespan_s == other.makespan_s;
            FL_CHECK(same, "seed %llu, path %s: another course", (unsigned long long)seed, fl_path_names[PATHS[p]]);
            fl_run_result_free(&other);
        }
        fl_run_result_free(&first);
        fx_close(&r);
    }
}

/* ---- sensors ---- */

static bool same_reading(const fl_gpu_sample *a, const fl_gpu_sample *b) {
    bool same = a->valid == b->valid && a->fresh == b->fresh;
    for (int i = 0; same && i < FL_GPU_SIGNAL_COUNT; i++)
        same = !(a->valid >> i & 1) || a->value[i] == b->value[i];
    return same;
}

/* Who is woken at an instant reads there what a policy reads that knew it before. */
static void test_sensors(void) {
    static seen woken, told;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        fx_rig r;
        fl_run_result result;
        make_case(&r, seed, true);
        for (int id = 0; id < FL_SENSOR_COUNT; id++)
            r.spec.device->sensor[id] = (fl_sensor_spec){.present = true,
                                                         .period_ns = 20000 * (id + 1),
                                                         .window_ns = id % 2 ? 35000 : 20000 * (id + 1),
                                                         .delay_ns = id % 3 ? 0 : 7000};
        run(&r, &(how){.needs = ALL_SENSORS}, &woken, &result);
        fl_run_result_free(&result);
        double delay[STEPS_MAX];
        for (size_t i = 0; i + 1 < woken.count; i++)
            delay[i] = (double)(woken.step[i + 1].t_ns - woken.step[i].t_ns);
        const fl_table delays = {.cell = delay, .row_count = (uint32_t)woken.count - 1, .column_count = 1};
        FL_CHECK(woken.count > 3, "seed %llu: %zu steps", (unsigned long long)seed, woken.count);
        run(&r, &(how){.needs = ALL_SENSORS, .delays = &delays, .wake = "0"}, &told, &result);
        fl_run_result_free(&result);
        for (size_t i = 0; i < woken.count; i++) {
            const bool same =
                i < told.count && told.step[i].t_ns == woken.step[i].t_ns && same_reading(&woken.gpu[i], &told.gpu[i]);
            FL_CHECK(same, "seed %llu: step %zu at %lld ns reads otherwise", (unsigned long long)seed, i,
                     (long long)woken.step[i].t_ns);
            if (!same)
                break;
        }
        fx_close(&r);
    }
}

FL_SUITE("wake", {"by hand", test_by_hand}, {"busy host", test_busy_host}, {"at random", test_at_random},
         {"paths with sets", test_paths_with_sets}, {"sensors", test_sensors})
