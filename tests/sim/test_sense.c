/* What software reads: against hand cases, and against a node without sensors that is stopped wherever a window begins
 * or ends. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

static const uint64_t every_signal = ~UINT64_C(0);

static double read_one(fl_node *n, uint32_t gpu, int id) {
    fl_gpu_sample s;
    fl_node_read(n, gpu, true, &s);
    return fl_gpu_known(&s, id) ? s.value[id] : NAN;
}

static void check_value(const char *what, double got, double expected, double relative) {
    FL_CHECK(fx_near(got, expected, relative) || (isnan(got) && isnan(expected)), "%s: %.15g, expected %.15g", what,
             got, expected);
}

/* A kernel of 100 ms from 0 on: 40 W before, 140 W from then on. */
static void open_constant(fx_rig *r, fl_sensor_id id, fl_sensor_spec spec) {
    fx_open(r, 1);
    spec.present = 1;
    r->spec.device->sensor[id] = spec;
    fx_op(r, fx_stream(r, 0, 0), 0, 100000000, fx_light(r));
    fx_finish(r, 0);
}

static void test_power_by_hand(void) {
    static const struct {
        const char *what;
        fl_sensor_spec spec;
        int64_t us;
        double watts;
    } rows[] = {
        {"window of a period", {.period_ns = 1000000, .window_ns = 1000000}, 1500, 140},
        {"the first refresh saw idling", {.period_ns = 1000000, .window_ns = 1000000}, 999, 40},
        {"a quarter of a long window", {.period_ns = 1000000, .window_ns = 4000000}, 1000, 65},
        {"half of a long window", {.period_ns = 1000000, .window_ns = 4000000}, 2999, 90},
        {"a phase", {.period_ns = 1000000, .phase_ns = 300000, .window_ns = 1000000}, 1200, 70},
        {"idling before the first refresh", {.period_ns = 1000000, .phase_ns = 300000, .window_ns = 1000000}, 299, 40},
        {"a delay", {.period_ns = 1000000, .window_ns = 1000000, .delay_ns = 2500000}, 3400, 40},
        {"the end of a delay", {.period_ns = 1000000, .window_ns = 1000000, .delay_ns = 2500000}, 3500, 140},
        {"idling before the delay", {.period_ns = 1000000, .window_ns = 1000000, .delay_ns = 2500000}, 2499, 40},
        {"quanta, down", {.period_ns = 1000000, .window_ns = 4000000, .quantum = 25}, 2000, 100},
        {"quanta", {.period_ns = 1000000, .window_ns = 4000000, .quantum = 20}, 1000, 60},
        {"no window", {.period_ns = 1000000}, 1000, 140},
        {"no period", {.period_ns = 0}, 1234, 140},
        {"no period, but a window", {.window_ns = 50000}, 1234, 140},
        {"no period, but a lag", {.lag_ns = 50000}, 1234, 140},
        {"a short window", {.period_ns = 10000000, .window_ns = 10000}, 25000, 140},
        {"a lag at the first refresh", {.period_ns = 1000000, .lag_ns = 5000000}, 999, 40},
        {"a lag from a phase on",
         {.period_ns = 1000000, .phase_ns = 3000000, .lag_ns = 5000000},
         10000,
         119.8103482005345},
        {"a lag after 10 ms", {.period_ns = 1000000, .lag_ns = 5000000}, 10000, 126.4664716763387},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int often = 0; often < 2; often++) {
            fx_rig r;
            open_constant(&r, FL_SENSOR_POWER, rows[i].spec);
            fl_node *n = fx_node(&r, every_signal, often);
            for (int64_t t = 0; often && t < rows[i].us; t += 7) {
                fx_advance(n, t * FX_US_PS);
                read_one(n, 0, FL_GPU_POWER_W);
            }
            fx_advance(n, rows[i].us * FX_US_PS);
            check_value(rows[i].what, read_one(n, 0, FL_GPU_POWER_W), rows[i].watts, 1e-12);
            fl_node_close(n);
            fx_close(&r);
        }
}

/* 10 ms of kernels of 5 us, bound by memory half of the time, after gaps of 15 us: a quarter busy. */
static void test_utilisation_by_hand(void) {
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 1);
        fl_sensor_spec spec = {.present = 1, .period_ns = 1000000, .window_ns = 1000000};
        r.spec.device->sensor[FL_SENSOR_UTILISATION] = r.spec.device->sensor[FL_SENSOR_PROFILE] = spec;
        r.spec.device->sensor[FL_SENSOR_ENERGY] = (fl_sensor_spec){.present = 1, .period_ns = 100000, .quantum = 1e-2};
        uint32_t c = fx_class(&r, 1, 0.5, 0, 1, 0, 0.25), s = fx_stream(&r, 0, 0);
        for (int i = 0; i < 500; i++)
            fx_op(&r, s, 15000, 5000, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, every_signal, only);
        fx_advance(n, 5 * FX_MS_PS + FX_MS_PS / 2);
        fl_gpu_sample got;
        fl_node_read(n, 0, true, &got);
        static const struct {
            int id;
            double value;
        } rows[] = {{FL_GPU_UTIL_GPU_PCT, 25},       {FL_GPU_UTIL_MEM_PCT, 13}, /* 12.5, halves up */
                    {FL_GPU_GPU_CLOCK_BUSY_PCT, 25}, {FL_GPU_DRAM_ACTIVE_PCT, 12.5}, {FL_GPU_ALU_BUSY_PCT, 25},
                    {FL_GPU_SM_ACTIVE_PCT, 6.25},    {FL_GPU_COMPUTE_NS, 1250000},   {FL_GPU_COPY_NS, 0},
                    {FL_GPU_DRAM_BYTES, 62500000},                            /* 1.25 ms, half active, at 100 GB/s */
                    {FL_GPU_KERNELS, 275},           {FL_GPU_ENERGY_J, 0.36}, /* 5.5 ms x 40 W + 1.375 ms x 100 W */
                    {FL_GPU_ENERGY_NS, 5500000}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            FL_CHECK(fl_gpu_known(&got, rows[i].id) && fx_near(got.value[rows[i].id], rows[i].value, 1e-12),
                     "way %d, signal %d: %.12g, expected %.12g", only, rows[i].id, got.value[rows[i].id],
                     rows[i].value);
        FL_CHECK(!fl_gpu_known(&got, FL_GPU_POWER_W) && !fl_gpu_known(&got, FL_GPU_SM_MHZ) &&
                     !fl_gpu_known(&got, FL_GPU_TEMP_C),
                 "a sensor that the device lacks is unknown");
        FL_CHECK(!fl_gpu_known(&got, FL_GPU_ITERATIONS), "markers of a program that has none are unknown");
        fl_node_close(n);
        n = fx_node(&r, FL_BIT(FL_GPU_UTIL_MEM_PCT), only);
        fx_advance(n, FX_MS_PS);
        fl_node_read(n, 0, true, &got);
        FL_CHECK(got.valid == FL_BIT(FL_GPU_UTIL_MEM_PCT), "only what is needed is read: %llx",
                 (unsigned long long)got.valid);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Without a collector kernels are counted while records are on, and those alone that end then. Markers are known from
 * the start where the program has some. */
static void test_counts(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_class(&r, 1, 0.5, 0, 1, 0, 0.25), mark = fx_class(&r, 1, 0, 0, 0, 0, 0), s = fx_stream(&r, 0, 0);
    r.w->class[mark].iteration = true;
    for (int i = 0; i < 100; i++) {
        fx_op(&r, s, 0, 100000, c);
        if (i % 10 == 9)
            fx_op(&r, s, 0, 0, mark);
    }
    fx_finish(&r, 0);
    const fl_node_options o = {
        .w = r.w, .rates = r.rates, .spec = &r.spec, .seed = 1, .gpu_needs = every_signal, .path = FL_PATH_EVENTS};
    static const struct {
        int64_t ms;
        bool on;
        double kernels; /* known at that time, before the switch; NAN: not */
    } rows[] = {{1, true, NAN}, {3, false, 20}, {5, true, NAN}, {6, true, 30}, {8, false, 50}, {9, false, NAN}};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    fl_gpu_sample got;
    fl_node_read(n, 0, true, &got);
    FL_CHECK(fl_gpu_known(&got, FL_GPU_ITERATIONS) && !got.value[FL_GPU_ITERATIONS], "markers from the start");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_advance(n, rows[i].ms * FX_MS_PS);
        fl_node_read(n, 0, true, &got);
        const bool known = fl_gpu_known(&got, FL_GPU_KERNELS);
        FL_CHECK(known == !isnan(rows[i].kernels) && (!known || got.value[FL_GPU_KERNELS] == rows[i].kernels),
                 "row %zu: %sknown, %g", i, known ? "" : "not ", got.value[FL_GPU_KERNELS]);
        FL_CHECK(got.value[FL_GPU_ITERATIONS] == (double)rows[i].ms, "row %zu: %g markers", i,
                 got.value[FL_GPU_ITERATIONS]);
        fl_node_records_free(n, 0, rows[i].on);
    }
    fl_node_close(n);
    fx_close(&r);
}

/* A kernel moves the same bytes at any memory clock; a copy is no kernel. */
static void test_bytes_and_copies(void) {
    for (int half = 0; half < 2; half++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->sensor[FL_SENSOR_PROFILE] =
            (fl_sensor_spec){.present = 1, .period_ns = 100000, .window_ns = 100000};
        uint32_t c = fx_class(&r, 0, 1, 0, 0, 1, 1), copy = fx_class(&r, 0, 1, 0, 0, 0, 0), s = fx_stream(&r, 0, 0);
        r.w->class[copy].copy = true;
        fx_op(&r, s, 0, 1000000, c);
        fx_op(&r, s, 0, 500000, copy);
        fx_op(&r, s, 5000000, 10, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, every_signal, false);
        if (half)
            fl_node_set(n, 0, 0, NAN, 400);
        fx_advance(n, 4 * FX_MS_PS);
        check_value("bytes", read_one(n, 0, FL_GPU_DRAM_BYTES), 1.5e8, 1e-9);
        check_value("compute", read_one(n, 0, FL_GPU_COMPUTE_NS), half ? 2e6 : 1e6, 0);
        check_value("copies", read_one(n, 0, FL_GPU_COPY_NS), half ? 1e6 : 5e5, 0);
        check_value("kernels", read_one(n, 0, FL_GPU_KERNELS), 1, 0);
        fl_node_close(n);
        fx_close(&r);
    }
}

static void test_freshness(void) {
    fx_rig r;
    open_constant(&r, FL_SENSOR_POWER, (fl_sensor_spec){.period_ns = 1000000, .window_ns = 1000000});
    fl_node *n = fx_node(&r, every_signal, false);
    static const struct {
        int64_t us;
        bool remember, fresh;
    } rows[] = {{0, true, true},      {0, true, false},    {999, true, false},  {1000, false, true},
                {1000, true, true},   {1000, true, false}, {1001, true, false}, {5500, false, true},
                {5501, true, true},   {5999, true, false}, {6000, true, true},  {50000, true, true},
                {50999, true, false}, {51000, true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_advance(n, rows[i].us * FX_US_PS);
        fl_gpu_sample s;
        fl_node_read(n, 0, rows[i].remember, &s);
        FL_CHECK(!!fl_gpu_fresh(&s, FL_GPU_POWER_W) == rows[i].fresh && fl_gpu_known(&s, FL_GPU_POWER_W),
                 "row %zu at %lld us", i, (long long)rows[i].us);
    }
    fl_node_close(n);
    fx_close(&r);
}

/* Boards without a context: before, beside and after. What is due at the very instant of an end is seen there. */
static void test_closed_boards(void) {
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 3);
        fl_device *dev = r.spec.device;
        dev->sensor[FL_SENSOR_POWER] = (fl_sensor_spec){.present = 1, .period_ns = 1000000, .window_ns = 1000000};
        dev->sensor[FL_SENSOR_POWER_INSTANT] = (fl_sensor_spec){.present = 1};
        uint32_t c = fx_light(&r);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 2000000, c); /* ends at a refresh and a reading; GPU 2 never works */
        fx_op(&r, fx_stream(&r, 1, 0), 0, 9000000, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, every_signal, only);
        fx_advance(n, 0);
        check_value("never open, before", read_one(n, 2, FL_GPU_POWER_W), 8, 1e-12);
        fx_advance(n, FX_MS_PS);
        check_value("at work", read_one(n, 0, FL_GPU_POWER_INSTANT_W), 140, 1e-12);
        fx_advance(n, 2 * FX_MS_PS);
        fl_gpu_sample s;
        fl_node_read(n, 0, true, &s);
        FL_CHECK(fl_gpu_fresh(&s, FL_GPU_POWER_W) && fx_near(s.value[FL_GPU_POWER_W], 140, 1e-12),
                 "way %d: at its end %g W", only, s.value[FL_GPU_POWER_W]);
        check_value("its end, now", s.value[FL_GPU_POWER_INSTANT_W], 8, 1e-12);
        check_value("never open", read_one(n, 2, FL_GPU_POWER_W), 8, 1e-12);
        check_value("never open, now", read_one(n, 2, FL_GPU_POWER_INSTANT_W), 8, 1e-12);
        fx_advance(n, 3 * FX_MS_PS + 5);
        check_value("after its end", read_one(n, 0, FL_GPU_POWER_W), 8, 1e-12);
        check_value("the other goes on", read_one(n, 1, FL_GPU_POWER_W), 140, 1e-12);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* At the instant of a clock change two that share bandwidth: an instantaneous sensor shows the new power. */
static void test_instant_at_a_change(void) {
    fx_rig r;
    fx_open(&r, 1);
    r.spec.device->sensor[FL_SENSOR_POWER_INSTANT] = (fl_sensor_spec){.present = 1, .period_ns = 1000000};
    uint32_t c = fx_class(&r, 1, 1, 0, 1, 0, 0.5); /* at 1000 MHz bound by both: half of the speed each */
    for (int i = 0; i < 2; i++)
        fx_op(&r, fx_stream(&r, 0, i), 0, 10000000, c);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, every_signal, false);
    fl_node_set(n, 0, FX_MS_PS, 500, NAN); /* each asks for half of the bandwidth now */
    fx_advance(n, FX_MS_PS);
    check_value("at a change", read_one(n, 0, FL_GPU_POWER_INSTANT_W), 20 + 10 + 5 + 50 + 50, 1e-4);
    fl_node_close(n);
    fx_close(&r);
}

/* What begins or ends at an instant has begun or ended there. */
static void test_instant_at_an_edge(void) {
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->sensor[FL_SENSOR_POWER_INSTANT] = (fl_sensor_spec){.present = 1, .period_ns = 1000000};
        uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
        for (int i = 0; i < 2; i++)
            fx_op(&r, s, 1000000, 1000000, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, every_signal, only);
        for (int ms = 0; ms < 4; ms++) {
            fx_advance(n, ms * FX_MS_PS);
            check_value(ms % 2 ? "at a start" : "at an end", read_one(n, 0, FL_GPU_POWER_INSTANT_W), ms % 2 ? 140 : 40,
                        0);
        }
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- one GPU whose state is set by hand ---- */

typedef struct bench { /* a GPU of no node: settled by hand */
    fx_rig r;
    fl_gpu g;
    fl_sense *s;
} bench;

static void bench_open(bench *b, fl_sensor_id id, fl_sensor_spec spec) {
    *b = (bench){0};
    open_constant(&b->r, id, spec);
    FX_MUST(fl_gpu_open(&b->g, b->r.w, b->r.rates, &b->r.spec, 0, 5, 1, d)); /* 1000 MHz, 800 MHz */
    FX_MUST(fl_sense_open(&b->s, &b->g, every_signal, 1, d));
    fl_sense_at(b->s, &b->g, 0);
}

static void bench_close(bench *b) {
    fl_sense_close(b->s);
    fl_gpu_close(&b->g);
    fx_close(&b->r);
}

static void bench_to(bench *b, int64_t t) {
    for (int64_t at = -1; at < t;) {
        bool begins;
        at = fl_sense_next(b->s, b->g.now_ps, t, &begins);
        at = at < t ? at : t;
        fl_gpu_charge_to(&b->g, at);
        fl_sense_at(b->s, &b->g, at);
    }
}

static double bench_read(bench *b, int id) {
    fl_gpu_sample got;
    fl_sense_read(b->s, &b->g, b->g.now_ps, true, &got);
    FL_CHECK(!fl_gpu_known(&got, id) || isfinite(got.value[id]), "signal %d: known, but %g", id, got.value[id]);
    return fl_gpu_known(&got, id) ? got.value[id] : (double)NAN;
}

/* What holds the clock: the lower of wall and heat, where that is below the lock; both where they are equal. */
static void test_throttle(void) {
    static const struct {
        const char *what;
        uint32_t lock, wall, heat;
        bool closed;
        int bits;
        double mhz;
    } rows[] = {
        {"nothing holds", 5, 10, 10, false, 0, 1000},
        {"both at the lock", 5, 5, 5, false, 0, 1000},
        {"the wall", 5, 4, 10, false, FL_THROTTLE_POWER, 900},
        {"the wall, heat at the lock", 5, 4, 5, false, FL_THROTTLE_POWER, 900},
        {"heat", 5, 10, 3, false, FL_THROTTLE_THERMAL, 800},
        {"heat below the wall", 5, 4, 3, false, FL_THROTTLE_THERMAL, 800},
        {"the wall below heat", 5, 3, 4, false, FL_THROTTLE_POWER, 800},
        {"both", 5, 3, 3, false, FL_THROTTLE_POWER | FL_THROTTLE_THERMAL, 800},
        {"a lock below both", 2, 3, 3, false, 0, 700},
        {"no context", 5, 10, 10, true, FL_THROTTLE_IDLE, 500},
        {"no context, at the wall", 5, 3, 10, true, FL_THROTTLE_IDLE, 500},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int64_t period = 0; period <= 1000000; period += 1000000) {
            bench b;
            bench_open(&b, FL_SENSOR_CLOCK, (fl_sensor_spec){.period_ns = period});
            b.g.lock_sm = rows[i].lock, b.g.wall_sm = rows[i].wall, b.g.heat_sm = rows[i].heat;
            b.g.open = !rows[i].closed;
            FX_MUST(fl_gpu_clock(&b.g, fl_gpu_allowed_sm(&b.g), 1, d));
            bench_to(&b, FX_MS_PS);
            check_value(rows[i].what, bench_read(&b, FL_GPU_THROTTLE), rows[i].bits, 0);
            check_value(rows[i].what, bench_read(&b, FL_GPU_SM_MHZ), rows[i].mhz, 0);
            check_value(rows[i].what, bench_read(&b, FL_GPU_MEM_MHZ), 800, 0);
            bench_close(&b);
        }
}

/* Violation times are what the GPU has counted at the refresh, in whole ns. */
static void test_violations(void) {
    bench b;
    bench_open(&b, FL_SENSOR_CLOCK, (fl_sensor_spec){.period_ns = 1000000});
    bench_to(&b, FX_MS_PS / 2);
    b.g.wall_held_ps = 4999, b.g.heat_held_ps = 2000;
    check_value("not before the refresh", bench_read(&b, FL_GPU_POWER_VIOLATION_NS), 0, 0);
    bench_to(&b, FX_MS_PS);
    check_value("the wall", bench_read(&b, FL_GPU_POWER_VIOLATION_NS), 4, 0);
    check_value("heat", bench_read(&b, FL_GPU_THERMAL_VIOLATION_NS), 2, 0);
    bench_close(&b);
}

static void test_temperature(void) {
    static const struct {
        const char *what;
        fl_sensor_spec spec;
        double at_1ms, later, shown; /* degrees at the refresh, after it, and what is read then */
    } rows[] = {
        {"at the refresh", {.period_ns = 1000000}, 61.25, 80, 61.25},
        {"no mean", {.period_ns = 1000000, .window_ns = 1000000}, 61.25, 80, 61.25},
        {"quanta", {.period_ns = 1000000, .quantum = 1}, 61.5, 80, 62},
        {"below zero", {.period_ns = 1000000, .quantum = 1}, -3, 80, -3},
        {"now", {.period_ns = 0}, 61.25, 80, 80},
        {"the board is not described", {.period_ns = 1000000}, NAN, NAN, NAN},
        {"the board is not described, now", {.period_ns = 0}, NAN, NAN, NAN},
        {"before the phase", {.period_ns = 1000000, .phase_ns = 2000000}, 61.25, 80, NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench b;
        bench_open(&b, FL_SENSOR_TEMPERATURE, rows[i].spec);
        b.g.temp_c = isnan(rows[i].at_1ms) ? (double)NAN : 20;
        bench_to(&b, FX_MS_PS / 2);
        b.g.temp_c = rows[i].at_1ms;
        bench_to(&b, FX_MS_PS);
        b.g.temp_c = rows[i].later;
        bench_to(&b, FX_MS_PS + FX_MS_PS / 2);
        check_value(rows[i].what, bench_read(&b, FL_GPU_TEMP_C), rows[i].shown, 0);
        bench_close(&b);
    }
}

/* 40 W of idling: a counter that starts again at 0, whole quanta first. */
static void test_wrap(void) {
    static const struct {
        const char *what;
        double quantum, wrap;
        int64_t ms;
        double joules;
    } rows[] = {{"never", 0, 0, 100, 4},        {"before", 0, 1, 20, 0.8},    {"after", 0, 1, 30, 0.2},
                {"many times", 0, 1, 110, 0.4}, {"quanta", 0.25, 1, 35, 0.5}, {"rounded up to it", 0.25, 1, 22, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench b;
        fl_sensor_spec spec = {.period_ns = 1000000, .quantum = rows[i].quantum, .wrap = rows[i].wrap};
        bench_open(&b, FL_SENSOR_ENERGY, spec);
        bench_to(&b, rows[i].ms * FX_MS_PS);
        check_value(rows[i].what, bench_read(&b, FL_GPU_ENERGY_J), rows[i].joules, 1e-12);
        check_value(rows[i].what, bench_read(&b, FL_GPU_ENERGY_NS), (double)rows[i].ms * 1e6, 0);
        bench_close(&b);
    }
}

/* A board that has fallen off the bus: nothing is known, not even what was; until then all is. */
static void test_lost(void) {
    for (int64_t period = 0; period <= 1000000; period += 1000000) {
        bench b;
        bench_open(&b, FL_SENSOR_POWER, (fl_sensor_spec){.period_ns = period});
        bench_to(&b, FX_MS_PS);
        b.g.counted = true;
        fl_gpu_sample got;
        fl_sense_read(b.s, &b.g, b.g.now_ps, true, &got);
        FL_CHECK(fl_gpu_known(&got, FL_GPU_POWER_W) && fl_gpu_known(&got, FL_GPU_KERNELS), "known before");
        b.g.lost = true;
        fl_sense_read(b.s, &b.g, b.g.now_ps, true, &got);
        FL_CHECK(!got.valid && !got.fresh, "period %lld: valid %llx, fresh %llx", (long long)period,
                 (unsigned long long)got.valid, (unsigned long long)got.fresh);
        bench_close(&b);
    }
}

/* Where the controller is never seen to move all of the peak: bytes are that share of what it is active for. */
static void test_dram_share(void) {
    static const struct { double share, bytes; } rows[] = {{0, 1e8}, {1, 1e8}, {0.75, 7.5e7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->dram_share = rows[i].share;
        r.spec.device->sensor[FL_SENSOR_PROFILE] =
            (fl_sensor_spec){.present = 1, .period_ns = 100000, .window_ns = 100000};
        uint32_t c = fx_class(&r, 0, 1, 0, 0, 1, 1), s = fx_stream(&r, 0, 0);
        fx_op(&r, s, 0, 1000000, c); /* 1 ms at 100 GB/s */
        fx_op(&r, s, 5000000, 10, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, every_signal, false);
        fx_advance(n, 2 * FX_MS_PS);
        check_value("bytes", read_one(n, 0, FL_GPU_DRAM_BYTES), rows[i].bytes, 1e-9);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- noise ---- */

static void noisy(uint64_t seed, int64_t step_us, double *at_10ms, size_t count) {
    fx_rig r;
    open_constant(&r, FL_SENSOR_POWER, (fl_sensor_spec){.period_ns = 1000000, .window_ns = 1000000, .noise = 3});
    r.spec.device->sensor[FL_SENSOR_UTILISATION] =
        (fl_sensor_spec){.present = 1, .period_ns = 1000000, .window_ns = 1000000};
    r.spec.device->util_mem_noise_pct = 5;
    r.facts.seed = seed;
    fl_node *n = fx_node(&r, every_signal, false);
    for (int64_t t = 0; t < (int64_t)count * 10000; t += step_us) {
        fx_advance(n, t * FX_US_PS);
        double v = read_one(n, 0, FL_GPU_POWER_W);
        if (t % 10000 == 0)
            at_10ms[t / 10000] = v;
    }
    fl_node_close(n);
    fx_close(&r);
}

static void test_noise(void) {
    double a[10], b[10], c[10], d[10];
    noisy(1, 10000, a, 10);
    noisy(1, 10000, b, 10);
    noisy(1, 100, c, 10);
    noisy(2, 10000, d, 10);
    FL_CHECK(memcmp(a, b, sizeof a) == 0, "the same seed gives other noise");
    FL_CHECK(memcmp(a, c, sizeof a) == 0, "noise depends on how often it is read");
    int equal = 0;
    for (int i = 0; i < 10; i++)
        equal += fx_near(a[i], d[i], 1e-9);
    FL_CHECK(equal == 0, "another seed gives the same noise");

    fx_rig r; /* its size: 4000 refreshes, by period and by reading */
    for (int by_reading = 0; by_reading < 2; by_reading++) {
        fl_sensor_spec spec = {.period_ns = by_reading ? 0 : 10000, .window_ns = by_reading ? 0 : 10000, .noise = 3};
        open_constant(&r, FL_SENSOR_POWER, spec);
        fl_node *n = fx_node(&r, every_signal, false);
        double sum = 0, squares = 0;
        for (int i = 1; i <= 4000; i++) {
            fx_advance(n, 10 * i * FX_US_PS);
            double v = read_one(n, 0, FL_GPU_POWER_W) - 140;
            sum += v;
            squares += v * v;
        }
        FL_CHECK(fabs(sum / 4000) < 0.25 && fabs(sqrt(squares / 4000) - 3) < 0.2, "way %d: mean %g, deviation %g",
                 by_reading, sum / 4000, sqrt(squares / 4000));
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- against the truth ---- */

typedef struct truth {
    int64_t t;
    fl_wide energy[2], memory[2], alu[2], sms[2];
    int64_t busy[2];
    uint32_t sm[2];
} truth;

enum { STEPS = 60, INSTANTS_MAX = 60000, TRIAL_SENSORS = FL_SENSOR_TEMPERATURE }; /* those before it */

typedef struct trial {
    fx_rig r;
    int64_t step[STEPS];
    double set[STEPS][2]; /* NAN: nothing; else SM clock set at the step on a GPU */
    truth *at;
    size_t count;
} trial;

static int by_time(const void *a, const void *b) {
    const truth *x = a, *y = b;
    return x->t < y->t ? -1 : x->t > y->t;
}

static void want(trial *x, int64_t t) {
    if (t >= 0 && x->count < INSTANTS_MAX)
        x->at[x->count++].t = t;
}

static const truth *at(const trial *x, int64_t t) {
    truth key = {.t = t};
    const truth *p = bsearch(&key, x->at, x->count, sizeof *x->at, by_time);
    if (!p)
        exit(1);
    return p;
}

static void take(const trial *x, fl_node *n, truth *to) {
    for (uint32_t i = 0; i < 2; i++) {
        const fl_gpu *g = fl_node_gpu(n, i);
        to->energy[i] = g->sums.energy_fj;
        to->memory[i] = g->sums.memory;
        to->busy[i] = g->sums.busy_ps;
        to->sm[i] = g->sm;
        to->alu[i] = to->sms[i] = 0;
        for (uint32_t k = 0; k < g->slot_count; k++)
            for (uint32_t c = 0; c < x->r.w->class_count; c++) {
                to->alu[i] += (fl_wide)g->slot[k].class_ps[c] * g->slot[k].rates->row[c].alu;
                to->sms[i] += (fl_wide)g->slot[k].class_ps[c] * g->slot[k].rates->row[c].sms;
            }
    }
}

static void apply(const trial *x, fl_node *n, size_t step) {
    for (uint32_t i = 0; i < 2; i++)
        if (!isnan(x->set[step][i]))
            fl_node_set(n, i, x->step[step], x->set[step][i], NAN);
}

/* Truth at all the instants wanted: a node without sensors, stopped at each. */
static void tell(trial *x) {
    qsort(x->at, x->count, sizeof *x->at, by_time);
    fl_node *n = fx_node(&x->r, 0, true);
    size_t step = 0;
    for (size_t i = 0; i < x->count; i++) {
        while (step < STEPS && x->step[step] < x->at[i].t) {
            fx_advance(n, x->step[step]);
            apply(x, n, step++);
        }
        fx_advance(n, x->at[i].t);
        take(x, n, &x->at[i]);
    }
    fl_node_close(n);
}

static int64_t index_seen(const fl_sensor_spec *s, int64_t t) {
    int64_t past = t - (s->delay_ns + s->phase_ns) * 1000;
    return past < 0 ? -1 : past / (s->period_ns * 1000);
}

static int64_t refresh_time(const fl_sensor_spec *s, int64_t k) { return (s->phase_ns + k * s->period_ns) * 1000; }

/* Energy from the instant on to `to`; 40 W of idling before time 0. */
static double mean_power(const trial *x, uint32_t gpu, int64_t from, int64_t to) {
    fl_wide before = from < 0 ? (fl_wide)from * 40000 : at(x, from)->energy[gpu];
    return (double)(at(x, to)->energy[gpu] - before) / (double)(to - from) * 1e-3;
}

#define SHARE(field)                                                                                                   \
    ((double)(at(x, to)->field[gpu] - (from < 0 ? 0 : at(x, from)->field[gpu])) / (double)(to - from) / 32768)

static void compare(const trial *x, uint64_t seed, size_t step, uint32_t gpu, const fl_gpu_sample *got, int64_t *seen) {
    static const int shown[TRIAL_SENSORS] = {FL_GPU_POWER_W,      FL_GPU_POWER_INSTANT_W, FL_GPU_ENERGY_J,
                                             FL_GPU_UTIL_MEM_PCT, FL_GPU_ALU_BUSY_PCT,    FL_GPU_SM_MHZ};
    for (int id = 0; id < TRIAL_SENSORS; id++) {
        const fl_sensor_spec *s = &x->r.spec.device->sensor[id];
        int64_t k = index_seen(s, x->step[step]), to = refresh_time(s, k), from = to - s->window_ns * 1000;
        const bool power = id == FL_SENSOR_POWER || id == FL_SENSOR_POWER_INSTANT; /* shows idling from the start on */
        FL_CHECK(!!fl_gpu_known(got, shown[id]) == (k >= 0 || power), "seed %llu, step %zu, sensor %d: known",
                 (unsigned long long)seed, step, id);
        if (k < 0 && !power)
            continue;
        FL_CHECK(!!fl_gpu_fresh(got, shown[id]) == (k > seen[id]), "seed %llu, step %zu, sensor %d: fresh",
                 (unsigned long long)seed, step, id);
        seen[id] = k;
        double expected[3] = {0}, value[3] = {got->value[shown[id]], 0, 0};
        switch (id) {
        case FL_SENSOR_POWER:
            if (s->lag_ns) {
                expected[0] = 40;
                for (int64_t i = 0; i <= k; i++)
                    expected[0] = fl_sensor_lag(
                        expected[0], mean_power(x, gpu, refresh_time(s, i) - s->period_ns * 1000, refresh_time(s, i)),
                        s->period_ns, s->lag_ns);
            } else {
                expected[0] = k < 0 ? 40 : mean_power(x, gpu, from, to);
            }
            expected[0] = fl_sensor_quantise(expected[0], s->quantum);
            break;
        case FL_SENSOR_POWER_INSTANT: /* one picosecond from then on; at time 0 nothing has begun */
            expected[0] = to > 0 ? mean_power(x, gpu, to, to + 1) : 40;
            break;
        case FL_SENSOR_ENERGY:
            expected[0] = (double)at(x, to)->energy[gpu] * 1e-15;
            expected[1] = (double)(to / 1000), value[1] = got->value[FL_GPU_ENERGY_NS];
            break;
        case FL_SENSOR_UTILISATION:
            expected[0] = fmin(100, floor(SHARE(memory) * 100 + 0.5));
            expected[1] = floor(SHARE(busy) * 3276800 + 0.5), value[1] = got->value[FL_GPU_UTIL_GPU_PCT];
            break;
        case FL_SENSOR_PROFILE:
            expected[0] = 100 * fmin(1, SHARE(alu));
            expected[1] = 100 * fmin(1, SHARE(sms)), value[1] = got->value[FL_GPU_SM_ACTIVE_PCT];
            expected[2] = 100 * fmin(1, SHARE(memory)), value[2] = got->value[FL_GPU_DRAM_ACTIVE_PCT];
            break;
        default:
            expected[0] = 500 + 100 * (double)at(x, to)->sm[gpu];
        }
        for (int i = 0; i < 3; i++)
            FL_CHECK(fx_near(value[i], expected[i], 1e-11),
                     "seed %llu, step %zu at %lld ps, sensor %d.%d of GPU %u, refresh %lld: %.15g, "
                     "expected %.15g",
                     (unsigned long long)seed, step, (long long)x->step[step], id, i, gpu, (long long)k, value[i],
                     expected[i]);
    }
}

static void open_trial(trial *x, uint64_t seed) {
    fl_random g = fl_random_seed(seed, 51);
    fx_open(&x->r, 2);
    fl_sensor_spec *sensor = x->r.spec.device->sensor;
    for (int i = 0; i < TRIAL_SENSORS; i++) {
        sensor[i] = (fl_sensor_spec){.present = 1, .period_ns = 50000 + (int64_t)fl_random_below(&g, 1000000)};
        sensor[i].phase_ns = fl_random_below(&g, 3) ? (int64_t)fl_random_below(&g, (uint64_t)sensor[i].period_ns) : 0;
        sensor[i].window_ns = fl_random_below(&g, 4)
                                  ? 1 + (int64_t)fl_random_below(&g, (uint64_t)(3 * sensor[i].period_ns))
                                  : sensor[i].period_ns * (1 + (int64_t)fl_random_below(&g, 3));
        sensor[i].delay_ns =
            fl_random_below(&g, 2) ? (int64_t)fl_random_below(&g, (uint64_t)(3 * sensor[i].period_ns)) : 0;
    }
    sensor[FL_SENSOR_POWER_INSTANT].window_ns = sensor[FL_SENSOR_CLOCK].window_ns = sensor[FL_SENSOR_ENERGY].window_ns =
        0;
    if (seed % 3 == 0) {
        sensor[FL_SENSOR_POWER].lag_ns = 100000 + (int64_t)fl_random_below(&g, 1000000);
        sensor[FL_SENSOR_POWER].window_ns = 0;
    }
    sensor[FL_SENSOR_POWER].quantum = seed % 2 ? 0 : 0.5;
    for (int i = 0; i < 5; i++) /* alone, or three of them beside each other with enough of everything */
        fx_class(&x->r, 0.5 + fl_random_unit(&g), 0.2 * fl_random_unit(&g), 0.3, fl_random_unit(&g), fl_random_unit(&g),
                 0.3 * fl_random_unit(&g));
    for (uint32_t s = 0; s < 2 + 2 * (seed % 2); s++) {
        uint32_t stream = fx_stream(&x->r, s ? 1 : 0, (int32_t)s);
        fx_random_ops(&x->r, &g, stream, 150, 60000);
        fx_op(&x->r, stream, 0, 200000000, 0); /* outlasts all readings */
    }
    fx_finish(&x->r, 0);
    x->at = fx_alloc(INSTANTS_MAX, sizeof *x->at);
    x->count = 0;
    int64_t t = 0, pace = (int64_t)(1 + fl_random_below(&g, 100)) * 10000;
    for (size_t i = 0; i < STEPS;
         i++) { /* with a few ps, so that no set meets a refresh; or just at one, without a set */
        int64_t next = t + 1000 + (int64_t)fl_random_below(&g, (uint64_t)pace) * 1000;
        bool meets = fl_random_below(&g, 3) == 0;
        if (meets) {
            const fl_sensor_spec *s = &sensor[fl_random_below(&g, TRIAL_SENSORS)];
            int64_t k = index_seen(s, next) + 1;
            next = refresh_time(s, k) + s->delay_ns * 1000;
        } else {
            next += 7;
        }
        x->step[i] = t = next;
        for (int k = 0; k < 2; k++)
            x->set[i][k] = meets || fl_random_below(&g, 3) ? NAN : 500 + 100 * (double)fl_random_below(&g, 11);
        t = t / 1000 * 1000;
    }
    for (int i = 0; i < TRIAL_SENSORS; i++) {
        int64_t last = index_seen(&sensor[i], x->step[STEPS - 1]);
        for (int64_t k = 0; k <= last; k++) {
            int64_t to = refresh_time(&sensor[i], k);
            want(x, to);
            want(x, to + 1);
            want(x, to - (sensor[i].lag_ns ? sensor[i].period_ns : sensor[i].window_ns) * 1000);
        }
    }
}

static void test_against_truth(void) {
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        open_trial(&x, seed);
        FL_CHECK(x.count < INSTANTS_MAX && x.count > 50, "seed %llu: %zu instants", (unsigned long long)seed, x.count);
        tell(&x);
        for (int only = 0; only < 2; only++) {
            int64_t seen[2][TRIAL_SENSORS];
            for (int i = 0; i < 2 * TRIAL_SENSORS; i++)
                seen[i / TRIAL_SENSORS][i % TRIAL_SENSORS] = -2;
            fl_node *n = fx_node(&x.r, every_signal, only);
            for (size_t i = 0; i < STEPS; i++) {
                fx_advance(n, x.step[i]);
                for (uint32_t gpu = 0; gpu < 2; gpu++) {
                    fl_gpu_sample got;
                    fl_node_read(n, gpu, true, &got);
                    compare(&x, seed, i, gpu, &got, seen[gpu]);
                }
                apply(&x, n, i);
            }
            fl_node_close(n);
        }
        free(x.at);
        fx_close(&x.r);
    }
}

/* A sensor that no reading could come from is refused, where somebody reads it. */
static void test_refusals(void) {
    static const fl_sensor_spec rows[] = {{.present = 1, .period_ns = 0, .window_ns = 1000},
                                          {.present = 1, .period_ns = 1000, .window_ns = 0},
                                          {.present = 1, .period_ns = 1000, .window_ns = 1000, .phase_ns = -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        open_constant(&r, FL_SENSOR_UTILISATION, rows[i]);
        r.spec.device->sensor[FL_SENSOR_UTILISATION] = rows[i];
        fl_run_result result;
        fl_diag diag = {0};
        fl_status s = fx_try(&r, &(fx_how){.mode = FX_NOTHING, .needs = every_signal}, &result, &diag);
        FL_CHECK(s == FL_BAD_INPUT && strstr(diag.message, "sensor"), "row %zu: %d '%s'", i, s, diag.message);
        s = fx_try(&r, &(fx_how){.mode = FX_NOTHING}, &result, &diag);
        FL_CHECK(s == FL_OK, "row %zu: nobody reads it: '%s'", i, diag.message);
        if (s == FL_OK)
            fl_run_result_free(&result);
        fx_close(&r);
    }
}

FL_SUITE("sense", {"power by hand", test_power_by_hand}, {"utilisation by hand", test_utilisation_by_hand},
         {"counts", test_counts}, {"bytes and copies", test_bytes_and_copies}, {"freshness", test_freshness},
         {"closed boards", test_closed_boards}, {"instant at a change", test_instant_at_a_change},
         {"instant at an edge", test_instant_at_an_edge}, {"throttle", test_throttle}, {"violations", test_violations},
         {"temperature", test_temperature}, {"wrap", test_wrap}, {"lost", test_lost}, {"dram share", test_dram_share},
         {"noise", test_noise}, {"against truth", test_against_truth}, {"refusals", test_refusals})
