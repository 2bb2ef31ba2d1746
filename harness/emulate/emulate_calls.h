/* One call of a client: whether it is refused, and what it is answered. */
#ifndef FL_EMULATE_CALLS_H
#define FL_EMULATE_CALLS_H

#include "harness/emulate/emulate_board.h"

/* Answers everything but sets and time. inits: how often the client's process has begun, counted here; *reading: a
 * sensor was read. */
void fl_calls_answer(fl_boards *all, uint32_t *inits, const fl_ask *q, fl_answer *out, bool *reading);
/* Events that have come, to the sets that hear of them. */
void fl_calls_look(fl_boards *all);
/* An error that was asked for, else that of a lost GPU or a bad handle, else NVML_SUCCESS. */
int32_t fl_calls_refused(const fl_boards *all, uint32_t inits, const fl_ask *q);
/* A set that is to be accepted without doing anything. */
bool fl_calls_without_effect(const fl_boards *all, const fl_ask *q);

#endif
