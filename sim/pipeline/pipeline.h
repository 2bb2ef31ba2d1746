/* Pipelines of training as workloads, and planned clocks for them.
 *
 * Each rank is a GPU with one stream. A transfer begins when both sides have come to it. Until then the side that came
 * first spins, as the kernel of a collective does, and draws the blocked power. So the engine charges the waiting, and
 * a clock that a policy sets slows what computes and shifts what waits for it.
 *
 * For a workload call fl_pipeline_schedule_make and fl_build_pipeline. For plans call fl_plan_program_new,
 * fl_planner_new, then fl_plan_within (one time) or fl_plan_frontier (all times); fl_pipeline_run says what a plan
 * costs on the engine. The caller frees each object with its _free; a planner borrows its program, a program its
 * pipeline. FL_BAD_INPUT where ranks wait for each other for ever, rows do not reach a clock, or no plan is fast
 * enough. */
#pragma once

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- pipelines as workloads ---- */

/* Make the instructions of each stage by the pipeline's schedule. The caller frees *o with fl_pipeline_order_free.
 * Refuses FL_PIPELINE_LIST, whose instructions are in a file that traces/pipeline/pipeline.h reads.
 *
 * 1f1b: one forward, one backward, as DeepSpeed's TrainSchedule emits them. gpipe: all forwards, then all backwards,
 * the last microbatch first (Huang et al., "GPipe", 2019, Fig. 2c). interleaved: each rank has `chunks` parts of the
 * model (Narayanan et al., "Efficient large-scale language model training on GPU clusters", 2021, section 2.2); its
 * sends do not block. */
fl_status fl_pipeline_schedule_make(const fl_pipeline *p, fl_pipeline_order *o, fl_diag *d);

/* What an op of a rank is. */
typedef enum fl_pipeline_part {
    FL_PART_OF_MARKER,
    FL_PART_OF_FORWARD,
    FL_PART_OF_BACKWARD,
    FL_PART_OF_LOAD,
    FL_PART_OF_LOAD_IN_RECV,
    FL_PART_OF_MEETING, /* of tensor-parallel ranks */
    FL_PART_OF_TRANSFER,
    FL_PART_OF_END /* reductions and step */
} fl_pipeline_part;

typedef struct fl_pipeline_op {
    fl_pipeline_part part;
    int32_t microbatch, chunk; /* of forward and backward */
    int32_t link; /* of a transfer: the lower of the two stages that it joins; the last stage joins the first */
} fl_pipeline_op;

/* Build `iterations` iterations as a workload for a node of at least p->ranks GPUs. An iteration marker stands before
 * each forward and backward, by which a policy knows where its rank is. FL_BAD_INPUT where a rank would wait for ever;
 * the message names the ranks.
 *
 * clocks, where it is not NULL: each part has the length and power that its rows give at its clock, whatever the clock
 * of the GPU; FL_BAD_INPUT where the rows do not reach so far. op, where it is not NULL: what each op is, stream by
 * stream in the order of the ops; the caller frees *op. */
fl_status fl_build_pipeline(fl_workload **out, const char *name, const fl_pipeline *p, const fl_pipeline_order *o,
                            const fl_node_spec *node, uint32_t iterations, const fl_pipeline_clocks *clocks,
                            fl_pipeline_op **op, fl_diag *d);

/* Let the boards of the node draw what the rows state under the limit that they were measured under. */
void fl_pipeline_allow_bursts(const fl_pipeline *p, fl_node_spec *node);

/* Make boards without power of their own, so that they draw what a pipeline's rows state: one for each of `ranks`
 * ranks, with `count` ascending clocks, the last of which is the default. The caller frees *node with
 * fl_node_spec_free, also after a failure. */
fl_status fl_pipeline_node(fl_node_spec *node, uint32_t ranks, const int32_t *mhz, uint32_t count, fl_diag *d);

/* Run one iteration on the engine, and return seconds and joules of all ranks. clocks as in fl_build_pipeline; every
 * rank's rows must cover the node's ladder. */
fl_status fl_pipeline_run(const fl_pipeline *p, const fl_pipeline_order *o, const fl_node_spec *node,
                          const fl_pipeline_clocks *clocks, double *seconds, double *joules, fl_diag *d);

/* ---- planned clocks: the least energy within a time ----
 *
 * A plan may be for one time, or one of many from the shortest possible time to that of the least energy (the
 * frontier). Each plan comes with a bound that no plan as fast can beat. The same pipeline gives the same plans, bit by
 * bit.
 *
 * The frontier of mixtures of clocks is convex, so that prices on time find it (fl_plan_dual). The next price is the
 * slope between two known points, until the line between them is near enough to the bound (Eisner and Severance,
 * "Mathematical techniques for efficient record segmentation in large shared databases", 1976). A time between two
 * points mixes their lengths, and lengths become clocks of the ladder (fl_plan_round). A plan that is not near its
 * bound competes with the best plan of one clock, filled up to the time. If the better of the two is still far from the
 * bound, the search also starts at the plan of the next faster time, and polishes it (fl_plan_polish). */

/* ---- the critical path ----
 *
 * When each op of a workload ends, if each takes a given time: streams in order, ops that wait for each other, nothing
 * shared, no clock that changes. One pass over the ops, since a planner of clocks calls it thousands of times. A run on
 * the engine ends at the same instants, but for the rounding to picoseconds. */

typedef struct fl_critical { /* ops are numbered stream by stream, in order */
    const fl_workload *w;
    size_t count;
    size_t *first;   /* stream_count + 1: number of the first op of each stream */
    uint32_t *order; /* count: such that an op comes after all that it waits for */
    size_t *until;   /* count: what the op order[n] waits for is on[until[n - 1]] .. on[until[n] - 1] */
    uint32_t *on;    /* the op before it in its stream, then those of other streams */
} fl_critical;

/* w: no launches and no gaps, at most 2^32 - 1 ops; it must outlive *c. FL_BAD_INPUT where ops wait for each other for
 * ever. */
fl_status fl_critical_new(fl_critical *c, const fl_workload *w, fl_diag *d);
void fl_critical_free(fl_critical *c);

/* Compute end_s, when each op ends, from length_s, how long each takes. before, if not NULL: the op at whose end each
 * starts; FL_NONE = it starts at time 0. Returns the end of the last. */
double fl_critical_ends(const fl_critical *c, const double *length_s, double *end_s, uint32_t *before);

/* ---- the program of a planner ----
 *
 * A pipeline as a planner of clocks sees it: parts (forwards and backwards) that may run at any clock of a ladder, each
 * clock with its time and energy, between ops whose length no clock changes.
 *
 * A rank that does not compute draws its blocked power Pb, and all ranks end an iteration together. So the energy of an
 * iteration of length t is
 *     E = t B + sum over parts of (P - Pb) T,    B = sum over ranks of Pb
 * and a part's clock matters by its time T and by what it draws over the blocked power, (P - Pb) T. */

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

/* Make the program. limit_w: power limit by rank; clocks at which the rank would draw more are left out; NULL: none.
 * All arguments are borrowed for the life of *g. FL_BAD_INPUT where ranks do not end together (a list without a last
 * `step`), a clock of the ladder is not among those that rows reach, or a limit leaves no clock. */
fl_status fl_plan_program_new(fl_plan_program *g, const fl_pipeline *p, const fl_pipeline_order *order,
                              const fl_node_spec *node, const double *limit_w, fl_diag *d);
void fl_plan_program_free(fl_plan_program *g);

/* Return whether the tables contain the clock that *c, of the same pipeline, states for each part. Only then a bound
 * holds for *c. */
bool fl_plan_allows(const fl_plan_program *g, const fl_pipeline_clocks *c);

/* Convert a plan (places in the tables, by part) to clocks for the engine. The caller frees *c. */
fl_status fl_plan_clocks(const fl_plan_program *g, const uint32_t *at, fl_pipeline_clocks *c, fl_diag *d);

/* ---- prices: clocks for a price on time, and a bound that no plan can beat ----
 *
 * Let part i take T_i at an energy over blocked of e_i(T_i), a point of its table, and let
 * t(T) be the length of the longest path. A plan of energy E and length t has E = t B + sum_i e_i. For a price lambda
 * >= 0 on each second and Lambda = B + lambda, minimise E + lambda t = sum_i e_i(T_i) + Lambda t(T). t(T) is the
 * largest, over all flows y of one unit from begin to end (convex mixtures of paths), of sum_i y_i T_i + sum_j y_j d_j,
 * d_j: lengths that no clock changes. So for any one flow y, and any plan, E + lambda t >= sum_i e_i(T_i) + Lambda
 * (sum_i y_i T_i + sum_j y_j d_j)
 *                  >= sum_i min_T [e_i(T) + Lambda y_i T] + Lambda sum_j y_j d_j =: g(lambda).
 * This is weak duality: it holds whatever y is, also before anything has converged, and the minimum over the points of
 * a table is that over its convex hull, on which each part looks by itself. Hence every plan of at most t seconds has
 *     E >= g(lambda) - lambda t    for each lambda >= 0.
 *
 * y is found by Frank and Wolfe ("An algorithm for quadratic programming", 1956): each part takes the point of its hull
 * that is best at its price Lambda y_i, the longest path at these lengths is found, and y moves towards it. The
 * lengths, averaged over the rounds, are nearly those of the best mixture of clocks. */

typedef struct fl_plan_dual {
    const fl_plan_program *g;
    double *flow; /* by part: y */
    double fixed; /* sum of y d over what no clock changes */
    double *mean; /* by part: seconds */
    size_t *near; /* by part: vertex of its hull at its price */
    double *length_s, *end_s;
    uint32_t *before;
    bool begun; /* there is a flow to go on from */
} fl_plan_dual;

typedef struct fl_plan_line { /* the result of one price */
    double price;             /* lambda, W: joules that a second may cost */
    double bound;             /* g: every plan has E + price t >= bound */
    double time_s, energy_j;  /* of the mixture of clocks found */
} fl_plan_line;

/* ---- rounding: from lengths to clocks of the ladder ----
 *
 * The plan takes no longer than the lengths do, or than the limit.
 *
 * 1. Parts get their clocks in the order in which they start. Each takes the slowest clock with which it ends by the
 *    time at which it ends under the lengths given. It never starts later than it does there, so there always is one;
 *    and what one part is early by, the next has for itself: errors do not add up.
 * 2. What time is left behind parts that others do not wait for is given to those that save most by it: parts become
 * one clock slower where a second saves at least a price, which goes down from the highest to nothing. Kelley's float
 * ("Critical-path planning and scheduling: mathematical basis", 1961) is what a part may be later by. */

typedef struct fl_plan_round {
    const fl_plan_program *g;
    double *length_s, *end_s, *latest_s; /* by op; latest_s: when it has to end */
    double steepest;                     /* what a clock more saves at most, W */
} fl_plan_round;

/* ---- polishing: a plan far above its bound, improved step by step ----
 *
 * A few parts that are near each other become faster, step 2 of the rounding gives the time away again, and the cheaper
 * plan stays (Shaw, "Using constraint programming and local search methods to solve vehicle routing problems", 1998,
 * calls it a search of large neighbourhoods). Rounding takes one part after the other and cannot go back; where the
 * clocks that are of use lie far apart it loses most, and this wins part of that back. It draws from one generator, so
 * what becomes of a plan depends on the plans before it; the same series of plans becomes the same series. */

typedef struct fl_plan_polish {
    const fl_plan_program *g;
    uint32_t *near;  /* part_count: parts, those that run at about the same time beside each other */
    uint32_t *trial; /* by part */
    fl_random random;
} fl_plan_polish;

/* ---- plans of few clocks, for comparison: one clock for all parts, or one for each rank ---- */

/* Put each part at the clock of its rank. If its table lacks that clock, take the next lower one, or else its lowest.
 * at: places in the tables, filled. */
void fl_plan_at_clocks(const fl_plan_program *g, const int32_t *mhz, uint32_t *at);

typedef struct fl_plan_same { /* one clock for all */
    int32_t mhz;
    double time_s, energy_j;
} fl_plan_same;

/* One clock for each rank that makes E + price t small: from the clocks in mhz, by rank, each rank in turn goes to the
 * best of the ladder's clocks near its own until none gains. No search over all of them, so the least it finds may not
 * be the least there is. */
fl_status fl_plan_rank_clocks(const fl_plan_program *g, double price, int32_t *mhz, uint32_t *at, double *time_s,
                              double *energy_j, fl_diag *d);

/* ---- the planner ---- */

typedef struct fl_plan_point {
    double limit_s; /* requested time, but no more than the plan of least energy takes */
    double time_s, energy_j;
    double bound_j; /* no plan of at most time_s takes less */
    uint32_t *at;   /* by part: place in its table; owned */
} fl_plan_point;

typedef struct fl_planner {
    const fl_plan_program *g;
    fl_plan_dual dual;
    fl_plan_round round;
    fl_plan_polish polish;
    fl_plan_line *line; /* one for each price that was asked for */
    size_t line_count, line_room;
    fl_plan_same *same; /* same_count: plans of one clock, from which a plan may begin, too */
    size_t same_count;
    uint32_t *trial;     /* by part */
    fl_plan_point least; /* the plan of least energy of all; without places before the first plan is asked for */
    double fastest_s;    /* no plan takes less */
    double least_s;      /* what the plan of least energy takes; 0 before the first plan is asked for */
} fl_planner;

fl_status fl_planner_new(fl_planner *pl, const fl_plan_program *g, fl_diag *d);
void fl_planner_free(fl_planner *pl);

/* Find the best plans of at most limit_s[i] seconds each; the limits must descend. Fills point[count]; the caller frees
 * each with fl_plan_point_free, also after a failure. A limit beyond least_s gives the plan of least energy.
 * FL_BAD_INPUT where a limit is below fastest_s. */
fl_status fl_plan_within(fl_planner *pl, const double *limit_s, size_t count, fl_plan_point *point, fl_diag *d);

/* Find up to `count` plans, from a ten-thousandth above fastest_s to least_s in equal steps of time. Plans that another
 * equals or beats in both time and energy are left out. *point: *found of them, by ascending time; the caller frees
 * all. */
fl_status fl_plan_frontier(fl_planner *pl, size_t count, fl_plan_point **point, size_t *found, fl_diag *d);

/* Return a lower bound of the energy of every plan of at most time_s, by all prices so far, J. */
double fl_plan_bound(const fl_planner *pl, double time_s);
/* Return a lower bound of energy x time^power of every plan; power is 1 or 2. */
double fl_plan_product_bound(const fl_planner *pl, int power);

void fl_plan_point_free(fl_plan_point *p);

/* ---- stragglers ---- */

/* Copy a pipeline in which each forward and backward of `rank` takes `factor` (above 0) times as long at the same
 * power: a board that is hot, or worn, or shares its host. The caller frees *out. FL_BAD_INPUT where there is no such
 * rank. */
fl_status fl_pipeline_slowed(const fl_pipeline *p, uint32_t rank, double factor, fl_pipeline *out, fl_diag *d);
