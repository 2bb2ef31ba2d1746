/* What all commands share: exit statuses, how an error is told, and how the options of a command are read. */
#ifndef FL_COMMAND_H
#define FL_COMMAND_H

#include "harness/base/args.h"

enum { FL_EXIT_OK = 0, FL_EXIT_GATE = 1, FL_EXIT_USAGE = 2, FL_EXIT_SYSTEM = 3 };

extern const char *fl_command_name; /* which one runs; NULL before its options are read */

/* Prints "foldline COMMAND: file:line:column: message" on stderr; command may be NULL. Returns the exit status that
 * belongs to the error: FL_EXIT_USAGE for bad input, else FL_EXIT_SYSTEM. */
int fl_command_fail(const char *command, const fl_diag *d);

/* Parses a command's options and answers --help. Returns true when the command has to go on; else *status is its exit
 * status, and nothing is left to free. */
bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status);
/* Frees what it parsed: the rest, and the lists among the options. */
void fl_command_end(const fl_option *option, size_t count, fl_texts *rest);

#endif
