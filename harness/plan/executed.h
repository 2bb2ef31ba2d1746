/* Executed plans of clocks as the Perseus artifact (SOSP '24) releases them: of each plan N a pair of JSON files.
 *
 *   N.sched.json   [{"rank": R, "power_states": [MHz, ...]}, ...]: the clock of each instruction of a rank's list
 *   N.prof.json    [{"rank": R, "iter_time": [s, ...], "iter_energy": [J, ...],
 *                    "time_breakdown": {"forward": [[s, ...], ...], "backward": ..., "load": ...}}, ...]
 *                  by iteration, and within it by instruction; energy is the board's
 *
 * They become the files that traces/pipeline/runs.h reads: BASE.plans.csv, BASE.measured.csv, BASE.instructions.csv.
 * Lists are those of a 1F1B schedule (sim/pipeline/pipeline.h); how many stages it has is found by their lengths. Of more than
 * five iterations the first two are left out, of fewer the first: the boards are still cold. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/plan/executed_tables.h"

/* Whether a file is named as one of a pair. */
bool fl_executed_is(const char *path);
/* Reads pairs, in any order; fills *e or leaves it zeroed. FL_BAD_INPUT, with line and column where a value is to
 * blame, where a pair is not whole, where pairs are of different pipelines, and where lists are not those of a 1F1B
 * schedule. */
fl_status fl_executed_read(const fl_texts *files, fl_executed *e, fl_diag *d);
/* The three files; where one cannot be written, those before it stay. */
fl_status fl_executed_write(const char *base, const fl_executed *e, fl_diag *d);
void fl_executed_free(fl_executed *e);
