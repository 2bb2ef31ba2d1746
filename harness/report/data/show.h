/* Any result as a table: the CSV files that commands write, and their output as JSON. The module reads the whole input,
 * selects and sorts rows, and prints the rest in the width of the terminal, or as JSON. */
#pragma once

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdio.h>

#define FL_SHOW_ROWS 40  /* rows to print where the user gives no number */
#define FL_SHOW_DIGITS 5 /* significant digits */

typedef struct fl_show_table {
    const char *path; /* borrowed */
    char *format;     /* format of a file that names it: "foldline-decisions"; else NULL */
    fl_head head;     /* keys and values above the rows */
    char **name;      /* of the columns */
    bool *number;     /* by column: every cell that is not empty or n/a is a number */
    size_t columns, name_room, number_room;
    char **cell; /* row by row; owned by the table */
    size_t rows, cell_room;
    size_t *order; /* the selected rows, in their order */
    size_t shown;
} fl_show_table;

/* Reads a table and selects all rows. Zeroed on failure. FL_BAD_INPUT: the input is neither a CSV file with a header
 * nor a JSON object or list of objects. A list is the table itself. Of an object, "rows" is the table, or else its main
 * list of objects, and the values beside it are the head; an object without such a list becomes a table of keys and
 * values. A repeated CSV column name gets a number: "v", "v.2". */
fl_status fl_show_read(const char *path, fl_show_table *t, fl_diag *d);
void fl_show_free(fl_show_table *t); /* accepts a zeroed struct */

/* Keeps the rows where "COLUMN<VALUE" holds: < <= > >= compare numbers; = and != also compare texts. A cell that is not
 * a number satisfies none of the first four. */
fl_status fl_show_where(fl_show_table *t, const char *condition, fl_diag *d);
/* Sorts by a column, downwards where the name begins with '-': numbers by value, others as text; empty cells come last.
 * Equal rows keep their order. */
fl_status fl_show_sort(fl_show_table *t, const char *column, fl_diag *d);

typedef struct fl_show_look {
    size_t *column; /* the columns to print, in this order; NULL: all that fit */
    size_t columns;
    size_t rows; /* at most; 0 = all */
    int digits, width;
} fl_show_look;

/* Parses "a,b" into indices of t->name, which the caller frees. */
fl_status fl_show_columns(const fl_show_table *t, const char *names, fl_show_look *look, fl_diag *d);

/* Prints '?' for control characters, which a terminal would obey, and for bytes that are not valid UTF-8. */
void fl_show_text(const char *text, FILE *out);

/* Lists below the table the columns that do not fit: those that are empty or equal in all rows are dropped first, then
 * the last ones. */
void fl_show_print(const fl_show_table *t, const fl_show_look *look, FILE *out);
