/* Chooses the settings of a chip whose measurement says most about a new workload.
 *
 * The chip's own workloads stand for future ones. Each in turn counts as measured at only the settings of a candidate
 * set, and the other workloads predict it elsewhere. The best set has the least error. Errors are mean absolute errors
 * in percent, over the workloads and the settings outside the set. The score of a set is the mean of its errors in
 * time, power and energy.
 *
 * The search compares many sets by a fast linear predictor. The few best sets are then judged by the predictor that a
 * user gets (fl_chip_predict). Nothing is random: the same chip gives the same answer. */
#pragma once

#include "models/chip/chip.h"

#define FL_PROBES_MAX 4       /* settings in a set, at most */
#define FL_PROBES_KNOWN 7     /* known settings, at most, to which fl_probes_next adds one */
#define FL_PROBES_WORKLOADS 3 /* workloads of the chip, at least: fewer cannot stand for new ones */

typedef struct fl_probes {
    fl_chip_row at[FL_PROBES_KNOWN +
                   1]; /* only the clocks are set; sorted by memory clock, then SM clock; `count` entries are in use */
    size_t count;
    double time_pct, power_pct, energy_pct; /* expected errors at the chip's other settings; power and energy are NaN
                                               where the chip knows no power */
    size_t tested;                          /* number of workloads behind the errors */
} fl_probes;

/* The best `count` settings among those at which the chip was calibrated, never worse than the usual choice
 * (fl_probes_usual). 1 <= count <= FL_PROBES_MAX. NO_FIT: the chip was not calibrated with enough workloads, or has no
 * more settings than `count`. Takes about 0.1 to 1 s. */
fl_model_status fl_probes_choose(const fl_chip *chip, size_t count, fl_probes *out);

/* Computes the expected errors of the settings in set->at and writes the rest of *set. NO_FIT as above. */
fl_model_status fl_probes_expect(const fl_chip *chip, fl_probes *set);

/* The usual choice. One setting: the top. Two or more: evenly spaced SM clocks at the highest memory clock, both ends
 * included. Four where there are several memory clocks: the corners. Only the settings are written. */
fl_model_status fl_probes_usual(const fl_chip *chip, size_t count, fl_probes *out);

/* The next measurement that would narrow the prediction of a workload most, when `known` settings of it were measured
 * (at most FL_PROBES_KNOWN; their times and powers do not matter). *now: the expected errors with the known settings
 * alone. *next: the errors with one more, which is next->at[*added]. */
fl_model_status fl_probes_next(const fl_chip *chip, const fl_chip_row *known, size_t known_count, fl_probes *now,
                               fl_probes *next, size_t *added);
