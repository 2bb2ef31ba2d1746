/* MODULE harness/cmd */
#pragma once

#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>

/* The list of commands (harness/cmd/help.c). */
void fl_usage(FILE *out);
#define FL_ABOUT "foldline replays recorded GPU kernel and power traces under clock policies: energy, makespan, regret."
#define FL_USAGE "foldline COMMAND [options]"
#define FL_MORE_HELP                                                                                                   \
    "foldline COMMAND --help says everything about one of them, foldline help experiments everything about the keys "  \
    "of an experiment; foldline --version (-V) which one this is."
/* Runs the command argv[0] with what follows; false where there is none of that name. */
bool fl_command_run(int argc, char **argv, int *status);
/* FL_BAD_INPUT: "unknown WHAT 'NAME'", with the nearest command, or topic of help. */
fl_status fl_command_unknown(const char *what, const char *name, bool topics, fl_diag *d);
