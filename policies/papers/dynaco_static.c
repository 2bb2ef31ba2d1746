/* What DynaCo is compared with (SC '13, sections 2 and 6): the hardware's own power management, which boosts CPU and
 * GPU while there is room, and the best pair of states for each kernel, found offline by trying all. */
#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

static int64_t delay_ns(double period_ms) { return (int64_t)(period_ms * 1e6 + 0.5); }

/* depth 0: boost; 1: the ladder's top; and on from there. */
static void set_cpu(fl_command *c, fl_ladder l, int64_t depth) {
    if (!l.count)
        return;
    fl_set_host(c, FL_SET_HOST_CPU_MHZ, fl_ladder_at(l, (int64_t)l.count - (depth > 0 ? depth : 1)));
    fl_set_host(c, FL_SET_HOST_CPU_BOOST, depth == 0);
}

static void set_gpu(fl_command *c, uint32_t gpu, fl_ladder l, int64_t depth) {
    fl_set_gpu(c, gpu, FL_SET_SM_MHZ, fl_ladder_at(l, (int64_t)l.count - 1 - depth));
}

/* ---- bapm ---------------------------------------------------------------------------------------------------------
 * Section 2: (1) power is estimated, (2) converted into a temperature of each component, (3) limits of power are dealt
 * out by a static weight; each side then takes the highest state that fits. Here a temperature follows ambient_c +
 * c_per_w x package power + own_c_per_w x its own with a time constant. While one has reached temp_c, the package may
 * draw what holds temp_c; else what its TDP says. A side steps down while the package is over its limit and the side
 * over its share, and both step up while there is room. */

#ifndef POLICY_PLUGIN /* a plug-in holds one policy */

typedef struct bapm_params {
    double power_w, cpu_weight, release, period_ms;
    double temp_c, ambient_c, c_per_w, own_c_per_w, tau_s;
} bapm_params;

typedef struct bapm_node {
    double energy_j;
    int64_t energy_ns, cpu_depth;
    double cpu_c, package_c; /* estimated: what it is above the ambient by its own power, and by the package's */
    int64_t warmed_ns;       /* up to here */
    uint64_t known;
} bapm_node;

typedef struct bapm_gpu {
    int64_t depth;
    double own_c; /* as cpu_c */
} bapm_gpu;

static const char *bapm_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    return fl_need_ladders(facts);
}

static double cpu_watts(bapm_node *n, const fl_sample *s) {
    const double j = s->host.value[FL_HOST_CPU_ENERGY_J];
    double watts = NAN;
    if (!fl_host_known(&s->host, FL_HOST_CPU_ENERGY_J) || !isfinite(j)) {
        n->known = 0;
        return NAN;
    }
    if (!(s->host.fresh >> FL_HOST_CPU_ENERGY_J & 1))
        return NAN;
    if (n->known && s->time_ns > n->energy_ns && j >= n->energy_j)
        watts = (j - n->energy_j) / ((double)(s->time_ns - n->energy_ns) * 1e-9);
    n->energy_j = j;
    n->energy_ns = s->time_ns;
    n->known = 1;
    return watts;
}

/* ---- step 2: temperatures ---- */

static int estimates(const bapm_params *p) { return p->temp_c > 0 && p->c_per_w > 0; }

/* All of them follow the mean power since the last estimate; they begin at the ambient. Returns the highest. */
static double warm(bapm_node *n, bapm_gpu *gpu, const bapm_params *p, const fl_sample *s, double cpu_w) {
    const double dt = (double)(s->time_ns - n->warmed_ns) * 1e-9, keep = exp(-dt / p->tau_s);
    double all_w = cpu_w;
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const double w = s->gpu[i].value[FL_GPU_POWER_W];
        gpu[i].own_c = keep * gpu[i].own_c + (1 - keep) * p->own_c_per_w * w;
        all_w += w;
    }
    n->cpu_c = keep * n->cpu_c + (1 - keep) * p->own_c_per_w * cpu_w;
    n->package_c = keep * n->package_c + (1 - keep) * p->c_per_w * all_w;
    n->warmed_ns = s->time_ns;
    double own = n->cpu_c;
    for (uint32_t i = 0; i < s->gpu_count; i++)
        own = fmax(own, gpu[i].own_c);
    return p->ambient_c + n->package_c + own;
}

/* ---- step 3: limits ---- */

/* Without heat: the TDP of an APU. 0: none. */
static double limit_of(const bapm_params *p, const fl_facts *facts) {
    return p->power_w > 0 ? p->power_w : facts->host.apu && facts->gpu_count ? facts->gpu[0].tdp_w : 0;
}

enum { BAPM_PACKAGE_W, BAPM_CPU_DEPTH, BAPM_HELD, BAPM_HOTTEST_C, BAPM_LIMIT_W, BAPM_GPU_DEPTH, BAPM_PROBES };

static const fl_probe bapm_probes[BAPM_PROBES] = {
    [BAPM_PACKAGE_W] = {"package_w", "W", "power of CPU and GPUs, as estimated (section 2, step 1)", 0},
    [BAPM_CPU_DEPTH] = {"cpu_depth", "", "CPU state: 0 boost, 1 the ladder's top, and on", 0},
    [BAPM_HELD] = {"held", "", "1: decided without readings, the last states hold", 0},
    [BAPM_HOTTEST_C] = {"hottest_c", "C", "highest temperature of a component, as estimated (step 2)", 0},
    [BAPM_LIMIT_W] = {"limit_w", "W", "what CPU and GPUs may draw together (step 3)", 0},
    [BAPM_GPU_DEPTH] = {"gpu_depth", "", "GPU state, from the ladder's top", 1},
};

static double gpu_watts(const fl_sample *s) {
    double sum = 0;
    for (uint32_t i = 0; i < s->gpu_count; i++)
        sum += fl_gpu_known(&s->gpu[i], FL_GPU_POWER_W) && isfinite(s->gpu[i].value[FL_GPU_POWER_W])
                   ? s->gpu[i].value[FL_GPU_POWER_W]
                   : (double)NAN;
    return sum;
}

static void bapm_step(void *state, const void *params, const fl_facts *facts, const fl_sample *s, fl_command *command) {
    const bapm_params *p = params;
    bapm_node *n = state;
    bapm_gpu *gpu = fl_gpu_states(state, sizeof *n);
    double limit = limit_of(p, facts);
    const int reads = limit > 0 || estimates(p);
    const double cpu_w = cpu_watts(n, s), gpu_w = gpu_watts(s), all = reads ? cpu_w + gpu_w : 0;
    const int held = isnan(all);
    if (!held && estimates(p)) {
        const double hottest = warm(n, gpu, p, s, cpu_w), holds = (p->temp_c - p->ambient_c) / p->c_per_w;
        if (hottest >= p->temp_c)
            limit = limit > 0 ? fmin(limit, holds) : holds;
        fl_show_node(command, BAPM_HOTTEST_C, hottest);
    }
    const int over = !held && limit > 0 && all >= limit, room = !held && (limit <= 0 || all < p->release * limit);
    if (over && cpu_w > p->cpu_weight * limit)
        n->cpu_depth += n->cpu_depth < (int64_t)facts->host.cpu.count;
    else if (room)
        n->cpu_depth -= n->cpu_depth > 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (over && gpu_w > (1 - p->cpu_weight) * limit)
            gpu[i].depth += gpu[i].depth + 1 < (int64_t)facts->gpu[i].sm.count;
        else if (room)
            gpu[i].depth -= gpu[i].depth > 0;
        if (!held)
            set_gpu(command, i, facts->gpu[i].sm, gpu[i].depth);
        fl_show_gpu(command, i, BAPM_GPU_DEPTH, (double)gpu[i].depth);
    }
    if (!held)
        set_cpu(command, facts->host.cpu, n->cpu_depth);
    fl_show_node(command, BAPM_PACKAGE_W, all);
    fl_show_node(command, BAPM_LIMIT_W, limit);
    fl_show_node(command, BAPM_CPU_DEPTH, (double)n->cpu_depth);
    if (reads) /* without a limit no reading is waited for */
        fl_show_node(command, BAPM_HELD, held);
    command->delay_ns = delay_ns(p->period_ms);
}

static const fl_param bapm_rows[] = {
    FL_PARAM(bapm_params, power_w, REAL(0, 1e5), "W", "0",
             "what CPU and GPUs may draw together; 0: on an APU its TDP, elsewhere no limit"),
    FL_PARAM(bapm_params, cpu_weight, REAL(0, 1), "", "0.5",
             "the CPU's share under a limit: the static weight (unpublished; assumed)"),
    FL_PARAM(bapm_params, release, REAL(0, 1), "", "0.95",
             "below this share of the limit both step up (unpublished; assumed)"),
    FL_PARAM(bapm_params, temp_c, REAL(0, 1000), "C", "0",
             "highest temperature of a component (unpublished); 0: not watched, as nothing met it (section 3)"),
    FL_PARAM(bapm_params, ambient_c, REAL(-50, 150), "C", "30", "where temperatures begin (unpublished; assumed)"),
    FL_PARAM(bapm_params, c_per_w, REAL(0, 1000), "C/W", "0",
             "warming of every component by each watt of the package (unpublished; a platform's); 0: not watched"),
    FL_PARAM(bapm_params, own_c_per_w, REAL(0, 1000), "C/W", "0",
             "further warming of a component by each watt of its own (unpublished; assumed 0: one die)"),
    FL_PARAM(bapm_params, tau_s, REAL(1e-3, 1e6), "s", "60", "time constant of it (unpublished; assumed)"),
    FL_PARAM(bapm_params, period_ms, REAL(0.001, 3.6e6), "ms", "10",
             "time between looks (unpublished; assumed as DynaCo's)"),
};

static const fl_signal_row bapm_signals[] = {
    FL_NEEDS(GPU_POWER_W),
    FL_NEEDS(HOST_CPU_ENERGY_J),
};

FL_POLICY(bapm) = {FL_POLICY_ABI,
                   .name = "bapm",
                   .summary = "boosts CPU and GPU to their highest states while power and temperature allow",
                   .source = "DynaCo (SC '13), section 2: AMD Turbo CORE, bidirectional application power management",
                   FL_SIGNAL_ROWS(bapm_signals),
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                   .host_drives = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST),
                   FL_PARAM_ROWS(bapm_rows, bapm_params),
                   FL_PROBE_ROWS(bapm_probes),
                   .state_size = sizeof(bapm_node),
                   .gpu_size = sizeof(bapm_gpu),
                   .init = bapm_init,
                   .step = bapm_step};

#endif

/* ---- ideal-static -------------------------------------------------------------------------------------------------
 * The table says which pair of states each kernel gets; foldline fit policy sensitivity makes it from runs over all
 * pairs. A policy sees a kernel only once it has ended, so the one that runs now is looked up in the past: the kernels
 * that ended are kept as runs of equal ones, and of the places where the present run stood before, the one counts that
 * the most runs before it agree with; the kernel that followed there follows now. Programs repeat themselves: from the
 * second iteration on this names the right kernel before it begins. */

enum { RUNS_MAX = 128, CONTEXT_MAX = 12 };
#define UNKNOWN UINT32_MAX /* no kind */

typedef struct static_params {
    fl_table states;
    double period_ms;
} static_params;

typedef struct kernel_run { /* equal kernels, one after the other */
    uint32_t kind, length;
} kernel_run;

typedef struct static_gpu {
    kernel_run past[RUNS_MAX]; /* a ring; the last of them is the present one */
    uint64_t runs;             /* ever begun */
    uint32_t guess, looked_up; /* kinds; row is that of the latter */
    int64_t row;               /* of the table; -1: none */
} static_gpu;

static static_gpu *static_gpus(void *state) { return fl_gpu_states(state, 0); }

static const char *static_init(void *state, const void *params, const fl_facts *facts) {
    const static_params *p = params;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        static_gpus(state)[i].guess = static_gpus(state)[i].looked_up = UNKNOWN;
    for (uint32_t i = 0; i < 2 * p->states.row_count; i++)
        if (!(p->states.cell[i] > 0))
            return "states must hold clocks above 0";
    return fl_need_ladders(facts);
}

static int same_text(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* By name: kinds are many (one for each grid and block), so none is kept but the last. */
static int64_t row_of(static_gpu *g, const fl_table *t, const fl_sample *s, uint32_t kind) {
    if (kind >= s->kind_count)
        return -1;
    if (g->looked_up != kind) {
        uint32_t i = 0;
        while (i < t->row_count && !same_text(t->key[i], s->kind[kind].name))
            i++;
        g->row = i < t->row_count ? (int64_t)i : -1;
        g->looked_up = kind;
    }
    return g->row;
}

/* back: 0 is the present run, 1 the one before it. */
static const kernel_run *run_at(const static_gpu *g, uint64_t back) {
    return &g->past[(g->runs - 1 - back) % RUNS_MAX];
}

static void take_record(static_gpu *g, uint32_t kind) {
    if (g->runs && run_at(g, 0)->kind == kind) {
        g->past[(g->runs - 1) % RUNS_MAX].length++;
        return;
    }
    g->runs++;
    g->past[(g->runs - 1) % RUNS_MAX] = (kernel_run){.kind = kind, .length = 1};
}

/* How many runs before `back` equal those before the present one. */
static uint32_t agreement(const static_gpu *g, uint64_t back, uint64_t held) {
    uint32_t n = 0;
    while (n < CONTEXT_MAX && back + n + 1 < held) {
        const kernel_run *a = run_at(g, n + 1), *b = run_at(g, back + n + 1);
        if (a->kind != b->kind || a->length != b->length)
            break;
        n++;
    }
    return n;
}

static uint32_t running(const static_gpu *g) {
    const kernel_run *now = run_at(g, 0);
    const uint64_t held = g->runs < RUNS_MAX ? g->runs : RUNS_MAX;
    uint32_t most = 0, guess = now->kind;
    for (uint64_t back = held - 1; back > 0; back--) { /* of equals, the latest */
        const kernel_run *then = run_at(g, back);
        if (then->kind != now->kind || then->length < now->length)
            continue;
        const uint32_t n = agreement(g, back, held) + 1;
        if (n >= most) {
            most = n;
            guess = then->length > now->length ? now->kind : run_at(g, back - 1)->kind;
        }
    }
    return guess;
}

enum { STATIC_KIND, STATIC_HELD, STATIC_PROBES };

static const fl_probe static_probes[STATIC_PROBES] = {
    [STATIC_KIND] = {"kind", "", "kind of kernel taken to run now", 1},
    [STATIC_HELD] = {"held", "", "1: no kernel with a row is known to run, the last states hold", 1},
};

static void static_step(void *state, const void *params, const fl_facts *facts, const fl_sample *s,
                        fl_command *command) {
    const static_params *p = params;
    static_gpu *gpu = static_gpus(state);
    double cpu_mhz = 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        static_gpu *g = &gpu[i];
        for (uint64_t k = 0; s->record && k < s->record_count; k++)
            if (s->record[k].gpu == i)
                take_record(g, s->record[k].kind);
        g->guess = g->runs ? running(g) : UNKNOWN;
        const int64_t row = row_of(g, &p->states, s, g->guess);
        fl_show_gpu(command, i, STATIC_KIND, g->guess == UNKNOWN ? (double)NAN : (double)g->guess);
        fl_show_gpu(command, i, STATIC_HELD, row < 0);
        if (row < 0)
            continue;
        cpu_mhz = fmax(cpu_mhz, p->states.cell[2 * row]);
        fl_set_gpu(command, i, FL_SET_SM_MHZ, p->states.cell[2 * row + 1]);
    }
    if (cpu_mhz > 0 && facts->host.cpu.count) {
        const double top = fl_ladder_max(facts->host.cpu);
        fl_set_host(command, FL_SET_HOST_CPU_MHZ, fmin(cpu_mhz, top));
        fl_set_host(command, FL_SET_HOST_CPU_BOOST, cpu_mhz > top);
    }
    command->delay_ns = delay_ns(p->period_ms);
}

static const fl_param static_rows[] = {
    FL_PARAM(static_params, states, TABLE("key:kernel|cpu_mhz|sm_mhz"), "MHz", "",
             "best pair of states of each kernel (section 6: offline profiling, an entire state-space search); a CPU "
             "clock above the software's ladder allows boost; kernels that are not listed keep what is set"),
    FL_PARAM(static_params, period_ms, REAL(0.001, 3.6e6), "ms", "1",
             "time between looks at the kernels that ended (assumed)"),
};

static const fl_signal_row static_signals[] = {
    FL_NEEDS(KERNEL_RECORDS),
};

FL_POLICY(idealstatic) = {FL_POLICY_ABI,
                          .name = "ideal-static",
                          .summary = "sets the best pair of states for the running kernel, from a table",
                          .source = "DynaCo (SC '13), section 6: the ideal static scheme",
                          .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                          .host_drives = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST),
                          FL_SIGNAL_ROWS(static_signals),
                          FL_PARAM_ROWS(static_rows, static_params),
                          FL_PROBE_ROWS(static_probes),
                          .gpu_size = sizeof(static_gpu),
                          .init = static_init,
                          .step = static_step};
