/* From servers that have done all to what is told of them. Internal to sim/. */
#pragma once

#include "sim/serving/inside.h"

/* Fills *r from servers whose requests are all done; takes their per-request array over. node_fj: the whole node's
 * energy, score_j: what scores use. *r may be freed also on failure. FL_MODEL_FAULT where the requests' energies are
 * not those of the steps, a request has no end, or a KV block or a token got lost: a fault of the simulator. */
fl_status fl_served_collect(fl_engines *v, int64_t makespan_ps, fl_wide node_fj, double score_j, fl_served_result *r,
                            fl_diag *d);
