#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "traces/io/io.h"

#include "tests/support/suite.h"

#include <math.h>

#define MS_PS INT64_C(1000000000)
#define PERIOD_PS (10 * MS_PS)

enum { SLOW, NOMINAL, BOOST, HIGH_BOOST };

/* 1000 and 2000 MHz, boost 2500 and 3000 MHz, all at 1 V and 10 W; no filter. */
static fl_host_spec host_spec(void) {
    static int32_t mhz[] = {1000, 2000}, boost_mhz[] = {2500, 3000};
    static double volt[] = {1, 1}, boost_volt[] = {1, 1};
    return (fl_host_spec){.name = "host",
                          .cpu = {.mhz = mhz,
                                  .volt = volt,
                                  .count = 2,
                                  .boost_mhz = boost_mhz,
                                  .boost_volt = boost_volt,
                                  .boost_count = 2,
                                  .default_mhz = 2000,
                                  .ref_mhz = 2000,
                                  .static_w = 10,
                                  .core_w = 5,
                                  .bound = 0.5,
                                  .alpha = 1,
                                  .wait_alpha = 0.5,
                                  .upc = 1,
                                  .wait_upc = 0.25,
                                  .bytes_per_s = 1e9,
                                  .period_ns = PERIOD_PS / 1000}};
}

static void open_cpu(fl_cpu *c, const fl_host_spec *host, const fl_host_load *loads, uint32_t load_count) {
    fl_diag d = {0};
    if (fl_cpu_open(c, host, 0, loads, load_count, &d)) {
        printf("\n    %s\n", d.message);
        exit(1);
    }
}

/* The state in force some time after a set. */
static uint32_t after_set(fl_cpu *c, int64_t t, double mhz, double boost) {
    FL_CHECK(fl_cpu_set(c, t, mhz, boost, (double)NAN), "room for a set");
    fl_cpu_charge_to(c, t);
    fl_cpu_at(c, t, 0);
    return c->now;
}

/* The hardware boosts from the highest of software's states and from no other, and where software allows it. */
static void test_boost(void) {
    static const struct {
        double mhz, boost;
        uint32_t state;
    } rows[] = {
        {1000, (double)NAN, SLOW},
        {2000, (double)NAN, HIGH_BOOST},
        {2000, 0, NOMINAL},
        {1000, (double)NAN, SLOW},
        {1000, 1, SLOW},
        {(double)NAN, 0, SLOW},
        {2000, (double)NAN, NOMINAL},
        {-1, -1, HIGH_BOOST}, /* the default allows it */
    };
    const fl_host_spec host = host_spec();
    fl_cpu c;
    open_cpu(&c, &host, NULL, 1);
    FL_CHECK(c.now == HIGH_BOOST, "nothing set: state %u", c.now);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t s = after_set(&c, (int64_t)i * MS_PS, rows[i].mhz, rows[i].boost);
        FL_CHECK(s == rows[i].state, "row %zu: state %u", i, s);
    }
    fl_cpu_close(&c);
    fl_host_spec low = host_spec();
    low.cpu.default_mhz = 1000;
    open_cpu(&c, &low, NULL, 1);
    FL_CHECK(c.now == SLOW, "a system that asks for the lowest state: %u", c.now);
    FL_CHECK(after_set(&c, 0, 2000, 0) == NOMINAL && after_set(&c, 0, -1, (double)NAN) == SLOW,
             "and the default is that again");
    fl_cpu_close(&c);
}

/* What the platform and the workload say holds from the start: the package limit, the clock at which host time was
 * recorded, and the power of a package on which nothing runs. */
static void test_opens(void) {
    fl_host_spec host = host_spec();
    host.cpu.power_default_w = 25;
    fl_cpu c;
    fl_diag d = {0};
    FL_CHECK(fl_cpu_open(&c, &host, 3000, NULL, 1, &d) == FL_OK, "opens");
    FL_CHECK(c.limit_mw == 25000 && fl_cpu_next(&c) == PERIOD_PS && fl_cpu_mw(&c) == 10000,
             "%lld mW of %lld, looks at %lld ps", (long long)fl_cpu_mw(&c), (long long)c.limit_mw,
             (long long)fl_cpu_next(&c));
    FL_CHECK(fl_cpu_rows(&c)[0].mul == FL_MUL_ONE && host.cpu.ref_mhz == 2000, "recorded at the boost clock: %u",
             fl_cpu_rows(&c)[0].mul);
    fl_cpu_close(&c);
    host.cpu.bound = 2;
    FL_CHECK(fl_cpu_open(&c, &host, 0, NULL, 1, &d) == FL_MODEL_FAULT && strstr(d.message, "host: CPU state 0"),
             "a CPU without a law: '%s'", d.message);
}

/* A set acts settle_ns after its call has ended, one after the other, and not every queue takes one more. */
static void test_settles(void) {
    fl_host_spec host = host_spec();
    host.cpu.settle_ns = 5000000;
    fl_cpu c;
    open_cpu(&c, &host, NULL, 1);
    fl_cpu_set(&c, MS_PS, 1000, (double)NAN, (double)NAN);
    fl_cpu_set(&c, 2 * MS_PS, 2000, 0, (double)NAN);
    FL_CHECK(fl_cpu_next(&c) == 6 * MS_PS, "the first settles at %lld ps", (long long)fl_cpu_next(&c));
    FL_CHECK(!fl_cpu_at(&c, 6 * MS_PS - 1, 0) && c.now == HIGH_BOOST, "not yet: state %u", c.now);
    FL_CHECK(fl_cpu_at(&c, 6 * MS_PS, 0) && c.now == SLOW && fl_cpu_next(&c) == 7 * MS_PS, "now: state %u", c.now);
    FL_CHECK(fl_cpu_at(&c, 7 * MS_PS, 0) && c.now == NOMINAL && fl_cpu_next(&c) == FL_TIME_NEVER, "then: state %u",
             c.now);
    FL_CHECK(c.switches == 2, "%llu switches", (unsigned long long)c.switches);
    for (int i = 0; i < FL_CPU_PENDING_MAX; i++)
        FL_CHECK(fl_cpu_set(&c, 8 * MS_PS, 1000, (double)NAN, (double)NAN), "set %d", i);
    FL_CHECK(!fl_cpu_set(&c, 8 * MS_PS, 2000, (double)NAN, (double)NAN), "too many at once");
    fl_cpu_at(&c, 13 * MS_PS, 0);
    FL_CHECK(c.now == SLOW && !c.pending, "all of them have settled");
    fl_cpu_close(&c);
}

/* Host time takes as long as it takes, but instructions and bytes are those of the work done in it: a thread that an
 * APU's bus holds back moves no more for it. */
static void test_collect(void) {
    const fl_host_spec host = host_spec();
    const fl_host_load other = {.bound = 0, .alpha = 2, .upc = 0.5, .bytes_per_s = 4e9};
    fl_cpu c;
    open_cpu(&c, &host, &other, 2);
    after_set(&c, 0, 2000, 0);
    int64_t time[] = {3 * MS_PS, 5 * MS_PS}, work[] = {2 * MS_PS, MS_PS};
    fl_host_sums sums = {.time_ps = time, .work_ps = work, .active_ps = 20 * MS_PS};
    fl_cpu_collect(&c, &sums);
    fl_cpu_charge_to(&c, 15 * MS_PS);
    FL_CHECK(!time[0] && !time[1] && !work[0] && !work[1] && !sums.active_ps, "taken");
    const fl_wide fj = (fl_wide)MS_PS * (15 * 10000 + 3 * 10000 + 5 * 20000 + 12 * 5000);
    FL_CHECK(c.sums.cpu_fj == fj && fl_cpu_residence_fj(&c) == fj, "%g J, expected %g", fl_joules(c.sums.cpu_fj),
             fl_joules(fj));
    const fl_cpu_row *row = fl_cpu_rows(&c);
    FL_CHECK(c.sums.bytes == (fl_wide)MS_PS * (2 * (fl_wide)row[0].bytes + row[1].bytes), "%g bytes",
             (double)(c.sums.bytes >> 20));
    FL_CHECK(fabs((double)(c.sums.bytes >> 20) - (2e-3 * 1e9 + 1e-3 * 4e9)) < 6e6 * 1e-3, "%g bytes",
             (double)(c.sums.bytes >> 20));
    FL_CHECK(c.sums.uops ==
                 (fl_wide)MS_PS * (2 * (fl_wide)row[0].uops + row[1].uops + 12 * (fl_wide)c.state[NOMINAL].wait_uops),
             "%g uops", (double)(c.sums.uops >> 20));
    FL_CHECK(c.slot[NOMINAL].time_ps[1] == 5 * MS_PS && c.slot[NOMINAL].work_ps[1] == MS_PS &&
                 c.slot[NOMINAL].wait_ps == 12 * MS_PS && c.slot[NOMINAL].open_ps == 15 * MS_PS,
             "residence");
    FL_CHECK(c.sums.busy_ps == 20 * MS_PS && c.sums.mhz_ps == (fl_wide)15 * MS_PS * 2000, "busy, and the clock");
    FL_CHECK(fl_cpu_mw(&c) == (int64_t)(fl_joules(fj) / 0.015 * 1000 + 0.5), "a mean of %lld mW",
             (long long)fl_cpu_mw(&c));
    const int64_t first_mw = fl_cpu_mw(&c);
    FL_CHECK(c.peak_mw == first_mw, "the peak is the first mean: %lld mW", (long long)c.peak_mw);
    after_set(&c, 15 * MS_PS, 1000, (double)NAN);
    time[1] = work[1] = sums.active_ps = MS_PS; /* once more, at 1000 MHz */
    fl_cpu_collect(&c, &sums);
    fl_cpu_charge_to(&c, 17 * MS_PS);
    FL_CHECK(c.sums.cpu_fj == fj + (fl_wide)MS_PS * (2 * 10000 + 10000) && fl_cpu_residence_fj(&c) == c.sums.cpu_fj,
             "%g J in all", fl_joules(c.sums.cpu_fj));
    FL_CHECK(fl_cpu_mw(&c) == 15000 && c.sums.busy_ps == 21 * MS_PS &&
                 c.sums.mhz_ps == (fl_wide)MS_PS * (15 * 2000 + 2 * 1000),
             "a mean of %lld mW since then", (long long)fl_cpu_mw(&c));
    FL_CHECK(c.peak_mw == (first_mw > 15000 ? first_mw : 15000), "the larger of both: %lld mW", (long long)c.peak_mw);
    FL_CHECK(c.sums.cycles == (fl_wide)MS_PS * (20 * (fl_wide)c.state[NOMINAL].cycles + c.state[SLOW].cycles),
             "%g cycles", (double)(c.sums.cycles >> 20));
    fl_cpu_close(&c);
}

/* A thread that waits is busy, unless it sleeps: then it has neither power nor cycles. */
static void test_sleeps(void) {
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        fl_host_spec host = host_spec();
        host.cpu.sleeps = sleeps;
        fl_cpu c;
        open_cpu(&c, &host, NULL, 1);
        after_set(&c, 0, 2000, 0);
        int64_t time = 3 * MS_PS, work = 3 * MS_PS;
        fl_host_sums sums = {.time_ps = &time, .work_ps = &work, .active_ps = 20 * MS_PS};
        fl_cpu_collect(&c, &sums);
        const int64_t busy = (sleeps ? 3 : 20) * MS_PS;
        FL_CHECK(c.sums.busy_ps == busy, "sleeps %d: busy for %lld ps", sleeps, (long long)c.sums.busy_ps);
        FL_CHECK(c.sums.cycles == (fl_wide)busy * c.state[NOMINAL].cycles, "sleeps %d: %g cycles", sleeps,
                 (double)(c.sums.cycles >> 20));
        FL_CHECK(c.sums.cpu_fj == (fl_wide)MS_PS * (3 * 10000 + (sleeps ? 0 : 17 * 5000)), "sleeps %d: %g J", sleeps,
                 fl_joules(c.sums.cpu_fj));
        fl_cpu_close(&c);
    }
}

/* One look after a period in which the GPUs drew gpu_w; the package itself draws its static 10 W. */
static void look(fl_cpu *c, int64_t *t, fl_wide *gpu_fj, int64_t gpu_w) {
    *t += PERIOD_PS;
    *gpu_fj += (fl_wide)PERIOD_PS * gpu_w * 1000;
    fl_cpu_charge_to(c, *t);
    fl_cpu_at(c, *t, *gpu_fj);
}

/* An APU's budget takes boost states away, one per look, and no other; once there is room they come back, one per look
 * too. A node whose GPU has a package of its own knows no such budget. */
static void test_budget(void) {
    static const struct {
        int64_t gpu_w;
        uint32_t state;
    } rows[] = {
        {80, HIGH_BOOST}, {89, HIGH_BOOST}, {90, HIGH_BOOST}, /* 100 W of 100 */
        {91, BOOST},      {91, NOMINAL},    {91, NOMINAL},    {500, NOMINAL}, {500, NOMINAL},
        {500, NOMINAL},   {89, BOOST},      {91, NOMINAL},    {89, BOOST},    {80, HIGH_BOOST},
        {80, HIGH_BOOST}, {80, HIGH_BOOST}, {80, HIGH_BOOST}, {91, BOOST}, /* it was no higher than that */
    };
    for (int apu = 0; apu < 2; apu++) {
        fl_host_spec host = host_spec();
        host.apu = apu;
        host.budget_w = 100;
        fl_cpu c;
        open_cpu(&c, &host, NULL, 1);
        FL_CHECK(fl_cpu_next(&c) == (apu ? PERIOD_PS : FL_TIME_NEVER), "looks at %lld ps", (long long)fl_cpu_next(&c));
        int64_t t = 0;
        fl_wide gpu_fj = 0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            look(&c, &t, &gpu_fj, rows[i].gpu_w);
            FL_CHECK(c.now == (apu ? rows[i].state : HIGH_BOOST), "APU %d, look %zu: state %u", apu, i, c.now);
        }
        fl_cpu_close(&c);
    }
}

/* A package limit takes any state, and does not hear of the GPUs; lifted, the states come back. */
static void test_limit(void) {
    fl_host_spec host = host_spec();
    fl_cpu c;
    open_cpu(&c, &host, NULL, 1);
    int64_t t = 0;
    fl_wide gpu_fj = 0;
    fl_cpu_set(&c, 3 * MS_PS, (double)NAN, (double)NAN, 6);
    fl_cpu_charge_to(&c, t = 3 * MS_PS);
    fl_cpu_at(&c, t, 0);
    FL_CHECK(c.now == HIGH_BOOST && fl_cpu_next(&c) == PERIOD_PS, "looks on the controller's own grid: %lld ps",
             (long long)fl_cpu_next(&c));
    fl_cpu_close(&c);
    open_cpu(&c, &host, NULL, 1);
    t = 5 * PERIOD_PS;
    fl_cpu_charge_to(&c, t);
    fl_cpu_set(&c, t, (double)NAN, (double)NAN, 12);
    fl_cpu_at(&c, t, 0);
    look(&c, &t, &gpu_fj, 500);
    FL_CHECK(c.now == HIGH_BOOST, "10 W of 12, whatever it drew before: state %u", c.now);
    fl_cpu_set(&c, t, (double)NAN, (double)NAN, 6);
    static const uint32_t down[] = {BOOST, NOMINAL, SLOW, SLOW, SLOW};
    for (size_t i = 0; i < sizeof down / sizeof *down; i++) {
        look(&c, &t, &gpu_fj, 500);
        FL_CHECK(c.now == down[i], "look %zu: state %u", i, c.now);
    }
    fl_cpu_set(&c, t, (double)NAN, (double)NAN, 12);
    look(&c, &t, &gpu_fj, 500);
    FL_CHECK(c.now == NOMINAL, "10 W of 12: state %u", c.now);
    fl_cpu_set(&c, t, (double)NAN, (double)NAN, 6);
    look(&c, &t, &gpu_fj, 500);
    FL_CHECK(c.now == SLOW, "and 10 of 6: state %u", c.now);
    fl_cpu_set(&c, t, (double)NAN, (double)NAN, -1);
    static const uint32_t up[] = {NOMINAL, BOOST, HIGH_BOOST, HIGH_BOOST};
    for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
        look(&c, &t, &gpu_fj, 500);
        FL_CHECK(c.now == up[i], "the default again, look %zu: state %u", i, c.now);
    }
    fl_cpu_close(&c);
}

/* What the controllers compare is filtered: after k periods at 110 W a filter of two periods has come 1 - exp(-k / 2)
 * of the way. */
static void test_filter(void) {
    fl_host_spec host = host_spec();
    host.apu = 1;
    host.budget_w = 100;
    host.cpu.filter_ns = 2 * PERIOD_PS / 1000;
    fl_cpu c;
    open_cpu(&c, &host, NULL, 1);
    int64_t t = 0;
    fl_wide gpu_fj = 0;
    for (int k = 1; k <= 10; k++) {
        look(&c, &t, &gpu_fj, 100);
        const double all = 110000 * (1 - exp(-k / 2.0)), own = all / 11;
        FL_CHECK(fabs(c.filtered_all_mw - all) < 1e-6 && fabs(c.filtered_cpu_mw - own) < 1e-6, "look %d: %g and %g mW",
                 k, c.filtered_all_mw, c.filtered_cpu_mw);
        FL_CHECK(c.now == (k < 5 ? HIGH_BOOST : k < 6 ? BOOST : NOMINAL), "look %d: state %u", k, c.now);
    }
    fl_cpu_close(&c);
}

FL_SUITE("cpu", {"boost", test_boost}, {"opens", test_opens}, {"settles", test_settles}, {"collect", test_collect},
         {"sleeps", test_sleeps}, {"budget", test_budget}, {"limit", test_limit}, {"filter", test_filter})
