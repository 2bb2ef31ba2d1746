/* What becomes of a held system call in virtual time. The thread has the token. The call is answered here, or goes on
 * in the kernel, or blocks. */
#pragma once

#include "harness/emulate/virtual/held.h"

/* One step of the call of a thread that has the token. */
void fl_held_step(fl_token *token, fl_turn *t);
/* What a signal that its last call sent means for the others. */
void fl_held_settle(fl_token *token, fl_turn *t);
