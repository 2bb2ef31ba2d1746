/* When a device had kernels: the union of their spans over all streams, and how much of it lies before a time. */
#ifndef FL_ACTIVITY_H
#define FL_ACTIVITY_H

#include "traces/diag.h"
#include "traces/records.h"

typedef struct fl_activity {
    int64_t *start_ns, *end_ns; /* count spans, ascending, apart from one another */
    int64_t *before_ns;         /* busy time before each span */
    size_t count;
    int64_t busy_ns; /* of all */
} fl_activity;

/* Of the ops of that type (fl_op_type) on that device. FL_NO_MEMORY; the struct is freed by the caller in any case. */
fl_status fl_activity_make(fl_activity *a, const fl_kernel_trace *t, int32_t device, int type);

/* Busy time before t_ns: piecewise linear, 0 before the first span, busy_ns after the last. */
double fl_activity_until(const fl_activity *a, double t_ns);
/* Distinct devices of the ops in ascending order, the first `room` that appear; their number. */
size_t fl_activity_devices(const fl_kernel_trace *t, int32_t *device, size_t room);

void fl_activity_free(fl_activity *a);

#endif
