/* What a signal of a GPU can be, by its unit: a driver that answers with all ones, or in another unit, tells the policy
 * nothing. The bounds are far from anything that a healthy sensor shows. */
#pragma once

#include "sim/instance/guard.h"

/* Of every signal of that GPU, from its facts: into the guard, which makes what is beyond them invalid and counts it.
 */
void fl_bounds_set(fl_guard *guard, uint32_t gpu, const fl_gpu_facts *facts);

/* "power_w 3, temp_c 1" over all GPUs into text; how many in all. */
uint64_t fl_bounds_tell(const fl_guard *guard, uint32_t gpus, char *text, size_t size);
