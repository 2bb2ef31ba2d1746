/* Reads and writes canonical kernel traces and kinds files. Columns may come in any order. Required:
 * device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z. Optional:
 * launch_ns,host_thread,waits_for (row numbers from 0 joined by '+'),bytes,sm_mhz. Text is UTF-8, with RFC 4180
 * quoting. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

/* Fills *t or leaves it zeroed. Refuses: unknown version or column, torn rows, end before start, overlapping ops within
 * one device, process and stream, a kernel that starts before its launch, a wait for a later row, an empty trace. */
fl_status fl_kernels_read(const char *path, fl_kernel_trace *t, fl_diag *d);

/* Writes to `path` through a temporary file in the same folder and a rename, so that no reader sees an incomplete file.
 */
fl_status fl_kernels_write(const char *path, const fl_kernel_trace *t, fl_diag *d);

/* To build a trace in memory. Returns the index of the name or kind and adds it if it is new; UINT32_MAX when out of
 * memory. The cost is linear in the number of kinds, so use it for small sets; the reader interns through a hash of its
 * own. */
uint32_t fl_trace_add_kind(fl_kernel_trace *t, const char *name, const uint32_t grid[3], const uint32_t block[3]);
fl_status fl_trace_add_op(fl_kernel_trace *t, const fl_trace_op *op);

/* The op type that a name means; see fl_op_type. */
fl_op_type fl_op_type_of(const char *name);

/* Columns: name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz; head "# foldline-kinds 1". tc, tm, tl >= 0, not
 * all zero. */
fl_status fl_kinds_read(const char *path, fl_kinds *k, fl_diag *d);
fl_status fl_kinds_write(const char *path, const fl_kinds *k, fl_diag *d);
/* The load of a kernel name; the row "*" where the name has no row of its own; NULL where neither exists. */
const fl_kind_load *fl_kinds_find(const fl_kinds *k, const char *name);
/* The number of rows from `first` on that describe the phases of that kernel, in order: 1 where it has no phases. */
size_t fl_kinds_phases(const fl_kinds *k, const fl_kind_load *first);
