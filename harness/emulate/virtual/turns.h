/* Handles the requests of a session's threads to virtual time (emulate_token.h), and their ends. */
#pragma once

#include "harness/emulate/virtual/token.h"

/* The command is about to start: it gets the token. */
void fl_turns_command(fl_token *token, pid_t command);
/* One request (FL_TIME_...). */
void fl_turns_ask(fl_token *token, fl_conn *c, const fl_ask *q);
/* A set call makes the running thread sleep for the length of the call. A reading adds its time to the thread's debt.
 */
void fl_turns_set(fl_token *token, fl_conn *c, const fl_ask *q);
void fl_turns_read(fl_token *token, uint32_t gpu);
/* The thread waits for an action of others, until a time. again: it has looked in vain; outside: for a descriptor. */
void fl_turns_wait(fl_token *token, fl_turn *t, int64_t until_ns, bool again, bool outside);
void fl_turns_hung_up(fl_token *token, const fl_conn *c);
/* A signal was sent to a process: the result must not depend on its speed. */
void fl_turns_signalled(fl_token *token, pid_t pid, int number);
void fl_turns_died(fl_token *token, pid_t pid, pid_t parent);
