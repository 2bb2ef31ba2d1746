/* MF-GPOEO as released, the course of one GPU: the length of a window, the database, memory clocks, the SM search, then
 * monitoring until the workload changes. */
#pragma once

#include "policies/mfgpoeo/window.h"

void fl_mfg_open(fl_mfg_gpu *g);

void fl_mfg_step(const fl_mfg_frame *f);
