/* Sweeps over SM clocks for foldline fit sweetspot, from a measured table or simulated at every clock. */
#pragma once

#include "harness/input/scene/scene.h"
#include "models/math/slope.h"

typedef struct fl_spot { /* one workload */
    char *name;
    fl_slope_point *point; /* clock, time and power of the GPUs are set; clocks ascend */
    size_t count, room;
    fl_sweet_spot choice;
} fl_spot;

typedef struct fl_spots {
    fl_spot *item;
    size_t count, room;
} fl_spots;

/* Adds the workloads of a sweep file as they were measured; `only`: names of workloads, none = all. Uses the rows of
 * one memory clock (mem_mhz; 0 = each workload's highest) at the highest power limit there; an absent limit counts as
 * the highest. A workload of several kernels is the sequence of these, at the clocks where all were measured; repeated
 * rows are averaged. */
fl_status fl_spots_measured(const char *path, const fl_texts *only, double mem_mhz, fl_spots *all, fl_diag *d);

/* Adds one workload for each scene, run at every SM clock. mem_mhz: 0 = the default memory clock. threads: see
 * fl_pool_run. */
fl_status fl_spots_simulated(const fl_scenes *scenes, double mem_mhz, unsigned threads, fl_spots *all, fl_diag *d);

void fl_spots_free(fl_spots *all);
