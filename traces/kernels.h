/* Canonical kernel traces and kinds files, read and written. Columns may stand in any order; required:
 * device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z; optional:
 * launch_ns,host_thread,waits_for (row numbers from 0 joined by '+'),bytes,sm_mhz. Text is UTF-8, RFC 4180 quoting. */
#ifndef FL_KERNELS_H
#define FL_KERNELS_H

#include "traces/diag.h"
#include "traces/records.h"

/* Fills *t or leaves it zeroed. Refuses: unknown version or column, torn rows, end before start, overlapping ops within
 * one device, process and stream, a kernel that starts before its launch, a wait for a later row, an empty trace. */
fl_status fl_kernels_read(const char *path, fl_kernel_trace *t, fl_diag *d);

/* Writes to `path` through a temporary file in the same folder and a rename, so that no reader sees half a file. */
fl_status fl_kernels_write(const char *path, const fl_kernel_trace *t, fl_diag *d);

/* Building a trace in memory. The index of the name or kind, added when new; UINT32_MAX when out of memory. Linear in
 * the number of kinds: for small sets; the reader interns through a hash of its own. */
uint32_t fl_trace_add_kind(fl_kernel_trace *t, const char *name, const uint32_t grid[3], const uint32_t block[3]);
fl_status fl_trace_add_op(fl_kernel_trace *t, const fl_trace_op *op);

/* The type that a name stands for; see fl_op_type. */
fl_op_type fl_op_type_of(const char *name);

/* name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz; head "# foldline-kinds 1". tc, tm, tl >= 0, not all
 * zero. */
fl_status fl_kinds_read(const char *path, fl_kinds *k, fl_diag *d);
fl_status fl_kinds_write(const char *path, const fl_kinds *k, fl_diag *d);
/* The load of a kernel name, "*" if there is no own row, NULL if there is none at all. */
const fl_kind_load *fl_kinds_find(const fl_kinds *k, const char *name);
/* How many rows from `first` on describe the phases of that one kernel, in order: 1 where it has no phases. */
size_t fl_kinds_phases(const fl_kinds *k, const fl_kind_load *first);

#endif
