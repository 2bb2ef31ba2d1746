/* What the files of harness/plan share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "harness/plan/plan.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/oracle/oracle.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Executed plans. */

typedef struct fl_executed_part { /* one kind of instruction of a rank at one clock */
    int64_t plan;
    uint32_t rank;
    fl_pipeline_what what;
    int32_t mhz;
    size_t count, switched;         /* in an iteration; of these after a forward or backward at another clock */
    double samples, mean_s, square; /* square: sum of squares about the mean */
} fl_executed_part;

typedef struct fl_executed_run { /* means and standard deviations over iterations */
    int64_t plan;
    uint32_t rank;
    size_t iterations;
    double time_s[2], energy_j[2], plan_s[2], plan_j[2];
} fl_executed_run;

typedef struct fl_executed {
    uint32_t ranks, stages, microbatches;
    fl_plans plans;
    fl_executed_run *run;
    size_t run_count, run_room;
    fl_executed_part *part;
    size_t part_count, part_room;
} fl_executed;

/* Executed plans of clocks as the Perseus artifact (SOSP '24) releases them: of each plan N a pair of JSON files.
 *
 *   N.sched.json   [{"rank": R, "power_states": [MHz, ...]}, ...]: the clock of each instruction of a rank's list
 *   N.prof.json    [{"rank": R, "iter_time": [s, ...], "iter_energy": [J, ...],
 *                    "time_breakdown": {"forward": [[s, ...], ...], "backward": ..., "load": ...}}, ...]
 *                  by iteration, and within it by instruction; energy is the board's
 *
 * They become the files that traces/pipeline/pipeline.h reads: BASE.plans.csv, BASE.measured.csv,
 * BASE.instructions.csv. Lists are those of a 1F1B schedule (sim/pipeline/pipeline.h); how many stages it has is found
 * by their lengths. Of more than five iterations the first two are left out, of fewer the first: the boards are still
 * cold. */

/* True if a file has the name of one of a pair. */
bool fl_executed_is(const char *path);
/* Reads pairs, in any order; fills *e or leaves it zeroed. FL_BAD_INPUT, with line and column where a value is to
 * blame, where a pair is not whole, where pairs are of different pipelines, and where lists are not those of a 1F1B
 * schedule. */
fl_status fl_executed_read(const fl_texts *files, fl_executed *e, fl_diag *d);
/* The three files; where one cannot be written, those before it stay. */
fl_status fl_executed_write(const char *base, const fl_executed *e, fl_diag *d);
void fl_executed_free(fl_executed *e);

typedef struct fl_pipeline_fit {
    const fl_pipeline_runs *r;
    fl_pipeline p; /* the program, without its fitted rows */
    fl_pipeline_order order;
    fl_node_spec node; /* boards that draw what their tables say and nothing else */
    fl_workload *w;
    fl_pipeline_op *op;
    fl_critical path;
    double limit_w;
    fl_stage_time (*time)[2];        /* by rank: forward, backward */
    double *load_s, *load_in_recv_s; /* by rank */
    const bool *loads_of;            /* the plans that loads are learned from; NULL: those of all else */
    double *link_s;                  /* by the lower stage of each pair of neighbours */
    double tail_s;
    double *power_w, *most_w; /* by rank: at FL_STAGE_F0, and where the limit holds it */
    double blocked_w;
    fl_stage_power law;
} fl_pipeline_fit;

/* Makes the program of r->ranks ranks in `stages` stages: 1F1B, or the list of order_file where that is not NULL.
 * f->r = r, which must outlive *f. */
fl_status fl_pipeline_fit_open(fl_pipeline_fit *f, const fl_pipeline_runs *r, uint32_t stages, uint32_t tensor_parallel,
                               const char *order_file, double limit_w, fl_diag *d);
void fl_pipeline_fit_close(fl_pipeline_fit *f);

/* What other pipelines on the same chip, fitted to all their plans, lead to expect. */
void fl_pipeline_fit_believe(const fl_pipeline_fit *const *fit, size_t count, fl_pipeline_beliefs *out);

enum { FL_PF_CLOCKS_MAX = 512 }; /* more than any ladder has */

/* The clock as a share of the top clock. */
static inline double fl_pf_clock(const fl_pipeline_fit *f, double mhz) { return mhz / f->r->top_mhz; }

/* True if the first plan asks for the top clock everywhere. Such a first plan of a series is a warm-up, on colder
 * boards.
 */
bool fl_pipeline_warm_up(const fl_pipeline_runs *r);
/* The weight of a plan in a fit. */
double fl_pf_weight(const fl_pipeline_fit *f, size_t plan);
/* The clocks of a plan; the caller frees c->mhz, also after a failure. */
fl_pipeline_clocks fl_pf_clocks_new(const fl_pipeline_fit *f, size_t plan);
/* Make the program without rows, and add a row to it. */
fl_pipeline fl_pf_program(const fl_pipeline_fit *f);
fl_status fl_pf_put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double power_w,
                    fl_diag *d);
/* Mean of what was measured of a kind that does not follow the clock, in the plans of learn (NULL: all); 0 where
 * nothing was. */
double fl_pf_mean(const fl_pipeline_fit *f, uint32_t rank, fl_pipeline_what what, const bool *learn);

/* The beliefs about one rank. They come from what it draws in the first plan, if the fit learns from that plan and it
 * asks for the top clock; else they are those of all ranks. k: 0 forward, 1 backward. */
fl_belief fl_pf_wall(const fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn, const fl_pipeline_beliefs *b);
double fl_pf_power(const fl_pipeline_fit *f, uint32_t rank, const bool *learn, const fl_pipeline_beliefs *b);

/* A pipeline's times and powers from executed plans: how long each rank's forward and backward take at which clock,
 * what transfers and the end of an iteration take, and what a rank draws while it computes and while it waits. Only the
 * energy of a rank over a whole iteration is measured; its parts come from plans that mix clocks in other ways. */

/* Fits to the plans for which learn[plan] is true. */
fl_status fl_pipeline_fit_learn(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *believed, fl_diag *d);

/* The fitted pipeline, a row at each of the `count` clocks for each rank; the caller frees *p. */
fl_status fl_pipeline_fit_rows(const fl_pipeline_fit *f, const double *mhz, size_t count, fl_pipeline *p, fl_diag *d);

/* The fitted pipeline, with each row the mean over fits to `twins` random halves of the plans of learn. A planner
 * exploits the errors of a single fit, and the mean has smaller errors (Breiman, "Bagging predictors", 1996).
 * Afterwards *f is fitted to all plans of learn. */
fl_status fl_pipeline_fit_twins(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, uint32_t twins,
                                fl_pipeline *p, const double *mhz, size_t count, fl_diag *d);

/* A pipeline on the boards that run it, for what plans its clocks. */

typedef struct fl_training {
    fl_pipeline p;
    fl_pipeline_order order;
    fl_platform platform;     /* empty where none was named */
    fl_node_spec own;         /* boards of no platform; empty where there is one */
    const fl_node_spec *node; /* of the two; its ladder lies where times of every rank are known */
} fl_training;

/* Reads the pipeline at `path`. platform: by its name or path; NULL: boards that draw what the pipeline's rows say,
 * with a ladder of the clocks that these rows state. slow: texts "rank=3:1.2", ranks that compute slower
 * (sim/pipeline/pipeline.h). Leaves *t zeroed where it fails. */
fl_status fl_training_open(const char *path, const char *platform, const fl_texts *slow, fl_training *t, fl_diag *d);
void fl_training_free(fl_training *t);

/* What `foldline plan` tells: planned clocks beside one clock for all, a clock for each rank, the driver's default and
 * measured plans. Time and energy of each are those of a run on the engine. */

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
    const char *measured;         /* beginning of the names of files (traces/pipeline/pipeline.h); NULL = none */
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

/* How well a pipeline's fit predicts the plans that it has not seen, beside how well one can do without a model. */

typedef enum fl_pipeline_learn { /* which plans the fit learns from; it is scored on the others */
                                 FL_LEARN_ALL,
                                 FL_LEARN_HALF,   /* every other one, from the first on */
                                 FL_LEARN_OTHERS, /* those that half leaves out: a fit that shares no plan with it */
                                 FL_LEARN_THREE, /* the first, the slowest of the others and the middle one by number */
                                 FL_LEARN_FIRST,
                                 FL_LEARN_SLOW, /* the slower half; the first plan, where it is a warm-up, belongs to
                                                   neither half */
                                 FL_LEARNS
} fl_pipeline_learn;
extern const char *const fl_pipeline_learn_name[FL_LEARNS];

typedef struct fl_pipeline_error { /* percent, over plans */
    double mean, p95, worst;
} fl_pipeline_error;

typedef struct fl_pipeline_score {
    size_t learned, left_out;       /* plans; the warm-up counts as neither where it was not learned from */
    double *seconds, *joules;       /* by plan: predicted; NAN where it was not */
    fl_pipeline_error time, energy; /* NAN where nothing was left out */
    fl_pipeline_error near_time,
        near_energy; /* of the mean of the two nearest plans, by number, that were learned from */
    size_t limited;  /* runs under power limits of at least `least_limit` W each */
    fl_pipeline_error cap_time, cap_energy;
} fl_pipeline_score;

/* learn: plan_count. The first plan is a warm-up where it asks for the top clock everywhere. */
void fl_pipeline_learn_choose(const fl_pipeline_runs *r, fl_pipeline_learn how, bool *learn);

fl_status fl_pipeline_score_make(const fl_pipeline_fit *f, const bool *learn, double least_limit_w,
                                 fl_pipeline_score *s, fl_diag *d);
void fl_pipeline_score_free(fl_pipeline_score *s);

/* How `foldline plan` says what it found. */

/* On stdout: all rows of a frontier, else the best of each kind. */
void fl_plan_tell_text(const fl_planned *r, const fl_plan_ask *ask, bool wide);
void fl_plan_tell_json(const fl_planned *r, const fl_plan_ask *ask);

/* All rows, for `foldline plot frontier`: kind,plan,time_s,energy_j,bound_j,gap_pct,slowdown_pct,saving_pct, then
 * judge_time_s,judge_energy_j,measured_time_s,measured_energy_j, n/a where there is none. */
void fl_plan_tell_csv(const fl_planned *r, FILE *out);
