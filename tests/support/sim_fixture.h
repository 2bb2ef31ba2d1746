/* Synthetic devices and workloads for the tests of the engine: round numbers, so that a person can check a case by
 * hand.
 *
 * The device: SM ladder 500..1500 MHz in steps of 100, memory 400 and 800 MHz, V = 1 V everywhere, so that
 *   base(f, m) = 20 W static + 5 or 10 W idle memory + 10 W/GHz clock tree,
 *   dyn(f, m)  = alpha 100 W/GHz + beta 50 W m/800,
 * and 8 W without a context. Loads are recorded at 1000 and 800 MHz. */
#pragma once

#include "policies/random.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/reads.h"
#include "tests/support/suite.h"

#include <math.h>

#define FX_GPUS_MAX 8
#define FX_MS_PS INT64_C(1000000000)
#define FX_US_PS INT64_C(1000000)

typedef struct fx_rig {
    fl_node_spec spec;
    fl_workload *w;
    fl_rates *rates;
    fl_facts facts;
    fl_gpu_facts gpu_facts[FX_GPUS_MAX];
} fx_rig;

#define FX_MUST(call)                                                                                                  \
    do {                                                                                                               \
        fl_diag fx_diag_ = {0};                                                                                        \
        fl_diag *d = &fx_diag_;                                                                                        \
        fl_status fx_status_ = (call);                                                                                 \
        if (fx_status_) {                                                                                              \
            printf("\n    %s:%d: %s: %s\n", __FILE__, __LINE__, #call, d->message);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline void *fx_alloc(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p)
        exit(1);
    return p;
}

/* ---- the node ---- */

static inline void fx_device(fl_device *dev) {
    *dev = (fl_device){.name = "test", .default_sm_mhz = 1000, .default_mem_mhz = 800};
    dev->sm_count = 11;
    dev->sm_mhz = fx_alloc(dev->sm_count, sizeof *dev->sm_mhz);
    for (uint32_t i = 0; i < dev->sm_count; i++)
        dev->sm_mhz[i] = 500 + 100 * (int32_t)i;
    dev->mem_count = 2;
    dev->mem_mhz = fx_alloc(2, sizeof *dev->mem_mhz);
    dev->b0_w = fx_alloc(2, sizeof *dev->b0_w);
    dev->mem_mhz[0] = 400, dev->mem_mhz[1] = 800;
    dev->b0_w[0] = 5, dev->b0_w[1] = 10;
    dev->a_w = 100, dev->a0_w = 10, dev->b_w = 50, dev->c_w = 20, dev->no_context_w = 8;
    dev->sharpness = INFINITY;
    dev->peak_bytes_per_s = 1e11;
    double x[2] = {500, 1500}, y[2] = {1, 1};
    if (fl_curve_new(&dev->voltage, x, y, 2) != FL_MODEL_OK)
        exit(1);
}

static inline void fx_open(fx_rig *r, uint32_t gpus) {
    *r = (fx_rig){0};
    r->spec.device_count = 1;
    r->spec.device = fx_alloc(1, sizeof *r->spec.device);
    fx_device(r->spec.device);
    r->spec.gpu_count = gpus;
    r->spec.gpu = fx_alloc(gpus, sizeof *r->spec.gpu);
    fl_device *dev = r->spec.device;
    for (uint32_t i = 0; i < gpus; i++)
        r->gpu_facts[i] = (fl_gpu_facts){.name = dev->name,
                                         .sm = {dev->sm_mhz, dev->sm_count},
                                         .mem = {dev->mem_mhz, dev->mem_count},
                                         .default_sm_mhz = dev->default_sm_mhz,
                                         .default_mem_mhz = dev->default_mem_mhz};
    r->facts = (fl_facts){.seed = 1, .gpu_count = gpus, .gpu = r->gpu_facts, .host = {.name = "host"}};
    FX_MUST(fl_workload_new(&r->w, "test", d));
}

/* The workload is complete. */
static inline void fx_finish(fx_rig *r, uint32_t windows) {
    FX_MUST(fl_workload_finish(r->w, windows, d));
    FX_MUST(fl_rates_new(&r->rates, r->w, &r->spec, d));
}

static inline void fx_close(fx_rig *r) {
    fl_rates_free(r->rates);
    fl_workload_free(r->w);
    fl_node_spec_free(&r->spec);
}

/* ---- the workload ---- */

static inline uint32_t fx_class(fx_rig *r, double tc, double tm, double tl, double alpha, double beta, double sms) {
    fl_load load = {.tc = tc, .tm = tm, .tl = tl, .alpha = alpha, .beta = beta, .sm_demand = sms};
    load.ref_sm_mhz = 1000;
    load.ref_mem_mhz = 800;
    fl_kernel_kind kind = {.name = "kernel", .grid = {1, 1, 1}, .block = {32, 1, 1}};
    uint32_t id;
    FX_MUST(fl_workload_add_class(r->w, &load, &kind, &id, d));
    return id;
}

/* Compute-bound, a tenth of the SMs: nothing is scarce with a few of them. */
static inline uint32_t fx_light(fx_rig *r) { return fx_class(r, 1, 0, 0, 1, 0, 0.1); }

static inline uint32_t fx_stream(fx_rig *r, uint32_t gpu, int32_t id) {
    uint32_t index;
    FX_MUST(fl_workload_add_stream(r->w, gpu, 1, id, &index, d));
    return index;
}

static inline void fx_op(fx_rig *r, uint32_t stream, int64_t gap_ns, int64_t work_ns, uint32_t class_id) {
    FX_MUST(fl_workload_add_op(r->w, stream, gap_ns, work_ns, class_id, d));
}

static inline void fx_wait(fx_rig *r, uint32_t stream, uint32_t on, uint64_t done) {
    FX_MUST(fl_workload_add_wait(r->w, stream, (fl_wait){on, done}, d));
}

static inline uint32_t fx_thread(fx_rig *r) {
    uint32_t index;
    FX_MUST(fl_workload_add_thread(r->w, 7, &index, d));
    return index;
}

static inline void fx_launch(fx_rig *r, uint32_t thread, int64_t host_ns, uint32_t stream) {
    fl_item item = {.type = FL_ITEM_LAUNCH, .host_ns = host_ns, .stream = stream};
    FX_MUST(fl_workload_add_item(r->w, thread, &item, d));
}

static inline void fx_sync(fx_rig *r, uint32_t thread, int64_t host_ns, int64_t after_ns, uint32_t on, uint64_t done) {
    fl_item item = {.type = FL_ITEM_SYNC, .host_ns = host_ns, .after_ns = after_ns};
    FX_MUST(fl_workload_add_item(r->w, thread, &item, d));
    FX_MUST(fl_workload_add_sync_wait(r->w, thread, (fl_wait){on, done}, d));
}

/* Random loads: some bound by compute, some by memory, some by neither. */
static inline void fx_random_classes(fx_rig *r, fl_random *g, uint32_t count, double sms_max) {
    for (uint32_t i = 0; i < count; i++) {
        double tc = fl_random_unit(g), tm = fl_random_unit(g), tl = 0.2 * fl_random_unit(g) + 0.01;
        fx_class(r, tc, tm, tl, fl_random_unit(g), fl_random_unit(g), sms_max * (0.05 + 0.95 * fl_random_unit(g)));
    }
}

static inline void fx_random_ops(fx_rig *r, fl_random *g, uint32_t stream, size_t count, int64_t mean_ns) {
    for (size_t i = 0; i < count; i++) {
        int64_t gap = fl_random_below(g, 3) ? 0 : (int64_t)fl_random_below(g, 5000);
        int64_t work = (int64_t)fl_random_below(g, (uint64_t)(2 * mean_ns));
        if (!fl_random_below(g, 50))
            work = 0;
        if (!fl_random_below(g, 40))
            gap = 65536 + (int64_t)fl_random_below(g, 1000); /* a long one */
        fx_op(r, stream, gap, work, (uint32_t)fl_random_below(g, r->w->class_count));
    }
}

/* ---- running ---- */

static inline fl_node *fx_node(const fx_rig *r, uint64_t needs, bool streams_only) {
    fl_node_options o = {.w = r->w,
                         .rates = r->rates,
                         .spec = &r->spec,
                         .seed = r->facts.seed,
                         .gpu_needs = needs,
                         .counted = true,
                         .path = streams_only ? FL_PATH_EVENTS : FL_PATH_AUTO};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    return n;
}

static inline void fx_advance(fl_node *n, int64_t until) { FX_MUST(fl_node_advance(n, until, d)); }

static inline void fx_to_end(fl_node *n) {
    while (!fl_node_done(n))
        fx_advance(n, fl_node_now(n) + FL_BOUNDARY_MAX_PS);
}

static inline fl_wide fx_energy(const fl_node *n) {
    fl_wide sum = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(n); i++)
        sum += fl_node_gpu(n, i)->sums.energy_fj;
    return sum;
}

static inline const fl_clock_rates *fx_rates(const fx_rig *r, double sm_mhz, double mem_mhz) {
    const fl_device *dev = r->spec.device;
    const fl_clock_rates *c;
    FX_MUST(fl_rates_at(r->rates, 0, (uint32_t)fl_ladder_index(dev->sm_mhz, dev->sm_count, sm_mhz),
                        (uint32_t)fl_ladder_index(dev->mem_mhz, dev->mem_count, mem_mhz), &c, d));
    return c;
}

/* ---- policies ---- */

typedef struct fx_params {
    int64_t step_us, mode;
} fx_params;

enum { FX_NOTHING, FX_RANDOM, FX_RANDOM_BOTH };

typedef struct fx_state {
    fl_random random;
} fx_state;

static inline const char *fx_init(void *state, const void *params, const fl_facts *facts) {
    fx_state *s = state;
    (void)params;
    s->random = fl_random_seed(facts->seed, 77);
    return NULL;
}

/* Random clocks after a random number of steps' lengths; or nothing at all. */
static inline void fx_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                           fl_command *command) {
    fx_state *s = state;
    const fx_params *p = params;
    (void)sample;
    command->delay_ns = p->step_us * 1000;
    if (p->mode == FX_NOTHING)
        return;
    command->delay_ns *= 1 + (int64_t)fl_random_below(&s->random, 4);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        fl_ladder sm = facts->gpu[i].sm, mem = facts->gpu[i].mem;
        uint64_t pick = fl_random_below(&s->random, sm.count + 2);
        if (pick < sm.count)
            fl_set_gpu(command, i, FL_SET_SM_MHZ, sm.mhz[pick]);
        else if (pick == sm.count)
            fl_set_gpu(command, i, FL_SET_SM_MHZ, FL_DEFAULT);
        if (p->mode == FX_RANDOM_BOTH && !fl_random_below(&s->random, 3))
            fl_set_gpu(command, i, FL_SET_MEM_MHZ, mem.mhz[fl_random_below(&s->random, mem.count)]);
    }
}

static const fl_param fx_param_rows[] = {
    {"step_us", "us", FL_PARAM_INT, offsetof(fx_params, step_us), "1000", 1, 1e12, NULL, "between steps"},
    {"mode", "", FL_PARAM_INT, offsetof(fx_params, mode), "0", 0, 2, NULL, "what it sets"},
};

static inline fl_policy fx_policy(uint64_t needs) {
    fl_policy p = {FL_POLICY_ABI,
                   .name = "scripted",
                   .summary = "random or no clocks",
                   .source = "none",
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ),
                   .param_count = 2,
                   .param = fx_param_rows,
                   .param_size = sizeof(fx_params),
                   .state_size = sizeof(fx_state),
                   .init = fx_init,
                   .step = fx_step};
    rx_read(&p, (rx_set){.gpu = needs});
    return p;
}

typedef struct fx_how { /* of one run */
    uint64_t needs;
    int mode; /* -1: no policy */
    int64_t step_us;
    fl_path path;
    bool records, no_classes;
    const fl_target *target;
    int64_t truth_ns;
    fl_truth_function on_truth;
    fl_step_function on_step;
    void *user;
} fx_how;

static inline fl_status fx_try(const fx_rig *r, const fx_how *how, fl_run_result *result, fl_diag *d) {
    char step[32], mode[16];
    snprintf(step, sizeof step, "%lld", (long long)(how->step_us ? how->step_us : 1000));
    snprintf(mode, sizeof mode, "%d", how->mode);
    fl_setting setting[] = {{.name = "step_us", .text = step}, {.name = "mode", .text = mode}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = 2};
    fl_policy policy = fx_policy(0);
    rx_read(&policy, (rx_set){.gpu = how->needs, .records = how->records});
    fl_run_options o = {.hashed = true,
                        .w = r->w,
                        .rates = r->rates,
                        .spec = &r->spec,
                        .facts = &r->facts,
                        .policy = how->mode < 0 ? NULL : &policy,
                        .layer = &layer,
                        .layer_count = 1,
                        .path = how->path,
                        .classes = !how->no_classes,
                        .on_step = how->on_step,
                        .on_truth = how->on_truth,
                        .target = how->target,
                        .truth_ns = how->truth_ns,
                        .user = how->user};
    return fl_run(&o, result, d);
}

static inline void fx_run(const fx_rig *r, const fx_how *how, fl_run_result *result) {
    FX_MUST(fx_try(r, how, result, d));
    if (result->peak_power_w < result->mean_power_w * (1 - 1e-9)) { /* of the same parts, whatever ran */
        fprintf(stderr, "a peak of %.17g W below the mean of %.17g W\n", result->peak_power_w, result->mean_power_w);
        exit(1);
    }
}

/* Text for messages: 128-bit numbers have no format. */
static inline double fx_f(fl_wide x) { return (double)x; }

static inline bool fx_near(double a, double b, double relative) {
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b));
}
