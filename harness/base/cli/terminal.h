/* The width of the terminal, for text that a person reads. */
#pragma once

#include <stdio.h>

#define FL_TERMINAL_STANDARD 80 /* columns where nothing says how many */
#define FL_TERMINAL_LEAST 20    /* columns: a narrower terminal counts as this wide */

/* Columns of the terminal behind the stream; $COLUMNS where the stream is not a terminal; else FL_TERMINAL_STANDARD. */
int fl_terminal_width(FILE *stream);

/* Prints a message of one line; format ends without a line feed. On a terminal the line is broken between words, and
 * the further lines are indented by two columns. Elsewhere the message stays on one line, so that programs can read it.
 */
void fl_terminal_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
