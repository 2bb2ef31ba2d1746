/* A plan by instruction becomes the table of a policy: in the order in which each rank of a scene's pipeline comes to
 * its instructions. */
#pragma once

#include "harness/input/scene/scene.h"
#include "harness/input/policy/spec.h"

typedef struct fl_laid {
    fl_layer layer; /* one table, over the spec's own layer; empty where the spec has no plan */
    fl_setting setting;
    fl_table table;
} fl_laid;

/* Fills *l, which is to be freed and stay where it is while its layer is in use, for a spec on a scene. NULL for the
 * scene: where nothing has a pipeline. FL_BAD_INPUT where there is none to lay the plan out, where the plan does not
 * fit it, and where it asks for a clock that the GPU does not have; at the plan's line where one is to blame. */
fl_status fl_plan_lay(const fl_spec *spec, const fl_scene *scene, fl_laid *l, fl_diag *d);
void fl_laid_free(fl_laid *l);
