/* MF-GPOEO as released, the loss of performance: a window's kinds against those of the database, stream by stream. */
#pragma once

#include "policies/mfgpoeo/kinds.h"

typedef struct fl_mfg_index {
    double loss, exe, gap;   /* index - 1: of kernels and gaps, of kernels, of gaps */
    double covered, matched; /* shares of kernel time: of kinds in the database; of those also within the radius */
    double unmatched;        /* share of kernel time in streams without a matched kernel */
} fl_mfg_index;

/* Of the window, which lasted so long, on the database. Kinds match where both know them and neither deviates by more
 * than the radius (a ratio to the mean): th_exe for kernels, th_gap for gaps, of which both must have seen two. */
fl_mfg_index fl_mfg_compare(const fl_mfg_data *data, double th_exe, double th_gap, double window_s);

/* Power over the database's, times the power k of 1 + loss: 1 energy, 2 EDP, 3 ED2P. */
double fl_mfg_objective(double power_w, double base_power_w, double loss, int64_t k);
