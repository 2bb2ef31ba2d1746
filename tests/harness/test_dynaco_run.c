/* DynaCo and BAPM on a simulated APU: the three behaviours of miniMD, as in test_coupling.c, but bound by memory with a
 * knee below the medium clock. */
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

extern const fl_policy fl_policy_onelevelth, fl_policy_multilevelth, fl_policy_bapm;

enum { SMALL, MEMORY, COMPUTE, BELOW, PHASES }; /* BELOW: memory, on a bus that ends below DynaCo's threshold */

typedef struct stage {
    fl_platform p;
    fl_facts facts;
    fl_workload *w;
    fl_rates *rates;
} stage;

static void open_stage(stage *s, int phase) {
    char path[512];
    uint32_t id, stream;
    *s = (stage){0};
    snprintf(path, sizeof path, "%s/models/platforms/apu-a10-5800k.json", FL_ROOT);
    FX_MUST(fl_platform_open(path, 1, &s->p, d));
    const fl_node_choice bus = {.bus_share = phase == BELOW ? 0.749 : 0.979};
    FX_MUST(fl_node_choose(&s->p.node, &bus, d));
    FX_MUST(fl_facts_make(&s->p.node, 1, &s->facts, d));
    FX_MUST(fl_workload_new(&s->w, "phase", d));
    static const fl_load loads[] = {{.tc = 0.3, .tm = 0.3, .tl = 0.5, .alpha = 0.4, .beta = 0.3},
                                    {.tc = 0.6, .tm = 1, .alpha = 0.6, .beta = 1},
                                    {.tc = 1, .tm = 0.3, .alpha = 1, .beta = 0.3}};
    fl_load load = loads[phase == BELOW ? MEMORY : phase];
    load.sm_demand = 1;
    load.ref_sm_mhz = load.ref_mem_mhz = 800;
    const fl_kernel_kind kind = {.name = "kernel", .grid = {1, 1, 1}, .block = {1, 1, 1}};
    FX_MUST(fl_workload_add_class(s->w, &load, &kind, &id, d));
    FX_MUST(fl_workload_add_stream(s->w, 0, 0, 0, &stream, d));
    for (int i = 0; i < (phase == SMALL ? 30000 : 120); i++)
        FX_MUST(fl_workload_add_op(s->w, stream, phase == SMALL ? 40000 : 100000, phase == SMALL ? 40000 : 20000000, id,
                                   d));
    FX_MUST(fl_workload_finish(s->w, 10, d));
    FX_MUST(fl_rates_new(&s->rates, s->w, &s->p.node, d));
}

static void close_stage(stage *s) {
    fl_rates_free(s->rates);
    fl_workload_free(s->w);
    fl_facts_free(&s->facts);
    fl_platform_free(&s->p);
}

static void play(const stage *s, const fl_policy *policy, fl_run_result *r) {
    const fl_layer layer = fl_platform_layer(&s->p, policy ? policy->name : "none");
    const fl_run_options o = {.w = s->w,
                              .rates = s->rates,
                              .spec = &s->p.node,
                              .facts = &s->facts,
                              .policy = policy,
                              .layer = &layer,
                              .layer_count = 1};
    FX_MUST(fl_run(&o, r, d));
}

static double sm_share(const fl_run_result *r, uint32_t mhz) {
    int64_t at = 0, all = 0;
    for (size_t i = 0; i < r->residence_count; i++) {
        all += r->residence[i].ps;
        at += r->residence[i].sm_mhz == mhz ? r->residence[i].ps : 0;
    }
    return 100 * (double)at / (double)all;
}

static double cpu_share(const fl_run_result *r, uint32_t from, uint32_t to) {
    int64_t at = 0, all = 0;
    for (size_t i = 0; i < r->cpu_count; i++) {
        all += r->cpu[i].ps;
        at += r->cpu[i].mhz >= from && r->cpu[i].mhz <= to ? r->cpu[i].ps : 0;
    }
    return 100 * (double)at / (double)all;
}

static void test_simulated(void) {
    static const struct {
        uint32_t sm_mhz, cpu_from, cpu_to; /* where it must stand, nearly always */
    } want[PHASES] = {{633, 4000, 4200}, {633, 2900, 2900}, {800, 2900, 2900}, {633, 2900, 2900}};
    for (int phase = 0; phase < PHASES; phase++) {
        stage s;
        fl_run_result none, bapm, one, multi;
        open_stage(&s, phase);
        play(&s, NULL, &none);
        play(&s, &fl_policy_bapm, &bapm);
        play(&s, &fl_policy_onelevelth, &one);
        play(&s, &fl_policy_multilevelth, &multi);
        FL_CHECK(fx_near(bapm.energy_j, none.energy_j, 1e-3) && fx_near(bapm.makespan_s, none.makespan_s, 1e-3),
                 "phase %d: %g J in %g s under BAPM, %g J in %g s by the hardware", phase, bapm.energy_j,
                 bapm.makespan_s, none.energy_j, none.makespan_s);
        FL_CHECK(sm_share(&one, want[phase].sm_mhz) > 95 &&
                     cpu_share(&one, want[phase].cpu_from, want[phase].cpu_to) > 95,
                 "phase %d: %g %% at %u MHz, CPU %g %% at %u to %u", phase, sm_share(&one, want[phase].sm_mhz),
                 want[phase].sm_mhz, cpu_share(&one, want[phase].cpu_from, want[phase].cpu_to), want[phase].cpu_from,
                 want[phase].cpu_to);
        FL_CHECK(one.makespan_s < 1.05 * none.makespan_s && multi.makespan_s < 1.05 * none.makespan_s,
                 "phase %d: slower by %g and %g %%", phase, 100 * (one.makespan_s / none.makespan_s - 1),
                 100 * (multi.makespan_s / none.makespan_s - 1));
        if (phase < COMPUTE) /* the CPU is sensitive, or memory the bottleneck: both variants do the same */
            FL_CHECK(fx_near(multi.energy_j, one.energy_j, 0.005), "%g and %g J", multi.energy_j, one.energy_j);
        else
            FL_CHECK(multi.energy_j < 0.97 * one.energy_j && cpu_share(&multi, 1400, 2400) > 20,
                     "phase %d: %g, %g and %g J", phase, none.energy_j, one.energy_j, multi.energy_j);
        FL_CHECK(phase == SMALL || one.energy_j < 0.85 * none.energy_j, "phase %d: %g of %g J", phase, one.energy_j,
                 none.energy_j);
        FL_CHECK(!one.counts.faults && !multi.counts.faults && !bapm.counts.faults && !one.counts.snapped,
                 "phase %d: faults", phase);
        fl_run_result_free(&none);
        fl_run_result_free(&bapm);
        fl_run_result_free(&one);
        fl_run_result_free(&multi);
        close_stage(&s);
    }
}

FL_SUITE("dynaco run", {"phases of miniMD", test_simulated})
