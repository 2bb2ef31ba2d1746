/* What the power and the utilisation of one run at one clock tell: one measured setting of the same fit as all others
 * (models/fit_chip_predict.h), whose time says nothing of other clocks.
 *
 * A GPU that had nothing to do for a part of the run waits for its host there: that part of the time does not depend on
 * the GPU's clocks, and draws what the law says of an idle GPU. Utilisation counts the time in which any kernel ran, so
 * that the real part is no smaller. What is left is the busy run. Its power holds the split between what idles and what
 * works; how times depend on clocks a calibration tells from workloads of such a power, and a platform's constants do
 * not tell at all. */
#ifndef FL_ONE_PROBE_H
#define FL_ONE_PROBE_H

#include "harness/chip/log_run.h"
#include "models/chip.h"

typedef struct fl_one_probe {
    fl_log_run busy; /* the run without the time in which nothing ran; its memory clock is known */
    double idle_s;
    bool tells; /* false: the power says nothing, *busy is the run as it was and idle_s 0 */
} fl_one_probe;

/* It tells nothing where the chip has no power law, where the run's clock lies outside the chip's, where the GPU was
 * busy for less than half of the time (what the busy part drew would be a small difference), and where the busy part
 * draws less than an idle GPU: the law is another board's. */
fl_one_probe fl_one_probe_make(const fl_chip *chip, const fl_log_run *run);
/* The same of a platform's constants. */
fl_status fl_one_probe_of_device(const fl_device *dev, const fl_log_run *run, fl_one_probe *p, fl_chip **chip,
                                 fl_diag *d);

/* Powers at count settings whose times are assumed (guess->time_s), by one that was measured, and their deviations
 * against that at ref (clocks alone), which has none: savings are against it, and what two clocks err by goes together.
 * FL_BAD_INPUT where no law fits. */
fl_status fl_one_probe_powers(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *ref, const fl_chip_row *at,
                              fl_chip_guess *guess, size_t count, fl_diag *d);
/* Adds the time in which nothing runs to what is known of the busy run. */
void fl_one_probe_add_idle(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *at, fl_chip_guess *guess,
                           size_t count);

#endif
