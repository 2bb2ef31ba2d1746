/* A table on a terminal: cells are text, each column is as wide as it needs to be, numbers are right-aligned. */
#pragma once

#include "traces/io/diag.h"

#include <stdio.h>

typedef struct fl_grid {
    char **cell; /* row by row */
    size_t columns, count, room;
} fl_grid;

/* Starts a table with a row of heads. The function copies them. */
fl_grid fl_grid_headed(const char *const *head, size_t columns);
#define FL_GRID_HEADED(head) fl_grid_headed(head, sizeof(head) / sizeof *(head))
/* Adds cells, row by row; a tab in the format stands between two of them. Where memory runs out, the table is missing
 * as a whole, never incomplete. */
void fl_grid_add(fl_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the table and frees it. The first `left` columns are left-aligned. */
void fl_grid_print(fl_grid *g, size_t left, FILE *out);
void fl_grid_free(fl_grid *g);

/* A real in the shortest form that reads back the same, or "n/a"; into buf (32 bytes). Returns buf. */
char *fl_cell_text(double value, char *buf);
