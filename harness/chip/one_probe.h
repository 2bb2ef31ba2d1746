/* What the power and the utilisation of one run at one clock tell. They are one measured setting of the same fit as all
 * others (models/chip/predict.h); its time says nothing about other clocks.
 *
 * A GPU that had no work for a part of the run waits for its host there. That part of the time does not depend on the
 * GPU's clocks, and its power is what the law gives for an idle GPU. Utilisation counts the time in which any kernel
 * ran, so the true idle part is at least this long. The rest is the busy run. Its power fixes the split between the
 * power that the GPU draws anyway and the power of its work. A calibration derives from workloads with similar power
 * how the time depends on the clock; a platform's constants cannot tell that at all. */
#pragma once

#include "harness/chip/log_run.h"
#include "models/chip/chip.h"

typedef struct fl_one_probe {
    fl_log_run busy; /* the run without its idle time; its memory clock is known */
    double idle_s;
    bool tells; /* false: the power tells nothing; *busy is then the whole run, and idle_s is 0 */
} fl_one_probe;

/* The power tells nothing where the chip has no power law, where the run's clock lies outside the chip's, or where the
 * GPU was busy for less than half of the time, because the busy part's power would then be a small difference. Nor does
 * it where the busy part draws less than an idle GPU: the law then belongs to another board. */
fl_one_probe fl_one_probe_make(const fl_chip *chip, const fl_log_run *run);
/* The same from a platform's constants. */
fl_status fl_one_probe_of_device(const fl_device *dev, const fl_log_run *run, fl_one_probe *p, fl_chip **chip,
                                 fl_diag *d);

/* Powers at count settings with assumed times (guess->time_s), from one measured power. Their deviations are relative
 * to the setting ref (only its clocks count), which has none: savings are relative to ref, and errors at two clocks are
 * correlated. FL_BAD_INPUT where no law fits. */
fl_status fl_one_probe_powers(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *ref, const fl_chip_row *at,
                              fl_chip_guess *guess, size_t count, fl_diag *d);
/* Adds the idle time to the predictions for the busy run. */
void fl_one_probe_add_idle(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *at, fl_chip_guess *guess,
                           size_t count);
