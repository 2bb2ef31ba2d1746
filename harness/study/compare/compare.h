/* Comparisons: policies over scenes as one table, published results beside simulated ones, and the record of where a
 * result comes from.
 *
 * fl_comparison_run makes the rows of an fl_comparison_options (fl_setup_open fills it), fl_comparison_means adds the
 * means, fl_comparison_print and fl_comparison_write show them. fl_draws_compare does the same for distribution
 * replays. fl_published_open and fl_published_solve check the claims and gates of an experiment that replays a paper.
 * fl_report_record and fl_report_beside_write make the files beside a result.
 *
 * A comparison owns its rows until fl_comparison_free; labels and scenes are borrowed. The result does not depend on
 * the number of threads. FL_BAD_INPUT names the experiment's key. */
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

typedef struct fl_comparison {
    fl_row_result *row; /* scene by scene: the baselines, then policy by policy, seed by seed; at the end the means */
    size_t count, room;
    char **label; /* label_count: policies of the means of variants */
    size_t label_count, label_room;
    size_t mean_first; /* rows from here on are means over workloads and seeds, in the order of the policies */
    uint32_t *mean;    /* for each row the index of the mean that it is part of; NULL: there are no means yet */
    bool apart;        /* each mean is over the seeds of one workload */
    uint64_t ignored_sets, faults;
    size_t unstepped; /* runs that ended before the second step of their policy */
} fl_comparison;

/* Run all policies on all scenes and make rows and means. The same options give the same rows. */
fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
/* Add only the rows of the scenes, behind the rows that *c has. The scenes must outlive the rows, but may be forgotten
 * (fl_scenes_forget). */
fl_status fl_comparison_scenes(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
void fl_comparison_free(fl_comparison *c);

/* Add the means over workloads and seeds of all rows so far. */
void fl_comparison_means(fl_comparison *c);

/* Write all rows as CSV, through a temporary file. */
fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d);

/* Print the means as a table for people (fl_row_table); with `each`, those over the seeds of each workload. */
void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, bool wide, FILE *out);

/* Policies over distribution replays (sim/draws/draws.h), as EnergyUCB evaluates itself: an experiment with "draws".
 *
 * "draws": {"step_ms": 10, "energy_cv": 0.1, "ratio": 1, "ratio_exponent": {"a": 1, "b": 0}, "ratio_cv": 0.1,
 * "steps_max": 100000, "one_seed": false}: what the sweep's rows lack, each a number, or one for each workload. A run
 * ends with its work, or after steps_max steps (0, the default: never); its row's note then says how much was done.
 * one_seed: all repetitions use the same draws, as in the released EnergyUCB. A variant may change any of them.
 * Slowdown, saving and regret are against the sweep's own rows: the top clock, and the clock of the least energy under
 * the bound.
 */

/* Compare the policies on the scenes of the experiment's sweep. The rows are those of fl_comparison_run without the
 * clairvoyant schedule. */
fl_status fl_draws_compare(const fl_experiment *e, const fl_comparison_options *o, fl_comparison *c, fl_diag *d);

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
 * fl_row_value. against: the row of the same workload under that policy, with the same seed and the same parameters
 * after the colon of its name, if there is one ("hybrid1:margin_w=4" against "static*"). against_column: its column
 * (default: the same). as: saving_pct 100 (1 - a/b), change_pct 100 (a/b - 1), ratio a/b, difference a - b,
 * abs_difference |a - b|. over: mean (default), error (its standard error), geomean (of a saving or change: through the
 * ratios), median, min, max, sum, count_below:X, count_above:X. "where": {"column": "slowdown_pct", "below": 5} (or
 * above) leaves out rows that do not meet it; a sum or count of none is 0. "least_of": ["bapm", "1levelth"] makes the
 * number of a row 1 where it is at most the number of each of these policies on the same workload, and 0 elsewhere;
 * "most_of": at least. A row that "where" leaves out is no rival, and a tie counts for both. So "least_of", "where" and
 * "over": "sum" count the workloads on which a policy is the best of several within a bound.
 *
 * gate: {"above": X, "below": X, "within": X, "within_pct": X}; the first two may be selections; the others are
 * distances from the published value. "errors": 2 beside them: where chance decides, the mean has to keep its bounds by
 * two standard errors, so that no gate holds by luck. Without a gate the line only reports. "share_of":
 * SELECTION makes the simulated value a share of another, in percent.
 *
 * Where the experiment draws its applications from several seeds ("applications"), a selection is made draw by draw,
 * and "draws" of it makes one number of these: mean (default), min, max, sum. by_draw: "column" puts the number of each
 * draw into a second table, a row for each policy and draw. A gate is then judged on every draw, by its own numbers, so
 * that errors of opposite sign in two draws do not make a line that holds. It holds where it does on more than half of
 * the draws; "draws": "all" in the gate asks for each of them. The line says on how many it does.
 *
 * If the experiment has "records": "both", every line with a policy that needs activity records has a second number:
 * the simulated value with records that take no time. Gates judge the value at cost.
 *
 * Each line is presented by four keys:
 *   block: "claim" (of the paper's system), "detail" (the default: rivals, single applications), or "input" (an input,
 * or a number that nobody can reproduce: it has no gate). kind: "predicted" (the default), "calibrated" (it was in view
 * when a number was chosen) or "input". verdict: what the line comes out as; the default is "reproduced". because: the
 * reason. Each of the last three verdicts needs one. fl_published_solve computes the verdict of each line with a gate;
 * the first that applies: "reproduced": the gate holds. "within the sampling error": the gate has "repetitions": N,
 * since the published number is a mean of N repetitions, and the gate holds with its bounds wider by 1.96 standard
 * errors of the difference between such a mean and the mean of the line's rows, which must be of one workload. "depends
 * on an unpublished input": the gate holds at each of "holds_at", a list of parts of a selection that override
 * "simulated", such as [{"policy": "hybrid1:margin_w=2"}, {"variant": "bus at 70 %"}]. "contradicts another number":
 * only where the experiment records it. "not reproduced". A verdict other than the recorded one, better or worse,
 * changes the exit status: then the text is out of date.
 *
 * "calibrated": [{"what": "the margin, 9 W", "count": 1, "to": "the energies of Fig. 6", "before": "94 of 107 hold"}]
 * of the experiment lists what was chosen so that published numbers come out. The score counts predictions alone: lines
 * of kind "predicted" with a gate or a published number. */

typedef struct fl_published fl_published;

/* Read "published" of the experiment; *out is NULL without that key. policies: labels that selections may name.
 * FL_BAD_INPUT: unknown keys, policies that match nothing, columns that do not exist. */
fl_status fl_published_open(const fl_experiment *e, const fl_texts *policies, fl_published **out, fl_diag *d);
void fl_published_free(fl_published *p);

/* Evaluate every line. FL_BAD_INPUT: a selection finds no row. */
fl_status fl_published_solve(fl_published *p, const fl_comparison *c, fl_diag *d);
/* Return the number of lines whose verdict differs from the recorded one. */
size_t fl_published_failed(const fl_published *p);
/* Return true if a line is a claim of the system, so that the claims alone fit on one screen. */
bool fl_published_claims(const fl_published *p);
/* Print the claims of the system, the lines whose verdict differs from the recorded one, and the score. all: also
 * rivals and details, inputs, draws, notes, what was calibrated and what the experiment assumes. An experiment without
 * claims is printed as a whole. */
void fl_published_print(const fl_published *p, bool all, FILE *out);
/* Return the lines as an array of objects, and the score as an object. */
cJSON *fl_published_json(const fl_published *p);
cJSON *fl_published_score_json(const fl_published *p);

/* The files beside a result. */

/* Make the provenance of all that was set up; the caller deletes it. */
cJSON *fl_report_record(const fl_setup *u);

/* Add to a provenance the experiment, its "about", and the options of the run that the record lacks. */
void fl_report_about(const fl_setup *u, cJSON *record);

/* Write RESULT.published.json (if published is not NULL) and RESULT.regret.csv (of a distribution replay) beside
 * RESULT.csv. Remove such a file of an earlier result if this result has none. */
fl_status fl_report_beside_write(const fl_setup *u, const fl_comparison *c, const fl_published *published,
                                 const char *csv, fl_diag *d);

/* Tables of an experiment: many selections (see "published") side by side, which only report.
 *
 * "tables": [{"title": "steps by line", "each": SELECTION, "columns": {"miniMD": SELECTION, ...}, "rows": {"line 4":
 * SELECTION, ...}}, ...]
 *
 * The keys of each, of the column and of the row make one selection; later ones override earlier ones. A key with a +
 * appends its text to the value from the others: "+policy": ":margin_w=4". */

typedef struct fl_result_tables fl_result_tables;

/* Read "tables" of the experiment, which must outlive *out; *out is NULL without that key. FL_BAD_INPUT: a wrong
 * selection, as in fl_published_open. */
fl_status fl_result_tables_open(const fl_experiment *e, const fl_texts *policies, fl_result_tables **out, fl_diag *d);
void fl_result_tables_free(fl_result_tables *t);

/* Evaluate every cell. FL_BAD_INPUT: a selection finds no row. */
fl_status fl_result_tables_solve(fl_result_tables *t, const fl_comparison *c, fl_diag *d);
/* Print the tables one after the other, each followed by an empty line. */
void fl_result_tables_print(const fl_result_tables *t, FILE *out);
/* Return the tables as an array of objects. */
cJSON *fl_result_tables_json(const fl_result_tables *t);

/* Provenance: program, inputs, platforms and policies of a result, as JSON beside it. */

/* Make the record: version, C library, hash of the policy archive, seed; inputs with their SHA-256; platform; policies
 * with all resolved parameters; what the models rest on. The caller deletes it. */
cJSON *fl_provenance(const fl_scenes *scenes, const fl_spec *spec, size_t spec_count, uint64_t seed);

/* Write the SHA-256 of a result's contents into hash, unpacked if it is gzipped: packing a result does not change its
 * hash. Otherwise as fl_file_sha256. */
char *fl_result_sha256(const char *path, char hash[65]);

/* Write the record beside a complete result. The record has the result's SHA-256, so that it fits no other result.
 * Where it cannot be written, remove the result, too. Do nothing for the standard output. */
fl_status fl_provenance_write(const char *csv, cJSON *record, fl_diag *d);

/* Return RESULT.provenance.json for RESULT.csv; the caller frees it. */
char *fl_provenance_path(const char *csv);
