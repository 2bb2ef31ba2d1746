/* The examples of every command, in one table: the help, the manual pages and the test that runs them read it. */
#ifndef FL_EXAMPLES_H
#define FL_EXAMPLES_H

enum { FL_EXAMPLES_EACH = 2 };

/* The examples of a command as its help calls it ("compare", "fit device"; "" = of the program as a whole): whole lines
 * for a shell, in a folder that has the shipped files below traces/ and harness/. NULL where the table has none. */
const char *const *fl_examples_of(const char *command);

#endif
