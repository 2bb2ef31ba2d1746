/* DEPO, the baseline of MF-GPOEO that caps power, as MF-GPOEO's authors ran it. It counts kernels, all alike: the rate
 * of kernels is the performance. Windows at the default limit are the reference; then a search over gears of the power
 * limit, and what it finds holds for good. Each GPU of a node by itself.
 *
 * low, golden and high are gears; golden is the best so far. The bracket goes up from a first guess until the bound
 * holds, and then down until it breaks or a trial is worse. The section then shrinks what lies between low and high.
 * An upper end that breaks the bound ends it with the last one that did not.
 *
 * What the released program leaves open: gears count from the board's lowest limit to its default; no gear lies below
 * the lowest. Kernels count where they end, not where they are launched. A default limit at which no kernel ends gives
 * no rate: it is measured again. While kernels or power are not known a window goes on; after missing_ns the default
 * limit is set and measured again. Without power limits nothing is set. */
#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { WAIT, RESET, BASELINE, RAISE, LOWER, SECTION, DONE };
enum { BASE_WINDOWS = 4, GEARS_MAX = 512, SHORT = 5 }; /* SHORT: gears from low to high at which the search ends */
static const double phi = 0.61803398874989485, weight_old = 0.3;
static const int64_t reset_ns = 1000000000, missing_ns = 1000000000;

typedef struct params {
    double con_perf;
    int64_t objective;
    double step_w, window_s, skip_s, period_ms;
} params;

typedef struct counted { /* of one window or several */
    double time_s, energy_j, kernels;
} counted;

typedef struct gpu_state {
    double low_w;
    counted window, base, gear[GEARS_MAX]; /* gear: time 0 where it was never tried */
    int64_t first_ns, seen_ns, begin_ns;   /* first kernel; last readings; start of the window or of the reset */
    double from_kernels, from_ns, from_j, from_j_ns; /* the last readings of the window; NAN: none yet */
    double window_ns, counter_j, counter_ns, power_sum, power_count;
    double loss, optimised_s;         /* as last found; NAN: not yet */
    int32_t state, base_windows, top; /* top: the highest gear, the default limit */
    int32_t low, golden, high, kept;  /* low: -1 while unknown; kept: the last high within the bound, then the result */
    int32_t trial, set_gear;          /* set_gear: -1 is the default limit */
    uint32_t blind;
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, 0); }

static int64_t ns_of(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        const fl_gpu_facts *f = &facts->gpu[i];
        const double high = f->power_default_w > 0 ? f->power_default_w : f->power_max_w;
        const double top = f->power_min_w > 0 ? floor((high - f->power_min_w) / p->step_w) : 0;
        if (top >= GEARS_MAX)
            return "step_w: more than 512 gears from the lowest power limit to the default";
        g->low_w = f->power_min_w;
        g->top = (int32_t)fmax(top, 0);
        g->first_ns = g->seen_ns = -1;
        g->set_gear = -1;
        g->loss = g->optimised_s = NAN;
    }
    return NULL;
}

/* ---- one window ---------------------------------------------------------------------------------------------------
 */

static double known(const fl_gpu_sample *s, int id) {
    return fl_gpu_known(s, id) && isfinite(s->value[id]) ? s->value[id] : (double)NAN;
}

/* Kernels and power are what a window counts. */
static int readable(const fl_gpu_sample *s) {
    return !isnan(known(s, FL_GPU_KERNELS)) && !(isnan(known(s, FL_GPU_POWER_W)) && isnan(known(s, FL_GPU_ENERGY_J)));
}

static void read_window(gpu_state *g, const fl_gpu_sample *s, int64_t now_ns) {
    const double kernels = known(s, FL_GPU_KERNELS), power = known(s, FL_GPU_POWER_W),
                 joules = known(s, FL_GPU_ENERGY_J), stamp = known(s, FL_GPU_ENERGY_NS);
    if (kernels >= g->from_kernels) {
        g->window.kernels += kernels - g->from_kernels;
        g->window_ns += (double)now_ns - g->from_ns;
    }
    g->from_kernels = kernels;
    g->from_ns = (double)now_ns;
    if (!isnan(power)) {
        g->power_sum += power;
        g->power_count++;
    }
    if (!fl_gpu_fresh(s, FL_GPU_ENERGY_J) || isnan(joules))
        return;
    const double j_ns = isnan(stamp) ? (double)now_ns : stamp;
    if (joules >= g->from_j && j_ns > g->from_j_ns) {
        g->counter_j += joules - g->from_j;
        g->counter_ns += j_ns - g->from_j_ns;
    }
    g->from_j = joules;
    g->from_j_ns = j_ns;
}

/* The step that opens a window is the first reading of its counters; the power then read is that of before. */
static void open_window(gpu_state *g, const fl_gpu_sample *s, int64_t now_ns) {
    g->window = (counted){0};
    g->from_kernels = g->from_ns = g->from_j = g->from_j_ns = NAN;
    g->window_ns = g->counter_j = g->counter_ns = 0;
    g->begin_ns = now_ns;
    read_window(g, s, now_ns);
    g->power_sum = g->power_count = 0;
}

/* Time and energy of the window so far, by the counter of energy where it moved, else by the mean of the power
 * readings. 0: it cannot end yet. */
static int close_window(gpu_state *g) {
    g->window.time_s = g->window_ns / 1e9;
    g->window.energy_j = g->counter_ns > 0 ? g->counter_j * (g->window_ns / g->counter_ns)
                                           : g->power_sum / fmax(g->power_count, 1) * g->window.time_s;
    return g->window.time_s > 0 && g->window.energy_j > 0;
}

/* ---- what a gear is worth -----------------------------------------------------------------------------------------
 */

static double slowdown(const gpu_state *g, int32_t gear) {
    const counted *c = &g->gear[gear];
    return (g->base.kernels / g->base.time_s) / (c->kernels / c->time_s);
}

static double loss(const gpu_state *g, int32_t gear) { return slowdown(g, gear) - 1; }

static double objective(const params *p, const gpu_state *g, int32_t gear) {
    const counted *c = &g->gear[gear];
    double f = (c->energy_j / c->time_s) / (g->base.energy_j / g->base.time_s);
    for (int64_t i = 0; i <= p->objective; i++)
        f *= slowdown(g, gear);
    return f + (loss(g, gear) > p->con_perf);
}

/* Of a gear tried again 0.3 of what was counted before stays. */
static void keep_count(counted *c, const counted *now) {
    const double whole = weight_old + 1;
    if (c->time_s > 0)
        *c = (counted){.time_s = (weight_old * c->time_s + now->time_s) / whole,
                       .energy_j = (weight_old * c->energy_j + now->energy_j) / whole,
                       .kernels = trunc((weight_old * c->kernels + now->kernels) / whole)};
    else
        *c = *now;
}

/* ---- the search ---------------------------------------------------------------------------------------------------
 */

static double watts_of(const params *p, const gpu_state *g) {
    return g->set_gear < 0 ? FL_DEFAULT : g->low_w + g->set_gear * p->step_w;
}

static void set_gear(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int32_t gear) {
    g->set_gear = gear;
    fl_set_gpu(command, gpu, FL_SET_POWER_LIMIT_W, watts_of(p, g));
}

static void reset_limit(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int64_t now_ns) {
    set_gear(p, g, gpu, command, -1);
    g->state = RESET;
    g->begin_ns = now_ns;
}

static void begin(const params *p, gpu_state *g, uint32_t gpu, fl_command *command, int64_t now_ns) {
    g->base = (counted){0};
    g->base_windows = 0;
    reset_limit(p, g, gpu, command, now_ns);
}

/* The first guess: the further the base power lies below the top, the lower, but a tenth of the gears at least. */
static int32_t first_golden(const params *p, const gpu_state *g) {
    const double gears = g->top + 1, base_w = g->base.energy_j / g->base.time_s;
    const double nearest = fmin(fmax(ceil((base_w - g->low_w) / p->step_w - 0.5), 0), g->top);
    return (int32_t)fmax(floor(g->top - gears * fmax(0.1, 0.85 * (gears - nearest) / gears)), 0);
}

/* Before each trial: is the search over? Then g->kept is its result. */
static int is_over(const params *p, gpu_state *g) {
    if (loss(g, g->high) >= p->con_perf)
        return 1;
    g->kept = g->high;
    if (g->high - g->low > SHORT)
        return 0;
    const int32_t end[] = {g->low, g->golden, g->high};
    double least = INFINITY;
    for (int i = 0; i < 3; i++)
        if (end[i] >= 0 && loss(g, end[i]) < p->con_perf && objective(p, g, end[i]) < least) {
            g->kept = end[i];
            least = objective(p, g, end[i]);
        }
    return 1;
}

/* At least a gear below, as golden lies below high. */
static int32_t below_golden(const gpu_state *g) {
    return (int32_t)fmax(floor(g->golden - 0.15 * (g->high - g->golden)), 0);
}

static int32_t section_below(const gpu_state *g) { return (int32_t)round(g->low + phi * (g->golden - g->low)); }

static int32_t section_above(const gpu_state *g) {
    return (int32_t)round(g->golden + (1 - phi) * (g->high - g->golden));
}

static int32_t raise_golden(const params *p, gpu_state *g) {
    if (loss(g, g->golden) > p->con_perf) {
        g->golden = (int32_t)floor(g->golden + phi * (g->high - g->golden));
        return g->golden;
    }
    g->state = LOWER;
    return below_golden(g);
}

/* The program's section starts below golden where golden lies in the upper half. After the bracket it never does while
 * more than SHORT gears are left: low lies at most 0.15 (high - golden) + 1 below it. */
static int32_t lower_golden(const params *p, gpu_state *g) {
    const int32_t x = g->trial;
    if (loss(g, x) > p->con_perf || objective(p, g, x) >= objective(p, g, g->golden)) {
        g->low = x;
        g->state = SECTION;
        return section_above(g);
    }
    g->high = g->golden;
    g->golden = x;
    return below_golden(g);
}

static int32_t shrink_section(const params *p, gpu_state *g) {
    const int32_t x = g->trial;
    const double at_golden = objective(p, g, g->golden), at_x = objective(p, g, x);
    if (x > g->golden) {
        if (at_golden <= at_x) {
            g->high = x;
            return section_below(g);
        }
        g->low = g->golden;
        g->golden = x;
        return section_above(g);
    }
    if (at_x <= at_golden) {
        g->high = g->golden;
        g->golden = x;
        return section_below(g);
    }
    g->low = x;
    return section_above(g);
}

static void open_trial(const params *p, gpu_state *g, uint32_t gpu, const fl_gpu_sample *s, int32_t gear,
                       int64_t now_ns, fl_command *command) {
    if (is_over(p, g)) {
        set_gear(p, g, gpu, command, g->kept);
        g->state = DONE;
        g->loss = loss(g, g->kept);
        g->optimised_s = (double)(now_ns - g->first_ns) * 1e-9;
        return;
    }
    set_gear(p, g, gpu, command, gear);
    g->trial = gear;
    open_window(g, s, now_ns);
}

/* The default limit is the top gear: its objective is 1, its loss 0. */
static void start_search(const params *p, gpu_state *g) {
    for (int32_t i = 0; i <= g->top; i++)
        g->gear[i] = (counted){0};
    g->gear[g->top] = g->base;
    g->state = RAISE;
    g->low = -1;
    g->high = g->kept = g->top;
    g->golden = first_golden(p, g);
}

static void end_window(const params *p, gpu_state *g, uint32_t gpu, const fl_gpu_sample *s, int64_t now_ns,
                       fl_command *command) {
    if (g->state != BASELINE) {
        keep_count(&g->gear[g->trial], &g->window);
        g->loss = loss(g, g->trial);
        const int32_t gear = g->state == RAISE   ? raise_golden(p, g)
                             : g->state == LOWER ? lower_golden(p, g)
                                                 : shrink_section(p, g);
        open_trial(p, g, gpu, s, gear, now_ns, command);
        return;
    }
    g->base.time_s += g->window.time_s;
    g->base.energy_j += g->window.energy_j;
    g->base.kernels += g->window.kernels;
    if (++g->base_windows < BASE_WINDOWS) {
        reset_limit(p, g, gpu, command, now_ns);
    } else if (!(g->base.kernels > 0)) {
        begin(p, g, gpu, command, now_ns);
    } else {
        start_search(p, g);
        open_trial(p, g, gpu, s, g->golden, now_ns, command);
    }
}

static void step_gpu(const params *p, gpu_state *g, uint32_t gpu, const fl_gpu_sample *s, int64_t now_ns,
                     fl_command *command) {
    g->blind = !readable(s);
    if (!g->blind)
        g->seen_ns = now_ns;
    if (g->state == DONE || g->top == 0)
        return;
    if (g->state == WAIT) {
        if (known(s, FL_GPU_KERNELS) > 0 && g->first_ns < 0)
            g->first_ns = now_ns;
        if (g->first_ns >= 0 && now_ns - g->first_ns >= ns_of(p->skip_s))
            begin(p, g, gpu, command, now_ns);
    } else if (g->blind) {
        if (g->state != RESET && now_ns - g->seen_ns >= missing_ns)
            begin(p, g, gpu, command, now_ns);
    } else if (g->state == RESET) {
        if (now_ns - g->begin_ns < reset_ns)
            return;
        g->state = BASELINE;
        open_window(g, s, now_ns);
    } else {
        read_window(g, s, now_ns);
        if (now_ns - g->begin_ns >= ns_of(p->window_s) && close_window(g))
            end_window(p, g, gpu, s, now_ns, command);
    }
}

#define PROBES(X)                                                                                                      \
    X("state", "",                                                                                                     \
      "0 waits for kernels, 1 default limit after a reset, 2 measures it, 3 raises the first guess, "                  \
      "4 goes down from it, 5 shrinks the section, 6 done",                                                            \
      g->state)                                                                                                        \
    X("limit_set_w", "W", "power limit that holds; -1 the default", watts_of(p, g))                                    \
    X("base_rate", "1/s", "kernels per second at the default limit",                                                   \
      g->state >= RAISE ? g->base.kernels / g->base.time_s : (double)NAN)                                              \
    X("loss_pct", "%", "loss by the rate of kernels, of the last trial; once done, of the limit kept",                 \
      isfinite(g->loss) ? 100 * g->loss : (double)NAN)                                                                 \
    X("low", "", "lower end, in gears; -1 unknown", g->low)                                                            \
    X("golden", "", "the best gear between the ends", g->golden)                                                       \
    X("high", "", "upper end, in gears", g->high)                                                                      \
    X("optimisation_s", "s", "from the first kernel to the end of the search", g->optimised_s)                         \
    X("held", "", "1: decided without readings, or without a limit to set", g->blind || g->top == 0)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        step_gpu(p, g, i, &sample->gpu[i], sample->time_ns, command);
        fl_show_all(command, i, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, con_perf, REAL(0, 10), "", "0.05", "loss of performance that is allowed, by the rate of kernels"),
    FL_PARAM(params, objective, CHOICE("energy|edp|ed2p"), "", "energy", "what is minimised"),
    FL_PARAM(params, step_w, REAL(0.001, 1e5), "W", "5", "one gear of the power limit"),
    FL_PARAM(params, window_s, REAL(0.001, 1e6), "s", "4", "one window"),
    FL_PARAM(params, skip_s, REAL(0, 1e6), "s", "16", "from the first kernel to the first reset: the unstable start"),
    FL_PARAM(params, period_ms, REAL(0.001, 3.6e6), "ms", "100", "time from one loop to the next (assumed)"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_ENERGY_J),
    FL_NEEDS(GPU_ENERGY_NS),
    FL_NEEDS(GPU_POWER_W),
    FL_NEEDS(GPU_KERNELS),
};

FL_POLICY(depo) = {FL_POLICY_ABI,
                   .name = "depo",
                   .summary = "searches power limits by bracket and golden section; performance is the kernel rate",
                   .source = "DEPO (FGCS 2023) as the authors of MF-GPOEO ran it (IEEE TSUSC 2024, Sec. II-B, Table V; "
                             "released program)",
                   .gpu_drives = FL_BIT(FL_SET_POWER_LIMIT_W),
                   .gpu_size = sizeof(gpu_state),
                   FL_POLICY_PARTS(params)};
