/* A GPU that nobody has measured, estimated from its ladder, its TDP and similar chips. Similar chips supply the
 * constants of the power law as shares of the TDP at the top clock, the clock up to which V stays flat, and how far and
 * how steeply V rises. Their spread from chip to chip says how uncertain these values are for the next chip. An idle
 * log and a run narrow the spread.
 *
 * The method draws chips from that spread (log-normal, widened because the known chips are few), weighs them by how
 * well they match the log and the run, and gives each a workload of its own. The centre of the chips is the law of the
 * fl_chip. The distance of each from the centre is stored as residuals are, so that predictions, their deviations and
 * the choice of probes (models/chip/probes.h) account for it. The sequence of chips is fixed (Roberts' additive recurrence):
 * nothing is random. */
#pragma once

#include "models/chip/chip.h"
#include "models/fit/idle.h"

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

/* INVALID: the device has no TDP or lacks a part of the law. A part that is 0 there counts as a hundredth. */
fl_model_status fl_kin_of_device(const fl_device *dev, fl_kin *out);

typedef struct fl_kin_spread { /* of each part: its median, and the factor of one standard deviation (1.3: +-30 %) */
    double middle[FL_KIN_COUNT], factor[FL_KIN_COUNT];
} fl_kin_spread;

/* The prior for the next chip from known chips: mean and spread of their logarithms. NO_FIT: fewer than three chips. */
fl_model_status fl_kin_prior(const fl_kin *kin, size_t count, fl_kin_spread *out);

typedef struct fl_kin_facts {        /* borrowed */
    const int32_t *sm_mhz, *mem_mhz; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    double default_mem_mhz, tdp_w;
} fl_kin_facts;

/* idle: points of the GPU idling with a context open at the default memory clock. run: settings of one workload (power
 * NaN = not known). Either may be empty. *after: what is known of the parts afterwards; may be NULL. The chip's
 * `workloads` is 0, since none was measured on it. INVALID: impossible facts. */
fl_model_status fl_kin_chip(const fl_kin_facts *facts, const fl_kin_spread *prior, const fl_idle_point *idle,
                            size_t idle_count, const fl_chip_row *run, size_t run_count, fl_chip *chip,
                            fl_kin_spread *after);
