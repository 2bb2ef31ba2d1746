/* One call of a client: whether it is refused, and its answer. */
#pragma once

#include "harness/emulate/driver/board.h"

/* Answers every request except sets and time. inits: how often the client's process has initialised NVML, counted here.
 * *reading: a sensor was read. */
void fl_calls_answer(fl_boards *all, uint32_t *inits, const fl_ask *q, fl_answer *out, bool *reading);
/* Delivers new events to the sets that are registered for them. */
void fl_calls_look(fl_boards *all);
/* A requested error, else the error of a lost GPU or a bad handle, else NVML_SUCCESS. */
int32_t fl_calls_refused(const fl_boards *all, uint32_t inits, const fl_ask *q);
/* Whether a set must be accepted without any effect. */
bool fl_calls_without_effect(const fl_boards *all, const fl_ask *q);
