/* Finds the entries of a correlation id in a host log, once the log is sorted. */
#pragma once

#include "traces/profiler/host_log.h"

/* Sorts calls and details by correlation id, then time, in place. */
void fl_host_log_sort(fl_host_log *log);

/* The earliest entry of that correlation id, or NULL. */
const fl_host_call *fl_host_find_call(const fl_host_log *log, uint32_t correlation);
const fl_sync_detail *fl_host_find_detail(const fl_host_log *log, uint32_t correlation);
