/* What a report leads with where requests arrive: latency against energy per request, and who holds the bounds. */
#ifndef FL_REPORT_LATENCY_H
#define FL_REPORT_LATENCY_H

#include "harness/report/report_summary.h"

bool fl_latency_any(const fl_summary *s); /* some policy has a latency */

/* "6.87 J per request at a p99 latency of 156 ms (the driver's default: 9.91 J at 127 ms); " of one policy. */
void fl_latency_short(FILE *f, const fl_summary *s, size_t item);

/* The table, the best first that hold all bounds, then the rest; and the Pareto figure of p99 latency against joules
 * per request. id: of the table, unique in the page. */
void fl_latency_section(FILE *f, const fl_summary *s, const fl_looks *looks, const char *id);

/* ", under the bound of 5 %, latency_p99_s<0.17" of all that the result is judged under, as HTML. */
void fl_bounds_put(FILE *f, const fl_report_data *r);

#endif
