/* Experiments as files: what a comparison is about, in JSON, so that it can be run again. `foldline help experiment`
 * says which keys there are: the rows of harness/input/experiment/keys.c.
 *
 * A parameter in "set" may be {"each": [0.8, 0.9]}, {"from": 0.8, "to": 0.98, "step": 0.02} or {"from": 1e-3, "to": 10,
 * "count": 5, "log": true}: one policy for each value, and for each combination of values. "variants": {"ideal wall":
 * {"wall": "ideal"}, ...} repeats every workload with those parts changed, beside the plain one.
 *
 * Paths are relative to the file. What the command line gives goes before what the experiment says. */
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
    char **owned; /* texts made from it, such as paths */
    size_t owned_count, owned_room;
} fl_experiment;

fl_status fl_experiment_open(const char *path, fl_experiment *e, fl_diag *d);
void fl_experiment_free(fl_experiment *e);

/* By its name, FILE.json; "-" by what comes. */
bool fl_is_experiment(const char *path);
/* Of what a command line names: the experiment, of which *e (zeroed) is opened; the rest are traces. FL_BAD_INPUT where
 * there are two. */
fl_status fl_experiment_find(const fl_texts *rest, fl_experiment *e, fl_texts *traces, fl_diag *d);

/* Fills what is still unset (NULL, 0) and the experiment says; every text lives as long as *e.
 * Policies: fl_experiment_specs; bounds: harness/study/trial/trial.h. */
fl_status fl_experiment_apply(fl_experiment *e, fl_scene_options *so, fl_texts *traces, const char **objective,
                              int64_t *seeds, fl_diag *d);

/* "applications": how many are drawn, and from which seeds. *count 0 where there is no such key. The caller frees
 * *seed. */
fl_status fl_experiment_applications(const fl_experiment *e, int64_t *drawn, int64_t **seed, size_t *count, fl_diag *d);

/* The specs of "policies", one for each combination of their parameters' values; none where there is no such key. To be
 * freed, each and the array, also where it fails: *count are open. Adds to *texts how the command line would say each.
 * Those texts and the patterns of workloads live as long as *e. */
fl_status fl_experiment_specs(fl_experiment *e, fl_spec **spec, size_t *count, fl_texts *texts, fl_diag *d);

/* True where "arrivals" or the jitter of a sweep, of the experiment or a variant, are drawn: other seeds are other
 * scenes. */
bool fl_experiment_redraws(fl_experiment *e, const fl_scene_options *so);
/* Opens the scenes of the experiment: the plain ones, then those of each variant. With no experiment (tree NULL) just
 * the plain ones. *variants: how many there were. */
fl_status fl_experiment_scenes(fl_experiment *e, const fl_scene_options *so, const fl_texts *traces, fl_scenes *scenes,
                               size_t *variants, fl_diag *d);
/* "positions" of the clairvoyant schedule, where *positions is still 0. */
fl_status fl_experiment_positions(const fl_experiment *e, int64_t *positions, fl_diag *d);
#define FL_POWER_WINDOW_NS INT64_C(15000000) /* power-capping reads its meter so often */
/* "power_window_ms" in ns: windows of the power statistics; FL_POWER_WINDOW_NS where the experiment says nothing. */
fl_status fl_experiment_window(const fl_experiment *e, int64_t *window_ns, fl_diag *d);
/* True where the experiment asks for a distribution replay ("draws": see harness/study/compare/compare.h). */
bool fl_experiment_draws(const fl_experiment *e);
/* Which references a comparison solves: "oracles". */
typedef enum fl_oracles { FL_ORACLES_NONE, FL_ORACLES_STATIC, FL_ORACLES_ALL } fl_oracles;
fl_status fl_experiment_oracles(const fl_experiment *e, fl_oracles *which, fl_diag *d);

/* The keys of an experiment. fl_experiment_open holds a file against these rows before anything reads it; `foldline
 * help experiment` prints them, and harness/experiment.schema.json is made of them. A new key is a row here and the
 * line that reads it. */

extern const fl_keys fl_experiment_keys;
