/* MF-GPOEO as released, what its parts share: the parameters, all that is kept of one GPU, and one step of it. */
#pragma once

#include "policies/mfgpoeo/base.h"
#include "policies/mfgpoeo/gate.h"
#include "policies/mfgpoeo/pid.h"
#include "policies/mfgpoeo/stop.h"
#include "policies/mfgpoeo/totals.h"
#include "policies/mfgpoeo/watch.h"

enum { FL_MFG_DEFAULT = -1 }; /* a gear: the driver's default clock */

typedef struct fl_mfg_params {
    double con_perf;
    int64_t objective, memory;
    fl_mfg_gains gains;
    double th_exe, th_gap, th_cover, th_ev, window_s, window_max_s;
    double hold_sm_mhz, hold_mem_mhz, missing_s, period_ms;
} fl_mfg_params;

typedef struct fl_mfg_plan { /* a window, and what comes before it; all zero: nothing */
    double rest_s;           /* pause before anything is set */
    double lead_s;           /* pause after clocks were set */
    double seconds;          /* of the window; 0: none, the gate alone */
    uint32_t gates;          /* times that the idle gate must pass; 0 counts as 1 */
    uint32_t baseline;       /* clocks and power limit are reset before lead_s */
    uint32_t traced;         /* kernels are recorded in the window */
    uint32_t untouched;      /* the gate sets no limit */
} fl_mfg_plan;

enum { FL_MFG_REST, FL_MFG_LEAD, FL_MFG_GATE, FL_MFG_BACK, FL_MFG_OPEN }; /* parts of a window, in order */

typedef struct fl_mfg_window {
    fl_mfg_plan plan;
    fl_mfg_gate gate;
    fl_mfg_totals totals;
    int64_t since_ns; /* of the part */
    uint32_t part, passed;
} fl_mfg_window;

typedef enum fl_mfg_stage {                      /* what the window that runs is for */
                            FL_MFG_WARM_UP,      /* course 1: thirty gates */
                            FL_MFG_FIRST_LENGTH, /* course 2 */
                            FL_MFG_LENGTH,
                            FL_MFG_ADDED_LENGTH,
                            FL_MFG_THROWN, /* course 3 */
                            FL_MFG_DATABASE,
                            FL_MFG_REPEAT,
                            FL_MFG_MEMORY, /* course 4 */
                            FL_MFG_MEMORY_AGAIN,
                            FL_MFG_REFRESH, /* course 6 */
                            FL_MFG_TRIAL,
                            FL_MFG_REFERENCE, /* monitoring */
                            FL_MFG_WATCH,
                            FL_MFG_HELD, /* the index alone */
                            FL_MFG_STAGES
} fl_mfg_stage;

typedef struct fl_mfg_gpu { /* all zero but for what fl_mfg_open sets */
    fl_mfg_data data;
    fl_mfg_window window;
    fl_mfg_totals base; /* of the database; before there is one, the running mean of course 2 */
    fl_mfg_length length;
    fl_mfg_index index; /* of the last traced window that was compared */
    fl_mfg_pid pid;
    fl_mfg_tries tries;
    fl_mfg_watch watch;
    fl_mfg_totals reference;
    int64_t seen_ns;           /* last step with a known GPU utilisation; -1: none yet */
    int64_t traced_ns;         /* of all traced windows since (re)start */
    int64_t first_ns, base_ns; /* first step; begin of the first traced window; -1: not yet */
    /* bound: C. loss, objective: of the last comparison. handed: loss that the memory trials hand on. optimised_s,
     * stable_s: from the first traced window and from the first step to the first stable gear. NAN: not yet. */
    double bound, loss, objective, distance, optimised_s, stable_s, matched_before, handed, memory_objective;
    double held_windows;     /* whose mean loss is, at held clocks */
    int32_t set_sm, set_mem; /* gears that hold now */
    int32_t sm, mem;         /* gears of this stage */
    int32_t gear;            /* SM gear to measure next, or to stay at */
    int32_t chosen_mem;      /* memory gear that was accepted */
    int32_t next_mem;        /* on trial */
    int32_t stage;
    uint32_t recording;
    uint32_t again, violations;  /* of course 3: windows compared, violations counted */
    uint32_t compared;           /* index is of a trial since (re)start */
    uint32_t refreshed, changed; /* a refresh has ever been made; the phase has just changed */
    uint32_t adjustments, baselines, refreshes, changes, limits, references;
} fl_mfg_gpu;

typedef struct fl_mfg_frame { /* one step of one GPU */
    fl_mfg_gpu *g;
    const fl_mfg_params *p;
    const fl_gpu_facts *facts;
    const fl_gpu_sample *sample;
    int64_t now_ns;
    uint32_t gpu;
    fl_command *command;
} fl_mfg_frame;
