/* Applications for the comparison, drawn from a seed. What is drawn is fixed here and knows no result. */
#pragma once

#include "models/laws/device.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

/* A workload of a few minutes on GPU 0 of `device`, recorded at its default clocks. The caller frees it with
 * fl_workload_free. The text says what was drawn. */
fl_status ref_draw(uint64_t seed, const fl_device *device, fl_workload **out, char *text, size_t size, fl_diag *d);
