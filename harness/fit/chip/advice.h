/* Which one, two, three or four clocks to measure for a new workload, with the expected errors, compared with the usual
 * choice. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/chip/rows.h"
#include "models/chip/probes.h"
#include "traces/io/diag.h"

typedef struct fl_fit_advice {
    fl_probes chosen[FL_PROBES_MAX],
        usual[FL_PROBES_MAX]; /* of one setting, of two and so on; usual: count 0 = no usual choice */
    size_t first, end;        /* range of set sizes, less 1; equal: the chip cannot choose */
    bool memory;              /* the settings differ in their memory clock */
    bool made_up;             /* the workloads are made up: none was measured on that chip */
} fl_fit_advice;

/* Chooses sets of `least` to `most` settings, with their clocks as a user sets them: rows knows their names
 * (fit_clocks.h). Sizes that the chip cannot choose are left out; that is not an error. */
fl_status fl_fit_advise(const fl_chip *chip, const fl_fit_rows *rows, size_t least, size_t most, fl_fit_advice *a,
                        fl_diag *d);
void fl_fit_advice_print(const fl_fit_advice *a);
/* A list with one object for each set size. NULL when out of memory; the caller owns it. */
cJSON *fl_fit_advice_json(const fl_fit_advice *a);
