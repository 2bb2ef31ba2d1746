#include "tests/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATIO(key, what, goal)                                                                                         \
    { key, what, "of the bare loop", FL_BENCH_RATIO, goal }

const fl_bench_row fl_bench_rows[] = {
    {"bare", "the bare loop, policy each 10 ms", "M kernels/s", FL_BENCH_RATE, NAN},
    RATIO("one.utilizscale", "one stream, utilizscale each 10 ms", 0.85),
    RATIO("one.random", "one stream, random: another clock each 10 ms", 0.75),
    RATIO("one.energyucb", "one stream, energyucb each 10 ms, which holds", 0.75),
    RATIO("one.none", "one stream, no policy, by scan", NAN),
    RATIO("one.1s", "one stream, utilizscale each 1 s, by scan", 1.8),
    RATIO("one.events", "one stream, by the way of events", NAN),
    RATIO("one.launches", "one stream with launches", 0.4),
    RATIO("one.gaps", "one stream, gaps of 200 us, policy each 10 ms", NAN),
    RATIO("one.gaps_1s", "the same, policy each 1 s", 0.4),
    {"step.prefix", "a step each 1 s, utilizscale, prefix sums, as in a grid", "ns a step", FL_BENCH_TIME, 250},
    {"step.cold", "the same, tables not in a cache", "ns a step", FL_BENCH_TIME, NAN},
    {"step.random", "random: another clock each 1 s, prefix sums", "ns a step", FL_BENCH_TIME, NAN},
    {"step.plain", "a step each 1 s, utilizscale, plain", "ns a step", FL_BENCH_TIME, NAN},
    {"step.prefix_100m", "step.prefix over 100 M kernels", "ns a step", FL_BENCH_TIME, 600},
    {"grid.raw", "a grid's runs at 1 s steps, features off", "configs/s/core", FL_BENCH_RATE, 5000},
    {"grid.sweep", "the same in sweep, per further run", "configs/s/core", FL_BENCH_RATE, 2500},
    {"grid.short_2", "sweep of runs of half a millisecond, 2 threads", "times one", FL_BENCH_RATIO, 1.95},
    {"features.step", "all features on, per policy step", "of all off", FL_BENCH_RATIO, 0.95},
    {"features.kernel", "all features on, per kernel", "of all off", FL_BENCH_RATIO, 0.8},
    {"features.signals_step", "and every signal read, per policy step", "of all off", FL_BENCH_RATIO, NAN},
    {"features.eight", "eight streams, all features on, per kernel", "of all off", FL_BENCH_RATIO, NAN},
    RATIO("free.2", "2 streams, nothing scarce", NAN),
    RATIO("free.8", "8 streams, nothing scarce", 0.08),
    RATIO("free.32", "32 streams, nothing scarce", 0.05),
    RATIO("scarce.gaps", "8 streams, scarce, with gaps", 0.02),
    RATIO("scarce.none", "8 streams, scarce, without gaps", 0.035),
    {"threads.2", "8 runs of one trace, 2 threads", "times one", FL_BENCH_RATIO, 1.95},
    {"load.csv", "CSV rows to records", "of libcsv alone", FL_BENCH_RATIO, NAN},
    {"load.cache", "the same records from the cache", "times the CSV", FL_BENCH_RATIO, NAN},
    {"load.hashed", "and with the source hashed again", "times the CSV", FL_BENCH_RATIO, NAN},
    {"load.run_ns", "run from the cache: loading, per kernel", "ns", FL_BENCH_TIME, NAN},
    {"load.run_mb", "and its peak beyond a small run's, per M kernels", "MB", FL_BENCH_MEMORY, NAN},
    {"load.json", "Kineto JSON, streamed", "MB/s", FL_BENCH_RATE, NAN},
    {"load.json_mb", "and its peak beyond the records", "MB", FL_BENCH_MEMORY, 64},
    {"draws.energyucb", "EnergyUCB's distribution replay", "M steps/s", FL_BENCH_RATE, 20},
    {"serving.requests", "requests to a server, utilizscale each 100 ms", "requests/s", FL_BENCH_RATE, 20000},
    {"serving.pools", "an hour of the conversation trace, 4 + 4 servers", "s", FL_BENCH_TIME, 10},
    RATIO("plan.iteration", "an iteration of 8,272 instructions", 0.0069),
    {"plan.iteration_ms", "the same", "ms", FL_BENCH_TIME, 2},
    {"plan.execute", "one such plan, built and run", "ms", FL_BENCH_TIME, 4},
    {"plan.executed", "500 such plans, 2 threads", "s", FL_BENCH_TIME, 1},
    {"plan.executed_10k", "10,000 such plans, 2 threads", "s", FL_BENCH_TIME, 20},
    {"plan.point", "a frontier's plan, 8,272 instructions", "ms", FL_BENCH_TIME, 100},
    RATIO("plan.path", "longest path through such a pipeline, ops", NAN),
    {"command.run", "run on a small trace", "ms", FL_BENCH_TIME, 2},
    {"command.report", "report of 100,000 rows", "s", FL_BENCH_TIME, 5},
    {"command.plot", "plot pareto of 100,000 rows", "s", FL_BENCH_TIME, 5},
    {"command.oracle", "oracle on one of 74 drawn applications", "s", FL_BENCH_TIME, 0.5},
    {"command.compare", "compare of 74 applications, 12 draws, 2 threads", "s", FL_BENCH_TIME, 159},
    {"command.compare_mb", "and its peak", "MB", FL_BENCH_MEMORY, 400},
    {"", "", "", FL_BENCH_RATIO, NAN}};

static size_t find(const char *key) {
    size_t i = 0;
    while (*fl_bench_rows[i].key && strcmp(fl_bench_rows[i].key, key) != 0)
        i++;
    return i;
}

bool fl_bench_wants(const fl_bench *b, const char *key) {
    return *fl_bench_rows[find(key)].key && (!b->only || regexec(b->only, key, 0, NULL, 0) == 0);
}

fl_bench_result *fl_bench_take(fl_bench *b, const char *key, double value) {
    fl_bench_result *r = &b->result[find(key)];
    if (fl_grow(&r->value, &r->room, r->count + 1, sizeof *r->value) == FL_OK)
        r->value[r->count++] = value;
    return r;
}

double fl_bench_bare(fl_bench *b) {
    const fl_device *dev = &b->platform.node.device[0];
    const double top = dev->sm_mhz[dev->sm_count - 1], second = dev->sm_mhz[dev->sm_count - 2];
    const fl_bare_clock clock[] = {{1, 1, dev->c_w, dev->a_w, dev->b_w},
                                   {(float)(top / second), 1, dev->c_w, dev->a_w * second / top, dev->b_w}};
    const fl_bare_function variant[] = {fl_bare_loop, fl_bare_wide()};
    double best = 0, step_ns = 0;
    for (size_t v = 0; v < sizeof variant / sizeof *variant && variant[v]; v++) {
        for (double all = 0; all < FL_BENCH_ROUND_S;) {
            const double start = fl_bench_cpu_seconds();
            const fl_bare_sums sum = variant[v](b->rec, b->rec_count, clock, 2, 0.01);
            const double took = fl_bench_cpu_seconds() - start, rate = (double)b->rec_count / took;
            all += fmax(took, 1e-6);
            if (sum.energy_j > 0 && rate > best) { /* uses the sum, so that the compiler cannot remove the loop */
                best = rate;
                step_ns = took * 1e9 / (double)(sum.steps ? sum.steps : 1);
            }
        }
    }
    fl_bench_result *r = fl_bench_take(b, "bare", best / 1e6);
    b->bare = best > b->bare ? best : b->bare;
    r->per_second = b->bare;
    r->step_ns = step_ns;
    return best;
}
