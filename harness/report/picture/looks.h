/* The looks of all policies of a result, and its legend: one colour each where there are few, else one for each family.
 */
#pragma once

#include "harness/report/data/report_data.h"
#include "harness/report/picture/picture.h"

typedef struct fl_looks {
    fl_look *of; /* by policy */
    fl_names legend;
    fl_look *legend_look;
} fl_looks;

fl_status fl_looks_make(const fl_report_data *r, fl_looks *l, fl_diag *d);
void fl_looks_free(fl_looks *l);
