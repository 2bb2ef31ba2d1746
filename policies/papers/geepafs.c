/* Assure, the policy of the GEEPAFS daemon (EuroSys '24), and SweetSpot, its port that caps the clock under congestion.
 *
 * One daemon drives all GPUs of a node. A probe takes every GPU through the probe clocks, up and then down, fits memory
 * utilisation (a stand-in for performance) against the clock, and chooses the clock that keeps a share theta of the
 * performance at the top clock and is no less efficient than the most efficient probe clock. Probes repeat while the
 * node works.
 *
 * The daemon also has a port to Python, which differs in numbers only: period_ms=300 reprobe_s=18 error_per_point=1 (a
 * root mean square of 0.01 of shares) least_mem_pct=3, and on a V100 of 163 W probe_mhz=720/855/982/1117/1245/1440.
 * SweetSpot was written on top of the daemon in C. Both set application clocks, memory and SM, and leave them where an
 * error or SIGTERM ends them; here the host gives back what a policy has set, however it ends.
 *
 * What a reading that is not known does: GPU utilisation does not enter the moving window; a probe that lacks a memory
 * utilisation or a power of a GPU has no model for it; a sample without utilisation or clock gives no cap. A loop whose
 * duration is not known counts as one period. */
#include "policies/papers/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { WINDOW_MAX = 128, COUNTER_MIN = -99 };
enum { HAS_MEM = 1, HAS_POWER = 2, HAS_BOTH = HAS_MEM | HAS_POWER };
enum { UP, NEAREST };
enum { FIT_VOID = -1 }; /* shown where a probe could not be fitted: readings missing, or no memory traffic at all */

typedef struct params {
    double theta;
    fl_table probe_mhz;
    double lowest_mhz, efficient_mhz, period_ms, reprobe_s, error_per_point, least_mem_pct;
    int64_t window;
    double alpha, cap_util_pct, cap_mem_pct, cap_power_w; /* SweetSpot only, as the next; Assure's is 0 */
    int64_t rounding;                                     /* UP, NEAREST */
} params;

typedef struct node_state {
    int64_t idle_ns; /* accumulator: time since the last probe ended */
    int32_t counter; /* phase of the loop: 2m..1 probe, 0 fit, -1 set the choice, below: nothing */
    int32_t before;  /* phase of the loop before; <= 0 at first */
    uint32_t probe_count;
    uint32_t started; /* a loop has run, so there is an end of loop to make up for */
} node_state;

typedef struct gpu_state {
    fl_fold_data data;
    uint32_t has[FL_FOLD_SAMPLES_MAX]; /* HAS_MEM, HAS_POWER of each sample */
    double window[WINDOW_MAX];         /* GPU utilisation, a ring */
    uint32_t window_next;
    double fmax_mhz, lowest_mhz, average_efficient_mhz;
    double cap_mhz;                  /* largest over the samples of this probe; 0 = none yet */
    double bound_mhz, efficient_mhz; /* of the last fit */
    double choice_mhz, set_mhz;      /* 0 before the first */
    double fit_kind, fit_error, slope_low, slope_high;
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, sizeof(node_state)); }

static int reading(const fl_gpu_sample *g, int id, double *value) {
    *value = g->value[id];
    return fl_gpu_known(g, id) && isfinite(*value);
}

/* ---- set-up -------------------------------------------------------------------------------------------------------
 */

/* m clocks spread evenly from 0.6 fmax to fmax, each the ladder clock at or above, kept apart on short ladders. */
static void spread_probes(fl_ladder l, uint32_t m, double *probe) {
    uint32_t above = l.count;
    for (uint32_t i = m; i-- > 0;) {
        double share = 0.6 + 0.4 * i / (m - 1);
        uint32_t k = fl_ladder_index_up(l, share * fl_ladder_max(l) - 1e-6);
        if (k >= above)
            k = above - 1;
        if (k < i)
            k = i;
        probe[i] = l.mhz[k];
        above = k;
    }
}

static const char *take_probes(const fl_table *list, fl_ladder l, double *probe) {
    for (uint32_t i = 0; i < list->row_count; i++) {
        double mhz = list->cell[i];
        if (i && !(mhz > probe[i - 1]))
            return "probe_mhz must be ascending";
        if (!fl_ladder_has(l, mhz))
            return "probe_mhz must hold clocks of the SM ladder of every GPU";
        probe[i] = mhz;
    }
    return NULL;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    node_state *node = state;
    const params *p = param_bytes;
    node->probe_count = p->probe_mhz.row_count ? p->probe_mhz.row_count : 4;
    if (node->probe_count < 2 || node->probe_count > FL_FOLD_PROBES_MAX)
        return "probe_mhz must hold 2 to 32 clocks";
    const char *wrong = fl_need_ladders(facts);
    if (wrong)
        return wrong;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (!p->probe_mhz.row_count && facts->gpu[i].sm.count > 1 && facts->gpu[i].sm.count < node->probe_count)
            node->probe_count = facts->gpu[i].sm.count;
    }
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        fl_ladder ladder = facts->gpu[i].sm;
        gpu_state *g = &gpus(state)[i];
        g->bound_mhz = g->efficient_mhz = g->fit_kind = g->fit_error = g->slope_low = g->slope_high = NAN;
        if (ladder.count == 1)
            continue; /* nothing to choose: it keeps its clock, and its readings still count for the node */
        g->data.probe_count = node->probe_count;
        if (p->probe_mhz.row_count) {
            wrong = take_probes(&p->probe_mhz, ladder, g->data.probe_mhz);
            if (wrong)
                return wrong;
        } else {
            spread_probes(ladder, node->probe_count, g->data.probe_mhz);
        }
        g->fmax_mhz = fl_ladder_max(ladder);
        g->lowest_mhz = p->lowest_mhz > 0 ? p->lowest_mhz : g->data.probe_mhz[0];
        g->average_efficient_mhz = p->efficient_mhz > 0 ? p->efficient_mhz : g->lowest_mhz;
        if (g->lowest_mhz > g->fmax_mhz || g->average_efficient_mhz > g->fmax_mhz)
            return "the top of the SM ladder is below lowest_mhz or efficient_mhz";
    }
    node->counter = (int32_t)(2 * node->probe_count);
    return NULL;
}

/* ---- one loop -----------------------------------------------------------------------------------------------------
 */

/* What the daemon does once a loop is over. Its duration is known only when the next step begins; the window then still
 * holds what that loop read. */
static void end_loop(node_state *node, const gpu_state *gpu, const params *p, const fl_facts *facts, int64_t loop_ns) {
    node->before = node->counter;
    if (node->idle_ns >= (int64_t)(p->reprobe_s * 1e9 + 0.5)) {
        double busy_pct = 0;
        for (uint32_t i = 0; i < facts->gpu_count; i++) {
            double sum = 0;
            for (int64_t k = 0; k < p->window; k++)
                sum += gpu[i].window[k];
            busy_pct += sum / (double)p->window;
        }
        node->counter = busy_pct >= 1 ? (int32_t)(2 * node->probe_count) : -2;
        node->idle_ns = 0;
        return;
    }
    node->idle_ns = node->counter > -1 ? 0 : node->idle_ns + loop_ns;
    if (node->counter > COUNTER_MIN)
        node->counter--;
}

/* The clock below which a GPU that is busy u percent of the time at clock f would lose more than 1 - theta, were all of
 * its busy time bound by the clock. */
static double utilisation_cap(double theta, double f, double fmax, double u) {
    return f / ((1 - theta) * (f / fmax + 100 / (u > 1 ? u : 1) - 1) + f / fmax);
}

static void take_sample(gpu_state *g, const fl_gpu_sample *s, uint32_t index, double theta) {
    double util, mhz, watts;
    if (index == 0)
        g->cap_mhz = 0;
    g->has[index] = 0;
    if (reading(s, FL_GPU_UTIL_MEM_PCT, &g->data.util_mem_pct[index]))
        g->has[index] |= HAS_MEM;
    /* The daemon divides by the whole milliwatts that NVML gives. A thousandth of them is rounded, so that clocks which
     * are equally efficient in milliwatts may not be so in watts, and the first of equals wins. */
    if (reading(s, FL_GPU_POWER_W, &watts)) {
        g->data.power_mw[index] = rint(watts * 1000);
        if (g->data.power_mw[index] > 0)
            g->has[index] |= HAS_POWER;
    }
    if (reading(s, FL_GPU_UTIL_GPU_PCT, &util) && reading(s, FL_GPU_SM_MHZ, &mhz) && mhz > 0) {
        double cap = utilisation_cap(theta, mhz, g->fmax_mhz, util);
        if (cap > g->cap_mhz)
            g->cap_mhz = cap;
    }
}

/* A clock of the ladder. Eq. 4 of the port takes the nearest (of two the upper). The daemon takes the one above the
 * largest clock that is strictly below: the next one up, but where none is below it keeps the last setting. We read
 * that as the clock that was set last, which is the last set-point of the probe; the recorded log has no such case. */
static double on_ladder(fl_ladder ladder, double mhz, int64_t rounding, double set_mhz) {
    const double up = fl_ladder_up(ladder, mhz), down = fl_ladder_down(ladder, mhz);
    if (rounding == NEAREST)
        return mhz - down < up - mhz ? down : up;
    return mhz > fl_ladder_min(ladder) ? up : set_mhz;
}

static void fit_and_choose(gpu_state *g, const params *p, fl_ladder ladder) {
    uint32_t has = HAS_BOTH, samples = 2 * g->data.probe_count;
    double traffic = 0;
    for (uint32_t i = 0; i < samples; i++) {
        has &= g->has[i];
        traffic = fmax(traffic, g->data.util_mem_pct[i]);
    }
    g->bound_mhz = g->fmax_mhz;
    g->efficient_mhz = g->average_efficient_mhz;
    g->fit_kind = FIT_VOID;
    g->fit_error = g->slope_low = g->slope_high = NAN;
    if (has == HAS_BOTH && traffic > 0 && traffic >= p->least_mem_pct) {
        fl_fold fold = fl_fold_fit(&g->data, p->error_per_point);
        g->fit_kind = fold.kind;
        g->fit_error = fold.error;
        g->slope_low = fold.low.slope;
        g->slope_high = fold.high.slope;
        if (fold.kind != FL_FOLD_NONE) {
            g->bound_mhz = fl_fold_bound_mhz(&fold, &g->data, p->theta, g->fmax_mhz);
            g->efficient_mhz = fl_fold_efficient_mhz(&fold, &g->data);
        }
    }
    double cap = g->cap_mhz > 0 ? g->cap_mhz : g->fmax_mhz;
    double mhz = fmax(fmin(g->bound_mhz, cap), g->efficient_mhz);
    g->choice_mhz = on_ladder(ladder, fmin(fmax(mhz, g->lowest_mhz), g->fmax_mhz), p->rounding, g->set_mhz);
}

static int64_t period_ns(const params *p) { return (int64_t)(p->period_ms * 1e6 + 0.5); }

/* SweetSpot, Eq. 5: is the GPU so contended, or so near its power limit, that a higher clock only costs power? A
 * reading that is not known gives no reason to cap. */
static int congested(const params *p, const fl_gpu_sample *s) {
    double util, mem, power;
    if (!reading(s, FL_GPU_UTIL_GPU_PCT, &util) || !(util > p->cap_util_pct))
        return 0;
    if (reading(s, FL_GPU_UTIL_MEM_PCT, &mem) && mem < p->cap_mem_pct)
        return 1;
    return p->cap_power_w > 0 && reading(s, FL_GPU_POWER_W, &power) && power > p->cap_power_w;
}

static void set_clock(gpu_state *g, fl_command *command, uint32_t gpu, double mhz) {
    g->set_mhz = mhz;
    fl_set_gpu(command, gpu, FL_SET_SM_MHZ, mhz);
}

#define NODE_PROBES(X)                                                                                                 \
    X("counter", "", "phase: 2m..1 probing, 0 fitting, -1 setting the choice, below: waiting", node->counter)          \
    X("since_probe_s", "s", "time since the last probe", (double)node->idle_ns * 1e-9)
#define GPU_PROBES(X)                                                                                                  \
    X("cap_mhz", "MHz", "bound from GPU utilisation, largest so far in the probe", g->cap_mhz > 0 ? g->cap_mhz : NAN)  \
    X("bound_mhz", "MHz", "bound from the model", g->bound_mhz)                                                        \
    X("model_efficient_mhz", "MHz", "most efficient probe clock", g->efficient_mhz)                                    \
    X("choice_mhz", "MHz", "clock chosen at the last fit", g->choice_mhz > 0 ? g->choice_mhz : NAN)                    \
    X("fit", "", "-1 not fitted, 0 error too large, 1 one line, 2 fold, 3 fold at a probe clock", g->fit_kind)         \
    X("fit_error", "%^2", "residual sum of squares", g->fit_error)                                                     \
    X("slope_low", "%/MHz", "slope of the line, or of the fold below its turn", g->slope_low)                          \
    X("slope_high", "%/MHz", "slope of the line, or of the fold above its turn", g->slope_high)
static const fl_probe probe_rows[] = {NODE_PROBES(FL_PROBE_NODE_ROW) GPU_PROBES(FL_PROBE_ROW)};

static void show(const node_state *node, const gpu_state *gpu, uint32_t count, fl_command *command) {
    fl_show_all(command, 0, 0, (double[]){NODE_PROBES(FL_PROBE_VALUE)}, 2);
    for (uint32_t i = 0; i < count; i++) {
        const gpu_state *g = &gpu[i];
        fl_show_all(command, i, 2, (double[]){GPU_PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows) - 2);
    }
}

static void loop(void *state, const params *p, const fl_facts *facts, const fl_sample *sample, fl_command *command,
                 int capping) {
    node_state *node = state;
    gpu_state *gpu = gpus(state);
    int64_t loop_ns = period_ns(p);
    if (node->started) {
        double took = sample->host.value[FL_HOST_LOOP_NS];
        if (fl_host_known(&sample->host, FL_HOST_LOOP_NS) && took > (double)loop_ns && took < 9e18)
            loop_ns = (int64_t)took;
        end_loop(node, gpu, p, facts, loop_ns);
    }
    node->started = 1;

    int32_t samples = (int32_t)(2 * node->probe_count);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpu[i];
        const fl_gpu_sample *s = &sample->gpu[i];
        double util;
        if (reading(s, FL_GPU_UTIL_GPU_PCT, &util)) {
            g->window[g->window_next] = util;
            g->window_next = (g->window_next + 1) % (uint32_t)p->window;
        }
        if (!g->data.probe_count)
            continue;
        /* A clock is observed one loop after it was set. */
        if (node->before > 0)
            take_sample(g, s, (uint32_t)(samples - node->before), p->theta);

        if (node->counter >= 0) {
            uint32_t last = (uint32_t)(node->counter > 0 ? samples - node->counter : samples - 1);
            set_clock(g, command, i, g->data.probe_mhz[fl_fold_probe_of(node->probe_count, last)]);
            if (node->counter == 0)
                fit_and_choose(g, p, facts->gpu[i].sm);
            continue;
        }
        double mhz = g->choice_mhz;
        if (capping && congested(p, s)) /* alpha x fmax of a whole clock may fall short of it by a rounding */
            mhz = fmin(mhz, fl_ladder_down(facts->gpu[i].sm, p->alpha * g->fmax_mhz + 1e-6));
        if (node->counter == -1 || (capping && mhz != g->set_mhz))
            set_clock(g, command, i, mhz);
    }
    show(node, gpu, facts->gpu_count, command);
    command->delay_ns = period_ns(p);
}

static void assure_step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                        fl_command *command) {
    loop(state, param_bytes, facts, sample, command, 0);
}

static void sweetspot_step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                           fl_command *command) {
    loop(state, param_bytes, facts, sample, command, 1);
}

/* ---- descriptors --------------------------------------------------------------------------------------------------
 */

enum { ASSURE_PARAMS = 9 }; /* the rows after these are SweetSpot's own */
static const fl_param param_rows[] = {
    FL_PARAM(params, theta, REAL(0, 1), "", "0.9", "share of the performance at the top clock that must remain"),
    FL_PARAM(params, probe_mhz, LIST(1, 100000), "MHz", "",
             "2 to 32 probe clocks, ascending; empty: four from 0.6 of the top clock up to it"),
    FL_PARAM(params, lowest_mhz, REAL(0, 100000), "MHz", "0", "lowest clock ever chosen; 0: the first probe clock"),
    FL_PARAM(params, efficient_mhz, REAL(0, 100000), "MHz", "0",
             "clock that is most efficient on average, for GPUs without a model; 0: lowest_mhz"),
    FL_PARAM(params, period_ms, REAL(0.001, 3.6e6), "ms", "200", "time from one loop to the next"),
    FL_PARAM(params, reprobe_s, REAL(0.001, 1e6), "s", "15", "time from the end of a probe to the next"),
    FL_PARAM(params, error_per_point, REAL(0, 1e9), "%^2", "100",
             "largest squared residual per sample with which a model is trusted"),
    FL_PARAM(params, window, INT(1, WINDOW_MAX), "", "16", "GPU utilisation readings in the moving average"),
    FL_PARAM(params, least_mem_pct, REAL(0, 100), "%", "0",
             "no model where memory utilisation stays below this in the whole probe (the Python port: 3)"),
    FL_PARAM(params, alpha, REAL(0, 1), "", "0.7", "cap under congestion, as a share of the top clock"),
    FL_PARAM(params, cap_util_pct, REAL(0, 100), "%", "95", "congested only while GPU utilisation is above this"),
    FL_PARAM(params, cap_mem_pct, REAL(0, 101), "%", "100",
             "and memory utilisation is below this (not published; 100: anything short of saturation), or"),
    FL_PARAM(params, cap_power_w, REAL(0, 1e5), "W", "0",
             "power is above this (80 on the RTX 4070 Laptop); 0: not used"),
    FL_PARAM(params, rounding, CHOICE("up|nearest"), "", "up",
             "choice of Assure to a clock of the ladder: up (the daemon's code) or nearest (Eq. 4)"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_UTIL_GPU_PCT), FL_NEEDS(GPU_UTIL_MEM_PCT), FL_NEEDS(GPU_SM_MHZ),
    FL_NEEDS(GPU_POWER_W),      FL_NEEDS(HOST_LOOP_NS),
};

#define COMMON                                                                                                         \
    FL_SIGNAL_ROWS(signal_rows), .gpu_drives = FL_BIT(FL_SET_SM_MHZ), .param = param_rows, FL_PROBE_ROWS(probe_rows),  \
                                 .param_size = sizeof(params), .state_size = sizeof(node_state),                       \
                                 .gpu_size = sizeof(gpu_state), .init = init

FL_POLICY(assure) = {FL_POLICY_ABI,
                     .name = "assure",
                     .summary = "probes clocks, sets the most efficient one that keeps a share theta of performance",
                     .source = "GEEPAFS (EuroSys '24), policy Assure",
                     COMMON,
                     .param_count = ASSURE_PARAMS,
                     .step = assure_step};

#ifndef POLICY_PLUGIN /* a plug-in holds one policy */
FL_POLICY(sweetspot) = {FL_POLICY_ABI,
                        .name = "sweetspot",
                        .summary = "Assure, with a cap on the clock while the GPU is congested or at its power limit",
                        .source = "SweetSpot (RTX 4070 Laptop port of GEEPAFS), Eq. 5 and Listing 1",
                        COMMON,
                        .param_count = FL_COUNT(param_rows),
                        .step = sweetspot_step};
#endif
