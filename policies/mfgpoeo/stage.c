#include "policies/mfgpoeo/stage.h"

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
