/* What compare, sweep and regress have in common: options, an experiment, its policies and scenes. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_setup_options { /* as the command line gives them: NULL, 0, INFINITY where it does not, until
                                     fl_setup_open asks the experiment and resolves the rest */
    fl_scene_options scene;
    fl_texts rest; /* traces, and at most one experiment (*.json) */
    fl_texts policies;
    const char *objective;
    fl_texts bounds; /* as --bound has them */
    double bound;    /* on the slowdown, of a caller that has no texts */
    double risk;
    int64_t seeds, positions, threads;
    bool no_oracle;
    bool by_draw; /* drawn applications: opens the scenes of the first draw, fl_setup_next those of each further one */
} fl_setup_options;

#define FL_SETUP_UNSET                                                                                                 \
    { .bound = INFINITY }
#define FL_SEEDS_STANDARD 1
void fl_setup_options_free(fl_setup_options *o);

typedef struct fl_setup {
    fl_experiment experiment; /* tree NULL: there is none */
    fl_texts traces, labels;  /* labels: of the policies, in order */
    fl_scenes scenes;
    fl_spec *spec;
    size_t own_specs; /* of o.spec_count; the rest are their twins, which share all but the label */
    size_t variants;
    fl_promises promises;
    int64_t *draw; /* draw_count seeds of the experiment's applications, of which draws_open are open */
    size_t draw_count, draws_open;
    bool own;                /* the command line gave policies or workloads of its own */
    fl_comparison_options o; /* points into this struct */
} fl_setup;

/* Texts are borrowed from *o, which afterwards says what was used and has to stay. Not to be moved once open. */
fl_status fl_setup_open(fl_setup *u, fl_setup_options *o, fl_diag *d);
/* Opens the scenes of the next draw of the applications behind the others. */
fl_status fl_setup_next(fl_setup *u, fl_setup_options *o, fl_diag *d);
void fl_setup_free(fl_setup *u);
/* Seeds of each policy and workload: runs of one scene, or draws of it. */
size_t fl_setup_seeds(const fl_setup *u);

/* clang-format off */
#define FL_SETUP_OPTIONS(s)                                                                                            \
    FL_SCENE_OPTIONS((s).scene),                                                                                       \
    FL_SERVING_OPTIONS((s).scene.serving),                                                                             \
    {"policy", "SPEC", FL_OPTION_LIST, &(s).policies, 0, 0,                                                            \
     "policy with parameters; NAME=SPEC gives its rows a name (may be repeated)"},                                     \
    FL_STEP_LIMIT_OPTION,                                                                                              \
    FL_BOUND_OPTION(&(s).bounds),                                                                                      \
    FL_STREAMS_OPTION((s).scene.stated),                                                                               \
    FL_RISK_OPTION(&(s).risk),                                                                                         \
    FL_OBJECTIVE_OPTION(&(s).objective),                                                                               \
    {"seeds", "N", FL_OPTION_INT, &(s).seeds, 1, 100000,                                                               \
     "runs of each policy, with seeds from --seed on (" FL_AS_TEXT(FL_SEEDS_STANDARD) ")"},                            \
    FL_POSITIONS_OPTION(&(s).positions),                                                                               \
    {"windows", "N", FL_OPTION_INT, &(s).scene.windows, 1, 1e6,                                                        \
     "windows of work for the worst-window slowdown (" FL_AS_TEXT(FL_WINDOWS_STANDARD) ")"},                           \
    FL_THREADS_OPTION(&(s).threads),                                                                                   \
    {"no-oracle", NULL, FL_OPTION_FLAG, &(s).no_oracle, 0, 0, "leaves out oracles and regrets (faster)"}
