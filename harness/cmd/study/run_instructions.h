/* The instructions of a pipeline over time, as a CSV for a Gantt chart. */
#pragma once

#include "harness/input/scene/scene.h"
#include "sim/node/run.h"

/* Makes the run once more, which is the same run, and writes what each rank did to `path`, rank by rank in order of
 * time: rank,what,chunk,microbatch,start_s,end_s,sm_mhz,power_w. what: forward, backward, load, load_in_recv, transfer,
 * end (reductions and step), meeting (of tensor-parallel ranks), and wait: the other side of a transfer, meeting or
 * reduction has not come yet. sm_mhz and power_w are means over the row, from the truth each FL_INSTRUCTIONS_EVERY_NS.
 * FL_BAD_INPUT where the scene is no pipeline. */
fl_status fl_run_instructions(const fl_scene *scene, const fl_run_options *run, const char *path, fl_diag *d);

#define FL_INSTRUCTIONS_EVERY_NS INT64_C(1000000)
