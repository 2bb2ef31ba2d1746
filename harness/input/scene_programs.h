/* Scenes of programs: of a file, or drawn. */
#ifndef FL_SCENE_PROGRAMS_H
#define FL_SCENE_PROGRAMS_H

#include "harness/input/scene.h"

fl_status fl_scenes_from_programs(const fl_scene_options *o, fl_scenes *all, fl_diag *d);

#endif
