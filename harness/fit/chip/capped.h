/* Settings under a power limit that binds, predicted by models/chip/cap.h: the board lowers the clock until the mean power
 * is crest times the limit. */
#pragma once

#include "harness/fit/chip/score.h"

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
