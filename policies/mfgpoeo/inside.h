/* What the files of MF-GPOEO as released share, part by part: kinds, loss, rules of the baseline, idle gate,
 * controller, stop rule, totals, monitoring, the GPU, windows. */
#pragma once

#include "policies/policy.h"

#include <stdint.h>

/* MF-GPOEO as released, performance data: kernel classes and of the gaps between them, with what the running window
 * measured of each and, beside it, what the database of the default clocks holds. One table of each per GPU, open
 * addressing, plain bytes. Times in ns. */

enum { FL_MFG_KERNELS = 4096, FL_MFG_GAPS = 8192, FL_MFG_STREAMS = 64, FL_MFG_TRIES = 64 };

typedef struct fl_mfg_sums { /* what is kept of one kind; n is whole */
    double n, ns, ns2;       /* count, sum, sum of squares */
} fl_mfg_sums;

typedef struct fl_mfg_kind {
    uint64_t key;          /* 0: the cell is free */
    fl_mfg_sums now, base; /* of the window; of the database */
    uint32_t stream;       /* cell of fl_mfg_data.stream */
} fl_mfg_kind;

typedef struct fl_mfg_stream {
    uint64_t last_kind;  /* of the kernel before, without its stream; 0: none yet in this trace */
    int64_t last_end_ns; /* its end */
    uint32_t id, used;
} fl_mfg_stream;

typedef struct fl_mfg_data { /* all zero: both sides empty */
    fl_mfg_kind kernel[FL_MFG_KERNELS], gap[FL_MFG_GAPS];
    fl_mfg_stream stream[FL_MFG_STREAMS];
    double kernels, over_ns; /* of the window: kernels kept; time of those that found no room */
    double over;             /* kernels and gaps that found no room, since the start */
} fl_mfg_data;

typedef struct fl_mfg_trace { /* what of the records belongs to the window */
    int64_t begin_ns, end_ns; /* kernels that start before or end after do not */
    uint64_t cores;           /* that a grid is rounded to */
} fl_mfg_trace;

/* Blocks of a grid in whole rounds of all cores: the program rounds up to rounds and down to blocks. grid, block:
 * products of their sizes; a block of 0 counts as 1. */
uint64_t fl_mfg_grid(uint64_t grid, uint64_t block, uint64_t cores);

/* A window begins: what was measured before goes, the database stays. */
void fl_mfg_clear(fl_mfg_data *data);

/* A trace begins: no stream has had a kernel yet, so that no gap is measured before its first. */
void fl_mfg_break(fl_mfg_data *data);

/* One kernel record: its time, and the gap before it in its stream. Records without a start or an end are dropped. */
void fl_mfg_add(fl_mfg_data *data, const fl_mfg_trace *trace, const fl_kernel_kind *kind, const fl_kernel_record *r);

/* The window goes into the database, whose counts and sums of the same kinds shrink by d: a kind in both keeps
 * round(d n) of its old n, a new one is copied, one that is only old stays as it is. */
void fl_mfg_merge(fl_mfg_data *data, double d);

/* a / b, and 0 where b is 0. */
static inline double fl_mfg_over(double a, double b) { return b == 0 ? 0 : a / b; }

/* MF-GPOEO as released, the loss of performance: a window's kinds against those of the database, stream by stream. */

typedef struct fl_mfg_index {
    double loss, exe, gap;   /* index - 1: of kernels and gaps, of kernels, of gaps */
    double covered, matched; /* shares of kernel time: of kinds in the database; of those also within the radius */
    double unmatched;        /* share of kernel time in streams without a matched kernel */
} fl_mfg_index;

/* Return the loss of the window, which lasted so long, against the database. Kinds match where both know them and
 * neither deviates by more than the radius (a ratio to the mean): th_exe for kernels, th_gap for gaps, of which both
 * must have seen two. */
fl_mfg_index fl_mfg_compare(const fl_mfg_data *data, double th_exe, double th_gap, double window_s);

/* Power over the database's, times the power k of 1 + loss: 1 energy, 2 EDP, 3 ED2P. */
double fl_mfg_objective(double power_w, double base_power_w, double loss, int64_t k);

/* MF-GPOEO as released, rules of the baseline: how long a window must be, whether windows of the default clocks agree,
 * and how much of the old database each one leaves. Lengths in s, utilisations in percent, losses as fractions. */

typedef struct fl_mfg_length {
    double seconds;   /* of a window: the answer */
    double added;     /* what it has just grown by: the next window is that long and joins the mean untested; else 0 */
    uint32_t repeats; /* windows in a row that agreed with the mean */
} fl_mfg_length;

/* A full window with this mean utilisation, against the running mean's. Returns the factor by which the mean shrinks
 * before the window joins it. step_s: what the length grows by; most_s: its end. */
double fl_mfg_length_test(fl_mfg_length *l, double util, double mean_util, double step_s, double most_s);

int fl_mfg_length_found(const fl_mfg_length *l, double most_s);

typedef struct fl_mfg_repeat { /* what one of them says of the database */
    fl_mfg_index index;
    double apart;              /* GPU utilisation, against the database's (fl_mfg_apart) */
    double util_gpu, util_mem; /* of the window */
} fl_mfg_repeat;

int fl_mfg_violates(const fl_mfg_repeat *r, double th_cover);

/* Part of the old database that stays when the window is merged. */
double fl_mfg_repeat_keeps(const fl_mfg_repeat *r, int violates);

/* Return 1 if another window must follow. */
int fl_mfg_repeat_again(const fl_mfg_index *i, double th_cover);

typedef struct fl_mfg_keep {
    double factor;
    int relative; /* 1: relative to the lengths of window and database */
} fl_mfg_keep;

fl_mfg_keep fl_mfg_refresh_keeps(double loss);

/* The factor in force: relative to the lengths where asked for, never below 0.01. */
double fl_mfg_factor(fl_mfg_keep keep, double window_s, double base_s);

/* MF-GPOEO as released, the idle gate before every window: it passes once the GPU is busy, and holds the SM clock at
 * its lowest while it is not. */

typedef struct fl_mfg_gate { /* all zero: it opens */
    uint32_t samples, busy;  /* of the first round */
    uint32_t recent;         /* one bit a sample of the second round, the newest lowest */
    uint32_t idle;           /* the second round: the first one has failed */
} fl_mfg_gate;

enum { FL_MFG_GATE_WAITS, FL_MFG_GATE_PASSES, FL_MFG_GATE_LIMITS }; /* LIMITS: it waits, and the limit is to be set */

/* Advance the gate by one sample of GPU utilisation. */
int fl_mfg_gate_sample(fl_mfg_gate *gate, int busy);

/* MF-GPOEO as released, the controller: from the loss at a gear to the next gear. Gears are indices of the SM ladder,
 * losses and bound are fractions. */

typedef struct fl_mfg_gains {
    double kp, ki, kd;
} fl_mfg_gains;

typedef struct fl_mfg_pid { /* all zero: (re)started */
    double err, loss, gain; /* of the call before */
    double integral;
    int32_t gear[2];            /* measured in the call before, and in the one before that */
    uint32_t calls, compounded; /* compounded: a row that compounds has been taken */
} fl_mfg_pid;

typedef struct fl_mfg_measured {
    double loss, bound;
    double below_mhz; /* clock that was set less the mean clock; NAN: not known */
    int32_t gear;
    uint32_t gears; /* on the ladder */
} fl_mfg_measured;

/* The gear to measure next, 0..gears-1. */
int32_t fl_mfg_pid_next(fl_mfg_pid *s, const fl_mfg_gains *k, const fl_mfg_measured *m);

/* MF-GPOEO as released, the stop rule: is one of the gears measured so far good enough to stay? */

enum { FL_MFG_KEPT = 6 };

typedef struct fl_mfg_tried { /* one measured gear */
    double rho;               /* (loss - bound) / bound */
    double objective;
    int32_t gear, next; /* next: what the controller proposed then */
} fl_mfg_tried;

typedef struct fl_mfg_tries { /* the last six, the latest at count - 1; a phase change does not clear them */
    fl_mfg_tried entry[FL_MFG_KEPT];
    uint32_t count;
} fl_mfg_tries;

typedef struct fl_mfg_search { /* where the search stands */
    uint32_t adjustments;      /* since (re)start */
    uint32_t gears;            /* on the SM ladder */
    int late;                  /* more than 75 s have been traced since (re)start */
    int low_memory;            /* the memory clock is in the lower half of its ladder */
} fl_mfg_search;

void fl_mfg_try(fl_mfg_tries *t, fl_mfg_tried tried);

/* The gear to stay at; -1: the search goes on. */
int32_t fl_mfg_stop(const fl_mfg_tries *t, const fl_mfg_search *s);

/* MF-GPOEO as released, totals of a window: its length, kernels, and what the library's samples add up to. */

enum { FL_MFG_POWER, FL_MFG_SM, FL_MFG_MEM, FL_MFG_UTIL_GPU, FL_MFG_UTIL_MEM, FL_MFG_MEANS };

typedef struct fl_mfg_totals { /* all zero: nothing measured */
    double seconds, kernels, samples;
    double sum[FL_MFG_MEANS];
} fl_mfg_totals;

/* One reading. Only those count in which all five signals are known and the GPU was busy; power in whole watts. */
void fl_mfg_sample(fl_mfg_totals *t, const fl_gpu_sample *g);

/* *old becomes now + d old. */
void fl_mfg_totals_merge(fl_mfg_totals *old, const fl_mfg_totals *now, double d);

/* Mean over the samples; 0 without any. */
double fl_mfg_mean_of(const fl_mfg_totals *t, int which);

/* Return the distance of two GPU utilisations: |a - b| / (a + b); 0 where both are 0. */
double fl_mfg_apart(double a, double b);

/* MF-GPOEO as released, monitoring: has the workload changed since a gear was found for it? */

typedef struct fl_mfg_watch { /* all zero: it begins */
    uint32_t windows, good;   /* watched; in a row without a bad one, after the first four */
    uint32_t recent;          /* one bit a window, the newest lowest: bad */
} fl_mfg_watch;

/* Sum of differences over sum of sums, each in units of what it can be at most. */
double fl_mfg_distance(const double a[FL_MFG_MEANS], const double b[FL_MFG_MEANS], const double most[FL_MFG_MEANS]);

/* One window at that distance from the reference. Returns 1 where three of the last five were bad: a change. */
int fl_mfg_watched(fl_mfg_watch *w, double distance, double th_ev);

/* Windows' lengths to pause before the next one. */
double fl_mfg_watch_pause(const fl_mfg_watch *w);

/* MF-GPOEO as released, what its parts share: the parameters, all that is kept of one GPU, and one step of it. */

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

/* MF-GPOEO as released, courses 1 to 3: the program's start is waited out, the length of a window is found, and the
 * database of the default clocks is measured. */

void fl_mfg_start_build(const fl_mfg_frame *f);

/* The window of one of the stages up to FL_MFG_REPEAT has ended. Returns 1 where the database stands; else the next
 * window has begun. */
int fl_mfg_end_build(const fl_mfg_frame *f);

/* MF-GPOEO as released, one window: pauses, the idle gate, and the measurement itself. */

/* Sets what of these gears does not hold yet; FL_MFG_DEFAULT: the driver's clock. */
void fl_mfg_set_clocks(const fl_mfg_frame *f, int32_t sm, int32_t mem);

void fl_mfg_set_records(const fl_mfg_frame *f, uint32_t on);

void fl_mfg_reset_limit(const fl_mfg_frame *f);

/* Begins what the plan says, in this step. */
void fl_mfg_begin(const fl_mfg_frame *f, fl_mfg_plan plan);

/* Goes on with it. Returns 1 in the step in which it ends; its totals then stand in f->g->window, its kernels in
 * f->g->data. A window without a kernel, or untraced without a sample, is repeated and pooled. */
int fl_mfg_advance(const fl_mfg_frame *f);

/* One kernel record of this GPU, before the step that it came with. */
void fl_mfg_record(fl_mfg_gpu *g, const fl_gpu_facts *facts, int64_t now_ns, const fl_kernel_kind *kind,
                   const fl_kernel_record *record);

/* MF-GPOEO as released, what the stages of the course share: how one begins its window, and what is made of it. */

/* A stage begins. */
void fl_mfg_measure(const fl_mfg_frame *f, fl_mfg_stage stage, fl_mfg_plan plan);

/* Begin a stage with a traced window of the default clocks, after rest_s, a reset, and 2 s. */
void fl_mfg_measure_baseline(const fl_mfg_frame *f, fl_mfg_stage stage, double rest_s, double seconds);

/* Means (FL_MFG_POWER...) of the database, and of the window that has ended. */
double fl_mfg_base_mean(const fl_mfg_gpu *g, int which);
double fl_mfg_window_mean(const fl_mfg_gpu *g, int which);

/* The window that has ended, on the database: index, loss and objective of f->g. */
void fl_mfg_compare_window(const fl_mfg_frame *f);

/* Merge the window that has ended into the database, whose old part shrinks by the factor. */
void fl_mfg_merge_window(fl_mfg_gpu *g, double factor);

/* MF-GPOEO as released, memory clocks by trial (course 4) and where the SM search starts (course 5). */

/* Share of the ladder from below, rounded up to a gear of it. */
int32_t fl_mfg_high_gear(uint32_t gears, double share);

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
