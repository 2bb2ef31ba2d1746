/* MF-GPOEO as released, what the stages of the course share: how one begins its window, and what is made of it. */
#pragma once

#include "policies/mfgpoeo/window.h"

/* A stage begins. */
void fl_mfg_measure(const fl_mfg_frame *f, fl_mfg_stage stage, fl_mfg_plan plan);

/* The same with a traced window of the default clocks, after rest_s, a reset, and 2 s. */
void fl_mfg_measure_baseline(const fl_mfg_frame *f, fl_mfg_stage stage, double rest_s, double seconds);

/* Means (FL_MFG_POWER...) of the database, and of the window that has ended. */
double fl_mfg_base_mean(const fl_mfg_gpu *g, int which);
double fl_mfg_window_mean(const fl_mfg_gpu *g, int which);

/* The window that has ended, on the database: index, loss and objective of f->g. */
void fl_mfg_compare_window(const fl_mfg_frame *f);

/* It joins the database, of which the factor stays. */
void fl_mfg_merge_window(fl_mfg_gpu *g, double factor);
