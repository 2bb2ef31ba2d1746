/* The dynamic method of power-capping, 3.1, behind the node meter of its machine: one ladder step per interval, down
 * when node power reaches the limit, up when it is well below. Behind a transport delay it swings between the ends of
 * the ladder at an interval of 0.2 s (their Fig. 1) and rests at 5 s; behind a first-order lag of the same length it
 * does neither. */
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

#include <stdlib.h>

typedef struct capper_params {
    double interval_s, limit_w, margin_w;
} capper_params;

typedef struct capper_state {
    int64_t at; /* ladder index, + 1; 0 = not begun */
} capper_state;

static const char *capper_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    return facts->gpu_count == 1 ? NULL : "one GPU";
}

static void capper_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                        fl_command *command) {
    capper_state *s = state;
    const capper_params *p = params;
    const fl_ladder sm = facts->gpu[0].sm;
    command->delay_ns = (int64_t)(p->interval_s * 1e9);
    if (!s->at)
        s->at = sm.count; /* dynamic max: begins at the highest clock */
    if (fl_host_known(&sample->host, FL_HOST_NODE_POWER_W)) {
        const double w = sample->host.value[FL_HOST_NODE_POWER_W];
        if (w >= p->limit_w)
            s->at -= s->at > 1;
        else if (w < p->limit_w - p->margin_w)
            s->at += s->at < (int64_t)sm.count;
    }
    fl_set_gpu(command, 0, FL_SET_SM_MHZ, sm.mhz[s->at - 1]);
}

static const fl_param capper_rows[] = {
    {"interval_s", "s", FL_PARAM_REAL, offsetof(capper_params, interval_s), "5", 0.01, 100, NULL, "between steps"},
    {"limit_w", "W", FL_PARAM_REAL, offsetof(capper_params, limit_w), "200", 1, 1000, NULL, "of the node"},
    {"margin_w", "W", FL_PARAM_REAL, offsetof(capper_params, margin_w), "5", 0, 1000, NULL, "what well below means"},
};

static const fl_signal_row capper_signals[] = {FL_NEEDS(HOST_NODE_POWER_W)};

static const fl_policy capper = {FL_POLICY_ABI,
                                 .name = "capper",
                                 .summary = "one step per interval",
                                 .source = "power-capping, 3.1",
                                 FL_SIGNAL_ROWS(capper_signals),
                                 .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                                 .param_count = 3,
                                 .param = capper_rows,
                                 .param_size = sizeof(capper_params),
                                 .state_size = sizeof(capper_state),
                                 .init = capper_init,
                                 .step = capper_step};

typedef struct range { /* of clocks asked for after the first 40 s, as ladder indices */
    int64_t from_ns;
    int32_t ladder[16];
    uint32_t count;
    uint32_t low, high;
} range;

static fl_status watch(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    range *r = user;
    (void)d;
    if (sample->time_ns < r->from_ns || !decision->gpu[0][FL_SET_SM_MHZ].set)
        return FL_OK;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->ladder[i] == (int32_t)decision->gpu[0][FL_SET_SM_MHZ].value) {
            r->low = i < r->low ? i : r->low;
            r->high = i > r->high ? i : r->high;
        }
    return FL_OK;
}

/* matmul of power-capping Table 3: 400 s of compute-bound kernels of 20 ms. */
static fl_workload *matmul(const fl_node_spec *node) {
    fl_workload *w;
    uint32_t c, s;
    const fl_load load = {.tc = 1,
                          .tm = 0.3,
                          .alpha = 0.9,
                          .beta = 0.3,
                          .sm_demand = 1,
                          .ref_sm_mhz = 784,
                          .ref_mem_mhz = node->device[0].default_mem_mhz};
    const fl_kernel_kind kind = {.name = "matmul", .grid = {1, 1, 1}, .block = {1, 1, 1}};
    FX_MUST(fl_workload_new(&w, "matmul", d));
    FX_MUST(fl_workload_add_class(w, &load, &kind, &c, d));
    FX_MUST(fl_workload_add_stream(w, 0, 0, 0, &s, d));
    for (int i = 0; i < 20000; i++)
        FX_MUST(fl_workload_add_op(w, s, 0, 20000000, c, d));
    w->launch_queue = 1024;
    FX_MUST(fl_workload_finish(w, 1, d));
    return w;
}

/* Swing in ladder steps; the node's power at the ends of the ladder first, to place the limit between them. */
static uint32_t swing(double interval_s, double delay_s, double lag_s, double share, double margin_steps) {
    fl_platform p;
    fl_facts facts;
    fl_rates *rates;
    fl_run_result out;
    FX_MUST(fl_platform_open(FL_ROOT "/models/platforms/k20xm-e5-2660.json", 1, &p, d));
    fl_sensor_spec *meter = &p.node.host.sensor[FL_HOST_SENSOR_NODE_POWER];
    meter->delay_ns = (int64_t)(delay_s * 1e9);
    meter->lag_ns = (int64_t)(lag_s * 1e9);
    FX_MUST(fl_facts_make(&p.node, 1, &facts, d));
    fl_workload *w = matmul(&p.node);
    FX_MUST(fl_rates_new(&rates, w, &p.node, d));
    double node_w[2];
    for (int i = 0; i < 2; i++) {
        const fl_device *dev = &p.node.device[0];
        fl_run_options o = {.w = w, .rates = rates, .spec = &p.node, .facts = &facts};
        o.first_sm_mhz = dev->sm_mhz[i ? dev->sm_count - 1 : 0];
        FX_MUST(fl_run(&o, &out, d));
        node_w[i] = out.node_energy_j / out.makespan_s;
        fl_run_result_free(&out);
    }
    char interval[32], limit[32], margin[32];
    snprintf(interval, sizeof interval, "%g", interval_s);
    snprintf(limit, sizeof limit, "%g", node_w[0] + share * (node_w[1] - node_w[0]));
    snprintf(margin, sizeof margin, "%g", margin_steps * (node_w[1] - node_w[0]) / (p.node.device[0].sm_count - 1));
    fl_setting setting[] = {{.name = "interval_s", .text = interval},
                            {.name = "limit_w", .text = limit},
                            {.name = "margin_w", .text = margin}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = 3};
    range r = {.from_ns = INT64_C(100000000000), .count = p.node.device[0].sm_count, .low = 99};
    memcpy(r.ladder, p.node.device[0].sm_mhz, r.count * sizeof *r.ladder);
    fl_run_options o = {.w = w,
                        .rates = rates,
                        .spec = &p.node,
                        .facts = &facts,
                        .policy = &capper,
                        .layer = &layer,
                        .layer_count = 1,
                        .on_step = watch,
                        .user = &r};
    FX_MUST(fl_run(&o, &out, d));
    if (getenv("FL_SHOW"))
        printf("\n    interval %g s, delay %g s, lag %g s: node %.1f..%.1f W, limit %s, margin %s: indices %u..%u",
               interval_s, delay_s, lag_s, node_w[0], node_w[1], limit, margin, r.low, r.high);
    fl_run_result_free(&out);
    fl_rates_free(rates);
    fl_workload_free(w);
    fl_facts_free(&facts);
    fl_platform_free(&p);
    return r.high - r.low;
}

static const double lengths[] = {0.8, 1, 2, 3, 4}; /* s: the range that the delay is assumed in */
#define WELL_BELOW 1.2 /* ladder steps of power: unpublished; more than one, so that a clock to rest at exists */
static const double shares[] = {0.35, 0.5, 0.65}; /* where the limit lies between the ladder's ends in node power */

static void test_delay(void) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            const uint32_t fast = swing(0.2, lengths[i], 0, shares[k], WELL_BELOW),
                           slow = swing(5, lengths[i], 0, shares[k], WELL_BELOW);
            FL_CHECK(fast == 6, "delay %g s, limit at %g: %u steps at 0.2 s, expected the whole ladder", lengths[i],
                     shares[k], fast);
            FL_CHECK(slow <= 1, "delay %g s, limit at %g: %u steps at 5 s, expected at most one", lengths[i], shares[k],
                     slow);
        }
}

/* Power through a lag moves at once, if slowly, so that the capper slows down with it: it settles at either interval.
 */
static void test_lag(void) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            const uint32_t fast = swing(0.2, 0, lengths[i], shares[k], WELL_BELOW),
                           slow = swing(5, 0, lengths[i], shares[k], WELL_BELOW);
            FL_CHECK(fast <= 2, "lag %g s, limit at %g: %u steps at 0.2 s, expected not between the ends", lengths[i],
                     shares[k], fast);
            FL_CHECK(fast <= slow + 2,
                     "lag %g s, limit at %g: %u steps at 0.2 s, %u at 5 s: the interval decides nothing", lengths[i],
                     shares[k], fast, slow);
        }
}

FL_SUITE("late meter", {"transport delay", test_delay}, {"first-order lag", test_lag})
