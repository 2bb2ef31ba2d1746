/* The scenes of many programs files, one file after the other, as training data for the models of policies. */
#pragma once

#include "harness/input/scene/scene.h"

/* Called for each scene, possibly several at once. index continues from file to file. The function must touch nothing
 * except what belongs to its index. */
typedef fl_status (*fl_fit_scene)(void *user, fl_scene *scene, size_t index, fl_diag *d);

enum { FL_FIT_HELD_OUT = 5 }; /* every fifth program serves only as a test */

/* Opens the scenes of each programs file, and of the sweep of *o where it has one, and frees them after use. match: a
 * shell pattern of the workloads to take; NULL: all. items: where the array of what is known of each scene begins, of
 * `size` bytes each, all 0 before its scene; *count, 0 at first, becomes their number, and the caller frees the array.
 * FL_BAD_INPUT where there is neither file nor sweep, or fewer scenes than FL_FIT_HELD_OUT. */
fl_status fl_fit_scenes(const fl_scene_options *o, const char *match, const fl_texts *programs, unsigned threads,
                        void *items, size_t size, size_t *count, fl_fit_scene each, void *user, fl_diag *d);
