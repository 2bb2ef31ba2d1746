/* The commands of the program, one file each, and what they share: exit status and how errors are told. */
#ifndef FL_COMMANDS_H
#define FL_COMMANDS_H

#include "harness/args.h"

enum { FL_EXIT_OK = 0, FL_EXIT_GATE = 1, FL_EXIT_USAGE = 2, FL_EXIT_SYSTEM = 3 };

/* "foldline COMMAND: file:line:column: message" on stderr; the exit status that belongs to it. */
int fl_report(const char *command, const fl_diag *d);

typedef int (*fl_command_function)(int argc, char **argv); /* after the command's name */

int fl_cmd_run(int argc, char **argv);
int fl_cmd_compare(int argc, char **argv);
int fl_cmd_sweep(int argc, char **argv);
int fl_cmd_merge(int argc, char **argv);
int fl_cmd_search(int argc, char **argv);
int fl_cmd_regress(int argc, char **argv);
int fl_cmd_oracle(int argc, char **argv);
int fl_cmd_replay(int argc, char **argv);
int fl_cmd_synth(int argc, char **argv);
int fl_cmd_policies(int argc, char **argv);
int fl_cmd_platforms(int argc, char **argv);
int fl_cmd_fit(int argc, char **argv);
int fl_cmd_import(int argc, char **argv);
int fl_cmd_trace(int argc, char **argv);
int fl_cmd_report(int argc, char **argv);
int fl_cmd_plot(int argc, char **argv);
int fl_cmd_bench(int argc, char **argv);

/* Parses a command's options and answers --help. True when the command has to go on; else *status is its exit status.
 */
bool fl_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count, fl_texts *rest,
              int *status);

#endif
