/* A thread that asks for what was collected at a steady period. CUPTI's own period gives back full buffers only
 * (cuptiActivityFlushPeriod), a program that is killed would keep the rest; cuptiActivityFlushAll(0) gives back all
 * that are complete, and its documentation allows for a thread of its own. One for a process. */
#ifndef FL_LIVE_FLUSHER_H
#define FL_LIVE_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>

/* Calls flush(0) every `ms`. The thread takes none of the program's signals. False: no thread could be had. */
bool fl_flusher_start(int (*flush)(uint32_t flag), unsigned ms);
/* Ends it. False where it did not end within a second: it is stuck in flush, and who calls that would be too. */
bool fl_flusher_stop(void);

#endif
