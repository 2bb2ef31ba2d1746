/* One line of a result: what a run was worth, whose it was, and which bounds it broke. */
#pragma once

#include "harness/input/scene/scene.h"
#include "harness/study/trial/measure.h"
#include "sim/oracle/score.h"

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
    double saving_most_pct;   /* no clocks save more against the default: by oracle_bound_j (sim/serving/bound.h) */
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

/* Everything but the score, the oracles and the promises: names, what the run says beyond its score, its requests.
 * Those of no concern to a plain run are NAN. row->score is set before; policy is borrowed. */
void fl_row_fill(fl_row_result *row, const fl_scene *s, const fl_run_result *run, const char *policy,
                 double standard_j);
/* What every maker of rows ends with, once the score is there: counts, and what the objective was against the default's
 * `standard`. */
void fl_row_finish(fl_row_result *row, fl_objective objective, double standard);
/* Counts its regrets anew, where one was taken back since. */
void fl_row_count_regrets(fl_row_result *row);
/* What a server did, NAN where there is none. energy_j is set before. */
void fl_row_fill_served(fl_row_result *row, const fl_run_result *run);
/* The same, as another row of the same run has it. */
void fl_row_take_served(fl_row_result *row, const fl_row_result *from);
/* Names the clocks of a static choice; mem_mhz 0 where the device has a single memory clock. */
void fl_row_clock(fl_row_result *row, double sm_mhz, double mem_mhz);
/* The latencies of a run, NAN where nothing arrived. */
void fl_row_fill_latency(fl_row_result *row, fl_times latency, double load);

/* Watches a run that is about to begin, in windows of watch_ns; 0: it is not, and *kept stays NULL. */
fl_status fl_kept_watch(fl_kept **kept, int64_t watch_ns, fl_run_options *run, fl_diag *d);
/* Keeps of a run that has been scored what fl_measure tells, and no more, for there may be thousands of rows. Takes
 * the run's arrays over, also where it fails. */
fl_status fl_kept_take(fl_kept *kept, fl_run_result *r, fl_diag *d);
void fl_kept_free(fl_kept *kept);     /* takes NULL */
void fl_row_free(fl_row_result *row); /* what was kept */
