/* A line on standard error for work that takes over a second, where that is a terminal: share done and time left, in
 * one place, gone at the end. Logs and pipes never see it. */
#ifndef FL_TICKER_H
#define FL_TICKER_H

#include <signal.h>

/* From now on, until fl_ticker_stop, pieces of work (traces/stage.h) are shown under the command's name. Standard
 * output, where it too is a terminal, is then kept back until the end, so that the two do not mix. */
void fl_ticker_start(const char *command);
/* Takes the line away for good; nothing where there is none. */
void fl_ticker_stop(void);
/* Takes it away for now: whoever writes to standard error calls it first. */
void fl_ticker_clear(void);

extern volatile sig_atomic_t fl_ticker_shown; /* for a signal handler: a line is there */
#define FL_TICKER_AWAY "\r\033[K"             /* what takes it away */

#endif
