/* Scenes of kernels: of a trace, or of what a program expands to; and how a scene is built again. */
#pragma once

#include "harness/input/scene/scene.h"

/* What a workload is built of: kernels that were read or made. */
typedef struct fl_scene_origin {
    fl_imported in;
    const fl_kinds *kinds;  /* of the set, or read before; NULL: the scene's source names them, or there are none */
    const fl_programs *set; /* where the kernels are those of a program: its place in the set, seed and length */
    size_t index;
    uint64_t seed;
    double seconds;
    fl_cache_key key;
    bool known; /* key is that of in */
} fl_scene_origin;
void fl_scene_origin_free(fl_scene_origin *from);

/* Adds the scene of a file in any format that has kernels. The platform supplies what the format does not carry. */
fl_status fl_scenes_from_trace(const fl_scene_options *o, const char *path, fl_scenes *all, fl_diag *d);
/* Fills a scene from kernels that were read or made. */
fl_status fl_scene_from_kernels(const fl_scene_options *o, fl_scene *s, const char *name, const fl_head *head,
                                fl_scene_origin *from, fl_diag *d);
/* Keeps with the scene what is needed to build it again. set: NULL for a trace. */
fl_status fl_scene_make_again(fl_scene *s, const fl_scene_options *o, fl_program_set *set, size_t index, fl_diag *d);
const fl_kinds *fl_program_set_kinds(const fl_program_set *set); /* NULL: it has none */

/* Builds a scene that was given back, as it was; nothing where it is built. Any number of scenes at once. FL_BAD_INPUT
 * where its trace is no longer the one that was read first: what was said of it would be said of another. */
fl_status fl_scene_build(fl_scene *s, fl_diag *d);
/* The kinds file of a trace: as given; as the head names it, relative to the trace; or TRACE.kinds.csv beside
 * TRACE.csv. The caller frees it. NULL: there is none. */
char *fl_scene_kinds_path(const char *given, const char *trace, const fl_head *head);
