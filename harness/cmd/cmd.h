/* The commands: finds the command of a name and calls it. main() calls fl_commands_open, then asks fl_command_run; for an unknown name it
 * prints fl_command_unknown, and without a name fl_usage.
 *
 * The table of commands is base/cli/commands.h. A command gets the arguments after its name, owns nothing of them, and
 * returns the exit status (base/cli/cli.h). */
#pragma once

#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>

/* Set the table of all commands. Call it before the other functions. */
void fl_commands_open(void);
/* Print the list of commands. */
void fl_usage(FILE *out);
#define FL_ABOUT "foldline replays recorded GPU kernel and power traces under clock policies: energy, makespan, regret."
#define FL_USAGE "foldline COMMAND [options]"
#define FL_MORE_HELP                                                                                                   \
    "foldline COMMAND --help shows the options used most, foldline COMMAND --help all everything; foldline help "      \
    "experiments the keys of an experiment; foldline --version (-V) which one this is."
/* Run the command argv[0] with the arguments after it. Return false if there is no such command. */
bool fl_command_run(int argc, char **argv, int *status);
/* Refuse a name that no command has, with the nearest one (FL_BAD_INPUT). */
fl_status fl_command_unknown(const char *name, fl_diag *d);
