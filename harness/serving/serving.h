/* Servers of a language model: how many servers, and which static clock, need the least energy within latency targets.
 *
 * fl_serving_oracle_run tries every number of servers at every clock and keeps the scenes and points in an
 * fl_serving_oracle, which the caller frees also after a failure. `foldline compare` prints it; fl_advise_serving turns
 * it into advice. A choice that meets no target is no error: the text says that none does. FL_BAD_INPUT: no platform,
 * no target, or contradicting requests. The commands `fit serving` and `synth requests` are rows of
 * base/cli/commands.h. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Print advice on a server and its requests, which `files` names, as JSON or for people: how many servers, and which
 * clock. risk: highest chance that a target breaks for other arrivals and by the law's error, at least
 * FL_SERVING_RISK_LEAST. FL_BAD_INPUT: no platform, no target, or another workload among the files.
 * out: also write it as a CSV of one row; NULL = do not. */
fl_status fl_advise_serving(const fl_serving_choice *c, fl_texts *files, const char *platform, double risk, bool json,
                            const char *out, fl_diag *d);
#define FL_SERVING_RISK_LEAST 0.001

/* The best static choice: of every number of servers up to the given one, at every clock, the choice of least energy
 * whose latencies meet the targets. Unused servers are switched off and draw nothing. */

typedef struct fl_serving_point { /* a whole run */
    uint32_t servers;
    bool standard; /* nothing is set: the driver's default */
    fl_choice at;  /* the clocks: those at which a default run aims, else those that are set throughout */
    fl_row_result row;
} fl_serving_point;

typedef struct fl_serving_oracle {
    fl_scenes scenes;        /* of 1, 2, ... servers */
    fl_serving_point *point; /* count: by servers, then the default, then ascending clocks */
    size_t count, held;      /* held: points that keep all bounds */
    size_t best;             /* the best of all static clocks; count: none keeps all bounds */
    size_t *best_of;         /* the best for each number of servers */
} fl_serving_oracle;

typedef struct fl_serving_oracle_options { /* borrowed */
    const fl_scene_options *scene;         /* with a server; its number of servers is the largest tried */
    const fl_promises *promises;
    double bound; /* on the slowdown */
    fl_objective objective;
    unsigned threads;
} fl_serving_oracle_options;

/* Run every choice. Of equal energies the one with fewer servers wins, then the higher clock. Free *out also after a
 * failure. */
fl_status fl_serving_oracle_run(const fl_serving_oracle_options *o, fl_serving_oracle *out, fl_diag *d);
void fl_serving_oracle_free(fl_serving_oracle *o);

/* Print for people a line for each number of servers with its best clock, and the best of all. */
void fl_serving_oracle_print(const fl_serving_oracle *o, const fl_serving_oracle_options *asked, bool wide, FILE *out);
/* Return every point as JSON. */
cJSON *fl_serving_oracle_json(const fl_serving_oracle *o, const fl_serving_oracle_options *asked);
