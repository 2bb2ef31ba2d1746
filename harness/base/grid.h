/* A table on a terminal: cells are text, columns as wide as needed, numbers right-aligned. */
#ifndef FL_GRID_H
#define FL_GRID_H

#include "traces/diag.h"

#include <stdio.h>

typedef struct fl_grid {
    char **cell; /* row by row */
    size_t columns, count, room;
} fl_grid;

/* A table that begins with a row of heads, which are copied. */
fl_grid fl_grid_headed(const char *const *head, size_t columns);
#define FL_GRID_HEADED(head) fl_grid_headed(head, sizeof(head) / sizeof *(head))
/* Adds one cell, row by row; a failure of memory shows as a missing table, never as a wrong one. */
void fl_grid_add(fl_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees it. The first `left` columns are left-aligned. */
void fl_grid_print(fl_grid *g, size_t left, FILE *out);
void fl_grid_free(fl_grid *g);

/* A real in the shortest form that reads back the same, or "n/a"; into buf (32 bytes). Returns buf. */
char *fl_cell_text(double value, char *buf);

#endif
