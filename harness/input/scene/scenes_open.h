/* Opens the scenes that the options ask for, of every kind of workload. */
#pragma once

#include "harness/input/scene/scene.h"

/* One scene per kernel trace, one per program, one per workload of the sweep, one of the pipeline and one of the
 * requests; all of them again for each draw. Resolves a copy of *o first. */
fl_status fl_scenes_open(const fl_scene_options *o, const fl_texts *traces, fl_scenes *scenes, fl_diag *d);
