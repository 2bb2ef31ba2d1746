/* Predicts the workloads of a sweep at every setting of a ladder. Runs, comparisons and advice all use this one rule to
 * model a sweep by laws.
 *
 * The chip is the platform's calibration where its file has one (fit device writes it), else a fit to the whole sweep.
 * Each workload, and each of its kernels by itself, is then predicted from its own rows. A measured setting keeps the
 * measured values, with the scatter of the fit's rows as its deviation. Rows outside the calibrated clocks are not
 * used. Settings outside them are predicted and marked, and nothing chooses them. */
#pragma once

#include "harness/chip/rows.h"
#include "sim/workload/build.h"

typedef struct fl_sweep_chip {
    fl_chip *chip;
    bool mem_known;  /* the chip distinguishes memory clocks */
    bool calibrated; /* the chip is the platform's calibration; else it was fitted to the sweep */
    fl_fit_rows rows;
} fl_sweep_chip;

/* platform: path of its file, or NULL. FL_BAD_INPUT where no chip can be made: no workload of the sweep has two
 * settings, and the platform has no calibration. */
fl_status fl_sweep_chip_open(fl_sweep_chip *c, const char *sweep, const char *platform, fl_diag *d);
/* The same from rows in memory, which the function moves into *c. Diagnostics name sweep. */
fl_status fl_sweep_chip_of_rows(fl_sweep_chip *c, fl_fit_rows *rows, const char *sweep, const char *platform,
                                fl_diag *d);
/* Reads only the calibration of a platform's file, without rows; `calibrated` says whether the file has one. */
fl_status fl_sweep_chip_read(const char *platform, fl_sweep_chip *c, fl_diag *d);
/* The platform's chip by its constants. It gives memory's shares of the times, which a policy sees whether time and
 * power are measured or predicted. chip is NULL where the constants or the sweep's rows are not sufficient. */
fl_status fl_sweep_chip_plain(fl_sweep_chip *c, const char *sweep, const fl_device *dev, fl_diag *d);
void fl_sweep_chip_free(fl_sweep_chip *c);

/* Whether a row lies outside the clocks that the chip was calibrated at. */
bool fl_fit_is_beyond(const fl_chip *chip, const fl_chip_row *row);

/* The estimate for a measured setting: the means of its rows, with a deviation from the fit's own scatter. Callers that
 * decide by a fit use this for measured settings. */
fl_chip_guess fl_chip_measured(const fl_chip *chip, double time_s, double power_w, double rows);

/* The same where no fit gives a scatter: the usual repeatability of measurements (models/chip/row_curve.h). */
fl_chip_guess fl_chip_repeats(double time_s, double power_w);

/* One workload of a sweep at a ladder's settings: rows for fl_build_sweep, with their deviations. */
typedef struct fl_predicted {
    fl_sweep sweep;          /* names and head are borrowed */
    fl_sweep_law law;        /* without the shares (load), which _shares fills */
    size_t settings, beyond; /* SM clocks of the ladder; how many lie outside the calibration */
    size_t unused;           /* known rows outside the calibration, which were not used */
} fl_predicted;

/* name: of the workload, an index into s->names. FL_BAD_INPUT: the workload has no row within the calibration, its
 * power cannot be predicted, or the device has none of its memory clocks. */
fl_status fl_sweep_chip_predict(const fl_sweep_chip *c, const char *file, const fl_sweep *s, uint32_t name,
                                const fl_device *dev, fl_predicted *out, fl_diag *d);
/* Fills law->load, for a chip that fl_sweep_chip_plain made. */
fl_status fl_sweep_chip_shares(const fl_sweep_chip *c, const fl_sweep *s, uint32_t name, fl_sweep_law *law, fl_diag *d);
void fl_predicted_free(fl_predicted *p);

/* The next measurement that would narrow the prediction of a workload most (models/chip/probes.h): clocks as a user sets
 * them, NAN = all settings of the chip were measured. *known is false, and no other output is set, where the chip has
 * too few workloads or more settings are known than the search can weigh. FL_NO_MEMORY. */
typedef struct fl_chip_next {
    bool known;
    double sm_mhz, mem_mhz;
    double now_pct, then_pct; /* mean expected error of energy now, and with that measurement */
} fl_chip_next;

fl_status fl_sweep_chip_next(const fl_sweep_chip *c, const char *workload, fl_chip_next *out, fl_diag *d);
/* Whether two workloads were measured at the same settings. The next measurement is then the same for both (finding it
 * takes a second). */
bool fl_sweep_chip_alike(const fl_sweep_chip *c, const char *one, const char *other);
