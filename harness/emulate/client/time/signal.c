/* Calls are handed over by SIGSYS (time_raw.c): a handler of the program's own must not take its place, and no handler
 * may block it while it runs, or the next call that is handed over would end the program. */
#include "harness/emulate/client/time/raw.h"

#include "harness/emulate/client/real.h"
#include "harness/emulate/client/time/core.h"

#include <string.h>

FL_SHOWN int sigaction(int number, const struct sigaction *restrict a, struct sigaction *restrict old) {
    struct sigaction own;
    if (!fl_time_on())
        return REAL(sigaction)(number, a, old);
    if (number == SIGSYS && fl_raw_handler(a, old))
        return 0;
    if (!a)
        return REAL(sigaction)(number, NULL, old);
    own = *a;
    sigdelset(&own.sa_mask, SIGSYS);
    return REAL(sigaction)(number, &own, old);
}

FL_SHOWN sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction a, old;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = SA_RESTART;
    return fl_time_on() && number == SIGSYS && fl_raw_handler(&a, &old) ? old.sa_handler
                                                                        : REAL(signal)(number, handler);
}
