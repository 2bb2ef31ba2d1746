/* A chip made up for tests of fits and predictions: two memory clocks, V(f) flat and then rising, stalls, and a prior
 * of loads, all in round numbers. */
#pragma once

#include "models/chip/chip.h"

#include <math.h>

/* From 500 to 1300 MHz, without link, workloads and settings; errors of 1 % that scatter and 2 % that are smooth, that
 * grow with no distance. A test sets what it needs otherwise. */
static inline fl_chip made_up_chip(void) {
    fl_chip chip = {.sm_ref = 1300,
                    .mem_ref = 800,
                    .sm_min = 500,
                    .mem_min = 400,
                    .sharpness = 4,
                    .knots = 3,
                    .knot_mhz = {500, 900, 1300},
                    .volt = {1, 1, 1.3},
                    .mems = 2,
                    .mem_mhz = {400, 800},
                    .b0_w = {12, 20},
                    .a_w = 70,
                    .a0_w = 8,
                    .b_w = 45,
                    .c_w = 15,
                    .stall = 0.4,
                    .stall_memory = 0.3,
                    .load_mean = {0.6, 0.4},
                    .load_cov = {0.04, -0.01, 0.03},
                    .has_power = 1};
    chip.time_error = chip.power_error =
        (fl_chip_error){.scatter = 0.01, .smooth = 0.02, .length_sm = 0.3, .length_mem = 0.6};
    return chip;
}
