/* MODULE harness/serving */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* foldline advise of a request trace: how many servers, and which clock, for the least energy that meets the targets.
 */

/* Prints the advice, as JSON or for people. The requests are those of *c, or the one of `files`. FL_BAD_INPUT without a
 * platform, without a target, or where the requests are stated twice; a choice that meets no target is no error: the
 * text says that none does. */
fl_status fl_advise_serving(const fl_serving_choice *c, const fl_texts *files, const char *platform, bool json,
                            fl_diag *d);

/* The best that a static clock can do for servers of a language model: of every number of servers up to the one asked
 * for, at every clock, the choice of least energy whose latencies meet the targets. Servers that are left out are
 * switched off: they draw nothing. */

typedef struct fl_serving_point { /* a whole run */
    uint32_t servers;
    bool standard; /* nothing is set: the driver's default */
    fl_choice at;  /* the clocks that it aims at, else those that hold throughout */
    fl_row_result row;
} fl_serving_point;

typedef struct fl_serving_oracle {
    fl_scenes scenes;        /* of 1, 2, ... servers */
    fl_serving_point *point; /* count: by servers, then the default, then ascending clocks */
    size_t count, held;      /* held: points that keep all bounds */
    size_t best;             /* of all static clocks; count where none keeps them */
    size_t *best_of;         /* the same for each number of servers */
} fl_serving_oracle;

typedef struct fl_serving_oracle_options { /* borrowed */
    const fl_scene_options *scene;         /* with a server; servers: at most so many */
    const fl_promises *promises;
    double bound; /* on the slowdown */
    fl_objective objective;
    unsigned threads;
} fl_serving_oracle_options;

/* *out is to be freed, also where it fails. Equal energies: the fewer servers, then the higher clock. */
fl_status fl_serving_oracle_run(const fl_serving_oracle_options *o, fl_serving_oracle *out, fl_diag *d);
void fl_serving_oracle_free(fl_serving_oracle *o);

/* For people: a line for each number of servers and its best clock, and what holds of all. */
void fl_serving_oracle_print(const fl_serving_oracle *o, const fl_serving_oracle_options *asked, FILE *out);
/* For machines: every point. */
cJSON *fl_serving_oracle_json(const fl_serving_oracle *o, const fl_serving_oracle_options *asked);
