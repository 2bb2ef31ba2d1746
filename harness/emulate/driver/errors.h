/* Errors on request: which calls fail, on which GPU, and when. */
#pragma once

#include "traces/io/diag.h"

typedef struct fl_refusal {
    int32_t result; /* an nvmlReturn_t; NVML_SUCCESS: a set is accepted, and changes nothing */
    int32_t gpu;    /* -1 = every */
    char call[64];  /* pattern of function names; empty = all of one GPU */
    int64_t from_ns, until_ns;
} fl_refusal;

/* Parses "no-permission", "lost:gpu=1,from_s=5", "not-supported:call=nvmlDeviceGetPowerUsage", ... FL_BAD_INPUT says
 * what was expected. */
fl_status fl_refusal_parse(const char *text, fl_refusal *out, fl_diag *d);
#define FL_REFUSAL_HELP                                                                                                \
    "answers with no-permission, not-supported, lost, timeout, driver-gone, in-use or unknown, or takes sets "         \
    "without-effect; then :gpu=,call=,from_s=,for_s= (may be repeated)"
