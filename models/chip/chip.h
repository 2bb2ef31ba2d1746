/* The constants that belong to a chip and that all its workloads share. models/chip/fit_chip.h fits this law to measured
 * settings; models/chip/predict.h uses it to predict what a workload does at other settings.
 *
 *   T(f, m) = ((Tc f_ref/f)^p + (Tm h(f, m))^p)^(1/p) + Tl,   h(f, m) = ((m_ref/m)^q + (f_link/f)^(s q))^(1/q) / at
 * ref P(f, m) = alpha A V^2 f a + beta B (m/m_ref) b + B0(m) + C V + A0 V^2 f
 *
 * These are the laws of models/laws/row.h with two additions. First, bytes reach the SMs through caches and a crossbar that
 * run on the core clock, so memory-bound kernels slow down too below f_link (V100 below 900 MHz, Titan X below 1013 MHz
 * at its top memory clock). f_link = 0 leaves this out. Second, stalled units toggle less. A share `stall` of the
 * dynamic power stays whatever the kernel does; the rest follows the work done per cycle: a = stall + (1 - stall)
 * (f_ref T_ref)/(f T). b follows likewise from stall_memory and the memory clock. A share of 1 leaves this out.
 *
 * Clocks are in MHz (f in GHz in the power law), times in s, powers in W. V is relative to its lowest knot. */
#pragma once

#include "models/laws/device.h"

#define FL_CHIP_KNOTS 24    /* of V(f) */
#define FL_CHIP_MEMS 16     /* memory clocks */
#define FL_CHIP_SHARES 160  /* workloads that form the prior */
#define FL_CHIP_SETTINGS 64 /* settings at which the chip keeps their residuals */

/* Shares of the time in which a part of the chip works, 0..1. The order is that of fl_counter in traces/io/records.h. */
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

/* One measured setting. Where the memory clock is not known, use any one number > 0 for all rows. power_w: NaN = not
 * known. */
typedef struct fl_chip_row {
    uint32_t workload; /* 0 .. */
    double sm_mhz, mem_mhz, time_s, power_w;
    const double *activity; /* borrowed: FL_CHIP_ACTIVITIES values, NaN = not known; NULL = none is known */
} fl_chip_row;

/* Where a setting lies: among the known settings (INSIDE), beyond them (OUTSIDE), anywhere where only one setting is
 * known (ALONE), or at a memory clock beyond the known ones (OTHER_MEMORY). How time continues beyond the known SM
 * clocks is mostly clear; rows at one memory clock say nothing about another. A setting is inside if known rows stand
 * on all four sides: an SM clock as low and one as high, a memory clock as low and one as high. Nothing is inside
 * between two rows that differ in both clocks, since no one can tell the two clocks' parts apart. */
typedef enum fl_chip_place {
    FL_CHIP_INSIDE,
    FL_CHIP_OUTSIDE,
    FL_CHIP_ALONE,
    FL_CHIP_OTHER_MEMORY,
    FL_CHIP_PLACES
} fl_chip_place;

/* How far measurements lie from the law, as shares: an independent scatter, and a smooth part that neighbouring
 * settings share, Gaussian with covariance smooth^2 exp(-(d ln f)^2 / 2 length_sm^2 - (d ln m)^2 / 2 length_mem^2). A
 * workload's own fit absorbs part of the law's error, which then shows at settings that were not measured. The standard
 * deviation therefore also grows with the distance in ln clock from the nearest known setting, by `growth` per unit,
 * separately for each place. The total standard deviation of a prediction is then multiplied by `wide`
 * (models/chip/bars.h). own: the factors that the chip's own workloads suggest, NaN where it has too few. */
typedef struct fl_chip_error {
    double scatter, smooth, length_sm, length_mem;
    double growth[FL_CHIP_PLACES], wide[FL_CHIP_PLACES], own[FL_CHIP_PLACES];
} fl_chip_error;

/* A workload as a point of the prior of time. memory: Tm over Tc + Tm. rest: Tl over the whole time. */
typedef struct fl_chip_share {
    double memory, rest;
    double memory_sd, rest_sd; /* uncertainty that its own settings leave */
    double alpha, beta;
    double activity[FL_CHIP_ACTIVITIES]; /* at the reference clocks; NaN = not known */
} fl_chip_share;

typedef enum fl_chip_law {
    FL_CHIP_FULL,  /* with link and stall */
    FL_CHIP_PLAIN, /* exactly models/laws/row.h's, as the simulator has it */
    FL_CHIP_BEST   /* whichever of the two better predicts workloads that were left out of the fit */
} fl_chip_law;

typedef struct fl_chip {
    double sm_ref, mem_ref;                  /* the highest clocks */
    double sm_min, mem_min;                  /* the range of calibration: min..ref */
    double sharpness;                        /* p */
    double link_mhz, link_slope, link_sharp; /* f_link, s, q */
    fl_chip_share share[FL_CHIP_SHARES];
    uint32_t shares;
    fl_chip_error time_error;
    /* Measured value over law, less 1, of those workloads; NaN = not measured. Where the law is wrong, it is wrong
     * alike for workloads of the same kind. */
    double setting_sm[FL_CHIP_SETTINGS], setting_mem[FL_CHIP_SETTINGS];
    uint32_t settings;
    double time_off[FL_CHIP_SHARES][FL_CHIP_SETTINGS], power_off[FL_CHIP_SHARES][FL_CHIP_SETTINGS];

    double knot_mhz[FL_CHIP_KNOTS], volt[FL_CHIP_KNOTS];
    double volt_sd[FL_CHIP_KNOTS]; /* standard deviation, NaN = not known */
    uint32_t knots;
    /* Some boards hold V higher at higher memory clocks: V(f, m) = max(volt(f), floor(m)). On the Titan X, V is flat up
     * to 975 MHz at a memory clock of 3505 MHz; at 810 MHz it rises with f from the start. */
    double mem_mhz[FL_CHIP_MEMS], b0_w[FL_CHIP_MEMS], volt_floor[FL_CHIP_MEMS];
    uint32_t mems;
    double a_w, a0_w, b_w, c_w;
    double stall, stall_memory;
    double load_mean[2], load_cov[3]; /* prior of alpha and beta: mean; variances and covariance (aa, ab, bb) */
    fl_chip_error power_error;
    int has_power;
    /* Mean power over a binding power limit (models/chip/cap.h), averaged over the workloads measured that way; 0 = not
     * known. */
    double crest, crest_sd;

    /* how well the data determine these values: standard deviations, NaN = not known, INFINITY = not determined */
    double sharpness_sd, link_sd, b0_sd[FL_CHIP_MEMS], c_sd, a0_sd, stall_sd, stall_memory_sd;
    /* W per V^2 GHz that even the workload with the least rise of power gains at the highest memory clock. A0 lies
     * between 0 and this value: the data cannot separate a power that all workloads share from an activity that all of
     * them have. NaN = not known. The plain law's A0 is never above it. */
    double slope_w, slope_sd;
    /* Residual of all rows that the law was fitted to, a robust estimate (1.4826 x median). NaN where there are no more
     * rows than fitted numbers: any law meets the rows then. */
    double time_rms_pct, power_rms_pct;
    double time_left, power_left; /* degrees of freedom: rows less fitted numbers */
    uint32_t workloads;
    size_t rows, time_outliers,
        power_outliers; /* outliers: rows off by more than 6 such deviations and more than 3 % */
    /* Widths that say how alike two workloads' activities are: the standard deviations for DRAM, and for the SMs and
     * their units. INFINITY = the activity does not count. */
    double dram_width, unit_width;
    /* The law in use, FL_CHIP_FULL or FL_CHIP_PLAIN, and the errors of both, in percent (geometric means), on workloads
     * left out of the fit. NaN where the caller did not ask for them or the workloads are too few. */
    fl_chip_law law;
    double time_law_pct[2], power_law_pct[2];
} fl_chip;

double fl_chip_volt(const fl_chip *chip, double sm_mhz,
                    double mem_mhz);                    /* linear between knots, constant beyond the ends */
double fl_chip_b0(const fl_chip *chip, double mem_mhz); /* likewise */
double fl_chip_memory_ratio(const fl_chip *chip, double sm_mhz, double mem_mhz); /* h */

/* The highest clock up to which every V is <= 1 + tolerance; NaN where the first already exceeds it. */
double fl_voltage_floor_mhz(const double *sm_mhz, const double *volt, size_t clocks, double tolerance);

/* The parts of a workload. */
typedef struct fl_chip_load {
    double tc, tm, tl;  /* s at the chip's reference clocks */
    double alpha, beta; /* shares of A and B */
} fl_chip_load;

double fl_chip_time(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz);
/* time_s: the time at these clocks, measured or by the law. */
double fl_chip_power(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz, double time_s);

typedef struct fl_chip_guess {
    double time_s, power_w; /* power_w is NaN where the chip has no power law */
    double time_sd_pct, power_sd_pct;
} fl_chip_guess;
