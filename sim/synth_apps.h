/* Synthetic applications for MF-GPOEO's evaluation (Model-Free GPU Online Energy Optimization, Section V), from one
 * seed: 17 whose best static clocks are those of Table V, as nearly as the device allows, and more over the same range.
 *
 * The paper publishes for each application of AIBench the SM gear and memory clock of least energy within 5 % of
 * slowdown, for some how much they lose at the lowest memory clocks, and for all under which power cap they do best;
 * not their kernels. So the shape of an application (kinds, lengths, grids, phases, streams, gaps) is drawn, and the
 * shares of its kernels that depend on the clocks are solved for the published clocks: no policy takes part in that. */
#ifndef FL_SYNTH_APPS_H
#define FL_SYNTH_APPS_H

#include "models/device.h"
#include "traces/programs.h"

typedef enum fl_app_shape {
    FL_APP_STEADY,  /* one loop of few kinds, of like lengths */
    FL_APP_MIXED,   /* one loop; lengths from microseconds to tens of milliseconds */
    FL_APP_GRIDS,   /* two parts that take turns with the same kernels on other grids */
    FL_APP_PHASED,  /* parts that take turns every few seconds, of many short and of few long kernels */
    FL_APP_STREAMS, /* several streams side by side */
    FL_APP_SHAPES
} fl_app_shape;

typedef struct fl_app_target {
    const char *name;
    int gear;       /* SM clock 210 + 15 gear MHz: Table V, "Oracle" */
    double mem_mhz; /* Table V, "Oracle" */
    double cap_w;   /* Table V, power cap "Oracle"; taken as the mean power at those clocks; 0 = drawn */
    fl_app_shape shape;
    double rate;           /* kernels per second, mean over parts: assumed */
    double loss_mhz, loss; /* published slowdown at that memory clock and the top SM clock, as a share; 0 = none */
} fl_app_target;

#define FL_APP_GEAR_MHZ(gear) (210 + 15 * (gear))
#define FL_APPS_PUBLISHED 17 /* the first 14 are Table V */
extern const fl_app_target fl_apps_published[FL_APPS_PUBLISHED];

/* Programs of 1500 s each, at the default clocks of dev, and their kinds: the 17, then `drawn` ones called gnn_01,
 * gnn_02, ... Both zeroed first, and left zeroed on failure. FL_BAD_INPUT for a device without the paper's clocks. */
fl_status fl_synth_apps(const fl_device *dev, uint32_t drawn, uint64_t seed, fl_programs *p, fl_kinds *k, fl_diag *d);

#endif
