/* MF-GPOEO as released, courses 1 to 3: the program's start, the length of a window, the database. */
#include "policies/mfgpoeo/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

/* ---- what the stages share ---- */

static const double RESET_S = 2;

void fl_mfg_measure(const fl_mfg_frame *f, fl_mfg_stage stage, fl_mfg_plan plan) {
    f->g->stage = stage;
    fl_mfg_begin(f, plan);
}

void fl_mfg_measure_baseline(const fl_mfg_frame *f, fl_mfg_stage stage, double rest_s, double seconds) {
    fl_mfg_measure(f, stage,
                   (fl_mfg_plan){.rest_s = rest_s, .lead_s = RESET_S, .seconds = seconds, .baseline = 1, .traced = 1});
}

double fl_mfg_base_mean(const fl_mfg_gpu *g, int which) { return fl_mfg_mean_of(&g->base, which); }

double fl_mfg_window_mean(const fl_mfg_gpu *g, int which) { return fl_mfg_mean_of(&g->window.totals, which); }

void fl_mfg_compare_window(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    g->index = fl_mfg_compare(&g->data, f->p->th_exe, f->p->th_gap, g->window.totals.seconds);
    g->loss = g->index.loss;
    g->objective = fl_mfg_objective(fl_mfg_window_mean(g, FL_MFG_POWER), fl_mfg_base_mean(g, FL_MFG_POWER), g->loss,
                                    f->p->objective + 1);
}

void fl_mfg_merge_window(fl_mfg_gpu *g, double factor) {
    fl_mfg_merge(&g->data, factor);
    fl_mfg_totals_merge(&g->base, &g->window.totals, factor);
    g->baselines++;
}

/* ---- course 1: the program's start ---- */

static int32_t clamped(double gear, uint32_t gears) { return (int32_t)fmax(0, fmin(gear, gears - 1.0)); }

int32_t fl_mfg_high_gear(uint32_t gears, double share) { return clamped(ceil(share * gears), gears); }

int32_t fl_mfg_next_memory(uint32_t gears, int32_t gear) {
    const int32_t middle = (int32_t)gears / 2, next = gear == FL_MFG_DEFAULT ? middle : gear - 1;
    return next >= 1 && next >= middle - 1 && next + 1 < (int32_t)gears ? next : FL_MFG_DEFAULT;
}

int fl_mfg_is_low_memory(uint32_t gears, int32_t gear) { return gear != FL_MFG_DEFAULT && gear <= (int32_t)gears / 2; }

int fl_mfg_judge_memory(fl_mfg_memory *m, int32_t gear, double loss, double objective, double con_perf) {
    if (loss > con_perf)
        return 0;
    m->handed = loss;
    if (m->chosen != FL_MFG_DEFAULT && objective > m->objective)
        return 0;
    m->chosen = gear;
    m->objective = objective;
    return 1;
}

int32_t fl_mfg_start_gear(const fl_mfg_start *s) {
    if (!s->memory)
        return fl_mfg_high_gear(s->gears, 0.9);
    if (!s->low || !(s->util_gpu < 95))
        return fl_mfg_high_gear(s->gears, 0.95);
    const int edge = s->util_mem >= 20; /* memory clocks are tried up to here */
    const double share = s->handed < 0.6 ? (edge ? 0.85 : 0.65) : s->handed < 0.9 ? (edge ? 0.8 : 0.7) : 0.9;
    return clamped(round(share * s->gears), s->gears);
}

double fl_mfg_bound(double con_perf, double kernels_per_s) {
    return fmax(con_perf - (kernels_per_s < 2000 ? 0.001 : 0.003), 1e-6);
}

static const double BETWEEN_S = 2;
enum { WARM_UP_GATES = 30, REPEATS_MOST = 5, VIOLATIONS_MOST = 3 };

void fl_mfg_start_build(const fl_mfg_frame *f) {
    fl_mfg_measure(f, FL_MFG_WARM_UP, (fl_mfg_plan){.gates = WARM_UP_GATES, .untouched = 1});
}

/* ---- course 2: the length of a window -----------------------------------------------------------------------------
 */

static void end_warm_up(const fl_mfg_frame *f) {
    f->g->length = (fl_mfg_length){.seconds = fmin(f->p->window_s, f->p->window_max_s)};
    fl_mfg_measure(f, FL_MFG_FIRST_LENGTH, (fl_mfg_plan){.seconds = f->g->length.seconds});
}

static void next_length(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    if (fl_mfg_length_found(&g->length, f->p->window_max_s)) {
        g->base_ns = f->now_ns;
        fl_mfg_measure_baseline(f, FL_MFG_THROWN, 0, f->p->window_s);
    } else if (g->length.added > 0) {
        fl_mfg_measure(f, FL_MFG_ADDED_LENGTH, (fl_mfg_plan){.seconds = g->length.added});
    } else {
        fl_mfg_measure(f, FL_MFG_LENGTH, (fl_mfg_plan){.seconds = g->length.seconds});
    }
}

static void end_first_length(const fl_mfg_frame *f) {
    f->g->base = f->g->window.totals;
    next_length(f);
}

static void end_length(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const double factor = fl_mfg_length_test(&g->length, fl_mfg_window_mean(g, FL_MFG_UTIL_GPU),
                                             fl_mfg_base_mean(g, FL_MFG_UTIL_GPU), f->p->window_s, f->p->window_max_s);
    fl_mfg_totals_merge(&g->base, &g->window.totals, factor);
    next_length(f);
}

static void end_added_length(const fl_mfg_frame *f) {
    fl_mfg_totals_merge(&f->g->base, &f->g->window.totals, 1);
    f->g->length.added = 0;
    next_length(f);
}

/* ---- course 3: the database ---------------------------------------------------------------------------------------
 */

static void end_thrown(const fl_mfg_frame *f) {
    fl_mfg_measure_baseline(f, FL_MFG_DATABASE, BETWEEN_S, f->g->length.seconds);
}

static void end_database(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    g->base = (fl_mfg_totals){.seconds = 0};
    fl_mfg_merge_window(g, 1);
    fl_mfg_measure_baseline(f, FL_MFG_REPEAT, BETWEEN_S, g->length.seconds);
}

/* Returns 1 where the database stands. */
static int end_repeat(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    fl_mfg_compare_window(f);
    const fl_mfg_repeat repeat = {
        .index = g->index,
        .apart = fl_mfg_apart(fl_mfg_window_mean(g, FL_MFG_UTIL_GPU), fl_mfg_base_mean(g, FL_MFG_UTIL_GPU)),
        .util_gpu = fl_mfg_window_mean(g, FL_MFG_UTIL_GPU),
        .util_mem = fl_mfg_window_mean(g, FL_MFG_UTIL_MEM)};
    const int violates = fl_mfg_violates(&repeat, f->p->th_cover);
    g->violations += violates != 0;
    if (g->violations >= VIOLATIONS_MOST) {
        g->violations = 0;
        g->length.seconds = fmin(2 * g->length.seconds, f->p->window_max_s);
    }
    fl_mfg_merge_window(g, fl_mfg_repeat_keeps(&repeat, violates));
    g->again++;
    if (g->again >= REPEATS_MOST || !fl_mfg_repeat_again(&g->index, f->p->th_cover))
        return 1;
    const double rose = g->index.matched - g->matched_before;
    g->matched_before = g->index.matched;
    fl_mfg_measure_baseline(f, FL_MFG_REPEAT, rose < 0.1 ? 0.3 * g->length.seconds : 0, g->length.seconds);
    return 0;
}

int fl_mfg_end_build(const fl_mfg_frame *f) {
    switch (f->g->stage) {
    case FL_MFG_WARM_UP:
        end_warm_up(f);
        break;
    case FL_MFG_FIRST_LENGTH:
        end_first_length(f);
        break;
    case FL_MFG_LENGTH:
        end_length(f);
        break;
    case FL_MFG_ADDED_LENGTH:
        end_added_length(f);
        break;
    case FL_MFG_THROWN:
        end_thrown(f);
        break;
    case FL_MFG_DATABASE:
        end_database(f);
        break;
    default:
        return end_repeat(f);
    }
    return 0;
}
