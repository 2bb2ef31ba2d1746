/* What the GPUs of a node share: an APU's bus, a budget of power, the meter at the plug. */
#include "tests/support/node_fixture.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"

static fl_node *open_node(const fx_rig *r, uint64_t seed) {
    const fl_node_options o = {.w = r->w, .rates = r->rates, .spec = &r->spec, .seed = seed, .host_needs = NX_HOST_ALL};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    return n;
}

/* ---- the bus of an APU ---- */

enum { PERIODS = 40 };

/* One draw per period of 3 ms: the capacity in the middle of each. */
static void bus_of(uint64_t seed, uint32_t *capacity) {
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    nx_apu(&r);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000000, fx_light(&r));
    fx_finish(&r, 1);
    fl_node *n = open_node(&r, seed);
    for (int i = 0; i < PERIODS; i++) {
        fx_advance(n, (3 * i + 1) * FX_MS_PS);
        capacity[i] = n->course[0].capacity;
        fx_advance(n, (3 * i + 2) * FX_MS_PS);
        FL_CHECK(n->course[0].capacity == capacity[i], "period %d: one draw", i);
    }
    fl_node_close(n);
    fx_close(&r);
}

/* Each period has a bandwidth of its own, between the least and the most there is, by the seed. */
static void test_bus(void) {
    uint32_t a[PERIODS], b[PERIODS], same[PERIODS];
    bus_of(5, a);
    bus_of(6, b);
    bus_of(5, same);
    double sum = 0;
    int repeats = 0, common = 0;
    for (int i = 0; i < PERIODS; i++) {
        FL_CHECK(a[i] >= (uint32_t)(FL_SHARE_ONE * 0.7 / 0.8) && a[i] <= FL_SHARE_ONE, "period %d: %u of 65536", i,
                 a[i]);
        FL_CHECK(a[i] == same[i], "period %d: the same seed, the same bus", i);
        sum += a[i] / 65536.0;
        repeats += i && a[i] == a[i - 1];
        common += a[i] == b[i];
    }
    FL_CHECK(repeats == 0, "%d periods like the one before", repeats);
    FL_CHECK(common < 2, "%d periods in common with another seed", common);
    FL_CHECK(fabs(sum / PERIODS - 0.9375) < 0.02, "a mean of %g: both sides of the middle are met", sum / PERIODS);
}

/* A kernel that wants all of the bus follows it from draw to draw, and the node itself sees to it that there are
 * draws. */
static void test_bus_rates(void) {
    uint32_t capacity[PERIODS];
    bus_of(5, capacity);
    fx_rig r;
    fx_open(&r, 1);
    nx_cpu(&r);
    nx_apu(&r);
    r.spec.host.budget_w = 0;
    fx_op(&r, fx_stream(&r, 0, 0), 0, 80000000, fx_class(&r, 0.1, 1, 0, 0, 1, 1));
    fx_finish(&r, 1);
    double left_ms = 80, end_ms = 0;
    for (int i = 0; left_ms > 0; i++) {
        const double rate = capacity[i] / 65536.0, took_ms = fmin(3, left_ms / rate);
        left_ms -= took_ms * rate;
        end_ms += took_ms;
    }
    fl_node *n = open_node(&r, 5);
    fx_to_end(n);
    FL_CHECK(fx_near(fl_seconds(fl_node_now(n)), end_ms * 1e-3, 1e-6), "ends at %.9g s, expected %.9g",
             fl_seconds(fl_node_now(n)), end_ms * 1e-3);
    FL_CHECK(n->bus_ps > fl_node_now(n), "the next draw is at %lld ps", (long long)n->bus_ps);
    fl_node_close(n);
    fx_close(&r);
}

/* ---- the budget of several GPUs ---- */

/* 270 W for three boards, dealt at an instant: what each drew in the 100 ms before, its own limit, whether its wall
 * held it; and by hand what it gets. */
static void test_budget(void) {
    static const struct {
        const char *what;
        int64_t at_ms, drew_w[3], set_w[3];
        bool held[3];
        int64_t dealt_w[3];
    } rows[] = {
        {"at first all want as much as they may", 0, {0, 0, 0}, {300, 300, 300}, {0}, {90, 90, 90}},
        {"a small board leaves more to the others", 0, {0, 0, 0}, {50, 300, 300}, {0}, {50, 110, 110}},
        {"a tenth more than it drew, and the rest evenly",
         100,
         {100, 50, 60},
         {300, 300, 300},
         {0},
         {110 + 13, 55 + 13, 66 + 13}}, /* 270 - 231 = 39 */
        {"a held board asks for its limit", 100, {80, 40, 40}, {300, 300, 300}, {true}, {182, 44, 44}},
        {"and for no more than that", 100, {80, 40, 40}, {100, 300, 300}, {true}, {127, 71, 71}},
        {"two held boards share", 100, {80, 80, 40}, {300, 300, 300}, {true, true}, {113, 113, 44}},
        {"nobody wants more than its limit", 100, {200, 40, 40}, {150, 300, 300}, {0}, {160, 54, 54}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 3);
        nx_wall(&r, 300);
        const uint32_t c = fx_light(&r);
        for (uint32_t g = 0; g < 3; g++)
            fx_op(&r, fx_stream(&r, g, 0), 0, 1000000000, c);
        r.spec.host.gpu_budget_w = 270;
        fx_finish(&r, 1);
        fl_node *n = open_node(&r, 1);
        n->now = n->budget_ps = rows[i].at_ms * FX_MS_PS;
        for (uint32_t g = 0; g < 3; g++) {
            n->wall[g].set_mw = rows[i].set_w[g] * 1000;
            n->wall[g].acts = rows[i].held[g];
            n->dealt_fj[g] = 12345; /* drawn before the period */
            n->gpu[g].sums.energy_fj = 12345 + (fl_wide)rows[i].drew_w[g] * 1000 * 100 * FX_MS_PS;
        }
        fl_node_host_at(n);
        for (uint32_t g = 0; g < 3; g++) {
            FL_CHECK(llabs(n->wall[g].dealt_mw - rows[i].dealt_w[g] * 1000) < 1000, "%s: GPU %u gets %lld mW",
                     rows[i].what, g, (long long)n->wall[g].dealt_mw);
            FL_CHECK(n->dealt_fj[g] == n->gpu[g].sums.energy_fj, "%s: GPU %u: the next period begins", rows[i].what, g);
        }
        const int64_t sum = n->wall[0].dealt_mw + n->wall[1].dealt_mw + n->wall[2].dealt_mw;
        FL_CHECK(sum <= 270000 && sum > 270000 - 4, "%s: all of it is dealt out: %lld mW", rows[i].what,
                 (long long)sum);
        FL_CHECK(n->budget_ps == (rows[i].at_ms + 100) * FX_MS_PS, "%s: every 100 ms", rows[i].what);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- the meter at the plug ---- */

static double host_value(fl_node *n, int signal) {
    fl_host_sample s;
    fl_node_read_host(n, true, &s);
    FL_CHECK(s.valid & FL_BIT(signal), "signal %d is there", signal);
    return s.value[signal];
}

/* Two GPUs at 40 W idle, 140 W in a kernel, 90 W in a copy; 50 W for the rest of the node, 7 W while a copy runs. GPU
 * 0: kernel 0-300 ms; GPU 1: copy 0-100 ms, kernel 100-200 ms, copy 200-300 ms, at another clock from 200 ms on. With a
 * CPU: two threads that wait, 10 + 2 x 5 W. */
static void test_plug(void) {
    for (int cpu = 0; cpu < 2; cpu++) {
        fx_rig r;
        fx_open(&r, 2);
        r.spec.host.static_w = 50;
        r.spec.host.comm_w = 7;
        if (cpu)
            nx_cpu(&r);
        r.spec.host.sensor[FL_HOST_SENSOR_NODE_POWER] = (fl_sensor_spec){.present = 1};
        r.spec.host.sensor[FL_HOST_SENSOR_NODE_ENERGY] = (fl_sensor_spec){.present = 1};
        const uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), copy = fx_class(&r, 0, 1, 0, 0, 1, 1);
        r.w->class[copy].copy = true;
        fx_op(&r, fx_stream(&r, 0, 0), 0, 300000000, c);
        const uint32_t s = fx_stream(&r, 1, 0);
        fx_op(&r, s, 0, 100000000, copy);
        fx_op(&r, s, 0, 100000000, c);
        fx_op(&r, s, 0, 100000000, copy);
        fx_finish(&r, 1);
        fl_node *n = open_node(&r, 1);
        if (cpu)
            fl_node_set_cpu(n, 0, 2000, 0, (double)NAN);
        fl_node_set(n, 1, 200 * FX_MS_PS, 500, (double)NAN); /* 35 W idle */
        fx_advance(n, 150 * FX_MS_PS);
        const double cpu_w = cpu ? 10 + 2 * 5 : 0;
        double expected = 0.15 * (50 + cpu_w) + 0.15 * 140 + 0.1 * 90 + 0.05 * 140 + 0.1 * 7;
        FL_CHECK(fx_near(host_value(n, FL_HOST_NODE_ENERGY_J), expected, 1e-6), "CPU %d: %.9g J, expected %.9g", cpu,
                 host_value(n, FL_HOST_NODE_ENERGY_J), expected);
        FL_CHECK(fx_near(host_value(n, FL_HOST_NODE_POWER_W), 50 + cpu_w + 280, 1e-6), "CPU %d: %.9g W now", cpu,
                 host_value(n, FL_HOST_NODE_POWER_W));
        fx_advance(n, 250 * FX_MS_PS);
        expected += 0.1 * (50 + cpu_w) + 0.1 * 140 + 0.05 * 140 + 0.05 * 85 + 0.05 * 7;
        FL_CHECK(fx_near(host_value(n, FL_HOST_NODE_ENERGY_J), expected, 1e-6), "CPU %d: %.9g J, expected %.9g", cpu,
                 host_value(n, FL_HOST_NODE_ENERGY_J), expected);
        FL_CHECK(fl_node_comm_fj(n) == (fl_wide)150 * FX_MS_PS * 7000, "CPU %d: %g J of copies", cpu,
                 fl_joules(fl_node_comm_fj(n)));
        FL_CHECK(fl_ledger_host_peak_mw(n, &r.spec) == 57000 + (cpu ? fl_node_cpu(n)->peak_mw : 0),
                 "CPU %d: %lld mW at most beside the GPUs", cpu, (long long)fl_ledger_host_peak_mw(n, &r.spec));
        fl_node_close(n);
        fx_close(&r);
    }
}

/* A meter that lags starts at what the idle node draws: 50 W, 20 W of CPU, two boards at 40 W. And the CPU's clock. */
static void test_start(void) {
    fx_rig r;
    fx_open(&r, 2);
    nx_cpu(&r);
    r.spec.host.sensor[FL_HOST_SENSOR_CPU] = (fl_sensor_spec){.present = 1};
    r.spec.host.sensor[FL_HOST_SENSOR_NODE_POWER] =
        (fl_sensor_spec){.present = 1, .period_ns = 10000000, .lag_ns = INT64_C(100000000000)};
    for (uint32_t g = 0; g < 2; g++)
        fx_op(&r, fx_stream(&r, g, 0), 0, 100000000, fx_light(&r));
    fx_finish(&r, 1);
    fl_node *n = open_node(&r, 1);
    fx_advance(n, 20 * FX_MS_PS);
    FL_CHECK(fabs(host_value(n, FL_HOST_NODE_POWER_W) - 150) < 0.5, "%g W", host_value(n, FL_HOST_NODE_POWER_W));
    FL_CHECK(host_value(n, FL_HOST_CPU_MHZ) == 3000, "%g MHz", host_value(n, FL_HOST_CPU_MHZ));
    fl_node_close(n);
    fx_close(&r);
}

/* ---- copies ---- */

/* The link draws 7 W while a copy runs, be it the first class or the last, and on whichever GPU. */
static void test_copies(void) {
    for (uint32_t which = 0; which < 3; which++) /* 2: none is a copy */
        for (uint32_t gpu = 0; gpu < 2; gpu++) {
            fx_rig r;
            fx_open(&r, 2);
            r.spec.host.comm_w = 7;
            const uint32_t c[] = {fx_light(&r), fx_light(&r)}, s = fx_stream(&r, gpu, 0);
            if (which < 2)
                r.w->class[c[which]].copy = true;
            fx_op(&r, s, 0, 1000000, c[0]);
            fx_op(&r, s, 0, 3000000, c[1]);
            fx_op(&r, fx_stream(&r, 1 - gpu, 0), 0, 9000000, c[which == 0]); /* no copy */
            fx_finish(&r, 1);
            fl_node *n = open_node(&r, 1);
            fx_to_end(n);
            static const int ms[] = {1, 3, 0};
            FL_CHECK(fl_node_comm_fj(n) == (fl_wide)ms[which] * FX_MS_PS * 7000, "copy %u on GPU %u: %g J", which, gpu,
                     fl_joules(fl_node_comm_fj(n)));
            fl_node_close(n);
            fx_close(&r);
        }
}

FL_SUITE("node_host", {"bus of an APU", test_bus}, {"a kernel follows the bus", test_bus_rates},
         {"copies", test_copies}, {"budget of several GPUs", test_budget}, {"meter at the plug", test_plug},
         {"meters at the start", test_start})
