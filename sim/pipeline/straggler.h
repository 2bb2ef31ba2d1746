/* A rank that computes slower than it was measured: a board that is hot, or worn, or shares its host. */
#pragma once

#include "traces/pipeline/pipeline.h"

/* The same pipeline, but that each forward and backward of `rank` takes `factor` (above 0) times as long at the same
 * power. The caller frees *out. FL_BAD_INPUT where there is no such rank. */
fl_status fl_pipeline_slowed(const fl_pipeline *p, uint32_t rank, double factor, fl_pipeline *out, fl_diag *d);
