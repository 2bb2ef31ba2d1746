/* Open-loop requests over a workload: what was one pass becomes one pass for each request, in the order of arrival. */
#pragma once

#include "sim/workload/workload.h"

enum { FL_SERVE_OPS_MAX = 100000000 }; /* of all requests together */

/* Turns a finished workload into one that serves `count` requests, which arrive at arrival_ns (ascending from 0 on,
 * copied), and finishes it again with `windows` windows of work.
 *
 * A request is all that the workload did: its streams, launches, synchronisations and waits. Arrivals wait for nobody;
 * a request is taken up when it is there and every op of the one before has finished, and has been served when its last
 * op has finished and its host threads have come back from it. Where no launches were recorded, a server takes up the
 * request and gaps stay host time. The arrival itself follows no clock.
 *
 * After a failure the workload is good for fl_workload_free alone. */
fl_status fl_workload_serve(fl_workload *w, const int64_t *arrival_ns, size_t count, uint32_t windows, fl_diag *d);
