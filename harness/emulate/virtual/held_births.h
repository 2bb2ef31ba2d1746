/* Held calls that begin or end threads and programs. */
#pragma once

#include "harness/emulate/virtual/held.h"

void fl_held_bear(fl_token *token, fl_turn *t);
/* Its next call is here: where what it began does not exist, it could not be begun (too many processes, refused flags).
 */
void fl_held_missed(fl_token *token, fl_turn *t);
/* It has its own memory from here on, or has ended: who lent it is ready. */
void fl_held_give_back(fl_token *token, fl_turn *t);
/* The end of a thread that is not its process's. */
void fl_held_end(fl_token *token, fl_turn *t);
