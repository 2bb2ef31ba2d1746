/* DynaCo (Paul et al., SC '13 and Scientific Programming 2014): DVFS states of a CPU and a GPU that depend on each
 * other, chosen each 10 ms from three metrics of frequency sensitivity.
 *
 * 1levelTh (Algorithm 1): the CPU goes to P2 where it is not sensitive, never below. multilevelTh (Algorithm 2): there
 * it walks between P2 and the lowest state along the gradient of the memory access rate. The GPU has three states.
 *
 * Where the CPU is not sensitive and the GPU is (line 25), the `end if`s of Algorithm 2 balance only if lines 32 to 42
 * belong to the branches below: as printed the CPU is then not set at all. The text has it set: power shifts to the GPU
 * (4.2), BFS at GPU-high saves on the CPU (6.2). And it has it walk: all low states in phases of low sensitivity (4.2);
 * Lulesh at P3 and P4 for 59 % of the time while at GPU-high for 91 % (6.2). That Force starves below P2 (3.3) would
 * speak for P2, which Algorithm 1 sets on line 24 before it looks at the GPU. cpu_beside_high says which.
 *
 * CPU states count from the top of the ladder: P0 is its highest clock, boost stands above it. Each GPU decides for
 * itself; the CPU takes the highest state that one of them asks for. A GPU with a metric that is not known keeps its
 * state; where all are so, the CPU does too.
 *
 * Counters refresh when they will, not each step and not all in the same one: between its refreshes a counter's last
 * rate stands, for stale_ms at most. The gradient is taken once all of them have refreshed. */
#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct params {
    double high_pct, medium_pct, upc_threshold, bus_efficiency_pct, period_ms, stale_ms;
    int64_t low_pstate;
    double gpu_high_mhz, gpu_med_mhz, gpu_low_mhz, peak_gb_s;
    double mem_threshold_gb_s; /* from here on multilevelTh only */
    int64_t listing, cpu_beside_high;
} params;

enum { BESIDE_WALK, BESIDE_P2, BESIDE_PRINTED }; /* cpu_beside_high */

typedef struct counter { /* its last fresh reading */
    double value;
    double rate; /* per second, up to that reading; NAN = not known */
    int64_t at_ns;
    uint32_t known, renewed; /* renewed: the rate is one that no gradient has seen */
} counter;

typedef struct node_state {
    counter uops, cycles, cpu_bytes;
    int64_t low_pstate; /* the listing's CPU-low-power_Pstate */
    double rate_gb_s;   /* memory access rate of the period before; NAN = not known */
} node_state;

typedef struct gpu_state {
    counter bytes;
    double rate_gb_s; /* of its memory traffic, at this step */
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, sizeof(node_state)); }

/* Lines of Algorithm 1 that set the GPU's state; HELD where a metric is not known. */
enum { HELD = 0, MEMORY = 4, BOTH = 11, CPU_MED = 15, CPU_LOW = 18, GPU_HIGH = 26, GPU_MED = 29, GPU_LOW = 31 };
/* Lines of Algorithm 2 at which the walk ends; HELD where there is no gradient. */
enum { AT_LOWEST = 35, DEEPER = 36, AT_P2 = 39, BACK = 40 };
enum { CPU_HELD, CPU_LOW_POWER, CPU_BASE, CPU_BOOST }; /* in rising order of clock */

/* ---- metrics (section 4.1) ----------------------------------------------------------------------------------------
 */

/* Growth per second between a counter's last two fresh readings; NAN where one of them is missing, or too old. */
static double rate_of(counter *c, int known, int fresh, double value, int64_t now_ns, int64_t stale_ns) {
    if (!known || !isfinite(value)) {
        *c = (counter){.rate = NAN};
        return NAN;
    }
    if (!fresh)
        return c->known && now_ns - c->at_ns <= stale_ns ? c->rate : (double)NAN;
    double rate = NAN;
    if (c->known && now_ns > c->at_ns && value >= c->value)
        rate = (value - c->value) / ((double)(now_ns - c->at_ns) * 1e-9);
    *c = (counter){.value = value, .rate = rate, .at_ns = now_ns, .known = 1, .renewed = 1};
    return rate;
}

static int64_t ns_of(double ms) { return (int64_t)(ms * 1e6 + 0.5); }

static double host_rate(counter *c, const params *p, const fl_sample *s, int id) {
    return rate_of(c, fl_host_known(&s->host, id), (int)(s->host.fresh >> id & 1), s->host.value[id], s->time_ns,
                   ns_of(p->stale_ms));
}

static double gpu_rate_gb_s(counter *c, const params *p, const fl_sample *s, const fl_gpu_sample *g) {
    return 1e-9 * rate_of(c, fl_gpu_known(g, FL_GPU_DRAM_BYTES), fl_gpu_fresh(g, FL_GPU_DRAM_BYTES),
                          g->value[FL_GPU_DRAM_BYTES], s->time_ns, ns_of(p->stale_ms));
}

/* Retired micro-operations per cycle over all cores, each weighted with its unhalted cycles; a CPU that never woke
 * retired none. */
static double clock_weighted_upc(node_state *n, const params *p, const fl_sample *s) {
    const double uops = host_rate(&n->uops, p, s, FL_HOST_CPU_UOPS);
    const double cycles = host_rate(&n->cycles, p, s, FL_HOST_CPU_CYCLES);
    return cycles > 0 ? uops / cycles : isnan(cycles) ? (double)NAN : 0 * uops;
}

/* ALUBusy over GPUClockBusy, in percent; an idle GPU asks for nothing. */
static double weighted_alu_busy(const fl_gpu_sample *g) {
    const double alu = g->value[FL_GPU_ALU_BUSY_PCT], busy = g->value[FL_GPU_GPU_CLOCK_BUSY_PCT];
    if (!fl_gpu_known(g, FL_GPU_ALU_BUSY_PCT) || !fl_gpu_known(g, FL_GPU_GPU_CLOCK_BUSY_PCT) || !isfinite(alu) ||
        !isfinite(busy))
        return NAN;
    return busy > 0 ? 100 * alu / busy : 0;
}

/* What CPU and all GPUs with a known rate draw from the memory that they share, or one GPU from its own. */
static double peak_gb_s(const params *p, const fl_facts *facts, uint32_t gpu) {
    if (p->peak_gb_s > 0)
        return p->peak_gb_s;
    return 1e-9 * (facts->host.apu ? facts->host.peak_bytes_per_s : facts->gpu[gpu].peak_bytes_per_s);
}

/* ---- decisions ----------------------------------------------------------------------------------------------------
 */

/* Algorithm 1, lines 2 to 34: the line that sets the GPU. */
static int line_of(const params *p, double mem_util_pct, double upc, double alu_pct) {
    if (isnan(mem_util_pct) || isnan(upc) || isnan(alu_pct))
        return HELD;
    if (mem_util_pct >= p->bus_efficiency_pct)
        return MEMORY;
    const int high = alu_pct >= p->high_pct, medium = alu_pct >= p->medium_pct;
    if (upc >= p->upc_threshold)
        return high ? BOTH : medium ? CPU_MED : CPU_LOW;
    return high ? GPU_HIGH : medium ? GPU_MED : GPU_LOW;
}

static int cpu_of(const params *p, int line) {
    switch (line) {
    case HELD:
        return CPU_HELD;
    case GPU_HIGH:
        return p->cpu_beside_high == BESIDE_PRINTED ? CPU_HELD : CPU_LOW_POWER;
    case BOTH:
        return CPU_BASE;
    case CPU_MED:
    case CPU_LOW:
        return CPU_BOOST;
    default:
        return CPU_LOW_POWER;
    }
}

static double gpu_mhz_of(const params *p, fl_ladder l, int line) {
    switch (line) {
    case BOTH:
    case GPU_HIGH:
        return p->gpu_high_mhz > 0 ? p->gpu_high_mhz : fl_ladder_max(l);
    case CPU_LOW:
    case GPU_LOW:
        return p->gpu_low_mhz > 0 ? p->gpu_low_mhz : fl_ladder_share(l, 0.5);
    default:
        return p->gpu_med_mhz > 0 ? p->gpu_med_mhz : fl_ladder_share(l, 0.79);
    }
}

/* Algorithm 2, lines 33 to 42, after the state has been set: deeper while the access rate does not fall. As printed the
 * walk goes one past the lowest state (which then takes a step more to leave), and up to P1. Returns the line taken. */
static int walk(node_state *n, const params *p, fl_ladder l, double gradient) {
    const int64_t lowest = (int64_t)l.count - 1;
    if (isnan(gradient))
        return HELD;
    if (gradient >= p->mem_threshold_gb_s) {
        const int deeper = n->low_pstate < lowest + (p->listing ? 1 : 0);
        n->low_pstate += deeper;
        return deeper ? DEEPER : AT_LOWEST;
    }
    const int back = n->low_pstate > (p->listing ? 1 : p->low_pstate);
    n->low_pstate -= back;
    return back ? BACK : AT_P2;
}

/* Sets the CPU and returns the P-state set, -1 for boost. */
static double set_cpu(fl_command *c, fl_ladder l, int cpu, int64_t low_pstate) {
    const int64_t lowest = (int64_t)l.count - 1;
    const int64_t pstate = cpu == CPU_LOW_POWER ? (low_pstate < lowest ? low_pstate : lowest) : 0;
    fl_set_host(c, FL_SET_HOST_CPU_MHZ, fl_ladder_at(l, lowest - pstate));
    fl_set_host(c, FL_SET_HOST_CPU_BOOST, cpu == CPU_BOOST);
    return cpu == CPU_BOOST ? -1 : (double)pstate;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    node_state *n = state;
    const params *p = param_bytes;
    if (p->medium_pct > p->high_pct)
        return "medium_pct must not exceed high_pct";
    n->low_pstate = p->low_pstate;
    n->rate_gb_s = NAN;
    return fl_need_ladders(facts);
}

enum {
    PROBE_CLOCK_WEIGHTED_UPC,
    PROBE_GRADIENT_GB_S,
    PROBE_LOW_PSTATE,
    PROBE_CPU_PSTATE,
    PROBE_WALK_LINE,
    PROBE_WEIGHTED_ALU_BUSY,
    PROBE_GLOBAL_MEM_UTIL,
    PROBE_LINE,
    PROBE_HELD,
    PROBES
};

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK_WEIGHTED_UPC] = {"clock_weighted_upc", "uops/cycle", "ClockWeightedUPC (section 4.1)", 0},
    [PROBE_GRADIENT_GB_S] = {"gradient_gb_s", "GB/s", "change of the CPU and GPU memory access rate (Alg. 2 line 33)",
                             0},
    [PROBE_LOW_PSTATE] = {"low_pstate", "", "CPU-low-power_Pstate after the step (Alg. 2)", 0},
    [PROBE_CPU_PSTATE] = {"cpu_pstate", "", "P-state set; -1: boost", 0},
    [PROBE_WALK_LINE] = {"walk_line", "",
                         "line of Alg. 2 that ends it: 36 deeper, 35 lowest, 40 back, 39 at P2; 0: none", 0},
    [PROBE_WEIGHTED_ALU_BUSY] = {"weighted_alu_busy", "%", "WeightedALUBusy (section 4.1)", 1},
    [PROBE_GLOBAL_MEM_UTIL] = {"global_mem_util", "%", "Global_MemUtil (section 4.1)", 1},
    [PROBE_LINE] = {"line", "", "line of Alg. 1 that set the GPU's state; 0: none", 1},
    [PROBE_HELD] = {"held", "", "1: decided without readings, the last states hold", 1},
};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *s, fl_command *command,
                 int multilevel) {
    node_state *n = state;
    gpu_state *gpu = gpus(state);
    const params *p = param_bytes;
    const fl_ladder cpu_ladder = facts->host.cpu;
    const uint32_t count = facts->gpu_count;

    const double upc = clock_weighted_upc(n, p, s);
    const double cpu_rate = 1e-9 * host_rate(&n->cpu_bytes, p, s, FL_HOST_CPU_MEM_BYTES);
    double all = cpu_rate; /* of CPU and GPUs; the GPUs whose rate is not known add nothing */
    uint32_t rates = 0;
    int renewed = n->cpu_bytes.renewed != 0;
    for (uint32_t i = 0; i < count; i++) {
        const double rate = gpu_rate_gb_s(&gpu[i].bytes, p, s, &s->gpu[i]);
        gpu[i].rate_gb_s = rate;
        if (isnan(rate))
            continue;
        rates++;
        renewed &= gpu[i].bytes.renewed != 0;
        all += rate;
    }
    all = rates ? all : (double)NAN;

    int cpu = CPU_HELD, insensitive = 0, shallow = 0; /* shallow: a GPU asks for P2 itself, as line 5 does */
    for (uint32_t i = 0; i < count; i++) {
        const double own = gpu[i].rate_gb_s, peak = peak_gb_s(p, facts, i);
        const double rate = isnan(own) || !facts->host.apu ? own : all;
        const double util_pct = peak > 0 ? 100 * rate / peak : (double)NAN, alu_pct = weighted_alu_busy(&s->gpu[i]);
        const int line = line_of(p, util_pct, upc, alu_pct);
        if (line != HELD)
            fl_set_gpu(command, i, FL_SET_SM_MHZ, gpu_mhz_of(p, facts->gpu[i].sm, line));
        cpu = cpu_of(p, line) > cpu ? cpu_of(p, line) : cpu;
        insensitive |= line >= GPU_HIGH;
        shallow |= line == MEMORY || (line == GPU_HIGH && p->cpu_beside_high == BESIDE_P2);
        fl_show_gpu(command, i, PROBE_GLOBAL_MEM_UTIL, util_pct);
        fl_show_gpu(command, i, PROBE_WEIGHTED_ALU_BUSY, alu_pct);
        fl_show_gpu(command, i, PROBE_LINE, line);
        fl_show_gpu(command, i, PROBE_HELD, line == HELD);
    }

    double gradient = NAN;
    if (isnan(all) || renewed) { /* a rate of which a part is of the period before has no gradient yet */
        gradient = all - n->rate_gb_s;
        n->rate_gb_s = all;
        n->cpu_bytes.renewed = 0;
        for (uint32_t i = 0; i < count; i++)
            gpu[i].bytes.renewed = 0;
    }
    if (cpu != CPU_HELD && cpu_ladder.count) {
        const int deep = multilevel && insensitive && !shallow && cpu == CPU_LOW_POWER;
        const double set = set_cpu(command, cpu_ladder, cpu, deep ? n->low_pstate : p->low_pstate);
        fl_show_node(command, PROBE_CPU_PSTATE, set);
        if (deep)
            fl_show_node(command, PROBE_WALK_LINE, walk(n, p, cpu_ladder, gradient));
    }
    fl_show_node(command, PROBE_CLOCK_WEIGHTED_UPC, upc);
    fl_show_node(command, PROBE_GRADIENT_GB_S, gradient);
    fl_show_node(command, PROBE_LOW_PSTATE, (double)n->low_pstate);
    command->delay_ns = ns_of(p->period_ms);
}

static void onelevel_step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                          fl_command *command) {
    step(state, param_bytes, facts, sample, command, 0);
}

static void multilevel_step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                            fl_command *command) {
    step(state, param_bytes, facts, sample, command, 1);
}

/* ---- descriptors --------------------------------------------------------------------------------------------------
 */

enum { ONE_LEVEL_PARAMS = 11 }; /* the rows after these are multilevelTh's own */
static const fl_param param_rows[] = {
    FL_PARAM(params, high_pct, REAL(0, 100), "%", "80", "HIGH, threshold of WeightedALUBusy (Alg. 1 lines 10 and 25)"),
    FL_PARAM(params, medium_pct, REAL(0, 100), "%", "30",
             "MEDIUM, threshold of WeightedALUBusy (Alg. 1 lines 14 and 28)"),
    FL_PARAM(params, upc_threshold, REAL(0, 64), "uops/cycle", "0.4",
             "UPC_Threshold, of ClockWeightedUPC (Alg. 1 lines 8 and 22)"),
    FL_PARAM(params, bus_efficiency_pct, REAL(0, 101), "%", "75",
             "DDR_bus_efficiency, threshold of Global_MemUtil (Alg. 1 line 2)"),
    FL_PARAM(params, period_ms, REAL(0.001, 3.6e6), "ms", "10", "SAMPLING_INTERVAL (Alg. 1 line 35)"),
    FL_PARAM(params, stale_ms, REAL(0, 3.6e6), "ms", "1000",
             "how long the last rate of a counter stands that does not refresh; then it is not known (assumed)"),
    FL_PARAM(params, low_pstate, INT(0, 1000), "", "2",
             "CPU-low-power_P2 (Alg. 1 lines 5 and 24), counted from the top of the ladder; multilevelTh begins there"),
    FL_PARAM(params, gpu_high_mhz, REAL(0, 100000), "MHz", "0", "GPU-high (section 2); 0: the top of the ladder"),
    FL_PARAM(params, gpu_med_mhz, REAL(0, 100000), "MHz", "0",
             "GPU-med (section 2; its clock is unpublished); 0: the clock at or above 0.79 of the top, assumed"),
    FL_PARAM(params, gpu_low_mhz, REAL(0, 100000), "MHz", "0",
             "GPU-low (section 2; its clock is unpublished); 0: the clock at or above 0.5 of the top, assumed"),
    FL_PARAM(params, peak_gb_s, REAL(0, 1e6), "GB/s", "0",
             "TheoreticalPeakMemBW (section 4.1); 0: the platform's, of host and GPU together where they share memory"),
    FL_PARAM(params, mem_threshold_gb_s, REAL(-1e6, 1e6), "GB/s", "0",
             "Mem_threshold (Alg. 2 line 34), of the change of the CPU and GPU access rate from one period to the next "
             "(unpublished; assumed 0: deeper unless the rate falls)"),
    FL_PARAM(params, listing, BOOL, "", "0",
             "1: bounds as printed (Alg. 2 lines 35 and 39): one past Pmin, and up to P1; 0: Pmin and low_pstate"),
    FL_PARAM(params, cpu_beside_high, CHOICE("walk|p2|printed"), "", "walk",
             "where the GPU alone is sensitive (line 25). walk: Alg. 2 lines 32 to 42 as in the other branches (4.2, "
             "6.2); p2: Alg. 1 line 24 (3.3); printed: the brackets of Alg. 2, the CPU is not set"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_ALU_BUSY_PCT), FL_NEEDS(GPU_GPU_CLOCK_BUSY_PCT), FL_NEEDS(GPU_DRAM_BYTES),
    FL_NEEDS(HOST_CPU_UOPS),    FL_NEEDS(HOST_CPU_CYCLES),        FL_NEEDS(HOST_CPU_MEM_BYTES),
};

#define NEEDS                                                                                                          \
    FL_SIGNAL_ROWS(signal_rows), .gpu_drives = FL_BIT(FL_SET_SM_MHZ),                                                  \
                                 .host_drives = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST)

FL_POLICY(multilevelth) = {FL_POLICY_ABI,
                           .name = "multilevelth",
                           .summary = "sets CPU and GPU states by frequency sensitivity, down to the lowest CPU state",
                           .source = "DynaCo (SC '13), section 4.2, Algorithm 2 (DynaCo-multilevelTh)",
                           NEEDS,
                           FL_PARAM_ROWS(param_rows, params),
                           FL_PROBE_ROWS(probe_rows),
                           .state_size = sizeof(node_state),
                           .gpu_size = sizeof(gpu_state),
                           .init = init,
                           .step = multilevel_step};

#ifndef POLICY_PLUGIN /* a plug-in holds one policy */

FL_POLICY(onelevelth) = {FL_POLICY_ABI,
                         .name = "1levelth",
                         .summary = "sets CPU and GPU states by frequency sensitivity; the CPU stays at P2 or faster",
                         .source = "DynaCo (SC '13), section 4.2, Algorithm 1 (DynaCo-1levelTh)",
                         NEEDS,
                         .param = param_rows,
                         .param_count = ONE_LEVEL_PARAMS,
                         FL_PROBE_ROWS(probe_rows),
                         .param_size = sizeof(params),
                         .state_size = sizeof(node_state),
                         .gpu_size = sizeof(gpu_state),
                         .init = init,
                         .step = onelevel_step};

#endif
