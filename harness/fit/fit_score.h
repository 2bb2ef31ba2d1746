/* Errors of predicted settings: of interpolated rows (between the known clocks), extrapolated ones, and all. */
#ifndef FL_FIT_SCORE_H
#define FL_FIT_SCORE_H

#include "harness/chip/fit_rows.h"
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
    size_t asked;         /* rows that nobody measured, and which were predicted */
    size_t untaught;      /* rows that might be looked at, but lie outside these clocks: they teach nothing */
    size_t beyond;        /* rows to predict outside the clocks that the device was calibrated at */
    bool seen;            /* the device was fitted to it */
    bool active;          /* activities of the known rows said what it is like */
    fl_chip_guess *guess; /* one per row of the entity; known rows have time_sd_pct NaN, refused ones time_s too */
} fl_fit_result_of;

/* The rows of an entity that teach: those that `at` names, and that the device would predict. known: e->count of them
 * at most. How many. */
size_t fl_fit_known(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                    bool extrapolate, fl_chip_row *known);

/* Fits the entity's rows that teach and predicts those that `at` does not name; rows outside the device's calibration
 * only where extrapolate says so, else they are refused: they teach nothing, and are not predicted, and not scored.
 * Where all that `at` names are such, nothing is predicted (guess NULL). FL_BAD_INPUT where `at` names none. */
fl_status fl_fit_entity_run(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                            bool extrapolate, fl_fit_result_of *out, fl_diag *d);
void fl_fit_result_free(fl_fit_result_of *r);
/* Gives the rows that were looked at their deviation (fl_chip_measured), for who decides by the result. */
void fl_fit_result_state(const fl_chip *chip, const fl_fit_entity *e, fl_fit_result_of *r);

fl_status fl_fit_score_add(fl_fit_score *to, const fl_fit_score *from, fl_diag *d);
/* One more error: what was predicted against what was measured. */
fl_status fl_fit_score_add_row(fl_fit_errors *to, const fl_chip_guess *guess, double time_s, double power_w,
                               fl_diag *d);
void fl_fit_score_free(fl_fit_score *s);
enum { FL_FIT_INSIDE = 1, FL_FIT_OUTSIDE = 2, FL_FIT_BOTH = 3, FL_FIT_CAPPED = 4 }; /* capped: alone */
fl_fit_means fl_fit_score_means(const fl_fit_score *s, int which);
void fl_fit_means_json(const fl_fit_means *m, cJSON *to);

#endif
