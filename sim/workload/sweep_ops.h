/* The ops that a kernel of a sweep becomes. A table gives one time for each clock; a policy changes clocks within it
 * and measures parts of it, so it is cut into ops of about 10 ms. Real parts are not alike, and programs say where an
 * iteration ends: both are asked for, as a table tells neither. */
#pragma once

#include "sim/base/spread.h"
#include "sim/workload/workload.h"

typedef struct fl_sweep_replay { /* how the workloads of a sweep are replayed */
    uint32_t repeat;             /* each so often, one after the other */
    uint32_t windows;            /* of work, for the worst-window slowdown; 0 = none */
    double jitter;               /* coefficient of variation of an op's work, 0 to 1; 0: all alike */
    uint64_t seed;               /* of the jitter. The same seed is the same work at every clock, under every policy */
    int64_t iteration_ns; /* about so much work at the highest clock ends in an iteration marker; 0: no markers */
} fl_sweep_replay;

typedef struct fl_sweep_ops { /* the cutting of one workload */
    fl_workload *w;
    const fl_sweep_replay *replay; /* borrowed */
    uint32_t stream;
    fl_random random;
    fl_spread spread;
} fl_sweep_ops;

/* name: of the workload as the sweep has it, so that two workloads of one seed do not vary alike. */
fl_sweep_ops fl_sweep_ops_of(fl_workload *w, const fl_sweep_replay *replay, uint32_t stream, const char *name);

/* The class of the markers, after all others: fl_scene_options looks at the first. Only where there are iterations. */
fl_status fl_sweep_ops_marker(fl_sweep_ops *o, const fl_load *like, uint32_t *id, fl_diag *d);

/* `total` ns of work of a class in ops of about 10 ms, at least 100. Without jitter they take exactly `total`; with it
 * each is drawn on its own, and `total` is their mean. With iterations the kernel is a whole number of them, all of as
 * many ops, each with a marker of class `marker` at its end. */
fl_status fl_sweep_ops_add(fl_sweep_ops *o, uint32_t class_id, uint32_t marker, int64_t total, fl_diag *d);
