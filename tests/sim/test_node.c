/* The whole node with every feature on: wall, heat, host CPU, meters, streams, launches, APU. */
#include "tests/support/reads.h"
#include "tests/support/node_fixture.h"

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

static const uint64_t seed = 20240607;

static fl_run_options run_options(const fx_rig *r, bool streams_only) {
    return (fl_run_options){.hashed = true,
                            .w = r->w,
                            .rates = r->rates,
                            .spec = &r->spec,
                            .facts = &r->facts,
                            .path = streams_only ? FL_PATH_EVENTS : FL_PATH_AUTO};
}

/* ---- every way of advancing gives the same bits ---- */

/* A policy that sets everything there is, at random. */
static void set_all(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                    fl_command *command) {
    fx_state *s = state;
    fx_step(state, params, facts, sample, command);
    command->delay_ns = 3000000 + (int64_t)fl_random_below(&s->random, 9000000);
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (!fl_random_below(&s->random, 4))
            fl_set_gpu(command, i, FL_SET_POWER_LIMIT_W, 60 + (double)fl_random_below(&s->random, 100));
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (sample->step % 3 == i)
            fl_set_gpu(command, i, FL_SET_RECORDS, (double)(sample->step / 3 % 2));
    if (facts->host.cpu.count && !fl_random_below(&s->random, 3))
        fl_set_host(command, FL_SET_HOST_CPU_MHZ, facts->host.cpu.mhz[fl_random_below(&s->random, 2)]);
    if (facts->host.cpu.count && !fl_random_below(&s->random, 5))
        fl_set_host(command, FL_SET_HOST_CPU_BOOST, (double)fl_random_below(&s->random, 2));
    if (facts->host.cpu.count && !fl_random_below(&s->random, 7))
        fl_set_host(command, FL_SET_HOST_CPU_POWER_LIMIT_W, 14 + (double)fl_random_below(&s->random, 30));
}

static void run_all(const fx_rig *r, bool streams_only, fl_run_result *out) {
    fl_policy policy = fx_policy(0);
    rx_read(&policy, (rx_set){.gpu = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, .host = NX_HOST_ALL});
    policy.gpu_drives |= FL_BIT(FL_SET_POWER_LIMIT_W) | FL_BIT(FL_SET_RECORDS);
    policy.host_drives = FL_BIT(FL_HOST_CONTROL_COUNT) - 1;
    policy.step = set_all;
    fl_setting setting[] = {{.name = "mode", .text = "2"}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = 1};
    fl_run_options o = run_options(r, streams_only);
    o.policy = &policy;
    o.layer = &layer;
    o.layer_count = 1;
    FX_MUST(fl_run(&o, out, d));
}

static void build_random(fx_rig *r, fl_random *g, uint32_t gpus, uint32_t streams, bool launches) {
    fx_open(r, gpus);
    nx_wall(r, 60 + (double)fl_random_below(g, 80));
    nx_wall_vary(r, fl_random_below(g, 1000));
    nx_heat(r, 28 + (double)fl_random_below(g, 8));
    r->spec.device[0].thermal.period_ns = 9000000;
    r->spec.device[0].thermal.tau_s = 0.05;
    r->spec.device[0].thermal.leak_ref_c = 25;
    nx_cpu(r);
    nx_host_sensors(r);
    r->spec.device[0].interference = fl_random_unit(g);
    r->spec.device[0].records_slowdown = 0.07;
    fx_random_classes(r, g, 5, 1);
    for (uint32_t i = 0; i < gpus * streams; i++) {
        uint32_t s = fx_stream(r, i % gpus, (int32_t)i);
        fx_random_ops(r, g, s, 400, 500000);
    }
    for (uint32_t i = 0; launches && i < gpus; i++) {
        uint32_t t = fx_thread(r);
        for (uint32_t k = 0; k < 400; k++)
            for (uint32_t s = i; s < gpus * streams; s += gpus)
                fx_launch(r, t, (int64_t)fl_random_below(g, 400000), s);
        fx_sync(r, t, 1000, 2000, i, 400);
    }
    if (launches)
        r->w->launch_queue = 20;
    else
        r->w->launch_queue = 1;
}

static void test_same_bits(void) {
    for (uint64_t n = 0; n < 12; n++) {
        fl_random g = fl_random_seed(seed, n);
        fx_rig r;
        build_random(&r, &g, 1 + (uint32_t)n % 3, 1, false);
        fx_finish(&r, 5);
        fl_run_result scan, streams;
        run_all(&r, false, &scan);
        run_all(&r, true, &streams);
        FL_CHECK(scan.hash == streams.hash && scan.energy_fj == streams.energy_fj &&
                     scan.makespan_ps == streams.makespan_ps && scan.cpu_energy_j == streams.cpu_energy_j,
                 "seed %llu, case %llu: %.17g J in %lld ps by scan, %.17g J in %lld ps by shares",
                 (unsigned long long)seed, (unsigned long long)n, scan.node_energy_j, (long long)scan.makespan_ps,
                 streams.node_energy_j, (long long)streams.makespan_ps);
        FL_CHECK(scan.wall_held_ps > 0 && scan.heat_held_ps > 0 && scan.cpu_switches > 0 && scan.ignored_sets == 0,
                 "case %llu: every feature acted: wall %lld, heat %lld, CPU %llu, ignored %llu", (unsigned long long)n,
                 (long long)scan.wall_held_ps, (long long)scan.heat_held_ps, (unsigned long long)scan.cpu_switches,
                 (unsigned long long)scan.ignored_sets);
        fl_run_result_free(&scan);
        fl_run_result_free(&streams);
        fx_close(&r);
    }
}

/* The ledger closes inside fl_run; here: parts make the whole, no part is negative, and the same run twice is the same
 * to the bit. */
static void test_ledger(void) {
    for (uint64_t n = 0; n < 16; n++) {
        fl_random g = fl_random_seed(seed, 100 + n);
        fx_rig r;
        build_random(&r, &g, n % 4 == 3 ? 1 : 1 + (uint32_t)n % 3, 1 + (uint32_t)n % 4, n & 1);
        if (n % 4 == 3)
            nx_apu(&r);
        if (n % 4 == 2)
            r.spec.host.gpu_budget_w = 90;
        fx_finish(&r, 5);
        fl_run_result a, b;
        run_all(&r, false, &a);
        run_all(&r, false, &b);
        fl_wide sum = 0;
        for (int i = 0; i < FL_PART_COUNT; i++) {
            sum += a.ledger.part_fj[i];
            FL_CHECK(a.ledger.part_fj[i] >= 0, "case %llu: part %s is negative", (unsigned long long)n,
                     fl_part_names[i]);
        }
        FL_CHECK(sum == a.energy_fj && a.ledger.part_fj[FL_PART_CPU] > 0, "case %llu: parts make %.17g of %.17g fJ",
                 (unsigned long long)n, fx_f(sum), fx_f(a.energy_fj));
        FL_CHECK(a.hash == b.hash && a.energy_fj == b.energy_fj, "case %llu: twice the same", (unsigned long long)n);
        fl_run_result_free(&a);
        fl_run_result_free(&b);
        fx_close(&r);
    }
}

/* ---- power wall ---- */

/* One kernel after the other, `count` of a second each at 1000 MHz: 140 W at 1000 MHz, 190 W at 1500. */
static void steady(fx_rig *r, double tc, double tm, size_t count) {
    uint32_t c = fx_class(r, tc, tm, 0, 1, 0, 1);
    uint32_t s = fx_stream(r, 0, 0);
    for (size_t i = 0; i < count; i++)
        fx_op(r, s, 0, 1000000000, c);
}

static void static_run(fx_rig *r, double mhz, fl_run_result *out) {
    fl_run_options o = run_options(r, false);
    o.first_sm_mhz = mhz;
    r->spec.device[0].default_sm_mhz = mhz;
    FX_MUST(fl_run(&o, out, d));
}

static void test_wall(void) {
    fx_rig r;
    fx_open(&r, 1);
    steady(&r, 1, 0, 10);
    nx_wall(&r, 120); /* 820 MHz would draw 120 W; the ladder has 800 (118 W) and 900 (129 W) */
    fx_finish(&r, 5);
    fl_run_result real, ideal, off;
    static_run(&r, 1500, &real);
    r.spec.device[0].wall.ideal = 1;
    static_run(&r, 1500, &ideal);
    r.spec.device[0].wall.period_ns = 0;
    static_run(&r, 1500, &off);
    FL_CHECK(fx_near(off.mean_power_w, 30 + 15 + 150, 1e-6) && off.wall_held_ps == 0, "off: %g W", off.mean_power_w);
    FL_CHECK(fx_near(ideal.mean_power_w, 118, 2e-3) && fx_near(ideal.makespan_s, 12.5, 2e-3), "ideal: %g W, %g s",
             ideal.mean_power_w, ideal.makespan_s);
    FL_CHECK(real.mean_power_w < 120.5 && real.mean_power_w > 114 && real.makespan_s > ideal.makespan_s * 0.98,
             "real: %g W, %g s", real.mean_power_w, real.makespan_s);
    FL_CHECK(real.wall_held_ps > off.makespan_ps, "held for %lld ps", (long long)real.wall_held_ps);
    fl_run_result_free(&real);
    fl_run_result_free(&ideal);
    fl_run_result_free(&off);
    fx_close(&r);
}

/* A wall that nothing can reach leaves no trace: not one boundary more. */
static void test_wall_sleeps(void) {
    fl_run_result with, without;
    for (int wall = 0; wall < 2; wall++) {
        fx_rig r;
        fx_open(&r, 1);
        steady(&r, 1, 0.5, 3);
        if (wall)
            nx_wall(&r, 196); /* 195 W is the most that it can draw */
        fx_finish(&r, 5);
        static_run(&r, 1500, wall ? &with : &without);
        fx_close(&r);
    }
    FL_CHECK(with.hash == without.hash && with.energy_fj == without.energy_fj && with.wall_held_ps == 0, "the same");
    fl_run_result_free(&with);
    fl_run_result_free(&without);
}

/* The limit is set through it, the reason is told, and once the limit is gone the clock comes back. */
static void test_wall_limit(void) {
    fx_rig r;
    fx_open(&r, 1);
    steady(&r, 1, 0, 20);
    nx_wall(&r, 500);
    r.spec.device[0].sensor[FL_SENSOR_CLOCK] = (fl_sensor_spec){.present = 1};
    fx_finish(&r, 5);
    fl_node *n =
        fx_node(&r, FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_THROTTLE) | FL_BIT(FL_GPU_POWER_VIOLATION_NS), false);
    fl_gpu_sample s;
    fx_advance(n, 1000 * FX_MS_PS);
    fl_node_read(n, 0, true, &s);
    FL_CHECK(s.value[FL_GPU_SM_MHZ] == 1000 && s.value[FL_GPU_THROTTLE] == 0, "free: %g MHz", s.value[FL_GPU_SM_MHZ]);
    FL_CHECK(fl_node_set_limit(n, 0, fl_node_now(n), 100), "a wall takes limits");
    fx_advance(n, 3000 * FX_MS_PS);
    fl_node_read(n, 0, true, &s);
    FL_CHECK(s.value[FL_GPU_SM_MHZ] < 900 && s.value[FL_GPU_THROTTLE] == FL_THROTTLE_POWER &&
                 s.value[FL_GPU_POWER_VIOLATION_NS] > 1.5e9,
             "held: %g MHz, reason %g, for %g ns", s.value[FL_GPU_SM_MHZ], s.value[FL_GPU_THROTTLE],
             s.value[FL_GPU_POWER_VIOLATION_NS]);
    fl_node_set_limit(n, 0, fl_node_now(n), FL_DEFAULT);
    fx_advance(n, 4000 * FX_MS_PS);
    fl_node_read(n, 0, true, &s);
    FL_CHECK(s.value[FL_GPU_SM_MHZ] == 1000 && s.value[FL_GPU_THROTTLE] == 0, "free again: %g MHz",
             s.value[FL_GPU_SM_MHZ]);
    fx_to_end(n);
    fl_node_read(n, 0, true, &s);
    FL_CHECK(s.value[FL_GPU_SM_MHZ] == 500 && s.value[FL_GPU_THROTTLE] == FL_THROTTLE_IDLE, "ended: idle clock");
    fl_node_close(n);
    fx_close(&r);
}

/* ---- heat ---- */

static void test_heat(void) {
    fx_rig r;
    fx_open(&r, 1);
    steady(&r, 1, 0, 10); /* 140 W without leakage */
    nx_heat(&r, 200);
    fx_finish(&r, 5);
    fl_run_result out;
    static_run(&r, 1000, &out);
    /* T = 20 + 0.2 (140 + 0.1 (T - 40)) in the end: T = (20 + 28 - 0.8) / (1 - 0.02) */
    FL_CHECK(fx_near(out.hottest_c, 47.2 / 0.98, 2e-3), "settles at %g C", out.hottest_c);
    const double leak = fl_joules(out.ledger.part_fj[FL_PART_LEAKAGE]) / out.makespan_s;
    FL_CHECK(leak > 0.6 && leak < 0.1 * (47.2 / 0.98 - 40), "leaks %g W on average", leak);
    fl_run_result_free(&out);
    nx_heat(&r, 43); /* 115 W holds 43 C: the clock must come down to about 760 MHz */
    static_run(&r, 1000, &out);
    FL_CHECK(out.heat_held_ps > 0 && out.hottest_c < 44 && out.makespan_s > 11, "held to %g C, %g s", out.hottest_c,
             out.makespan_s);
    fl_run_result_free(&out);
    fx_close(&r);
}

/* ---- CPU ---- */

/* 1000 gaps of 100 us of host time before kernels of 300 us. At 2000 MHz 0.1 s of computing and 0.3 s of waiting; at
 * 1000 MHz the CPU-bound half takes twice as long: 0.15 s. */
static void test_cpu_gaps(void) {
    static const struct {
        double mhz, boost, compute_s, static_w, mw_compute, mw_wait;
    } rows[] = {
        {1000, 0, 0.15, 10, 5, 2.5},
        {2000, 0, 0.1, 10, 10, 5},
        {2000, 1, 0.1 * (0.5 + 0.5 * 2 / 3), 20, 60, 30}, /* 3000 MHz at 2 V */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int streams_only = 0; streams_only < 2; streams_only++) {
            fx_rig r;
            fx_open(&r, 1);
            nx_cpu(&r);
            uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
            for (int k = 0; k < 1000; k++)
                fx_op(&r, s, 100000, 300000, c);
            fx_finish(&r, 5);
            fl_node *n = fx_node(&r, 0, streams_only);
            fl_node_set_cpu(n, 0, rows[i].mhz, rows[i].boost, (double)NAN);
            fx_to_end(n);
            const double time = fl_seconds(fl_node_now(n)), expected = 0.3 + rows[i].compute_s;
            FL_CHECK(fx_near(time, expected, 1e-6), "%g MHz: %.9g s, expected %.9g", rows[i].mhz, time, expected);
            const fl_cpu *cpu = fl_node_cpu(n);
            const double energy = fl_joules(cpu->sums.cpu_fj), by_hand = expected * rows[i].static_w +
                                                                         rows[i].compute_s * rows[i].mw_compute +
                                                                         0.3 * rows[i].mw_wait;
            FL_CHECK(fx_near(energy, by_hand, 1e-6), "%g MHz: %.9g J, expected %.9g", rows[i].mhz, energy, by_hand);
            const double clock = rows[i].boost > 0 ? 3000 : rows[i].mhz;
            const double uops = (double)(int64_t)(cpu->sums.uops >> 20),
                         cycles = (double)(int64_t)(cpu->sums.cycles >> 20);
            /* the same instructions whatever the clock, and a quarter per cycle while it waits */
            FL_CHECK(fx_near(uops, 0.1 * 2e9 + 0.3 * clock * 1e6 * 0.25, 1e-3), "%g uops", uops);
            FL_CHECK(fx_near(cycles, expected * clock * 1e6, 1e-3), "%g cycles", cycles);
            fl_node_close(n);
            fx_close(&r);
        }
}

/* Launches that run ahead hide the host; with a queue of one they cannot. */
static void test_cpu_launches(void) {
    static const struct {
        uint32_t queue;
        int64_t host_ns, kernel_ns;
        double mhz, expected_s;
        const char *what;
    } rows[] = {
        {1000, 10000, 50000, 2000, 0.01 * 0 + 10e-6 + 1000 * 50e-6, "GPU-bound: the host runs ahead"},
        {1000, 10000, 50000, 1000, 15e-6 + 1000 * 50e-6, "so a slower CPU costs one launch"},
        {1000, 50000, 10000, 2000, 1000 * 50e-6 + 10e-6, "launch-bound"},
        {1000, 50000, 10000, 1000, 1000 * 75e-6 + 10e-6, "launch-bound, by the CPU clock"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        nx_cpu(&r);
        uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0), t = fx_thread(&r);
        for (int k = 0; k < 1000; k++) {
            fx_op(&r, s, 0, rows[i].kernel_ns, c);
            fx_launch(&r, t, rows[i].host_ns, s);
        }
        fx_sync(&r, t, 0, 0, s, 1000);
        r.w->launch_queue = rows[i].queue;
        fx_finish(&r, 5);
        fl_node *n = fx_node(&r, 0, false);
        fl_node_set_cpu(n, 0, rows[i].mhz, 0, (double)NAN);
        fx_to_end(n);
        FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), rows[i].expected_s, 1e-6), "%s: %.9g s, expected %.9g",
                 rows[i].what, fl_seconds(fl_node_now(n)), rows[i].expected_s);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A change of the CPU clock in the middle of one long stretch of host time. */
static void test_cpu_change(void) {
    for (int streams_only = 0; streams_only < 2; streams_only++) {
        fx_rig r;
        fx_open(&r, 1);
        nx_cpu(&r);
        uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
        fx_op(&r, s, 100000000, 1000000, c); /* 100 ms at 2000 MHz, 150 at 1000 */
        fx_finish(&r, 1);
        fl_node *n = fx_node(&r, 0, streams_only);
        fl_node_set_cpu(n, 0, 2000, 0, (double)NAN);
        fl_node_set_cpu(n, 40 * FX_MS_PS, 1000, (double)NAN, (double)NAN);
        for (int64_t t = 1; t < 10; t++)
            fx_advance(n, t * 11 * FX_MS_PS);
        fx_to_end(n);
        FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), 0.04 + 0.6 * 0.15 + 0.001, 1e-9), "%.12g s",
                 fl_seconds(fl_node_now(n)));
        /* charged in pieces, by boundaries of the node and the change, the stretch still makes 2e8 uops */
        const double uops = (double)(int64_t)(fl_node_cpu(n)->sums.uops >> 20);
        FL_CHECK(fx_near(uops, 0.1 * 2e9 + 0.001 * 1e9 * 0.25, 1e-3), "%g uops", uops);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A package limit takes states away; without boost allowed nothing enters it. */
static void test_cpu_limit(void) {
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
    for (int k = 0; k < 1000; k++)
        fx_op(&r, s, 1000000, 1000000, c);
    fx_finish(&r, 1);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_set_cpu(n, 0, (double)NAN, (double)NAN, 16); /* 2000 MHz draws 17.5 W, 1000 MHz 13.75 */
    fx_to_end(n);
    const fl_cpu *cpu = fl_node_cpu(n);
    const double mean = fl_joules(cpu->sums.cpu_fj) / fl_seconds(fl_node_now(n));
    FL_CHECK(mean < 16.5 && mean > 14, "held to %g W", mean);
    FL_CHECK(cpu->slot[2].open_ps < 100 * FX_MS_PS, "in boost for %lld ps", (long long)cpu->slot[2].open_ps);
    fl_node_close(n);
    fx_close(&r);
}

/* ---- an APU's bus ---- */

/* A kernel that needs all of the bus beside host work that needs a fifth of it: the bus holds 0.8 x 100 GB/s, so 16 of
 * 80 GB/s go to the host and the kernel keeps 0.8 of its speed. */
static void test_apu_bus(void) {
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    nx_apu(&r);
    r.spec.host.bus_min = r.spec.host.bus_max = 0.8;
    r.spec.host.cpu.bytes_per_s = 16e9;
    r.spec.host.cpu.bound = 0;
    uint32_t c = fx_class(&r, 0.1, 1, 0, 0, 1, 1), s = fx_stream(&r, 0, 0), t = fx_thread(&r);
    fx_op(&r, s, 0, 80000000, c);
    fx_op(&r, s, 0, 80000000, c);
    fx_launch(&r, t, 0, s);
    fx_launch(&r, t, 300000000, s); /* computes beside the first kernel; the second runs alone */
    fx_sync(&r, t, 0, 0, s, 2);
    fx_finish(&r, 2);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    const int64_t *mark = fl_node_marks(n, 0);
    FL_CHECK(fx_near(fl_seconds(mark[0]), 0.1, 1e-4), "beside host traffic: %.9g s", fl_seconds(mark[0]));
    FL_CHECK(fx_near(fl_seconds(mark[1]), 0.38, 1e-4), "alone: until %.9g s", fl_seconds(mark[1]));
    fl_node_close(n);
    fx_close(&r);
}

/* ---- contention ---- */

/* Eight kernels that each need 0.5 of the bandwidth: D = 4, so with interference g the bus gives 1 / (1 + 3 g). */
static void test_interference(void) {
    for (int i = 0; i < 3; i++) {
        const double g = 0.1 * i;
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device[0].interference = g;
        uint32_t c = fx_class(&r, 1, 0.5, 0, 1, 1, 0.1);
        for (int k = 0; k < 8; k++) {
            uint32_t s;
            FX_MUST(fl_workload_add_stream(r.w, 0, 10 + k, 0, &s, d));
            fx_op(&r, s, 0, 100000000, c);
            if (k == 7)
                fx_op(&r, s, 0, 100000000, c);
        }
        fx_finish(&r, 2);
        fl_run_options o = run_options(&r, false);
        fl_run_result out;
        FX_MUST(fl_run(&o, &out, d));
        const double together = 0.1 * 4 * (1 + 3 * g);
        FL_CHECK(out.process_count == 8 && out.process[7].process == 17, "%zu processes", out.process_count);
        FL_CHECK(fx_near(fl_seconds(out.process[0].end_ps), together, 1e-3) &&
                     fx_near(fl_seconds(out.process[7].end_ps), together + 0.1, 1e-3),
                 "g = %g: %.9g s and %.9g s", g, fl_seconds(out.process[0].end_ps), fl_seconds(out.process[7].end_ps));
        fl_run_result_free(&out);
        fx_close(&r);
    }
}

/* ---- phases ---- */

/* A kernel of two phases counts once, and each phase follows its own law. */
static void test_phases(void) {
    for (int streams_only = 0; streams_only < 2; streams_only++) {
        fx_rig r;
        fx_open(&r, 1);
        uint32_t compute = fx_class(&r, 1, 0, 0, 1, 0, 1), memory = fx_class(&r, 0, 1, 0, 0, 1, 1);
        r.w->class[compute].part = true;
        uint32_t s = fx_stream(&r, 0, 0);
        for (int i = 0; i < 100; i++) {
            fx_op(&r, s, 1000, 2000000, compute);
            fx_op(&r, s, 0, 8000000, memory);
        }
        fx_finish(&r, 1);
        r.spec.device[0].default_sm_mhz = 500; /* the compute phase takes twice as long */
        fl_node *n = fx_node(&r, 0, streams_only);
        fl_node_records(n, 0, true);
        fx_to_end(n);
        const fl_kernel_record *record;
        size_t count;
        FX_MUST(fl_node_take_records(n, &record, &count, d));
        FL_CHECK(fl_node_gpu(n, 0)->sums.kernels == 100 && count == 100, "%llu kernels, %zu records",
                 (unsigned long long)fl_node_gpu(n, 0)->sums.kernels, count);
        FL_CHECK(count && record[0].start_ns == 1000 && record[0].end_ns == 1000 + 12000000, "from %lld to %lld ns",
                 count ? (long long)record[0].start_ns : 0, count ? (long long)record[0].end_ns : 0);
        FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), 100 * 0.012001, 1e-9), "%.12g s", fl_seconds(fl_node_now(n)));
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- what activity records cost ---- */

/* 30 ms of work, after a gap of 5 ms. Records, which make kernels 2 % longer, are on from 2 to 4 ms and from 15 to 25.2
 * ms. The gap and the first 10 ms are as they were; 20 ms are left, which become 20.4; half of them are done by 25.2
 * ms, and the other half takes 10 ms again: the end is at 35.2 ms. A copy of 10 ms behind it takes 10 ms all the same.
 */
static double records_end(bool streams_only, bool costs, double slowdown, double kernel_s) {
    fx_rig r;
    fx_open(&r, 1);
    r.spec.device[0].records_slowdown = slowdown;
    r.spec.device[0].records_kernel_s = kernel_s;
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), copy = fx_class(&r, 0, 0, 1, 0, 0, 0), s = fx_stream(&r, 0, 0);
    r.w->class[copy].copy = true;
    fx_op(&r, s, 5000000, 30000000, c);
    fx_op(&r, s, 0, 10000000, copy);
    r.w->stream[s].other = true;
    fx_finish(&r, 1);
    fl_node *n = fx_node(&r, 0, streams_only);
    const int64_t at_us[] = {2000, 4000, 15000, 25200, 36000};
    for (int i = 0; i < 5; i++) {
        fx_advance(n, at_us[i] * FX_MS_PS / 1000);
        (costs ? fl_node_records : fl_node_records_free)(n, 0, i % 2 == 0);
    }
    fx_to_end(n);
    const double end = fl_seconds(fl_node_now(n));
    fl_node_close(n);
    fx_close(&r);
    return end;
}

static void test_records_cost(void) {
    for (int only = 0; only < 2; only++) {
        static const struct {
            bool costs;
            double slowdown, kernel_s, end_s;
        } rows[] = {{true, 0.02, 0, 0.0452},
                    {true, 0, 0, 0.045},
                    {false, 0.02, 0.0006, 0.045},
                    {true, 0, 0.0006, 0.0452}, /* 0.6 ms of a kernel of 30 are 2 % of it */
                    {true, 0.01, 0.0003, 0.0452}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const double end = records_end(only, rows[i].costs, rows[i].slowdown, rows[i].kernel_s);
            FL_CHECK(fx_near(end, rows[i].end_s, 1e-12), "row %zu: %.12g s", i, end);
        }
    }
}

/* A thousand kernels of two lengths take 0.4 us each longer at either clock, whatever their lengths; copies do not. */
static void test_records_per_kernel(void) {
    for (int low = 0; low < 2; low++) {
        double end[2];
        for (int on = 0; on < 2; on++) {
            fx_rig r;
            fx_open(&r, 1);
            r.spec.device[0].records_kernel_s = 0.4e-6;
            uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), copy = fx_class(&r, 0, 0, 1, 0, 0, 0), s = fx_stream(&r, 0, 0);
            r.w->class[copy].copy = true;
            for (int i = 0; i < 1000; i++)
                fx_op(&r, s, 0, i % 2 ? 10000 : 30000, c);
            for (int i = 0; i < 50; i++)
                fx_op(&r, s, 0, 10000, copy);
            fx_finish(&r, 1);
            fl_node *n = fx_node(&r, 0, false);
            if (low)
                fl_node_set(n, 0, fl_node_now(n), 500, (double)NAN);
            fl_node_records(n, 0, on);
            fx_to_end(n);
            end[on] = fl_seconds(fl_node_now(n));
            fl_node_close(n);
            fx_close(&r);
        }
        FL_CHECK(fx_near(end[0], 0.02 * (1 + low) + 0.0005, 1e-6), "%d: %.12g s without", low, end[0]);
        FL_CHECK(fx_near(end[1] - end[0], 0.0004, 1e-6), "%d: %.12g s more", low, end[1] - end[0]);
    }
}

/* A barrier over two GPUs: the second kernel of each waits for the first of both. */
static void test_barrier(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t c = fx_light(&r), s[2] = {fx_stream(&r, 0, 0), fx_stream(&r, 1, 0)};
    fx_op(&r, s[0], 0, 1000000, c);
    fx_op(&r, s[1], 0, 5000000, c);
    for (int i = 0; i < 2; i++) {
        fx_op(&r, s[i], 0, 1000000, c);
        fx_wait(&r, s[i], s[0], 1);
        fx_wait(&r, s[i], s[1], 1);
    }
    fx_finish(&r, 2);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    for (uint32_t i = 0; i < 2; i++)
        FL_CHECK(fl_node_marks(n, s[i])[r.w->stream[s[i]].mark_count - 1] == 6 * FX_MS_PS, "GPU %u ends at %lld ps", i,
                 (long long)fl_node_marks(n, s[i])[r.w->stream[s[i]].mark_count - 1]);
    fl_node_close(n);
    fx_close(&r);
}

/* Near the most that 32-bit milliwatts hold: an error that goes beyond is refused, never wrapped around. */
static void test_huge_error(void) {
    fx_rig rig;
    fx_open(&rig, 1);
    fx_op(&rig, fx_stream(&rig, 0, 0), 0, 50000, fx_class(&rig, 1, 0.5, 0.1, 0.8, 0.4, 0.5));
    fx_finish(&rig, 1);
    int refused[2] = {0}, taken[2] = {0};
    for (int board = 0; board < 2; board++) {
        if (board)
            rig.spec.device[0].c_w = 1.5e6;
        else
            rig.w->class[0].load.alpha *= 8e3 / fx_rates(&rig, 1500, 800)->row[0].dyn_mw * 1000;
        for (uint64_t draw = 1; draw <= 100; draw++) {
            const fl_clock_rates *at = NULL;
            fl_rates_free(rig.rates);
            FX_MUST(fl_rates_new(&rig.rates, rig.w, &rig.spec, d));
            fl_rates_err(rig.rates, &(fl_model_error){.power_pct = 100, .seed = draw});
            fl_diag d = {0};
            const fl_status s = fl_rates_at(rig.rates, 0, 0, 0, &at, &d);
            FL_CHECK(s == FL_OK || (s == FL_BAD_INPUT && strstr(d.message, fl_model_text(FL_MODEL_OVERFLOW))),
                     "draw %llu: %d, %s", (unsigned long long)draw, s, d.message);
            if (!s)
                FL_CHECK((int64_t)at->base.static_mw + at->base.memory_mw + at->base.tree_mw == at->base.total_mw &&
                             at->base.total_mw > 0 && at->row[0].dyn_mw > 0,
                         "draw %llu: %d mW, %d mW", (unsigned long long)draw, at->base.total_mw, at->row[0].dyn_mw);
            refused[board] += s != FL_OK;
            taken[board] += s == FL_OK;
        }
        rig.w->class[0].load.alpha = 0.8;
    }
    FL_CHECK(refused[0] && taken[0] && refused[1] && taken[1], "refused %d and %d, taken %d and %d of 100", refused[0],
             refused[1], taken[0], taken[1]);
    fx_close(&rig);
}

/* ---- several GPUs under one budget ---- */

static void test_budget(void) {
    fx_rig r;
    fx_open(&r, 3); /* the first two at 140 W, the third idle most of the time */
    nx_wall(&r, 300);
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t s = fx_stream(&r, i, 0);
        for (int k = 0; k < 10; k++)
            fx_op(&r, s, i == 2 ? 990000000 : 0, i == 2 ? 10000000 : 1000000000, c);
    }
    r.spec.host.gpu_budget_w = 270;
    fx_finish(&r, 2);
    fl_node *n = fx_node(&r, 0, false);
    fx_advance(n, 2000 * FX_MS_PS);
    fl_wide from = fx_energy(n), one = fl_node_gpu(n, 0)->sums.energy_fj;
    fx_advance(n, 8000 * FX_MS_PS);
    const double all_w = fl_joules(fx_energy(n) - from) / 6,
                 one_w = fl_joules(fl_node_gpu(n, 0)->sums.energy_fj - one) / 6;
    FL_CHECK(all_w < 271 && all_w > 250, "all draw %g W of 270", all_w);
    FL_CHECK(one_w > 105, "a busy one gets %g W, more than a third", one_w);
    fl_node_close(n);
    fx_close(&r);
}

FL_SUITE("node", {"same bits by scan and by shares", test_same_bits}, {"ledger with everything on", test_ledger},
         {"power wall", test_wall}, {"a wall out of reach sleeps", test_wall_sleeps}, {"power limit", test_wall_limit},
         {"heat", test_heat}, {"CPU: gaps", test_cpu_gaps}, {"CPU: launches", test_cpu_launches},
         {"CPU: change of clock", test_cpu_change}, {"CPU: package limit", test_cpu_limit}, {"APU bus", test_apu_bus},
         {"interference", test_interference}, {"phases", test_phases}, {"records cost time", test_records_cost},
         {"records cost time per kernel", test_records_per_kernel}, {"barrier", test_barrier},
         {"an error beyond what milliwatts hold", test_huge_error}, {"budget of several GPUs", test_budget})
