/* NVIDIA GPUs through NVML, opened at run time, with own declarations of the calls that Foldline makes and without an
 * SDK. The back end reads signals, ladders and limits; it sets locked clocks and power limits. */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

/* Open the GPUs of a list (see fl_gpus_listed); close them with fl_gpus_close. FL_HARDWARE: no library, no driver or no
 * GPU, or a GPU of the list does not answer. FL_BAD_INPUT: a name of the list matches no GPU. With missing, the
 * function opens the GPUs that answer, and *missing says which were left out (fl_gpus_gather). */
fl_status fl_nvml_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
