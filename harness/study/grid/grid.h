/* Many runs that must not be lost: grids with a journal, search of parameters, and gates on recorded results.
 *
 * fl_sweep_run runs a grid. Each finished row goes into a journal beside the result, so that a killed run continues
 * where it stopped, and shards on several machines make one file (fl_journal_merge). fl_search_run finds good
 * parameters without the whole grid; fl_search_check_run checks the winner. fl_gate_read, fl_gate_take and
 * fl_gate_compare hold a result against a recorded baseline.
 *
 * All take an fl_setup or fl_comparison_options of study/trial and give the same bytes at any number of threads. The
 * caller frees each result. FL_BAD_INPUT: a journal of another grid, an unknown metric, or a baseline of another
 * version. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Gates: recorded values of every row, and rules on how far new values may be from them.
 *
 * A rule fails on METRIC>+1% (grew by more), METRIC<-1% (fell by more), METRIC!1% (either way); without % the limit has
 * the metric's own unit. A rule fails only if the whole interval of the change lies beyond the limit. The interval is
 * paired over equal seeds, else Welch's, at 95 % for all rows and rules together (Bonferroni). A single run has no
 * interval, and its change itself counts. Runs that are n/a in both results do not count. A run that is n/a in only one
 * of them fails the rule; without pairs, so does a different share of n/a.
 *
 * Recorded as JSON: {"foldline_baseline": 1, "experiment": "...", "seed": 1, "streams": 1, "fail_if": [...],
 * "bounds": [...], "metrics": [...], "rows":
 * [{"policy": "...", "workload": "...", "platform": "...", "values": [[per seed], ...per metric]}], "provenance":
 * {...}}. */

typedef struct fl_gate_rule {
    char *text;      /* the rule as the user wrote it */
    char metric[64]; /* a name of fl_row_value */
    char sign;       /* '>', '<' or '!' */
    bool relative;   /* limit in percent of the old mean */
    double limit;    /* >= 0 */
} fl_gate_rule;

/* FL_BAD_INPUT with what is wrong: syntax, unknown metric. The caller frees rule->text. */
fl_status fl_gate_parse(const char *text, fl_gate_rule *rule, fl_diag *d);

typedef struct fl_gate_run {
    uint64_t draw, seed; /* draw: seed of drawn applications; 0: they are not drawn */
} fl_gate_run;

typedef struct fl_gate_row { /* one policy on one workload */
    char *policy, *workload, *platform;
    double *value;    /* metrics x seeds */
    fl_gate_run *run; /* one for each seed, in ascending order; NULL: a baseline, which keeps the order alone */
    size_t seeds;
    char *breaks; /* bounds that one of its seeds broke; NULL: none, or the row was read from a file */
} fl_gate_row;

typedef struct fl_gate_record {
    char *experiment;      /* path as recorded, relative to the record's folder */
    int64_t seed, streams; /* streams: number stated to policies on the command line; 0 = none */
    char **metric;
    size_t metric_count;
    char **fail_if;
    size_t fail_if_count;
    char **bound; /* bounds of its recording beside the experiment's, as texts of --bound */
    size_t bound_count;
    fl_gate_row *row;
    size_t row_count, row_room;
    cJSON *provenance; /* of a record that was read; NULL: it has none */
} fl_gate_record;

void fl_gate_record_free(fl_gate_record *r);
fl_status fl_gate_read(const char *path, fl_gate_record *r, fl_diag *d);
/* Read the rows of a result, the CSV of compare or grid, for the metrics of *r, which must be set. FL_BAD_INPUT: the
 * result lacks a metric. */
fl_status fl_gate_read_result(const char *path, fl_gate_record *r, fl_diag *d);
/* Record a new baseline. provenance is borrowed. */
fl_status fl_gate_write(const char *path, const fl_gate_record *r, const cJSON *provenance, fl_diag *d);
/* Check that a record is comparable. FL_BAD_INPUT: it was made by another version, or from files of the same name with
 * other contents, so that differences need not come from a policy. Policies (their archive, plug-ins) may differ. path:
 * of the record. */
fl_status fl_gate_same_origin(const fl_gate_record *old, const char *path, const cJSON *provenance, fl_diag *d);
/* Take the values of every row except means, for the metrics of *r, which must be set. */
fl_status fl_gate_take(fl_gate_record *r, const fl_comparison *c, fl_diag *d);

typedef struct fl_gate_finding {
    const fl_gate_row *row;   /* of the old record, or of the new one if the old has no such row */
    const fl_gate_rule *rule; /* NULL: the row is missing, new, or has fewer runs */
    bool failed;
    double old_mean, new_mean;
    double change, low, high; /* with its interval, in the rule's unit */
    char text[512];           /* one line */
} fl_gate_finding;

typedef struct fl_gate_result {
    fl_gate_finding *finding; /* one for each old row and rule, and rows that are missing, new or have fewer runs */
    size_t count, room, failed;
} fl_gate_result;

fl_status fl_gate_compare(const fl_gate_record *old, const fl_gate_record *now, const fl_gate_rule *rule,
                          size_t rule_count, fl_gate_result *out, fl_diag *d);
void fl_gate_result_free(fl_gate_result *r);
/* {"experiment", "gates", "failed", "rows": one for each finding}; the caller deletes it. */
cJSON *fl_gate_result_json(const char *experiment, const fl_gate_result *r);
/* Write JUnit XML for CI: one test case for each finding. */
fl_status fl_gate_junit(const char *path, const char *name, const fl_gate_result *r, fl_diag *d);

/* The journal: an append-only record of finished jobs. A grid that was killed continues where it stopped; no row is
 * lost or doubled.
 *
 * harness/manual/formats/logs.md specifies the file. A job counts once all its rows are there. Opening cuts off a
 * half-written last line. The key is a hash of everything that the results depend on (inputs, version, options). A
 * journal with another key is refused. */

typedef struct fl_journal fl_journal;

void fl_journal_close(fl_journal *j);

size_t fl_journal_count(const fl_journal *j); /* number of finished jobs */

/* Write the rows of all finished jobs in the order of the jobs. */
void fl_journal_write(fl_journal *j, FILE *file);

/* Make one journal, in memory, of at least one shard. FL_BAD_INPUT: their keys differ, or a job is missing or there
 * twice. The first shard states the number of jobs; the function rejects a number that the bytes cannot hold. */
fl_status fl_journal_merge(fl_journal **out, const char *const *path, size_t count, fl_diag *d);

/* Search: the trials of candidates on pairs of workload and seed. */

typedef struct fl_search_sum { /* one candidate over some pairs */
    double ratio, slowdown;    /* means: objective over the default's; slowdown as a share. NAN without a run */
    size_t runs, violated;     /* violated: runs that broke a bound */
} fl_search_sum;

/* Run one spec on the chosen scenes under all seeds, and make the mean of its rows; mean->rows is 0 where the spec is
 * for none of them. FL_BAD_INPUT: no scene is chosen. */
fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use,
                          fl_row_result *mean, fl_diag *d);
/* Return what such a mean says of its candidate. */
fl_search_sum fl_search_sum_of(const fl_row_result *mean);

/* Finding parameters without running the whole grid: successive halving over workloads and seeds. Candidates are the
 * policies of an experiment, the values of their parameters among them.
 *
 * A trial is one candidate on one workload under one seed. In the first round every candidate has one trial, on the
 * same pair of workload and seed; then the worse part is dropped and the others get more, until one is left or all
 * pairs are used. Pairs come in a seeded order that takes workloads in turn. A candidate is judged by the mean of its
 * objective over the default's.
 *
 * A candidate that broke a bound ranks behind every candidate that did not, in every round. Dropped candidates rank
 * too: they return if those before them break a bound on a later pair. Under a bound the winner runs on all pairs. So
 * it holds all bounds on all of them, unless no candidate does. Then the winner breaks them on the least share of its
 * pairs. */

typedef struct fl_search_rank {
    size_t spec;
    fl_search_sum sum; /* over the pairs that this candidate ran on */
} fl_search_rank;

typedef struct fl_search_options {
    double keep;          /* share of the candidates that stay in the next round, 0..1 */
    uint64_t seed;        /* seed of the order of the pairs */
    const bool *use;      /* by scene: whether the search tunes on it; NULL = all */
    fl_search_rank *rank; /* receives every candidate, the best first; NULL = not asked for */
} fl_search_options;

typedef struct fl_search_result {
    size_t winner;        /* index of a spec */
    fl_search_sum sum;    /* of the winner, over the pairs of the search */
    size_t trials, whole; /* trials that ran, and trials of the whole grid */
    size_t rounds;
} fl_search_result;

/* Run the search. FL_BAD_INPUT: no scene is chosen, or no spec is for any of them. */
fl_status fl_search_run(fl_trials *t, const fl_comparison_options *o, const fl_search_options *how,
                        fl_search_result *out, fl_diag *d);

/* The check of a search's winner: the whole grid of candidates on a few of the pairs that it was tuned on. */

#define FL_SEARCH_CHECK_PAIRS 4   /* pairs of the check; all pairs of the search if it has fewer */
#define FL_SEARCH_CHECK_SEED 1804 /* draws these pairs, whatever the seed of the search */

typedef struct fl_search_check {
    size_t pairs, of;           /* pairs drawn, and pairs of the search */
    size_t compared, held;      /* candidates that ran on as many of these pairs as the winner; those without a break */
    fl_search_sum winner, best; /* on these pairs; best: the least ratio among candidates that held all bounds */
    size_t best_spec;           /* the winner if none is better; SIZE_MAX if none held */
    fl_search_sum everywhere;   /* best_spec on all pairs, if it is not the winner */
} fl_search_check;

fl_status fl_search_check_run(fl_trials *t, const fl_comparison_options *o, const bool *use, size_t winner,
                              fl_search_check *out, fl_diag *d);

/* Grids: every finished row goes into a journal beside the results. The finished file has the same bytes, whatever the
 * threads, the order, the shards or the number of starts. */

typedef struct fl_sweep_options {
    const char *out;         /* path of the results; the journal is OUT.journal, the provenance lies beside */
    const char *shard;       /* "I/N": every N-th job from the I-th on, into OUT.shard-I-of-N; NULL: all jobs */
    const fl_option *option; /* options of the caller; those that may change a byte are part of the journal's key */
    size_t option_count;
} fl_sweep_options;

typedef struct fl_sweep_result {
    char *path;          /* the written file; owned */
    size_t jobs, before; /* jobs of this shard, and those that an earlier start had finished */
    size_t workloads;    /* those of the jobs that find the baselines of a workload; each other is one run */
} fl_sweep_result;

/* Run a grid, or what is left of it. FL_BAD_INPUT: the journal is of another grid, the shard is wrong, or the
 * experiment replays distributions. After an error the journal has all finished jobs. Free *r also after a failure. */
fl_status fl_sweep_run(fl_setup *u, const fl_sweep_options *o, fl_sweep_result *r, fl_diag *d);
void fl_sweep_result_free(fl_sweep_result *r);
