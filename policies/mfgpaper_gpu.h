/* MF-GPOEO, what its parts share: the parameters, and all that is kept of one GPU. */
#pragma once

#include "policies/mfgpaper_index.h"
#include "policies/mfgpaper_judge.h"
#include "policies/mfgpaper_meter.h"
#include "policies/mfgpaper_pid.h"

enum { FL_MFP_POWER_GOAL, FL_MFP_ENERGY_GOAL, FL_MFP_EDP_GOAL, FL_MFP_ED2P_GOAL };
enum {
    FL_MFP_WAIT,
    FL_MFP_BASELINE,
    FL_MFP_MEMORY,
    FL_MFP_SEARCH,
    FL_MFP_STABLE,
    FL_MFP_FIXED
}; /* state of the algorithm */
enum { FL_MFP_AT_BEST, FL_MFP_AT_MEAN };
enum { FL_MFP_TRACE_MEASURED, FL_MFP_TRACE_NEXT };
enum { FL_MFP_DEFAULT = -1 }; /* a gear: the driver's default clock */

typedef struct fl_mfp_params {
    double con_perf;
    int64_t objective;
    fl_mfp_pid_rules pid;
    fl_mfp_filters filter;
    double th_cover, th_self, th_ctrl, th_ev, sigma, th_seen, hopeless;
    double window_s, window_max_s;
    int64_t refresh_every, stable_last, stable_gears, stable_at, confirm, give_up, forced_after, forced_early, extend;
    int64_t trace_gear, monotone, plausible, search_again;
    double forced_early_s;
    double start, low_start_min, low_start_max;
    fl_table mem_mhz;
    double mem_util_pct, mem_near, mem_worth;
    double busy_kernels, tighten, tighten_busy;
    double hold_sm_mhz, hold_mem_mhz;
    double period_ms;
} fl_mfp_params;

typedef struct fl_mfp_point { /* a configuration and what it gave */
    int32_t sm, mem;          /* ladder indices or FL_MFP_DEFAULT */
    double loss, objective;
} fl_mfp_point;

typedef struct fl_mfp_gpu { /* all zero but for what fl_mfp_open sets */
    fl_mfp_data data;
    fl_mfp_meter meter;
    fl_mfp_pid pid;
    fl_mfp_trace trace;
    fl_mfp_tried tried[FL_MFP_TRIED_MAX];
    uint32_t tried_count, ending; /* ending: only what is to be kept is still measured */
    fl_mfp_point fallback;        /* kept from a search under a low memory clock that found nothing; else the default */
    fl_mfp_point chosen;          /* memory clock that was accepted, under the default SM clock */
    double vector[FL_MFP_FEATURES]; /* the last execution vector; has_vector: there is one */
    int64_t first_ns, seen_ns;      /* the first kernel, the last step with a reading; -1: none yet */
    int64_t last_ns;                /* the step before */
    int64_t start_ns;               /* of this optimisation */
    int64_t begin_ns, end_ns;       /* of the measurement or execution vector */
    int64_t window_ns;              /* Duration */
    /* As last found; NAN: not yet. optimised_s: from the first kernel to the first stable configuration. */
    double achieved_mhz, base_bound, bound, index, error, base_error, loss, matched, coverage, objective,
        base_objective, distance, optimised_s;
    int32_t state, after;                 /* after: to which state the baseline returns */
    int32_t set_sm, set_mem;              /* gears that hold now */
    int32_t gear, mem, next_mem;          /* SM gear to measure; memory gear chosen; one to try, or FL_MFP_DEFAULT */
    uint32_t adjustments;                 /* SM gears measured in this optimisation */
    uint32_t extended;                    /* windows of this measurement beyond the first */
    uint32_t looked;                      /* this measurement has been looked at before its end */
    uint32_t since_baseline;              /* configurations measured since the last baseline */
    uint32_t unlike;                      /* measurements in a row that could not be compared */
    uint32_t baselines, changes;          /* windows at the default clocks; phase changes */
    uint32_t has_vector, recording, busy; /* busy: a kernel ended since the step before */
    double fixed_sum;                     /* of the index at hold_sm_mhz */
    uint64_t fixed_count;
    uint32_t blind;     /* this step has no reading */
    uint32_t unpowered; /* the last measurement had none of power */
} fl_mfp_gpu;
