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
#pragma once

#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/comparison.h"

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
