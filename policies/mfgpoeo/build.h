/* MF-GPOEO as released, courses 1 to 3: the program's start is waited out, the length of a window is found, and the
 * database of the default clocks is measured. */
#pragma once

#include "policies/mfgpoeo/gpu.h"

void fl_mfg_start_build(const fl_mfg_frame *f);

/* The window of one of the stages up to FL_MFG_REPEAT has ended. Returns 1 where the database stands; else the next
 * window has begun. */
int fl_mfg_end_build(const fl_mfg_frame *f);
