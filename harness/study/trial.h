/* Runs of policies over scenes, each scored against what all policies of its scene share: the driver's default and the
 * oracles. Comparisons, grids and gates are made of them. */
#ifndef FL_TRIAL_H
#define FL_TRIAL_H

#include "harness/input/scene.h"
#include "harness/input/spec.h"
#include "harness/study/measure.h"
#include "harness/study/risk.h"
#include "sim/score.h"

typedef struct fl_comparison_options {
    fl_scenes *scenes;
    const fl_spec *spec;
    size_t spec_count;
    double bound; /* on the slowdown; INFINITY = none */
    double risk;  /* of a static choice (study/risk.h); 0 = none */
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

typedef struct fl_kept { /* of a run that was watched; of baseline:static only the clocks are known */
    fl_run_result run;
    fl_watch watch;
} fl_kept;

typedef struct fl_row_result { /* one line of a result */
    const char *workload, *policy;
    const char *variant; /* of the node; NULL = plain */
    const char *platform;
    const char *records; /* kernel records: "cost" time or "free"; NULL: the policy needs none */
    const char *twin_of; /* free beside the row of this policy, where they cost; NULL: none such */
    fl_score score;
    const char *draw; /* which drawn applications, by their seed; NULL: they are not drawn */
    uint64_t seed;
    double energy_saving_pct; /* against the driver's default */
    double node_energy_j, policy_cost_s;
    /* Of the workload, under the bound: the clairvoyant schedule's energy; below what no schedule's energy is (NAN
     * where another objective is asked for); by how much at most its objective is above the least possible. */
    double oracle_j, oracle_bound_j, oracle_gap_pct;
    double reward_regret;                      /* of a distribution replay: EnergyUCB Eq. 3; else NAN */
    fl_times latency;                          /* of requests; NAN where none arrive */
    double energy_per_request_j, offered_load; /* load: time of service x rate of arrival; at 1 it is overloaded */
    bool overloaded;
    /* Of a static clock that a fitted model chose, shares: that the real bound breaks there, and the regret to expect.
     * NAN elsewhere. */
    double bound_break_chance, expected_regret;
    double violated; /* 0 or 1; in a mean: how many */
    uint64_t ignored_sets, faults;
    bool unstepped;   /* see fl_spec_unstepped */
    size_t workloads; /* in a mean: of how many */
    fl_kept *kept;    /* NULL: not watched; owned by whoever holds the row */
    char note[96];
} fl_row_result;

void fl_row_free(fl_row_result *row); /* what was kept */

/* True where the workload of the row or scene (its variant left out of the name) matches a shell pattern. */
bool fl_workload_matches(const char *workload, const char *variant, const char *pattern);
/* True where the spec is for the scene's workload. */
bool fl_spec_is_for(const fl_spec *spec, const fl_scene *s);

typedef struct fl_trials fl_trials;

/* Runs the defaults and solves the references of every scene, on o->threads threads. *o is borrowed. */
fl_status fl_trials_open(fl_trials **out, const fl_comparison_options *o, fl_diag *d);
void fl_trials_close(fl_trials *t);

/* scenes x specs x seeds, in this order: the seed changes fastest. */
size_t fl_trials_count(const fl_comparison_options *o);
/* One run; any number of threads at once. row->policy stays NULL where the spec is not for the scene. */
fl_status fl_trials_run(fl_trials *t, size_t index, fl_row_result *row, fl_diag *d);

enum { FL_BASELINES = 4 };
/* The driver's default, the best static clock, the best clock per kernel, the clairvoyant schedule: those there are.
 * Once per scene, and where runs are watched not before its runs are over. */
fl_status fl_trials_baselines(fl_trials *t, size_t scene, fl_row_result row[FL_BASELINES], size_t *count, fl_diag *d);

#endif
