/* Settings under a power limit that binds, predicted by models/cap.h: the board lowers the clock until the mean power
 * is crest times the limit. */
#ifndef FL_FIT_CAPPED_H
#define FL_FIT_CAPPED_H

#include "harness/fit/fit_score.h"

/* Where the crest comes from. */
typedef struct fl_fit_crest {
    enum { FL_FIT_CREST_RUN, FL_FIT_CREST_DEVICE, FL_FIT_CREST_GIVEN } kind;
    double share; /* given */
} fl_fit_crest;

/* "run" (one capped run of the workload, the default), "device" (its calibration), or a share such as 0.95. */
fl_status fl_fit_crest_parse(const char *text, fl_fit_crest *crest, fl_diag *d);

typedef struct fl_fit_capped_row { /* one for each of the entity's capped rows, in their order */
    fl_chip_guess guess;           /* NAN: not predicted */
    double ran_mhz;
    bool looked, beyond; /* the run that gave the crest; below the clocks of the calibration */
} fl_fit_capped_row;

typedef struct fl_fit_capped_result {
    fl_fit_capped_row *row; /* count, owned */
    size_t first, count;    /* rows of r->capped */
    double crest;           /* NAN: not known, nothing is predicted */
    size_t refused;         /* below the clocks of the calibration, where extrapolate does not say otherwise */
} fl_fit_capped_result;

/* The capped rows of entity e by the settings that `at` names; their errors are added to score->capped. An entity
 * without such rows, a chip without a power law, and a workload of which no setting may be looked at give count 0. */
fl_status fl_fit_capped_run(const fl_chip *chip, const fl_fit_rows *r, size_t e, const fl_fit_at *at,
                            const fl_fit_crest *crest, bool extrapolate, fl_fit_score *score, fl_fit_capped_result *out,
                            fl_diag *d);
void fl_fit_capped_free(fl_fit_capped_result *result);

/* Median and spread of the workloads' own crests; how many workloads tell. 0: neither is set. */
size_t fl_fit_crest_of_rows(const fl_fit_rows *r, double *share, double *sd);

#endif
