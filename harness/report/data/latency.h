/* What a report says about requests and bounds, in words. */
#pragma once

#include "harness/report/data/summary.h"

/* Text for one policy: "6.87 J per request at a p99 latency of 156 ms (the driver's default: 9.91 J at 127 ms); ".
 * Nothing for one that served no request. */
void fl_latency_short(FILE *f, const fl_summary *s, size_t item);

/* ", under the bound of 5 %, latency_p99_s<0.17": all bounds by which the result is judged, as HTML. */
void fl_bounds_put(FILE *f, const fl_report_data *r);

/* A cell of a table, "slowdown<=0.05 in 2 of 9, ...": the bounds that a policy breaks, or "none". item: its index in
 * the scope. */
void fl_bounds_cell(FILE *f, const fl_scope *sc, size_t item);
