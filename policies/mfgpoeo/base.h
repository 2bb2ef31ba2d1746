/* MF-GPOEO as released, rules of the baseline: how long a window must be, whether windows of the default clocks agree,
 * and how much of the old database each one leaves. Lengths in s, utilisations in percent, losses as fractions. */
#pragma once

#include "policies/mfgpoeo/index.h"

/* ---- course 2: the length of a window, from GPU utilisation alone ---- */

typedef struct fl_mfg_length {
    double seconds;   /* of a window: the answer */
    double added;     /* what it has just grown by: the next window is that long and joins the mean untested; else 0 */
    uint32_t repeats; /* windows in a row that agreed with the mean */
} fl_mfg_length;

/* A full window with this mean utilisation, against the running mean's. Returns the factor by which the mean shrinks
 * before the window joins it. step_s: what the length grows by; most_s: its end. */
double fl_mfg_length_test(fl_mfg_length *l, double util, double mean_util, double step_s, double most_s);

int fl_mfg_length_found(const fl_mfg_length *l, double most_s);

/* ---- course 3: traced windows of the default clocks ---- */

typedef struct fl_mfg_repeat { /* what one of them says of the database */
    fl_mfg_index index;
    double apart;              /* GPU utilisation, against the database's (fl_mfg_apart) */
    double util_gpu, util_mem; /* of the window */
} fl_mfg_repeat;

int fl_mfg_violates(const fl_mfg_repeat *r, double th_cover);

/* Part of the old database that stays when the window is merged. */
double fl_mfg_repeat_keeps(const fl_mfg_repeat *r, int violates);

/* Must another window follow? */
int fl_mfg_repeat_again(const fl_mfg_index *i, double th_cover);

/* ---- course 6a: a refresh ---- */

typedef struct fl_mfg_keep {
    double factor;
    int relative; /* 1: relative to the lengths of window and database */
} fl_mfg_keep;

fl_mfg_keep fl_mfg_refresh_keeps(double loss);

/* The factor in force: relative to the lengths where asked for, never below 0.01. */
double fl_mfg_factor(fl_mfg_keep keep, double window_s, double base_s);
