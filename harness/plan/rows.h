/* What `foldline plan` tells: planned clocks beside one clock for all, a clock for each rank, the driver's default and
 * measured plans. Time and energy of each are those of a run on the engine. */
#pragma once

#include "harness/plan/training.h"
#include "sim/oracle/oracle.h"
#include "sim/pipeline/plan.h"

#define FL_PLANNED_KINDS(X)                                                                                            \
    X(PLAN, plan)                                                                                                      \
    X(STATIC, static)                                                                                                  \
    X(RANK, rank)                                                                                                      \
    X(DEFAULT, default)                                                                                                \
    X(MEASURED, measured)
#define FL_ROW_PLANNED_KIND(id, name) FL_PLANNED_##id,
typedef enum fl_planned_kind { FL_PLANNED_KINDS(FL_ROW_PLANNED_KIND) FL_PLANNED_KIND_COUNT } fl_planned_kind;
extern const char *const fl_planned_kind_name[FL_PLANNED_KIND_COUNT];

typedef struct fl_planned_row {
    fl_planned_kind kind;
    int64_t number; /* of a plan in the file that is written, or in the one measured; MHz of a static clock; else -1 */
    double time_s, energy_j;
    double bound_j;                /* no plan as fast takes less; NAN of a measured one that asks for a clock that
                                      plans may not: off the ladder, or beyond a power limit */
    double judge_s, judge_j;       /* as the other pipeline says; NAN where there is none */
    double measured_s, measured_j; /* NAN where it was not measured */
    bool warm_up;                  /* measured, all at the top clock, first of all: on boards that are still cold */
} fl_planned_row;

typedef struct fl_plan_ask {
    const fl_training *t, *judge; /* judge: NULL = none */
    const double *limit_w;        /* by rank; NULL = none */
    const char *measured;         /* beginning of the names of files (traces/pipeline/runs.h); NULL = none */
    bool frontier;
    size_t points;
    double time_s, slowdown; /* at most; INFINITY = any. slowdown: against the driver's default */
    fl_objective objective;
} fl_plan_ask;

typedef struct fl_planned {
    fl_plan_program g;
    fl_planner pl;
    fl_planned_row *row; /* of kind after kind */
    size_t count, room;
    size_t standard, chosen; /* the driver's default; the plan with the least of the objective within the time */
    double limit_s;          /* INFINITY = any */
    fl_plans plans;          /* those of kind PLAN, by number */
} fl_planned;

/* FL_BAD_INPUT where no plan is as fast as asked for, or files do not belong to the pipeline. Leaves *r zeroed where it
 * fails. */
fl_status fl_planned_make(const fl_plan_ask *ask, fl_planned *r, fl_diag *d);
void fl_planned_free(fl_planned *r);

/* The row of a kind that has the least of the objective within the time; count where there is none. */
size_t fl_planned_best(const fl_planned *r, fl_planned_kind kind, fl_objective objective);

/* The frontier's energy at the times of the measured plans. */
typedef struct fl_planned_against {
    size_t plans, below;        /* compared; and those at whose time the frontier takes no more energy */
    size_t faster;              /* faster than the whole frontier, so not compared */
    double mean_pct, worst_pct; /* frontier above the measured plan: negative where it takes less; NAN */
} fl_planned_against;

/* Frontier and measured plans as predicted, by the judge where there is one; without `warm_up`. */
fl_planned_against fl_planned_as_predicted(const fl_planned *r);
/* The frontier as predicted, against what was measured. */
fl_planned_against fl_planned_as_measured(const fl_planned *r);
