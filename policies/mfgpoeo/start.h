/* MF-GPOEO as released, memory clocks by trial (course 4) and where the SM search starts (course 5). */
#pragma once

#include "policies/mfgpoeo/gpu.h"

/* Share of the ladder from below, rounded up to a gear of it. */
int32_t fl_mfg_high_gear(uint32_t gears, double share);

/* The gear whose clock is nearest, the lower of two. */
int32_t fl_mfg_nearest_gear(fl_ladder ladder, double mhz);

/* The memory gear to try after `gear` (FL_MFG_DEFAULT at first): from the middle of the ladder down, but for the
 * lowest, at which a GPU idles; FL_MFG_DEFAULT where none is left. On 405, 810, 5001, 9251, 9501: 5001, then 810. */
int32_t fl_mfg_next_memory(uint32_t gears, int32_t gear);

int fl_mfg_is_low_memory(uint32_t gears, int32_t gear);

typedef struct fl_mfg_memory { /* the trials so far */
    int32_t chosen;            /* gear accepted; FL_MFG_DEFAULT: none */
    double objective;          /* of it */
    double handed;             /* loss that the start of the SM search goes by */
} fl_mfg_memory;

/* A memory gear was measured. Returns 1 where another may be tried. */
int fl_mfg_judge_memory(fl_mfg_memory *m, int32_t gear, double loss, double objective, double con_perf);

typedef struct fl_mfg_start { /* what the search starts from */
    uint32_t gears;           /* on the SM ladder */
    int memory;               /* memory clocks are controlled */
    int low;                  /* a memory gear of the lower half was accepted */
    double handed;            /* by the memory trials, over con_perf */
    double util_gpu, util_mem;
} fl_mfg_start;

/* Before the limit by the clock that was reached at the default. */
int32_t fl_mfg_start_gear(const fl_mfg_start *s);

/* Con_perf less what measuring costs. */
double fl_mfg_bound(double con_perf, double kernels_per_s);
