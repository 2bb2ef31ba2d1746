/* A telemetry file over time: a series per device, and the share of time at each clock. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

typedef struct fl_share { /* of all time of all devices */
    double low, high;     /* MHz; equal where it is one clock */
    double share;         /* 0..1 */
} fl_share;

enum { FL_SHARES_MAX = 24 }; /* more distinct clocks than this are grouped into classes */

/* Index of a signal, SIZE_MAX where the file does not have it. */
size_t fl_signal_index(const fl_telemetry *t, const char *name);

/* Residency of the SM clock, ascending; list is malloc'd. A row's clock holds from the previous row to this one, as
 * foldline run --timeline writes it. FL_BAD_INPUT where there is no sm_mhz. */
fl_status fl_residency(const fl_telemetry *t, const char *path, fl_share **list, size_t *count, fl_diag *d);
