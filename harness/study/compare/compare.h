/* MODULE harness/study/compare */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Policies over scenes: every run scored against the driver's default and the oracles of its scene. */

typedef struct fl_comparison {
    fl_row_result *row; /* scene by scene: the baselines, then policy by policy, seed by seed; at the end the means */
    size_t count, room;
    char **label; /* label_count: policies of the means of variants */
    size_t label_count, label_room;
    size_t mean_first; /* rows from here on are means over workloads and seeds, in the order of the policies */
    uint32_t *mean; /* of each row before them the mean that it is part of: 0 for the first; NULL: there are none yet */
    uint64_t ignored_sets, faults;
    size_t unstepped; /* runs that ended before their policy looked a second time */
} fl_comparison;

/* Same options, same rows, at any number of threads. */
fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
/* The rows of the scenes alone, behind those that *c has. The scenes outlive them, but may be forgotten. */
fl_status fl_comparison_scenes(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
void fl_comparison_free(fl_comparison *c);

/* Means over workloads and seeds of all rows so far. */
void fl_comparison_means(fl_comparison *c);

/* All rows as CSV, through a temporary file. */
fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d);

/* The means (or, of one workload, its rows) as a table for people. */
void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out);

/* Policies over distribution replays (sim/draws/draws.h), as EnergyUCB evaluates itself: an experiment with "draws".
 *
 * "draws": {"step_ms": 10, "energy_cv": 0.1, "ratio": 1, "ratio_exponent": {"a": 1, "b": 0}, "ratio_cv": 0.1,
 * "steps_max": 100000, "one_seed": false}: what the sweep's rows do not say, each a number, or one for each workload. A
 * run ends with its work, or after steps_max steps (0, the standard: never); its row's note then says how much was
 * done. one_seed: all repetitions draw alike, as those of the released EnergyUCB. A variant may change any of them.
 * Slowdown, saving and regret are against the sweep's own rows: the top clock, and the clock of the least energy under
 * the bound.
 */

/* The scenes are those of the experiment's sweep. Rows as fl_comparison_run makes them, without the clairvoyant ones.
 */
fl_status fl_draws_compare(const fl_experiment *e, const fl_comparison_options *o, fl_comparison *c, fl_diag *d);

/* energy, saving, energy regret, Eq. 3 regret and slowdown together; each: by workload, over its seeds. */
void fl_draws_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out);

/* Published results beside simulated ones: the end of an experiment that replays a paper.
 *
 * "published": [{"quantity": "ED2 gain of 1levelTh", "unit": "%", "published": 24, "simulated": SELECTION, "gate":
 * {"above": 0}, "note": "..."}, ...]
 *
 * published: a number, a range [low, high], or null where the paper prints none. SELECTION picks rows of the
 * comparison and makes one number of them:
 *   {"policy": "1levelth", "workload": "mini*", "variant": "...", "column": "ed2p", "over": "geomean",
 *    "against": "bapm", "as": "saving_pct"}
 * policy and workload are shell patterns; workload and variant default to all workloads of the plain node. column: see
 * fl_row_value. against: the row of the same workload under that policy, of the same seed and with the same parameters
 * behind its name's colon where there is one ("hybrid1:margin_w=4" against "static*"), its against_column (default: the
 * same column); as:
 * saving_pct 100 (1 - a/b), change_pct 100 (a/b - 1), ratio a/b, difference a - b, abs_difference |a - b|. over: mean
 * (default), error (its standard error), geomean (of a saving or change: through the ratios), median, min, max, sum,
 * count_below:X, count_above:X. "where": {"column": "slowdown_pct", "below": 5} (or above) leaves out rows that do not
 * meet it; a sum or count of none is 0. "least_of": ["bapm", "1levelth"] makes the number of a row 1 where it is at
 * most the number of each of these policies on the same workload, and 0 elsewhere; "most_of": at least. A row that
 * "where" leaves out is no rival, and a tie counts for both. So "least_of", "where" and "over": "sum" count the
 * workloads on which a policy is the best of several within a bound.
 *
 * gate: {"above": X, "below": X, "within": X, "within_pct": X}; the first two may be selections; the others are
 * distances from the published value. "errors": 2 beside them: a mean of rows that chance makes differ has to keep its
 * bounds by two standard errors, so that none holds by luck. Without a gate the line only reports. "share_of":
 * SELECTION makes the simulated value a share of another, in percent.
 *
 * Where the experiment draws its applications from several seeds ("applications"), a selection is made draw by draw,
 * and "draws" of it makes one number of these: mean (default), min, max, sum. by_draw: "column" puts the number of each
 * draw into a second table, a row for each policy and draw. A gate is then judged on every draw, by its own numbers, so
 * that errors of opposite sign in two draws do not make a line that holds. It holds where it does on more than half of
 * the draws; "draws": "all" in the gate asks for each of them. The line says on how many it does.
 *
 * Where the experiment has "records": "both", every line with a policy that needs kernel records has a second number
 * beside the simulated one: the same with records that take no time. Gates judge the one at cost.
 *
 * fails: "why". A claim of the paper that does not come out here: its gate must not hold. The line then says so, with
 * the reason, and leaves the exit status alone. Where the gate holds after all, that is a failure: the text is out of
 * date. So a published claim is always a gate, and none is left out for its result. */

typedef struct fl_published fl_published;

/* What the experiment says; NULL in *out where it has no such key. policies: labels that selections may name. Refuses
 * unknown keys, policies that match nothing, columns that do not exist. */
fl_status fl_published_open(const fl_experiment *e, const fl_texts *policies, fl_published **out, fl_diag *d);
void fl_published_free(fl_published *p);

/* Evaluates every line. FL_BAD_INPUT where a selection finds no row. */
fl_status fl_published_solve(fl_published *p, const fl_comparison *c, fl_diag *d);
/* How many gates do not hold, or hold although the experiment says that they fail. */
size_t fl_published_failed(const fl_published *p);
/* quantity | published | simulated | records free | difference | gate or report; the table of draws; then notes and
 * what the experiment assumes. */
void fl_published_print(const fl_published *p, FILE *out);
/* The same as an array of objects. */
cJSON *fl_published_json(const fl_published *p);

/* What compare writes beside a result for its report. */

/* The provenance of all that was set up; the caller deletes it. */
cJSON *fl_report_record(const fl_setup *u);

/* Adds what a reader of the result asks first to its provenance: experiment, about, and the options of the run where
 * the record does not have them yet. */
void fl_report_about(const fl_setup *u, cJSON *record);

/* RESULT.csv -> RESULT.published.json (where published is not NULL) and RESULT.regret.csv (of a distribution replay).
 * One of an earlier result that does not belong to this one any more is removed. */
fl_status fl_report_beside_write(const fl_setup *u, const fl_comparison *c, const fl_published *published,
                                 const char *csv, fl_diag *d);

/* Tables of an experiment: many selections of compare.h side by side, which only report.
 *
 * "tables": [{"title": "steps by line", "each": SELECTION, "columns": {"miniMD": SELECTION, ...}, "rows": {"line 4":
 * SELECTION, ...}}, ...]
 *
 * The keys of each, of the column and of the row make one selection, the later over the earlier. A key with a + puts
 * its text behind what that key has from the others: "+policy": ":margin_w=4". */

typedef struct fl_result_tables fl_result_tables;

/* What the experiment says, which must outlive it; NULL in *out where it has no such key. Refuses what
 * fl_published_open refuses of a selection. */
fl_status fl_result_tables_open(const fl_experiment *e, const fl_texts *policies, fl_result_tables **out, fl_diag *d);
void fl_result_tables_free(fl_result_tables *t);

/* Evaluates every cell. FL_BAD_INPUT where a selection finds no row. */
fl_status fl_result_tables_solve(fl_result_tables *t, const fl_comparison *c, fl_diag *d);
/* One after the other, each followed by an empty line. */
void fl_result_tables_print(const fl_result_tables *t, FILE *out);
/* The same as an array of objects. */
cJSON *fl_result_tables_json(const fl_result_tables *t);

/* The record of where a result comes from: program, inputs, platforms and policies, as JSON beside the result. */

/* Version, C library, hash of the policy archive, seed; inputs with their SHA-256; platform; policies with all resolved
 * parameters; what the models stand on. The caller deletes it. */
cJSON *fl_provenance(const fl_scenes *scenes, const fl_spec *spec, size_t spec_count, uint64_t seed);

/* SHA-256 of what a result holds, unpacked where it is gzipped, so that packing it later makes no other result of it.
 * As fl_file_sha256 else. */
char *fl_result_sha256(const char *path, char hash[65]);

/* Writes the record beside a result that is complete, with the result's SHA-256, so that it cannot pass for another's.
 * The standard output has nothing beside it: FL_OK then. */
fl_status fl_provenance_write(const char *csv, cJSON *record, fl_diag *d);

/* RESULT.csv -> RESULT.provenance.json. malloc'd. */
char *fl_provenance_path(const char *csv);
