/* A chip as measurements reveal it: the constants that all workloads on it share, fitted to a sweep of settings, and
 * predictions for new settings and new workloads.
 *
 * fl_chip_fit fits a chip to measured rows; fl_chip_of_device derives one from a platform, fl_kin_chip one from similar
 * chips. fl_chip_predict then predicts a workload from a few of its settings, with error bars; fl_decide_... says how
 * far a choice may be trusted; fl_two_laws_next which setting to measure. fl_cap_... models power limits. fl_chip is
 * plain data; the caller owns all arrays. FL_MODEL_NO_FIT where the data do not determine a result.
 *
 *   T(f, m) = ((Tc f_ref/f)^p + (Tm h(f, m))^p)^(1/p) + Tl
 *   h(f, m) = ((m_ref/m)^q + (f_link/f)^(s q))^(1/q) / its value at the reference clocks
 *   P(f, m) = alpha A V^2 f a + beta B (m/m_ref) b + B0(m) + C V + A0 V^2 f
 *
 * These are the laws of models/laws/laws.h with two additions. First, bytes reach the SMs through caches and a crossbar
 * that run on the core clock, so memory-bound kernels slow down too below f_link (V100 below 900 MHz, Titan X below
 * 1013 MHz at its top memory clock). f_link = 0 leaves this out. Second, stalled units toggle less. A share `stall` of
 * the dynamic power stays whatever the kernel does; the rest follows the work done per cycle: a = stall + (1 - stall)
 * (f_ref T_ref)/(f T). b follows likewise from stall_memory and the memory clock. A share of 1 leaves this out.
 *
 * Clocks are in MHz (f in GHz in the power law), times in s, powers in W. V is relative to its lowest knot. */
#pragma once

#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_CHIP_KNOTS 24    /* of V(f) */
#define FL_CHIP_MEMS 16     /* memory clocks */
#define FL_CHIP_SHARES 160  /* workloads that form the prior */
#define FL_CHIP_SETTINGS 64 /* settings at which the chip keeps their residuals */

/* One measured setting. Where the memory clock is not known, use any one number > 0 for all rows. power_w: NaN = not
 * known. */
typedef struct fl_chip_row {
    uint32_t workload; /* 0 .. */
    double sm_mhz, mem_mhz, time_s, power_w;
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
 * (models/chip/cross.c). own: the factors that the chip's own workloads suggest, NaN where it has too few. */
typedef struct fl_chip_error {
    double scatter, smooth, length_sm, length_mem;
    double growth[FL_CHIP_PLACES], wide[FL_CHIP_PLACES], own[FL_CHIP_PLACES];
} fl_chip_error;

/* A workload as a point of the prior of time. memory: Tm over Tc + Tm. rest: Tl over the whole time. */
typedef struct fl_chip_share {
    double memory, rest;
    double memory_sd, rest_sd; /* uncertainty that its own settings leave */
    double alpha, beta;
} fl_chip_share;

typedef enum fl_chip_law {
    FL_CHIP_FULL,  /* with link and stall */
    FL_CHIP_PLAIN, /* exactly models/laws/laws.h's, as the simulator has it */
    FL_CHIP_BEST,  /* whichever of the two better predicts workloads that were left out of the fit */
    FL_CHIP_OWN    /* none of the chip's: each workload has two laws of its own, at one memory clock (fl_two_laws) */
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
    /* Mean power over a binding power limit, averaged over the workloads measured that way; 0 =
     * not known. */
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
    /* The law in use, FL_CHIP_FULL or FL_CHIP_PLAIN, and the errors of both, in percent (geometric means), on workloads
     * left out of the fit. NaN where the caller did not ask for them or the workloads are too few. */
    fl_chip_law law;
    double time_law_pct[2], power_law_pct[2];
} fl_chip;

double fl_chip_volt(const fl_chip *chip, double sm_mhz,
                    double mem_mhz);                    /* linear between knots, constant beyond the ends */
double fl_chip_b0(const fl_chip *chip, double mem_mhz); /* likewise */

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

/* What a prediction rests on: choices by it broke their bounds as often as a table says (fl_decide_chance). */
typedef enum fl_chip_basis {
    FL_CHIP_STATED,   /* anything else: its deviation is that of a normal */
    FL_CHIP_OWN_LAWS, /* times by two laws of the workload's own rows */
    FL_CHIP_BESIDE,   /* the same beside a calibrated chip, which widens their deviation */
    FL_CHIP_TWO_ROWS, /* a calibrated chip, and rows of the workload at two SM clocks or more that are far apart */
    FL_CHIP_BASES
} fl_chip_basis;

typedef struct fl_chip_guess {
    double time_s, power_w; /* power_w is NaN where the chip has no power law */
    double time_sd_pct, power_sd_pct;
    fl_chip_basis basis;
    double noise_pct; /* the part of time_sd_pct by which repeated runs differed; 0 = none were repeated */
} fl_chip_guess;

/* ---- one program without a chip: two laws through its own rows ----
 *
 *   T/T0 = (1 + b (x^-p - 1))^(1/p)      P/P0 = 1 - d (1 - x (v(x)/v(1))^2)
 *   x = f / f_top      v = 1 + r max(0, (x - 0.4) / 0.6)^1.5
 *
 * T0 and P0 are the row at the highest clock. Each other row gives b, how much the time follows the clock, and d, how
 * much the power does. Both are linear in ln x between rows, and constant outside. p is 4 and r 0.5; with two rows
 * below the top or more, the rows shift both. The deviation of time grows with the distance from the nearest row, and
 * is four times as large below the lowest row. Of boards that took no part in the choice of the constants nothing is
 * known; tests/accuracy.sh prints the errors by board. */

enum { FL_TWO_LAWS_ROWS = 512 };
#define FL_TWO_LAWS_FIRST 0.7 /* of the top clock: there one run tells most about the clocks in between */

typedef struct fl_two_laws {
    double top_mhz, time_s, power_w; /* of the row at the highest clock */
    double sharpness, rise;          /* p, r */
    size_t count;                    /* rows below it, ascending */
    double ln_x[FL_TWO_LAWS_ROWS], slows[FL_TWO_LAWS_ROWS], draws[FL_TWO_LAWS_ROWS]; /* ln x, b, d */
} fl_two_laws;

/* Fit the laws to the rows of one program at one memory clock, in any order. Rows of one clock count as their mean.
 * FL_MODEL_NO_FIT: all rows have one clock. FL_MODEL_INVALID: a value is not above 0, or there are too many rows. */
fl_model_status fl_two_laws_fit(fl_two_laws *l, const fl_chip_row *row, size_t count);
/* Predict the program at a clock. The values of a row are met exactly. */
fl_chip_guess fl_two_laws_at(const fl_two_laws *l, double sm_mhz);

/* Return the clock of the ladder to measure next, so that the clock of least energy within the bound becomes known: the
 * top, then about 0.7 of it, then what the laws choose, until that was measured. NAN: it was measured; the answer is
 * the measured row of least energy within the bound. ladder: ascending, clocks >= 1. */
double fl_two_laws_next(const fl_chip_row *row, size_t count, const double *ladder, size_t clocks, double bound);

/* ---- decisions: how far a choice of setting that rests on a fit may be trusted ----
 *
 * Two numbers: the chance that the bound breaks in reality, and the
 * expected regret. Both follow from the standard deviations that the fit states for its own predictions.
 *
 * Logarithms of times and powers are taken as normal. Errors of two settings count as independent, and so do the errors
 * of time and power at one setting. Where errors are in fact correlated, this makes a choice look less sure than it is,
 * never surer. A setting without a deviation (NaN) counts as certain. The bound is a slowdown as a share: time at the
 * setting over time at the top, less one. */

#define FL_DECIDE_TOLERANCE 1e-12 /* a bound that is met to the last digit holds */

/* The chance of breaking the bound, by what the predictions rest on: how often choices on measured boards broke theirs,
 * where fl_chip_basis names such, else the tail of a normal. It is 0 for at == top and for a bound of INFINITY. */
double fl_decide_chance(const fl_chip_guess *at, const fl_chip_guess *top, double bound);
/* Return whether a setting may be chosen: the prediction holds the bound, and the chance of breaking it is at most risk
 * (with risk 1 the prediction alone decides). Settings without a prediction (NAN) may not be chosen. */
int fl_decide_allows(const fl_chip_guess *at, const fl_chip_guess *top, double bound, double risk);
/* Standard deviation of ln(power x time^delay): 1 = energy, 2 = EDP, 3 = ED2P. */
double fl_decide_cost_sd(const fl_chip_guess *at, double delay);
/* The expected regret at guess[chosen], as a share of power x time^delay. For each other setting it takes the expected
 * improvement times the chance that the setting holds the bound, and returns the largest. This is a lower limit of what
 * knowing all settings would save. */
double fl_decide_regret(const fl_chip_guess *guess, size_t count, size_t top, size_t chosen, double bound,
                        double delay);

/* ---- fitting a chip ---- */

/* Fits the whole chip. Rows come in any order. Each workload needs at least 2 rows; the fit ignores a workload with
 * fewer. NO_FIT: no workload is left. Where no power is known, or none can be fitted, the chip has no power law
 * (has_power 0). */
fl_model_status fl_chip_fit(const fl_chip_row *row, size_t count, fl_chip_law law, fl_chip *chip);

/* A chip of which only the platform's constants are known: the law without the two additions, and wide priors. */
fl_model_status fl_chip_of_device(const fl_device *dev, fl_chip *chip);

/* A chip of which nothing is known but the clocks of measured rows: its law is FL_CHIP_OWN, so fl_chip_predict takes
 * laws of each workload's own. NO_FIT: no workload has rows at two SM clocks and one memory clock. */
fl_model_status fl_chip_of_rows(const fl_chip_row *row, size_t count, fl_chip *chip);

/* ---- a board's power limit: whether it binds, and what a program does under it ----
 *
 *   Under a limit L that binds, the board lowers the SM clock to g, where P(g) = crest L. The time is then T = T(g).
 * P and T are the laws of the program. g is at most the clock that was asked for. Powers are in W.
 * The board holds the limit at each instant, but a program has phases that need less power, so its mean power stays
 * below the limit. The crest is mean power over limit. It is 0.75 to 0.98 on real programs, and nearly the same at all
 * limits of one program. One capped run measures it (a100-pcie-lock-x-cap: 0.967 to 0.976 for one program over limits
 * of 150 to 225 W, 0.985 to 0.996 for another). The model does not follow phases: a program that alternates between
 * phases loses a little more time than T(g) says.
 *
 * A limit binds where power or time differ from their values under a higher limit, at the same requested clocks, by
 * more than the readings scatter. A power near its limit is no sign that the limit binds: a program may need 0.98 of
 * the limit without being held back. */

#define FL_CAP_CREST_LEAST 0.75 /* no program's mean power is below this share of a limit that binds */
#define FL_CAP_CREST_MOST 0.97  /* a mean power above it is close to the limit */

typedef enum fl_cap_verdict {
    FL_CAP_FREE,   /* does not bind */
    FL_CAP_BINDS,  /* the clock was lower than asked for, at least at times */
    FL_CAP_UNTOLD, /* one limit only, and power close to it: the time must decide (models/unsound/unsound.h) */
    FL_CAP_UNHELD  /* the board did not hold the limit (fl_cap_held) */
} fl_cap_verdict;

/* One workload at one pair of asked clocks under one limit. */
typedef struct fl_cap_cell {
    double limit_w, time_s, power_w; /* limit_w: INFINITY = no limit. power_w: NaN = not known */
    fl_cap_verdict verdict;          /* output */
} fl_cap_cell;

/* How well readings repeat, as shares (standard deviations). */
typedef struct fl_cap_scatter {
    double time, power;
} fl_cap_scatter;

/* Sets the verdicts (all but FL_CAP_UNHELD) of the cells of one workload at one pair of clocks. The cells are sorted by
 * limit, highest first.
 */
void fl_cap_test(fl_cap_cell *cell, size_t count, const fl_cap_scatter *scatter);

/* Collects evidence of the scatter: |ln| ratios of time and of power between neighbouring limits that surely do not
 * bind (power below FL_CAP_CREST_LEAST of both). The cells are sorted by limit, highest first. time and power have room
 * for count values. Returns the number of values written. */
size_t fl_cap_repeats(const fl_cap_cell *cell, size_t count, double *time, double *power);
/* The scatter by these values: a robust estimate, never below 0.1 %. With fewer than 5 values it is FL_ROW_NOISE_TIME
 * and FL_ROW_NOISE_POWER. The function reorders the arrays. */
fl_cap_scatter fl_cap_scatter_of(double *time, double *power, size_t count);

/* The clock at which the power is `watts`, interpolated linearly in ln P over ln f. mhz ascends, count >= 1. RANGE:
 * watts is below the power at the lowest clock; *at is then the lowest clock. Where watts exceeds the power at the
 * highest clock, the limit does not hold the clock down: *at is the highest clock, and the status is OK. INVALID: a
 * power or clock that is not above 0. */
fl_model_status fl_cap_clock(const double *mhz, const double *power_w, size_t count, double watts, double *at);

/* ---- one program under limits, without its clocks ----
 *
 *   P = min(P0, c(L) L)      c(L) = 1 - (1 - c_run) (L / L_run)^1.5, linear in ln L between two runs
 *   P/P0 = 1 - d (1 - h(x))  T/T0 = (1 + b (x^-4 - 1))^(1/4)
 *
 * P0 and T0 are the run under the highest limit. The clock x, a share of the top one, follows from the power; h is the
 * height of fl_two_laws. b comes from the runs under limits that bind, and is linear in the power between them. d is
 * not known: time is a mean over d from 0.3 to 0.98, by a prior of 0.8 give or take 0.15, by how far runs would slow
 * more than their clock, and by how far two runs are from one b. Of ten sweeps of limits three runs (the highest limit,
 * a middle one, the lowest) predicted the others within 2.2 % in time and 1.1 % in power in the mean; the constants
 * were chosen with these in view. */

enum { FL_CAP_LAW_ROWS = 64, FL_CAP_LAW_DRAWS = 35 };

typedef struct fl_cap_law {
    double time_s, power_w; /* under the highest limit */
    size_t count;           /* rows under limits that bind, ascending; as shares of the above: */
    double limit[FL_CAP_LAW_ROWS], power[FL_CAP_LAW_ROWS], time[FL_CAP_LAW_ROWS];
    double weight[FL_CAP_LAW_DRAWS]; /* of d = 0.3, 0.32, ... */
} fl_cap_law;

/* A mean power above this share of its limit: the board did not hold the limit. From sweeps of limits on ten boards,
 * chosen after those had been seen. */
#define FL_CAP_HELD_MOST 1.02

/* Return how many of the cells, sorted by limit, highest first, ran under a limit that holds. The others drew more than
 * their limit allows, or ran as under the limit above: the board was at its floor. They tell nothing of their limit. */
size_t fl_cap_held(const fl_cap_cell *cell, size_t count);

/* Fit the law to cells that hold, sorted by limit, highest first. NO_FIT: no limit binds. INVALID: a value is not above
 * 0, or the order is wrong. */
fl_model_status fl_cap_law_fit(fl_cap_law *l, const fl_cap_cell *cell, size_t count);
/* Predict the program under a limit. */
fl_chip_guess fl_cap_law_at(const fl_cap_law *l, double limit_w);
/* Return the clock at which the program draws that power, a share of the top clock (geometric mean over d). */
double fl_cap_law_clock(const fl_cap_law *l, double watts);

/* A GPU without measurements, estimated from its ladder, its TDP and similar chips. Similar chips supply the
 * constants of the power law as shares of the TDP at the top clock, the clock up to which V stays flat, and how far and
 * how steeply V rises. Their spread from chip to chip says how uncertain these values are for the next chip. An idle
 * log and a run narrow the spread.
 *
 * The method draws chips from that spread (log-normal, widened because the known chips are few), weighs them by how
 * well they match the log and the run, and gives each a workload of its own. The centre of the chips is the law of the
 * fl_chip. The distance of each from the centre is stored as residuals are, so that predictions and their deviations
 * account for it. The sequence of chips is fixed (Roberts' additive
 * recurrence): nothing is random. */

/* X(NAME, WHAT): all above 0. */
#define FL_KIN_PARTS(X)                                                                                                \
    X(A, "A V^2 f at the top, of TDP")                                                                                 \
    X(A0, "A0 V^2 f at the top, of TDP")                                                                               \
    X(B, "B, of TDP")                                                                                                  \
    X(B0, "B0 at the default memory clock, of TDP")                                                                    \
    X(C, "C, of TDP")                                                                                                  \
    X(KNEE, "clock up to which V rests, of the top clock")                                                             \
    X(RISE, "V at the top, less 1")                                                                                    \
    X(BEND, "exponent of V's rise")

#define FL_KIN_ENUM(name, what) FL_KIN_##name,
enum { FL_KIN_PARTS(FL_KIN_ENUM) FL_KIN_COUNT };
extern const char *const fl_kin_what[FL_KIN_COUNT];

typedef struct fl_kin { /* one known chip */
    double part[FL_KIN_COUNT];
} fl_kin;

/* INVALID: the device has no TDP or lacks a part of the law. A part that is 0 there counts as a hundredth. */
fl_model_status fl_kin_of_device(const fl_device *dev, fl_kin *out);

typedef struct fl_kin_spread { /* of each part: its median, and the factor of one standard deviation (1.3: +-30 %) */
    double middle[FL_KIN_COUNT], factor[FL_KIN_COUNT];
} fl_kin_spread;

/* The prior for the next chip from known chips: mean and spread of their logarithms. NO_FIT: fewer than three chips. */
fl_model_status fl_kin_prior(const fl_kin *kin, size_t count, fl_kin_spread *out);

typedef struct fl_kin_facts {        /* borrowed */
    const int32_t *sm_mhz, *mem_mhz; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    double default_mem_mhz, tdp_w;
} fl_kin_facts;

/* idle: points of the GPU idling with a context open at the default memory clock. run: settings of one workload (power
 * NaN = not known). Either may be empty. *after: what is known of the parts afterwards; may be NULL. The chip's
 * `workloads` is 0, since none was measured on it. INVALID: impossible facts. */
fl_model_status fl_kin_chip(const fl_kin_facts *facts, const fl_kin_spread *prior, const fl_idle_point *idle,
                            size_t idle_count, const fl_chip_row *run, size_t run_count, fl_chip *chip,
                            fl_kin_spread *after);

/* ---- predicting a workload from a few of its settings ---- */

/* Predicts a workload at `asked` settings from its `known` measured rows (workload ids are ignored; at least one row).
 * The prediction is the mean over everything that the known rows and the chip's other workloads leave possible, and it
 * carries over the smooth part of the known rows' errors. Where the chip was calibrated, times between two known SM
 * clocks, the lower at least 66 % of the higher, come from laws of the workload's own (fl_two_laws); other times, and
 * all powers, come from the chip. load: the most likely single values of its parts; may be NULL. By laws of the
 * workload's own, the parts are NaN, and so are predictions at a memory clock with fewer than two known SM clocks, of
 * other settings than the known ones. */
fl_model_status fl_chip_predict(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess, fl_chip_load *load);

/* ---- curves of single workloads ----
 *
 * A workload's time or power as a smooth function of its clocks, from its own rows alone. The curve says how far each
 * row lies from the curve through the other rows. ln y is a Gaussian process over x = ln f and z = ln m:
 *
 *   K(a, b) = level^2 + slope^2 (x_a x_b + z_a z_b) + amplitude^2 exp(-(dx / length)^2 / 2 - (dz / length)^2 / 2)
 *             + noise^2 [a = b]
 *
 * The process knows no law of a chip, so it can judge the rows that laws are fitted to. With A = K^-1, row i lies [A
 * y]_i / A_ii off the curve of the others, with the variance 1 / A_ii (leave-one-out; Rasmussen and Williams 2006, Eq.
 * 5.12). */

#define FL_ROW_NOISE_TIME 0.005 /* shares: how well times and powers repeat; the fits of a chip assume the same */
#define FL_ROW_NOISE_POWER 0.01

typedef struct fl_row_curve {
    size_t n;
    double *x, *z, *y;  /* ln clocks and ln of the value, each about its mean */
    double *inverse;    /* n x n */
    double *weight;     /* inverse y */
    char *known, *used; /* n entries each: whether the row has a value, and whether the curve uses it */
    double x_mean, z_mean, y_mean, noise;
} fl_row_curve;

/* Opens the curve of the powers if power is set, else that of the times. NO_FIT: fewer than 3 rows have a value. */
fl_model_status fl_row_curve_open(const fl_chip_row *row, size_t n, int power, fl_row_curve *curve);
void fl_row_curve_close(fl_row_curve *curve);

/* How far row i lies from the curve of all other rows in use, in ln y, and the standard deviation of that distance. NAN
 * where the row has no value. */
void fl_row_curve_off(const fl_row_curve *curve, size_t i, double *off, double *sd);
void fl_row_curve_drop(fl_row_curve *curve, size_t i);             /* takes the row out of the curve */
fl_model_status fl_row_curve_admit(fl_row_curve *curve, size_t i); /* puts it back */
double fl_row_curve_at(const fl_row_curve *curve, size_t without, double sm_mhz, double mem_mhz);
double fl_row_curve_slope(const fl_row_curve *curve, size_t without, double sm_mhz,
                          double mem_mhz); /* d ln y / d ln f */
