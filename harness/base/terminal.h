/* How wide the terminal is, for whatever is printed for a reader. */
#ifndef FL_TERMINAL_H
#define FL_TERMINAL_H

#include <stdio.h>

#define FL_TERMINAL_STANDARD 80 /* columns, where nothing tells */
#define FL_TERMINAL_LEAST 20    /* columns: a terminal that says less is taken for this wide */

/* Columns of the terminal behind the stream; $COLUMNS where the stream is none; else FL_TERMINAL_STANDARD. */
int fl_terminal_width(FILE *stream);

/* Prints a message of one line for a reader; format: without a line feed at its end. On a terminal the line is broken
 * between words, and what follows is indented by two columns. Anywhere else it stays whole, so that programs can read
 * it. */
void fl_terminal_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
