/* Units of one kind of GPU are not alike: seeded differences of V(f) and of leakage. */
#pragma once

#include "models/laws/device.h"
#include "traces/io/diag.h"

/* Gives every GPU of the node a device of its own: V(f) x (1 + v_sigma n), C and leakage x (1 + leak_sigma n), n drawn
 * from a normal distribution cut at three standard deviations, by the seed and the GPU's index alone. Once per node. */
fl_status fl_node_vary(fl_node_spec *node, uint64_t seed, fl_diag *d);
