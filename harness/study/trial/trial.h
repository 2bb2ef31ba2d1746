/* Runs of policies over scenes, each scored against what all policies of its scene share: the driver's default and the
 * oracles. Comparisons, grids and gates are made of them. */
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

/* What is minimised, by its name on the command line and in experiments. */

#define FL_OBJECTIVE_STANDARD "energy"

/* Rows for tables of options: what is minimised, and how finely the clairvoyant schedule is cut. */
/* clang-format off */
#define FL_OBJECTIVE_OPTION(into)                                                                                      \
    {"objective", "NAME", FL_OPTION_TEXT, into, 0, 0, "energy, edp or ed2p (" FL_OBJECTIVE_STANDARD ")"}
#define FL_POSITIONS_OPTION(into)                                                                                      \
    {"positions", "N", FL_OPTION_INT, into, 1, 1e6,                                                                    \
     "stretches of work to which the clairvoyant schedule gives one clock each (every kernel, host time apart)"}

/* As tables name it, and its unit: "energy" in "J", "EDP" in "J s", "ED2P" in "J s^2". By fl_objective. */
extern const char *const fl_objective_title[], *const fl_objective_unit[];

/* "energy", "edp" or "ed2p"; the nearest offered. */
fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d);

/* What a run shows beyond its scores, by name: clocks, shares of time, power above a limit, the policy's own probes.
 *
 * Names: energy_j ... every column of a result's CSV; and of a run that was watched
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

typedef struct fl_bin { /* of a histogram: how often it was met */
    uint32_t at;
    uint64_t count;
} fl_bin;

typedef struct fl_bins { /* those bins that were met, ascending */
    fl_bin *bin;
    size_t count;
} fl_bins;

/* Filled while a run goes on; plain zero before. Tables of all bins count during the run, and are given back at its end
 * for lists of those that were met: a comparison keeps a watch for each of thousands of rows. */
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
    fl_bins probe_met, node_met, gpu_met; /* of the tables above, once the run has ended */
    double *regret_mark;                  /* regret_count: of a distribution replay, each FL_DRAWS_MARK steps */
    size_t regret_count;
} fl_watch;

void fl_watch_open(fl_watch *w, const fl_policy *policy, uint32_t gpu_count);
/* The run is over: makes the lists that fl_measure reads. */
void fl_watch_end(fl_watch *w);

/* For fl_run_options: user is the fl_watch. */
fl_status fl_watch_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);

/* One line of a result: what a run was worth, whose it was, and which bounds it broke. */

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
    double oracle_j, oracle_bound_j, oracle_gap_pct; /* of the workload, under the bound; the gap is the objective's */
    const char *objective_unit;                      /* of the two below and of regrets: "J", "J s" or "J s^2" */
    double oracle_objective, oracle_objective_bound; /* the clairvoyant schedule's, and its certified bound */
    double objective_saving_pct;                     /* of what is minimised, against the driver's default */
    double reward_regret;                            /* of a distribution replay: EnergyUCB Eq. 3; else NAN */
    fl_times latency;                                /* of requests; NAN where none arrive */
    double energy_per_request_j, offered_load; /* load: time of service x rate of arrival; at 1 it is overloaded */
    bool overloaded;
    /* Of a server of a language model, NAN elsewhere. Of its requests `latency` tells the whole time. */
    fl_times ttft, tbt, tpot;               /* to first token; between tokens; mean of the latter, by request */
    double ttft_missed_pct, tbt_missed_pct; /* tokens over the targets, of all first and of all later ones */
    double offered_rps;                     /* requests per second that arrive */
    double served_rps, goodput_rps;         /* requests per second that are done; those that met both */
    double energy_per_token_j;              /* per token put out */
    double preemptions;
    double worst_minute_missed_pct, worst_minute_ttft_s, worst_minute_at_s; /* requests that arrived within a minute */
    double saving_static_pct; /* energy against the best static clock that holds all bounds, whatever the row holds */
    double saving_most_pct;   /* no clocks save more against the default: by oracle_bound_j (sim/serving/serving.h) */
    double sets;              /* of controls, by the policy */
    /* Of a static clock that a fitted model chose, shares: that the real bound breaks there, and the regret to expect.
     * NAN elsewhere. */
    double bound_break_chance, expected_regret;
    double violated;          /* 0 or 1; in a mean: how many */
    uint32_t broken, unknown; /* which bounds, as bits of fl_promises_name: beyond its limit; not known of this row */
    char breaks[128];         /* the same as a text */
    uint64_t ignored_sets, faults;
    bool unstepped;   /* see fl_spec_unstepped */
    size_t workloads; /* in a mean: of how many */
    /* In a mean: of how many rows, and of these how many have a regret; 1, and 0 or 1, elsewhere. */
    uint64_t rows, regret_static_rows, regret_clairvoyant_rows;
    uint64_t partial[2]; /* in a mean: columns that some of its rows do not have, as bits (fl_row_partial) */
    double clock_sm_mhz, clock_mem_mhz; /* of a static choice; 0: none, or the device has one memory clock */
    char clock[64];                     /* the same as the policy fixed takes it, in a mean as a range; empty: none */
    fl_kept *kept;                      /* NULL: not watched; owned by whoever holds the row */
    char note[160];
} fl_row_result;

/* What every maker of rows ends with, once the score is there: counts, and what the objective was against the default's
 * `standard`. */
void fl_row_finish(fl_row_result *row, fl_objective objective, double standard);

/* What a server did, NAN where there is none. energy_j is set before. */
void fl_row_fill_served(fl_row_result *row, const fl_run_result *run);

/* Names the clocks of a static choice; mem_mhz 0 where the device has a single memory clock. */
void fl_row_clock(fl_row_result *row, double sm_mhz, double mem_mhz);

void fl_row_free(fl_row_result *row); /* what was kept */

/* The columns of a result: what a row's numbers are called, in CSV and JSON, in gates and selections. To add one, give
 * fl_row_result a member that every maker of rows sets, and the table in rows.c a row at its end. */

/* The cell of a row by the name of a column of the CSV, slowdown_pct, energy_kj, or one of harness/study/trial/trial.h; NAN
 * where the row does not have it. FL_BAD_INPUT where there is no such column. */
fl_status fl_row_value(const fl_row_result *row, const char *name, double *value, fl_diag *d);

/* One row as a line of CSV, and the line above the first. */
void fl_row_head(FILE *f);
void fl_row_put(FILE *f, const fl_row_result *row);
/* The same columns as keys; null where not finite. In a mean also "partial": the columns that are means of some rows.
 */
void fl_row_json(cJSON *into, const fl_row_result *row);
/* Whether that column of a mean leaves out rows that do not have it. */
bool fl_row_partial(const fl_row_result *mean, const char *name);
bool fl_row_any_partial(const fl_row_result *mean);

/* Sets every number of *mean to the mean of those of count > 0 rows, cells that are not defined left out; `violated`
 * counts, and `workloads` are the rows under mean->seed. room: count doubles. */
void fl_row_mean(const fl_row_result *const *row, size_t count, double *room, fl_row_result *mean);

/* What a result has to hold: a largest slowdown, and limits on any other column of a row.
 *
 * As a text: "5%" or "0.05", the share by which the makespan may grow over the driver's default; or a column and its
 * limit, COLUMN<X, COLUMN<=X, COLUMN>X, COLUMN>=X, such as "latency_p99_s<0.17". Columns are those of
 * harness/study/trial/trial.h, and what harness/study/trial/trial.h tells of a run that was watched. "slowdown<=0.05" is
 * "5%". Columns that are themselves told under the bounds (regrets, violated) have none.
 *
 * A row that does not have a column, such as a latency where nothing arrives, does not hold a promise about it. It
 * counts as violated, and its text says n/a. */

typedef struct fl_promise {
    char column[64];
    bool below, equal; /* COLUMN < or > limit; or equal to it */
    double limit;
    bool watched; /* told only of a run that is watched */
} fl_promise;

enum { FL_PROMISES_MAX = 31 }; /* a bit each in fl_row_result, the slowdown has the first */

typedef struct fl_promises { /* plain zero holds none */
    fl_promise item[FL_PROMISES_MAX];
    size_t count;
} fl_promises;

/* clang-format off */
#define FL_BOUND_OPTION(into)                                                                                          \
    {"bound", "X", FL_OPTION_LIST, into, 0, 0,                                                                         \
     "largest slowdown allowed, 0.10 or 10%; or a limit on any column of the result, 'latency_p99_s<0.17' "            \
     "(may be repeated; none)"}

/* Adds one text to *p, or sets *slowdown where it is INFINITY. FL_BAD_INPUT with what is wrong: no number, no such
 * column (the nearest is offered), a column that has no promise, a second bound on the slowdown, a share above 1 that
 * is not said in percent, more than FL_PROMISES_MAX. */
fl_status fl_promise_parse(const char *text, fl_promises *p, double *slowdown, fl_diag *d);
/* The same of the texts of --bound, in order. */
fl_status fl_promises_parse(const fl_texts *texts, fl_promises *p, double *slowdown, fl_diag *d);
/* Adds to *p and *slowdown those of `own` and `share` about whose column nothing is said there. FL_BAD_INPUT beyond
 * FL_PROMISES_MAX. */
fl_status fl_promises_add(const fl_promises *own, double share, fl_promises *p, double *slowdown, fl_diag *d);

/* FL_BAD_INPUT where no scene can have a column that is promised: latencies where nothing arrives. */
fl_status fl_promises_check(const fl_promises *p, const fl_scenes *scenes, fl_diag *d);
bool fl_promises_watched(const fl_promises *p); /* some are told only of runs that are watched */

/* "latency_p99_s<0.17", in the shortest form that reads back the same; into buf. Returns buf. */
enum { FL_PROMISE_TEXT = 128 };
char *fl_promise_text(const fl_promise *p, char buf[FL_PROMISE_TEXT]);
/* The bound of a bit: 0 is the slowdown's, k + 1 that of item[k]. */
char *fl_promises_name(const fl_promises *p, double slowdown, size_t bit, char buf[FL_PROMISE_TEXT]);

typedef enum fl_promise_word { FL_PROMISE_HELD, FL_PROMISE_BROKEN, FL_PROMISE_UNKNOWN } fl_promise_word;
fl_promise_word fl_promise_test(const fl_promise *p, double value); /* NAN is unknown */

/* Sets broken, unknown, breaks and violated of a row, and takes back its regrets where it does not hold all. Of the
 * slowdown score.violated tells. p may be NULL. */
void fl_promises_judge(const fl_promises *p, double slowdown, fl_row_result *row);

/* ", latency_p99_s<0.17, ..." behind what a table says of its bound; nothing where there are none. p may be NULL. */
void fl_promises_put(const fl_promises *p, FILE *out);
/* As texts in a list; empty where there are none. */
cJSON *fl_promises_json(const fl_promises *p);

/* What a fitted model makes of a chosen static clock: the chance that the real bound breaks at it, the regret to
 * expect, and which clocks may be chosen under a risk. */

/* clang-format off */
#define FL_RISK_OPTION(into)                                                                                           \
    {"risk", "P", FL_OPTION_SHARE, into, 1e-9, 1,                                                                       \
     "of a fitted model: highest chance that a static clock breaks --bound on the real GPU (the prediction decides)"}

/* A risk of 0: nobody asked. FL_BAD_INPUT where one is asked for without a bound, or beside a model that does not state
 * how sure it is. */
fl_status fl_risk_check(const fl_scenes *scenes, double bound, double risk, fl_diag *d);

/* Moves the points that may be chosen to the front; how many. All where no risk is asked for. */
size_t fl_risk_keep(const fl_scene *s, double bound, double risk, fl_static_point *point, size_t count);

typedef struct fl_risk {
    double chance, regret; /* shares; NAN where the model states nothing */
} fl_risk;

fl_risk fl_risk_at(const fl_scene *s, const fl_choice *at, double bound, fl_objective objective);

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
/* To be closed. *o is borrowed. */
fl_trials *fl_trials_new(const fl_comparison_options *o);
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

/* Static clocks under promises that time and energy do not tell, such as a latency or a highest power: each is a whole
 * run through the engine. */

typedef struct fl_promised_under { /* borrowed */
    const fl_promises *promises;
    double bound; /* on the slowdown */
    int64_t watch_ns;
    fl_objective objective;
} fl_promised_under;

/* Runs the scene at one choice. *row is all that such a run tells, judged, its regrets NAN; the caller frees what it
 * kept, also after a failure. Runs of other choices may go on beside it. */
fl_status fl_static_promised(fl_scene *s, const fl_run_result *standard, const fl_promised_under *under,
                             const fl_choice *at, fl_static_point *point, fl_row_result *row, fl_diag *d);

/* Moves the points to the front whose rows hold all promises, in their order; how many. Rows stay where they are: that
 * of point k is row k. The slowdown is not looked at, for fl_static_best does that. */
size_t fl_static_keep(const fl_row_result *row, fl_static_point *point, size_t count);

/* Regret is against the best schedule known. Where a policy of a run is better than the clairvoyant schedule and the
 * baselines (it went to clocks at which its workload is only extrapolated, or --positions made the schedule coarse), it
 * is the reference itself. */

/* The rows of one workload, policies and baselines: where one of them is better than what the regrets are against, it
 * becomes the reference of all of them, so that none is below 0, and its note says so. */
void fl_best_known(fl_row_result *row, size_t count, fl_objective objective);
/* A policy's row that stands alone, as those of a sweep do, whose other rows may be another shard's: where it is better
 * than the reference it cannot become theirs. It has no regret then, and its note says why. */
void fl_best_known_alone(fl_row_result *row, fl_objective objective);

/* How far above the least possible the clairvoyant schedules are at most, over all rows: one line; nothing where no row
 * has a bound. */
void fl_best_known_print(const fl_row_result *row, size_t count, FILE *out);

/* Does the ranking of the policies survive what is not known of the model? Every draw moves the model within its error
 * (sim/gpu/gpu.h, fl_rates_err), runs all policies on it, and ranks them. */

typedef struct fl_ranking { /* of one policy */
    size_t first;           /* draws in which it came first */
    size_t held;            /* draws in which it held the bound on every workload */
    double mean_rank;
    double saving_pct, saving_sd_pct; /* mean over workloads, against the default in the same draw; over the draws */
    size_t workloads; /* it is ranked on; 0: it is for none, and not ranked: no first, mean_rank and savings NAN */
} fl_ranking;

typedef struct fl_model_error_options {
    size_t draws;
    double time_pct, power_pct; /* mean absolute errors; NAN: what each workload's own model says */
    uint64_t seed;
} fl_model_error_options;

/* ranking: o->spec_count, in the order of the policies. A policy that breaks the bound in a draw is ranked behind all
 * that hold it; of equals the earlier is first. The objective asked for counts, relative to the default's. What is
 * ranked are the workloads that all policies are for, policies for none of them all left aside. FL_BAD_INPUT where a
 * workload's error is not known and none is given, or no workload is left. */
fl_status fl_model_error_run(const fl_comparison_options *o, const fl_model_error_options *e, fl_ranking *ranking,
                             fl_diag *d);
void fl_model_error_print(const fl_comparison_options *o, const fl_model_error_options *e, const fl_ranking *ranking,
                          FILE *out);

/* The latency targets of a server as bounds of a comparison, so that whoever misses them violates, and the best static
 * clock is the best of those that meet them. */

/* Adds "ttft_missed_pct<=X" and "tbt_missed_pct<=X" for the targets that there are, X the share of tokens that may miss
 * them; none where there is a bound on that column already. After fl_serving_choice_check. */
fl_status fl_promises_targets(const fl_serving_choice *c, fl_promises *p, fl_diag *d);

/* What compare, sweep and regress have in common: options, an experiment, its policies and scenes. */

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
