/* Held calls that wait for descriptors: whether they would block is asked of copies of the descriptors. */
#pragma once

#include "harness/emulate/virtual/held.h"

/* When a call of the kind of poll, select or epoll_wait is late: 0 or the error. none: it does not wait. */
int fl_held_io_until(const fl_turn *t, int64_t now_ns, int64_t *until_ns, bool *none);
/* Whether it names more descriptors than are looked at here. */
bool fl_held_io_many(const fl_turn *t);
/* Whether the call brings a mask of signals of its own. */
bool fl_held_io_masked(const fl_turn *t, uint64_t *mask);
/* The call is about to be over: tells the thread how much of its time is left. */
void fl_held_io_left(const fl_turn *t, int64_t now_ns);
/* Whether the call is over: answered, or gone on in the kernel, where it does not block. */
bool fl_held_io_look(fl_token *token, fl_turn *t);
/* It is late: nothing was ready. */
void fl_held_io_late(const fl_turn *t);
bool fl_held_io_readable(fl_token *token, const fl_turn *t, int fd);
