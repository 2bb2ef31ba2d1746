/* Policies over scenes: every run scored against the driver's default and the oracles of its scene. */
#ifndef FL_COMPARISON_H
#define FL_COMPARISON_H

#include "harness/measure.h"
#include "harness/output.h"
#include "sim/score.h"

/* "energy", "edp" or "ed2p"; the nearest offered. */
fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d);

typedef struct fl_comparison_options {
    fl_scenes *scenes;
    const fl_spec *spec;
    size_t spec_count;
    double bound; /* on the slowdown; INFINITY = none */
    fl_objective objective;
    size_t positions; /* of the clairvoyant schedule; 0 = 4096 */
    uint64_t seed;
    uint32_t seeds; /* runs of each policy, with seeds seed, seed + 1, ... */
    unsigned threads;
    bool oracles;     /* solve the references; without them all regrets are n/a */
    int64_t watch_ns; /* window of the power statistics of watched runs; 0 = runs are not watched */
} fl_comparison_options;

typedef struct fl_kept { /* of a run that was watched; of baseline:static only the clocks are known */
    fl_run_result run;
    fl_watch watch;
} fl_kept;

typedef struct fl_row_result { /* one line of a result */
    const char *workload, *policy;
    const char *variant; /* of the node; NULL = plain */
    fl_score score;
    uint64_t seed;
    double energy_saving_pct; /* against the driver's default */
    double node_energy_j, policy_cost_s;
    double oracle_j, oracle_bound_j, oracle_gap_pct; /* of the workload, under the bound */
    double reward_regret;                            /* of a distribution replay: EnergyUCB Eq. 3; else NAN */
    double violated;                                 /* 0 or 1; in a mean: how many */
    const fl_kept *kept;                             /* NULL: not watched */
    char note[96];
} fl_row_result;

typedef struct fl_comparison {
    fl_row_result *row; /* scene by scene: the baselines, then policy by policy, seed by seed; at the end the means */
    size_t count, room;
    char **label; /* label_count: policies of the means of variants */
    size_t label_count, label_room;
    fl_kept **kept; /* kept_count */
    size_t kept_count, kept_room;
    size_t mean_first; /* rows from here on are means over workloads and seeds, in the order of the policies */
    uint64_t ignored_sets, faults;
} fl_comparison;

/* True where the workload of the row or scene (its variant left out of the name) matches a shell pattern. */
bool fl_workload_matches(const char *workload, const char *variant, const char *pattern);

/* Same options, same rows, at any number of threads. */
fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
void fl_comparison_free(fl_comparison *c);

/* The cell of a row by the name of a column of the CSV, slowdown_pct, energy_kj, or one of harness/measure.h; NAN where
 * the row does not have it. FL_BAD_INPUT where there is no such column. */
fl_status fl_comparison_value(const fl_row_result *row, const char *name, double *value, fl_diag *d);

/* The parts of it that other replays build their rows with. */
fl_status fl_comparison_add(fl_comparison *c, const fl_row_result *row, fl_diag *d);
/* Keeps what a row points to; the comparison owns *kept from then on, also on failure. */
fl_status fl_comparison_keep(fl_comparison *c, fl_kept *kept, fl_diag *d);
/* Means over workloads and seeds of all rows so far. */
fl_status fl_comparison_means(fl_comparison *c, fl_diag *d);
/* True where the spec is for the scene's workload. */
bool fl_spec_is_for(const fl_spec *spec, const fl_scene *s);

/* All rows as CSV, through a temporary file. */
fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d);

/* The means (or, of one workload, its rows) as a table for people. */
void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out);

#endif
