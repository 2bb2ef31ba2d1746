/* What the files of harness/base/cli share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints a command as a user types it. A command too long for the page continues on further lines, and each line but
 * the last ends in a backslash; quoted parts stay whole. */
void fl_page_command(const fl_page *p, int first, const char *command);

typedef enum fl_help_wanted { FL_HELP_NONE, FL_HELP_SHORT, FL_HELP_ALL } fl_help_wanted;

/* Parses options anywhere on the line, as --name value or --name=value; "--" ends them. The other arguments go to
 * *rest. The function sets *help if it finds --help, or --help all. FL_BAD_INPUT: an unknown option (the message offers
 * the nearest one), or an output that is a file which any other argument names: this prevents a command from
 * overwriting its input or writing a file twice. "-" may be the standard input once, and the standard output of one
 * file. Standard output is then reserved for that file (traces/io/io.h), and --json together with it is refused. */
fl_status fl_args_parse(int argc, char **argv, const fl_option *option, size_t count, fl_texts *rest,
                        fl_help_wanted *help, fl_diag *d);

/* The text before a command's name in its help and its errors: "foldline ". Test programs with options set their own
 * prefix before they parse any. */
extern const char *fl_args_prefix;
enum { FL_HELP_LINES = 40 }; /* a help that is asked for with --help alone is no longer */
/* Print the help in lines of the terminal's width, with examples at its end. Where the whole help is longer than
 * FL_HELP_LINES and `all` was not asked for, print the options used most and the names of the others. */
void fl_args_help(FILE *out, const fl_command_help *c, const fl_option *option, size_t count, bool all);

/* The examples of every command in one table. The help, the manual pages and the test that runs the examples read it.
 */

enum { FL_EXAMPLES_EACH = 2 };

/* The examples of a command under its name in the help ("compare", "fit device"; "" = the program as a whole). They are
 * whole lines for a shell, run in a folder that has the shipped files below traces/ and harness/. NULL where the table
 * has none. */
const char *const *fl_examples_of(const char *command);
