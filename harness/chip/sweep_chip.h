/* What a fit knows of the workloads of a sweep, at every setting of a ladder: the one rule by which runs, comparisons
 * and advice model a sweep by laws.
 *
 * The chip is the platform's calibration where its file has one (fit device wrote it), else it is fitted over the whole
 * sweep. Each workload, and each of its kernels by itself, is then predicted from its own rows. A setting that was
 * measured keeps what was measured, with the scatter of the fit's rows as its deviation. Rows outside the clocks at
 * which the chip was calibrated teach nothing; settings outside them are predicted, marked, and chosen by nobody. */
#ifndef FL_SWEEP_CHIP_H
#define FL_SWEEP_CHIP_H

#include "harness/chip/fit_rows.h"
#include "sim/build.h"

typedef struct fl_sweep_chip {
    fl_chip *chip;
    bool mem_known;  /* it tells memory clocks apart */
    bool calibrated; /* it is the platform's; else fitted over the sweep */
    fl_fit_rows rows;
} fl_sweep_chip;

/* platform: path of its file, or NULL. FL_BAD_INPUT where no chip can be had: a sweep of which no workload has two
 * settings, and a platform without a calibration. */
fl_status fl_sweep_chip_open(fl_sweep_chip *c, const char *sweep, const char *platform, fl_diag *d);
/* The same of rows that are in memory, which move into *c; sweep is named in diagnostics. */
fl_status fl_sweep_chip_of_rows(fl_sweep_chip *c, fl_fit_rows *rows, const char *sweep, const char *platform,
                                fl_diag *d);
/* The calibration of a platform's file alone, without rows; `calibrated` says whether it has one. */
fl_status fl_sweep_chip_read(const char *platform, fl_sweep_chip *c, fl_diag *d);
/* The platform's chip by its constants. It tells which shares of the times are the memory's: what a policy sees of it,
 * whether time and power are measured or predicted. chip NULL where the constants or the sweep's rows do not do. */
fl_status fl_sweep_chip_plain(fl_sweep_chip *c, const char *sweep, const fl_device *dev, fl_diag *d);
void fl_sweep_chip_free(fl_sweep_chip *c);

/* Whether a row lies outside the clocks that the chip was calibrated at. */
bool fl_fit_is_beyond(const fl_chip *chip, const fl_chip_row *row);

/* What is known of a setting that was measured: the means of its rows, and how far measurements lie from each other by
 * the fit's own scatter. Whoever decides by a fit takes measured settings so. */
fl_chip_guess fl_chip_measured(const fl_chip *chip, double time_s, double power_w, double rows);

/* The same where no fit tells its scatter: what measurements repeat by anywhere (models/row_curve.h). */
fl_chip_guess fl_chip_repeats(double time_s, double power_w);

/* One workload of a sweep at a ladder's settings: rows that fl_build_sweep takes, with their deviations. */
typedef struct fl_predicted {
    fl_sweep sweep;          /* names and head are borrowed */
    fl_sweep_law law;        /* without the shares (load) */
    size_t settings, beyond; /* SM clocks of the ladder; how many lie outside the calibration */
    size_t unused;           /* known rows outside the calibration, which taught nothing */
} fl_predicted;

/* name: of the workload, an index into s->names. FL_BAD_INPUT where it has no row within the calibration, where no
 * power can be told, and where the device has none of its memory clocks. */
fl_status fl_sweep_chip_predict(const fl_sweep_chip *c, const char *file, const fl_sweep *s, uint32_t name,
                                const fl_device *dev, fl_predicted *out, fl_diag *d);
/* Fills law->load, of a chip that fl_sweep_chip_plain made. */
fl_status fl_sweep_chip_shares(const fl_sweep_chip *c, const fl_sweep *s, uint32_t name, fl_sweep_law *law, fl_diag *d);
void fl_predicted_free(fl_predicted *p);

/* The one measurement more that would narrow a workload most (models/probes.h): clocks as one sets them, NAN = all
 * settings of the chip were measured. *known false, and nothing else told: the chip has too few workloads to say, or
 * more settings are known than it can weigh. FL_NO_MEMORY. */
typedef struct fl_chip_next {
    bool known;
    double sm_mhz, mem_mhz;
    double now_pct, then_pct; /* mean error of energy to expect now, and with it */
} fl_chip_next;

fl_status fl_sweep_chip_next(const fl_sweep_chip *c, const char *workload, fl_chip_next *out, fl_diag *d);
/* Whether two workloads were measured at the same settings: then the same one is next (which takes a second to find).
 */
bool fl_sweep_chip_alike(const fl_sweep_chip *c, const char *one, const char *other);

#endif
