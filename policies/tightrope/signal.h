/* tightrope: what the readings of a signal say of the work done: by records, by a counter, by ends of records. */
#pragma once

#include "policies/tightrope/work.h"

/* Nothing counts before settled_ns, no power before power_ns. */
void fl_tightrope_read(fl_tightrope_work *w, const fl_sample *sample, uint32_t gpu, int64_t power_ns);

/* 1: records show kernels beside each other. Their durations then depend on what runs beside them, and only their sum
 * tells the work: from fl_tightrope_weigh on each end counts by its kind. */
int fl_tightrope_overlap(const fl_tightrope_work *w);
void fl_tightrope_weigh(fl_tightrope_work *w);

/* 1: records show kernels beside each other too often to leave them out. */
int fl_tightrope_crowded(const fl_tightrope_work *w);
