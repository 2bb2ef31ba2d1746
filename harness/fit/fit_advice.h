/* Which clocks to measure of a workload that has not been seen: one, two, three or four, with the errors to expect,
 * beside what is usual. */
#ifndef FL_FIT_ADVICE_H
#define FL_FIT_ADVICE_H

#include "harness/base/json.h"
#include "harness/chip/fit_rows.h"
#include "models/probes.h"
#include "traces/diag.h"

typedef struct fl_fit_advice {
    fl_probes chosen[FL_PROBES_MAX], usual[FL_PROBES_MAX]; /* of one setting, of two and so on; usual: count 0 = none */
    size_t first, end;                                     /* their numbers less 1; alike: the chip cannot say */
    bool memory;                                           /* settings differ in their memory clock */
    bool made_up;                                          /* the workloads: none was measured on that chip */
} fl_fit_advice;

/* Of sets of `least` to `most` settings, with their clocks as one sets them: rows know their names (fit_clocks.h). What
 * the chip cannot say is left out: that is no error. */
fl_status fl_fit_advise(const fl_chip *chip, const fl_fit_rows *rows, size_t least, size_t most, fl_fit_advice *a,
                        fl_diag *d);
void fl_fit_advice_print(const fl_fit_advice *a);
/* A list, one object for each number of settings. NULL when out of memory; the caller owns it. */
cJSON *fl_fit_advice_json(const fl_fit_advice *a);

#endif
