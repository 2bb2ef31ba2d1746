/* Which call of NVML a signal comes from: of two that tell the same the newer one, the older where the newer is not
 * there or not for this GPU. A library without the calls that NVML 13 announces the end of gives every signal all the
 * same. */
#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/live_stub.h"

#include <math.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { VIOLATIONS = STUB_FIELD_POWER_VIOLATION | STUB_FIELD_THERMAL_VIOLATION };

#define NONE ((double)NAN)

static const struct {
    const char *library;
    int fields, violations; /* of the stub */
    double power_ns, thermal_ns, instant_w, celsius, throttle;
} ROWS[] = {
    {FL_STUB_NVML, 0, 0, NONE, NONE, NONE, 50, FL_THROTTLE_POWER + FL_THROTTLE_THERMAL},
    {FL_STUB_NVML, 0, 1, 1111, 2222, NONE, 50, FL_THROTTLE_POWER + FL_THROTTLE_THERMAL},
    {FL_STUB_NVML, STUB_FIELD_POWER_VIOLATION, 1, 5000000001, 2222, NONE, 50, FL_THROTTLE_POWER + FL_THROTTLE_THERMAL},
    {FL_STUB_NVML, STUB_FIELD_THERMAL_VIOLATION, 1, 1111, 7000000002, NONE, 50,
     FL_THROTTLE_POWER + FL_THROTTLE_THERMAL},
    {FL_STUB_NVML, VIOLATIONS, 1, 5000000001, 7000000002, NONE, 50, FL_THROTTLE_POWER + FL_THROTTLE_THERMAL},
    {FL_STUB_NVML_NEW, VIOLATIONS, 0, 5000000001, 7000000002, NONE, 61, FL_THROTTLE_THERMAL},
    {FL_STUB_NVML_NEW, STUB_FIELD_THERMAL_VIOLATION, 1, NONE, 7000000002, NONE, 61, FL_THROTTLE_THERMAL},
    {FL_STUB_NVML_NEW, STUB_FIELD_POWER_INSTANT, 0, NONE, NONE, 123.456, 61, FL_THROTTLE_THERMAL},
};

static void check(size_t row, const fl_gpu_sample *s, int id, double expected) {
    const double value = fl_gpu_known(s, id) ? s->value[id] : NONE;
    FL_CHECK(value == expected || (isnan(value) && isnan(expected)), "row %zu: signal %d is %.12g, expected %.12g", row,
             id, value, expected);
}

static void test_newer_calls_first(void) {
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_gpus g = {0};
        fl_gpu_sample s;
        stub_reset(1);
        stub->gpu[0].fields = ROWS[i].fields;
        stub->gpu[0].violations = ROWS[i].violations;
        setenv("FOLDLINE_NVML", ROWS[i].library, 1);
        CU_ASSERT_FATAL(!fl_nvml_host_open(&g, NULL, NULL, NULL));
        CU_ASSERT(!g.back->read(g.self, 0, FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, 0, &s, NULL));
        check(i, &s, FL_GPU_POWER_VIOLATION_NS, ROWS[i].power_ns);
        check(i, &s, FL_GPU_THERMAL_VIOLATION_NS, ROWS[i].thermal_ns);
        check(i, &s, FL_GPU_POWER_INSTANT_W, ROWS[i].instant_w);
        check(i, &s, FL_GPU_TEMP_C, ROWS[i].celsius);
        check(i, &s, FL_GPU_THROTTLE, ROWS[i].throttle);
        stub->gpu[0].code = 15; /* lost: no older call is asked instead */
        CU_ASSERT(g.back->read(g.self, 0, FL_BIT(FL_GPU_POWER_VIOLATION_NS), 0, &s, NULL) == FL_HARDWARE);
        fl_gpus_close(&g);
    }
}

/* The host times its readings of the counter. While `held` is set, only these readings take time: 4 ms each, as on an
 * H200. So a busy machine does not change the outcome. */
static bool held;

int clock_gettime(clockid_t id, struct timespec *t) {
    if (!held)
        return (int)syscall(SYS_clock_gettime, id, t);
    const int64_t ns = INT64_C(4000000) * stub->energy_reads;
    *t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return 0;
}

/* A counter that steps each 100 ms and takes as long to read as an H200's, read each 20 ms for 6 s: where it is needed
 * each step is shown, where it is not few readings are made. Both show when it stepped. */
static void test_slow_counter(void) {
    static const struct {
        uint64_t spared;
        unsigned fewest, most; /* readings in the last 4 s */
    } SLOW[] = {
        {0, 40, 100}, {FL_BIT(FL_GPU_ENERGY_J), 40, 100}, {FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS), 8, 60}};
    const uint64_t needs = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS);
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
    for (size_t i = 0; i < sizeof SLOW / sizeof *SLOW; i++) {
        fl_gpus g = {0};
        unsigned before = 0, steps = 0;
        stub_reset(1);
        CU_ASSERT_FATAL(!fl_nvml_host_open(&g, NULL, NULL, NULL));
        held = true;
        g.back->spare(g.self, SLOW[i].spared);
        for (int64_t ms = 0; ms < 6000; ms += 20) {
            fl_gpu_sample s;
            const int64_t step = (ms + 107) / 100; /* it steps 7 ms before each tenth of a second */
            stub->gpu[0].counter = (unsigned long long)step * 30000;
            before = ms == 2000 ? stub->energy_reads : before;
            CU_ASSERT(!g.back->read(g.self, 0, needs, ms * 1000000, &s, NULL) && fl_gpu_known(&s, FL_GPU_ENERGY_J));
            if (ms < 2000 || !(s.fresh >> FL_GPU_ENERGY_J & 1))
                continue;
            const double at_ms = s.value[FL_GPU_ENERGY_J] / 30 * 100 - 107;
            steps++;
            FL_CHECK(!fl_gpu_known(&s, FL_GPU_ENERGY_NS) || fabs(s.value[FL_GPU_ENERGY_NS] * 1e-6 - at_ms) < 25,
                     "row %zu: a step at %g ms is shown as of %g", i, at_ms, s.value[FL_GPU_ENERGY_NS] * 1e-6);
        }
        held = false;
        const unsigned reads = stub->energy_reads - before;
        FL_CHECK(reads >= SLOW[i].fewest && reads <= SLOW[i].most, "row %zu: %u readings", i, reads);
        FL_CHECK(steps == 40 || (i == 2 && steps >= 8), "row %zu: %u steps", i, steps);
        fl_gpus_close(&g);
    }
}

static const fl_case CASES[] = {{"newer calls first", test_newer_calls_first}, {"a slow counter", test_slow_counter}};

static void open_stub(void) { stub_open(1); }

FL_SUITE_OF("live_nvml", CASES, .open = open_stub, .close = stub_close)
