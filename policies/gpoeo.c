/* GPOEO (Wang et al., TPDS 2022) as its authors ran it beside MF-GPOEO, with what can be had of it: its models were
 * never published, and most of the performance counters that they take are in no kernel record (gpoeo_model.h says what
 * stands for which). It finds the period of the program (gpoeo_period.c), reads counters at one clock, takes energy and
 * time of a period at the default clocks, lets its models propose clocks, and searches around them by measuring
 * (gpoeo_search.c). Then it watches the power. Each GPU of a node by itself.
 *
 * A program without a stable period is measured by instructions per second; here recorded kernels per second stand for
 * these, as no signal counts instructions. Without the table of trees the search begins at start_mhz and the default
 * memory clock, for it needs no model.
 *
 * What the released rules leave open, and what is done here:
 * - the search begins start_s after the GPU is first busy;
 * - a trace whose period is not stable goes on until it is, or is 80 s long; a program without one at the clock of the
 *   counters is measured by its kernels, and so is one that has none at later clocks: as a period and a kernel do not
 *   compare, it is then measured at the default clocks once more, and the search begins anew;
 * - energy is the mean power of the trace times the period;
 * - counters of a program without a period, and windows of the watch, take window_s;
 * - of memory clocks that are predicted alike the highest is taken;
 * - each set of clocks has a second to settle, that of the choice before the watch, too;
 * - a new search begins with the default clocks, a new prediction with the counters;
 * - kernel records are on only for the counters, and until the choice where their rate stands for performance. A record
 *   that was lost makes the count of its window wrong: the window is repeated, and the third such in a row ends the
 *   search;
 * - readings that are missing for missing_s before the choice end it as well. The default holds then, and all begins
 *   anew start_s after the GPU is seen busy. */
#include "policies/gpoeo_model.h"
#include "policies/gpoeo_search.h"
#include "policies/gpoeo_trace.h"

#include <math.h>
#include <string.h>

enum { WAIT, PERIOD, COUNTERS, DEFAULT, SEARCH, WATCH };
enum { COUNTER_GROUPS = 4, WIDE_BELOW_MHZ = 9251, BROKEN_MOST = 3 };
static const double window_periods = 1.1, settle_s = 1;

typedef struct params {
    double con_perf, spread, phase, phase_model, lowest_mhz, top_mhz, start_mhz, start_s, window_s, missing_s,
        period_ms;
    fl_table trees;
} params;

typedef struct gpu_state {
    uint32_t state, blind, aperiodic, checks, group, recording; /* group: of counters */
    uint32_t broken, breaks;                                    /* broken: a record of this window was lost */
    int64_t busy_ns, begun_ns, known_ns;                        /* -1: never */
    int64_t settled_ns; /* from then on readings are those of the clocks set last */
    double limit_w, set_sm, set_mem, optimised_s;
    double period_s;               /* as found last */
    double base_energy, base_time; /* at the default clocks */
    double least_w, most_w, sum_w; /* of the windows watched since the choice */
    fl_gpoeo_counters counters, counted; /* counted: before the window */
    fl_gpoeo_search search;
    fl_gpoeo_trace trace;
} gpu_state;

typedef struct place { /* what a step of one GPU is about */
    const params *p;
    gpu_state *g;
    const fl_gpu_facts *f;
    const fl_gpu_sample *s;
    const fl_sample *sample;
    fl_command *command;
    uint32_t gpu;
} place;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, 0); }

static int64_t ns_of(double seconds) { return (int64_t)(fmin(seconds, 1e8) * 1e9 + 0.5); }

static int32_t gear_of(fl_ladder l, double mhz) { /* the nearest, of two as near the lower */
    uint32_t best = 0;
    for (uint32_t i = 1; i < l.count; i++)
        if (fabs(l.mhz[i] - mhz) < fabs(l.mhz[best] - mhz))
            best = i;
    return (int32_t)best;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    if (p->trees.row_count && !fl_trees_count(&p->trees, FL_GPOEO_MODELS, FL_GPOEO_FEATURES))
        return "trees must hold GPOEO's six models; foldline fit gpoeo makes them";
    if (p->lowest_mhz > p->top_mhz)
        return "lowest_mhz must not exceed top_mhz";
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        if (!facts->gpu[i].sm.count)
            return "needs the SM ladder of every GPU";
        g->limit_w = fl_readings_limit_w(&facts->gpu[i]);
        g->busy_ns = g->known_ns = -1;
        g->set_sm = g->set_mem = FL_DEFAULT;
        g->recording = 1; /* as hosts begin */
        g->period_s = g->optimised_s = g->base_energy = g->base_time = NAN;
    }
    return NULL;
}

/* ---- traces and windows -------------------------------------------------------------------------------------------
 */

static void set_clocks(const place *at, double sm_mhz, double mem_mhz) {
    gpu_state *g = at->g;
    if (sm_mhz != g->set_sm)
        fl_set_gpu(at->command, at->gpu, FL_SET_SM_MHZ, sm_mhz);
    if (mem_mhz != g->set_mem && at->f->mem.count)
        fl_set_gpu(at->command, at->gpu, FL_SET_MEM_MHZ, mem_mhz);
    g->set_sm = sm_mhz;
    g->set_mem = mem_mhz;
    g->settled_ns = at->sample->time_ns + ns_of(settle_s);
}

static void begin_trace(const place *at, double seconds) {
    const int64_t now_ns = at->sample->time_ns, settled_ns = at->g->settled_ns;
    fl_gpoeo_trace_begin(&at->g->trace, now_ns > settled_ns ? now_ns : settled_ns, ns_of(seconds));
    at->g->broken = 0;
}

static void set_gears(const place *at, int32_t sm, int32_t mem) {
    const double mem_mhz = at->f->mem.count ? at->f->mem.mhz[mem] : FL_DEFAULT;
    set_clocks(at, at->f->sm.mhz[sm], mem_mhz);
    begin_trace(at, FL_GPOEO_TRACE_S);
}

/* Kernel records cost time: they are on for the counters, and where the rate of kernels stands for performance. */
static void set_records(const place *at, uint32_t on) {
    if (on != at->g->recording)
        fl_set_gpu(at->command, at->gpu, FL_SET_RECORDS, on);
    at->g->recording = on;
}

static void begin_default(const place *at) {
    at->g->state = DEFAULT;
    set_records(at, at->g->aperiodic);
    set_clocks(at, FL_DEFAULT, FL_DEFAULT);
    begin_trace(at, FL_GPOEO_TRACE_S);
}

/* Energy and time of a period, or of a kernel; 0: they are not known yet. */
static int end_trace(const place *at, double *energy, double *time) {
    gpu_state *g = at->g;
    if (g->aperiodic) {
        *time = fl_gpoeo_trace_kernel_s(&g->trace);
        if (isnan(*time)) { /* none ended: what else is to be compared? */
            begin_trace(at, FL_GPOEO_TRACE_S);
            return 0;
        }
    } else {
        fl_gpoeo_period p;
        if (!fl_gpoeo_trace_period(&g->trace, g->limit_w, at->p->spread, &p))
            return 0;
        if (!isnan(p.period_s))
            g->period_s = p.period_s;
        g->aperiodic = !p.stable;
        if (g->aperiodic && g->state != PERIOD) {
            begin_default(at);
            return 0;
        }
        *time = g->period_s;
    }
    *energy = fl_gpoeo_trace_power_w(&g->trace) * *time;
    return 1;
}

static void begin_counters(const place *at) {
    gpu_state *g = at->g;
    g->state = COUNTERS;
    g->counted = g->counters;
    set_records(at, 1);
    begin_trace(at, g->aperiodic ? at->p->window_s : window_periods * g->period_s);
}

static void begin_period(const place *at) {
    const fl_ladder mem = at->f->mem;
    at->g->state = PERIOD;
    at->g->aperiodic = at->g->group = 0;
    at->g->counters = (fl_gpoeo_counters){0};
    at->g->begun_ns = at->sample->time_ns;
    set_records(at, 0);
    set_gears(at, gear_of(at->f->sm, FL_GPOEO_CLOCK_MHZ), gear_of(mem, FL_GPOEO_COUNTERS_MEM_MHZ));
}

static void begin_watch(const place *at) {
    at->g->state = WATCH;
    begin_trace(at, at->g->aperiodic ? at->p->window_s : fmax(at->p->window_s, window_periods * at->g->period_s));
}

/* ---- the course ---------------------------------------------------------------------------------------------------
 */

/* The gears where the search begins. The released program asks the lowest band's model for the memory clock, too. */
static void propose(const place *at) {
    const fl_ladder sm = at->f->sm, mem = at->f->mem;
    const params *p = at->p;
    fl_gpoeo_search *s = &at->g->search;
    *s = (fl_gpoeo_search){.low = 0,
                           .high = gear_of(sm, p->top_mhz),
                           .mem_count = (int32_t)(mem.count ? mem.count : 1),
                           .bound = p->con_perf,
                           .sm = gear_of(sm, p->start_mhz),
                           .mem = mem.count ? gear_of(mem, at->f->default_mem_mhz) : 0};
    while ((uint32_t)s->wide_below < mem.count && mem.mhz[s->wide_below] < WIDE_BELOW_MHZ)
        s->wide_below++;
    s->sm = s->sm > s->high ? s->high : s->sm;
    if (!p->trees.row_count)
        return;
    s->sm = fl_gpoeo_predict(&p->trees, &at->g->counters, sm, gear_of(sm, p->lowest_mhz), s->high, FL_GPOEO_OWN_BAND,
                             p->con_perf);
    if (mem.count)
        s->mem = fl_gpoeo_predict(&p->trees, &at->g->counters, mem, 0, (int32_t)mem.count - 1, 0, p->con_perf);
}

static void search_on(const place *at) {
    gpu_state *g = at->g;
    const fl_gpoeo_next next = fl_gpoeo_search_next(&g->search);
    set_gears(at, next.sm, next.mem);
    g->search.point[g->search.count % FL_GPOEO_POINTS] = (fl_gpoeo_point){.sm = next.sm, .mem = next.mem};
    g->state = SEARCH;
    if (!next.done)
        return;
    g->optimised_s = (double)(at->sample->time_ns - g->begun_ns) * 1e-9;
    g->checks = 0;
    set_records(at, 0);
    begin_watch(at);
}

static void end_counters(const place *at) {
    gpu_state *g = at->g;
    g->counters.counted_s += (double)(at->sample->time_ns - g->trace.begin_ns) * 1e-9;
    if (++g->group < COUNTER_GROUPS) {
        begin_counters(at);
        return;
    }
    begin_default(at);
}

static void end_watch(const place *at) {
    gpu_state *g = at->g;
    const double w = fl_gpoeo_trace_power_w(&g->trace);
    g->least_w = g->checks ? fmin(g->least_w, w) : w;
    g->most_w = g->checks ? fmax(g->most_w, w) : w;
    g->sum_w = g->checks ? g->sum_w + w : w;
    g->checks++;
    const double range = (g->most_w - g->least_w) * g->checks;
    if (range > at->p->phase_model * g->sum_w) {
        begin_period(at);
    } else if (range > at->p->phase * g->sum_w) {
        g->begun_ns = at->sample->time_ns;
        begin_default(at);
    } else {
        begin_watch(at);
    }
}

/* The search ends before its choice. */
static void give_up(const place *at) {
    set_records(at, 0);
    set_clocks(at, FL_DEFAULT, FL_DEFAULT);
    at->g->state = WAIT;
    at->g->busy_ns = -1;
}

static void repeat_window(const place *at) {
    gpu_state *g = at->g;
    g->counters = g->counted;
    if (g->breaks >= BROKEN_MOST)
        give_up(at);
    else if (g->state == COUNTERS)
        begin_counters(at);
    else
        begin_trace(at, FL_GPOEO_TRACE_S);
}

static void end_state(const place *at) {
    gpu_state *g = at->g;
    double energy, time;
    g->breaks = g->broken ? g->breaks + 1 : 0;
    if (g->broken) {
        repeat_window(at);
    } else if (g->state == COUNTERS) {
        end_counters(at);
    } else if (g->state == WATCH) {
        end_watch(at);
    } else if (!end_trace(at, &energy, &time)) {
        return;
    } else if (g->state == PERIOD) {
        begin_counters(at);
    } else if (g->state == DEFAULT) {
        g->base_energy = energy;
        g->base_time = time;
        propose(at);
        search_on(at);
    } else {
        fl_gpoeo_point *p = &g->search.point[g->search.count++];
        p->energy = energy / g->base_energy;
        p->time = time / g->base_time;
        search_on(at);
    }
}

/* Readings are missing: windows begin anew; before the choice the default clocks come back. */
static void wait_blind(const place *at) {
    gpu_state *g = at->g;
    if (g->state == WATCH)
        begin_watch(at);
    else if (g->state != WAIT && at->sample->time_ns - g->known_ns >= ns_of(at->p->missing_s))
        give_up(at);
}

/* Records tell of kernels while readings are missing, too. */
static void count_records(const place *at) {
    gpu_state *g = at->g;
    fl_gpoeo_trace_count(&g->trace, at->sample, at->gpu);
    if (g->state == WAIT || at->sample->time_ns <= g->trace.begin_ns)
        return;
    g->broken |= g->recording && at->sample->record_lost;
    if (g->state == COUNTERS)
        fl_gpoeo_take(&g->counters, at->sample, at->gpu);
}

static void step_gpu(const place *at) {
    gpu_state *g = at->g;
    const int64_t now_ns = at->sample->time_ns;
    count_records(at);
    g->blind = !fl_readings_known(at->s);
    if (g->blind) {
        wait_blind(at);
        return;
    }
    g->known_ns = now_ns;
    if (g->state == WAIT) {
        if (g->busy_ns < 0 && at->s->value[FL_GPU_UTIL_GPU_PCT] > 0)
            g->busy_ns = now_ns;
        if (g->busy_ns >= 0 && now_ns - g->busy_ns >= ns_of(at->p->start_s))
            begin_period(at);
        return;
    }
    if (now_ns < g->trace.begin_ns)
        return;
    fl_gpoeo_trace_read(&g->trace, at->s, now_ns);
    if (now_ns >= g->trace.end_ns && g->trace.readings.count > 1)
        end_state(at);
}

enum {
    PROBE_STATE,
    PROBE_SET_SM_MHZ,
    PROBE_SET_MEM_MHZ,
    PROBE_PERIOD_S,
    PROBE_APERIODIC,
    PROBE_POINTS,
    PROBE_LOSS_PCT,
    PROBE_TENSOR_PCT,
    PROBE_OPTIMISATION_S,
    PROBE_HELD,
    PROBES
};

static const fl_probe probe_rows[PROBES] = {
    [PROBE_STATE] = {"state", "",
                     "0 waits, 1 looks for a period, 2 reads counters, 3 default clocks, 4 searches, 5 watches", 1},
    [PROBE_SET_SM_MHZ] = {"set_sm_mhz", "MHz", "SM clock that holds; -1 the default", 1},
    [PROBE_SET_MEM_MHZ] = {"set_mem_mhz", "MHz", "memory clock that holds; -1 the default", 1},
    [PROBE_PERIOD_S] = {"period_s", "s", "period that was found last", 1},
    [PROBE_APERIODIC] = {"aperiodic", "", "1: no stable period, measured by kernels per second", 1},
    [PROBE_POINTS] = {"points", "", "clocks measured in this search", 1},
    [PROBE_LOSS_PCT] = {"loss_pct", "%", "loss of performance, of the clocks measured last", 1},
    [PROBE_TENSOR_PCT] = {"tensor_pct", "%", "share of kernel time of kernels called after tensor work", 1},
    [PROBE_OPTIMISATION_S] = {"optimisation_s", "s", "from the first clock set to the choice", 1},
    [PROBE_HELD] = {"held", "", "1: decided without readings", 1},
};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        const place at = {p, g, &facts->gpu[i], &sample->gpu[i], sample, command, i};
        if (g->state == WAIT)
            set_records(&at, 0);
        step_gpu(&at);
        const fl_gpoeo_search *s = &g->search;
        const double shown[PROBES] = {
            [PROBE_STATE] = g->state,
            [PROBE_SET_SM_MHZ] = g->set_sm,
            [PROBE_SET_MEM_MHZ] = g->set_mem,
            [PROBE_PERIOD_S] = g->period_s,
            [PROBE_APERIODIC] = g->aperiodic,
            [PROBE_POINTS] = s->count,
            [PROBE_LOSS_PCT] = s->count ? 100 * (s->point[s->count - 1].time - 1) : (double)NAN,
            [PROBE_TENSOR_PCT] = g->counters.busy_s > 0 ? 100 * g->counters.tensor_s / g->counters.busy_s : (double)NAN,
            [PROBE_OPTIMISATION_S] = g->optimised_s,
            [PROBE_HELD] = g->blind,
        };
        for (int k = 0; k < PROBES; k++)
            fl_show_gpu(command, i, k, shown[k]);
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(
        params, trees, TABLE(FL_TREES_COLUMNS), "", "",
        "the six models, by foldline fit gpoeo; harness/experiments/gpoeo.trees.csv are some for an RTX 3080 Ti. They "
        "take the clock, the sum of kernel times over the time (at most 1), and the shares of kernels called after "
        "tensor (gemm, conv, "
        "attention, mma) and FP64 work (dgemm, double, fp64, f64); the other thirteen counters are in no kernel "
        "record. "
        "Without: the search begins at start_mhz (the authors' models were never published)"),
    FL_PARAM(params, con_perf, REAL(0, 10), "", "0.045", "loss of performance that is allowed"),
    FL_PARAM(params, lowest_mhz, REAL(1, 1e5), "MHz", "450",
             "lowest SM clock that is predicted; the search may go below"),
    FL_PARAM(params, top_mhz, REAL(1, 1e5), "MHz", "1995", "highest: gear 119"),
    FL_PARAM(params, start_mhz, REAL(1, 1e5), "MHz", "1800", "where the search begins without trees (assumed)"),
    FL_PARAM(
        params, spread, REAL(0, 10), "", "0.15",
        "spread of the periods of parts of a trace, over their mean, below which it is stable (strict 0.10, relaxed "
        "0.30)"),
    FL_PARAM(params, phase, REAL(0, 100), "", "0.18",
             "range of the watched power over its mean that starts a new search"),
    FL_PARAM(params, phase_model, REAL(0, 100), "", "0.5", "range that starts a new prediction"),
    FL_PARAM(params, window_s, REAL(0.001, 1e6), "s", "10",
             "shortest window of the watch, and of the counters of a program without a period (assumed)"),
    FL_PARAM(params, start_s, REAL(0, 1e6), "s", "16",
             "from the first busy sample to the first clock: the unstable start (assumed, as the authors' DEPO)"),
    FL_PARAM(params, missing_s, REAL(0, 1e6), "s", "1",
             "time without readings after which a search ends and the default clocks hold (assumed)"),
    FL_PARAM(params, period_ms, REAL(10, 1e5), "ms", "100", "time from one sample to the next"),
};

FL_POLICY(gpoeo) = {FL_POLICY_ABI,
                    .name = "gpoeo",
                    .summary = "finds the program's period, proposes clocks by boosted trees, searches around them",
                    .source = "GPOEO (IEEE TPDS 2022) as run beside MF-GPOEO (IEEE TSUSC 2024, Sec. V-C, Table V)",
                    .gpu_needs = FL_READINGS_NEEDS,
                    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_RECORDS),
                    .needs_records = 1,
                    .param = param_rows,
                    .param_count = FL_COUNT(param_rows),
                    .probe = probe_rows,
                    .probe_count = PROBES,
                    .param_size = sizeof(params),
                    .gpu_size = sizeof(gpu_state),
                    .init = init,
                    .step = step};
