/* The scenes of many programs files, one file after the other, as training data for the models of policies. */
#pragma once

#include "harness/input/scene.h"

/* Called for each scene, possibly several at once. index continues from file to file. The function must touch nothing
 * except what belongs to its index. */
typedef fl_status (*fl_fit_scene)(void *user, fl_scene *scene, size_t index, fl_diag *d);

/* Called before the scenes of a file: makes room for `count` more. */
typedef fl_status (*fl_fit_room)(void *user, size_t count, fl_diag *d);

/* Opens the scenes of each programs file, and of the sweep of *o where it has one, and frees them after use. match: a
 * shell pattern of the workloads to take; NULL: all. FL_BAD_INPUT where there is neither file nor sweep. */
fl_status fl_fit_scenes(const fl_scene_options *o, const char *match, const fl_texts *programs, unsigned threads,
                        fl_fit_room room, fl_fit_scene each, void *user, fl_diag *d);

/* The option row for `match`, for tables of options. */
#define FL_FIT_MATCH_OPTION(into)                                                                                      \
    { "match", "PATTERN", FL_OPTION_TEXT, into, 0, 0, "only workloads with such a name, as a shell pattern (all)" }
