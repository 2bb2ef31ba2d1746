/* The ledger: residence times the rows' integer parts is the running sum to the last femtojoule, and its parts are
 * those of the power law. */
#include "tests/support/sim_fixture.h"
#include "sim/node/inside.h"

static const uint64_t every_signal = ~UINT64_C(0);

/* Energy from residence alone, by this file's own arithmetic. */
static fl_wide by_residence(const fl_gpu *g) {
    fl_wide sum = (fl_wide)g->closed_ps * lround(g->dev->no_context_w * 1000);
    for (uint32_t i = 0; i < g->slot_count; i++) {
        const fl_slot *s = &g->slot[i];
        sum += (fl_wide)s->open_ps *
               ((fl_wide)s->rates->base.static_mw + s->rates->base.memory_mw + s->rates->base.tree_mw);
        for (uint32_t c = 0; c < g->w->class_count; c++) {
            const fl_row_parts *p = &s->rates->parts[c];
            sum += (fl_wide)s->class_ps[c] * ((fl_wide)p->sm_mw + p->memory_mw + p->unsplit_mw);
        }
    }
    return sum;
}

static int64_t time_in_slots(const fl_gpu *g) {
    int64_t sum = g->closed_ps;
    for (uint32_t i = 0; i < g->slot_count; i++)
        sum += g->slot[i].open_ps;
    return sum;
}

/* Random workloads under thousands of clock changes at odd instants. */
static void test_residence_closes(void) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fl_random g = fl_random_seed(seed, 11);
        uint32_t gpus = 1 + (uint32_t)(seed % 2), streams = 1 + (uint32_t)fl_random_below(&g, 6);
        fx_rig r;
        fx_open(&r, gpus);
        r.spec.device->actuator.settle_ns = (int64_t)fl_random_below(&g, 3000);
        fx_random_classes(&r, &g, 6, 1);
        for (uint32_t s = 0; s < streams; s++)
            fx_random_ops(&r, &g, fx_stream(&r, s % gpus, (int32_t)s), 60, 50000);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, 0, seed % 3 == 0);
        uint64_t changes = 0;
        while (!fl_node_done(n)) {
            int64_t next = fl_node_now(n) + 1 + (int64_t)fl_random_below(&g, 8 * FX_US_PS);
            fl_node_set(n, (uint32_t)fl_random_below(&g, gpus), fl_node_now(n),
                        500 + 100 * (double)fl_random_below(&g, 11),
                        fl_random_below(&g, 2) ? NAN : 400 * (1 + (double)fl_random_below(&g, 2)));
            fx_advance(n, next);
            changes++;
            for (uint32_t i = 0; i < gpus; i++) {
                const fl_gpu *gpu = fl_node_gpu(n, i);
                if (by_residence(gpu) != gpu->sums.energy_fj || time_in_slots(gpu) != fl_node_now(n)) {
                    FL_CHECK(false,
                             "seed %llu: GPU %u at %lld ps: %.20g fJ by residence, %.20g by sums; %lld ps in slots",
                             (unsigned long long)seed, i, (long long)fl_node_now(n), fx_f(by_residence(gpu)),
                             fx_f(gpu->sums.energy_fj), (long long)time_in_slots(gpu));
                    i = gpus;
                }
            }
        }
        FL_CHECK(changes > 20 && fl_node_switches(n) > 5, "seed %llu: only %llu changes", (unsigned long long)seed,
                 (unsigned long long)changes);
        fl_ledger l = {0};
        for (uint32_t i = 0; i < gpus; i++)
            FX_MUST(fl_ledger_add_gpu(&l, fl_node_gpu(n, i), d));
        fl_wide sum = 0;
        for (int i = 0; i < FL_PART_COUNT; i++)
            sum += l.part_fj[i];
        FL_CHECK(sum == l.gpu_fj && sum == fx_energy(n), "seed %llu: parts %g, total %g", (unsigned long long)seed,
                 fx_f(sum), fx_f(l.gpu_fj));
        fl_node_close(n);
        fx_close(&r);
    }
}

static void test_runs_close(void) {
    for (uint64_t seed = 1; seed <= 12; seed++) {
        fl_random g = fl_random_seed(seed, 12);
        fx_rig r;
        fx_open(&r, 2);
        r.facts.seed = seed;
        r.spec.host.static_w = 30;
        fx_random_classes(&r, &g, 5, 1);
        for (uint32_t s = 0; s < 3; s++)
            fx_random_ops(&r, &g, fx_stream(&r, s / 2, (int32_t)s), 300, 100000);
        fx_finish(&r, 0);
        fl_run_result result;
        fx_run(&r, &(fx_how){.mode = FX_RANDOM_BOTH, .needs = every_signal}, &result);
        fl_wide sum = 0;
        for (int i = 0; i < FL_PART_COUNT; i++)
            sum += result.ledger.part_fj[i];
        FL_CHECK(sum == result.energy_fj && result.switches > 0, "seed %llu: parts %g, node %g",
                 (unsigned long long)seed, fx_f(sum), fx_f(result.energy_fj));
        FL_CHECK(result.ledger.part_fj[FL_PART_NODE_STATIC] == (fl_wide)result.makespan_ps * 30000,
                 "static node energy");
        int64_t in_residence[2] = {0};
        for (size_t i = 0; i < result.residence_count; i++)
            in_residence[result.residence[i].gpu] += result.residence[i].ps;
        FL_CHECK(in_residence[0] <= result.makespan_ps && in_residence[1] <= result.makespan_ps &&
                     (in_residence[0] == result.makespan_ps || in_residence[1] == result.makespan_ps),
                 "one GPU has its context open to the end");
        fl_run_result_free(&result);
        fx_close(&r);
    }
}

/* The ledger is a check, not a sum of what it is told: a femtojoule too much is seen. */
static void test_a_leak_is_seen(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_light(&r);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, c);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    fl_gpu leaky = *fl_node_gpu(n, 0);
    fl_ledger l = {0};
    fl_diag d = {0};
    FL_CHECK(fl_ledger_add_gpu(&l, &leaky, &d) == FL_OK, "it closes: %s", d.message);
    leaky.sums.energy_fj++;
    fl_status status = fl_ledger_add_gpu(&l, &leaky, &d);
    FL_CHECK(status == FL_MODEL_FAULT && strstr(d.message, "ledger"), "one fJ: %d '%s'", status, d.message);
    fl_node_close(n);
    fx_close(&r);
}

/* Every part of one kernel of 1 ms at 1000 / 800 MHz after 1 ms of gap, beside a board without context. */
static void test_parts_by_hand(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t c = fx_class(&r, 1, 0.5, 0, 0.8, 0.4, 1), s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 1000000, 1000000, c);
    fx_finish(&r, 0);
    static const struct {
        fl_part part;
        int64_t mj; /* microjoules */
    } expected[] = {
        {FL_PART_STATIC, 40000},     /* 20 W x 2 ms */
        {FL_PART_CLOCK_TREE, 20000}, /* 10 W x 2 ms */
        {FL_PART_SM, 80000},         /* 0.8 x 100 W x 1 ms */
        {FL_PART_MEMORY, 40000},     /* 10 W x 2 ms + 0.4 x 50 W x 1 ms */
        {FL_PART_CLOSED, 16000},     /* 8 W x 2 ms */
        {FL_PART_LEAKAGE, 0},        {FL_PART_UNSPLIT, 0}, {FL_PART_CPU, 0}, {FL_PART_NODE_STATIC, 0},
    };
    for (int only = 0; only < 2; only++) {
        fl_run_result result;
        fx_run(&r, &(fx_how){.mode = -1, .path = only ? FL_PATH_EVENTS : FL_PATH_AUTO}, &result);
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            fl_wide fj = result.ledger.part_fj[expected[i].part];
            FL_CHECK(fj == (fl_wide)expected[i].mj * 1000000000, "part %s is %g fJ, expected %lld uJ",
                     fl_part_names[expected[i].part], fx_f(fj), (long long)expected[i].mj);
        }
        FL_CHECK(fx_near(result.energy_j, 0.196, 1e-15), "energy %.17g J", result.energy_j);
        FL_CHECK(fx_near(result.mean_power_w, 98, 1e-12), "mean power %.17g W", result.mean_power_w);
        FL_CHECK(fx_near(result.class_energy_j[c], 0.140, 1e-15) && fx_near(result.class_time_s[c], 1e-3, 1e-15),
                 "class: %g J in %g s", result.class_energy_j[c], result.class_time_s[c]);
        FL_CHECK(result.kernels == 1, "%llu kernels", (unsigned long long)result.kernels);
        fl_run_result_free(&result);
    }
    fx_close(&r);
}

/* A measured table says what the whole board draws, and no more: all above the base is unsplit. */
static void test_unsplit(void) {
    fx_rig r;
    fx_open(&r, 1);
    double mhz[2] = {500, 1500}, ratio[2] = {2, 1}, watts[2] = {75, 175};
    fl_measured measured = {0};
    if (fl_curve_new(&measured.time_ratio, mhz, ratio, 2) || fl_curve_new(&measured.power_w, mhz, watts, 2))
        exit(1);
    fl_load load = {.sm_demand = 1, .ref_sm_mhz = 1500, .ref_mem_mhz = 800, .measured = &measured};
    uint32_t c;
    FX_MUST(fl_workload_add_class(r.w, &load, &(fl_kernel_kind){.name = "measured"}, &c, d));
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, c);
    fx_finish(&r, 0);
    fl_run_result result;
    fx_run(&r, &(fx_how){.mode = -1}, &result); /* at 1000 MHz: 1.5 ms, 125 W of which 40 are the base */
    FL_CHECK(result.makespan_ps == 1500000000, "%lld ps", (long long)result.makespan_ps);
    FL_CHECK(result.ledger.part_fj[FL_PART_UNSPLIT] == (fl_wide)1500000000 * 85000, "unsplit %g",
             fx_f(result.ledger.part_fj[FL_PART_UNSPLIT]));
    FL_CHECK(result.energy_fj == (fl_wide)1500000000 * 125000, "energy %g", fx_f(result.energy_fj));
    fl_run_result_free(&result);
    fx_close(&r);
}

/* The peak is a power that occurred, the same by every way. */
static void test_peak(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t low = fx_class(&r, 1, 0, 0, 0.3, 0, 0.4), high = fx_class(&r, 1, 0, 0, 0.9, 0, 0.4),
             s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 5000, low);
    fx_op(&r, s, 0, 0, high); /* has no length, so its power never was */
    fx_op(&r, s, 0, 5000, low);
    fx_finish(&r, 0);
    for (int only = 0; only < 2; only++) {
        fl_run_result result;
        fx_run(&r, &(fx_how){.mode = -1, .path = only ? FL_PATH_EVENTS : FL_PATH_AUTO}, &result);
        FL_CHECK(fx_near(result.peak_power_w, 70, 1e-12), "way %d: peak %g W, expected 70", only, result.peak_power_w);
        fl_run_result_free(&result);
    }
    fx_close(&r);

    fx_open(&r, 1); /* two at once with enough for both: 40 + 30 + 90 W; two that share all SMs: 40 + (60 + 60) / 2 */
    low = fx_class(&r, 1, 0, 0, 0.3, 0, 0.4), high = fx_class(&r, 1, 0, 0, 0.9, 0, 0.4);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 5000, low);
    fx_op(&r, fx_stream(&r, 0, 1), 0, 5000, high);
    fx_finish(&r, 0);
    fl_run_result result;
    fx_run(&r, &(fx_how){.mode = -1}, &result);
    FL_CHECK(fx_near(result.peak_power_w, 160, 1e-12), "two beside each other: peak %g W, expected 160",
             result.peak_power_w);
    fl_run_result_free(&result);
    fx_close(&r);

    fx_open(&r, 1);
    low = fx_class(&r, 1, 0, 0, 0.2, 0, 1), high = fx_class(&r, 1, 0, 0, 0.6, 0, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 10000, low);
    fx_op(&r, fx_stream(&r, 0, 1), 0, 5000, high); /* never runs alone */
    fx_finish(&r, 0);
    fx_run(&r, &(fx_how){.mode = -1}, &result);
    FL_CHECK(fx_near(result.peak_power_w, 80, 1e-12), "two that share: peak %g W, expected 80", result.peak_power_w);
    fl_run_result_free(&result);
    fx_close(&r);
}

/* Two kernels of 40 W beside each other at 1000 MHz, then one of them beside one of 90 W. At the instant at which that
 * begins the clock falls to 500 MHz, or rises to 1500: what the three would have drawn at the clock before, for no
 * time, was never drawn. */
static void test_peak_at_a_change(void) {
    static const struct {
        double mhz, watts;
    } rows[] = {{1000, 40 + 40 + 90}, {500, 40 + 40 + 40}, {1500, 45 + 60 + 135}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int only = 0; only < 2; only++)
            for (int stop = 0; stop < 2; stop++) {
                fx_rig r;
                fx_open(&r, 1);
                const uint32_t low = fx_class(&r, 1, 0, 0, 0.4, 0, 0.3), high = fx_class(&r, 1, 0, 0, 0.9, 0, 0.3),
                               one = fx_stream(&r, 0, 0), two = fx_stream(&r, 0, 1);
                fx_op(&r, one, 0, 20000000, low);
                fx_op(&r, two, 0, 5000000, low);
                fx_op(&r, two, 0, 5000000, high);
                fx_finish(&r, 0);
                fl_node *n = fx_node(&r, 0, only);
                fl_node_set(n, 0, 5 * FX_MS_PS, rows[i].mhz, NAN);
                if (stop)
                    fx_advance(n, 5 * FX_MS_PS);
                fx_to_end(n);
                const int64_t mw = fl_ledger_peak_mw(fl_node_gpu(n, 0));
                FL_CHECK(mw == llround(rows[i].watts * 1000),
                         "to %g MHz, way %d, stop %d: a peak of %lld mW, expected %g W", rows[i].mhz, only, stop,
                         (long long)mw, rows[i].watts);
                fl_node_close(n);
                fx_close(&r);
            }
}

/* What draws without working counts too: a board without a context, a program that only waits. fx_run holds every peak
 * against its mean. */
static void test_idle_peak(void) {
    fx_rig r;
    fx_open(&r, 2);
    uint32_t busy = fx_class(&r, 1, 0, 0, 0.3, 0, 0.4);
    fx_op(&r, fx_stream(&r, 1, 0), 0, 5000, busy);
    fx_finish(&r, 0);
    for (int only = 0; only < 2; only++) {
        fl_run_result result;
        fx_run(&r, &(fx_how){.mode = -1, .path = only ? FL_PATH_EVENTS : FL_PATH_AUTO}, &result);
        FL_CHECK(fx_near(result.peak_power_w, 70 + 8, 1e-12) && result.peak_parts == 2,
                 "way %d: beside a board without a context %g W, expected 78", only, result.peak_power_w);
        fl_run_result_free(&result);
    }
    fx_close(&r);
}

/* The idle board at 1500 and 800 MHz draws 20 + 10 + 15 W, closed 50 W. Each counts once it lasted a picosecond, beside
 * a kernel that drew a milliwatt; heat comes on top of the board's alone. */
static void test_peak_of_an_instant(void) {
    static const struct {
        int64_t open_ps, closed_ps, leak_mw, want_mw;
    } rows[] = {{0, 0, 0, 1}, {1, 0, 0, 45000}, {0, 1, 0, 50000}, {1, 1, 7, 50000}, {1, 0, 7, 45007}, {0, 0, 7, 8}};
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, fx_light(&r));
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t class_ps = 0;
        fl_slot slot = {.rates = fx_rates(&r, 1500, 800), .open_ps = rows[i].open_ps, .class_ps = &class_ps};
        fl_gpu g = *fl_node_gpu(n, 0);
        g.slot = &slot;
        g.slot_count = 1;
        g.peak_mw = 1;
        g.leak_peak_mw = rows[i].leak_mw;
        g.closed_ps = rows[i].closed_ps;
        g.closed_mw = 50000;
        FL_CHECK(fl_ledger_peak_mw(&g) == rows[i].want_mw, "row %zu: %lld mW, expected %lld", i,
                 (long long)fl_ledger_peak_mw(&g), (long long)rows[i].want_mw);
    }
    fl_node_close(n);
    fx_close(&r);
}

/* Beyond 2 kW within one window of accounts: nothing overflows. */
static void test_large_powers(void) {
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->a_w = 2500;
        uint32_t c = fx_light(&r);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 12000000000, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, 0, only);
        fx_to_end(n);
        FL_CHECK(fx_energy(n) == (fl_wide)FL_PS_PER_S * 12 * 2540000, "way %d: %g fJ", only, fx_f(fx_energy(n)));
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Many kernels beside each other, each with a power that a lone one may have. */
static void test_large_sums(void) {
    fx_rig r;
    fx_open(&r, 1);
    r.spec.device->a_w = 8000;
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 0.01);
    for (int i = 0; i < 20; i++)
        fx_op(&r, fx_stream(&r, 0, i), 0, 3000000000, c);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    fl_wide expected = (fl_wide)FL_PS_PER_S * 3 * (40000 + 20 * (int64_t)8000000);
    FL_CHECK(fx_energy(n) == expected, "%g fJ, expected %g", fx_f(fx_energy(n)), fx_f(expected));
    fl_node_close(n);
    fx_close(&r);
}

/* A kernel beyond what the accounts of one window hold is refused, never wrapped. */
static void test_too_large_powers(void) {
    fx_rig r;
    fx_open(&r, 1);
    r.spec.device->a_w = 1.5e6;
    fx_op(&r, fx_stream(&r, 0, 0), 0, 3000000000, fx_light(&r));
    fx_finish(&r, 0);
    fl_run_result result;
    fl_diag diag = {0};
    fl_status status = fx_try(&r, &(fx_how){.mode = -1}, &result, &diag);
    FL_CHECK(status != FL_OK && diag.message[0], "1.5 MW: %d '%s'", status, diag.message);
    if (!status)
        fl_run_result_free(&result);
    fx_close(&r);
}

FL_SUITE("ledger", {"residence closes", test_residence_closes}, {"runs close", test_runs_close},
         {"a leak is seen", test_a_leak_is_seen}, {"parts by hand", test_parts_by_hand}, {"unsplit", test_unsplit},
         {"peak", test_peak}, {"peak where the clock changes", test_peak_at_a_change},
         {"peak of idle boards", test_idle_peak}, {"peak of an instant", test_peak_of_an_instant},
         {"large powers", test_large_powers}, {"large sums", test_large_sums},
         {"too large powers", test_too_large_powers})
