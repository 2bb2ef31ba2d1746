/* Whether memory has run out. Every failure is reported as a status (fl_no_memory). But where one of many trials fails,
 * or one cell of a table, the status is easily lost, and a result without it looks like any other. Therefore the first
 * failure is noted for the whole process. From then on no result file takes its place (traces/io/writing.h), and the
 * program ends with an error. */
#pragma once

#include <stdbool.h>

/* Notes that an allocation failed. The program's own allocations call it (harness/base/work/memory.h). */
void fl_memory_lost(void);
bool fl_memory_failed(void);
