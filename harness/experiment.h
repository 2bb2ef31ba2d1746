/* Experiments as files: what a comparison is about, in JSON, so that it can be run again.
 *
 * {"foldline_experiment": 1, "about": "...", "platform": "...", "gpus": 1, "traces": [...], "sweep": "...", "model":
 * "table", "workloads": [...], "repeat": 1, "bound": 0.1, "objective": "energy", "seed": 1, "seeds": 1, "kinds": "...",
 * "assume": "...", "policies": ["nvboost", {"policy": "assure", "set": {"theta": 0.9}}]}
 *
 * Paths are relative to the file. What the command line gives goes before what the experiment says. */
#ifndef FL_EXPERIMENT_H
#define FL_EXPERIMENT_H

#include "harness/json.h"
#include "harness/scene.h"

typedef struct fl_experiment {
    cJSON *tree;
    char *path;
    char **owned; /* texts made from it: paths, policy specs */
    size_t owned_count, owned_room;
} fl_experiment;

fl_status fl_experiment_open(const char *path, fl_experiment *e, fl_diag *d);
void fl_experiment_free(fl_experiment *e);

/* Fills what is still unset; every text lives as long as *e. */
fl_status fl_experiment_apply(fl_experiment *e, fl_scene_options *so, fl_texts *traces, fl_texts *policies,
                              double *bound, const char **objective, int64_t *seeds, fl_diag *d);

#endif
