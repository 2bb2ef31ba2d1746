/* MF-GPOEO as its authors released it: kernel times and gaps at the default clocks are the database; the same kinds
 * under other clocks give the loss of performance; a controller lowers the SM clock until the bound on it is reached,
 * after memory clocks were tried. Where the program differs from the paper, the program holds. Each GPU of a node is
 * optimised by itself. Parts:
 *
 *     kinds, totals     what one window measures, and how it joins the database
 *     gate, window      the idle gate, and one window after it
 *     index             the loss of a window on the database
 *     base, start, pid, stop, watch    the rules of each part of the course, as functions of numbers
 *     stage, build, course             the course itself
 *
 * A GPU whose utilisation is not known for missing_s begins anew at its default clocks; once a gear is found, it is
 * held. */
#include "policies/mfgpoeo/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- constants, and the start of one GPU ---- */

static const int64_t LATE_NS = INT64_C(75000000000);
static const double MEMORY_S = 3, SM_S = 1, STABLE_S = 2, TRIAL_MATCHED = 0.5625;
enum { REFRESH_FIRST = 2, REFRESH_LATER = 5, REFERENCES = 3 };

static void fl_mfg_open(fl_mfg_gpu *g) {
    g->first_ns = g->base_ns = g->seen_ns = -1;
    g->set_sm = g->set_mem = g->sm = g->mem = g->gear = g->chosen_mem = g->next_mem = FL_MFG_DEFAULT;
    g->bound = g->loss = g->objective = g->distance = g->optimised_s = g->stable_s = NAN;
    g->recording = 1; /* hosts begin with records on where a policy needs them */
}

/* ---- course 6: the loop -------------------------------------------------------------------------------------------
 */

static void try_gear(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const double before = g->pid.calls ? g->pid.loss : 0;
    fl_mfg_set_clocks(f, g->gear, g->chosen_mem);
    fl_mfg_measure(
        f, FL_MFG_TRIAL,
        (fl_mfg_plan){.lead_s = SM_S, .seconds = g->length.seconds * fmin(fmax(1 + before, 1), 1.05), .traced = 1});
}

static int is_outdated(const fl_mfg_frame *f) {
    const fl_mfg_gpu *g = f->g;
    const fl_mfg_index *i = &g->index;
    if (g->changed)
        return 1;
    if (g->adjustments && g->adjustments % (g->refreshed ? REFRESH_LATER : REFRESH_FIRST) == 0)
        return 1;
    return g->compared && (i->covered < f->p->th_cover || i->matched < f->p->th_cover || i->unmatched > 0.1);
}

static void loop(const fl_mfg_frame *f) {
    if (is_outdated(f))
        fl_mfg_measure_baseline(f, FL_MFG_REFRESH, 0, f->g->length.seconds);
    else
        try_gear(f);
}

static void end_refresh(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    fl_mfg_compare_window(f);
    fl_mfg_merge_window(g, fl_mfg_factor(fl_mfg_refresh_keeps(g->loss), g->window.totals.seconds, g->base.seconds));
    g->refreshed = 1;
    g->refreshes++;
    g->changed = 0;
    try_gear(f);
}

static void stay(const fl_mfg_frame *f, int32_t gear) {
    fl_mfg_gpu *g = f->g;
    g->gear = gear;
    fl_mfg_set_clocks(f, gear, g->chosen_mem);
    if (isnan(g->stable_s)) {
        g->stable_s = (double)(f->now_ns - g->first_ns) * 1e-9;
        g->optimised_s = (double)(f->now_ns - g->base_ns) * 1e-9;
    }
    g->watch = (fl_mfg_watch){.windows = 0};
    g->reference = (fl_mfg_totals){.seconds = 0};
    g->references = 0;
    fl_mfg_measure(f, FL_MFG_REFERENCE, (fl_mfg_plan){.lead_s = STABLE_S, .seconds = g->length.seconds});
}

static void control(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const fl_gpu_facts *facts = f->facts;
    if (!g->adjustments)
        g->bound = fl_mfg_bound(f->p->con_perf, fl_mfg_over(g->base.kernels, g->base.seconds));
    const double mhz = fl_mfg_window_mean(g, FL_MFG_SM);
    const fl_mfg_measured m = {.loss = g->loss,
                               .bound = g->bound,
                               .below_mhz = mhz > 0 ? facts->sm.mhz[g->gear] - mhz : (double)NAN,
                               .gear = g->gear,
                               .gears = facts->sm.count};
    const int32_t next = fl_mfg_pid_next(&g->pid, &f->p->gains, &m);
    g->adjustments++;
    fl_mfg_try(&g->tries,
               (fl_mfg_tried){
                   .rho = (g->loss - g->bound) / g->bound, .objective = g->objective, .gear = g->gear, .next = next});
    const fl_mfg_search search = {.adjustments = g->adjustments,
                                  .gears = facts->sm.count,
                                  .late = g->traced_ns > LATE_NS,
                                  .low_memory = fl_mfg_is_low_memory(facts->mem.count, g->chosen_mem)};
    const int32_t stable = fl_mfg_stop(&g->tries, &search);
    g->gear = next;
    if (stable >= 0)
        stay(f, stable);
    else
        loop(f);
}

static void end_trial(const fl_mfg_frame *f) {
    fl_mfg_compare_window(f);
    f->g->compared = 1;
    if (f->g->index.matched >= TRIAL_MATCHED)
        control(f);
    else
        loop(f);
}

/* ---- courses 4 and 5: memory clocks, and where the search starts --------------------------------------------------
 */

static int controls_memory(const fl_mfg_frame *f) {
    return f->p->memory && fl_mfg_next_memory(f->facts->mem.count, FL_MFG_DEFAULT) != FL_MFG_DEFAULT;
}

static void start_search(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const fl_mfg_start start = {.gears = f->facts->sm.count,
                                .memory = controls_memory(f),
                                .low = fl_mfg_is_low_memory(f->facts->mem.count, g->chosen_mem),
                                .handed = fl_mfg_over(g->handed, f->p->con_perf),
                                .util_gpu = fl_mfg_base_mean(g, FL_MFG_UTIL_GPU),
                                .util_mem = fl_mfg_base_mean(g, FL_MFG_UTIL_MEM)};
    const double reached = fl_mfg_base_mean(g, FL_MFG_SM);
    g->gear = fl_mfg_start_gear(&start);
    const int32_t nearest = (int32_t)fl_ladder_index_nearest(f->facts->sm, reached);
    if (reached > 0 && nearest < g->gear)
        g->gear = nearest;
    loop(f);
}

static void try_memory(const fl_mfg_frame *f, int32_t gear) {
    f->g->next_mem = gear;
    fl_mfg_set_clocks(f, fl_mfg_high_gear(f->facts->sm.count, 0.95), gear);
    fl_mfg_measure(f, FL_MFG_MEMORY, (fl_mfg_plan){.lead_s = MEMORY_S, .seconds = f->g->length.seconds, .traced = 1});
}

static void hold_clocks(const fl_mfg_frame *f) {
    const fl_mfg_params *p = f->p;
    fl_mfg_set_clocks(f, (int32_t)fl_ladder_index_nearest(f->facts->sm, p->hold_sm_mhz),
                      p->hold_mem_mhz > 0 ? (int32_t)fl_ladder_index_nearest(f->facts->mem, p->hold_mem_mhz)
                                          : FL_MFG_DEFAULT);
    fl_mfg_measure(f, FL_MFG_HELD, (fl_mfg_plan){.lead_s = MEMORY_S, .seconds = f->g->length.seconds, .traced = 1});
}

static void start_memory(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    g->handed = f->p->con_perf;
    if (f->p->hold_sm_mhz > 0)
        hold_clocks(f);
    else if (controls_memory(f) && fl_mfg_base_mean(g, FL_MFG_UTIL_MEM) <= 20)
        try_memory(f, fl_mfg_next_memory(f->facts->mem.count, FL_MFG_DEFAULT));
    else
        start_search(f);
}

static void judge_memory(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    fl_mfg_memory m = {.chosen = g->chosen_mem, .objective = g->memory_objective, .handed = g->handed};
    const int goes_on = fl_mfg_judge_memory(&m, g->next_mem, g->loss, g->objective, f->p->con_perf);
    const int32_t next = fl_mfg_next_memory(f->facts->mem.count, g->next_mem);
    g->chosen_mem = m.chosen;
    g->memory_objective = m.objective;
    g->handed = m.handed;
    if (goes_on && next != FL_MFG_DEFAULT)
        try_memory(f, next);
    else
        start_search(f);
}

static void end_memory(const fl_mfg_frame *f) {
    fl_mfg_compare_window(f);
    if (f->g->loss < 0)
        fl_mfg_measure(f, FL_MFG_MEMORY_AGAIN, (fl_mfg_plan){.seconds = f->g->length.seconds, .traced = 1});
    else
        judge_memory(f);
}

static void end_memory_again(const fl_mfg_frame *f) {
    const double before = f->g->loss;
    fl_mfg_compare_window(f);
    f->g->loss = fmax(f->g->loss, before);
    judge_memory(f);
}

/* ---- monitoring, and the index alone ------------------------------------------------------------------------------
 */

static void watch(const fl_mfg_frame *f) {
    const double seconds = f->g->length.seconds;
    fl_mfg_measure(f, FL_MFG_WATCH,
                   (fl_mfg_plan){.rest_s = fl_mfg_watch_pause(&f->g->watch) * seconds, .seconds = seconds});
}

static void end_reference(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    fl_mfg_totals_merge(&g->reference, &g->window.totals, 1);
    if (++g->references < REFERENCES)
        fl_mfg_measure(f, FL_MFG_REFERENCE, (fl_mfg_plan){.seconds = g->length.seconds});
    else
        watch(f);
}

static void end_watch(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const fl_gpu_facts *facts = f->facts;
    const double limit_w = facts->power_default_w > 0 ? facts->power_default_w : 350;
    const double most[FL_MFG_MEANS] = {[FL_MFG_POWER] = limit_w,
                                       [FL_MFG_SM] = fl_ladder_max(facts->sm),
                                       [FL_MFG_MEM] = facts->mem.count ? fl_ladder_max(facts->mem) : 9501,
                                       [FL_MFG_UTIL_GPU] = 100,
                                       [FL_MFG_UTIL_MEM] = 100};
    double reference[FL_MFG_MEANS], now[FL_MFG_MEANS];
    for (int i = 0; i < FL_MFG_MEANS; i++) {
        reference[i] = fl_mfg_mean_of(&g->reference, i);
        now[i] = fl_mfg_window_mean(g, i);
    }
    g->distance = fl_mfg_distance(reference, now, most);
    if (!fl_mfg_watched(&g->watch, g->distance, f->p->th_ev)) {
        watch(f);
        return;
    }
    g->pid = (fl_mfg_pid){.calls = 0};
    g->adjustments = g->compared = 0;
    g->traced_ns = 0;
    g->changed = 1;
    g->changes++;
    loop(f);
}

static void end_held(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const double sum = g->held_windows > 0 ? g->loss * g->held_windows : 0;
    fl_mfg_compare_window(f);
    g->loss = (sum + g->loss) / ++g->held_windows;
    fl_mfg_measure(f, FL_MFG_HELD, (fl_mfg_plan){.seconds = g->length.seconds, .traced = 1});
}

/* ---- one step -----------------------------------------------------------------------------------------------------
 */

/* The program ends where a reading fails, and its clocks with it. Here the course begins anew, at the default clocks;
 * a gear that was found is held. */
static void survive(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    if (fl_gpu_known(f->sample, FL_GPU_UTIL_GPU_PCT))
        g->seen_ns = f->now_ns;
    const int monitors = g->stage == FL_MFG_REFERENCE || g->stage == FL_MFG_WATCH;
    if (g->seen_ns < 0 || monitors || f->now_ns - g->seen_ns < llround(f->p->missing_s * 1e9))
        return;
    fl_mfg_set_clocks(f, FL_MFG_DEFAULT, FL_MFG_DEFAULT);
    fl_mfg_set_records(f, 0);
    memset(g, 0, sizeof *g);
    fl_mfg_open(g);
}

static void end_stage(const fl_mfg_frame *f) {
    switch (f->g->stage) {
    case FL_MFG_MEMORY:
        end_memory(f);
        break;
    case FL_MFG_MEMORY_AGAIN:
        end_memory_again(f);
        break;
    case FL_MFG_REFRESH:
        end_refresh(f);
        break;
    case FL_MFG_TRIAL:
        end_trial(f);
        break;
    case FL_MFG_REFERENCE:
        end_reference(f);
        break;
    case FL_MFG_WATCH:
        end_watch(f);
        break;
    case FL_MFG_HELD:
        end_held(f);
        break;
    default:
        if (fl_mfg_end_build(f))
            start_memory(f);
    }
}

static void fl_mfg_step(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    if (!f->facts->sm.count)
        return;
    survive(f);
    if (g->first_ns < 0) {
        g->first_ns = f->now_ns;
        fl_mfg_set_records(f, 0);
        fl_mfg_reset_limit(f);
        fl_mfg_start_build(f);
    }
    while (fl_mfg_advance(f))
        end_stage(f);
}

/* ---- the descriptor ---- */

static fl_mfg_gpu *gpus(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const fl_mfg_params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (p->hold_sm_mhz > 0 && !fl_ladder_has(facts->gpu[i].sm, p->hold_sm_mhz))
            return "hold_sm_mhz must be on the SM ladder of every GPU";
        if (p->hold_mem_mhz > 0 && !fl_ladder_has(facts->gpu[i].mem, p->hold_mem_mhz))
            return "hold_mem_mhz must be on the memory ladder of every GPU";
        fl_mfg_open(&gpus(state)[i]);
    }
    return NULL;
}

#define PROBES(X)                                                                                                      \
    X("state", "",                                                                                                     \
      "what the window that runs is for: 0 start, 1-3 its length, 4-6 database, 7-8 memory clocks, 9 "                 \
      "refresh, 10 SM gear, 11-12 monitoring, 13 held at hold_sm_mhz",                                                 \
      g->stage)                                                                                                        \
    X("sm_gear", "", "index on the SM ladder; -1 the default", g->set_sm)                                              \
    X("mem_set_mhz", "MHz", "memory clock that holds; -1 the default",                                                 \
      g->set_mem == FL_MFG_DEFAULT ? FL_DEFAULT : facts->mem.mhz[g->set_mem])                                          \
    X("loss_pct", "%", "loss of the last comparison; at hold_sm_mhz the mean of all", 100 * g->loss)                   \
    X("exe_pct", "%", "the same of kernel times alone", 100 * g->index.exe)                                            \
    X("gap_pct", "%", "the same of gaps alone", 100 * g->index.gap)                                                    \
    X("covered", "", "share of its kernel time in kernel classes of the database", g->index.covered)                   \
    X("matched", "", "share of its kernel time in classes that were compared", g->index.matched)                       \
    X("unmatched", "", "share in streams of which no class was compared", g->index.unmatched)                          \
    X("bound_pct", "%", "bound in force", 100 * g->bound)                                                              \
    X("objective", "", "power over the default's, times (1 + loss)^k", g->objective)                                   \
    X("gain", "", "K_P of the controller's last call", g->pid.gain)                                                    \
    X("window_s", "s", "length of a window", g->length.seconds)                                                        \
    X("traced_s", "s", "traced windows since the start or the last change of phase", (double)g->traced_ns * 1e-9)      \
    X("optimisation_s", "s", "from the first traced window to the first stable gear", g->optimised_s)                  \
    X("stable_s", "s", "from the first step to it", g->stable_s)                                                       \
    X("adjustments", "", "calls of the controller in this search", g->adjustments)                                     \
    X("baselines", "", "windows that joined the database", g->baselines)                                               \
    X("refreshes", "", "those of them in a search", g->refreshes)                                                      \
    X("phase_changes", "", "times the search began anew", g->changes)                                                  \
    X("idle_limits", "", "times the gate held an idle GPU at its lowest SM clock", g->limits)                          \
    X("distance", "", "of the last monitoring window from the reference", g->distance)                                 \
    X("over", "", "kernels and gaps that found no room in the tables", g->data.over)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static void show(const fl_mfg_gpu *g, const fl_gpu_facts *facts, uint32_t gpu, fl_command *command) {
    fl_show_all(command, gpu, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *s, fl_command *command) {
    const fl_mfg_params *p = param_bytes;
    fl_mfg_gpu *gpu = gpus(state);
    for (uint64_t i = 0; s->record && i < s->record_count; i++) {
        const fl_kernel_record *r = &s->record[i];
        if (r->gpu < facts->gpu_count && r->kind < s->kind_count)
            fl_mfg_record(&gpu[r->gpu], &facts->gpu[r->gpu], s->time_ns, &s->kind[r->kind], r);
    }
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const fl_mfg_frame f = {&gpu[i], p, &facts->gpu[i], &s->gpu[i], s->time_ns, i, command};
        fl_mfg_step(&f);
        show(&gpu[i], &facts->gpu[i], i, command);
    }
    command->delay_ns = llround(p->period_ms * 1e6);
}

static const fl_param param_rows[] = {
    FL_PARAM(fl_mfg_params, con_perf, REAL(0, 10), "", "0.05", "Con_perf: loss of performance that is allowed"),
    FL_PARAM(fl_mfg_params, objective, CHOICE("energy|edp|ed2p"), "", "energy",
             "what is minimised: power times the power 1, 2 or 3 of the index"),
    FL_PARAM_AS("kp", fl_mfg_params, gains.kp, REAL(0, 1000), "", "2.8", "K_P, before the controller's table of gains"),
    FL_PARAM_AS("ki", fl_mfg_params, gains.ki, REAL(0, 1000), "", "0.002", "K_I; none after a change of sign"),
    FL_PARAM_AS("kd", fl_mfg_params, gains.kd, REAL(0, 1000), "", "0.9", "K_D; damps large swings only"),
    FL_PARAM(fl_mfg_params, th_exe, REAL(0, 1e9), "", "10",
             "largest deviation over mean of execution times that are compared"),
    FL_PARAM(fl_mfg_params, th_gap, REAL(0, 1e9), "", "2.5", "the same of gaps"),
    FL_PARAM(fl_mfg_params, th_cover, REAL(0, 0.999), "", "0.75",
             "share of kernel time that the database must cover, and match"),
    FL_PARAM(fl_mfg_params, th_ev, REAL(0, 1), "", "0.1", "distance from the reference that is a bad window"),
    FL_PARAM(fl_mfg_params, window_s, REAL(0.25, 1000), "s", "4", "the first window, and what it grows by"),
    FL_PARAM(fl_mfg_params, window_max_s, REAL(0.25, 1000), "s", "20", "the longest window"),
    FL_PARAM(fl_mfg_params, memory, BOOL, "", "1", "memory clocks are tried"),
    FL_PARAM(fl_mfg_params, hold_sm_mhz, REAL(0, 100000), "MHz", "0",
             "0: optimise; else only the index is measured, at this SM clock and"),
    FL_PARAM(fl_mfg_params, hold_mem_mhz, REAL(0, 100000), "MHz", "0",
             "at this memory clock (0: the default); probe loss_pct is the mean then"),
    FL_PARAM(fl_mfg_params, missing_s, REAL(0, 1e6), "s", "10",
             "time without GPU utilisation after which all begins anew (assumed; the program ends)"),
    FL_PARAM(fl_mfg_params, period_ms, REAL(0.001, 3.6e6), "ms", "100", "time from one sample to the next"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_POWER_W), FL_NEEDS(GPU_UTIL_GPU_PCT), FL_NEEDS(GPU_UTIL_MEM_PCT),
    FL_NEEDS(GPU_SM_MHZ),  FL_NEEDS(GPU_MEM_MHZ),      FL_NEEDS(KERNEL_RECORDS),
};

FL_POLICY(mfgpoeo) = {
    FL_POLICY_ABI,
    .name = "mf-gpoeo",
    .summary = "lowers memory and SM clocks until kernel times and gaps reach a bound on the loss of performance",
    .source = "MF-GPOEO (IEEE TSUSC 2024), as the program that its authors released does it",
    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W) |
                  FL_BIT(FL_SET_RECORDS),
    .gpu_size = sizeof(fl_mfg_gpu),
    FL_POLICY_PARTS(fl_mfg_params)};
