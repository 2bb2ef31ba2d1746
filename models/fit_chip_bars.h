/* How wide a chip's error bars must be, as the errors of other chips tell.
 *
 * A chip that is fitted to several workloads asks itself how far off it is: each workload is predicted from a few
 * settings by a chip fitted without it, and its strain is the factor that the stated deviations miss. Few workloads
 * tell that poorly. What it means for workloads that the chip never saw was measured on several GPUs (`foldline fit
 * bars` prints it), and is kept here:
 *
 *   ln factor = ln typical + trust (ln own - ln own_typical)
 *
 * A chip that cannot ask itself has the typical factor; one of a platform's constants alone has `spec`. */
#ifndef FL_FIT_CHIP_BARS_H
#define FL_FIT_CHIP_BARS_H

#include "models/chip.h"

enum { FL_CHIP_TIME, FL_CHIP_WATTS, FL_CHIP_KINDS };

typedef struct fl_chip_bar {
    double typical, own_typical, trust;
    double spec;
} fl_chip_bar;

typedef struct fl_chip_bars {
    fl_chip_bar of[FL_CHIP_KINDS][FL_CHIP_PLACES];
} fl_chip_bars;

extern const fl_chip_bars fl_chip_bars_measured; /* of all the GPUs that fit bars was run on */

/* Sets the factors of the chip's errors by what it knows of itself. */
void fl_chip_widen(fl_chip *chip, const fl_chip_bars *bars);

/* Strains, |error| over two stated deviations before any factor, by kind and place. The caller frees list. */
typedef struct fl_chip_strains {
    double *list;
    size_t count, room;
} fl_chip_strains;

/* Adds those of a workload that the chip was not fitted to, known at a few of its settings in several ways. row: sorted
 * by memory, then SM clock. Those of power are what is left beyond errors in time of the factor time_error.own. */
fl_model_status fl_chip_strain(const fl_chip *chip, const fl_chip_row *row, size_t count,
                               fl_chip_strains to[FL_CHIP_KINDS][FL_CHIP_PLACES]);
/* The factor that covers as many of them as are meant to lie within two deviations; they are sorted. NaN: none. No less
 * than a quarter: where errors in time explain those of power, what is left of a few rows may be 0 by chance. */
double fl_chip_covering(const fl_chip_strains *of);

#endif
