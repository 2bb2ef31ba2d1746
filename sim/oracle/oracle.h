/* What could have been achieved: the best static clock, the best clock per kind of kernel, and the clairvoyant
 * schedule; and what a run is worth against them (fl_score_run).
 *
 * Call fl_oracle_choices for the clocks, fl_static_search for the best static clock, fl_oracle_table_make and then
 * fl_oracle_clairvoyant for the schedule and its bound. For scores, fill an fl_reference, call fl_reference_solve once
 * and fl_score_run for each run. Tables borrow workload and rates; the caller frees tables with fl_oracle_table_free
 * and schedules with free(). Errors: FL_BAD_INPUT where no choice is known, FL_NO_MEMORY.
 *
 * The clairvoyant schedule may change clocks at any instant: a position is a kernel, or the host time before one, and a
 * kernel may be divided between choices. Switches are free, since a clairvoyant sets clocks ahead of time and no device
 * stalls. The schedule therefore does not depend on the order of the work, and the search runs over kinds of kernel x
 * clocks (inside.h), however many kernels there are. For one stream on one GPU its bound is certified: no schedule that
 * holds the limit uses less energy.
 *
 * A table may also be cut into a number of positions of work that each take one clock. (A grid over time would be
 * ill-posed: progress depends on earlier clocks.) For a price lambda on time, dynamic programming over the positions
 * then minimises E + lambda T, switches included; bisection on lambda meets the limit on T. Every lambda gives a
 * certified lower bound (weak duality): E* >= min(E + lambda T) - lambda T_limit. Labels (Pareto sets of time and
 * energy), pruned with that bound, solve small tables exactly.
 *
 * The result is exact for one stream on one GPU. Where streams share a GPU, wait for each other or are launched by host
 * threads, the time of the whole is not a sum over positions. The reference there is the best static clock: one
 * position, the whole run, whose cost at each choice is a run at that clock. It is never called a bound. */
#pragma once

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_objective { FL_MIN_ENERGY, FL_MIN_EDP, FL_MIN_ED2P } fl_objective;
extern const char *const fl_objective_names[]; /* "energy", "edp", "ed2p", NULL */
double fl_objective_value(fl_objective objective, double energy_j, double time_s);

/* The longest makespan under a bound on the slowdown: floor(default_ps (1 + bound)). The bound counts as the decimal
 * number that was written (1e-12 steps), so that 0.1 of 10 ps is 1 ps. INT64_MAX for INFINITY. */
int64_t fl_limit_ps(int64_t default_ps, double bound);

typedef struct fl_choice { /* a pair of clocks at which every row of the workload is known */
    uint32_t sm, mem;      /* ladder indices */
    double sm_mhz, mem_mhz;
    double decode_mhz; /* SM clock of decode servers; 0: there are no pools */
} fl_choice;

enum { FL_POOL_CLOCKS = 16 }; /* of a ladder, evenly and the top one, that pairs of clocks for pools are made of */

/* ---- static clocks: one whole run each ---- */
typedef struct fl_static_point {
    fl_choice at;
    int64_t makespan_ps;
    fl_wide energy_fj; /* GPUs */
    fl_times latency;  /* of requests, where they arrive */
    double load;
} fl_static_point;

/* The choices of GPU 0's device at which the workload is known. All GPUs of the node take the same clocks, so a choice
 * must exist on every kind of device. Choices ascend by SM clock, then memory clock; where the device has several
 * memory clocks, they are all pairs at which every kernel is known. Of pools: pairs of a prefill and a decode clock,
 * out of FL_POOL_CLOCKS, at the default memory clock. The caller frees *choice. FL_BAD_INPUT where there is none. */
fl_status fl_oracle_choices(const fl_workload *w, const fl_node_spec *spec, fl_choice **choice, size_t *count,
                            fl_diag *d);

/* A run at the clocks of one choice from beginning to end. *run names workload, rates, node, facts and observers, and
 * has no policy. *r as after fl_run. */
fl_status fl_static_result(const fl_run_options *run, const fl_choice *at, fl_run_result *r, fl_diag *d);
fl_static_point fl_static_point_of(const fl_run_result *r, const fl_choice *at);

/* Runs the workload at one choice from beginning to end, without a policy. Independent of the others: run them in any
 * order on any thread. */
fl_status fl_static_run(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const fl_facts *facts,
                        const fl_choice *at, fl_static_point *out, fl_diag *d);

/* The best static clock under limit_ps: the result of fl_static_best among runs at all choices, but with few runs,
 * since sums over the ops bound the others. *found: false where no choice holds the limit. */
fl_status fl_static_search(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const fl_facts *facts,
                           fl_objective objective, int64_t limit_ps, fl_static_point *best, bool *found, fl_diag *d);

/* ---- tables ---- */
typedef struct fl_oracle_work fl_oracle_work; /* sim/oracle/inside.h */

typedef struct fl_oracle_table { /* cost of every position at every choice */
    size_t positions, choices;
    fl_choice *choice;
    int64_t *time_ps;   /* positions x choices */
    fl_wide *energy_fj; /* positions x choices; of all GPUs of the node, including those without work */
    uint64_t
        *op; /* positions + 1: index of the first op of each in the one stream; NULL where the table is not exact */
    int64_t switch_ps, switch_fj; /* cost of a change of clock; a clairvoyant sets ahead of time, so it is 0 unless the
                                     device stalls */
    bool exact; /* one stream on one GPU: the bound is certified. Otherwise there is a single position, the whole run at
                   each choice, and the result is only a reference */
    bool per_op;        /* a position is a single op */
    uint32_t *frontier; /* optional (NULL: all choices): where a switch is free, the choices that some price on time
                           selects */
    size_t
        *frontier_first;  /* positions + 1: those of position i are frontier[first[i]] .. frontier[first[i + 1] - 1] */
    fl_oracle_work *work; /* for an exact table made from a workload: all its work, kind by kind. The bound comes from
                             it, for switches at any instant; without positions the schedule does too */
} fl_oracle_table;

#define FL_POSITIONS_ALL 0
/* positions: the number of stretches of work, of about equal reference time, that may have clocks of their own.
 * FL_POSITIONS_ALL: each kernel and each host time before one, and parts of them. The cost of a position is exactly
 * what the engine charges from the start of its first op's gap to the end of its last op, so sums of columns are static
 * runs. Building takes one pass over the ops per choice, 24 bytes per kind and choice and the same per position and
 * choice; where the table cannot be exact, one run per choice. Zeroes *t first. *w and *rates must outlive *t. */
fl_status fl_oracle_table_make(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, size_t positions,
                               fl_oracle_table *t, fl_diag *d);
/* Makes a table of one position from existing static runs: a reference, not exact. */
fl_status fl_oracle_table_static(const fl_static_point *point, size_t count, fl_oracle_table *t, fl_diag *d);
/* The static runs of an exact table that was made from a workload: point[choices], without latencies. */
void fl_oracle_table_points(const fl_oracle_table *t, fl_static_point *point);
/* NULL where the total time and energy are sums over the ops of one stream, so that the table will be exact. Otherwise
 * a few words that name what else they depend on. Faults of the rates appear only later. */
const char *fl_oracle_inexact(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec);
void fl_oracle_table_free(fl_oracle_table *t); /* accepts a zeroed struct; leaves the struct zeroed */

typedef struct fl_oracle_change { /* both clocks are set at this instant of the run */
    int64_t at_ps;
    uint32_t choice;
} fl_oracle_change;

typedef struct fl_oracle_result {
    bool feasible;           /* some schedule holds the limit; where none does, the numbers below are NAN and 0 */
    bool bounded;            /* bounds are certified: the table is exact */
    bool solved;             /* the schedule is the optimum: labels found it, or it meets the bound */
    double energy_j, time_s; /* of the feasible schedule */
    double bound_j; /* no schedule that holds the limit uses less energy, whatever its objective; NAN where not bounded.
                       For a table without `work` that means schedules that switch at its positions. A schedule that
                       changes clocks within kernels may lie half a picosecond below it for each such change */
    double gap_pct; /* (objective - bound) / bound of the requested objective; for energy (energy - bound) / bound */
    double objective, objective_bound; /* of the requested objective: J, J s, J s^2 */
    fl_wide energy_fj, bound_fj;
    int64_t time_ps;
    uint64_t switches;  /* number of clock changes; without positions counted only where the schedule is requested */
    uint32_t *schedule; /* positions entries: index of the choice; NULL unless requested; free() */
    fl_oracle_change *change; /* switches + 1: the same of a table without positions; free() */
} fl_oracle_result;

/* limit_ps: bound on the time of the schedule; INT64_MAX = none. For EDP and ED2P the schedule minimises E T or E T^2
 * among those that hold the limit. A switch is counted and charged between consecutive positions at different choices;
 * the first position has none. Without positions the search takes a pass over the vertices of the hull (kinds x clocks)
 * and at most one over the ops. It only reads *t, so any number of threads may call it at once. */
fl_status fl_oracle_clairvoyant(const fl_oracle_table *t, fl_objective objective, int64_t limit_ps, bool want_schedule,
                                fl_oracle_result *out, fl_diag *d);

/* ---- best clock per kind of kernel (ideal static, as DynaCo calls it) ---- */
typedef struct fl_kernel_choice {
    uint32_t class_id;
    fl_choice at;
    double energy_j, time_s;                   /* of all its kernels, at that choice */
    double standard_energy_j, standard_time_s; /* the same at `standard`, the default clocks */
} fl_kernel_choice;

typedef struct fl_kernel_total { /* of the whole */
    double energy_j, time_s;
    fl_wide energy_fj;
    int64_t time_ps;
    bool held;                       /* the limit is held; if not, every kind is as fast as possible */
    double gap_energy_j, gap_time_s; /* of it, host time; and at the default clocks */
    double standard_gap_energy_j;
} fl_kernel_total;

/* Finds one choice for each class, for its kernels and the host time before them. The objective of the whole is
 * minimal, and its time is within (1 + bound) of the time at the default clocks. All classes may choose the same clock,
 * so the result is never worse than the best static clock; with one class it is that clock. choice[class_count] belongs
 * to the caller. Switches are free. For several streams it uses sums over them, as if kernels ran one after the other;
 * these are neither a makespan nor a node's energy. table: made for this workload and node by fl_oracle_table_make,
 * which saves a pass over the ops; NULL = none exists. */
fl_status fl_oracle_per_kernel(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, fl_objective objective,
                               double bound, const fl_oracle_table *table, fl_kernel_choice *choice,
                               fl_kernel_total *total, fl_diag *d);

/* ---- scores: a run against the driver's default and the oracles, under one bound on the slowdown ---- */

typedef struct fl_reference {      /* of one workload, shared by all policies */
    const fl_workload *w;          /* for the windows of each stream; NULL: no worst 5 % of the run */
    const fl_run_result *standard; /* the driver's default, nothing set */
    const fl_static_point *point;
    size_t point_count;
    const fl_oracle_table *table; /* NULL: no clairvoyant schedule */
    fl_objective objective;
    double bound;                 /* on the slowdown: 0.10 = 10 %; INFINITY = none */
    size_t best_static;           /* under the bound; point_count = none */
    fl_oracle_result clairvoyant; /* under the bound */
    double known; /* objective of the best schedule known that holds the bound, where the clairvoyant one is bounded:
                     its own, unless a baseline's is less; NAN where there is none */
} fl_reference;

/* Fills best_static, clairvoyant and known from the rest. */
fl_status fl_reference_solve(fl_reference *ref, fl_diag *d);
/* Offer a schedule that was found elsewhere. It becomes the best known if it holds the bound and its objective is less.
 */
void fl_reference_offer(fl_reference *ref, double energy_j, double time_s, int64_t time_ps);

typedef struct fl_score {
    double energy_j, makespan_s, mean_power_w, peak_power_w, edp, ed2p;
    double slowdown;              /* makespan over the default's, less 1 */
    double worst_window_slowdown; /* largest slowdown of a window of work; windows are equal shares of each stream's
                                     reference time. NAN where the reference names no workload or it has no windows */
    bool violated;                /* makespan_ps > fl_limit_ps(default, bound) */
    /* Regret in the objective asked for: J for energy, J s for EDP, J s^2 for ED2P. NAN where violated or not defined.
     * The clairvoyant regret is against `known` and is not defined (NAN) where the table is not exact: a reference that
     * a policy may well beat is no measure of what could have been reached. Below 0 the run itself is the best known.
     */
    double regret_static_j, regret_static_pct;
    double regret_clairvoyant_j, regret_clairvoyant_pct;
    /* Against the oracle at the run's own makespan, also where the run violates the bound or the table is only a
     * reference; a run faster than every schedule (rounding of picoseconds) is held against the fastest. NAN only
     * without a table. */
    double regret_at_own_slowdown_j;
    uint64_t switches;
} fl_score;

fl_status fl_score_run(const fl_run_result *run, const fl_reference *ref, fl_score *out, fl_diag *d);

/* Compute mean and half-width of the 95 % interval (Student's t) of count >= 1 values. Skips NANs; half is NAN for
 * fewer than two values. */
void fl_mean_interval(const double *value, size_t count, double *mean, double *half);
