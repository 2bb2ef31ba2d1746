#include "policies/mfgpoeo/build.h"

#include "policies/mfgpoeo/stage.h"

#include <math.h>

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
