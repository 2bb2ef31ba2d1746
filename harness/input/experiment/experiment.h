/* Experiments as JSON files: platforms, workloads, policies, bounds and gates of a comparison, so that it can be run
 * again.
 *
 * Call fl_experiment_find on the arguments of a command, then fl_experiment_apply, which fills in what the command line
 * left out. fl_experiment_specs and fl_experiment_scenes open the policies and the scenes. The experiment owns the tree
 * and all texts; whatever was filled in lives as long as it. Errors are FL_BAD_INPUT with file, line, column and key.
 * `foldline help experiment` lists the keys, which are the rows of harness/input/experiment/keys.c.
 *
 * A parameter in "set" may be {"each": [0.8, 0.9]}, {"from": 0.8, "to": 0.98, "step": 0.02} or {"from": 1e-3, "to": 10,
 * "count": 5, "log": true}: one policy for each value, and for each combination of values. "variants": {"ideal wall":
 * {"wall": "ideal"}, ...} repeats every workload with those parts changed, beside the plain one.
 *
 * Paths are relative to the file. The command line overrides the experiment. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_experiment {
    cJSON *tree;
    char *path;
    fl_texts platforms;
    char **owned; /* texts made from the tree, such as paths */
    size_t owned_count, owned_room;
} fl_experiment;

/* Read and check the file. FL_BAD_INPUT: no such file, invalid JSON, or a key that does not fit. */
fl_status fl_experiment_open(const char *path, fl_experiment *e, fl_diag *d);
void fl_experiment_free(fl_experiment *e);

/* Return true if the file is an experiment: it has "foldline_experiment", or it is a FILE.json that no reader knows. */
bool fl_is_experiment(const char *path);
/* Open the experiment among the arguments, if there is one, into *e (zeroed). All other arguments are traces.
 * FL_BAD_INPUT: two experiments. */
fl_status fl_experiment_find(const fl_texts *rest, fl_experiment *e, fl_texts *traces, fl_diag *d);

/* Fill in every option that is still unset (NULL, 0) and that the experiment states. Texts live as long as *e. Policies
 * come from fl_experiment_specs, bounds from harness/study/trial/trial.h. */
fl_status fl_experiment_apply(fl_experiment *e, fl_scene_options *so, fl_texts *traces, const char **objective,
                              int64_t *seeds, fl_diag *d);

/* Read "applications": the number of drawn ones, and their seeds. *count is 0 without that key. The caller frees *seed.
 */
fl_status fl_experiment_applications(const fl_experiment *e, int64_t *drawn, int64_t **seed, size_t *count, fl_diag *d);

/* Open the specs of the command line, or without any those of "policies", one for each combination of their parameters'
 * values. own: texts of --policy, in which p=A/B means two values of a parameter that takes one. Add to *texts the
 * command-line form of each spec. The caller frees each spec and the array, also after a failure, when *count of them
 * are open. Texts and workload patterns live as long as *e. */
fl_status fl_experiment_specs(fl_experiment *e, const fl_texts *own, fl_spec **spec, size_t *count, fl_texts *texts,
                              fl_diag *d);

/* Return true if the experiment or one of its variants draws "arrivals" or the jitter of a sweep. Each seed then has
 * scenes of its own. */
bool fl_experiment_redraws(fl_experiment *e, const fl_scene_options *so);
/* Open the scenes of the experiment: the plain ones, then those of each variant. Without an experiment (tree NULL) open
 * only the plain ones. *variants: the number of variants. */
fl_status fl_experiment_scenes(fl_experiment *e, const fl_scene_options *so, const fl_texts *traces, fl_scenes *scenes,
                               size_t *variants, fl_diag *d);
/* Read "positions" of the clairvoyant schedule, if *positions is still 0. */
fl_status fl_experiment_positions(const fl_experiment *e, int64_t *positions, fl_diag *d);
#define FL_POWER_WINDOW_NS INT64_C(15000000) /* the period at which the power capping policies read their meter */
/* Read "power_window_ms", the window of the power statistics, in ns. The default is FL_POWER_WINDOW_NS. */
fl_status fl_experiment_window(const fl_experiment *e, int64_t *window_ns, fl_diag *d);
/* Return true if the experiment asks for a distribution replay ("draws", see harness/study/compare/compare.h). */
bool fl_experiment_draws(const fl_experiment *e);
/* The references that a comparison solves: the key "oracles". */
typedef enum fl_oracles { FL_ORACLES_NONE, FL_ORACLES_STATIC, FL_ORACLES_ALL } fl_oracles;
fl_status fl_experiment_oracles(const fl_experiment *e, fl_oracles *which, fl_diag *d);

/* The keys of an experiment. fl_experiment_open checks a file against these rows before anything reads it. `foldline
 * help experiment` prints them, and harness/experiment.schema.json is made of them. A new key is a row in keys.c and
 * the line that reads it. */

extern const fl_keys fl_experiment_keys;
