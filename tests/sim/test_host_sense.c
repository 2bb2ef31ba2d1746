/* What software reads of the node: points made up by hand, so that each value can be checked by one. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "traces/io/io.h"

#include "tests/support/suite.h"

#include <math.h>

#define MS_PS INT64_C(1000000000)
#define EVERY (~FL_HOST_KNOWS & (FL_BIT(FL_HOST_SIGNAL_COUNT) - 1))

enum { IDLE_NODE_MW = 200000, IDLE_CPU_MW = 30000, CORES = 8 };

/* From time 0 on: the node draws 300 W and 20 W more with each ms, the CPU 100 W at 2000 MHz, 3000 MHz from 4 ms on;
 * half of the cores are busy, with 3 uops and 8 bytes in two cycles. t in ps. */
static fl_host_point point_at(int64_t t) {
    const fl_wide ps = t, late = t > 4 * MS_PS ? t - 4 * MS_PS : 0;
    fl_host_point p = {.node_fj = ps * 300000 + ps * ps / MS_PS * 10000, .cpu_fj = ps * 100000};
    p.busy_ps = t * CORES / 2;
    p.mhz_ps = ps * 2000 + late * 1000;
    p.cycles = (p.mhz_ps * CORES / 2 << 20) / 1000000; /* MHz x ps = 1e-6 cycles */
    p.uops = p.cycles * 3 / 2;
    p.bytes = p.cycles * 4;
    p.node_mw = (int64_t)(300000 + ps * 20000 / MS_PS);
    p.cpu_mw = 100000;
    p.cpu_mhz = t >= 4 * MS_PS ? 3000 : 2000;
    return p;
}

static fl_host_sense *open_with(const fl_host_spec *host, bool cpu, uint64_t needs, uint64_t seed) {
    fl_host_sense *s = NULL;
    fl_diag d = {0};
    if (fl_host_sense_open(&s, host, cpu, needs, seed, IDLE_NODE_MW, IDLE_CPU_MW, &d)) {
        printf("\n    %s\n", d.message);
        exit(1);
    }
    return s;
}

/* As the node does it: from *now to t, with a point at each boundary on the way, and at t. */
static void go(fl_host_sense *s, int64_t *now, int64_t t) {
    for (int64_t at = -1; at < t;) {
        at = fl_host_sense_next(s, *now, t);
        at = at < t ? at : t;
        FL_CHECK(at >= *now, "a boundary at %lld, in the past of %lld", (long long)at, (long long)*now);
        *now = at;
        const fl_host_point p = point_at(at);
        fl_host_sense_at(s, &p, at);
    }
}

static fl_host_sample read_at(fl_host_sense *s, int64_t t, bool remember) {
    const fl_host_point p = point_at(t);
    fl_host_sample got;
    fl_host_sense_read(s, &p, t, remember, &got);
    return got;
}

static double one_value(const fl_host_spec *host, int signal, int64_t t, bool often) {
    fl_host_sense *s = open_with(host, true, EVERY, 1);
    int64_t now = 0;
    for (int64_t at = 0; often && at < t; at += 37 * MS_PS / 1000) {
        go(s, &now, at);
        read_at(s, at, true);
    }
    go(s, &now, t);
    const fl_host_sample got = read_at(s, t, true);
    fl_host_sense_close(s);
    return fl_host_known(&got, signal) ? got.value[signal] : (double)NAN;
}

static bool near(double a, double b) { return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)); }

#define MS(x) ((x)*INT64_C(1000000)) /* ns */

static void test_by_hand(void) {
    static const struct {
        const char *what;
        int signal;
        fl_sensor_spec spec;
        int64_t us;
        double value; /* NAN: unknown */
    } rows[] = {
        /* node power at ms t: 300 + 20 t; mean over (a, b): 300 + 10 (a + b) */
        {"window", FL_HOST_NODE_POWER_W, {.period_ns = MS(1), .window_ns = MS(1)}, 5999, 390},
        {"a refresh is shown at once", FL_HOST_NODE_POWER_W, {.period_ns = MS(1), .window_ns = MS(1)}, 6000, 410},
        {"idling before 0", FL_HOST_NODE_POWER_W, {.period_ns = MS(1), .window_ns = MS(1)}, 0, 200},
        {"half idling", FL_HOST_NODE_POWER_W, {.period_ns = MS(1), .window_ns = MS(2)}, 1000, 255},
        {"long window", FL_HOST_NODE_POWER_W, {.period_ns = MS(1), .window_ns = MS(4)}, 7300, 400},
        {"short window", FL_HOST_NODE_POWER_W, {.period_ns = MS(3), .window_ns = MS(1)}, 8999, 410},
        {"no window", FL_HOST_NODE_POWER_W, {.period_ns = MS(2)}, 7999, 420},
        {"no period", FL_HOST_NODE_POWER_W, {.period_ns = 0}, 7500, 450},
        {"no period, but a window and a lag", FL_HOST_NODE_POWER_W, {.window_ns = MS(5), .lag_ns = 9}, 7500, 450},
        {"quanta", FL_HOST_NODE_POWER_W, {.period_ns = MS(1), .window_ns = MS(1), .quantum = 4}, 5000, 392},
        {"before the phase",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .phase_ns = MS(2), .window_ns = MS(1)},
         1999,
         NAN},
        {"from the phase on",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .phase_ns = MS(2), .window_ns = MS(1)},
         2000,
         330},
        {"before the delay",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .window_ns = MS(1), .delay_ns = 2500000},
         2499,
         NAN},
        {"the first refresh, delayed",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .window_ns = MS(1), .delay_ns = 2500000},
         3499,
         200},
        {"the second refresh, delayed",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .window_ns = MS(1), .delay_ns = 2500000},
         3500,
         310},
        {"a lag of its period, once",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .lag_ns = MS(1)},
         1000,
         310 - 110 * 0.36787944117144233},
        {"a lag, twice",
         FL_HOST_NODE_POWER_W,
         {.period_ns = MS(1), .lag_ns = MS(1)},
         2999,
         330 - (330 - (310 - 110 * 0.36787944117144233)) * 0.36787944117144233},
        {"node energy", FL_HOST_NODE_ENERGY_J, {.period_ns = MS(2)}, 5999, 1.36}, /* 1.2 J + 0.16 J */
        {"node energy, now", FL_HOST_NODE_ENERGY_J, {.period_ns = 0}, 10000, 4},
        {"node energy, quanta", FL_HOST_NODE_ENERGY_J, {.period_ns = MS(2), .quantum = 0.5}, 5999, 1.5},
        {"node energy, wrapped", FL_HOST_NODE_ENERGY_J, {.period_ns = 0, .wrap = 1.5}, 10000, 1},
        {"CPU energy", FL_HOST_CPU_ENERGY_J, {.period_ns = MS(1)}, 6500, 0.6},
        {"CPU energy, before the wrap",
         FL_HOST_CPU_ENERGY_J,
         {.period_ns = MS(1), .quantum = 0.0625, .wrap = 0.5},
         4000,
         0.375},
        {"CPU energy that rounds up to the wrap",
         FL_HOST_CPU_ENERGY_J,
         {.period_ns = 0, .quantum = 0.0625, .wrap = 0.5},
         4900,
         0},
        {"CPU energy, after the wrap",
         FL_HOST_CPU_ENERGY_J,
         {.period_ns = MS(1), .quantum = 0.0625, .wrap = 0.5},
         7000,
         0.1875},
        {"CPU clock", FL_HOST_CPU_MHZ, {.period_ns = MS(2), .window_ns = MS(2)}, 3000, 2000},
        {"CPU clock, mean", FL_HOST_CPU_MHZ, {.period_ns = MS(5), .window_ns = MS(4)}, 6000, 2250},
        {"CPU clock, no window", FL_HOST_CPU_MHZ, {.period_ns = MS(3)}, 5999, 2000},
        {"CPU clock, no window, later", FL_HOST_CPU_MHZ, {.period_ns = MS(3)}, 6000, 3000},
        {"CPU clock, now", FL_HOST_CPU_MHZ, {.period_ns = 0}, 4000, 3000},
        {"CPU clock at 0", FL_HOST_CPU_MHZ, {.period_ns = MS(1), .window_ns = MS(4)}, 0, 2000},
        {"CPU clock, since 0", FL_HOST_CPU_MHZ, {.period_ns = MS(1), .window_ns = MS(10)}, 5000, 2200},
        {"CPU use", FL_HOST_CPU_UTIL_PCT, {.period_ns = MS(1), .window_ns = MS(3)}, 5000, 50},
        {"CPU use, since before 0", FL_HOST_CPU_UTIL_PCT, {.period_ns = MS(1), .window_ns = MS(4)}, 1000, 12.5},
        {"CPU use without a window", FL_HOST_CPU_UTIL_PCT, {.period_ns = MS(1)}, 5000, NAN},
        {"cycles", FL_HOST_CPU_CYCLES, {.period_ns = MS(1), .window_ns = MS(1)}, 5999, 44000000},
        {"uops", FL_HOST_CPU_UOPS, {.period_ns = MS(1), .window_ns = MS(1)}, 5999, 66000000},
        {"bytes", FL_HOST_CPU_MEM_BYTES, {.period_ns = 0}, 5000, 176000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int often = 0; often < 2; often++) {
            fl_host_spec host = {.name = "host", .cores = CORES};
            for (int k = 0; k < FL_HOST_SENSOR_COUNT; k++)
                if (fl_host_sense_signals[k] & FL_BIT(rows[i].signal)) {
                    host.sensor[k] = rows[i].spec;
                    host.sensor[k].present = 1;
                }
            const double got = one_value(&host, rows[i].signal, rows[i].us * (MS_PS / 1000), often);
            FL_CHECK(near(got, rows[i].value), "%s, %s: %.15g, expected %.15g", rows[i].what, often ? "often" : "once",
                     got, rows[i].value);
        }
}

static void every_sensor(fl_host_spec *host, fl_sensor_spec spec) {
    *host = (fl_host_spec){.name = "host", .cores = CORES};
    spec.present = 1;
    for (int i = 0; i < FL_HOST_SENSOR_COUNT; i++)
        host->sensor[i] = spec;
}

/* A meter without a period has a reading at any instant; one such meter is enough. */
static void test_instant(void) {
    fl_host_spec host;
    for (int kind = 0; kind < 3; kind++) {
        every_sensor(&host, (fl_sensor_spec){.period_ns = kind == 2 ? 0 : MS(1)});
        if (kind == 1)
            host.sensor[FL_HOST_SENSOR_NODE_POWER].period_ns = 0;
        fl_host_sense *s = open_with(&host, true, EVERY, 1);
        FL_CHECK(fl_host_sense_instant(s) == (kind > 0), "kind %d", kind);
        fl_host_sense_close(s);
    }
}

static void test_what_is_there(void) {
    const uint64_t node = FL_BIT(FL_HOST_NODE_POWER_W) | FL_BIT(FL_HOST_NODE_ENERGY_J);
    fl_host_spec all, none = {.name = "host", .cores = CORES}, half;
    every_sensor(&all, (fl_sensor_spec){.period_ns = MS(1), .window_ns = MS(1)});
    half = all;
    half.sensor[FL_HOST_SENSOR_NODE_POWER].present = half.sensor[FL_HOST_SENSOR_CPU_ENERGY].present = 0;
    const uint64_t lacking = FL_BIT(FL_HOST_NODE_POWER_W) | FL_BIT(FL_HOST_CPU_ENERGY_J);
    const struct {
        const char *what;
        const fl_host_spec *host;
        bool cpu;
        uint64_t needs, valid;
    } rows[] = {{"all", &all, true, EVERY, EVERY},
                {"no CPU", &all, false, EVERY, node},
                {"no sensors", &none, true, EVERY, 0},
                {"two sensors lacking", &half, true, EVERY, EVERY & ~lacking},
                {"one needed", &all, true, FL_BIT(FL_HOST_CPU_UOPS), FL_BIT(FL_HOST_CPU_UOPS)},
                {"none needed", &all, true, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_host_sense *s = open_with(rows[i].host, rows[i].cpu, rows[i].needs, 1);
        int64_t now = 0;
        go(s, &now, 3 * MS_PS);
        FL_CHECK(rows[i].valid || fl_host_sense_next(s, now, 9 * MS_PS) == FL_TIME_NEVER, "%s: no boundaries",
                 rows[i].what);
        const fl_host_sample got = read_at(s, now, true);
        FL_CHECK(got.valid == rows[i].valid && got.fresh == rows[i].valid, "%s: valid %llx, fresh %llx, expected %llx",
                 rows[i].what, (unsigned long long)got.valid, (unsigned long long)got.fresh,
                 (unsigned long long)rows[i].valid);
        fl_host_sense_close(s);
    }
}

/* The busiest CPU is 100 % busy, whatever its threads are said to have done. */
static void test_full_use(void) {
    fl_host_spec host;
    every_sensor(&host, (fl_sensor_spec){.period_ns = MS(1), .window_ns = MS(1)});
    host.cores = 2; /* of the 4 busy ones */
    FL_CHECK(near(one_value(&host, FL_HOST_CPU_UTIL_PCT, 5 * MS_PS, false), 100), "%g",
             one_value(&host, FL_HOST_CPU_UTIL_PCT, 5 * MS_PS, false));
}

static void test_freshness(void) {
    fl_host_spec host;
    every_sensor(&host, (fl_sensor_spec){.period_ns = MS(1), .window_ns = MS(1), .delay_ns = 250000});
    host.sensor[FL_HOST_SENSOR_NODE_ENERGY].period_ns = 0;
    static const struct {
        int64_t us;
        bool remember, known, fresh;
    } rows[] = {{0, true, false, false},     {249, true, false, false},  {250, false, true, true},
                {250, true, true, true},     {250, true, true, false},   {1249, true, true, false},
                {1250, false, true, true},   {1250, true, true, true},   {5700, false, true, true},
                {5700, true, true, true},    {6249, true, true, false},  {50249, true, true, true},
                {50249, false, true, false}, {50250, false, true, true}, {50250, true, true, true}};
    fl_host_sense *s = open_with(&host, true, EVERY, 1);
    int64_t now = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        go(s, &now, rows[i].us * (MS_PS / 1000));
        const fl_host_sample got = read_at(s, now, rows[i].remember);
        const uint64_t instant = FL_BIT(FL_HOST_NODE_ENERGY_J), periodic = EVERY & ~instant;
        FL_CHECK(got.valid == (instant | (rows[i].known ? periodic : 0)), "row %zu: valid %llx", i,
                 (unsigned long long)got.valid);
        FL_CHECK(got.fresh == (instant | (rows[i].fresh ? periodic : 0)), "row %zu: fresh %llx", i,
                 (unsigned long long)got.fresh);
    }
    fl_host_sense_close(s);
}

/* With a delay a reader sees, to the bit, what one without saw that much earlier. */
static void test_delay_is_a_shift(void) {
    fl_host_spec prompt, late;
    every_sensor(
        &prompt,
        (fl_sensor_spec){.period_ns = 700001, .phase_ns = 130000, .window_ns = 1900000, .quantum = 0.01, .noise = 2});
    static const int64_t delays[] = {1, 699999, 700001, 5000000, 123456789};
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        late = prompt;
        for (int k = 0; k < FL_HOST_SENSOR_COUNT; k++)
            late.sensor[k].delay_ns = delays[i];
        fl_host_sense *a = open_with(&prompt, true, EVERY, 5), *b = open_with(&late, true, EVERY, 5);
        int64_t now_a = 0, now_b = 0;
        for (int64_t us = 0; us < 30000; us += 331) {
            const int64_t t = us * (MS_PS / 1000), shifted = t + delays[i] * FL_PS_PER_NS;
            go(a, &now_a, t);
            go(b, &now_b, shifted);
            const fl_host_sample x = read_at(a, t, true), y = read_at(b, shifted, true);
            FL_CHECK(memcmp(&x, &y, sizeof x) == 0, "delay %lld, at %lld us: %.15g and %.15g W", (long long)delays[i],
                     (long long)us, x.value[FL_HOST_NODE_POWER_W], y.value[FL_HOST_NODE_POWER_W]);
        }
        fl_host_sense_close(a);
        fl_host_sense_close(b);
    }
}

/* ---- noise ---- */

enum { READINGS = 2000 };

/* Node power at every tenth ms, less what it is without noise. */
static void noisy(uint64_t seed, double noise, int64_t step_ms, double *out) {
    fl_host_spec host;
    every_sensor(&host, (fl_sensor_spec){.period_ns = MS(1), .noise = noise});
    fl_host_sense *s = open_with(&host, true, EVERY, seed);
    int64_t now = 0;
    for (int64_t ms = 0; ms < 10 * READINGS; ms += step_ms) {
        go(s, &now, ms * MS_PS);
        const fl_host_sample got = read_at(s, now, true);
        if (ms % 10 == 0)
            out[ms / 10] = got.value[FL_HOST_NODE_POWER_W] - (double)point_at(now).node_mw * 1e-3;
    }
    fl_host_sense_close(s);
}

static void test_noise(void) {
    static double a[READINGS], b[READINGS], c[READINGS], d[READINGS];
    noisy(1, 3, 10, a);
    noisy(1, 3, 10, b);
    noisy(1, 3, 1, c);
    noisy(2, 3, 10, d);
    FL_CHECK(memcmp(a, b, sizeof a) == 0, "the same seed gives other noise");
    FL_CHECK(memcmp(a, c, sizeof a) == 0, "noise depends on how often it is read");
    double sum = 0, squares = 0, both = 0;
    for (int i = 0; i < READINGS; i++) {
        sum += a[i];
        squares += a[i] * a[i];
        both += a[i] * d[i];
    }
    FL_CHECK(fabs(sum / READINGS) < 0.25 && fabs(sqrt(squares / READINGS) - 3) < 0.2, "mean %g, deviation %g",
             sum / READINGS, sqrt(squares / READINGS));
    FL_CHECK(fabs(both / READINGS) < 0.9, "another seed gives like noise: correlation %g", both / READINGS / 9);

    fl_host_spec host; /* large noise never makes power negative */
    every_sensor(&host, (fl_sensor_spec){.period_ns = 0, .noise = 1e4});
    fl_host_sense *s = open_with(&host, true, EVERY, 1);
    int zero = 0;
    for (int i = 0; i < 100; i++) {
        const fl_host_sample got = read_at(s, i * MS_PS, true);
        zero += got.value[FL_HOST_NODE_POWER_W] == 0;
        FL_CHECK(got.value[FL_HOST_NODE_POWER_W] >= 0, "%g W", got.value[FL_HOST_NODE_POWER_W]);
    }
    FL_CHECK(zero > 20 && zero < 80, "%d of 100 at 0 W", zero);
    fl_host_sense_close(s);
}

/* ---- laziness ---- */

/* A reader every second of a meter that looks each ms for half of it: two boundaries a reading, and the reading. */
static void test_boundaries(void) {
    fl_host_spec host;
    every_sensor(&host, (fl_sensor_spec){.period_ns = MS(1), .window_ns = 500000});
    for (int lag = 0; lag < 2; lag++) { /* a lag has to see every refresh */
        host.sensor[FL_HOST_SENSOR_NODE_POWER].lag_ns = lag * MS(5);
        fl_host_sense *s = open_with(&host, true, FL_BIT(FL_HOST_NODE_POWER_W), 1);
        int count = 0;
        for (int64_t now = 0, read = 0; read <= 10; read++)
            for (int64_t t = -1; t < read * 1000 * MS_PS; count++) {
                t = fl_host_sense_next(s, now, read * 1000 * MS_PS);
                t = t < read * 1000 * MS_PS ? t : read * 1000 * MS_PS;
                now = t;
                const fl_host_point p = point_at(t);
                fl_host_sense_at(s, &p, t);
            }
        FL_CHECK(lag ? count >= 10000 : count < 40, "lag %d: %d boundaries", lag, count);
        fl_host_sense_close(s);
    }
}

static void test_refusals(void) {
    static const fl_sensor_spec rows[] = {{.period_ns = -1},
                                          {.period_ns = 1, .phase_ns = -1},
                                          {.period_ns = 1, .window_ns = -1},
                                          {.period_ns = 1, .lag_ns = -1},
                                          {.period_ns = 1, .delay_ns = -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_host_spec host;
        every_sensor(&host, rows[i]);
        fl_host_sense *s = NULL;
        fl_diag d = {0};
        FL_CHECK(fl_host_sense_open(&s, &host, true, EVERY, 1, 0, 0, &d) == FL_BAD_INPUT && strstr(d.message, "host"),
                 "row %zu: '%s'", i, d.message);
        FL_CHECK(fl_host_sense_open(&s, &host, true, 0, 1, 0, 0, &d) == FL_OK, "row %zu: nobody reads it", i);
        fl_host_sense_close(s);
    }
}

FL_SUITE("host_sense", {"by hand", test_by_hand}, {"what is there", test_what_is_there},
         {"at any instant", test_instant}, {"full use", test_full_use}, {"freshness", test_freshness},
         {"delay is a shift", test_delay_is_a_shift}, {"noise", test_noise}, {"boundaries", test_boundaries},
         {"refusals", test_refusals})
