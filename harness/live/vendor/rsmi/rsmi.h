/* AMD's ROCm SMI library, opened at run time, with own declarations of the calls that Foldline makes and without an
 * SDK.
 *
 * Names of symbols, codes, layouts and units are those of rocm_smi.h of ROCm 5.2, and of ROCm 6 where that differs.
 * (Debian's librocm-smi-dev 5.2.3 has the same; tests/live/test_vendor_headers.c compares them where it is installed.)
 * Listed clocks are in Hz, set ranges in MHz, power in uW, temperatures in thousandths of a degree Celsius. */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

/* Signals that ROCm SMI has calls for. */
#define FL_RSMI_READS                                                                                                  \
    (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |       \
     FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_TEMP_C))

/* Open the AMD GPUs of a list: signals, clocks and limits, clock ranges or sets of allowed clocks, power caps. Unproven
 * on hardware. list, missing and errors as in fl_nvml_host_open: FL_HARDWARE without library, driver or GPU. */
fl_status fl_rsmi_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
