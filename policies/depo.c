/* DEPO, the baseline of MF-GPOEO that caps power: kernels are counted, all alike. Windows at the default limit give the
 * rate of kernels and the power; then golden section search over the power limit on the objective, the loss taken from
 * the rate. It ends when the bracket is short or its upper end breaks the bound (never where constrained: the search
 * goes up from what breaks it); the best limit within the bound is then held for good. Each GPU of a node by itself.
 *
 * What a reading that is not known does: a window stands while kernels or power are not known; after missing_s of that
 * a trial goes back to the default limit, and the search begins anew. While no kernel ends the default holds too, and
 * the trial goes on with the next one. Without power limits nothing is set. */
#include "policies/policy.h"

#include <math.h>

enum { WAIT, BASELINE, SEARCH, DONE };
enum { POWER, ENERGY, EDP, ED2P };
enum { LONG_KERNEL = 4 }; /* as many times the mean one is still a kernel that runs (assumed) */
static const double golden = 0.61803398874989485;

typedef struct params {
    double con_perf;
    int64_t objective;
    double step_w, low_w, high_w;
    int64_t windows, bracket, constrained;
    double window_s, skip_s, settle_ms, missing_s, period_ms;
} params;

typedef struct trial { /* an inner point of the bracket */
    double gear, objective, loss;
} trial;

typedef struct gpu_state {
    double low_w, base_rate, base_w, best_objective, rate_sum, power_sum;
    trial left, right; /* objective NAN: to be measured */
    int64_t first_ns, seen_ns, begin_ns, end_ns, last_ns, counted_ns;
    int64_t ran_ns;                        /* when a kernel was last seen to end */
    double ended;                          /* kernels, as last known */
    double from_kernels, kernels, power_w; /* counter at the window's start (NAN: not known), and what it counted */
    double from_j, from_j_ns, energy_j, energy_ns, power_count;
    double loss, optimised_s;         /* as last found; NAN: not yet */
    int32_t state, low, high;         /* bracket, in gears */
    int32_t top, set_gear, best_gear; /* gears of step_w from low_w; -1: the default limit */
    uint32_t base_windows, blind, idle;
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, 0); }

static int64_t ns_of(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        const fl_gpu_facts *f = &facts->gpu[i];
        const double high = p->high_w > 0 ? p->high_w : f->power_default_w > 0 ? f->power_default_w : f->power_max_w;
        g->low_w = p->low_w > 0 ? p->low_w : f->power_min_w;
        g->top = g->low_w > 0 && high > g->low_w ? (int32_t)fmin(floor((high - g->low_w) / p->step_w), 1e6) : 0;
        g->first_ns = g->seen_ns = -1;
        g->set_gear = g->best_gear = -1;
        g->base_rate = g->base_w = g->best_objective = g->loss = g->optimised_s = NAN;
    }
    return NULL;
}

/* ---- one window ---------------------------------------------------------------------------------------------------
 */

static void set_gear(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int32_t gear) {
    if (g->set_gear != gear)
        fl_set_gpu(command, gpu, FL_SET_POWER_LIMIT_W, gear < 0 ? FL_DEFAULT : g->low_w + gear * p->step_w);
    g->set_gear = gear;
}

static void open_window(const params *p, gpu_state *g, int64_t now_ns) {
    g->begin_ns = now_ns + ns_of(p->settle_ms * 1e-3);
    g->end_ns = g->begin_ns + ns_of(p->window_s);
    g->from_kernels = g->from_j = NAN;
    g->counted_ns = 0;
    g->kernels = g->power_w = g->power_count = g->energy_j = g->energy_ns = 0;
}

static double known(const fl_gpu_sample *s, int id) {
    return fl_gpu_known(s, id) && isfinite(s->value[id]) ? s->value[id] : (double)NAN;
}

static void read_window(gpu_state *g, const fl_gpu_sample *s, int64_t now_ns) {
    const double kernels = known(s, FL_GPU_KERNELS), power = known(s, FL_GPU_POWER_W),
                 joules = known(s, FL_GPU_ENERGY_J);
    const double stamp = known(s, FL_GPU_ENERGY_NS), j_ns = isnan(stamp) ? (double)now_ns : stamp;
    if (kernels >= g->from_kernels) {
        g->kernels += kernels - g->from_kernels;
        g->counted_ns += now_ns - g->last_ns;
    }
    g->from_kernels = kernels;
    if (!isnan(power)) {
        g->power_w += power;
        g->power_count++;
    }
    if (!isnan(joules) && !fl_gpu_fresh(s, FL_GPU_ENERGY_J))
        return;
    if (joules >= g->from_j && j_ns > g->from_j_ns) {
        g->energy_j += joules - g->from_j;
        g->energy_ns += j_ns - g->from_j_ns;
    }
    g->from_j = joules;
    g->from_j_ns = j_ns;
}

/* Kernels and power are what a window measures. */
static int readable(const fl_gpu_sample *s) {
    return !isnan(known(s, FL_GPU_KERNELS)) && !(isnan(known(s, FL_GPU_POWER_W)) && isnan(known(s, FL_GPU_ENERGY_J)));
}

static double mean_power(const gpu_state *g) {
    return g->energy_ns > 0 ? g->energy_j / g->energy_ns * 1e9 : g->power_count > 0 ? g->power_w / g->power_count : 0;
}

/* ---- the search ---------------------------------------------------------------------------------------------------
 */

static double objective_of(int64_t objective, double power_w, double slowdown) {
    for (int64_t i = POWER; i < objective; i++)
        power_w *= slowdown;
    return power_w;
}

static void end_search(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int64_t now_ns) {
    set_gear(p, g, gpu, command, g->best_gear);
    g->state = DONE;
    g->optimised_s = (double)(now_ns - g->first_ns) * 1e-9;
}

/* Does the search go on below the right point? The left one, at the lower limit, is the first to break the bound. */
static int goes_down(const params *p, const trial *left, const trial *right) {
    if (p->constrained && (left->loss > p->con_perf || right->loss > p->con_perf))
        return 0;
    return left->objective < right->objective;
}

static int32_t trial_gear(const gpu_state *g) {
    return (int32_t)rint(isnan(g->left.objective) ? g->left.gear : g->right.gear);
}

/* The inner point that is still to be measured; both known: shrinks the bracket until one is not. */
static void next_trial(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int64_t now_ns) {
    while (!isnan(g->left.objective) && !isnan(g->right.objective)) {
        const int lower = goes_down(p, &g->left, &g->right);
        if (lower) {
            g->high = (int32_t)rint(g->right.gear);
            const int broken = g->right.loss > p->con_perf;
            g->right = g->left;
            g->left = (trial){.gear = g->high - golden * (g->high - g->low), .objective = NAN};
            if (broken) { /* all that is left lies below */
                end_search(p, g, gpu, command, now_ns);
                return;
            }
        } else {
            g->low = (int32_t)rint(g->left.gear);
            g->left = g->right;
            g->right = (trial){.gear = g->low + golden * (g->high - g->low), .objective = NAN};
        }
        if (g->high - g->low <= p->bracket) {
            end_search(p, g, gpu, command, now_ns);
            return;
        }
    }
    set_gear(p, g, gpu, command, trial_gear(g));
    open_window(p, g, now_ns);
}

static void end_window(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int64_t now_ns) {
    const double rate = g->kernels / (double)g->counted_ns * 1e9, power = mean_power(g);
    if (g->state == BASELINE) {
        g->rate_sum += rate;
        g->power_sum += power;
        if (++g->base_windows < p->windows) {
            open_window(p, g, now_ns);
            return;
        }
        g->base_rate = g->rate_sum / (double)p->windows;
        g->base_w = g->power_sum / (double)p->windows;
        g->best_objective = objective_of(p->objective, g->base_w, 1);
        g->state = SEARCH;
        g->low = 0;
        g->high = g->top;
        g->left = (trial){.gear = g->high - golden * g->high, .objective = NAN};
        g->right = (trial){.gear = golden * g->high, .objective = NAN};
        if (g->high <= p->bracket)
            end_search(p, g, gpu, command, now_ns);
        else
            next_trial(p, g, gpu, command, now_ns);
        return;
    }
    const double slowdown = g->base_rate / rate;
    trial *t = isnan(g->left.objective) ? &g->left : &g->right;
    t->loss = g->loss = slowdown - 1;
    t->objective = objective_of(p->objective, power, slowdown);
    if (t->loss <= p->con_perf && t->objective < g->best_objective) {
        g->best_objective = t->objective;
        g->best_gear = (int32_t)rint(t->gear);
    }
    next_trial(p, g, gpu, command, now_ns);
}

static void restart(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int64_t now_ns) {
    set_gear(p, g, gpu, command, -1);
    g->state = BASELINE;
    g->base_windows = 0;
    g->rate_sum = g->power_sum = 0;
    g->best_gear = -1;
    g->idle = 0;
    open_window(p, g, now_ns);
}

/* No trial holds where no kernel runs: the default does until one ends. The window goes on meanwhile, as those at the
 * default limit do, but not past its end; one that has seen no kernel begins anew. */
static void watch_kernels(const params *p, gpu_state *g, uint32_t gpu, const fl_gpu_sample *s, int64_t now_ns,
                          fl_command *command) {
    const double ended = known(s, FL_GPU_KERNELS);
    if (ended != g->ended)
        g->ran_ns = now_ns;
    g->ended = ended;
    if (g->state != SEARCH)
        return;
    const uint32_t was_idle = g->idle;
    g->idle = (double)(now_ns - g->ran_ns) * 1e-9 >= p->missing_s + LONG_KERNEL / g->base_rate;
    if (g->idle)
        set_gear(p, g, gpu, command, -1);
    if (g->idle && now_ns >= g->end_ns)
        g->from_kernels = g->from_j = NAN;
    if (g->idle || !was_idle)
        return;
    set_gear(p, g, gpu, command, trial_gear(g));
    if (!(g->kernels > 0))
        open_window(p, g, now_ns);
}

static void step_gpu(const params *p, gpu_state *g, uint32_t gpu, const fl_gpu_sample *s, int64_t now_ns,
                     fl_command *command) {
    g->blind = !readable(s);
    if (!g->blind)
        g->seen_ns = now_ns;
    if (g->state == DONE || g->top == 0)
        return;
    if (!g->blind)
        watch_kernels(p, g, gpu, s, now_ns, command);
    if (g->state == WAIT) {
        const double kernels = known(s, FL_GPU_KERNELS);
        if (kernels > 0 && g->first_ns < 0)
            g->first_ns = now_ns;
        if (g->first_ns >= 0 && now_ns - g->first_ns >= ns_of(p->skip_s))
            restart(p, g, gpu, command, now_ns);
    } else if (g->blind) {
        g->end_ns += now_ns - g->last_ns;
        g->from_kernels = g->from_j = NAN;
        if (g->state == SEARCH && now_ns - g->seen_ns >= ns_of(p->missing_s))
            restart(p, g, gpu, command, now_ns);
    } else if (now_ns >= g->begin_ns && !(g->idle && now_ns >= g->end_ns)) {
        read_window(g, s, now_ns);
        if (now_ns >= g->end_ns && g->kernels > 0 && mean_power(g) > 0)
            end_window(p, g, gpu, command, now_ns);
    }
    g->last_ns = now_ns;
}

enum {
    PROBE_STATE,
    PROBE_LIMIT_SET_W,
    PROBE_BASE_RATE,
    PROBE_LOSS_PCT,
    PROBE_LOW,
    PROBE_HIGH,
    PROBE_OPTIMISATION_S,
    PROBE_HELD,
    PROBES
};

static const fl_probe probe_rows[PROBES] = {
    [PROBE_STATE] = {"state", "", "0 waits for kernels, 1 default limit, 2 searching, 3 done", 1},
    [PROBE_LIMIT_SET_W] = {"limit_set_w", "W", "power limit that holds; -1 the default", 1},
    [PROBE_BASE_RATE] = {"base_rate", "1/s", "kernels per second at the default limit", 1},
    [PROBE_LOSS_PCT] = {"loss_pct", "%", "loss by the rate of kernels, of the last window", 1},
    [PROBE_LOW] = {"low", "", "lower end of the bracket, in gears", 1},
    [PROBE_HIGH] = {"high", "", "upper end of the bracket, in gears", 1},
    [PROBE_OPTIMISATION_S] = {"optimisation_s", "s", "from the first kernel to the end of the search", 1},
    [PROBE_HELD] = {"held", "", "1: decided without readings, or without a limit to set", 1},
};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        step_gpu(p, g, i, &sample->gpu[i], sample->time_ns, command);
        const double shown[PROBES] = {
            [PROBE_STATE] = g->state,
            [PROBE_LIMIT_SET_W] = g->set_gear < 0 ? FL_DEFAULT : g->low_w + g->set_gear * p->step_w,
            [PROBE_BASE_RATE] = g->base_rate,
            [PROBE_LOSS_PCT] = 100 * g->loss,
            [PROBE_LOW] = g->low,
            [PROBE_HIGH] = g->high,
            [PROBE_OPTIMISATION_S] = g->optimised_s,
            [PROBE_HELD] = g->blind || g->top == 0,
        };
        for (int k = 0; k < PROBES; k++)
            fl_show_gpu(command, i, k, shown[k]);
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, con_perf, REAL(0, 10), "", "0.05", "loss of performance that is allowed, by the rate of kernels"),
    FL_PARAM(params, objective, CHOICE("power|energy|edp|ed2p"), "", "energy", "what is minimised"),
    FL_PARAM(params, step_w, REAL(0.001, 1e5), "W", "5", "one gear of the power limit"),
    FL_PARAM(params, low_w, REAL(0, 1e5), "W", "0", "lowest limit tried; 0: the board's lowest"),
    FL_PARAM(params, high_w, REAL(0, 1e5), "W", "0", "highest; 0: the board's default"),
    FL_PARAM(params, windows, INT(1, 1000), "", "4", "windows at the default limit"),
    FL_PARAM(params, bracket, INT(1, 1000), "", "5", "gears in the bracket at which the search ends"),
    FL_PARAM(params, constrained, BOOL, "", "1",
             "1: where a point breaks the bound the search goes up, so that the upper end never does and only the "
             "bracket ends it; 0: by the objective alone, ended by either (which of the two was run is unpublished)"),
    FL_PARAM(params, window_s, REAL(0.001, 1e6), "s", "4", "one window"),
    FL_PARAM(params, skip_s, REAL(0, 1e6), "s", "5",
             "from the first kernel to the first window: the unstable start (assumed)"),
    FL_PARAM(params, settle_ms, REAL(0, 1e6), "ms", "300", "from setting a limit to the window (assumed)"),
    FL_PARAM(params, missing_s, REAL(0, 1e6), "s", "1",
             "time without kernels or power known, or beyond four mean kernels without one that ends; then a trial "
             "goes back to the default (assumed)"),
    FL_PARAM(params, period_ms, REAL(0.001, 3.6e6), "ms", "100", "time from one loop to the next (assumed)"),
};

FL_POLICY(depo) = {FL_POLICY_ABI,
                   .name = "depo",
                   .summary = "golden section search over the power limit; performance is the rate of kernels",
                   .source = "DEPO (FGCS 2023) as run beside MF-GPOEO (IEEE TSUSC 2024, Sec. II-B, Table V)",
                   .gpu_needs = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_POWER_W) |
                                FL_BIT(FL_GPU_KERNELS),
                   .gpu_drives = FL_BIT(FL_SET_POWER_LIMIT_W),
                   .param = param_rows,
                   .param_count = FL_COUNT(param_rows),
                   .probe = probe_rows,
                   .probe_count = PROBES,
                   .param_size = sizeof(params),
                   .gpu_size = sizeof(gpu_state),
                   .init = init,
                   .step = step};
