/* Which settings of a chip tell most about a workload that has not been seen.
 *
 * What a chip knows of its own workloads stands for those to come: each in turn is taken as one of which only the
 * settings of a set were measured, and is predicted elsewhere from what the others are like. The set with the least
 * errors is the best. Errors are mean absolute ones in percent, over the workloads and the settings that were not
 * looked at. The score of a set is the mean of its errors in time, power and energy.
 *
 * The search looks at many sets by a fast linear predictor, and the few that do best there are
 * judged by the predictor that a user gets (fl_chip_predict). Nothing is drawn: the same chip gives the same answer. */
#ifndef FL_PROBES_H
#define FL_PROBES_H

#include "models/chip.h"

#define FL_PROBES_MAX 4       /* settings that one set chooses */
#define FL_PROBES_KNOWN 7     /* settings beside which one more is chosen */
#define FL_PROBES_WORKLOADS 3 /* of the chip, at least: fewer cannot stand for others */

typedef struct fl_probes {
    fl_chip_row at[FL_PROBES_KNOWN + 1]; /* clocks alone, by memory, then SM clock; the first `count` are used */
    size_t count;
    double time_pct, power_pct, energy_pct; /* to expect at the chip's other settings; power and energy NaN where the
                                               chip knows no power */
    size_t tested;                          /* workloads that the errors are of */
} fl_probes;

/* The best `count` settings among those that the chip was calibrated at, never worse than what is usual. 1 <= count <=
 * FL_PROBES_MAX. NO_FIT: the chip has no calibration of enough workloads, or no more settings than that. About 0.1 to 1
 * s. */
fl_model_status fl_probes_choose(const fl_chip *chip, size_t count, fl_probes *out);

/* The errors to expect of the settings in set->at; the rest of *set is written. NO_FIT as above. */
fl_model_status fl_probes_expect(const fl_chip *chip, fl_probes *set);

/* What is usual. One setting: the top. More: evenly spaced SM clocks at the highest memory clock, both ends among them.
 * Four, where there are several memory clocks: the corners. Only the settings are written. */
fl_model_status fl_probes_usual(const fl_chip *chip, size_t count, fl_probes *out);

/* The one measurement more that would narrow a workload most, where `known` settings of it were measured (no more than
 * FL_PROBES_KNOWN; their times and powers do not matter). *now: what to expect of the known ones alone; *next: of them
 * and one more, which is next->at[*added]. */
fl_model_status fl_probes_next(const fl_chip *chip, const fl_chip_row *known, size_t known_count, fl_probes *now,
                               fl_probes *next, size_t *added);

#endif
