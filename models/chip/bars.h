/* How wide a chip's error bars must be, according to the errors of other chips.
 *
 * A chip that is fitted to several workloads can test itself: a chip fitted without one workload predicts that workload
 * from a few settings. The strain of an error is its size over the stated deviation, and the factor is what the stated
 * deviations lack. Few workloads give a poor estimate of it. Measurements of several GPUs show what a chip's own factor
 * means for workloads that the chip never saw:
 *
 *   ln factor = ln typical + trust (ln own - ln own_typical)
 *
 * A chip that cannot test itself has the typical factor. A chip made from a platform's constants alone has `spec`. */
#pragma once

#include "models/chip/chip.h"

enum { FL_CHIP_TIME, FL_CHIP_WATTS, FL_CHIP_KINDS };

typedef struct fl_chip_bar {
    double typical, own_typical, trust;
    double spec;
} fl_chip_bar;

typedef struct fl_chip_bars {
    fl_chip_bar of[FL_CHIP_KINDS][FL_CHIP_PLACES];
} fl_chip_bars;

extern const fl_chip_bars fl_chip_bars_measured; /* geometric means over the GPUs that were measured */

/* Sets the factors of the chip's errors (`wide`) from its own factors (`own`). */
void fl_chip_widen(fl_chip *chip, const fl_chip_bars *bars);

/* Strains: |error| over two stated deviations, before any factor. The caller frees list. */
typedef struct fl_chip_strains {
    double *list;
    size_t count, room;
} fl_chip_strains;

/* The factor that makes two deviations cover the intended share of the strains. The function sorts them. NaN: there are
 * none. The factor is at least a quarter: where errors in time explain those of power, the rest of a few rows may be 0
 * by chance. */
double fl_chip_covering(const fl_chip_strains *of);
