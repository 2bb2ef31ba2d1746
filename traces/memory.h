/* Whether memory has run out. Every failure is told as a status (fl_no_memory), but where one of many trials fails, or
 * a cell of a table, a status gets lost easily, and a result without it looks like any other. So the first failure is
 * noted for the whole process, and from then on no result takes its place (traces/writing.h) and the program ends with
 * an error. */
#ifndef FL_MEMORY_H
#define FL_MEMORY_H

#include <stdbool.h>

/* An allocation failed. The program's own call this (harness/base/memory.h). */
void fl_memory_lost(void);
bool fl_memory_failed(void);

#endif
