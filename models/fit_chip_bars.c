#include "models/fit_chip_bars.h"

#include <math.h>

/* As `foldline fit bars` printed them under "all", of the sweeps and platforms that tests/accuracy.sh gives it, 10
 * splits with seed 1001: two V100, a GTX 1080 Ti, a GTX Titan X; specs also of an A100. */
const fl_chip_bars fl_chip_bars_measured = {
    {{{1.525, 1.166, 0.941, 7.801}, {1.083, 0.938, 0.772, 3.791}, {0.754, 0.779, 0.437, 0.936}},
     {{1.321, 1.105, 0.545, 1.573}, {1.408, 1.113, 0.241, 1.801}, {1.003, 0.967, 0.322, 1.193}}}};

static double factor(const fl_chip *chip, const fl_chip_bar *b, double own) {
    if (chip->workloads == 0)
        return b->spec;
    return isnan(own) || !(own > 0) ? b->typical : b->typical * pow(own / b->own_typical, b->trust);
}

static void widen(const fl_chip *chip, const fl_chip_bar *of, fl_chip_error *e) {
    e->wide_inside = factor(chip, &of[FL_CHIP_INSIDE], e->own[FL_CHIP_INSIDE]);
    e->wide_outside = factor(chip, &of[FL_CHIP_OUTSIDE], e->own[FL_CHIP_OUTSIDE]);
    e->wide_alone = factor(chip, &of[FL_CHIP_ALONE], e->own[FL_CHIP_ALONE]);
}

void fl_chip_widen(fl_chip *chip, const fl_chip_bars *bars) {
    widen(chip, bars->of[FL_CHIP_TIME], &chip->time_error);
    widen(chip, bars->of[FL_CHIP_WATTS], &chip->power_error);
}
