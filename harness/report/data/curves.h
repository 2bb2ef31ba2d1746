/* RESULTS.regret.csv of a distribution replay: cumulative regret of each policy over its steps. */
#pragma once

#include "harness/report/data/report_data.h"

typedef struct fl_curve_mark {
    size_t group, policy; /* group: workload, variant and platform; policy: into `policy` */
    double step, mean, low, high;
} fl_curve_mark;

typedef struct fl_curves {
    fl_names group, own; /* own: the policies, where there is no result beside the file */
    const fl_names *policy;
    fl_curve_mark *mark; /* the marks of a curve are consecutive */
    size_t count, room;
} fl_curves;

/* r: the result beside the file, which must contain its policies; NULL = none. FL_BAD_INPUT with line. Free with
 * fl_curves_free, also after a failure. */
fl_status fl_curves_read(const char *path, const fl_report_data *r, fl_curves *c, fl_diag *d);
void fl_curves_free(fl_curves *c);
