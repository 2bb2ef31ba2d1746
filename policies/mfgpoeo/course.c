#include "policies/mfgpoeo/course.h"

#include "policies/mfgpoeo/build.h"
#include "policies/mfgpoeo/stage.h"
#include "policies/mfgpoeo/start.h"

#include <math.h>
#include <string.h>

static const int64_t LATE_NS = INT64_C(75000000000);
static const double MEMORY_S = 3, SM_S = 1, STABLE_S = 2, TRIAL_MATCHED = 0.5625;
enum { REFRESH_FIRST = 2, REFRESH_LATER = 5, REFERENCES = 3 };

void fl_mfg_open(fl_mfg_gpu *g) {
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
    if (reached > 0 && fl_mfg_nearest_gear(f->facts->sm, reached) < g->gear)
        g->gear = fl_mfg_nearest_gear(f->facts->sm, reached);
    loop(f);
}

static void try_memory(const fl_mfg_frame *f, int32_t gear) {
    f->g->next_mem = gear;
    fl_mfg_set_clocks(f, fl_mfg_high_gear(f->facts->sm.count, 0.95), gear);
    fl_mfg_measure(f, FL_MFG_MEMORY, (fl_mfg_plan){.lead_s = MEMORY_S, .seconds = f->g->length.seconds, .traced = 1});
}

static void hold_clocks(const fl_mfg_frame *f) {
    const fl_mfg_params *p = f->p;
    fl_mfg_set_clocks(f, fl_mfg_nearest_gear(f->facts->sm, p->hold_sm_mhz),
                      p->hold_mem_mhz > 0 ? fl_mfg_nearest_gear(f->facts->mem, p->hold_mem_mhz) : FL_MFG_DEFAULT);
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

void fl_mfg_step(const fl_mfg_frame *f) {
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
