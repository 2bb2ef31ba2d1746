/* The client's end of the socket. Thin and without state of its own beyond one descriptor per thread, so that a client
 * killed anywhere leaves nothing half done; found anew after a fork, and after a program has closed it. */
#pragma once

#include "harness/emulate/client/protocol.h"

/* Asks and waits for the answer, signals blocked meanwhile; *answer takes head and bytes. -1 where no emulator answers.
 */
int fl_link_ask(fl_ask *ask, fl_answer *answer);
/* Whether a signal of this thread was delivered at the end of the last wait that ended by one. */
int fl_link_signalled(void);
/* Called after each answer, before the signals that came meanwhile are heard: their handlers are the program's own. */
void fl_link_when_answered(void (*f)(void));
/* Whether this signal has a handler here, or ends the process. */
int fl_link_hears(int number);
/* fl_link_ask without waiting for an answer. */
int fl_link_tell(fl_ask *ask);
