/* Set calls. Under wall time one keeps its caller for a while and is made at its end, unless the caller dies before. */
#ifndef FL_EMULATE_SETS_H
#define FL_EMULATE_SETS_H

#include "harness/emulate/emulate_board.h"
#include "harness/emulate/emulate_conns.h"

typedef struct fl_sets {
    fl_boards *boards;
    fl_conns *conns;
    struct fl_delayed *delayed; /* calls that still keep their callers, the next to end first */
} fl_sets;

/* False where the call was refused, and answered so. */
bool fl_sets_allowed(fl_sets *s, fl_conn *c, const fl_ask *q);
/* The call ends now: made, audited, answered. */
void fl_sets_make(fl_sets *s, fl_conn *c, const fl_ask *q);
/* The call ends later. */
void fl_sets_delay(fl_sets *s, fl_conn *c, const fl_ask *q);
/* When the next delayed call ends, ns of the session; INT64_MAX where there is none. */
int64_t fl_sets_next_ns(const fl_sets *s);
/* Makes those that have ended by now_ns; before each the dead are buried. */
void fl_sets_end(fl_sets *s, fl_peers *peers, int64_t now_ns);
/* The caller has gone: its calls are never made. */
void fl_sets_forget(fl_sets *s, const fl_conn *c);

#endif
