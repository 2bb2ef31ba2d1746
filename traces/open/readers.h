/* The readers, one row each. This table declares them, and traces/open/readers.c lists them. The first reader that detects a
 * file reads it. */
#pragma once

#include "traces/import/import.h"

/* X(ident): its file defines fl_reader_ident. */
#define FL_READERS(X)                                                                                                  \
    X(kernels)                                                                                                         \
    X(telemetry)                                                                                                       \
    X(sweep)                                                                                                           \
    X(requests)                                                                                                        \
    X(nsys_sqlite)                                                                                                     \
    X(kineto)                                                                                                          \
    X(nsys_csv)                                                                                                        \
    X(rocprofv3)                                                                                                       \
    X(nvidia_smi)                                                                                                      \
    X(dcgmi)                                                                                                           \
    X(geopm)                                                                                                           \
    X(geepafs)                                                                                                         \
    X(dvfs)                                                                                                            \
    X(profile)                                                                                                         \
    X(zeus)                                                                                                            \
    X(azure_llm)                                                                                                       \
    X(wide)

#define FL_READER_DECLARE(ident) extern const fl_reader fl_reader_##ident;
FL_READERS(FL_READER_DECLARE)
