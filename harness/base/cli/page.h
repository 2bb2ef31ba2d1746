/* Text for a reader, wrapped to a width: plain text for a terminal, roff for man(1). */
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct fl_page {
    FILE *out;
    int width;  /* columns of a line, at most */
    int indent; /* columns to the left of everything except headings */
    bool roff;  /* output for man(1), which wraps the lines itself */
} fl_page;

/* Prints the text in lines of at most `width` columns, broken between words. The first line starts after `first`
 * columns, the others after `rest`, both behind the page's indent. Any run of blanks counts as one. A word that is
 * longer than a line is broken at a comma, a slash or the like. */
void fl_page_fill(const fl_page *p, int first, int rest, const char *text);
/* Prints the separation before a new paragraph: an empty line. */
void fl_page_gap(const fl_page *p);
/* The name of a section. */
void fl_page_heading(const fl_page *p, const char *name);
/* Prints a term in column 2 and its meaning in the given column. The meaning stands below the term where the page is
 * narrow or the term long. */
void fl_page_row(const fl_page *p, int column, const char *term, const char *text);
/* Prints a further line of the meaning of a row, in that column. */
void fl_page_below(const fl_page *p, int column, const char *text);
/* Prints a command as a user types it. A command too long for the page continues on further lines, and each line but
 * the last ends in a backslash; quoted parts stay whole. */
void fl_page_command(const fl_page *p, int first, const char *command);

/* Prints a text of paragraphs and rows. An empty line ends a paragraph; a single line feed in a paragraph counts as a
 * blank. A line that begins with two blanks is a row: a term, two blanks or more, and its meaning. The meanings of
 * consecutive rows are aligned. A line that begins with four blanks or more continues the row above on a new line. */
void fl_page_text(const fl_page *p, const char *text);
