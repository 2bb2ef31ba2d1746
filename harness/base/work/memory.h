/* The program's allocations: it notes each that fails (traces/io/memory.h). The linker redirects the allocations of our
 * own code here (--wrap, CMakeLists.txt), in the program alone. cJSON, which silently drops a key for which it finds no
 * memory, is told to allocate here too. */
#pragma once

#include "traces/io/memory.h"

/* Call it once, before a second thread starts or cJSON allocates. */
void fl_memory_watch(void);
