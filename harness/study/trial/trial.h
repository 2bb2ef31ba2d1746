/* Trials: runs of policies over scenes, each scored against the driver's default and the oracles of its scene.
 * Comparisons, grids and gates are made of their rows.
 *
 * A command fills an fl_setup_options and calls fl_setup_open, which opens experiment, policies and scenes and fills an
 * fl_comparison_options. fl_trials_open runs the defaults and solves the oracles, fl_trials_run makes one row,
 * fl_trials_baselines the rows of the baselines, fl_trials_close frees all but the rows. fl_row_result is a row: a
 * new column of results begins there and ends with a row of the table in rows.c.
 *
 * The header also has objectives, bounds on any column (fl_promises), values of watched runs, the risk of a fitted
 * model, and the test of a ranking against the model's error. Wrong names and bounds are FL_BAD_INPUT. Any number of
 * threads may run trials at once; the result does not depend on it. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Objectives, by their names on the command line and in experiments. */

#define FL_OBJECTIVE_STANDARD "energy"

/* Rows for tables of options: what is minimised, and how finely the clairvoyant schedule is cut. */
/* clang-format off */
#define FL_OBJECTIVE_OPTION(into)                                                                                      \
    {"objective", "energy|edp|ed2p", FL_OPTION_CHOICE, into, 0, 0,                                                     \
     "what is least (" FL_OBJECTIVE_STANDARD ")", FL_FOR_POLICIES}
#define FL_POSITIONS_OPTION(into)                                                                                      \
    {"positions", "N", FL_OPTION_INT, into, 1, 1e6,                                                                    \
     "stretches of work to which the clairvoyant schedule gives one clock each (every kernel, host time apart)"}
/* clang-format on */

/* Title and unit of each fl_objective in tables: "energy" in "J", "EDP" in "J s", "ED2P" in "J s^2". */
extern const char *const fl_objective_title[], *const fl_objective_unit[];

/* Parse "energy", "edp" or "ed2p". FL_BAD_INPUT offers the nearest. */
fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d);

/* Values of a run beyond its scores, by name: clocks, shares of time, power above a limit, the policy's own probes.
 *
 * Names: every column of a result's CSV (energy_j ...); and, for a run that was watched,
 *   sm_mhz_mean, mem_mhz_mean, cpu_mhz_mean     over time (GPUs: over all of them)
 *   sm_mhz_last, mem_mhz_last, cpu_mhz_last     at the end (GPU 0)
 *   sm_share@A, sm_share@A-B, mem_share@, cpu_share@   percent of time at clocks from A to B MHz
 *   cpu_energy_j, cpu_gpu_energy_j              CPU; CPU and GPUs, without the rest of the node
 *   node_power_w                                mean
 *   over_node@W, over_gpu@W                     percent of the power windows whose true mean is above W
 *   process_s@N                                 when process N ended
 *   reward_regret@N                             of a distribution replay: after N steps (thousands)
 *   probe:NAME                                  its last value that was not NaN; of a probe per GPU, that of GPU 0
 *   steps:NAME@A, steps:NAME@A-B                steps in which that probe showed a whole number from A to B, 0 to 63 */

typedef struct fl_bin { /* a bin of a histogram and its count */
    uint32_t at;
    uint64_t count;
} fl_bin;

typedef struct fl_bins { /* the bins with a count above 0, ascending */
    fl_bin *bin;
    size_t count;
} fl_bins;

/* The statistics of a watched run; plain zero before it. During the run, tables count all bins. At its end, short lists
 * of the bins that occurred replace the tables, because a comparison keeps a watch for each of thousands of rows. */
typedef struct fl_watch {
    const fl_policy *policy;
    double *probe;       /* last values; probe_count (fl_instance_probe_count) */
    uint64_t *probe_bin; /* steps by value, FL_WATCH_VALUES for each probe */
    size_t probe_count;
    uint32_t gpu_count;
    int64_t last_ps;
    fl_wide node_fj, gpu_fj;
    uint32_t *node_bin, *gpu_bin; /* windows by mean power, FL_WATCH_BINS of 1 W; the last holds all above */
    uint32_t windows;
    fl_bins probe_met, node_met, gpu_met; /* the lists that replace these tables at the end of the run */
    double *regret_mark;                  /* regret_count values of a distribution replay, every FL_DRAWS_MARK steps */
    size_t regret_count;
} fl_watch;

void fl_watch_open(fl_watch *w, const fl_policy *policy, uint32_t gpu_count);
/* End the watch of a run: make the lists that values by name are read from. */
void fl_watch_end(fl_watch *w);

/* For fl_run_options: user is the fl_watch. */
fl_status fl_watch_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);

/* Rows: the score of one run, its policy and workload, and the bounds that it broke. */

typedef struct fl_kept { /* what stays of a watched run; for baseline:static only the clocks */
    fl_run_result run;
    fl_watch watch;
} fl_kept;

typedef struct fl_row_result { /* one line of a result */
    const char *workload, *policy;
    const char *variant; /* variant of the node; NULL = plain */
    const char *platform;
    const char *records; /* activity records: "cost" (they take time) or "free"; NULL: the policy needs none */
    const char *twin_of; /* label of the same policy whose records cost time, while they are free here; NULL: no pair */
    fl_score score;
    const char *draw; /* seed of the drawn applications; NULL: they are not drawn */
    uint64_t seed;
    double energy_saving_pct; /* against the driver's default */
    double node_energy_j, policy_cost_s;
    double oracle_j, oracle_bound_j, oracle_gap_pct; /* clairvoyant schedule under the bound; gap of the objective */
    const char *objective_unit;                      /* unit of the next two and of regrets: "J", "J s" or "J s^2" */
    double oracle_objective, oracle_objective_bound; /* of the clairvoyant schedule, and its certified bound */
    double objective_saving_pct;                     /* saving of the objective against the driver's default */
    double reward_regret;                            /* EnergyUCB Eq. 3, of a distribution replay; else NAN */
    fl_times latency;                                /* latencies of requests; NAN if none arrive */
    double energy_per_request_j, offered_load; /* load: service time x arrival rate; from 1 on the node is overloaded */
    bool overloaded;                           /* of servers: as fl_served_summary says */
    /* Only for servers of a language model; NAN for all others. `latency` is then a request's whole time. */
    fl_times request_j, token_j; /* energy of steps by request, and per token of each; joules stand for seconds */
    double idle_pct;             /* of the node's energy: what no step drew */
    fl_times ttft, tbt, tpot;    /* time to first token, time between tokens, its mean by request */
    double ttft_missed_pct, tbt_missed_pct; /* share of first tokens, and of later tokens, over the targets */
    double offered_rps;                     /* requests per second that arrive */
    double served_rps, goodput_rps;         /* requests per second that are done, and those that met both targets */
    double energy_per_token_j;              /* per output token */
    double preemptions;
    double worst_minute_missed_pct, worst_minute_ttft_s, worst_minute_at_s; /* requests that arrived within a minute */
    double saving_static_pct; /* energy saved against the best static clock that holds all bounds, also if this row does
                                 not hold them */
    double saving_most_pct;   /* upper bound of any saving against the default, from oracle_bound_j */
    double sets;              /* number of sets of controls by the policy */
    /* Only with a power target (fl_run_result); else NAN. Work lost: share of what the default does in the same time.
     */
    double target_error_w, target_above_pct, work_lost_pct;
    /* Only for a static clock that a fitted model chose; else NAN. Shares. */
    double bound_break_chance, expected_regret; /* chance that the real bound breaks there; regret to expect */
    double violated;                            /* 0 or 1; in a mean, the number of such rows */
    uint32_t broken, unknown; /* bits of fl_promises_name: bounds that the row breaks; bounds that cannot be judged */
    char breaks[128];         /* both as a text */
    uint64_t ignored_sets, faults;
    bool unstepped;   /* see fl_spec_unstepped */
    size_t workloads; /* in a mean: number of workloads */
    /* In a mean: number of its rows, and of those with each regret. In a row: 1, and 0 or 1. */
    uint64_t rows, regret_static_rows, regret_clairvoyant_rows;
    double energy_half_j;               /* in a mean: half of the 95 % interval of its energy; 0: of one row */
    uint64_t partial[2];                /* in a mean: columns that some of its rows lack, as bits (fl_row_partial) */
    double clock_sm_mhz, clock_mem_mhz; /* clocks of a static choice; 0: none, or the device has one memory clock */
    double clock_decode_mhz;            /* of decode servers; 0: no pools */
    char clock[96];                     /* these clocks as parameters of the policy fixed; in a mean a range */
    fl_kept *kept;                      /* NULL: not watched; freed by fl_row_free */
    char note[160];
} fl_row_result;

/* Finish a row once its score is set: fill in counts, and the objective relative to `standard`, that of the driver's
 * default. Every maker of rows calls it. */
void fl_row_finish(fl_row_result *row, fl_objective objective, double standard);

/* Fill in what servers did, NAN without servers. energy_j must be set before. */
void fl_row_fill_served(fl_row_result *row, const fl_run_result *run);

/* Name the clocks of a static choice; mem_mhz 0: the device has a single memory clock. */
void fl_row_clock(fl_row_result *row, double sm_mhz, double mem_mhz, double decode_mhz);

void fl_row_free(fl_row_result *row); /* frees what a watched row kept */

/* Columns: the names of a row's numbers in CSV and JSON, in gates and selections. To add one, give fl_row_result a
 * member that every maker of rows sets, and the table in rows.c a row at its end. */

/* Get a cell of a row by its name: a column of the CSV, slowdown_pct, energy_kj, or a value of a watched run. NAN: the
 * row does not have it. FL_BAD_INPUT: there is no such column. */
fl_status fl_row_value(const fl_row_result *row, const char *name, double *value, fl_diag *d);

/* Write the head of the CSV, and one row as a line of it. */
void fl_row_head(FILE *f);
void fl_row_put(FILE *f, const fl_row_result *row);
/* Add all columns as keys; values that are not finite become null. A mean also gets "partial": the columns that cover
 * only some of its rows. */
void fl_row_json(cJSON *into, const fl_row_result *row);
/* Return true if that column of a mean leaves out rows that lack it. */
bool fl_row_partial(const fl_row_result *mean, const char *name);
bool fl_row_any_partial(const fl_row_result *mean);

/* The columns of rows in a table on a terminal, without the name of a row: five by default, and whether the bounds
 * hold; with `wide` every other that some row has a value for. Below the table stands a line for each. */
typedef struct fl_row_table {
    const fl_row_result *row; /* count: the rows that the table will have */
    size_t count;
    fl_objective objective;
    bool wide, bounded;       /* bounded: there are bounds */
    bool several;             /* the rows are means over several workloads or draws */
    bool one;                 /* each row is of one workload: its energy has an interval over the seeds */
    uint64_t shown;           /* set by fl_row_table_heads */
    bool partial, none, half; /* marks in the cells */
} fl_row_table;
void fl_row_table_heads(fl_row_table *t, fl_grid *g);
void fl_row_table_cells(fl_row_table *t, fl_grid *g, const fl_row_result *r);
/* Define the marks in the cells, behind the last row. */
void fl_row_table_marks(const fl_row_table *t, fl_grid *g);
/* Print, if `over` is not 0, that so many of all rows are overloaded. */
void fl_row_put_overload(size_t over, size_t all, FILE *out);

/* The row of the table of options. */
#define FL_WIDE_OPTION(into)                                                                                           \
    { "wide", NULL, FL_OPTION_FLAG, into, 0, 0, "shows every column of the table", FL_FOR_OUTPUT }

/* Set every number of *mean to the mean over the rows, without undefined cells; NAN of no rows. `violated` counts
 * instead; `workloads` is the number of rows with mean->seed. room: space for count doubles. */
void fl_row_mean(const fl_row_result *const *row, size_t count, double *room, fl_row_result *mean);

/* Promises: the bounds that a result has to hold, a largest slowdown and limits on any other column of a row.
 *
 * As a text: "5%" or "0.05", the share by which the makespan may grow over the driver's default; or a column and its
 * limit, COLUMN<X, COLUMN<=X, COLUMN>X, COLUMN>=X, such as "latency_p99_s<0.17". Values of watched runs count as
 * columns. "slowdown<=0.05" means "5%". Columns that depend on the bounds themselves (regrets, violated) cannot be
 * bounded.
 *
 * A row that lacks a column, such as a latency without requests, does not hold a promise about it. It counts as
 * violated, and its text says n/a. */

typedef struct fl_promise {
    char column[64];
    bool below, equal; /* COLUMN < or > limit; or equal to it */
    double limit;
    bool watched; /* only watched runs have the column */
} fl_promise;

enum { FL_PROMISES_MAX = 31 }; /* a bit each in fl_row_result; the slowdown has the first */

typedef struct fl_promises { /* zeroed: no promise */
    fl_promise item[FL_PROMISES_MAX];
    size_t count;
} fl_promises;

/* clang-format off */
#define FL_BOUND_OPTION(into)                                                                                          \
    {"bound", "X", FL_OPTION_LIST, into, 0, 0,                                                                         \
     "largest slowdown allowed, 0.10 or 10%; or a limit on any column of the result, 'latency_p99_s<0.17' "            \
     "(may be repeated; none)", FL_FOR_POLICIES | FL_MOST_USED}
/* clang-format on */

/* Parse one text: add it to *p, or set *slowdown if that is still INFINITY. FL_BAD_INPUT: no number, no such column
 * (the message offers the nearest), a column that cannot be bounded, a second bound on the slowdown, a share above 1
 * that is not written in percent, or more than FL_PROMISES_MAX. */
fl_status fl_promise_parse(const char *text, fl_promises *p, double *slowdown, fl_diag *d);
/* Parse the texts of --bound, in order. */
fl_status fl_promises_parse(const fl_texts *texts, fl_promises *p, double *slowdown, fl_diag *d);
/* Add to *p and *slowdown the promises of `own` and `share` on columns that are not bounded there yet. FL_BAD_INPUT:
 * more than FL_PROMISES_MAX. */
fl_status fl_promises_add(const fl_promises *own, double share, fl_promises *p, double *slowdown, fl_diag *d);

/* FL_BAD_INPUT: no scene can have a promised column, such as a latency without requests. */
fl_status fl_promises_check(const fl_promises *p, const fl_scenes *scenes, fl_diag *d);
bool fl_promises_watched(const fl_promises *p); /* some promise needs watched runs */

/* Write "latency_p99_s<0.17", in the shortest form that reads back the same, into buf. Return buf. */
enum { FL_PROMISE_TEXT = 128 };
char *fl_promise_text(const fl_promise *p, char buf[FL_PROMISE_TEXT]);
/* Write the bound of a bit: bit 0 is the slowdown, bit k + 1 is item[k]. Return buf. */
char *fl_promises_name(const fl_promises *p, double slowdown, size_t bit, char buf[FL_PROMISE_TEXT]);

typedef enum fl_promise_word { FL_PROMISE_HELD, FL_PROMISE_BROKEN, FL_PROMISE_UNKNOWN } fl_promise_word;
fl_promise_word fl_promise_test(const fl_promise *p, double value); /* NAN is unknown */

/* Judge a row: set broken, unknown, breaks and violated, and remove its regrets if it does not hold all bounds.
 * score.violated already states the bound on the slowdown. p may be NULL. */
void fl_promises_judge(const fl_promises *p, double slowdown, fl_row_result *row);

/* Print ", bound on the slowdown 5 %, latency_p99_s<0.17, objective energy" in a table's title. p may be NULL. */
void fl_promises_put(const fl_promises *p, double slowdown, fl_objective objective, FILE *out);
/* Return the promises as texts in a list, which may be empty. */
cJSON *fl_promises_json(const fl_promises *p);

/* Risk: what a fitted model states about a static clock that it chose. */

/* clang-format off */
#define FL_RISK_OPTION(into)                                                                                           \
    {"risk", "P", FL_OPTION_SHARE, into, 1e-9, 1,                                                                      \
     "of a fitted model: highest chance that a static clock breaks --bound on the real GPU (the prediction "           \
     "decides)", FL_FOR_POLICIES}
/* clang-format on */

/* Check --risk; 0: it was not given. FL_BAD_INPUT: a risk without a bound, or with a model that states no deviations.
 */
fl_status fl_risk_check(const fl_scenes *scenes, double bound, double risk, fl_diag *d);

/* Move the points that may be chosen under the risk to the front, and return their number; all without a risk. */
size_t fl_risk_keep(const fl_scene *s, double bound, double risk, fl_static_point *point, size_t count);

typedef struct fl_risk {
    double chance, regret; /* shares; NAN where the model states nothing */
} fl_risk;

/* Return the chance that the real bound breaks at a choice, and the regret to expect. */
fl_risk fl_risk_at(const fl_scene *s, const fl_choice *at, double bound, fl_objective objective);

typedef struct fl_comparison_options {
    fl_scenes *scenes;
    const fl_spec *spec;
    size_t spec_count;
    double bound;                /* on the slowdown; INFINITY = none */
    const fl_promises *promises; /* bounds on other columns; NULL = none */
    double risk;                 /* of a static choice (fl_risk_check); 0 = none */
    fl_objective objective;
    size_t positions; /* of the clairvoyant schedule; FL_POSITIONS_ALL */
    uint64_t seed;
    uint32_t seeds; /* runs of each policy, with seeds seed, seed + 1, ... */
    int64_t draws;  /* number of draws of each scene, see fl_scene_options */
    unsigned threads;
    bool oracles;     /* solve the oracles; without them all regrets are n/a */
    bool only_static; /* solve only the best static clock, without a table of all */
    int64_t watch_ns; /* window of the power statistics of watched runs; 0 = runs are not watched */
} fl_comparison_options;

/* Return true if the workload of a row or scene, without its variant, matches a shell pattern. */
bool fl_workload_matches(const char *workload, const char *variant, const char *pattern);
/* Return true if the spec is for the scene's workload. */
bool fl_spec_is_for(const fl_spec *spec, const fl_scene *s);

typedef struct fl_trials fl_trials;

/* Run the defaults and solve the oracles of every scene, on o->threads threads. *o is borrowed. */
fl_status fl_trials_open(fl_trials **out, const fl_comparison_options *o, fl_diag *d);

typedef struct fl_solved { /* what all policies of a scene share */
    fl_scene *s;
    fl_run_result standard;
    fl_choice *choice;            /* choice_count */
    size_t choice_count, choices; /* choices: points that may be chosen */
    fl_static_point *point;
    fl_row_result *promised; /* by choice: what a run there says of the promises; NULL where there are none */
    fl_oracle_table table;
    bool has_table;
    const char *inexact; /* why the table is not exact; NULL: it is */
    fl_reference ref;
    double served_least_j;  /* where requests are served: no clocks cost less; else NAN */
    fl_kernel_total kernel; /* best clock per kind of kernel; NANs where it was not asked for */
    fl_kept *kept;          /* of the default's run, where runs are watched: its watch alone */
    bool kept_word;         /* the clairvoyant schedule, bounded in time alone, holds the promises too */
} fl_solved;
/* Return what was solved of a scene. It is valid until fl_trials_close. */
const fl_solved *fl_trials_solved(const fl_trials *t, size_t scene);
void fl_trials_close(fl_trials *t);

/* Or go scene by scene, so that few are built at once: call fl_trials_new, then for each scene the stages below in this
 * order, then its runs, then fl_trials_forget. The jobs of one stage may run at once. */
typedef enum fl_trials_stage {
    FL_TRIALS_BUILD,
    FL_TRIALS_STANDARD,
    FL_TRIALS_STATIC,
    FL_TRIALS_SOLVE,
    FL_TRIALS_READY /* the scene's runs may begin */
} fl_trials_stage;
/* Make the trials; the caller closes them. Borrows *o. */
fl_trials *fl_trials_new(const fl_comparison_options *o);
size_t fl_trials_jobs(const fl_trials *t, size_t scene, fl_trials_stage stage);
fl_status fl_trials_prepare(fl_trials *t, size_t scene, fl_trials_stage stage, size_t job, fl_diag *d);
/* Free what the runs of a scene shared, and give the scene back. Rows that were taken from it stay. */
void fl_trials_forget(fl_trials *t, size_t scene);

/* Return the number of runs: scenes x specs x seeds, indexed in this order, so the seed changes fastest. */
size_t fl_trials_count(const fl_comparison_options *o);
/* Make one run and its row; any number of threads may call it at once. row->policy stays NULL if the spec is not for
 * the scene. After a failure the row holds nothing to free. */
fl_status fl_trials_run(fl_trials *t, size_t index, fl_row_result *row, fl_diag *d);

enum { FL_BASELINES = 4 };
/* Make the rows of the baselines that exist: the driver's default, the best static clock, the best clock per kernel,
 * the clairvoyant schedule. Call it once per scene; if runs are watched, after the scene's runs. */
fl_status fl_trials_baselines(fl_trials *t, size_t scene, fl_row_result row[FL_BASELINES], size_t *count, fl_diag *d);

/* Static clocks under promises that need a whole run through the engine, such as a latency or a highest power. */

typedef struct fl_promised_under { /* borrowed */
    const fl_promises *promises;
    double bound; /* on the slowdown */
    int64_t watch_ns;
    fl_objective objective;
} fl_promised_under;

/* Run the scene at one choice. *row is the judged row of that run, with regrets NAN; the caller frees it with
 * fl_row_free, also after a failure. Other choices may run at the same time. */
fl_status fl_static_promised(fl_scene *s, const fl_run_result *standard, const fl_promised_under *under,
                             const fl_choice *at, fl_static_point *point, fl_row_result *row, fl_diag *d);

/* Move the points whose rows hold all promises to the front, in their order, and return their number. Row k belongs to
 * point k before the move; rows stay. The function ignores the slowdown, which fl_static_best checks. */
size_t fl_static_keep(const fl_row_result *row, fl_static_point *point, size_t count);

/* Regret is against the best schedule known. A policy may beat the clairvoyant schedule and the baselines: at clocks to
 * which its workload is only extrapolated, or because --positions made the schedule coarse. It then is the reference.
 */

/* Check all rows of one workload, policies and baselines. If a row is better than the reference of the regrets, it
 * becomes the reference of all, so that no regret is below 0, and its note says so. */
void fl_best_known(fl_row_result *row, size_t count, fl_objective objective);
/* Check a single row, as in a grid, whose other rows may be in another shard. If it is better than the reference, it
 * gets no regret, and its note says why. */
void fl_best_known_alone(fl_row_result *row, fl_objective objective);

/* Print in one line how far above the least possible the clairvoyant schedules are at most, over all rows; nothing if
 * no row has a bound. */
void fl_best_known_print(const fl_row_result *row, size_t count, FILE *out);

/* A ranking against the model's error: every draw moves the model within its error (fl_rates_err of sim/gpu/gpu.h),
 * runs all policies on it, and ranks them. */

typedef struct fl_ranking { /* one policy */
    size_t first;           /* draws in which it came first */
    size_t held;            /* draws in which it held the bound on every workload */
    double mean_rank;
    double saving_pct, saving_sd_pct; /* mean over workloads, against the default in the same draw; over the draws */
    size_t workloads; /* workloads that it is ranked on; 0: it is for none and not ranked, means are NAN */
} fl_ranking;

typedef struct fl_model_error_options {
    size_t draws;
    double time_pct, power_pct; /* mean absolute errors; NAN: as each workload's own model states */
    uint64_t seed;
} fl_model_error_options;

/* Rank the policies. ranking: o->spec_count entries, in the order of the policies. They are ranked by the objective
 * relative to the default's, over the workloads that all of them are for. A policy that breaks the bound in a draw
 * comes after all that hold it; of equals the earlier comes first. FL_BAD_INPUT: a workload's error is neither known
 * nor given, or no workload is left. */
fl_status fl_model_error_run(const fl_comparison_options *o, const fl_model_error_options *e, fl_ranking *ranking,
                             fl_diag *d);
void fl_model_error_print(const fl_comparison_options *o, const fl_model_error_options *e, const fl_ranking *ranking,
                          FILE *out);

/* Make bounds of a server's latency targets. A policy that misses a target then violates a bound, and the best static
 * clock is the best of those that meet the targets. Adds "ttft_missed_pct<=X" and "tbt_missed_pct<=X" for the given
 * targets, X the share of tokens that may miss them, unless that column has a bound already. */
fl_status fl_promises_targets(const fl_serving_choice *c, fl_promises *p, fl_diag *d);

/* The setup of compare, grid, search and regress: options, an experiment, its policies and scenes. */

typedef struct fl_setup_options { /* NULL, 0, INFINITY: not on the command line; fl_setup_open then asks the experiment
                                     and fills in the defaults */
    fl_scene_options scene;
    fl_texts rest; /* traces, and at most one experiment (*.json) */
    fl_texts policies;
    const char *objective;
    fl_texts bounds; /* texts of --bound */
    double bound;    /* bound on the slowdown, for a caller without texts */
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
    size_t own_specs; /* the first specs; the rest are pairs of them with free activity records, which share all but the
                         label */
    size_t variants;
    fl_promises promises;
    int64_t *draw; /* draw_count seeds of the experiment's applications, of which draws_open are open */
    size_t draw_count, draws_open;
    bool own;                /* the command line gave policies, or workloads in place of the experiment's */
    fl_comparison_options o; /* points into this struct */
} fl_setup;

/* Open all. Texts are borrowed from *o, which then has the values that were used and must stay. *u must stay at its
 * address once it is open. */
fl_status fl_setup_open(fl_setup *u, fl_setup_options *o, fl_diag *d);
/* Open the scenes of the next draw of the applications, behind the others. */
fl_status fl_setup_next(fl_setup *u, fl_setup_options *o, fl_diag *d);
void fl_setup_free(fl_setup *u);
/* Return the number of seeds of each policy and workload: runs of one scene, or draws of it. */
size_t fl_setup_seeds(const fl_setup *u);

/* clang-format off */
#define FL_SETUP_OPTIONS(s)                                                                                            \
    FL_SCENE_OPTIONS((s).scene),                                                                                       \
    FL_SERVING_OPTIONS((s).scene.serving),                                                                             \
    FL_TARGET_OPTION(&(s).scene.target),                                                                               \
    {"policy", "SPEC", FL_OPTION_LIST, &(s).policies, 0, 0,                                                            \
     "policy with parameters, P=A/B for two values; NAME=SPEC names its rows (may be repeated)", FL_FOR_POLICIES | FL_MOST_USED},     \
    FL_STEP_LIMIT_OPTION,                                                                                              \
    FL_BOUND_OPTION(&(s).bounds),                                                                                      \
    FL_STREAMS_OPTION((s).scene.stated),                                                                               \
    FL_RISK_OPTION(&(s).risk),                                                                                         \
    FL_OBJECTIVE_OPTION(&(s).objective),                                                                               \
    {"seeds", "N", FL_OPTION_INT, &(s).seeds, 1, 100000,                                                               \
     "runs of each policy, with seeds from --seed on "                                                                 \
     "(" FL_AS_TEXT(FL_SEEDS_STANDARD) ")", FL_FOR_POLICIES | FL_MOST_USED},                                           \
    {"windows", "N", FL_OPTION_INT, &(s).scene.windows, 1, 1e6,                                                        \
     "windows of equal work; a result has the slowdown of the slowest (" FL_AS_TEXT(FL_WINDOWS_STANDARD) ")"},                           \
    FL_THREADS_OPTION(&(s).threads)
/* Options about the best schedules, where a command computes them. */
#define FL_ORACLE_OPTIONS(s)                                                                                           \
    FL_POSITIONS_OPTION(&(s).positions),                                                                               \
    {"no-oracle", NULL, FL_OPTION_FLAG, &(s).no_oracle, 0, 0, "leaves out oracles and regrets (faster)"}
/* clang-format on */
