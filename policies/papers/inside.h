/* What files of policies/papers share: the meter of a bandit, the fold of assure, the model of power capping. */
#pragma once

#include "policies/policy.h"

#include <stdint.h>

/* What one pull of a bandit's arm cost, from a GPU's counters: EnergyUCB's E_t and UC_t / UU_t (Eq. 4). */

typedef struct fl_bandit_base { /* one GPU's counters at their first refresh since the latch */
    double energy_j, energy_ns, compute_ns, copy_ns;
    double gpu_pct, mem_pct; /* where there is no such counter: sums of the utilisations that refreshed since then */
    int64_t time_ns;         /* of the look that found the energy */
    uint64_t known;          /* FL_BIT(FL_GPU_...) of those that have refreshed since */
} fl_bandit_base;

typedef struct fl_bandit_draw {
    double energy_j; /* of all GPUs in one interval */
    double ratio;    /* core over uncore utilisation */
    uint32_t gpus;   /* that it was read from; 0 = nothing could be */
    uint32_t late;   /* GPUs that can be read, and whose counters do not tell yet what has run since */
} fl_bandit_draw;

#define FL_BANDIT_SIGNALS                                                                                              \
    (FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS))
/* Where engines have no counters: the share of time with a kernel resident stands in for the core's use, that with the
 * memory controller active for the uncore's. */
#define FL_BANDIT_INSTEAD (FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT))

/* Begins a measurement; base: gpu_count. Each counter counts from its first refresh from here on: what it shows until
 * then was counted before, at another clock. */
void fl_bandit_latch(fl_bandit_base *base, const fl_sample *sample);

/* What has run since, as of one interval. To be called at each look, for it is what finds the first refreshes. Energy
 * is taken over the counter's own time where that is known: a counter that refreshes every 100 ms does not cover the
 * 10 ms it is read in. */
fl_bandit_draw fl_bandit_read(fl_bandit_base *base, const fl_sample *sample, double interval_ns);

/* The performance model of the Assure policy: memory utilisation against SM clock as one line or as a fold of two,
 * fitted to the samples of one probe (GEEPAFS, EuroSys '24; SweetSpot port, Eq. 1-3). Pure functions of numbers.
 *
 * The daemon's decisions hang on roundings: utilisations and clocks are whole numbers, so lines often cross exactly at
 * a probe clock, errors tie, and a bound lands exactly on a clock of the ladder. So the arithmetic here is the
 * daemon's, operation for operation, in double and without any tolerance. Do not reorder it.
 *
 * What is known of the daemon leaves three readings open, and its recorded log fits either. Here the turn of a fixed
 * fold is where its lines cross, as for any fold, not its probe clock; the flat performance above it is the low line's
 * value there, as in the bound; and the squares of the low and the high points are added up in one sum. */

enum { FL_FOLD_PROBES_MAX = 32, FL_FOLD_SAMPLES_MAX = 2 * FL_FOLD_PROBES_MAX };

/* 2m samples of m ascending probe clocks, in the order in which they are taken: up, then down. */
typedef struct fl_fold_data {
    uint32_t probe_count;                     /* m, 2..FL_FOLD_PROBES_MAX */
    double probe_mhz[FL_FOLD_PROBES_MAX];     /* m */
    double util_mem_pct[FL_FOLD_SAMPLES_MAX]; /* 2m */
    double power_mw[FL_FOLD_SAMPLES_MAX];     /* 2m, > 0, whole milliwatts as the daemon reads them */
} fl_fold_data;

typedef struct fl_line {
    double slope, offset; /* % per MHz, % */
} fl_line;

typedef enum fl_fold_kind {
    FL_FOLD_NONE, /* no line is near enough to the samples */
    FL_FOLD_LINE, /* low and high are the same line */
    FL_FOLD_FREE, /* two separate lines that cross between their clocks, or at one end of that gap */
    FL_FOLD_FIXED /* two lines that meet at a probe clock */
} fl_fold_kind;

typedef struct fl_fold {
    fl_fold_kind kind;
    fl_line low, high;
    uint32_t high_from; /* the first probe clock at which the high line stands; m for one line */
    double turn_mhz;    /* where low and high cross; 0 for one line */
    double error;       /* residual sum of squares, %^2: of the best line or fold, even where the kind is NONE */
} fl_fold;

/* The probe clock of sample i: s = p0 p1 .. pm-1 pm-1 .. p1 p0. */
static inline uint32_t fl_fold_probe_of(uint32_t probe_count, uint32_t sample) {
    return sample < probe_count ? sample : 2 * probe_count - 1 - sample;
}

/* The best of one line and all folds with two clocks or more on each side. Kind NONE where the error exceeds
 * error_per_point (%^2) times the number of samples. */
fl_fold fl_fold_fit(const fl_fold_data *data, double error_per_point);

/* The probe clock with the largest modelled performance per mean power; the lowest of equals. The fold must not be
 * NONE. */
double fl_fold_efficient_mhz(const fl_fold *fold, const fl_fold_data *data);

/* The lowest clock that keeps theta of the performance at fmax, not limited to any range. The fold must not be NONE. */
double fl_fold_bound_mhz(const fl_fold *fold, const fl_fold_data *data, double theta, double fmax_mhz);

/* The static method of hybrid power capping (power-capping 3.2): power and time of one application against the clocks
 * of GPU and CPU, and the pair of clocks that it takes under a cap. Filled from the table that `foldline fit policy capping`
 * writes. */

typedef struct powercap_side { /* one processor */
    double a_w, b_w, c_w;      /* Eq. 2: A in W per V^2 GHz, B in W, C in W per V */
    double alpha, beta;
    double low_mhz, low_s, high_mhz, high_s; /* Eq. 3 */
    double volt_low_mhz, volt_high_mhz;      /* clocks between which V is known */
    const char *volt;                        /* its quantity */
} powercap_side;

typedef struct powercap_model { /* borrows the table */
    const fl_table *table;
    double static_w, comm_w, comm_s, idle_s; /* Eq. 1 */
    powercap_side gpu, cpu;
    int has_cpu;
    int printed; /* Eq. 3 as printed at its two measured clocks too; else what was measured stands there */
} powercap_model;

/* NULL, or static text saying what is wrong with the table. */
const char *powercap_model_read(powercap_model *m, const fl_table *table);

double powercap_power(const powercap_model *m, const powercap_side *s, double mhz); /* Eq. 2; W */
double powercap_time(const powercap_model *m, const powercap_side *s, double mhz);  /* Eq. 3; s */

enum { POWERCAP_ENERGY, POWERCAP_TIME };

typedef struct powercap_choice {
    double gpu_mhz, cpu_mhz;         /* cpu_mhz 0: the CPU's clock is not chosen */
    double peak_w, time_s, energy_j; /* of the node, as predicted: the largest power of any part of the run */
    int fits;                        /* 0: no pair stays under the cap; this is the one of least power */
} powercap_choice;

/* Over all pairs of clocks whose power does not exceed cap_w in any part of the run: the least energy, or the least
 * time; then the other of the two; then the lower clocks. Ladders: gpu not empty; cpu may be. */
void powercap_choose(const powercap_model *m, fl_ladder gpu, fl_ladder cpu, double cap_w, int objective,
                     powercap_choice *out);
