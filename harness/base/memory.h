/* The program's allocations: each that fails is noted (traces/memory.h). The linker leads those of our own code here
 * (--wrap, CMakeLists.txt), in the program alone; cJSON, which goes on without the key that found no memory, is told to
 * come here. */
#ifndef FL_BASE_MEMORY_H
#define FL_BASE_MEMORY_H

#include "traces/memory.h"

/* Once, before there is a second thread or anything of cJSON's. */
void fl_memory_watch(void);

#endif
