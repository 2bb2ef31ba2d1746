/* What a run that has ended is told by, worked out by hand: energies, powers, marks, residences, kinds, processes, the
 * host's CPU, and of several GPUs the sum or the largest. */
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "tests/support/node_fixture.h"

static fl_run_result collect(fx_rig *r, fl_node *n, bool classes) {
    fl_run_result out = {0};
    FX_MUST(fl_run_collect(n, r->w, &r->spec, classes, &out, d));
    return out;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* Two kernels of equal length, in a process of its own or of another stream. */
static void add_stream(fx_rig *r, uint32_t gpu, int32_t process, int32_t id, int64_t half_ns, uint32_t class_id) {
    uint32_t s;
    FX_MUST(fl_workload_add_stream(r->w, gpu, process, id, &s, d));
    fx_op(r, s, 0, half_ns, class_id);
    fx_op(r, s, 0, half_ns, class_id);
}

/* GPU 0: a kernel of 1 ms at 1000 MHz (40 W base, 100 W) and one at 500 MHz (35 and 50 W), which takes 2 ms. GPU 1, at
 * 1000 MHz: four streams of 0.25, 1, 0.75 and 0.5 ms, of 100 W each; then it is closed, at 8 W. */
static void open_two(fx_rig *r, fl_node **n) {
    fx_open(r, 2);
    r->spec.host.static_w = 50;
    const uint32_t one = fx_light(r), other = fx_light(r);
    add_stream(r, 0, 1, 0, 1000000, one);
    add_stream(r, 1, 1, 0, 125000, other);
    add_stream(r, 1, 1, 1, 500000, other);
    add_stream(r, 1, 2, 0, 375000, other);
    add_stream(r, 1, 2, 1, 250000, other);
    fx_finish(r, 2);
    *n = fx_node(r, 0, false);
    fl_node_set(*n, 0, FX_MS_PS, 500, NAN);
    fx_to_end(*n);
}

static void test_totals(void) {
    fx_rig r;
    fl_node *n;
    open_two(&r, &n);
    fl_run_result x = collect(&r, n, false);
    const double first_j = 0.140 + 2 * 0.085, second_j = 0.25 * (0.44 + 0.34 + 0.24 + 0.14) + 2 * 0.008;
    FL_CHECK(x.makespan_ps == 3 * FX_MS_PS && near(x.makespan_s, 3e-3), "%g s", x.makespan_s);
    FL_CHECK(near(x.gpu_energy_j, first_j + second_j) && near(x.energy_j, first_j + second_j), "%g J, expected %g",
             x.gpu_energy_j, first_j + second_j);
    FL_CHECK(near(x.node_energy_j, x.gpu_energy_j + 0.15) && x.energy_fj == x.ledger.gpu_fj + x.ledger.host_fj &&
                 x.score_fj == x.ledger.gpu_fj,
             "the node: %g J", x.node_energy_j);
    FL_CHECK(near(x.mean_power_w, (first_j + second_j) / 3e-3), "mean %g W", x.mean_power_w);
    FL_CHECK(near(x.peak_power_w, 140 + 440) && x.peak_parts == 2, "peak %g W of %u", x.peak_power_w, x.peak_parts);
    FL_CHECK(x.kernels == 10 && x.switches == 1, "%d kernels, %d switches", (int)x.kernels, (int)x.switches);
    FL_CHECK(x.last_sm_mhz == 500 && x.last_mem_mhz == 800, "at last %g and %g MHz", x.last_sm_mhz, x.last_mem_mhz);
    FL_CHECK(isnan(x.last_cpu_mhz) && x.cpu_energy_j == 0 && !x.cpu && !x.cpu_count && !x.cpu_switches,
             "no CPU is modelled");
    FL_CHECK(isnan(x.hottest_c) && isnan(x.end_c) && !x.heat_held_ps && !x.wall_held_ps, "and no heat");
    FL_CHECK(!x.class_energy_j && !x.class_time_s && !x.class_count, "nobody asked for kinds");
    fl_run_result_free(&x);
    FL_CHECK(!x.mark_ps && !x.residence && !x.process && x.makespan_ps == 0 && !x.mark_count, "nothing is left");
    fl_node_close(n);
    fx_close(&r);
}

static void test_arrays(void) {
    static const int64_t mark_us[] = {1000, 3000, 125, 250, 500, 1000, 375, 750, 250, 500};
    static const struct {
        uint32_t gpu, sm_mhz;
        int64_t us;
    } at[] = {{0, 1000, 1000}, {0, 500, 2000}, {1, 1000, 1000}};
    static const struct {
        uint32_t gpu;
        int32_t process;
        int64_t end_us;
    } ends[] = {{0, 1, 3000}, {1, 1, 1000}, {1, 2, 750}};
    fx_rig r;
    fl_node *n;
    open_two(&r, &n);
    fl_run_result x = collect(&r, n, true);
    CU_ASSERT_FATAL(x.mark_count == 10 && x.residence_count == 3 && x.process_count == 3 && x.class_count == 2);
    for (size_t i = 0; i < x.mark_count; i++)
        FL_CHECK(x.mark_ps[i] == mark_us[i] * FX_US_PS, "mark %zu: %lld ps", i, (long long)x.mark_ps[i]);
    for (size_t i = 0; i < 3; i++) {
        const fl_residence *s = &x.residence[i];
        FL_CHECK(s->gpu == at[i].gpu && s->sm_mhz == at[i].sm_mhz && s->mem_mhz == 800 && s->ps == at[i].us * FX_US_PS,
                 "residence %zu: GPU %u, %u and %u MHz, %lld ps", i, s->gpu, s->sm_mhz, s->mem_mhz, (long long)s->ps);
        const fl_process_end *p = &x.process[i];
        FL_CHECK(p->gpu == ends[i].gpu && p->process == ends[i].process && p->end_ps == ends[i].end_us * FX_US_PS,
                 "process %zu: %d on GPU %u ends at %lld ps", i, p->process, p->gpu, (long long)p->end_ps);
    }
    /* as if each ran alone on its board */
    FL_CHECK(near(x.class_energy_j[0], 0.310) && near(x.class_time_s[0], 3e-3), "%g J in %g s", x.class_energy_j[0],
             x.class_time_s[0]);
    FL_CHECK(near(x.class_energy_j[1], 2.5 * 0.140) && near(x.class_time_s[1], 2.5e-3), "%g J in %g s",
             x.class_energy_j[1], x.class_time_s[1]);
    fl_run_result_free(&x);
    fl_node_close(n);
    fx_close(&r);
}

/* 3 ms of a kernel. The CPU draws 10 W, and 5 W while it waits at 2 GHz, 2.5 W at 1 GHz, to which it goes after 1 ms.
 * On an APU all that counts for scores, with the 50 W of the node. */
static void test_cpu(void) {
    for (int apu = 0; apu < 2; apu++) {
        fx_rig r;
        fx_open(&r, 1);
        nx_cpu(&r);
        r.spec.host.cpu.boost_count = 0;
        r.spec.host.apu = apu;
        fx_op(&r, fx_stream(&r, 0, 0), 0, 3000000, fx_light(&r));
        fx_finish(&r, 1);
        fl_node *n = fx_node(&r, 0, false);
        CU_ASSERT(fl_node_set_cpu(n, FX_MS_PS, 1000, NAN, NAN));
        fx_to_end(n);
        fl_run_result x = collect(&r, n, false);
        const double gpu_j = 3 * 0.140, cpu_j = 0.015 + 2 * 0.0125, node_j = gpu_j + cpu_j + 3 * 0.050;
        FL_CHECK(near(x.gpu_energy_j, gpu_j) && near(x.cpu_energy_j, cpu_j) && near(x.node_energy_j, node_j),
                 "GPU %g J, CPU %g J, node %g J", x.gpu_energy_j, x.cpu_energy_j, x.node_energy_j);
        FL_CHECK(near(x.energy_j, apu ? node_j : gpu_j) && x.score_fj == (apu ? x.energy_fj : x.ledger.gpu_fj) &&
                     near(x.mean_power_w, (apu ? node_j : gpu_j) / 3e-3),
                 "APU %d: %g J count", apu, x.energy_j);
        FL_CHECK(near(x.peak_power_w, apu ? 140 + 15 + 50 : 140) && x.peak_parts == 1 + (uint32_t)apu,
                 "APU %d: peak %g W of %u parts", apu, x.peak_power_w, x.peak_parts);
        CU_ASSERT_FATAL(x.cpu_count == 2);
        FL_CHECK(x.cpu[0].mhz == 1000 && x.cpu[0].ps == 2 * FX_MS_PS && x.cpu[1].mhz == 2000 && x.cpu[1].ps == FX_MS_PS,
                 "%u MHz for %lld ps", x.cpu[0].mhz, (long long)x.cpu[0].ps);
        FL_CHECK(x.last_cpu_mhz == 1000 && x.cpu_switches == 1, "at last %g MHz, %d switches", x.last_cpu_mhz,
                 (int)x.cpu_switches);
        fl_run_result_free(&x);
        FL_CHECK(!x.cpu && !x.cpu_count, "nothing is left");
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Of two GPUs, one of which works and the other hardly does: the hotter one counts, whichever it is. Time that wall or
 * heat took is that of all GPUs. */
static void test_hot(void) {
    for (uint32_t busy = 0; busy < 3; busy++) { /* 2: both, and the second for longer */
        fx_rig r;
        fx_open(&r, 2);
        nx_wall(&r, 120);
        nx_heat(&r, 37);
        r.spec.device->thermal.ambient_c = 25;
        const uint32_t c = fx_light(&r);
        for (uint32_t g = 0; g < 2; g++)
            fx_op(&r, fx_stream(&r, g, 0), 0,
                  g == busy   ? 2000000000
                  : busy == 2 ? 1000000000 + 500000000 * g
                              : 1000,
                  c);
        fx_finish(&r, 1);
        fl_node *n = fx_node(&r, 0, false);
        fx_to_end(n);
        fl_run_result x = collect(&r, n, false);
        const fl_gpu *a = fl_node_gpu(n, 0), *b = fl_node_gpu(n, 1);
        FL_CHECK(a->hottest_c != b->hottest_c && x.hottest_c == fmax(a->hottest_c, b->hottest_c), "%g C of %g and %g",
                 x.hottest_c, a->hottest_c, b->hottest_c);
        FL_CHECK(a->temp_c != b->temp_c && x.end_c == fmax(a->temp_c, b->temp_c), "%g C of %g and %g", x.end_c,
                 a->temp_c, b->temp_c);
        FL_CHECK(x.wall_held_ps == a->wall_held_ps + b->wall_held_ps && x.wall_held_ps > 0 &&
                     (busy < 2 || (a->wall_held_ps > 0 && b->wall_held_ps > 0)),
                 "the wall held %lld ps", (long long)x.wall_held_ps);
        FL_CHECK(x.heat_held_ps == a->heat_held_ps + b->heat_held_ps && x.heat_held_ps > 0 &&
                     (busy < 2 || (a->heat_held_ps > 0 && b->heat_held_ps > 0)),
                 "heat held %lld ps", (long long)x.heat_held_ps);
        fl_run_result_free(&x);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Without windows no process has an end that anybody noted; a state in which the CPU never was is not told. */
static void test_little(void) {
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    r.spec.host.cpu.boost_count = 0;
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, fx_light(&r));
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    fl_run_result x = collect(&r, n, false);
    FL_CHECK(!x.mark_count && !x.process_count && x.kernels == 1, "%zu processes", x.process_count);
    FL_CHECK(x.cpu_count == 1 && x.cpu[0].mhz == 2000 && x.cpu[0].ps == FX_US_PS && x.last_cpu_mhz == 2000,
             "%zu states", x.cpu_count);
    fl_run_result_free(&x);
    fl_node_close(n);
    fx_close(&r);
}

FL_SUITE("run_result", {"totals", test_totals}, {"arrays", test_arrays}, {"the CPU", test_cpu}, {"hot", test_hot},
         {"little", test_little})
