/* Iteration markers that the program's threads passed, put where they belong in a trace of what its GPUs ran. A trace
 * has each marker as an op of a stream, so a marker goes into the busiest stream of its device and process, behind the
 * op that ran when it was passed. The host runs ahead of the GPU: the n-th interval between markers is that of the n-th
 * iteration only where it waits for the GPU in each, as training that reads its loss does. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

typedef struct fl_trace_mark {
    int64_t time_ns;
    int32_t device, process;
} fl_trace_mark;

typedef struct fl_trace_marks { /* plain zero: none */
    fl_trace_mark *mark;
    size_t count, room;
} fl_trace_marks;

fl_status fl_trace_marks_add(fl_trace_marks *m, int64_t time_ns, int32_t device, int32_t process, fl_diag *d);
/* Adds an op [iteration] for each of them; where a process ran nothing on the device, it has none. */
fl_status fl_trace_marks_place(fl_trace_marks *m, fl_kernel_trace *t, fl_diag *d);
void fl_trace_marks_free(fl_trace_marks *m);
