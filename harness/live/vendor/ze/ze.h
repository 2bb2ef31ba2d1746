/* Intel's Level Zero, System Resource Management (Sysman), opened at run time, with own declarations of the calls that
 * Foldline makes and without an SDK.
 *
 * Names of symbols, codes, layouts and units are those of the oneAPI Level Zero specification 1.8. (zes_api.h and
 * ze_api.h of Debian's libze-dev 1.8.12 have the same; tests/live/test_vendor_headers.c compares them where they are
 * installed.) Clocks are in MHz, power in mW, energy in uJ, times in us, temperatures in degrees Celsius. */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

/* Signals that Sysman has calls for. */
#define FL_ZE_READS                                                                                                    \
    (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |       \
     FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS) | FL_BIT(FL_GPU_DRAM_BYTES) | FL_BIT(FL_GPU_SM_MHZ) |          \
     FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_TEMP_C) | FL_BIT(FL_GPU_THROTTLE))

/* Open the Intel GPUs of a list: signals, ladders and limits, clock ranges, sustained power limits. Unproven on
 * hardware. list, missing and errors as in fl_nvml_host_open: FL_HARDWARE without library, driver or GPU. */
fl_status fl_ze_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
