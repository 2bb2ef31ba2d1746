/* The power law of power-capping Eq. 2, extended by the memory clock, idle memory and the idle clock tree. */
#pragma once

#include "models/laws/device.h"

#define FL_POWER_MAX_MW 2.0e9 /* 2 MW: the engine's 32-bit milliwatts hold it with room to add parts */

typedef struct fl_base { /* power of a GPU with an open context, whether or not a kernel runs */
    int32_t static_mw;   /* C V */
    int32_t memory_mw;   /* B0(m) */
    int32_t tree_mw;     /* A0 V^2 f */
    int32_t total_mw;    /* their sum */
} fl_base;

fl_model_status fl_base_make(const fl_device *dev, double sm_mhz, double mem_mhz, fl_base *base);

/* Watts by the law, unrounded: *sm_w = alpha A V^2 f, *memory_w = beta B m/m_ref (power-capping Eq. 2). */
fl_model_status fl_power_dynamic(const fl_device *dev, double alpha, double beta, double sm_mhz, double mem_mhz,
                                 double *sm_w, double *memory_w);
