/* What the files of harness/cmd share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>

/* The rows of all commands, for manual pages and completions: names and summaries, and each command's own help, read by
 * running it with --help. The caller passes the function that runs commands. */

/* Runs the command argv[0] with the arguments after it; false if there is no such command. */
typedef bool (*fl_command_runner)(int argc, char **argv, int *status);

/* Prints the list of commands. */
void fl_pages_list(const fl_page *page);

/* Writes into the folder: man1/foldline.1 and one page per command, bash/foldline, zsh/_foldline. Makes what folders
 * are missing. FL_IO; what was written so far stays. */
fl_status fl_pages_write(const char *folder, fl_command_runner run, fl_diag *d);

/* The topics of `foldline help`. */

extern const char *const fl_topics[]; /* fl_topics_count names */
extern const size_t fl_topics_count;

/* Prints a topic on the standard output. *known: there is such a topic; the status is then that of printing it. */
fl_status fl_topic_print(const char *name, bool *known, fl_diag *d);
