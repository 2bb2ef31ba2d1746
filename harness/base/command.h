/* What all commands share: exit statuses, how an error is told, and how the options of a command are read. */
#ifndef FL_COMMAND_H
#define FL_COMMAND_H

#include "harness/base/args.h"

enum { FL_EXIT_OK = 0, FL_EXIT_GATE = 1, FL_EXIT_USAGE = 2, FL_EXIT_SYSTEM = 3 };
#define FL_EXIT_STATUSES "0 done; 1 a gate did not hold; 2 bad usage or input; 3 hardware or system refused."

extern const char *fl_command_name; /* which one runs; NULL before its options are read */

/* Where it is set, --help hands a command's rows to it and prints nothing: manual pages and completions are made of the
 * same rows as the help (harness/cmd/pages.c). */
typedef struct fl_command_reader {
    void (*take)(void *to, const fl_command_help *help, const fl_option *option, size_t count);
    void *to;
} fl_command_reader;
extern const fl_command_reader *fl_command_read_by;

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
