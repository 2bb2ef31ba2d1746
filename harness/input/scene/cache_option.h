/* --no-cache: nothing is kept beside big traces, and what is there is not used (traces/open/trace_open.h). */
#pragma once

#include "harness/base/cli/args.h"

/* clang-format off */
#define FL_CACHE_OPTION(into)                                                                                          \
    {"no-cache", NULL, FL_OPTION_FLAG, into, 0, 0,                                                                     \
     "neither writes nor uses the FILE.foldline-cache beside big traces"}
/* clang-format on */
