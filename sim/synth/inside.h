/* What the files of sim/synth share: workloads straight from options, and the insides of synthetic applications. */
#pragma once

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Build the kernels of fl_synth_trace straight into a workload, without launches: for benchmarks of millions. */
fl_status fl_synth_workload(const fl_synth_options *o, const fl_node_spec *node, uint32_t windows, fl_workload **out,
                            fl_diag *d);

/* What a synthetic application is made for: the best static clocks that MF-GPOEO, Table V, publishes of it. */

typedef enum fl_app_shape {
    FL_APP_STEADY,  /* one loop of few kinds, of like lengths */
    FL_APP_MIXED,   /* one loop; lengths from microseconds to tens of milliseconds */
    FL_APP_GRIDS,   /* two parts that take turns with the same kernels on other grids */
    FL_APP_PHASED,  /* parts that take turns every few seconds, of many short and of few long kernels */
    FL_APP_STREAMS, /* several streams side by side */
    FL_APP_SHAPES
} fl_app_shape;

typedef struct fl_app_target {
    const char *name;
    int gear;       /* SM clock 210 + 15 gear MHz: Table V, "Oracle" */
    double mem_mhz; /* Table V, "Oracle" */
    double cap_w;   /* Table V, power cap "Oracle"; taken as the mean power at those clocks; 0 = drawn */
    fl_app_shape shape;
    double rate;           /* kernels per second, mean over parts: assumed; where `kinds` is published, it follows from
                              their lengths */
    double loss_mhz, loss; /* published slowdown at that memory clock and the top SM clock, as a share; 0 = none */
    uint32_t kinds;        /* of kernels, of an application that is phased: published; 0 = few, drawn */
} fl_app_target;

#define FL_APP_GEAR_MHZ(gear) (210 + 15 * (gear))

/* One synthetic application in the making: its shape is drawn, its shares are solved. */

#define FL_APP_KINDS_MAX 1024
#define FL_APP_ROWS_MAX 1024
#define FL_APP_PARTS_MAX 4

typedef enum fl_app_role { FL_ROLE_COMPUTE, FL_ROLE_MEMORY, FL_ROLE_LATENCY, FL_ROLES } fl_app_role;

typedef struct fl_app_kind { /* a kernel name */
    char name[64];
    fl_app_role role;
    double sense, balance, activity; /* how it differs from its role's mean: in core share, memory share, power */
    double tc, tm, tl, alpha, beta;  /* solved */
} fl_app_kind;

typedef struct fl_app_row { /* a row of the programs file */
    uint32_t kind, part, count, grid, block;
    int32_t stream;
    double weight; /* of its role's time in its part and stream */
    double time_cv, gap_weight, gap_cv;
    double share; /* of its part's kernel time, on its stream: follows from weight and the shares of the roles */
} fl_app_row;

typedef struct fl_app_part {
    double part_s, gap_share, rate; /* rate: kernels per second of each stream */
    double role[FL_ROLES];          /* of kernel time: LATENCY and MEMORY relative to the application's */
} fl_app_part;

typedef struct fl_app {
    fl_app_target target;
    fl_app_kind kind[FL_APP_KINDS_MAX];
    fl_app_row row[FL_APP_ROWS_MAX];
    fl_app_part part[FL_APP_PARTS_MAX];
    uint32_t kind_count, row_count, part_count, cycles, streams;
    bool hot; /* draws more than the board's limit at the default clocks */
    double latency_share, memory_share;
} fl_app;

/* Finds shares of the kernels, by seeded search over what the paper leaves open and bisection on the core-bound share,
 * such that the law's best static clocks are the target's. */
fl_model_status fl_app_solve(fl_app *a, const fl_device *dev, fl_random *r);

/* Four decimals: what stands in the files is what was solved. */
static inline double fl_app_round(double x) { return round(x * 1e4) / 1e4; }
static inline double fl_app_between(fl_random *r, double low, double high) {
    return low + (high - low) * fl_random_unit(r);
}
static inline double fl_app_log_between(fl_random *r, double low, double high) {
    return low * exp(log(high / low) * fl_random_unit(r));
}

#define FL_APPS_PUBLISHED 17 /* the first 14 are Table V */
extern const fl_app_target fl_apps_published[FL_APPS_PUBLISHED];
