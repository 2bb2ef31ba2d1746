/* When a device ran kernels: the union of their spans over all streams, and how much of it lies before a given time. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

typedef struct fl_activity {
    int64_t *start_ns, *end_ns; /* count spans, ascending and disjoint */
    int64_t *before_ns;         /* busy time before each span */
    size_t count;
    int64_t busy_ns; /* busy time of all spans */
} fl_activity;

/* The activity of the ops of one type (fl_op_type) on one device. FL_NO_MEMORY on failure; the caller frees the struct
 * in any case. */
fl_status fl_activity_make(fl_activity *a, const fl_kernel_trace *t, int32_t device, int type);

/* Busy time before t_ns: piecewise linear, 0 before the first span, busy_ns after the last. */
double fl_activity_until(const fl_activity *a, double t_ns);
/* Writes the distinct devices of the ops in ascending order. Where there are more than `room`, it keeps the first
 * `room` that appear. Returns how many it wrote. */
size_t fl_activity_devices(const fl_kernel_trace *t, int32_t *device, size_t room);

void fl_activity_free(fl_activity *a);
