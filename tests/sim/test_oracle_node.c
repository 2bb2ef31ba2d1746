/* Where the table of positions is not the whole truth: several streams, launches, parts of the node that act on
 * their own. */
#include "tests/support/oracle_rig.h"

static void test_several_streams(void) {
    for (int n = 0; n < 6; n++) {
        fl_random g = fl_random_seed(SEED + 5, (uint64_t)n);
        fx_rig r;
        fx_open(&r, 2);
        fx_random_classes(&r, &g, 4, 1);
        uint32_t a = fx_stream(&r, 0, 0), b = fx_stream(&r, n % 2 ? 1 : 0, 1);
        fx_random_ops(&r, &g, a, 100, 50000);
        fx_random_ops(&r, &g, b, 100, 50000);
        fx_finish(&r, 5);
        fl_oracle_table t;
        table_of(&r, FL_POSITIONS_ALL, &t);
        FL_CHECK(!t.exact && !!fl_oracle_inexact(r.w, r.rates, &r.spec) && t.positions == 1,
                 "instance %d: %zu positions", n, t.positions);
        fl_static_point point[22];
        for (size_t c = 0; c < t.choices; c++) {
            FX_MUST(fl_static_run(r.w, r.rates, &r.spec, &r.facts, &t.choice[c], &point[c], d));
            FL_CHECK(t.time_ps[c] == point[c].makespan_ps && t.energy_fj[c] == point[c].energy_fj, "instance %d", n);
        }
        int64_t limit = point[t.choices - 1].makespan_ps * 11 / 10;
        size_t best = fl_static_best(point, t.choices, FL_MIN_ENERGY, limit);
        fl_oracle_result o = solve(&t, FL_MIN_ENERGY, limit);
        FL_CHECK(o.feasible && o.energy_fj == point[best].energy_fj, "instance %d: not the best static clock", n);
        FL_CHECK(!o.bounded && !o.solved && isnan(o.bound_j) && isnan(o.objective_bound) && isnan(o.gap_pct),
                 "instance %d: a reference passes for a bound", n);
        free(o.schedule);
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
}

/* One stream alone is not enough: a host thread that launches its ops may hold them up. */
static void test_launched(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 1000, c);
    uint32_t thread = fx_thread(&r);
    fx_launch(&r, thread, 5000, s);
    fx_finish(&r, 1);
    FL_CHECK(!!fl_oracle_inexact(r.w, r.rates, &r.spec), "launched");
    fx_close(&r);
    fx_open(&r, 1);
    c = fx_light(&r), s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 1000, c);
    fx_op(&r, s, 0, 1000, c);
    fx_wait(&r, s, s, 1);
    fx_finish(&r, 1);
    FL_CHECK(!!fl_oracle_inexact(r.w, r.rates, &r.spec), "an op that waits for an event");
    fx_close(&r);
}

/* What makes the cost of a kernel depend on more than its clocks is said, and no bound is claimed; and a wall out of
 * reach or heat that is not modelled takes nothing away. */
static void test_node_features(void) {
    static const struct {
        const char *what, *reason;
        double limit_w;
        bool heat, cpu, ref_below, apu, budget;
    } rows[] = {
        {.what = "plain"},
        {.what = "a wall out of reach", .limit_w = 500},
        {.what = "a wall in reach", .limit_w = 150, .reason = "the power limit"},
        {.what = "heat", .heat = true, .reason = "heat"},
        {.what = "a CPU at the clock of the recording", .cpu = true},
        {.what = "a CPU that boosts beyond it",
         .cpu = true,
         .ref_below = true,
         .reason = "host time depends on the CPU clock"},
        {.what = "an APU", .cpu = true, .apu = true, .reason = "CPU and GPU share memory and budget"},
        {.what = "a budget", .budget = true, .reason = "a budget of all GPUs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        uint32_t c = fx_class(&r, 1, 0.5, 0, 1, 0.5, 1), s = fx_stream(&r, 0, 0);
        for (int k = 0; k < 100; k++)
            fx_op(&r, s, 1000, 1000000, c);
        if (rows[i].limit_w > 0)
            nx_wall(&r, rows[i].limit_w);
        if (rows[i].heat)
            nx_heat(&r, 90);
        if (rows[i].cpu)
            nx_cpu(&r);
        if (rows[i].cpu && !rows[i].ref_below)
            r.spec.host.cpu.ref_mhz = 3000;
        if (rows[i].apu)
            nx_apu(&r);
        r.spec.host.gpu_budget_w = rows[i].budget ? 100 : 0;
        fx_finish(&r, 1);
        const char *reason = fl_oracle_inexact(r.w, r.rates, &r.spec);
        FL_CHECK(rows[i].reason ? reason && !strcmp(reason, rows[i].reason) : !reason, "%s: %s", rows[i].what,
                 reason ? reason : "exact");
        fl_oracle_table t;
        table_of(&r, FL_POSITIONS_ALL, &t);
        FL_CHECK(t.exact == !reason, "%s: the table", rows[i].what);
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
}
FL_SUITE("oracle of a node", {"several streams", test_several_streams}, {"launched", test_launched},
         {"wall, heat, CPU and budget", test_node_features})
