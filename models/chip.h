/* What belongs to a chip and is shared by all its workloads: the law that models/fit_chip.h fits to measured settings,
 * and by which models/fit_chip_predict.h tells what a workload does at others.
 *
 *   T(f, m) = ((Tc f_ref/f)^p + (Tm h(f, m))^p)^(1/p) + Tl,   h(f, m) = ((m_ref/m)^q + (f_link/f)^(s q))^(1/q) / at ref
 *   P(f, m) = alpha A V^2 f a + beta B (m/m_ref) b + B0(m) + C V + A0 V^2 f
 *
 * which are models/row.h's laws with two additions. Bytes reach the SMs through caches and a crossbar on the core
 * clock, so below f_link memory-bound kernels slow down too (V100 below 900 MHz, Titan X below 1013 MHz at its top
 * memory clock); f_link = 0 leaves that out. And stalled units toggle less: of the dynamic power a share `stall` stays
 * whatever the kernel does, the rest follows the work done per cycle, a = stall + (1 - stall) (f_ref T_ref)/(f T),
 * likewise b with stall_memory and the memory clock; 1 leaves that out.
 *
 * Clocks MHz (f in GHz in the power law), times s, powers W, V relative to its lowest knot. */
#ifndef FL_CHIP_H
#define FL_CHIP_H

#include "models/device.h"

#define FL_CHIP_KNOTS 24    /* of V(f) */
#define FL_CHIP_MEMS 16     /* memory clocks */
#define FL_CHIP_SHARES 160  /* workloads that make the prior */
#define FL_CHIP_SETTINGS 64 /* settings at which their residuals are kept */

/* Shares of the time in which a part of the chip works, 0..1; the order is that of traces/records.h's fl_counter. */
typedef enum fl_chip_activity {
    FL_CHIP_DRAM,
    FL_CHIP_SM,
    FL_CHIP_OCCUPANCY,
    FL_CHIP_FP32,
    FL_CHIP_FP64,
    FL_CHIP_FP16,
    FL_CHIP_TENSOR,
    FL_CHIP_ACTIVITIES
} fl_chip_activity;

/* One measured setting. Memory clock: some number > 0, the same where it is not known. power_w NaN = not known. */
typedef struct fl_chip_row {
    uint32_t workload; /* 0 .. */
    double sm_mhz, mem_mhz, time_s, power_w;
    const double *activity; /* FL_CHIP_ACTIVITIES of them, NaN = not known; NULL where none is. Borrowed */
} fl_chip_row;

/* Where a setting lies: among the known ones, beyond them, at a memory clock beyond theirs, or anywhere where there is
 * but one. How time goes on beyond the SM clocks is mostly known; what another memory clock does is not told by rows at
 * one. Among: known rows stand on all four sides, with an SM clock as low, as high, and a memory clock as low, as high.
 * Between two rows that differ in both clocks nothing is, since neither clock's part can be told. */
typedef enum fl_chip_place {
    FL_CHIP_INSIDE,
    FL_CHIP_OUTSIDE,
    FL_CHIP_ALONE,
    FL_CHIP_OTHER_MEMORY,
    FL_CHIP_PLACES
} fl_chip_place;

/* How far measurements lie from the law, as shares: independent scatter, and a smooth part that neighbouring settings
 * share: Gaussian with covariance smooth^2 exp(-(d ln f)^2 / 2 length_sm^2 - (d ln m)^2 / 2 length_mem^2). What a
 * workload's own fit hides of the law's error shows where it was not looked at: a standard deviation that grows with
 * the distance in ln clock from the nearest known setting, by `growth` per unit, each place its own. The whole of a
 * prediction's standard deviation is then multiplied with `wide` (models/fit_chip_bars.h). own: the factors by the
 * chip's own workloads, NaN where it has too few. */
typedef struct fl_chip_error {
    double scatter, smooth, length_sm, length_mem;
    double growth[FL_CHIP_PLACES], wide[FL_CHIP_PLACES], own[FL_CHIP_PLACES];
} fl_chip_error;

/* A workload as a point of the prior of time: memory's part of core + memory, and the rest's part of all. */
typedef struct fl_chip_share {
    double memory, rest;
    double memory_sd, rest_sd; /* what its own settings leave open */
    double alpha, beta;
    double activity[FL_CHIP_ACTIVITIES]; /* at the reference clocks; NaN = not known */
} fl_chip_share;

typedef enum fl_chip_law {
    FL_CHIP_FULL,  /* with link and stall */
    FL_CHIP_PLAIN, /* exactly models/row.h's, as the simulator has it */
    FL_CHIP_BEST   /* that of the two which predicts workloads left out better */
} fl_chip_law;

typedef struct fl_chip {
    double sm_ref, mem_ref;                  /* the highest clocks */
    double sm_min, mem_min;                  /* the range of calibration: min..ref */
    double sharpness;                        /* p */
    double link_mhz, link_slope, link_sharp; /* f_link, s, q */
    fl_chip_share share[FL_CHIP_SHARES];
    uint32_t shares;
    fl_chip_error time_error;
    /* Measured over law - 1 of those workloads, NaN = not measured: where the law is wrong it is wrong for workloads of
     * their kind alike. */
    double setting_sm[FL_CHIP_SETTINGS], setting_mem[FL_CHIP_SETTINGS];
    uint32_t settings;
    double time_off[FL_CHIP_SHARES][FL_CHIP_SETTINGS], power_off[FL_CHIP_SHARES][FL_CHIP_SETTINGS];

    double knot_mhz[FL_CHIP_KNOTS], volt[FL_CHIP_KNOTS];
    double volt_sd[FL_CHIP_KNOTS]; /* standard deviation, NaN = not known */
    uint32_t knots;
    /* Some boards hold V higher at higher memory clocks (Titan X: V is flat up to 975 MHz at 3505 MHz, at 810 MHz it
     * follows f from the start): V(f, m) = max(volt(f), floor(m)). */
    double mem_mhz[FL_CHIP_MEMS], b0_w[FL_CHIP_MEMS], volt_floor[FL_CHIP_MEMS];
    uint32_t mems;
    double a_w, a0_w, b_w, c_w;
    double stall, stall_memory;
    double load_mean[2], load_cov[3]; /* prior of alpha and beta: mean; variances and covariance (aa, ab, bb) */
    fl_chip_error power_error;
    int has_power;
    /* Mean power over a power limit that binds (models/cap.h), over the workloads measured so; 0 = not known. */
    double crest, crest_sd;

    /* how well the data tell them: standard deviations, NaN = not known, INFINITY = the data cannot tell */
    double sharpness_sd, link_sd, b0_sd[FL_CHIP_MEMS], c_sd, a0_sd, stall_sd, stall_memory_sd;
    /* W per V^2 GHz that even the workload with the least gains at the highest memory clock. A0 lies between 0 and
     * this: what is common to all workloads cannot be told from an activity that all of them have. NaN = not known. The
     * plain law's A0 is never above it. */
    double slope_w, slope_sd;
    /* Of all rows that it was fitted to, robust (1.4826 x median). NAN where there are no more rows than numbers to
     * fit: any law meets them then. */
    double time_rms_pct, power_rms_pct;
    double time_left, power_left; /* rows less numbers fitted: degrees of freedom */
    uint32_t workloads;
    size_t rows, time_outliers, power_outliers; /* outliers: rows off by more than 6 such deviations and 3 % */
    /* How alike two workloads' activities are: deviations of DRAM's, and of the SMs' and their units'. INFINITY = does
     * not count. */
    double dram_width, unit_width;
    /* Which law it has, FL_CHIP_FULL or FL_CHIP_PLAIN; errors of both, in percent (geometric means), on workloads left
     * out of the fit: NaN where nobody asked or the workloads are too few. */
    fl_chip_law law;
    double time_law_pct[2], power_law_pct[2];
} fl_chip;

double fl_chip_volt(const fl_chip *chip, double sm_mhz, double mem_mhz); /* lines between knots, the ends outside */
double fl_chip_b0(const fl_chip *chip, double mem_mhz);                  /* likewise */
double fl_chip_memory_ratio(const fl_chip *chip, double sm_mhz, double mem_mhz); /* h */

/* The highest clock up to which every V is <= 1 + tolerance; NaN where the first already exceeds it. */
double fl_voltage_floor_mhz(const double *sm_mhz, const double *volt, size_t clocks, double tolerance);

/* The parts of a workload. */
typedef struct fl_chip_load {
    double tc, tm, tl;  /* s at the chip's reference clocks */
    double alpha, beta; /* shares of A and B */
} fl_chip_load;

double fl_chip_time(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz);
/* time_s: at these clocks, as measured or by the law. */
double fl_chip_power(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz, double time_s);

typedef struct fl_chip_guess {
    double time_s, power_w; /* power NaN where the chip has none */
    double time_sd_pct, power_sd_pct;
} fl_chip_guess;

#endif
