/* What a synthetic application is made for: the best static clocks that MF-GPOEO, Table V, publishes of it. */
#pragma once

#include <stdint.h>

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
    double rate;           /* kernels per second, mean over parts: assumed; where `kinds` is published, it follows from
                              their lengths */
    double loss_mhz, loss; /* published slowdown at that memory clock and the top SM clock, as a share; 0 = none */
    uint32_t kinds;        /* of kernels, of an application that is phased: published; 0 = few, drawn */
} fl_app_target;

#define FL_APP_GEAR_MHZ(gear) (210 + 15 * (gear))
