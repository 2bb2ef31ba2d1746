/* A pipeline as a planner of clocks sees it: parts (forwards and backwards) that may run at any clock of a ladder, each
 * clock with its time and energy, between ops whose length no clock changes.
 *
 * A rank that does not compute draws its blocked power Pb, and all ranks end an iteration together. So the energy of an
 * iteration of length t is
 *     E = t B + sum over parts of (P - Pb) T,    B = sum over ranks of Pb
 * and a part's clock matters by its time T and by what it draws over the blocked power, (P - Pb) T. */
#pragma once

#include "models/math/convex.h"
#include "sim/pipeline/critical.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"

typedef struct fl_plan_table {         /* of a rank's forward or backward, of one chunk: by clock of the ladder */
    int32_t *mhz;                      /* count, ascending: those that the rank may have */
    double *time_s, *power_w, *over_j; /* over_j: (P - Pb) T; whole ns and mW, as the engine has them */
    size_t count;
    uint32_t *front; /* front_count places: each slower than the one before and cheaper; others are never of use */
    size_t front_count;
    fl_convex hull; /* of (time_s, over_j) */
} fl_plan_table;

typedef struct fl_plan_part {
    uint32_t op;    /* in fl_critical */
    uint32_t table; /* in fl_plan_program */
} fl_plan_part;

typedef struct fl_plan_program {
    const fl_pipeline *p;
    const fl_pipeline_order *order;
    const fl_node_spec *node;
    fl_workload *w;
    fl_pipeline_op *op;
    fl_critical path;
    double *fixed_s; /* by op: length of one that is no part, 0 of a part */
    fl_plan_part *part;
    size_t part_count;
    uint32_t *part_of;    /* by op: its part, FL_NONE where it is none */
    fl_plan_table *table; /* [rank][backward][chunk] */
    size_t table_count;
    double blocked_w; /* of all ranks */
} fl_plan_program;

/* limit_w: by rank, a clock at which the rank would draw more is left out; NULL: none. What is pointed to must outlive
 * *g. FL_BAD_INPUT where ranks do not end together (a list without a last `step`), a clock of the ladder is not among
 * those that rows reach, or a limit leaves no clock. */
fl_status fl_plan_program_new(fl_plan_program *g, const fl_pipeline *p, const fl_pipeline_order *order,
                              const fl_node_spec *node, const double *limit_w, fl_diag *d);
void fl_plan_program_free(fl_plan_program *g);

/* Seconds and joules of an iteration whose parts have these clocks: places in their tables, part_count. length_s and
 * end_s: room for all ops, filled. */
double fl_plan_time(const fl_plan_program *g, const uint32_t *at, double *length_s, double *end_s);
double fl_plan_energy(const fl_plan_program *g, const uint32_t *at, double time_s);

/* Whether each part may have the clock that *c, of the same pipeline, states for it: whether a bound holds for *c. */
bool fl_plan_allows(const fl_plan_program *g, const fl_pipeline_clocks *c);

/* The same as clocks for the engine; the caller frees *c. */
fl_status fl_plan_clocks(const fl_plan_program *g, const uint32_t *at, fl_pipeline_clocks *c, fl_diag *d);
