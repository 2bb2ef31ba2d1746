/* Any result as a table: the CSV files that the commands write, and what they print as JSON. It is read whole, rows are
 * chosen and ordered, and what is left is printed as wide as a terminal is, or as JSON. */
#ifndef FL_SHOW_H
#define FL_SHOW_H

#include "traces/diag.h"
#include "traces/records.h"

#include <stdio.h>

#define FL_SHOW_ROWS 40  /* rows that are printed where no number is asked for */
#define FL_SHOW_DIGITS 5 /* significant digits */

typedef struct fl_show_table {
    const char *path; /* borrowed */
    char *format;     /* of a file that says it: "foldline-decisions"; else NULL */
    fl_head head;     /* what stands above the rows: keys and values */
    char **name;      /* of the columns */
    bool *number;     /* by column: every cell that is not empty or n/a is a number */
    size_t columns, name_room, number_room;
    char **cell; /* row by row; the table's own */
    size_t rows, cell_room;
    size_t *order; /* the rows that are shown, in their order */
    size_t shown;
} fl_show_table;

/* Reads a table; all rows are shown. Zeroed on failure. FL_BAD_INPUT: what is neither a CSV file with a header nor a
 * JSON object or list of objects. A list is the table itself. Of an object "rows" is the table, or the list of objects
 * that it is about, and what stands beside it the head; one without such a list becomes a table of keys and values. A
 * CSV column whose name was there before gets a number: "v", "v.2". */
fl_status fl_show_read(const char *path, fl_show_table *t, fl_diag *d);
void fl_show_free(fl_show_table *t); /* takes a zeroed struct */

/* Leaves the rows where "COLUMN<VALUE" holds: < <= > >= by number; = and != also by text. A cell that is no number is
 * in none of the first four. */
fl_status fl_show_where(fl_show_table *t, const char *condition, fl_diag *d);
/* By a column, downwards where its name begins with '-': numbers by value, others as text; what is empty comes last.
 * Equal ones stay in their order. */
fl_status fl_show_sort(fl_show_table *t, const char *column, fl_diag *d);

typedef struct fl_show_look {
    size_t *column; /* those to print, in this order; NULL: all that fit */
    size_t columns;
    size_t rows; /* at most; 0 = all */
    int digits, width;
} fl_show_look;

/* "a,b": indices into t->name, to be freed. */
fl_status fl_show_columns(const fl_show_table *t, const char *names, fl_show_look *look, fl_diag *d);

/* What a terminal would obey or cannot show, control characters and what is no UTF-8, is printed as '?'. */
void fl_show_text(const char *text, FILE *out);

/* Columns that do not fit are named below: those that are empty or alike in all rows go first, then the last ones. */
fl_status fl_show_print(const fl_show_table *t, const fl_show_look *look, FILE *out, fl_diag *d);

#endif
