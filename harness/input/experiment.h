/* Experiments as files: what a comparison is about, in JSON, so that it can be run again.
 *
 * {"foldline_experiment": 1, "about": "...", "platform": "...", "gpus": 1, "traces": [...], "programs": "...",
 * "applications": {"drawn": 57, "seeds": [1, 2, 3]}, "seconds": 200, "sweep": "...", "model": "table", "workloads":
 * [...], "repeat": 1, "bound": 0.1 (or "10%"), "objective": "energy", "seed": 1, "seeds": 1, "kinds": "...", "assume":
 * "...", "policies": ["nvboost", {"policy": "assure", "set":
 * {"theta": 0.9}}]}
 *
 * "platforms": [...] in the place of "platform" runs everything on each. A parameter in "set" may be {"each": [0.8,
 * 0.9]},
 * {"from": 0.8, "to": 0.98, "step": 0.02} or {"from": 1e-3, "to": 10, "count": 5, "log": true}: one policy for each
 * value, and for each combination of values.
 *
 * Parts of the node: "wall": "ideal", "heat": true and so on (harness/input/node_choice.h). "variants": {"ideal wall":
 * {"wall": "ideal"}, ...} repeats every workload with those parts changed, beside the plain one; "oracles": false
 * leaves the references out, "static" all but the best static clock, which then costs little. "arrivals":
 * "poisson:rate=20,count=500", {"rate": 20, "count": 500, "seed": 1}, a list's path or {"file": "..."} makes every
 * workload serve requests (harness/input/arrivals_spec.h); a variant may have its own. An entry of "policies" may have
 * a "label" for its rows and "workloads", shell patterns of those it is for. "applications" in the place of "programs":
 * those of sim/synth_apps.h, drawn anew from each of the seeds. "published" and "assumed": see
 * harness/study/published.h.
 *
 * Paths are relative to the file. What the command line gives goes before what the experiment says. */
#ifndef FL_EXPERIMENT_H
#define FL_EXPERIMENT_H

#include "harness/base/json.h"
#include "harness/input/scene.h"
#include "harness/input/spec.h"

typedef struct fl_experiment {
    cJSON *tree;
    char *path;
    fl_texts platforms;
    char **owned; /* texts made from it, such as paths */
    size_t owned_count, owned_room;
} fl_experiment;

fl_status fl_experiment_open(const char *path, fl_experiment *e, fl_diag *d);
void fl_experiment_free(fl_experiment *e);

/* Of what a command line names: what ends in .json is the experiment, of which *e (zeroed) is opened; the rest are
 * traces. FL_BAD_INPUT where there are two. */
fl_status fl_experiment_find(const fl_texts *rest, fl_experiment *e, fl_texts *traces, fl_diag *d);

/* Fills what is still unset (NULL, 0, INFINITY) and the experiment says; every text lives as long as *e.
 * Policies: fl_experiment_specs. */
fl_status fl_experiment_apply(fl_experiment *e, fl_scene_options *so, fl_texts *traces, double *bound,
                              const char **objective, int64_t *seeds, fl_diag *d);

/* "applications": how many are drawn, and from which seeds. *count 0 where there is no such key. The caller frees
 * *seed. */
fl_status fl_experiment_applications(const fl_experiment *e, int64_t *drawn, int64_t **seed, size_t *count, fl_diag *d);

/* Keeps a malloc'd text for the life of the experiment; frees it on failure. */
fl_status fl_experiment_keep(fl_experiment *e, char *text, fl_diag *d);
/* A path of the experiment, seen from where the program runs. */
fl_status fl_experiment_path(fl_experiment *e, const char *path, const char **out, fl_diag *d);
/* The specs of "policies", one for each combination of their parameters' values; none where there is no such key. To be
 * freed, each and the array, also where it fails: *count are open. Adds to *texts how the command line would say each.
 * Those texts and the patterns of workloads live as long as *e. */
fl_status fl_experiment_specs(fl_experiment *e, fl_spec **spec, size_t *count, fl_texts *texts, fl_diag *d);

/* True where "arrivals", of the experiment or a variant, are drawn: other seeds are other scenes. */
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
/* True where the experiment asks for a distribution replay ("draws": see harness/study/draws_compare.h). */
bool fl_experiment_draws(const fl_experiment *e);
#define FL_DRAWS_KEYS "step_ms", "energy_cv", "ratio", "ratio_exponent", "ratio_cv", "steps_max", "one_seed"
/* Which references a comparison solves: "oracles". */
typedef enum fl_oracles { FL_ORACLES_NONE, FL_ORACLES_STATIC, FL_ORACLES_ALL } fl_oracles;
fl_status fl_experiment_oracles(const fl_experiment *e, fl_oracles *which, fl_diag *d);

#endif
