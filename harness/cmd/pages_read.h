/* The rows of all commands, as manual pages and completions want them: names and summaries, and each command's own
 * help, read by running it with --help. Who runs commands is handed in: the list of them stands above. */
#pragma once

#include "harness/base/cli/command.h"
#include "harness/base/cli/page.h"
#include "harness/base/cli/commands.h"
#include "harness/base/cli/fit.h"

#define FL_PAGES_ONE(name, summary) +1
enum {
    FL_PAGES_COMMANDS = 0 FL_COMMANDS(FL_PAGES_ONE),
    FL_PAGES_ROWS = FL_PAGES_COMMANDS FL_FITS(FL_PAGES_ONE) FL_SYNTHS(FL_PAGES_ONE)
};

typedef struct fl_pages_entry { /* a command, or a part of one: "fit device" */
    const char *name, *summary;
} fl_pages_entry;
extern const fl_pages_entry fl_pages_row[FL_PAGES_ROWS];

/* Runs the command argv[0] with what follows; false where there is none of that name. */
typedef bool (*fl_command_runner)(int argc, char **argv, int *status);

/* Hands the rows of every command to reader, of those with parts (fit, synth) each part's too: the help's own. */
void fl_pages_read(fl_command_runner run, fl_command_reader reader);
/* The summary of a command as the list of commands has it, also of a part; NULL where there is none. */
const char *fl_pages_summary(const char *name);
/* The list of commands. */
void fl_pages_list(const fl_page *page);
