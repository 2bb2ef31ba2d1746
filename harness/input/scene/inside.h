/* What the files of harness/input/scene share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "sim/instance/instance.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the arrivals. draw: 0, 1, ...: each draw has other arrivals, but a list stays the same. The caller frees *a. */
fl_status fl_arrivals_make(const fl_arrivals_spec *spec, uint64_t run_seed, uint64_t draw, fl_arrivals *a, fl_diag *d);

/* Checks the choice. FL_BAD_INPUT: a server without requests or the reverse, an option that does nothing without them,
 * an unknown route, a target that is not a time, or a share without targets. */
fl_status fl_serving_choice_check(const fl_serving_choice *c, fl_diag *d);

/* Reads the files of a checked choice. The caller frees *out with fl_serving_scene_free, also after a failure.
 * FL_BAD_INPUT with file and line. */
fl_status fl_serving_scene_open(const fl_serving_choice *c, fl_serving_scene **out, fl_diag *d);
void fl_serving_scene_free(fl_serving_scene *s); /* takes NULL */

/* GPUs of all servers together. */
uint32_t fl_serving_scene_gpus(const fl_serving_scene *s);

/* Adds an empty scene. fl_scenes_free frees it, also where a later step fails. */
fl_status fl_scene_add(fl_scenes *all, const char *source, fl_scene **s, fl_diag *d);
/* The steps that all scenes share, once the workload and the platform are there: requests, names, ladders, rates and
 * facts. */
fl_status fl_scene_complete(fl_scene *s, const fl_scene_options *o, fl_diag *d);
/* Gives the workload the requests that --arrivals asks for. */
fl_status fl_scene_serve(fl_scene *s, const fl_scene_options *o, fl_diag *d);
/* True where `only` lists the name, or lists nothing. */
bool fl_scene_wanted(const fl_texts *only, const char *name);
/* FL_BAD_INPUT where `only` lists a name that is none of names[index[0..count)]. */
fl_status fl_scene_check_wanted(const fl_texts *only, const char *path, char *const *names, const uint32_t *index,
                                size_t count, fl_diag *d);
/* Ends one scene's use of the set. The last user frees it. Accepts NULL. */
void fl_program_set_leave(fl_program_set *set);

/* Parses one fault. FL_BAD_INPUT with the text and what was expected; for an unknown name it offers the nearest.
 * fl_faults_open checks later whether the node has such a GPU. */
fl_status fl_fault_spec_parse(const char *text, fl_fault *out, fl_diag *d);

/* The kernels that a workload is built of, read or made, and where they come from. */
typedef struct fl_scene_origin {
    fl_imported in;
    const fl_kinds *kinds;  /* kernel classes known already; NULL: the scene's source names them, or there are none */
    const fl_programs *set; /* the set of the program that the kernels come from; NULL: a trace. With it: */
    size_t index;           /* the program's place in the set */
    uint64_t seed;
    double seconds;
    fl_cache_key key;
    bool known; /* key belongs to `in` */
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

/* A sweep as a source of scenes: replayed from its rows or, with --model fitted, from a fit's predictions for the whole
 * ladder (harness/chip/chip.h). */

typedef struct fl_sweep_model {
    const char *path; /* borrowed */
    fl_sweep sweep;
    fl_left_out left; /* of its file */
    uint32_t *names;  /* count: indices of the workloads' names */
    size_t count;
    size_t clockless; /* rows left out because they have no SM clock, where others have one */
    bool fitted;
    fl_diag twice;       /* rows of one setting contradict each other; status FL_OK: none do */
    fl_sweep_chip chip;  /* of --model fitted */
    fl_sweep_chip plain; /* gives memory's shares of the times; chip NULL: they are not known */
} fl_sweep_model;

/* model: "table" or "fitted"; platform: as asked for. */
fl_status fl_sweep_model_open(const char *path, const char *model, const char *platform, fl_sweep_model *m, fl_diag *d);
void fl_sweep_model_free(fl_sweep_model *m);

/* Builds the workload names[i] for the node, and states how sure the model is of it. Adds notes on what was assumed. */
fl_status fl_sweep_model_build(const fl_sweep_model *m, size_t i, const fl_node_spec *node,
                               const fl_sweep_replay *replay, fl_workload **w, fl_stated *stated, char ***note,
                               size_t *notes, fl_diag *d);
