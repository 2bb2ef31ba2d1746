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
#pragma once

#include <stdint.h>

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
