/* Advice from one recording of kernels, and from one log of one run at one clock. */
#include "harness/advise/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- a recording of kernels, simulated at every clock ---- */

typedef struct node { /* one assumption, simulated */
    fl_platform p;
    fl_workload *w;
    fl_rates *rates;
    fl_facts facts;
    fl_choice *choice;
    fl_static_point *point;
    size_t count;
} node;

static fl_status run_point(void *user, size_t i, fl_diag *d) {
    node *n = user;
    return fl_static_run(n->w, n->rates, &n->p.node, &n->facts, &n->choice[i], &n->point[i], d);
}

static uint32_t devices_of(const fl_kernel_trace *t) {
    int32_t low = INT32_MAX, high = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        low = t->ops[i].device < low ? t->ops[i].device : low;
        high = t->ops[i].device > high ? t->ops[i].device : high;
    }
    return t->op_count ? (uint32_t)(high - low) + 1 : 1;
}

static fl_status node_open(node *n, const char *path, const fl_kernel_trace *t, const fl_kinds *kinds,
                           const char *assume, const fl_advise_options *o, fl_diag *d) {
    const fl_build_options build = {.kinds = kinds, .assume = assume};
    fl_status s = fl_platform_open(o->platform, 0, &n->p, d);
    if (!s && devices_of(t) > n->p.node.gpu_count) {
        fl_platform_free(&n->p);
        s = fl_platform_open(o->platform, devices_of(t), &n->p, d);
    }
    if (!s) /* the node of every other command: without heat, for one */
        s = fl_node_choose(&n->p.node, &(fl_node_choice){0}, d);
    if (!s)
        s = fl_build_trace(&n->w, path, t, &n->p.node, &build, d);
    if (!s)
        s = fl_rates_new(&n->rates, n->w, &n->p.node, d);
    if (!s)
        s = fl_facts_make(&n->p.node, 1, &n->facts, d);
    if (!s)
        s = fl_oracle_choices(n->w, &n->p.node, &n->choice, &n->count, d);
    if (s)
        return s;
    n->point = fl_must(calloc(n->count, sizeof *n->point));
    return fl_pool_run(run_point, n, n->count, 0, "clocks", d);
}

static void node_close(node *n) {
    free(n->choice);
    free(n->point);
    fl_facts_free(&n->facts);
    fl_rates_free(n->rates);
    fl_workload_free(n->w);
    fl_platform_free(&n->p);
}

static int by_clocks(const void *a, const void *b) {
    const fl_static_point *x = a, *y = b;
    if (fabs(x->at.mem_mhz - y->at.mem_mhz) > 0)
        return x->at.mem_mhz < y->at.mem_mhz ? -1 : 1;
    return (x->at.sm_mhz > y->at.sm_mhz) - (x->at.sm_mhz < y->at.sm_mhz);
}

/* The mean absolute value of a normal deviate is sqrt(2/pi) of its deviation. */
static double sd_of(double mape_pct) { return isnan(mape_pct) ? 0 : mape_pct / sqrt(M_2_PI); }

static fl_status state(node *n, fl_stated *out, fl_diag *d) {
    qsort(n->point, n->count, sizeof *n->point, by_clocks);
    out->at = fl_must(calloc(n->count + 1, sizeof *out->at));
    out->guess = fl_must(calloc(n->count + 1, sizeof *out->guess));
    for (size_t i = 0; i < n->count; i++) {
        const double time = (double)n->point[i].makespan_ps * 1e-12, energy = (double)n->point[i].energy_fj * 1e-15;
        if (!(time > 0) || !(energy > 0))
            return fl_refuse(d, "%s: nothing ran, expected kernels that take time", n->w->name);
        out->at[i] = (fl_setting_clocks){n->point[i].at.sm_mhz, n->point[i].at.mem_mhz, 0};
        out->guess[i] =
            (fl_chip_guess){time, energy / time, sd_of(n->w->model_time_mape_pct), sd_of(n->w->model_power_mape_pct)};
    }
    out->count = n->count;
    return FL_OK;
}

/* Scales the powers so that the one at the log's clock equals the log's. */
static void anchor(fl_stated *s, const fl_log_run *run, double mem_mhz) {
    fl_chip_guess g;
    if (!fl_stated_at(s, (fl_setting_clocks){run->sm_mhz, isnan(run->mem_mhz) ? mem_mhz : run->mem_mhz, 0}, &g))
        return;
    for (size_t i = 0; i < s->count; i++)
        s->guess[i].power_w *= run->power_w / g.power_w;
}

static fl_status one_case(const char *path, const fl_kernel_trace *t, const fl_kinds *kinds, const char *assume,
                          const fl_log_run *run, const fl_advise_options *o, fl_advise_subject *to, bool *assumed,
                          fl_diag *d) {
    node n = {0};
    fl_advise_case *c = &to->of[to->cases];
    fl_status s = node_open(&n, path, t, kinds, assume, o, d);
    if (!s) {
        const fl_device *dev = &n.p.node.device[n.p.node.gpu[0]];
        to->ref = (fl_setting_clocks){dev->default_sm_mhz, dev->default_mem_mhz, 0};
        *assumed = n.w->assumed;
        c->assume = *assumed ? assume : NULL;
        to->cases++;
        s = state(&n, &c->stated, d);
    }
    for (size_t i = 0; !s && i < c->stated.count; i++) /* the errors concern the change from that clock */
        if (fl_stated_same(c->stated.at[i], to->ref))
            c->stated.guess[i].time_sd_pct = c->stated.guess[i].power_sd_pct = 0;
    if (!s && run)
        anchor(&c->stated, run, to->ref.mem_mhz);
    node_close(&n);
    return s;
}

fl_status fl_advise_kernels(const char *path, const fl_kernel_trace *t, const fl_log_run *run,
                            const fl_advise_options *o, fl_advise_subject *to, bool *assumed, fl_diag *d) {
    static const char *const assume[FL_ADVISE_CASES] = {"compute", "balanced", "memory"};
    if (!o->platform)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "measurements at one clock do not determine other clocks, expected --platform NAME (foldline "
                       "platforms lists them), or runs at a second clock");
    char *beside;
    fl_kinds kinds = {0};
    fl_status s = fl_scene_kinds_read(o->kinds, path, &t->head, NULL, &beside, &kinds, d);
    *assumed = true;
    for (size_t k = 0; !s && k < FL_ADVISE_CASES && *assumed; k++)
        s = one_case(path, t, beside ? &kinds : NULL, assume[k], run, o, to, assumed, d);
    fl_kinds_free(&kinds);
    free(beside);
    return s;
}

/* ---- a log of one run at one clock ---- */

/* One program that keeps the GPU busy during the whole run. anchor: whether the run's power scales the law's. */
static fl_status busy_run(const char *path, const fl_log_run *run, bool anchor, const fl_advise_options *o,
                          fl_advise_subject *to, fl_diag *d) {
    enum { OPS = 100 };
    char name[] = "program";
    char *names[] = {name};
    fl_trace_kind kind = {0}; /* no grid: the kernel fills the device */
    fl_trace_op op[OPS];
    const int64_t length = (int64_t)(run->time_s * 1e9 / OPS);
    bool assumed;
    for (int64_t i = 0; i < OPS; i++)
        op[i] = (fl_trace_op){.start_ns = i * length,
                              .end_ns = (i + 1) * length,
                              .launch_ns = INT64_MIN,
                              .bytes = -1,
                              .host_thread = -1,
                              .sm_mhz = (uint16_t)run->sm_mhz};
    const fl_kernel_trace t = {
        .names = names, .name_count = 1, .kinds = &kind, .kind_count = 1, .ops = op, .op_count = OPS};
    fl_advise_options own = *o;
    own.kinds = NULL;
    return fl_advise_kernels(path, &t, anchor ? run : NULL, &own, to, &assumed, d);
}

fl_status fl_advise_log(const char *path, const fl_log_run *run, const fl_advise_options *o, fl_advise_subject *to,
                        fl_one_probe *p, fl_diag *d) {
    fl_platform platform = {0};
    fl_chip *chip = NULL;
    *p = (fl_one_probe){.busy = *run};
    fl_status s = o->platform ? fl_platform_open(o->platform, 0, &platform, d) : FL_OK;
    if (!s && o->platform)
        s = fl_one_probe_of_device(&platform.node.device[platform.node.gpu[0]], run, p, &chip, d);
    fl_platform_free(&platform);
    if (!s)
        s = busy_run(path, &p->busy, !p->tells, o, to, d);
    const fl_chip_row ref = {.sm_mhz = to->ref.sm_mhz, .mem_mhz = to->ref.mem_mhz};
    for (size_t k = 0; !s && p->tells && k < to->cases; k++) {
        fl_stated *of = &to->of[k].stated;
        fl_chip_row *at = fl_must(fl_stated_rows(of));
        s = fl_one_probe_powers(chip, p, &ref, at, of->guess, of->count, d);
        if (!s)
            fl_one_probe_add_idle(chip, p, at, of->guess, of->count);
        free(at);
    }
    free(chip);
    return s;
}
