/* Scenes of programs: of a file, or drawn. */
#pragma once

#include "harness/input/scene/scene.h"

fl_status fl_scenes_from_programs(const fl_scene_options *o, fl_scenes *all, fl_diag *d);
