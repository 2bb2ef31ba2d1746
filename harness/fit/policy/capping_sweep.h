/* The measurements that foldline fit capping needs, taken on the simulated node in the same way as power-capping 3.2.2
 * takes them on a real one. */
#pragma once

#include "harness/input/scene/scene.h"
#include "traces/io/records.h"

/* The parts of a run that Eq. 1 distinguishes; in a sweep the column kernel names the part of a row. power_w is the
 * node power above P_static during the part, time_s the part's length in the whole run. sm_mhz is the clock of the
 * active processor: the GPU's in rows "gpu", the CPU's in rows "cpu". The row "static" holds P_static: the node at
 * rest, less its idle board. */
#define FL_CAPPING_GPU "gpu"
#define FL_CAPPING_CPU "cpu"
#define FL_CAPPING_COMM "comm"
#define FL_CAPPING_STATIC "static"
/* Workloads that are not applications: the benchmarks of step one and those of the "preliminary power measurement". */
#define FL_CAPPING_MEMORY "memory-bound"
#define FL_CAPPING_COMPUTE "compute-bound"
#define FL_CAPPING_CPU_MEMORY "cpu-memory-bound"
#define FL_CAPPING_CPU_COMPUTE "cpu-compute-bound"
#define FL_CAPPING_REST "rest"
#define FL_CAPPING_COPIES "copies"

/* Runs every scene at each SM clock (the system chooses the CPU clock) and at each CPU clock (the GPU at its highest).
 * Power is that of a meter without error: the simulated truth, in pieces of 1 ms that belong to one part alone. One of
 * the scenes must be the workload rest. Fills *out or leaves it zeroed. */
fl_status fl_capping_measure(const fl_scenes *scenes, fl_sweep *out, fl_diag *d);
