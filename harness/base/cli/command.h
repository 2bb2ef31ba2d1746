/* Shared by all commands: exit statuses, the form of an error message, and the parsing of options. */
#pragma once

#include "harness/base/cli/args.h"

enum { FL_EXIT_OK = 0, FL_EXIT_GATE = 1, FL_EXIT_USAGE = 2, FL_EXIT_SYSTEM = 3 };
#define FL_EXIT_STATUSES "0 done; 1 a gate did not hold; 2 bad usage or input; 3 hardware or system refused."

extern const char *fl_command_name; /* name of the running command; NULL before its options are parsed */

/* Where it is set, --help passes a command's rows to it and prints nothing: manual pages and completions use the same
 * rows as the help (harness/cmd/pages.c). */
typedef struct fl_command_reader {
    void (*take)(void *to, const fl_command_help *help, const fl_option *option, size_t count);
    void *to;
} fl_command_reader;
extern const fl_command_reader *fl_command_read_by;

/* Prints "foldline COMMAND: file:line:column: message" on stderr; command may be NULL. Returns the exit status for the
 * error: FL_EXIT_USAGE for bad input, else FL_EXIT_SYSTEM. */
int fl_command_fail(const char *command, const fl_diag *d);

/* Parses a command's options and answers --help. Returns true if the command has to continue. Otherwise *status is its
 * exit status, and nothing is left to free. */
bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status);
/* Frees the parsed arguments: the rest, and the lists among the options. */
void fl_command_end(const fl_option *option, size_t count, fl_texts *rest);
/* The end of a command without an exit status of its own: says why it failed, if it did, and frees the parsed
 * arguments. Returns the exit status. */
int fl_command_close(const char *command, fl_status s, const fl_diag *d, const fl_option *option, size_t count,
                     fl_texts *rest);
