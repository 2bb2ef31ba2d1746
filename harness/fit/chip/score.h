/* Errors of predicted settings: interpolated (between the known clocks), extrapolated, and all. */
#pragma once

#include "harness/chip/rows.h"
#include "harness/chip/sweep_chip.h"

#include <cjson/cJSON.h>

typedef struct fl_fit_errors { /* absolute, in percent */
    double *time, *power, *energy;
    double *time_sds, *power_sds; /* in stated standard deviations */
    size_t count, room;
} fl_fit_errors;

typedef struct fl_fit_score {
    fl_fit_errors inside, outside; /* interpolated, extrapolated */
    fl_fit_errors capped;          /* under a power limit that binds (fit_capped.h) */
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
    bool active;     /* activities of the known rows helped to place it */
    fl_chip_guess *guess; /* one per row of the entity; known rows have time_sd_pct NaN, refused ones time_s too */
} fl_fit_result_of;

/* The rows of an entity that the prediction uses: those that `at` names and that the device can predict. known: room
 * for e->count rows. Returns how many. */
size_t fl_fit_known(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                    bool extrapolate, fl_chip_row *known);

/* Fits the entity's rows that the prediction may use and predicts those that `at` does not name. Rows outside the
 * device's calibration count only where extrapolate is set; otherwise they are refused: not used, not predicted and not
 * scored. Where all rows that `at` names are refused, nothing is predicted (guess NULL). FL_BAD_INPUT where `at` names
 * none. */
fl_status fl_fit_entity_run(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                            bool extrapolate, fl_fit_result_of *out, fl_diag *d);
void fl_fit_result_free(fl_fit_result_of *r);
/* Gives the used rows their deviation (fl_chip_measured), for callers that decide by the result. */
void fl_fit_result_state(const fl_chip *chip, const fl_fit_entity *e, fl_fit_result_of *r);

fl_status fl_fit_score_add(fl_fit_score *to, const fl_fit_score *from, fl_diag *d);
/* Adds one error: the predicted against the measured values. */
fl_status fl_fit_score_add_row(fl_fit_errors *to, const fl_chip_guess *guess, double time_s, double power_w,
                               fl_diag *d);
void fl_fit_score_free(fl_fit_score *s);
enum {
    FL_FIT_INSIDE = 1,
    FL_FIT_OUTSIDE = 2,
    FL_FIT_BOTH = 3,
    FL_FIT_CAPPED = 4
}; /* FL_FIT_CAPPED: only rows under a limit */
fl_fit_means fl_fit_score_means(const fl_fit_score *s, int which);
void fl_fit_means_json(const fl_fit_means *m, cJSON *to);
