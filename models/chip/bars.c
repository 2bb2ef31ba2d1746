#include "models/chip/bars.h"

#include <math.h>

/* Measured on the sweeps that tests/accuracy.sh uses and one of an A100: two V100, a GTX 1080 Ti, a GTX Titan X and the
 * A100. A device was fitted to half of the workloads of a GPU and judged on the other half, in 10 splits from seed
 * 1001. typical and own_typical are geometric means over the GPUs, trust is the slope of ln real factor over ln own.
 * spec is a standard deviation above the mean, since nothing tells a good data sheet from a bad one. */
const fl_chip_bars fl_chip_bars_measured = {{{{1.461, 1.438, 0.911, 7.801},
                                              {1.078, 1.137, 0.919, 3.791},
                                              {0.753, 0.787, 0.458, 0.936},
                                              {1.272, 1.107, 0.000, 3.791}},
                                             {{1.068, 1.153, 0.606, 1.573},
                                              {0.977, 0.980, 0.591, 1.801},
                                              {0.774, 0.924, 0.000, 1.193},
                                              {0.707, 0.923, 0.629, 1.801}}}};

static double factor(const fl_chip *chip, const fl_chip_bar *b, double own) {
    if (chip->workloads == 0)
        return b->spec;
    return isnan(own) || !(own > 0) ? b->typical : b->typical * pow(own / b->own_typical, b->trust);
}

static void widen(const fl_chip *chip, const fl_chip_bar *of, fl_chip_error *e) {
    for (int p = 0; p < FL_CHIP_PLACES; p++)
        e->wide[p] = factor(chip, &of[p], e->own[p]);
}

void fl_chip_widen(fl_chip *chip, const fl_chip_bars *bars) {
    widen(chip, bars->of[FL_CHIP_TIME], &chip->time_error);
    widen(chip, bars->of[FL_CHIP_WATTS], &chip->power_error);
}
