/* What the files of harness/study/trial share. Other modules include the public header alone. */
#pragma once

#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "sim/base/base.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum { FL_WATCH_BINS = 16384, FL_WATCH_VALUES = 64 };

void fl_watch_free(fl_watch *w);

fl_status fl_watch_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d);

/* Gets a value of a watched run by its name, which is not a column; watch may be NULL. NAN: the run does not have it
 * (no CPU modelled, no such probe). FL_BAD_INPUT: there is no such name. */
fl_status fl_measure(const fl_run_result *run, const fl_watch *watch, const char *name, double *value, fl_diag *d);

/* Fills everything but score, oracles and promises: names, what the run shows beyond its score, its requests. What a
 * plain run does not have is NAN. row->score must be set before; policy is borrowed. */
void fl_row_fill(fl_row_result *row, const fl_scene *s, const fl_run_result *run, const char *policy,
                 double standard_j);

/* Counts a row's regrets again, after one was removed. */
void fl_row_count_regrets(fl_row_result *row);

/* Copies what servers did from another row of the same run. */
void fl_row_take_served(fl_row_result *row, const fl_row_result *from);

/* The latencies of a run, NAN where nothing arrived. */
/* Fill in how well the run followed the scene's target, if there is one. The score must be set before. */
void fl_row_fill_target(fl_row_result *row, const fl_scene *s, const fl_run_result *run);
void fl_row_fill_latency(fl_row_result *row, fl_times latency, double load);

/* Watches a run that is about to begin, in windows of watch_ns; 0: it is not, and *kept stays NULL. */
void fl_kept_watch(fl_kept **kept, int64_t watch_ns, fl_run_options *run);
/* Keeps of a scored run only what fl_measure needs, because there may be thousands of rows. Takes over the run's
 * arrays. */
void fl_kept_take(fl_kept *kept, fl_run_result *r);
void fl_kept_free(fl_kept *kept); /* takes NULL */

/* True if every row has this number; false if only watched runs have it, or if there is no such name. */
bool fl_row_is_column(const char *name);

/* True of a column that only a server of a language model has. */
bool fl_row_is_served(const char *name);

/* Adds the experiment's "bound" and "bounds" on columns without a bound: the command line overrides the experiment.
 * FL_BAD_INPUT with line and column. */
fl_status fl_promises_read(const fl_experiment *e, fl_promises *p, double *slowdown, fl_diag *d);
