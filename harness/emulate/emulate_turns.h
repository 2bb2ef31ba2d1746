/* What a session's threads ask of virtual time (emulate_token.h), and what becomes of them. */
#ifndef FL_EMULATE_TURNS_H
#define FL_EMULATE_TURNS_H

#include "harness/emulate/emulate_token.h"

/* The command is about to begin: it has the token. */
void fl_turns_command(fl_token *token, pid_t command);
/* One request (FL_TIME_...). */
void fl_turns_ask(fl_token *token, fl_conn *c, const fl_ask *q);
/* A set call of the thread whose turn it is: it sleeps for the call. A reading: its time is owed. */
void fl_turns_set(fl_token *token, fl_conn *c, const fl_ask *q);
void fl_turns_read(fl_token *token, uint32_t gpu);
void fl_turns_hung_up(fl_token *token, const fl_conn *c);
/* A signal has gone to a process: what follows does not depend on how fast that is. */
void fl_turns_signalled(fl_token *token, pid_t pid, int number);
void fl_turns_died(fl_token *token, pid_t pid, pid_t parent);

#endif
