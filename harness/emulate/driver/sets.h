/* Set calls. Under wall time a set blocks its caller for a while and takes effect at its end, unless the caller dies
 * before. */
#pragma once

#include "harness/emulate/driver/board.h"
#include "harness/emulate/driver/conns.h"

typedef struct fl_sets {
    fl_boards *boards;
    fl_conns *conns;
    struct fl_delayed *delayed; /* calls that still block their callers, the next one to end first */
} fl_sets;

/* False where the call was refused; the refusal has been sent. */
bool fl_sets_allowed(fl_sets *s, fl_conn *c, const fl_ask *q);
/* Ends the call now: makes the set, audits it and answers. */
void fl_sets_make(fl_sets *s, fl_conn *c, const fl_ask *q);
/* Schedules the end of the call. */
void fl_sets_delay(fl_sets *s, fl_conn *c, const fl_ask *q);
/* When the next delayed call ends, ns of the session; INT64_MAX where there is none. */
int64_t fl_sets_next_ns(const fl_sets *s);
/* Makes the calls that have ended by now_ns; before each it handles dead clients. */
void fl_sets_end(fl_sets *s, fl_peers *peers, int64_t now_ns);
/* Drops the calls of a caller that has ended: they are never made. */
void fl_sets_forget(fl_sets *s, const fl_conn *c);
