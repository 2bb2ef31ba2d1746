/* MF-GPOEO, the framework of one GPU (Algorithms 2 and 7): baseline, memory clocks by trial, SM clocks by the
 * controller, then monitoring until the workload changes. */
#pragma once

#include "policies/mfgpaper_gpu.h"
#include "policies/mfgpaper_search.h"

void fl_mfp_open(fl_mfp_gpu *g, const fl_mfp_params *p);

/* One kernel record of this GPU, before the step that takes it. */
void fl_mfp_record(fl_mfp_gpu *g, const fl_gpu_facts *facts, const fl_kernel_kind *kind,
                   const fl_kernel_record *record);

void fl_mfp_step(fl_mfp_gpu *g, const fl_mfp_params *p, const fl_gpu_facts *facts, const fl_gpu_sample *sample,
                 int64_t time_ns, uint32_t gpu, fl_command *command);
