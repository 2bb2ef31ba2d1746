/* Whole runs with injected faults: the policy sees an invalid signal rather than a zero, and the run finishes or stops
 * with a clear error; nothing negative, nothing NaN. */
#include "harness/input/scene/inside.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/reads.h"
#include "tests/support/node_fixture.h"

typedef struct witness {
    int64_t from_ns, until_ns;
    int gpu_signal, host_signal; /* -1: none; that must be invalid in between */
    bool all;                    /* every signal of GPU 0 must be invalid */
    int64_t grace_ns;            /* a frozen signal is found out after this */
    uint64_t steps, invalid, wrong, bad, back;
    double last_mhz;
} witness;

static bool known(const witness *w, const fl_sample *s) {
    return w->host_signal >= 0 ? fl_host_known(&s->host, w->host_signal)
           : w->all            ? s->gpu[0].valid != 0
                               : fl_gpu_known(&s->gpu[0], w->gpu_signal);
}

static fl_status watch(void *user, const fl_sample *s, const fl_decision *decision, fl_diag *d) {
    witness *w = user;
    (void)decision;
    (void)d;
    w->steps++;
    for (uint32_t i = 0; i < s->gpu_count; i++)
        for (int k = 0; k < FL_GPU_SIGNAL_COUNT; k++)
            w->bad += fl_gpu_known(&s->gpu[i], k) && !(s->gpu[i].value[k] >= 0);
    for (int k = 0; k < FL_HOST_SIGNAL_COUNT; k++)
        w->bad += fl_host_known(&s->host, k) && !(s->host.value[k] >= 0);
    if (fl_gpu_known(&s->gpu[0], FL_GPU_SM_MHZ))
        w->last_mhz = s->gpu[0].value[FL_GPU_SM_MHZ];
    if (s->time_ns >= w->from_ns + w->grace_ns && s->time_ns < w->until_ns) {
        w->invalid += !known(w, s);
        w->wrong += known(w, s);
    }
    if (w->until_ns < INT64_MAX && s->time_ns > w->until_ns + 100000000)
        w->back += known(w, s);
    return FL_OK;
}

static void open_node(fx_rig *r) {
    fx_open(r, 2);
    nx_wall(r, 120);
    nx_heat(r, 60);
    nx_cpu(r);
    nx_host_sensors(r);
    r->spec.device[0].sensor[FL_SENSOR_ENERGY].wrap = 50; /* J: wraps several times */
    r->spec.host.sensor[FL_HOST_SENSOR_CPU_ENERGY].wrap = 10;
    for (uint32_t g = 0; g < 2; g++) {
        uint32_t c = fx_class(r, 1, 0.4, 0, 1, 0.5, 1), s = fx_stream(r, g, 0);
        for (int i = 0; i < 3000; i++)
            fx_op(r, s, 100000, 1000000, c);
    }
    fx_finish(r, 5);
}

static fl_status play(const char *fault, witness *w, fl_diag *why, fl_run_result *out) {
    fx_rig r;
    open_node(&r);
    fl_fault f;
    FX_MUST(fl_fault_spec_parse(fault, &f, d));
    fl_policy policy = fx_policy(0);
    rx_read(&policy, (rx_set){.gpu = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, .host = NX_HOST_ALL});
    fl_setting setting[] = {{.name = "mode", .text = "1"}, {.name = "step_us", .text = "10000"}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = 2};
    fl_run_options o = {.w = r.w,
                        .rates = r.rates,
                        .spec = &r.spec,
                        .facts = &r.facts,
                        .policy = &policy,
                        .layer = &layer,
                        .layer_count = 1,
                        .fault = &f,
                        .fault_count = 1,
                        .on_step = watch,
                        .user = w};
    const fl_status s = fl_run(&o, out, why);
    fx_close(&r);
    return s;
}

static void test_signals(void) {
    static const struct {
        const char *fault;
        int gpu_signal, host_signal;
        double from_s, until_s, grace_s;
    } rows[] = {
        {"drop:gpu=0,signal=power_w,from_s=0.5,for_s=1", FL_GPU_POWER_W, -1, 0.5, 1.5, 0},
        {"drop:gpu=all,signal=energy_j,from_s=0.5", FL_GPU_ENERGY_J, -1, 0.5, 1e9, 0},
        {"drop:gpu=0,signal=util_gpu_pct,from_s=0", FL_GPU_UTIL_GPU_PCT, -1, 0, 1e9, 0},
        {"freeze:gpu=0,signal=energy_j,from_s=0.5,for_s=2", FL_GPU_ENERGY_J, -1, 0.5, 2.5, 1.05},
        {"freeze:gpu=0,signal=temp_c,from_s=0.5,for_s=2", FL_GPU_TEMP_C, -1, 0.5, 2.5, 1.05},
        {"drop:gpu=host,signal=cpu_uops,from_s=1,for_s=1", -1, FL_HOST_CPU_UOPS, 1, 2, 0},
        {"freeze:gpu=host,signal=cpu_energy_j,from_s=0.5,for_s=2", -1, FL_HOST_CPU_ENERGY_J, 0.5, 2.5, 1.05},
        {"drop:gpu=host,signal=node_power_w,from_s=1", -1, FL_HOST_NODE_POWER_W, 1, 1e9, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        witness w = {.from_ns = (int64_t)(rows[i].from_s * 1e9),
                     .until_ns = rows[i].until_s > 1e6 ? INT64_MAX : (int64_t)(rows[i].until_s * 1e9),
                     .gpu_signal = rows[i].gpu_signal,
                     .host_signal = rows[i].host_signal,
                     .grace_ns = (int64_t)(rows[i].grace_s * 1e9)};
        fl_diag d = {0};
        fl_run_result out;
        FL_CHECK(play(rows[i].fault, &w, &d, &out) == FL_OK, "%s: %s", rows[i].fault, d.message);
        FL_CHECK(w.invalid > 10 && w.wrong == 0 && w.bad == 0, "%s: invalid at %llu steps, shown at %llu, bad %llu",
                 rows[i].fault, (unsigned long long)w.invalid, (unsigned long long)w.wrong, (unsigned long long)w.bad);
        FL_CHECK(w.until_ns == INT64_MAX || w.back > 10, "%s: comes back at %llu steps", rows[i].fault,
                 (unsigned long long)w.back);
        FL_CHECK(out.energy_j > 0 && isfinite(out.energy_j) && out.makespan_s > 0, "%s: %g J", rows[i].fault,
                 out.energy_j);
        fl_run_result_free(&out);
    }
}

static void test_refused(void) {
    witness w = {.from_ns = 0, .until_ns = INT64_MAX, .gpu_signal = FL_GPU_KERNELS, .host_signal = -1};
    fl_diag d = {0};
    fl_run_result out;
    FL_CHECK(play("refuse:gpu=0,control=sm_mhz", &w, &d, &out) == FL_OK, "%s", d.message);
    FL_CHECK(out.refused_sets > 10 && w.bad == 0, "%llu sets refused", (unsigned long long)out.refused_sets);
    for (size_t i = 0; i < out.residence_count; i++)
        FL_CHECK(out.residence[i].gpu != 0 || out.residence[i].sm_mhz <= 1000, "GPU 0 ran at %u MHz",
                 out.residence[i].sm_mhz);
    fl_run_result_free(&out);
}

static void test_lost(void) {
    witness w = {
        .from_ns = INT64_C(1000000001), .until_ns = INT64_MAX, .gpu_signal = -1, .host_signal = -1, .all = true};
    fl_diag d = {0};
    fl_run_result out;
    const fl_status s = play("lost:gpu=0,from_s=1", &w, &d, &out);
    FL_CHECK(s == FL_HARDWARE && strstr(d.message, "GPU 0 fell off the bus at 1 s"), "status %d: %s", (int)s,
             d.message);
    FL_CHECK(w.invalid > 10 && w.wrong == 0 && w.bad == 0, "invalid at %llu steps, shown at %llu",
             (unsigned long long)w.invalid, (unsigned long long)w.wrong);
    w = (witness){.from_ns = INT64_C(100000000000), .until_ns = INT64_MAX, .gpu_signal = 0, .host_signal = -1};
    FL_CHECK(play("lost:gpu=1,from_s=100", &w, &d, &out) == FL_OK, "lost after the end: %s", d.message);
    fl_run_result_free(&out);
}

/* Counters that wrap keep rising for the policy. */
typedef struct rise {
    double last[2];
    uint64_t falls, seen;
} rise;

static fl_status watch_rise(void *user, const fl_sample *s, const fl_decision *decision, fl_diag *d) {
    rise *r = user;
    (void)decision;
    (void)d;
    const bool have[2] = {fl_gpu_known(&s->gpu[0], FL_GPU_ENERGY_J), fl_host_known(&s->host, FL_HOST_CPU_ENERGY_J)};
    const double now[2] = {s->gpu[0].value[FL_GPU_ENERGY_J], s->host.value[FL_HOST_CPU_ENERGY_J]};
    for (int i = 0; i < 2; i++) {
        if (!have[i])
            continue;
        r->falls += now[i] < r->last[i];
        r->seen++;
        r->last[i] = now[i];
    }
    return FL_OK;
}

static void test_wraps(void) {
    fx_rig rig;
    open_node(&rig);
    rise r = {0};
    fl_policy policy = fx_policy(0);
    rx_read(&policy, (rx_set){.gpu = FL_BIT(FL_GPU_ENERGY_J), .host = FL_BIT(FL_HOST_CPU_ENERGY_J)});
    fl_setting setting[] = {{.name = "step_us", .text = "10000"}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = 1};
    fl_run_options o = {.w = rig.w,
                        .rates = rig.rates,
                        .spec = &rig.spec,
                        .facts = &rig.facts,
                        .policy = &policy,
                        .layer = &layer,
                        .layer_count = 1,
                        .on_step = watch_rise,
                        .user = &r};
    fl_run_result out;
    FX_MUST(fl_run(&o, &out, d));
    FL_CHECK(r.falls == 0 && r.last[0] > 150 && r.last[0] < out.gpu_energy_j && r.last[1] > 30,
             "%llu falls; GPU 0 %g J after wraps of 50, CPU %g J after wraps of 10", (unsigned long long)r.falls,
             r.last[0], r.last[1]);
    FL_CHECK(fx_near(r.last[1], out.cpu_energy_j, 0.02), "CPU %g of %g J", r.last[1], out.cpu_energy_j);
    fl_run_result_free(&out);
    fx_close(&rig);
}

FL_SUITE("faults in a run", {"signals", test_signals}, {"refused sets", test_refused}, {"lost GPU", test_lost},
         {"wraps", test_wraps})
