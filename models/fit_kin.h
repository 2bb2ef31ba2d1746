/* A GPU that nobody has measured, from its ladder and its TDP and from what chips like it are: the constants of the
 * power law as shares of the TDP at the top clock, the clock up to which V rests, how far and how steeply it rises. How
 * much these differ from chip to chip is how little is known of the next one; an idle log and a run narrow it.
 *
 * Chips are made up from that spread (log-normal, widened as few chips ask for), weighed with how well they meet the
 * log and the run, and each is given a workload of its own. Their centre is the law of the fl_chip; how far each lies
 * from it is kept as residuals are, so that predictions, their deviations and the choice of probes (models/probes.h)
 * count with it. The sequence of chips is a fixed one (Roberts' additive recurrence): nothing is random. */
#ifndef FL_FIT_KIN_H
#define FL_FIT_KIN_H

#include "models/chip.h"
#include "models/fit_idle.h"

/* X(NAME, WHAT): all above 0. */
#define FL_KIN_PARTS(X)                                                                                                \
    X(A, "A V^2 f at the top, of TDP")                                                                                 \
    X(A0, "A0 V^2 f at the top, of TDP")                                                                               \
    X(B, "B, of TDP")                                                                                                  \
    X(B0, "B0 at the default memory clock, of TDP")                                                                    \
    X(C, "C, of TDP")                                                                                                  \
    X(KNEE, "clock up to which V rests, of the top clock")                                                             \
    X(RISE, "V at the top, less 1")                                                                                    \
    X(BEND, "exponent of V's rise")

#define FL_KIN_ENUM(name, what) FL_KIN_##name,
enum { FL_KIN_PARTS(FL_KIN_ENUM) FL_KIN_COUNT };
extern const char *const fl_kin_what[FL_KIN_COUNT];

typedef struct fl_kin { /* one known chip */
    double part[FL_KIN_COUNT];
} fl_kin;

/* INVALID where the device has no TDP or lacks a part of the law. A part that is 0 there becomes a hundredth. */
fl_model_status fl_kin_of_device(const fl_device *dev, fl_kin *out);

typedef struct fl_kin_spread { /* of each part: its middle, and the factor of one standard deviation (1.3: +-30 %) */
    double middle[FL_KIN_COUNT], factor[FL_KIN_COUNT];
} fl_kin_spread;

/* Of known chips, as they stand for the next one: of their logarithms. NO_FIT: fewer than three. */
fl_model_status fl_kin_prior(const fl_kin *kin, size_t count, fl_kin_spread *out);

typedef struct fl_kin_facts {        /* borrowed */
    const int32_t *sm_mhz, *mem_mhz; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    double default_mem_mhz, tdp_w;
} fl_kin_facts;

/* idle: points of the GPU idling with a context open at the default memory clock; run: settings of one workload (power
 * NaN = not known). Either may be empty. *after: what is known of the parts then; may be NULL. The chip's `workloads`
 * is 0: none was measured on it. INVALID: facts that cannot be. */
fl_model_status fl_kin_chip(const fl_kin_facts *facts, const fl_kin_spread *prior, const fl_idle_point *idle,
                            size_t idle_count, const fl_chip_row *run, size_t run_count, fl_chip *chip,
                            fl_kin_spread *after);

#endif
