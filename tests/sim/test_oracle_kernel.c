/* The best clock for each kernel. */
#include "tests/support/oracle_rig.h"

/* Compute: 1 ms at 1000 MHz, time 1000/f, power base + 100 f. Memory: its time stays down to 500 MHz; power base + 50
 * W. base = 30 + 10 f W at memory 800 MHz, 25 + 10 f at 400 MHz (f in GHz). */
static void test_per_kernel(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t compute = fx_class(&r, 1, 0, 0, 1, 0, 1), memory = fx_class(&r, 0, 1, 0, 0, 1, 1), s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 1000000, compute);
    fx_op(&r, s, 500000, 1000000, memory);
    fx_finish(&r, 1);
    fl_kernel_choice k[2];
    fl_kernel_total all;
    FX_MUST(fl_oracle_per_kernel(r.w, r.rates, &r.spec, FL_MIN_ENERGY, 0.12, NULL, k, &all, d));
    /* e(f) = (25 + 110 f)/f mJ falls with f, so 1500 MHz, memory at 400 MHz: faster than the default */
    FL_CHECK(k[0].class_id == 0 && k[0].at.sm_mhz == 1500 && k[0].at.mem_mhz == 400, "%g MHz, memory %g",
             k[0].at.sm_mhz, k[0].at.mem_mhz);
    FL_CHECK(fx_near(k[0].energy_j, 1e-3 * (25 + 110 * 1.5) / 1.5, 1e-4), "%g J", k[0].energy_j);
    FL_CHECK(fx_near(k[0].time_s, 1e-3 / 1.5, 1e-4), "%g s", k[0].time_s);
    FL_CHECK(fx_near(k[0].standard_energy_j, 1e-3 * (30 + 110), 1e-4) && fx_near(k[0].standard_time_s, 1e-3, 1e-4),
             "at the default clocks %g J, %g s", k[0].standard_energy_j, k[0].standard_time_s);
    FL_CHECK(k[1].at.sm_mhz == 500 && k[1].at.mem_mhz == 800, "%g MHz, memory %g", k[1].at.sm_mhz, k[1].at.mem_mhz);
    FL_CHECK(fx_near(k[1].energy_j, 1e-3 * (30 + 5 + 50), 1e-4), "%g J", k[1].energy_j);
    FL_CHECK(all.held && fx_near(all.time_s, 1e-3 / 1.5 + 1e-3 + 0.5e-3, 1e-4), "%g s", all.time_s);
    FL_CHECK(fx_near(all.energy_j, k[0].energy_j + k[1].energy_j + 0.5e-3 * 35, 1e-9) &&
                 fx_near(all.gap_energy_j, 0.5e-3 * 35, 1e-9) && fx_near(all.standard_gap_energy_j, 0.5e-3 * 40, 1e-9),
             "host time at the clocks of its kernel: %g J", all.energy_j);
    /* without a bound memory at 400 MHz: (25 + 5 + 25) W x 2 ms = 110 mJ > 85 mJ, so the same */
    FX_MUST(fl_oracle_per_kernel(r.w, r.rates, &r.spec, FL_MIN_ENERGY, INFINITY, NULL, k, &all, d));
    FL_CHECK(k[1].at.sm_mhz == 500 && k[1].at.mem_mhz == 800, "%g MHz, memory %g", k[1].at.sm_mhz, k[1].at.mem_mhz);
    fx_close(&r);
}

/* The bound is on the whole: what one kind does not need is another's. Compute on static power alone and a rising
 * voltage, 1 ms and 3 ms of two kinds that draw unlike: within 25 % of 4 ms the slack of 1 ms goes where it saves most.
 */
static void test_per_kernel_slack(void) {
    fx_rig r;
    fx_open(&r, 1);
    fl_device *dev = r.spec.device;
    dev->c_w = dev->a0_w = dev->b0_w[0] = dev->b0_w[1] = 0;
    fl_curve_free(dev->voltage);
    double x[2] = {500, 1500}, y[2] = {1, 2};
    fl_curve_new(&dev->voltage, x, y, 2);
    const uint32_t hungry = fx_class(&r, 1, 0, 0, 1, 0, 1), modest = fx_class(&r, 1, 0, 0, 0.01, 0, 1),
                   s = fx_stream(&r, 0, 0);
    fx_op(&r, s, 0, 1000000, hungry);
    fx_op(&r, s, 0, 3000000, modest);
    fx_finish(&r, 1);
    fl_kernel_choice k[2];
    fl_kernel_total all;
    FX_MUST(fl_oracle_per_kernel(r.w, r.rates, &r.spec, FL_MIN_ENERGY, 0.25, NULL, k, &all, d));
    FL_CHECK(k[0].at.sm_mhz == 500 && k[1].at.sm_mhz == 1000, "%g and %g MHz", k[0].at.sm_mhz, k[1].at.sm_mhz);
    FL_CHECK(fx_near(all.time_s, 5e-3, 1e-6), "%g s", all.time_s);
    fx_close(&r);
}

/* GPUs without work stand closed in the energies of all baselines alike. */
static void test_per_kernel_closed(void) {
    fx_rig r;
    fx_open(&r, 3);
    fx_op(&r, fx_stream(&r, 1, 0), 1000, 1000000, fx_class(&r, 1, 0, 0, 1, 0, 1));
    fx_finish(&r, 1);
    fl_kernel_choice k;
    fl_kernel_total all;
    fl_oracle_table t;
    table_of(&r, FL_POSITIONS_ALL, &t);
    fl_static_point *point = fx_alloc(t.choices, sizeof *point);
    for (int m = 0; m < 3; m++)
        for (int b = 0; b < 3; b++) {
            const double bound = b == 2 ? (double)INFINITY : 0.1 * b;
            for (size_t c = 0; c < t.choices; c++)
                FX_MUST(fl_static_run(r.w, r.rates, &r.spec, &r.facts, &t.choice[c], &point[c], d));
            size_t at = 0;
            while (t.choice[at].sm_mhz != 1000 || t.choice[at].mem_mhz != 800)
                at++;
            const size_t best =
                fl_static_best(point, t.choices, (fl_objective)m, fl_limit_ps(point[at].makespan_ps, bound));
            FX_MUST(fl_oracle_per_kernel(r.w, r.rates, &r.spec, (fl_objective)m, bound, NULL, &k, &all, d));
            FL_CHECK(all.energy_fj == point[best].energy_fj && all.time_ps == point[best].makespan_ps,
                     "%s, bound %g: %.17g fJ, the best static clock %.17g", fl_objective_names[m], bound,
                     fx_f(all.energy_fj), fx_f(point[best].energy_fj));
            fl_kernel_choice again;
            fl_kernel_total whole;
            FX_MUST(fl_oracle_per_kernel(r.w, r.rates, &r.spec, (fl_objective)m, bound, &t, &again, &whole, d));
            FL_CHECK(again.at.sm == k.at.sm && again.at.mem == k.at.mem && again.energy_j == k.energy_j &&
                         again.standard_energy_j == k.standard_energy_j && again.standard_time_s == k.standard_time_s &&
                         whole.energy_fj == all.energy_fj && whole.time_ps == all.time_ps,
                     "%s, bound %g: another answer by the sums of the table", fl_objective_names[m], bound);
        }
    free(point);
    fl_oracle_table_free(&t);
    fx_close(&r);
}

/* No static power and a rising voltage: 110 V^2 mJ, so the slower the cheaper, as far as the bound lets it. */
static void test_per_kernel_bound(void) {
    fx_rig r;
    fx_open(&r, 1);
    fl_device *dev = r.spec.device;
    dev->c_w = dev->b0_w[0] = dev->b0_w[1] = 0;
    fl_curve_free(dev->voltage);
    double x[2] = {500, 1500}, y[2] = {1, 2};
    fl_curve_new(&dev->voltage, x, y, 2);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, fx_class(&r, 1, 0, 0, 1, 0, 1));
    fx_finish(&r, 1);
    fl_kernel_choice k;
    fl_kernel_total all;
    static const struct {
        double bound, max, mhz;
    } rows[] = {{INFINITY, INFINITY, 500},
                {0.26, INFINITY, 800}, /* 1/0.8 is 25 % */
                {0.12, INFINITY, 900},
                {0, INFINITY, 1000},
                {0.12, 700, 700}}; /* known only below the default: none holds the bound, so the fastest */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        r.w->sm_max_mhz = rows[i].max;
        FX_MUST(fl_oracle_per_kernel(r.w, r.rates, &r.spec, FL_MIN_ENERGY, rows[i].bound, NULL, &k, &all, d));
        FL_CHECK(k.at.sm_mhz == rows[i].mhz, "row %zu: %g MHz", i, k.at.sm_mhz);
        FL_CHECK(all.held == (rows[i].max > 1000), "row %zu: the bound is%s held", i, all.held ? "" : " not");
    }
    fx_close(&r);
}
FL_SUITE("oracle per kernel", {"per kernel", test_per_kernel}, {"whose slack", test_per_kernel_slack},
         {"is static", test_per_kernel_closed}, {"under a bound", test_per_kernel_bound})
