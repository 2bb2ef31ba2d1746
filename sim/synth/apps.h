/* Synthetic applications for MF-GPOEO's evaluation (Model-Free GPU Online Energy Optimization, Section V), from one
 * seed: 17 whose best static clocks are those of Table V, as nearly as the device allows, and more over the same range.
 *
 * The paper publishes for each application of AIBench the SM gear and memory clock of least energy within 5 % of
 * slowdown, for some how much they lose at the lowest memory clocks, and for all under which power cap they do best;
 * not their kernels. So the shape of an application (kinds, lengths, grids, phases, streams, gaps) is drawn, and the
 * shares of its kernels that depend on the clocks are solved for the published clocks: no policy takes part in that. */
#pragma once

#include "models/laws/device.h"
#include "sim/synth/app_target.h"
#include "traces/files/programs.h"

#define FL_APPS_PUBLISHED 17 /* the first 14 are Table V */
extern const fl_app_target fl_apps_published[FL_APPS_PUBLISHED];

/* Programs of 1500 s each, at the default clocks of dev, and their kinds: the 17, then `drawn` ones called gnn_01,
 * gnn_02, ... Both zeroed first, and left zeroed on failure. FL_BAD_INPUT for a device without the paper's clocks. */
fl_status fl_synth_apps(const fl_device *dev, uint32_t drawn, uint64_t seed, fl_programs *p, fl_kinds *k, fl_diag *d);
