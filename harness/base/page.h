/* Text for a reader, set to a width: for a terminal as plain text, for man(1) as roff. */
#ifndef FL_PAGE_H
#define FL_PAGE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct fl_page {
    FILE *out;
    int width;  /* columns that a line may have */
    int indent; /* columns to the left of everything but headings */
    bool roff;  /* for man(1), which sets the lines itself */
} fl_page;

/* The text in lines of at most `width` columns, broken between words: the first line after `first` columns, the others
 * after `rest`, both behind the page's indent. Any run of blanks counts as one. A word that is longer than a line is
 * broken at a comma, a slash or the like. */
void fl_page_fill(const fl_page *p, int first, int rest, const char *text);
/* An empty line, and what stands before a new paragraph. */
void fl_page_gap(const fl_page *p);
/* The name of a section. */
void fl_page_heading(const fl_page *p, const char *name);
/* A term in the column 2, and what it means in the given column; below the term where the page is narrow, or the term
 * long. */
void fl_page_row(const fl_page *p, int column, const char *term, const char *text);
/* A further line of what a row in that column means. */
void fl_page_below(const fl_page *p, int column, const char *text);
/* A command as one types it. One too long for the page goes on in further lines, each but the last with a backslash at
 * its end; quotes stay whole. */
void fl_page_command(const fl_page *p, int first, const char *command);

/* A text of paragraphs and rows. An empty line ends a paragraph; a single line feed in one counts as a blank. A line
 * that begins with two blanks is a row: a term, two blanks or more, and what it means; rows that follow each other
 * stand in line. A line that begins with four blanks or more continues the row above in a new line. */
void fl_page_text(const fl_page *p, const char *text);

#endif
