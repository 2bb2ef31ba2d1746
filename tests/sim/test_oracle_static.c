/* The best static clock by bounds and few runs, where a bound must not be taken for more than it is: walls, budgets,
 * GPUs beside each other; and programs so long that a run at a slow clock would be refused. */
#include "tests/support/oracle_rig.h"

enum { MOST = 22 }; /* choices of the rig's device */

static const int64_t DAY_NS = INT64_C(86400000000000);

static void by_search(fx_rig *r, fl_objective objective, int64_t limit_ps, fl_static_point *best, bool *found) {
    FX_MUST(fl_static_search(r->w, r->rates, &r->spec, &r->facts, objective, limit_ps, best, found, d));
}

/* What the search finds is the best of runs at all choices, under limits around each of their times. */
static void check_all(fx_rig *r, const char *what) {
    fl_choice *choice;
    size_t count;
    fl_static_point point[MOST], best;
    FX_MUST(fl_oracle_choices(r->w, &r->spec, &choice, &count, d));
    CU_ASSERT_FATAL(count <= MOST);
    for (size_t c = 0; c < count; c++)
        FX_MUST(fl_static_run(r->w, r->rates, &r->spec, &r->facts, &choice[c], &point[c], d));
    free(choice);
    for (int m = 0; m < 3; m++)
        for (size_t k = 0; k <= 2 * count; k++) {
            const int64_t limit = k < 2 * count ? point[k / 2].makespan_ps - (int64_t)(k % 2) : INT64_MAX;
            const size_t want = fl_static_best(point, count, (fl_objective)m, limit);
            bool found;
            by_search(r, (fl_objective)m, limit, &best, &found);
            FL_CHECK(found == (want < count), "%s, E T^%d within %lld ps: found %d", what, m, (long long)limit, found);
            FL_CHECK(!found || (best.at.sm == point[want].at.sm && best.at.mem == point[want].at.mem &&
                                best.energy_fj == point[want].energy_fj && best.makespan_ps == point[want].makespan_ps),
                     "%s, E T^%d within %lld ps: %g/%g MHz, all runs say %g/%g", what, m, (long long)limit,
                     best.at.sm_mhz, best.at.mem_mhz, point[want].at.sm_mhz, point[want].at.mem_mhz);
        }
}

static void rising_voltage(fx_rig *r, double top) {
    const double x[] = {500, 1500}, y[] = {1, top};
    fl_curve_free(r->spec.device->voltage);
    CU_ASSERT_FATAL(fl_curve_new(&r->spec.device->voltage, x, y, 2) == FL_MODEL_OK);
}

/* The hungry kind is the cheaper the slower it runs, the modest one the faster. A wall slows down the hungry one alone,
 * so clocks that are dear without it are good ones with it. The hungry kind comes first, and last. */
static void test_wall(void) {
    for (int last = 0; last < 2; last++)
        for (int watts = 90; watts <= 240; watts += 50) {
            fx_rig r;
            fx_open(&r, 1);
            rising_voltage(&r, 1.6);
            r.spec.device->c_w = 40;
            nx_wall(&r, watts);
            uint32_t kind[2];
            for (int k = 0; k < 2; k++)
                kind[k] = k == last ? fx_class(&r, 0.2, 0, 0.8, 1, 0, 1) : fx_class(&r, 1, 0, 0, 0.01, 0, 1);
            const uint32_t s = fx_stream(&r, 0, 0);
            for (int i = 0; i < 4; i++)
                fx_op(&r, s, 0, i % 2 ? 400000000 : 300000000, kind[i % 2]);
            fx_finish(&r, 1);
            char what[64];
            snprintf(what, sizeof what, "a wall at %d W, kind %d is hungry", watts, last);
            check_all(&r, what);
            fx_close(&r);
        }
}

/* A budget of all GPUs lowers clocks, as a wall does. */
static void test_budget(void) {
    for (int watts = 60; watts <= 210; watts += 50) {
        fx_rig r;
        fx_open(&r, 2);
        rising_voltage(&r, 1.6);
        nx_wall(&r, 500);
        r.spec.host.gpu_budget_w = watts + 60;
        const uint32_t hungry = fx_class(&r, 0.2, 0, 0.8, 1, 0, 1), modest = fx_class(&r, 1, 0, 0, 0.01, 0, 1),
                       s = fx_stream(&r, 0, 0);
        for (int i = 0; i < 4; i++)
            fx_op(&r, s, 0, 300000000, i % 2 ? modest : hungry);
        fx_finish(&r, 1);
        char what[64];
        snprintf(what, sizeof what, "a budget of %d W", watts + 60);
        check_all(&r, what);
        fx_close(&r);
    }
}

/* Two streams that each fill a GPU: side by side on one they take turns, on two they do not. */
static void test_two_gpus(void) {
    for (uint32_t gpus = 1; gpus <= 2; gpus++) {
        fx_rig r;
        fx_open(&r, 2);
        const uint32_t full = fx_class(&r, 1, 0, 0, 1, 0, 1);
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t s = fx_stream(&r, i % gpus, (int32_t)i);
            for (int k = 0; k < 20; k++)
                fx_op(&r, s, 0, 1000000, full);
        }
        fx_finish(&r, 1);
        check_all(&r, gpus == 1 ? "two streams on one GPU" : "two streams on two GPUs");
        fx_close(&r);
    }
}

/* 20 days at 1000 MHz are 40 or 60 at 500, longer than a run may be. Where bounds rule that clock out, it is not run,
 * and the program is none the worse for it. */
static void test_long(void) {
    static const struct {
        const char *what;
        double no_context_w, wall_w, slower, watts[2]; /* slower and power at 500 MHz, power at 1000 */
        int64_t limit_days;
    } rows[] = {
        {"slow is dear", 8, 0, 2, {100, 100}, 1000},
        {"slow is dear for the GPUs without work", 500, 0, 2, {30, 100}, 1000},
        {"slow is cheap, and beyond the limit", 8, 0, 2, {40, 100}, 38},
        {"beyond the limit and what 64 bits hold twice", 8, 0, 3, {36, 400}, 38},
        {"slow is dear, just at the wall", 8, 200, 2, {200, 100}, 1000},
        {"slow is dear, just below the wall", 8, 200.001, 2, {200, 100}, 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 4);
        fl_device *dev = r.spec.device;
        dev->sm_count = 2, dev->sm_mhz[1] = 1000;
        dev->mem_count = 1, dev->mem_mhz[0] = 800, dev->b0_w[0] = 10;
        dev->no_context_w = rows[i].no_context_w;
        if (rows[i].wall_w > 0)
            nx_wall(&r, rows[i].wall_w);
        const double x[] = {500, 1000}, time[] = {rows[i].slower, 1};
        fl_measured m = {0};
        CU_ASSERT_FATAL(fl_curve_new(&m.time_ratio, x, time, 2) == FL_MODEL_OK);
        CU_ASSERT_FATAL(fl_curve_new(&m.power_w, x, rows[i].watts, 2) == FL_MODEL_OK);
        fl_load load = {.measured = &m, .sm_demand = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 800};
        fl_kernel_kind kind = {.name = "measured"};
        uint32_t id, s;
        FX_MUST(fl_workload_add_class(r.w, &load, &kind, &id, d));
        s = fx_stream(&r, 0, 0);
        for (int k = 0; k < 20; k++)
            fx_op(&r, s, 0, DAY_NS, id);
        fx_finish(&r, 1);
        fl_static_point best;
        fl_diag diag = {0};
        bool found = false;
        const fl_status status = fl_static_search(
            r.w, r.rates, &r.spec, &r.facts, FL_MIN_ENERGY,
            rows[i].limit_days > 100 ? INT64_MAX : rows[i].limit_days * DAY_NS * FL_PS_PER_NS, &best, &found, &diag);
        FL_CHECK(!status && found && best.at.sm_mhz == 1000, "%s: status %d, %s", rows[i].what, status, diag.message);
        fx_close(&r);
    }
}

FL_SUITE("oracle_static", {"a wall", test_wall}, {"a budget", test_budget}, {"two GPUs", test_two_gpus},
         {"too long where it is slow", test_long})
