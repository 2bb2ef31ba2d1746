/* Errors of predicted settings: of interpolated rows (between the known clocks), extrapolated ones, and all. */
#ifndef FL_FIT_SCORE_H
#define FL_FIT_SCORE_H

#include "harness/fit/fit_rows.h"

#include <cjson/cJSON.h>

typedef struct fl_fit_errors { /* absolute, in percent */
    double *time, *power, *energy;
    double *time_sds, *power_sds; /* in stated standard deviations */
    size_t count, room;
} fl_fit_errors;

typedef struct fl_fit_score {
    fl_fit_errors inside, outside; /* interpolated, extrapolated */
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
    size_t asked;         /* rows that nobody measured, and which were predicted */
    size_t beyond;        /* rows to predict outside the clocks that the device was calibrated at */
    bool seen;            /* the device was fitted to it */
    bool active;          /* activities of the known rows said what it is like */
    fl_chip_guess *guess; /* one per row of the entity; known rows have time_sd_pct NaN, refused ones time_s too */
} fl_fit_result_of;

/* Whether a row lies outside the clocks that the device was calibrated at. */
bool fl_fit_is_beyond(const fl_chip *chip, const fl_chip_row *row);

/* Fits the entity's rows that `at` names and predicts the others; those outside the device's calibration only where
 * extrapolate says so, else they are refused: not predicted, and not scored. FL_BAD_INPUT where `at` names none of
 * them. */
fl_status fl_fit_entity_run(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                            bool extrapolate, fl_fit_result_of *out, fl_diag *d);
void fl_fit_result_free(fl_fit_result_of *r);

fl_status fl_fit_score_add(fl_fit_score *to, const fl_fit_score *from, fl_diag *d);
void fl_fit_score_free(fl_fit_score *s);
enum { FL_FIT_INSIDE = 1, FL_FIT_OUTSIDE = 2, FL_FIT_BOTH = 3 };
fl_fit_means fl_fit_score_means(const fl_fit_score *s, int which);
void fl_fit_means_json(const fl_fit_means *m, cJSON *to);

#endif
