#include "traces/io/memory.h"

#include <stdatomic.h>

static atomic_bool failed;

void fl_memory_lost(void) { failed = true; }

bool fl_memory_failed(void) { return failed; }
