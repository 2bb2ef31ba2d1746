/* MF-GPOEO, the framework of one GPU (Algorithms 2 and 7): baseline, memory clocks by trial, SM clocks by the
 * controller, then monitoring until the workload changes. */
#ifndef FL_MFGPOEO_FRAME_H
#define FL_MFGPOEO_FRAME_H

#include "policies/mfgpoeo_gpu.h"
#include "policies/mfgpoeo_search.h"

void fl_mfg_open(fl_mfg_gpu *g, const fl_mfg_params *p);

/* One kernel record of this GPU, before the step that takes it. */
void fl_mfg_record(fl_mfg_gpu *g, const fl_mfg_params *p, const fl_gpu_facts *facts, const fl_kernel_kind *kind,
                   const fl_kernel_record *record);

void fl_mfg_step(fl_mfg_gpu *g, const fl_mfg_params *p, const fl_gpu_facts *facts, const fl_gpu_sample *sample,
                 int64_t time_ns, uint32_t gpu, fl_command *command);

#endif
