/* The model of power-capping 3.2 that foldline fit capping makes of a sweep (see harness/fit/policy/capping_sweep.h). */
#pragma once

#include "models/fit/capping.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

typedef struct fl_capping_points { /* one workload on one processor, ascending clocks */
    double *mhz, *time_s, *power_w;
    size_t count, room;
} fl_capping_points;

typedef struct fl_capping_processor { /* a processor */
    const char *part;
    double *mhz, *volt; /* count */
    size_t count;
    fl_capping_chip fit;
} fl_capping_processor;

typedef struct fl_capping_application {
    const char *name;
    fl_capping_points at[2]; /* GPU, CPU */
    fl_capping_app fit[2];
    double comm_s;
} fl_capping_application;

typedef struct fl_capping {
    const char *path;
    fl_sweep sweep;
    double static_w, comm_w;
    fl_capping_processor chip[2];
    fl_capping_application *app;
    size_t app_count;
} fl_capping;

extern const char *const fl_capping_part[2]; /* names of the processors' rows */

/* Fits c->sweep, which the caller has filled; messages name path. The caller frees *c, also after a failure. */
fl_status fl_capping_fit(fl_capping *c, fl_diag *d);
void fl_capping_free(fl_capping *c); /* frees the sweep too */

/* The largest errors of an application at the clocks between the two that gave its parameters, with sign: W of node
 * power, and percent of time. NAN where there are no such clocks. */
void fl_capping_errors(const fl_capping *c, const fl_capping_application *a, int processor, double *power_w,
                       double *time_pct);

/* The parameter table of the policies, as PREFIX.NAME.csv. */
fl_status fl_capping_write(const fl_capping *c, const fl_capping_application *a, const char *prefix, fl_diag *d);
