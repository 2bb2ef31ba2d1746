/* The examples of every command in one table. The help, the manual pages and the test that runs the examples read it.
 */
#pragma once

enum { FL_EXAMPLES_EACH = 2 };

/* The examples of a command under its name in the help ("compare", "fit device"; "" = the program as a whole). They are
 * whole lines for a shell, run in a folder that has the shipped files below traces/ and harness/. NULL where the table
 * has none. */
const char *const *fl_examples_of(const char *command);
