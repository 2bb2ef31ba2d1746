/* Arrivals as a text: "poisson:rate=20,count=500,seed=1" or the path of a list (traces/serving/arrivals.h).
 *
 * rate: requests per second. count, or seconds=S for rate x S of them, rounded: the same work under every seed. seed:
 * the run's where there is none. */
#pragma once

#include "traces/serving/arrivals.h"

typedef struct fl_arrivals_spec {
    const char *file; /* borrowed; NULL: drawn */
    double per_s;
    size_t count;
    uint64_t seed; /* 0: the run's */
} fl_arrivals_spec;

#define FL_ARRIVALS_HELP                                                                                               \
    "requests over the workload, each one pass: a list (t_ns), or poisson:rate=R,count=N,seed=S (count or seconds)"

fl_status fl_arrivals_spec_parse(const char *text, fl_arrivals_spec *spec, fl_diag *d);
/* draw: 0, 1, ...: each draws other arrivals; a list is the same each time. The caller frees *a. */
fl_status fl_arrivals_make(const fl_arrivals_spec *spec, uint64_t run_seed, uint64_t draw, fl_arrivals *a, fl_diag *d);
