/* A progress line on standard error for work that takes over a second, where standard error is a terminal. It shows the
 * share done and the time left, in one place, and disappears at the end. Logs and pipes never see it. */
#pragma once

#include <signal.h>

/* Until fl_ticker_stop, the ticker shows pieces of work (traces/io/stage.h) under the command's name. Where standard
 * output is a terminal too, it is held back until the end, so that the two do not mix. */
void fl_ticker_start(const char *command);
/* Removes the line for good; does nothing where there is none. */
void fl_ticker_stop(void);
/* Removes the line for the moment. Any code that writes to standard error calls it first. */
void fl_ticker_clear(void);

extern volatile sig_atomic_t fl_ticker_shown; /* for a signal handler: a line is visible */
#define FL_TICKER_AWAY "\r\033[K"             /* the sequence that removes it */
