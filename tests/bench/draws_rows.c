/* EnergyUCB's distribution replay has no kernels, and one draw per step. */
#include "tests/bench/case.h"
#include "policies/policy.h"
#include "sim/draws/draws.h"
#include "traces/io/io.h"

fl_status fl_bench_draws(fl_bench *b, fl_diag *d) {
    enum { CLOCKS = 9, STEPS = 1000000 };
    int32_t ladder[CLOCKS];
    fl_draw_clock clock[CLOCKS];
    if (!fl_bench_wants(b, "draws.energyucb"))
        return FL_OK;
    for (int i = 0; i < CLOCKS; i++) {
        ladder[i] = 800 + 100 * i;
        const double time_s = 20000.0 * (0.4 + 0.6 * 1600 / ladder[i]), power_w = 2000 + 1.0 * ladder[i];
        clock[i] = (fl_draw_clock){.mhz = ladder[i],
                                   .time_s = time_s,
                                   .energy_j = 0.01 * power_w,
                                   .energy_sd_j = 0.001 * power_w,
                                   .ratio = 1,
                                   .ratio_sd = 0.1,
                                   .total_j = time_s * power_w};
    }
    const fl_draws draws = {.clock = clock, .clock_count = CLOCKS, .step_ns = 10000000, .steps_max = STEPS};
    const fl_gpu_facts gpu = {.name = "bench", .sm = {ladder, CLOCKS}};
    const fl_facts facts = {.seed = 1, .gpu_count = 1, .gpu = &gpu};
    const fl_draws_run run = {.draws = &draws, .facts = &facts, .policy = fl_bench_policy("energyucb")};
    fl_status s = FL_OK;
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        fl_draws_result out = {0};
        const double start = fl_bench_cpu_seconds();
        s = fl_draws_replay(&run, &out, d);
        const double took = fl_bench_cpu_seconds() - start;
        if (!s)
            fl_bench_take(b, "draws.energyucb", 1e-6 * (double)out.steps / took)->step_ns =
                1e9 * took / (double)out.steps;
        fl_draws_result_free(&out);
    }
    return s;
}
