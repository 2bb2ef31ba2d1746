/* MF-GPOEO as released, one window: pauses, the idle gate, and the measurement itself. */
#pragma once

#include "policies/mfgpoeo/gpu.h"

/* Sets what of these gears does not hold yet; FL_MFG_DEFAULT: the driver's clock. */
void fl_mfg_set_clocks(const fl_mfg_frame *f, int32_t sm, int32_t mem);

void fl_mfg_set_records(const fl_mfg_frame *f, uint32_t on);

void fl_mfg_reset_limit(const fl_mfg_frame *f);

/* Begins what the plan says, in this step. */
void fl_mfg_begin(const fl_mfg_frame *f, fl_mfg_plan plan);

/* Goes on with it. Returns 1 in the step in which it ends; its totals then stand in f->g->window, its kernels in
 * f->g->data. A window without a kernel, or untraced without a sample, is repeated and pooled. */
int fl_mfg_advance(const fl_mfg_frame *f);

/* One kernel record of this GPU, before the step that it came with. */
void fl_mfg_record(fl_mfg_gpu *g, const fl_gpu_facts *facts, int64_t now_ns, const fl_kernel_kind *kind,
                   const fl_kernel_record *record);
