/* Sensors of one simulated GPU: from the true course to what software reads. Policies see these; scores use the truth.
 *
 * Lazy: a window's mean is the difference of two integrals, so a sensor only asks for boundaries at the start and the
 * end of the windows that somebody will read. Before time 0 the GPU is taken to have idled at its first clocks. */
#pragma once

#include "sim/gpu/gpu.h"

typedef struct fl_sense fl_sense;

/* The signals that each sensor gives: FL_BIT(FL_GPU_...). */
extern const uint64_t fl_sense_signals[FL_SENSOR_COUNT];

/* needs: FL_BIT(FL_GPU_...) of the signals somebody reads. */
fl_status fl_sense_open(fl_sense **out, const fl_gpu *g, uint64_t needs, uint64_t seed, fl_diag *d);
void fl_sense_close(fl_sense *s);

/* The next instant at which this GPU must be at a boundary, given that nobody reads before read_ps; > now.
 * FL_TIME_NEVER when there is none. begins: windows only begin there, so that no boundary is needed where the sums of
 * then are known. */
int64_t fl_sense_next(fl_sense *s, int64_t now_ps, int64_t read_ps, bool *begins);

/* The GPU has been charged up to t: take what windows begin or end there. */
void fl_sense_at(fl_sense *s, const fl_gpu *g, int64_t t);

/* Whether of the sums at which windows begin only busy_ps is wanted. */
bool fl_sense_busy_only(const fl_sense *s);

/* As fl_sense_at where windows only begin, of a GPU whose sums are *sums then. */
void fl_sense_begin(fl_sense *s, const fl_sums *sums, int64_t t);

/* What software reads at t. Fresh = refreshed since the last call with remember set. */
void fl_sense_read(fl_sense *s, const fl_gpu *g, int64_t t, bool remember, fl_gpu_sample *out);
