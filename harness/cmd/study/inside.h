/* What the files of harness/cmd/study share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "sim/node/node.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The instructions of a pipeline over time, as a CSV for a Gantt chart. */

/* Repeats the run, which gives the same result, and writes what each rank did to `path`, rank by rank in order of time:
 * rank,what,chunk,microbatch,start_s,end_s,sm_mhz,power_w. what: forward, backward, load, load_in_recv, transfer,
 * end (reductions and step), meeting (of tensor-parallel ranks), and wait: the other side of a transfer, meeting or
 * reduction has not come yet. sm_mhz and power_w are means over the row, from the truth each FL_INSTRUCTIONS_EVERY_NS.
 * FL_BAD_INPUT where the scene is no pipeline. */
fl_status fl_run_instructions(const fl_scene *scene, const fl_run_options *run, const char *path, fl_diag *d);

/* Print kernels, telemetry, or both in numbers; json: into this object instead of on stdout. */
fl_status fl_show_trace(const fl_imported *run, cJSON *json, fl_diag *d);

/* The savings that the oracles reach on each scene. */

typedef struct fl_baselines_how {
    bool kernels; /* lists each kind of kernel, too */
    bool wide, json;
    const char *out; /* the CSV of the scenes to write; NULL = none */
} fl_baselines_how;

/* Print the default, the best static clock, the best clock per kind of kernel and the clairvoyant schedule of each
 * scene; of servers, the best static clock for each number of servers. */
fl_status fl_baselines_tell(fl_setup_options *o, const fl_baselines_how *how, fl_diag *d);

/* What `foldline run` prints of one run: the question, energy, time, clocks and limits, and what the policy saw; each
 * beside a run at the default clocks, in which nothing is set. */

typedef struct fl_run_told {
    const fl_scenes *scenes; /* the first is the one that was run */
    const fl_spec *spec;
    fl_run_result *result;
    const fl_run_result *standard; /* of the driver's default */
    const char *reader;            /* as asked for; NULL = none */
    const fl_texts *faults;
    double min_set_ms; /* 0 = no limit */
} fl_run_told;

/* Say how many commands of a policy had no effect, and why: the node lacks the control, or the command was faulty. */
void fl_put_lost_commands(uint64_t ignored, uint64_t faulty, FILE *out);
/* Return the result as JSON. The caller deletes it. Call it before fl_run_tell_text. */
cJSON *fl_run_json(const fl_run_told *t);
/* Sorts the result's residences. */
void fl_run_tell_text(const fl_run_told *t);

/* Many nodes under one budget. Boards, programs and seeds of the nodes differ by the seed. The budget is dealt out
 * once: equally, by the mean power that each node needs, or so that a cut slows all nodes about the same (sensitivity).
 * A node's share is its target where the policy reads target_w, else the power limits of its boards. */
typedef struct fl_nodes_how {
    const fl_scene_options *scene;
    const fl_texts *traces;
    int64_t nodes;
    double budget_w;
    const char *deal; /* equal, need or sensitivity */
    double every_ms;  /* between two points of the sum */
    unsigned threads;
    const char *timeline, *out; /* the sum over time, and the result as JSON; NULL = none */
    bool json;
} fl_nodes_how;

/* Run one policy on all nodes and print their sum. The result does not depend on the number of threads. FL_BAD_INPUT: a
 * board without a power limit, or a budget below what all boards take at least. */
fl_status fl_run_nodes(const fl_nodes_how *how, const fl_spec *spec, const fl_option *option, size_t count, fl_diag *d);
