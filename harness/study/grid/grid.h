/* MODULE harness/study/grid */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A gate on results: recorded values of every row, and rules on how far new ones may be from them.
 *
 * A rule: METRIC>+1% (grew by more), METRIC<-1% (fell by more), METRIC!1% (either way); without % in the metric's own
 * unit. What fails it is not the mean but the whole interval of the change: paired over the seeds where both have the
 * same, Welch's otherwise, at 95 % for all rows and rules together (Bonferroni). One run has no interval: its change
 * itself counts. Runs that are n/a in both are left out; one that is so in only one of the two (without pairs: another
 * share of them) fails.
 *
 * Recorded as JSON: {"foldline_baseline": 1, "experiment": "...", "seed": 1, "streams": 1, "fail_if": [...],
 * "bounds": [...], "metrics": [...], "rows":
 * [{"policy": "...", "workload": "...", "platform": "...", "values": [[per seed], ...per metric]}], "provenance":
 * {...}}. */

typedef struct fl_gate_rule {
    char *text;      /* as it was written */
    char metric[64]; /* see fl_row_value */
    char sign;       /* '>', '<' or '!' */
    bool relative;   /* limit in percent of the old mean */
    double limit;    /* >= 0 */
} fl_gate_rule;

/* FL_BAD_INPUT with what is wrong: syntax, unknown metric. The caller frees rule->text. */
fl_status fl_gate_parse(const char *text, fl_gate_rule *rule, fl_diag *d);

typedef struct fl_gate_row { /* one policy on one workload */
    char *policy, *workload, *platform;
    double *value; /* metrics x seeds */
    size_t seeds;
    char *breaks; /* of a run: which bounds one of its seeds broke; NULL: none, or it is read from a file */
} fl_gate_row;

typedef struct fl_gate_record {
    char *experiment;      /* path as recorded, relative to the record's folder */
    int64_t seed, streams; /* streams: what policies were told of, beside the experiment's own; 0 = not */
    char **metric;
    size_t metric_count;
    char **fail_if;
    size_t fail_if_count;
    char **bound; /* that it was recorded under, beside the experiment's own; as --bound takes them */
    size_t bound_count;
    fl_gate_row *row;
    size_t row_count, row_room;
    cJSON *provenance; /* of a record that was read; NULL = it has none */
} fl_gate_record;

void fl_gate_record_free(fl_gate_record *r);
fl_status fl_gate_read(const char *path, fl_gate_record *r, fl_diag *d);
/* provenance is borrowed. */
fl_status fl_gate_write(const char *path, const fl_gate_record *r, const cJSON *provenance, fl_diag *d);
/* FL_BAD_INPUT where the record was made by another version than the provenance at hand, or from files of the same name
 * with other contents: what such a comparison shows is no change of a policy. Policies themselves (their archive,
 * plug-ins) may differ. path: of the record. */
fl_status fl_gate_same_origin(const fl_gate_record *old, const char *path, const cJSON *provenance, fl_diag *d);
/* The values of every row (means left out) for the metrics of *r, which are set. */
fl_status fl_gate_take(fl_gate_record *r, const fl_comparison *c, fl_diag *d);

typedef struct fl_gate_finding {
    const fl_gate_row *row;   /* of the old record, or of the new where the old has none */
    const fl_gate_rule *rule; /* NULL: the row is missing, or new */
    bool failed;
    double old_mean, new_mean;
    double change, low, high; /* with its interval, in the rule's unit */
    char text[512];           /* one line */
} fl_gate_finding;

typedef struct fl_gate_result {
    fl_gate_finding *finding; /* one for each old row and rule, then missing and new rows */
    size_t count, room, failed;
} fl_gate_result;

fl_status fl_gate_compare(const fl_gate_record *old, const fl_gate_record *now, const fl_gate_rule *rule,
                          size_t rule_count, fl_gate_result *out, fl_diag *d);
void fl_gate_result_free(fl_gate_result *r);
/* {"experiment", "gates", "failed", "rows": one for each finding}; the caller deletes it. */
cJSON *fl_gate_result_json(const char *experiment, const fl_gate_result *r);
/* For CI: one test case for each finding. */
fl_status fl_gate_junit(const char *path, const char *name, const fl_gate_result *r, fl_diag *d);

/* An append-only record of finished jobs, so that a grid that was killed goes on where it stopped, losing and doubling
 * nothing.
 *
 * Text: a first line "# foldline-journal 1 KEY JOBS", then one line for each row of a job:
 *   JOB ROW ROWS CRC TEXT
 * A job counts once all its rows are there; what a kill left half-written is cut off on opening. The key stands for
 * everything that the results hang on (inputs, version, options): a journal under another key is refused. */

typedef struct fl_journal fl_journal;

void fl_journal_close(fl_journal *j);

size_t fl_journal_count(const fl_journal *j); /* jobs that are done */

/* The rows of all finished jobs in the order of the jobs, to a FILE *. */
void fl_journal_write(fl_journal *j, FILE *file);

/* One journal, in memory, of the shards at `path`, of which there is at least one. FL_BAD_INPUT where their keys
 * differ, and where a job is missing or there twice. How many jobs there are is what the first says, believed no
 * further than the bytes of all reach. */
fl_status fl_journal_merge(fl_journal **out, const char *const *path, size_t count, fl_diag *d);

/* Trials of a search, many at a time: a spec on a pair of workload and seed each, and what they come to. */

typedef struct fl_search_sum { /* of one candidate over some pairs */
    double ratio, slowdown;    /* means: objective over the default's; a share. NAN where it ran on none */
    size_t runs, violated;     /* violated: those that broke a bound */
} fl_search_sum;

/* A spec on the scenes used, all seeds. FL_BAD_INPUT where no scene is used. */
fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use,
                          fl_search_sum *out, fl_diag *d);

/* Finding parameters without running the whole grid: successive halving over workloads and seeds. Candidates are the
 * policies of an experiment, the values of their parameters among them.
 *
 * A trial is one candidate on one workload under one seed. In the first round every candidate has one trial, on the
 * same pair of workload and seed; then the worse part is dropped and the others get more, until one is left or all
 * pairs are used. Pairs come in a seeded order that takes workloads in turn. A candidate is judged by the mean of its
 * objective over the default's.
 *
 * One that was seen to break a bound is behind every one that was not, in every round, those that were dropped
 * included: they come back where those before them break a bound on a later pair. Under a bound the winner is run on
 * all pairs. So it holds all bounds on all of them, unless no candidate does: then it is who breaks them on the least
 * share of its pairs. */

typedef struct fl_search_options {
    double keep;     /* share of the candidates that goes on, 0..1 */
    uint64_t seed;   /* of the order of the pairs */
    const bool *use; /* by scene: tuned on; NULL = all */
} fl_search_options;

typedef struct fl_search_result {
    size_t winner;        /* index of a spec */
    fl_search_sum sum;    /* over what it ran on while it was tuned */
    size_t trials, whole; /* run, and those of the whole grid: of candidates, those on workloads that they are for */
    size_t rounds;
} fl_search_result;

/* FL_BAD_INPUT where no scene is used or no spec is for any. */
fl_status fl_search_run(fl_trials *t, const fl_comparison_options *o, const fl_search_options *how,
                        fl_search_result *out, fl_diag *d);

/* The check of a search's winner: the whole grid of candidates on a few of the pairs that it was tuned on. */

#define FL_SEARCH_CHECK_PAIRS 4   /* of those tuned on, all where there are fewer */
#define FL_SEARCH_CHECK_SEED 1804 /* they are drawn by it, whatever the seed of the search */

typedef struct fl_search_check {
    size_t pairs, of;      /* drawn; of how many */
    size_t compared, held; /* candidates that ran on as many of them as the winner; those that broke no bound there */
    fl_search_sum winner, best; /* there; best: of those that held, the one of the least ratio */
    size_t best_spec;           /* the winner where nobody is better; SIZE_MAX where nobody held */
    fl_search_sum everywhere;   /* of best_spec on all pairs, where it is another than the winner */
} fl_search_check;

fl_status fl_search_check_run(fl_trials *t, const fl_comparison_options *o, const bool *use, size_t winner,
                              fl_search_check *out, fl_diag *d);

/* A grid run durably: every row goes into a journal beside the results as it comes, so that what was killed goes on
 * where it stopped. The finished file is the same bytes whatever the threads, the order, the shards or the number of
 * starts. */

typedef struct fl_sweep_options {
    const char *out;         /* the results; its journal is OUT.journal, its record stands beside it */
    const char *shard;       /* "I/N": every N-th job from the I-th on, into OUT.shard-I-of-N; NULL: all */
    const fl_option *option; /* what the caller was asked for: part of the journal's key, save what changes no byte */
    size_t option_count;
} fl_sweep_options;

typedef struct fl_sweep_result {
    char *path;          /* what was written; owned */
    size_t jobs, before; /* of this shard, and how many of them an earlier start had done */
} fl_sweep_result;

/* FL_BAD_INPUT where the journal is of another grid, the shard is none, or the experiment replays distributions. After
 * an error what was run is in the journal. *r is to be freed either way. */
fl_status fl_sweep_run(fl_setup *u, const fl_sweep_options *o, fl_sweep_result *r, fl_diag *d);
void fl_sweep_result_free(fl_sweep_result *r);
