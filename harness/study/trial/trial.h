/* Runs of policies over scenes, each scored against what all policies of its scene share: the driver's default and the
 * oracles. Comparisons, grids and gates are made of them. */
#pragma once

#include "harness/input/scene/scene.h"
#include "harness/input/policy/spec.h"
#include "harness/study/trial/promise.h"
#include "harness/study/trial/risk.h"

typedef struct fl_comparison_options {
    fl_scenes *scenes;
    const fl_spec *spec;
    size_t spec_count;
    double bound;                /* on the slowdown; INFINITY = none */
    const fl_promises *promises; /* bounds on other columns; NULL = none */
    double risk;                 /* of a static choice (study/risk.h); 0 = none */
    fl_objective objective;
    size_t positions; /* of the clairvoyant schedule; FL_POSITIONS_ALL */
    uint64_t seed;
    uint32_t seeds; /* runs of each policy, with seeds seed, seed + 1, ... */
    int64_t draws;  /* the scenes are so many draws of the same ones, see fl_scene_options */
    unsigned threads;
    bool oracles;     /* solve the references; without them all regrets are n/a */
    bool only_static; /* of them only the best static clock, without a table of all */
    int64_t watch_ns; /* window of the power statistics of watched runs; 0 = runs are not watched */
} fl_comparison_options;

/* True where the workload of the row or scene (its variant left out of the name) matches a shell pattern. */
bool fl_workload_matches(const char *workload, const char *variant, const char *pattern);
/* True where the spec is for the scene's workload. */
bool fl_spec_is_for(const fl_spec *spec, const fl_scene *s);

typedef struct fl_trials fl_trials;

/* Runs the defaults and solves the references of every scene, on o->threads threads. *o is borrowed. */
fl_status fl_trials_open(fl_trials **out, const fl_comparison_options *o, fl_diag *d);
void fl_trials_close(fl_trials *t);

/* Scene by scene instead, so that few are built at once: the stages below in this order, the jobs of one at once, then
 * the runs; and at the end fl_trials_forget. */
typedef enum fl_trials_stage {
    FL_TRIALS_BUILD,
    FL_TRIALS_STANDARD,
    FL_TRIALS_STATIC,
    FL_TRIALS_SOLVE,
    FL_TRIALS_READY /* for its runs */
} fl_trials_stage;
/* To be closed, also where it fails. */
fl_status fl_trials_new(fl_trials **out, const fl_comparison_options *o, fl_diag *d);
size_t fl_trials_jobs(const fl_trials *t, size_t scene, fl_trials_stage stage);
fl_status fl_trials_prepare(fl_trials *t, size_t scene, fl_trials_stage stage, size_t job, fl_diag *d);
/* Frees what the runs of a scene shared, and gives the scene back; rows that were taken from it stay. */
void fl_trials_forget(fl_trials *t, size_t scene);

/* scenes x specs x seeds, in this order: the seed changes fastest. */
size_t fl_trials_count(const fl_comparison_options *o);
/* One run; any number of threads at once. row->policy stays NULL where the spec is not for the scene. After a failure
 * the row holds nothing to free. */
fl_status fl_trials_run(fl_trials *t, size_t index, fl_row_result *row, fl_diag *d);

enum { FL_BASELINES = 4 };
/* The driver's default, the best static clock, the best clock per kernel, the clairvoyant schedule: those there are.
 * Once per scene, and where runs are watched not before its runs are over. */
fl_status fl_trials_baselines(fl_trials *t, size_t scene, fl_row_result row[FL_BASELINES], size_t *count, fl_diag *d);
