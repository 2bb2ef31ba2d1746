/* Memory that is read here and there: in pages of 2 MiB where the system has them, so that finding a page costs less.
 * Internal to sim/. */
#pragma once

#include <stddef.h>

/* bytes > 0, at a multiple of 64 at least; not zeroed. free() it. NULL: no memory. */
void *fl_huge_alloc(size_t bytes);
/* Asks for large pages for memory from malloc, before or after it is written. What begins or ends within such a page
 * stays as it is. */
void fl_huge_ask(void *at, size_t bytes);
/* Moves memory that is written already into large pages at once, where the system can; its bytes stay as they are. */
void fl_huge_gather(const void *at, size_t bytes);
