/* What the files of harness/fit/chip share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Settings without measurements that a user asks a fit to predict. */

/* Adds to each entity a row, with time and power NaN, for each requested setting that the entity has no row of. list:
 * clocks in the form of --at ("sm=952,1140", "sm=952/mem=405,877"; without memory clocks at the entity's highest), or
 * "calibrated": every setting at which the chip was calibrated. Clocks have the names under which a user sets them
 * (harness/chip/chip.h). *added: how many rows. FL_BAD_INPUT: another text, or a chip without a calibration. */
fl_status fl_fit_ask(const char *list, const fl_chip *chip, fl_fit_rows *r, size_t *added, fl_diag *d);

/* Errors of predicted settings: interpolated (between the known clocks), extrapolated, and all. */

typedef struct fl_fit_errors { /* absolute, in percent */
    double *time, *power, *energy;
    double *time_sds, *power_sds; /* in stated standard deviations */
    size_t count, room;
} fl_fit_errors;

typedef struct fl_fit_score {
    fl_fit_errors inside, outside; /* interpolated, extrapolated */
    fl_fit_errors capped;          /* under a power limit that binds (inside.h) */
    size_t fitted;                 /* rows */
} fl_fit_score;

typedef struct fl_fit_means {
    double time_mape, time_p95, power_mape, power_p95, energy_mape, energy_p95; /* percent, NaN where no row */
    double time_within, power_within; /* share of the rows off by no more than 2 stated standard deviations, percent */
    size_t rows;
} fl_fit_means;

typedef struct fl_fit_result_of { /* one entity */
    fl_chip_load load;
    fl_fit_score score;
    size_t asked;    /* rows without measurement that were predicted */
    size_t untaught; /* rows that the prediction might use, but which lie outside the device's calibrated clocks: they
                        are not used */
    size_t beyond;   /* rows to predict outside the device's calibrated clocks */
    bool seen;       /* the device was fitted to it */
    fl_chip_guess *guess; /* one per row of the entity; known rows have time_sd_pct NaN, refused ones time_s too */
} fl_fit_result_of;

/* Fits the entity's rows that the prediction may use and predicts those that `at` does not name. Rows outside the
 * device's calibration count only where extrapolate is set; otherwise they are refused: not used, not predicted and not
 * scored. Where all rows that `at` names are refused, nothing is predicted (guess NULL). FL_BAD_INPUT where `at` names
 * none. */
fl_status fl_fit_entity_run(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                            bool extrapolate, fl_fit_result_of *out, fl_diag *d);
void fl_fit_result_free(fl_fit_result_of *r);

void fl_fit_score_add(fl_fit_score *to, const fl_fit_score *from);
/* Adds one error: the predicted against the measured values. */
void fl_fit_score_add_row(fl_fit_errors *to, const fl_chip_guess *guess, double time_s, double power_w);
void fl_fit_score_free(fl_fit_score *s);
enum {
    FL_FIT_INSIDE = 1,
    FL_FIT_OUTSIDE = 2,
    FL_FIT_BOTH = 3,
    FL_FIT_CAPPED = 4
}; /* FL_FIT_CAPPED: only rows under a limit */
fl_fit_means fl_fit_score_means(const fl_fit_score *s, int which);
void fl_fit_means_json(const fl_fit_means *m, cJSON *to);

/* Settings under a power limit that binds, predicted by models/chip/chip.h: the board lowers the clock until the mean
 * power is crest times the limit. */

/* The origin of the crest. */
typedef struct fl_fit_crest {
    enum { FL_FIT_CREST_RUN, FL_FIT_CREST_DEVICE, FL_FIT_CREST_GIVEN } kind;
    double share; /* the given value */
} fl_fit_crest;

/* Parses "run" (one capped run of the workload, the default), "device" (its calibration), or a share such as 0.95. */
fl_status fl_fit_crest_parse(const char *text, fl_fit_crest *crest, fl_diag *d);

typedef struct fl_fit_capped_row { /* one for each of the entity's capped rows, in the same order */
    fl_chip_guess guess;           /* NAN: not predicted */
    double ran_mhz;
    bool looked, beyond; /* looked: this run gave the crest; beyond: below the calibrated clocks */
} fl_fit_capped_row;

typedef struct fl_fit_capped_result {
    fl_fit_capped_row *row; /* count, owned */
    size_t first, count;    /* rows of r->capped */
    double crest;           /* NAN: not known, nothing is predicted */
    size_t refused;         /* rows below the calibrated clocks, which are not predicted unless extrapolate is set */
} fl_fit_capped_result;

/* Predicts the capped rows of entity e from the settings that `at` names; their errors are added to score->capped.
 * count is 0 for an entity without such rows, a chip without a power law, and a workload of which the prediction may
 * use no setting. */
fl_status fl_fit_capped_run(const fl_chip *chip, const fl_fit_rows *r, size_t e, const fl_fit_at *at,
                            const fl_fit_crest *crest, bool extrapolate, fl_fit_score *score, fl_fit_capped_result *out,
                            fl_diag *d);
void fl_fit_capped_free(fl_fit_capped_result *result);

/* Median and spread of the workloads' own crests. Returns how many workloads have one. 0: it sets neither. */
size_t fl_fit_crest_of_rows(const fl_fit_rows *r, double *share, double *sd);

/* Print which law of time suits each workload that was measured at four or more SM clocks: max-scaling with this
 * sharpness, or a fold line of bandwidth. Errors are those on clocks left out in turn; nothing else of the fit enters.
 */
void fl_fit_laws_print(const fl_fit_rows *r, double sharpness);
/* Add the same of one workload to an object, as "laws"; nothing where it has fewer clocks. */
void fl_fit_laws_json(const fl_fit_rows *r, size_t entity, double sharpness, cJSON *to);

/* The idle clock tree of a board, from a log in which its GPU idles at several clocks with a context open. */

typedef struct fl_idle_log {
    fl_idle_clock idle;
    double a0_sd; /* standard deviation of idle.a0_w, from the scatter about the law */
    double low_mhz, high_mhz;
    size_t clocks, readings;
    int device; /* the log's first GPU that idles at enough clocks; units differ, so their readings are never mixed */
} fl_idle_log;

/* Idle power by clock of the log's first GPU that idles at four clocks or more, ascending. The caller frees *point. */
fl_status fl_idle_log_points(const char *path, fl_idle_point **point, size_t *count, int *device, fl_diag *d);

/* V is the chip's, or its floor below the calibrated clocks. FL_BAD_INPUT where no GPU of the log idles at four clocks
 * or more. */
fl_status fl_idle_log_fit(const char *path, const fl_chip *chip, fl_idle_log *out, fl_diag *d);

/* The report of `fit device` on the terminal: each constant, how well it is known, and what the data do not determine.
 */

#define FL_FIT_UNKNOWN 0.5 /* a value whose standard deviation exceeds this share of it counts as not determined */

/* Whether the data determine A (which comes with V^2: a steeper V and a smaller A fit equally well) and B. Without a
 * spare degree of freedom they determine neither. */
bool fl_fit_knows_a(const fl_chip *chip);
bool fl_fit_knows_b(const fl_chip *chip);

/* "1.2", an error in percent, or "n/a" where there are as many fitted numbers as rows. buf: 32 bytes; the function
 * returns it. */
char *fl_fit_error_text(double pct, char *buf);

/* full: the law with its additions; plain: the simulator's law. files: the sweeps' names; idle: clocks 0 =
 * none. */
void fl_fit_device_print(const fl_chip *full, const fl_chip *plain, const fl_fit_rows *rows, const char *files,
                         const fl_idle_log *idle);

/* A GPU of which only facts are known, namely its ladders and its TDP. Everything else comes from the bundled chips, an
 * idle log and a run. */

/* A file of facts: {"name": "...", "sm_mhz": ladder, "mem_mhz": ladder, "default_mem_mhz": MHz, "tdp_w": W,
 * "peak_gb_s": GB/s}, ladders as in a platform file. The name, the default memory clock (the highest) and the bandwidth
 * are optional. */
typedef struct fl_fit_facts {
    char name[64];
    int32_t *sm, *mem;
    fl_kin_facts known; /* borrows sm and mem */
    double peak_gb_s;   /* NAN = not known */
    size_t kin;         /* bundled chips behind the prior */
    size_t idle_clocks; /* clocks in the idle log; 0 = none */
    size_t run_rows;    /* rows of the run */
    fl_kin_spread prior, after;
    fl_board board;    /* the board whose facts these are, where it is a bundled one; else zeroed */
    bool step_assumed; /* only the ends of the board's ladder are known */
    bool low_assumed;  /* and the lowest of these is known only as the clock of the idle board */
    bool mem_known;    /* the run and the facts both have memory clocks */
} fl_fit_facts;

/* Reads the facts of a file, or of a bundled board by its name. FL_BAD_INPUT where a board lacks a required fact. */
fl_status fl_fit_facts_read(const char *path, fl_fit_facts *f, fl_diag *d);
void fl_fit_facts_free(fl_fit_facts *f);

/* Makes the chip. idle: a log, NULL = none. run: a sweep of one workload, NULL = none. */
fl_status fl_fit_facts_chip(fl_fit_facts *f, const char *idle, const char *run, fl_chip *chip, fl_diag *d);

/* Prints each part of the law: its centre, two deviations to either side, and the same for the prior. */
void fl_fit_facts_print(const fl_fit_facts *f);

/* A platform file of a GPU of which only facts are known. */

/* The file as JSON, with a note on each value: its origin, and two deviations to either side. base: the platform for
 * sensors, actuators and the host. The caller frees *root, also after a failure. */
fl_status fl_fit_facts_device(const fl_fit_facts *f, const fl_chip *chip, const char *base, cJSON **root, fl_diag *d);

/* Sweeps that have only power limits: no one recorded the SM clock under a limit. Two laws of each workload's own give
 * its mean power by limit, its time by power, and its clock relative to the top (fl_cap_law, models/chip/chip.h).
 * Questions and answers name limits. */

/* Gives all rows of a latent sweep the clocks that the laws infer, of which top_mhz is the highest; a fit of the device
 * can then use them like any other rows. mem_mhz: for sweeps without memory clocks. FL_BAD_INPUT where no limit binds.
 */
fl_status fl_fit_latent_fill(fl_fit_rows *r, double top_mhz, double mem_mhz, fl_diag *d);

/* Predicts entity e's rows under the limits that `at` does not name ("ends", "all", "caps=150,250") from those that it
 * names. Errors go to score->capped; a row that the prediction used is marked, and crest is NAN. FL_BAD_INPUT where
 * `at` names fewer than two limits of the entity, or none that binds. */
fl_status fl_fit_latent_run(const fl_fit_rows *r, size_t e, const fl_fit_at *at, fl_fit_score *score,
                            fl_fit_capped_result *out, fl_diag *d);
/* Return the power limit to measure next, in W, so that time becomes known within a few percent: with the highest limit
 * it takes two that bind. NAN: they were used. */
double fl_fit_latent_next(const fl_fit_rows *r, const fl_fit_capped_result *of);

/* Which measurements a device was fitted to: its file keeps a mark (a hash) of each row's values. If a workload is
 * among them, the device knows the answers already, whatever the workload's name, file or order of rows. */

#define FL_FIT_MARKS_KEY "rows_seen" /* in a calibration */

typedef struct fl_fit_marks {
    uint32_t *mark; /* count, ascending */
    size_t count;
} fl_fit_marks;

/* The marks of entities with two rows or more, to which a device is fitted. */
fl_fit_marks fl_fit_marks_make(const fl_fit_rows *r);
cJSON *fl_fit_marks_to_json(const fl_fit_marks *m); /* the caller owns it */
/* The marks of a calibration; empty where it has none. */
fl_status fl_fit_marks_from_json(const fl_json *calibration, fl_fit_marks *m, fl_diag *d);
void fl_fit_marks_free(fl_fit_marks *m);

/* Whether the marks contain half of the entity's rows or more. */
bool fl_fit_marks_have(const fl_fit_marks *m, const fl_fit_rows *r, const fl_fit_entity *e);

/* The files of `fit workload`: every row with its prediction, and the completed sweep. */

/* Writes "SM 510 to 1530 MHz, memory 877 to 877 MHz", the calibrated range of the device with r's names for clocks,
 * into buf. Returns buf. */
const char *fl_fit_range_text(const fl_chip *chip, const fl_fit_rows *r, char *buf, size_t size);

/* result, capped: one per entity of r, without guesses where the entity was left out. Refused rows have no prediction.
 * Where there are capped rows, a column power_cap_w holds their limits. */
fl_status fl_fit_write_rows(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                            const fl_fit_capped_result *capped, const char *path, fl_diag *d);
/* Refuse a workload that two files hold: a written sweep could not tell them apart. */
fl_status fl_fit_check_twice(const fl_fit_rows *r, const fl_fit_result_of *result, fl_diag *d);
/* A canonical sweep: measured values where the prediction used them, else predictions, with their standard deviations
 * in time_sd_pct and power_sd_pct (empty: measured). It contains no refused rows. Each setting occurs once, as the mean
 * of the used rows. FL_BAD_INPUT where two files have the same workload, because no reader could separate their
 * settings. extrapolated: how many settings lie outside the calibration; the head states it. */
fl_status fl_fit_write_sweep(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                             size_t extrapolated, const char *path, fl_diag *d);
