/* What the files of harness/cmd share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>

/* The rows of all commands, as manual pages and completions want them: names and summaries, and each command's own
 * help, read by running it with --help. Who runs commands is handed in: the list of them stands above. */

/* Runs the command argv[0] with what follows; false where there is none of that name. */
typedef bool (*fl_command_runner)(int argc, char **argv, int *status);

/* The list of commands. */
void fl_pages_list(const fl_page *page);

/* What is made of the rows of all commands beside their help: manual pages, and completions of shells. */

/* Writes into the folder: man1/foldline.1 and one page per command, bash/foldline, zsh/_foldline. Makes what folders
 * are missing. FL_IO; what was written so far stays. */
fl_status fl_pages_write(const char *folder, fl_command_runner run, fl_diag *d);

/* What `foldline help` explains beside commands. */

extern const char *const fl_topics[]; /* fl_topics_count names */
extern const size_t fl_topics_count;

/* Prints a topic on the standard output. *known: whether it is one; then the status is that of printing it. */
fl_status fl_topic_print(const char *name, bool *known, fl_diag *d);
