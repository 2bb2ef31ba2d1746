#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

#define MS INT64_C(1000000)
#define ABSENT (-1e300) /* in place of a raw value: the sensor gave none */

typedef struct reading { /* one signal at one step, and what must become of it */
    int64_t t_ms;
    double raw;
    bool fresh;
    bool valid_out, fresh_out;
    double shown; /* where valid_out */
} reading;

typedef struct script {
    const char *name;
    int signal; /* of the GPU */
    double wrap;
    int64_t stale_ms;
    size_t count;
    reading row[12];
} script;

static const script scripts[] = {
    {"no wrap, no reset",
     FL_GPU_ENERGY_J,
     0,
     0,
     4,
     {{0, 5, 1, 1, 1, 5}, {1, 5, 0, 1, 0, 5}, {2, 5, 1, 1, 1, 5}, {3, 7.25, 1, 1, 1, 7.25}}},
    {"wrap",
     FL_GPU_ENERGY_J,
     100,
     0,
     5,
     {{0, 90, 1, 1, 1, 90}, {1, 5, 1, 1, 1, 105}, {2, 5, 0, 1, 0, 105}, {3, 60, 1, 1, 1, 160}, {4, 95, 1, 1, 1, 195}}},
    {"wrap at the very boundary: from just below to 0",
     FL_GPU_ENERGY_J,
     100,
     0,
     3,
     {{0, 99.5, 1, 1, 1, 99.5}, {1, 0, 1, 1, 1, 100}, {2, 0.5, 1, 1, 1, 100.5}}},
    {"many wraps",
     FL_GPU_ENERGY_J,
     100,
     0,
     7,
     {{0, 60, 1, 1, 1, 60},
      {1, 10, 1, 1, 1, 110},
      {2, 60, 1, 1, 1, 160},
      {3, 10, 1, 1, 1, 210},
      {4, 60, 1, 1, 1, 260},
      {5, 10, 1, 1, 1, 310},
      {6, 11, 1, 1, 1, 311}}},
    {"half a wrap is still one", FL_GPU_ENERGY_J, 100, 0, 2, {{0, 80, 1, 1, 1, 80}, {1, 30, 1, 1, 1, 130}}},
    {"a wrap below one unit", FL_GPU_ENERGY_J, 0.5, 0, 2, {{0, 0.4, 1, 1, 1, 0.4}, {1, 0.1, 1, 1, 1, 0.6}}},
    {"more than half cannot be",
     FL_GPU_ENERGY_J,
     100,
     0,
     3,
     {{0, 80, 1, 1, 1, 80}, {1, 31, 1, 0, 0, 0}, {2, 33, 1, 1, 1, 82}}},
    {"two wraps between readings look like one: 100 J are lost",
     FL_GPU_ENERGY_J,
     100,
     0,
     2,
     {{0, 90, 1, 1, 1, 90}, {1, 5, 1, 1, 1, 105}}},
    {"one wrap without a fall looks like none: 100 J are lost",
     FL_GPU_ENERGY_J,
     100,
     0,
     2,
     {{0, 20, 1, 1, 1, 20}, {1, 30, 1, 1, 1, 30}}},
    {"above the wrap: it is not the wrap, so a fall is a reset",
     FL_GPU_ENERGY_J,
     100,
     0,
     3,
     {{0, 190, 1, 1, 1, 190}, {1, 10, 1, 0, 0, 0}, {2, 11, 1, 1, 1, 191}}},
    {"from the wrap itself too", FL_GPU_ENERGY_J, 100, 0, 2, {{0, 100, 1, 1, 1, 100}, {1, 10, 1, 0, 0, 0}}},
    {"reset: no wrap known",
     FL_GPU_ENERGY_J,
     0,
     0,
     6,
     {{0, 1000, 1, 1, 1, 1000},
      {1, 4, 1, 0, 0, 0},
      {2, 4, 0, 1, 0, 1000},
      {3, 9, 1, 1, 1, 1005},
      {4, 3, 1, 0, 0, 0},
      {5, 5, 1, 1, 1, 1007}}},
    {"reset to where the sum rounds below what was shown",
     FL_GPU_ENERGY_J,
     0,
     0,
     3,
     {{0, 0.9, 1, 1, 1, 0.9}, {1, 0.2, 1, 0, 0, 0}, {2, 0.2, 0, 1, 0, 0.9}}},
    {"reset, then a wrap",
     FL_GPU_ENERGY_J,
     100,
     0,
     4,
     {{0, 70, 1, 1, 1, 70}, {1, 60, 1, 0, 0, 0}, {2, 90, 1, 1, 1, 100}, {3, 10, 1, 1, 1, 120}}},
    {"reset while it was missing",
     FL_GPU_ENERGY_J,
     0,
     0,
     4,
     {{0, 50, 1, 1, 1, 50}, {1, ABSENT, 0, 0, 0, 0}, {2, 8, 1, 0, 0, 0}, {3, 9, 1, 1, 1, 51}}},
    {"wrap while it was missing",
     FL_GPU_ENERGY_J,
     100,
     0,
     3,
     {{0, 90, 1, 1, 1, 90}, {1, ABSENT, 0, 0, 0, 0}, {2, 8, 1, 1, 1, 108}}},
    {"a gauge may fall, wrap or not",
     FL_GPU_POWER_W,
     100,
     0,
     3,
     {{0, 90, 1, 1, 1, 90}, {1, 10, 1, 1, 1, 10}, {2, 5, 1, 1, 1, 5}}},
    {"a mean too", FL_GPU_UTIL_GPU_PCT, 0, 0, 2, {{0, 90, 1, 1, 1, 90}, {1, 0, 1, 1, 1, 0}}},
    {"stale beyond the limit, then fresh",
     FL_GPU_POWER_W,
     0,
     100,
     7,
     {{0, 50, 1, 1, 1, 50},
      {99, 50, 0, 1, 0, 50},
      {100, 50, 0, 1, 0, 50},
      {101, 50, 0, 0, 0, 0},
      {500, 50, 0, 0, 0, 0},
      {510, 52, 1, 1, 1, 52},
      {610, 52, 0, 1, 0, 52}}},
    {"never fresh: from the first sight",
     FL_GPU_POWER_W,
     0,
     100,
     3,
     {{40, 50, 0, 1, 0, 50}, {140, 50, 0, 1, 0, 50}, {141, 50, 0, 0, 0, 0}}},
    {"missing does not make it younger",
     FL_GPU_POWER_W,
     0,
     100,
     3,
     {{0, 50, 1, 1, 1, 50}, {50, ABSENT, 0, 0, 0, 0}, {120, 50, 0, 0, 0, 0}}},
    {"stale counter: counts on, what passed meanwhile included",
     FL_GPU_ENERGY_J,
     0,
     100,
     3,
     {{0, 50, 1, 1, 1, 50}, {150, 50, 0, 0, 0, 0}, {200, 80, 1, 1, 1, 80}}},
    {"stale counter that wrapped meanwhile",
     FL_GPU_ENERGY_J,
     100,
     100,
     3,
     {{0, 90, 1, 1, 1, 90}, {150, 90, 0, 0, 0, 0}, {200, 10, 1, 1, 1, 110}}},
    {"no limit: never stale", FL_GPU_POWER_W, 0, 0, 2, {{0, 50, 1, 1, 1, 50}, {9000000, 50, 0, 1, 0, 50}}},
    {"not a number, infinite, negative",
     FL_GPU_POWER_W,
     0,
     0,
     7,
     {{0, (double)NAN, 1, 0, 0, 0},
      {1, (double)INFINITY, 1, 0, 0, 0},
      {2, -(double)INFINITY, 1, 0, 0, 0},
      {3, -1e-9, 1, 0, 0, 0},
      {4, -0.0, 1, 1, 1, 0},
      {5, 0, 1, 1, 1, 0},
      {6, 1e308, 1, 1, 1, 1e308}}},
    {"a temperature below 0 C is taken for a broken sensor", FL_GPU_TEMP_C, 0, 0, 1, {{0, -20, 1, 0, 0, 0}}},
    {"nonsense leaves a counter alone",
     FL_GPU_ENERGY_J,
     0,
     0,
     5,
     {{0, 50, 1, 1, 1, 50},
      {1, (double)NAN, 1, 0, 0, 0},
      {2, 51, 1, 1, 1, 51},
      {3, -1, 1, 0, 0, 0},
      {4, 52, 1, 1, 1, 52}}},
    {"nonsense does not make it younger",
     FL_GPU_POWER_W,
     0,
     100,
     3,
     {{0, 50, 1, 1, 1, 50}, {60, (double)NAN, 1, 0, 0, 0}, {120, 50, 0, 0, 0, 0}}},
    {"nonsense first",
     FL_GPU_ENERGY_J,
     0,
     0,
     3,
     {{0, (double)NAN, 1, 0, 0, 0}, {1, 7, 1, 1, 1, 7}, {2, 8, 1, 1, 1, 8}}},
};

static fl_guard *opened(uint32_t gpus) {
    fl_guard *g = NULL;
    CU_ASSERT_FATAL(fl_guard_open(&g, gpus, NULL) == FL_OK && g);
    return g;
}

/* Each script on the second of two GPUs; the first and the host read the same signal number, and must not mind. */
static void test_scripts(void) {
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        const script *s = &scripts[i];
        fl_guard *g = opened(2);
        fl_guard_gpu_wrap(g, 1, s->signal, s->wrap);
        fl_guard_gpu_stale(g, 1, s->signal, s->stale_ms * MS);
        for (size_t k = 0; k < s->count; k++) {
            const reading *r = &s->row[k];
            const bool given = !(r->raw == ABSENT);
            fl_gpu_sample other = {.valid = FL_BIT(s->signal)}, sample = {0};
            other.value[s->signal] = (double)k;
            sample.value[s->signal] = given ? r->raw : 0;
            sample.valid = given ? FL_BIT(s->signal) : 0;
            sample.fresh = r->fresh ? FL_BIT(s->signal) : 0;
            fl_guard_gpu(g, 0, r->t_ms * MS, &other);
            fl_guard_gpu(g, 1, r->t_ms * MS, &sample);
            FL_CHECK(fl_gpu_known(&sample, s->signal) == r->valid_out, "%s, row %zu: valid %d", s->name, k,
                     fl_gpu_known(&sample, s->signal));
            FL_CHECK(sample.fresh == (r->fresh_out ? FL_BIT(s->signal) : 0), "%s, row %zu: fresh %llx", s->name, k,
                     (unsigned long long)sample.fresh);
            if (r->valid_out)
                FL_CHECK(sample.value[s->signal] == r->shown, "%s, row %zu: %.17g, expected %.17g", s->name, k,
                         sample.value[s->signal], r->shown);
            FL_CHECK(other.valid == FL_BIT(s->signal) && other.value[s->signal] == (double)k,
                     "%s, row %zu: the other GPU changed", s->name, k);
        }
        fl_guard_close(g);
    }
}

/* Whatever a counter does, what is shown never falls, invalid steps included; and every kind of row is known by it. */
static void test_never_falls(void) {
    const double raw[] = {0.1, 0.3, 0.2, 1e15, 0.7, 1e-9, 3.3, 3.2, 1e300, 5, 5e-324, 0, 0.1};
    for (int signal = 0; signal < FL_GPU_SIGNAL_COUNT; signal++) {
        static const fl_signal_kind kind[] = {
#define KIND(id, name, unit, k, meaning) FL_##k,
            FL_GPU_SIGNALS(KIND)};
        fl_guard *g = opened(1);
        fl_guard_gpu_wrap(g, 0, signal, 4);
        double before = 0;
        bool fell = false;
        for (size_t k = 0; k < sizeof raw / sizeof *raw; k++) {
            fl_gpu_sample s = {.valid = FL_BIT(signal), .fresh = FL_BIT(signal)};
            s.value[signal] = raw[k];
            fl_guard_gpu(g, 0, (int64_t)k * MS, &s);
            fell |= s.value[signal] < before;
            before = s.value[signal];
        }
        FL_CHECK(fell == (kind[signal] != FL_COUNTER), "GPU signal %d %s", signal, fell ? "fell" : "did not fall");
        fl_guard_close(g);
    }
}

static void test_host(void) {
    fl_guard *g = opened(1);
    fl_guard_host_wrap(g, FL_HOST_CPU_ENERGY_J, 1000);
    fl_guard_host_stale(g, FL_HOST_CPU_UOPS, 10 * MS);
    const double energy[] = {900, 950, 20}, shown[] = {900, 950, 1020};
    for (int k = 0; k < 3; k++) {
        fl_host_sample s = {.valid = FL_BIT(FL_HOST_CPU_ENERGY_J) | FL_BIT(FL_HOST_CPU_UOPS) | FL_BIT(FL_HOST_CPU_MHZ),
                            .fresh = FL_BIT(FL_HOST_CPU_ENERGY_J)};
        s.value[FL_HOST_CPU_ENERGY_J] = energy[k];
        s.value[FL_HOST_CPU_UOPS] = 1e12;
        s.value[FL_HOST_CPU_MHZ] = k == 1 ? (double)NAN : 2000 - k;
        fl_guard_host(g, k * 10 * MS, &s);
        FL_CHECK(fl_host_known(&s, FL_HOST_CPU_ENERGY_J) && s.value[FL_HOST_CPU_ENERGY_J] == shown[k], "step %d: %g J",
                 k, s.value[FL_HOST_CPU_ENERGY_J]);
        FL_CHECK(fl_host_known(&s, FL_HOST_CPU_UOPS) == (k < 2), "step %d: uops", k);
        FL_CHECK(fl_host_known(&s, FL_HOST_CPU_MHZ) == (k != 1), "step %d: clock", k);
        FL_CHECK(s.fresh == FL_BIT(FL_HOST_CPU_ENERGY_J), "step %d: fresh %llx", k, (unsigned long long)s.fresh);
    }
    fl_guard_close(g);
}

/* A GPU or signal that there is not is passed over, nonsense limits are none, and bits beyond the table stay harmless.
 */
static void test_edges(void) {
    fl_guard *g = opened(0);
    fl_gpu_sample s = {.valid = 1, .fresh = 3, .value = {-1}};
    fl_guard_gpu_wrap(g, 0, 0, 1);
    fl_guard_gpu(g, 0, 0, &s);
    FL_CHECK(s.valid == 1 && s.fresh == 3, "a GPU that there is not was changed");
    fl_guard_close(g);
    fl_guard_close(NULL);
    g = opened(1);
    fl_guard_gpu_wrap(g, 0, -1, 1);
    fl_guard_gpu_wrap(g, 0, FL_GPU_SIGNAL_COUNT, 1);
    fl_guard_host_wrap(g, FL_HOST_SIGNAL_COUNT, 1);
    fl_guard_gpu_stale(g, 1, 0, 1);
    fl_guard_host_stale(g, -1, 1);
    fl_guard_gpu_wrap(g, 0, FL_GPU_ENERGY_J, (double)INFINITY);
    fl_guard_gpu_stale(g, 0, FL_GPU_ENERGY_J, -5);
    for (int k = 0; k < 2; k++) {
        s = (fl_gpu_sample){.valid = ~UINT64_C(0), .fresh = ~UINT64_C(0)};
        s.value[FL_GPU_ENERGY_J] = 10 - k;
        fl_guard_gpu(g, 0, k, &s);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_ENERGY_J) == (k == 0), "an infinite wrap is none: step %d", k);
    }
    fl_guard_gpu_stale(g, 0, FL_GPU_TEMP_C, -5);
    for (int k = 0; k < 2; k++) {
        s = (fl_gpu_sample){.valid = FL_BIT(FL_GPU_TEMP_C)};
        fl_guard_gpu(g, 0, k, &s);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_TEMP_C), "a negative limit is none: step %d", k);
    }
    s = (fl_gpu_sample){.fresh = FL_BIT(FL_GPU_POWER_W)};
    fl_guard_gpu(g, 0, 3, &s);
    FL_CHECK(s.valid == 0 && s.fresh == 0, "fresh without being valid");
    fl_guard_close(g);
}

/* From the first signal to the last of each kind of sample: what is not fresh for longer than its limit is not known,
 * and what is beyond its bounds is counted. What is not a signal has neither. */
static void test_every_signal(void) {
    fl_guard *g = opened(1);
    CU_ASSERT_FATAL(fl_guard_servers(g, 1, NULL) == FL_OK);
    for (int id = -1; id <= FL_GPU_SIGNAL_COUNT; id++) {
        fl_guard_gpu_stale(g, 0, id, 20 * MS);
        fl_guard_gpu_bounds(g, 0, id, 10, 90);
    }
    for (int id = -1; id <= FL_HOST_SIGNAL_COUNT; id++)
        fl_guard_host_stale(g, id, 20 * MS);
    for (int id = -1; id <= FL_SERVER_SIGNAL_COUNT; id++)
        fl_guard_server_stale(g, 0, id, 20 * MS);
    for (int k = 0; k < 4; k++) { /* fresh once, then never again */
        const int64_t t = k * 10 * MS;
        const uint64_t fresh = k ? 0 : ~UINT64_C(0);
        fl_gpu_sample gpu = {.valid = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, .fresh = fresh};
        fl_host_sample host = {.valid = FL_BIT(FL_HOST_SIGNAL_COUNT) - 1, .fresh = fresh};
        fl_server_sample server = {.valid = FL_BIT(FL_SERVER_SIGNAL_COUNT) - 1, .fresh = fresh};
        for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
            gpu.value[id] = 50;
        fl_guard_gpu(g, 0, t, &gpu);
        fl_guard_host(g, t, &host);
        fl_guard_server(g, 0, t, &server);
        FL_CHECK(gpu.valid == (k < 3 ? FL_BIT(FL_GPU_SIGNAL_COUNT) - 1 : 0), "look %d: GPU %llx", k,
                 (unsigned long long)gpu.valid);
        FL_CHECK(host.valid == (k < 3 ? FL_BIT(FL_HOST_SIGNAL_COUNT) - 1 : 0), "look %d: host %llx", k,
                 (unsigned long long)host.valid);
        FL_CHECK(server.valid == (k < 3 ? FL_BIT(FL_SERVER_SIGNAL_COUNT) - 1 : 0), "look %d: server %llx", k,
                 (unsigned long long)server.valid);
    }
    fl_gpu_sample gpu = {.valid = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, .fresh = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1};
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        gpu.value[id] = 95;
    fl_guard_gpu(g, 0, 50 * MS, &gpu);
    for (int id = -1; id <= FL_GPU_SIGNAL_COUNT; id++)
        FL_CHECK(fl_guard_gpu_absurd(g, 0, id) == (id >= 0 && id < FL_GPU_SIGNAL_COUNT), "GPU signal %d: %d beyond", id,
                 (int)fl_guard_gpu_absurd(g, 0, id));
    fl_guard_close(g);
}

/* Both ends of its bounds are what a signal can be; what is beyond is as if it had not been read, and is counted. */
static void test_bounds(void) {
    static const struct {
        double value;
        bool known;
    } ROWS[] = {{10, true}, {9.99, false}, {90, true}, {90.01, false}, {4e9, false}, {50, true}, {-1, false}};
    fl_guard *g = opened(2);
    fl_guard_gpu_bounds(g, 1, FL_GPU_UTIL_GPU_PCT, 10, 90);
    fl_guard_gpu_bounds(g, 2, FL_GPU_UTIL_GPU_PCT, 10, 90);
    fl_guard_gpu_bounds(g, 1, FL_GPU_SIGNAL_COUNT, 10, 90);
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++)
        for (uint32_t gpu = 0; gpu < 2; gpu++) {
            fl_gpu_sample s = {.valid = FL_BIT(FL_GPU_UTIL_GPU_PCT), .fresh = FL_BIT(FL_GPU_UTIL_GPU_PCT)};
            s.value[FL_GPU_UTIL_GPU_PCT] = ROWS[k].value;
            fl_guard_gpu(g, gpu, (int64_t)k * MS, &s);
            const bool known = gpu ? ROWS[k].known : ROWS[k].value >= 0;
            FL_CHECK(fl_gpu_known(&s, FL_GPU_UTIL_GPU_PCT) == known && (s.fresh != 0) == known, "GPU %u, %g", gpu,
                     ROWS[k].value);
        }
    CU_ASSERT(fl_guard_gpu_absurd(g, 0, FL_GPU_UTIL_GPU_PCT) == 1 &&
              fl_guard_gpu_absurd(g, 1, FL_GPU_UTIL_GPU_PCT) == 4);
    CU_ASSERT(!fl_guard_gpu_absurd(g, 1, FL_GPU_TEMP_C) && !fl_guard_gpu_absurd(g, 2, 0) &&
              !fl_guard_gpu_absurd(g, 0, -1));
    fl_guard_close(g);
}

/* The least that a limit of age or a lower bound may be: a nanosecond, and less than one. */
static void test_least(void) {
    fl_guard *g = opened(1);
    fl_guard_gpu_stale(g, 0, FL_GPU_TEMP_C, 1);
    fl_guard_gpu_bounds(g, 0, FL_GPU_POWER_W, 0.5, 90);
    for (int64_t t = 0; t < 3; t++) {
        fl_gpu_sample s = {.valid = FL_BIT(FL_GPU_TEMP_C) | FL_BIT(FL_GPU_POWER_W),
                           .fresh = FL_BIT(FL_GPU_POWER_W) | (t ? 0 : FL_BIT(FL_GPU_TEMP_C))};
        s.value[FL_GPU_POWER_W] = 0.25 * (double)(t + 1);
        fl_guard_gpu(g, 0, t, &s);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_TEMP_C) == (t < 2), "%lld ns after it was fresh", (long long)t);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_POWER_W) == (t > 0), "%g W", 0.25 * (double)(t + 1));
    }
    fl_guard_close(g);
}

/* A bound that is none: nothing above is refused where the highest is 0, negative, infinite or unknown. */
static void test_no_bound(void) {
    static const double highest[] = {0, -5, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof highest / sizeof *highest; i++) {
        fl_guard *g = opened(1);
        fl_guard_gpu_bounds(g, 0, FL_GPU_POWER_W, 0, highest[i]);
        fl_gpu_sample s = {.valid = FL_BIT(FL_GPU_POWER_W), .fresh = FL_BIT(FL_GPU_POWER_W)};
        s.value[FL_GPU_POWER_W] = 300;
        fl_guard_gpu(g, 0, MS, &s);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_POWER_W) && !fl_guard_gpu_absurd(g, 0, FL_GPU_POWER_W), "%g", highest[i]);
        fl_guard_close(g);
    }
}

/* A frozen energy counter: still for a while, then unknown rather than zero use, then right again. */
static void test_frozen(void) {
    const fl_fault fault = {FL_FAULT_FREEZE, 0, FL_GPU_ENERGY_J, 30 * MS, 90 * MS};
    fl_faults *f = NULL;
    fl_guard *g = opened(1);
    CU_ASSERT_FATAL(fl_faults_open(&f, &fault, 1, 1, 0, NULL) == FL_OK);
    fl_guard_gpu_stale(g, 0, FL_GPU_ENERGY_J, 20 * MS);
    static const double shown[12] = {0, 10, 20, 30, 30, -1, -1, -1, -1, 90, 100, 110}; /* -1: unknown */
    for (int k = 0; k < 12; k++) {
        fl_gpu_sample s = {.valid = FL_BIT(FL_GPU_ENERGY_J), .fresh = FL_BIT(FL_GPU_ENERGY_J)};
        s.value[FL_GPU_ENERGY_J] = 10 * k;
        fl_faults_gpu(f, 0, k * 10 * MS, &s);
        fl_guard_gpu(g, 0, k * 10 * MS, &s);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_ENERGY_J) == (shown[k] >= 0), "step %d: valid %llx", k,
                 (unsigned long long)s.valid);
        FL_CHECK(shown[k] < 0 || s.value[FL_GPU_ENERGY_J] == shown[k], "step %d: %g J", k, s.value[FL_GPU_ENERGY_J]);
        FL_CHECK(fl_gpu_fresh(&s, FL_GPU_ENERGY_J) == (k < 3 || k >= 9), "step %d: fresh", k);
    }
    fl_faults_close(f);
    fl_guard_close(g);
}

/* What servers tell: a gauge goes stale, a counter never falls, nonsense is unknown; each server by itself. */
static void test_servers(void) {
    enum { G = FL_SERVER_RUNNING, C = FL_SERVER_OUTPUT_TOKENS };
    fl_guard *g = opened(1);
    fl_server_sample s = {.valid = FL_BIT(G), .value = {0}};
    s.value[G] = -1;
    fl_guard_server(g, 0, 0, &s);
    FL_CHECK(s.valid == FL_BIT(G), "a server that nobody guards was changed");
    CU_ASSERT_FATAL(fl_guard_servers(g, 2, NULL) == FL_OK);
    fl_guard_server_stale(g, 1, G, 20 * MS);
    fl_guard_server_stale(g, 2, G, 1);
    fl_guard_server_stale(g, 1, FL_SERVER_SIGNAL_COUNT, 1);
    static const struct {
        double gauge, counter;
        bool fresh, gauge_known, counter_known;
        double shown;
    } row[] = {{3, 10, true, true, true, 10},   {3, 20, false, true, true, 20}, {3, 30, false, true, true, 30},
               {3, 30, false, false, true, 30}, {4, 5, true, true, false, 0},   {-1, 8, true, false, true, 33},
               {5, NAN, true, true, false, 0},  {5, 9, true, true, true, 34}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        fl_server_sample other = {.valid = FL_BIT(G)};
        s = (fl_server_sample){.valid = FL_BIT(G) | FL_BIT(C), .fresh = FL_BIT(C) | (row[k].fresh ? FL_BIT(G) : 0)};
        s.value[G] = row[k].gauge;
        s.value[C] = row[k].counter;
        fl_guard_server(g, 0, (int64_t)k * 10 * MS, &other);
        fl_guard_server(g, 1, (int64_t)k * 10 * MS, &s);
        FL_CHECK(fl_server_known(&s, G) == row[k].gauge_known && fl_server_known(&s, C) == row[k].counter_known,
                 "row %zu: valid %llx", k, (unsigned long long)s.valid);
        FL_CHECK(!row[k].counter_known || s.value[C] == row[k].shown, "row %zu: %g, expected %g", k, s.value[C],
                 row[k].shown);
        FL_CHECK(other.valid == FL_BIT(G), "row %zu: the other server changed", k);
    }
    fl_guard_close(g);
}

FL_SUITE("guard", {"scripts", test_scripts}, {"never falls", test_never_falls}, {"host", test_host},
         {"edges", test_edges}, {"every signal", test_every_signal}, {"bounds", test_bounds}, {"the least", test_least},
         {"no bound", test_no_bound}, {"frozen", test_frozen}, {"servers", test_servers})
