/* A thread that requests the collected records at a steady period. CUPTI's own period returns only full buffers
 * (cuptiActivityFlushPeriod), so a program that is killed would lose the rest. cuptiActivityFlushAll(0) returns all
 * complete records, and its documentation allows a thread of one's own. There is one such thread per process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Calls flush(0) every `ms`. The thread blocks all of the program's signals. False: no thread could be created. */
bool fl_flusher_start(int (*flush)(uint32_t flag), unsigned ms);
/* Ends the thread. False where it did not end within a second: it is stuck in flush, and any caller of flush would be
 * stuck too. */
bool fl_flusher_stop(void);
