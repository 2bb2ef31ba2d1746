/* The columns of a result: what a row's numbers are called, in CSV and JSON, in gates and selections. To add one, give
 * fl_row_result a member that every maker of rows sets, and the table in row_columns.c a row at its end. */
#pragma once

#include "harness/study/trial/result_row.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* The cell of a row by the name of a column of the CSV, slowdown_pct, energy_kj, or one of harness/study/trial/measure.h; NAN
 * where the row does not have it. FL_BAD_INPUT where there is no such column. */
fl_status fl_row_value(const fl_row_result *row, const char *name, double *value, fl_diag *d);
/* True where it is a number of every row, false where only a run that was watched has it, or it is none. */
bool fl_row_is_column(const char *name);

/* One row as a line of CSV, and the line above the first. */
void fl_row_head(FILE *f);
void fl_row_put(FILE *f, const fl_row_result *row);
/* The same columns as keys; null where not finite. In a mean also "partial": the columns that are means of some rows.
 */
void fl_row_json(cJSON *into, const fl_row_result *row);
/* Whether that column of a mean leaves out rows that do not have it. */
bool fl_row_partial(const fl_row_result *mean, const char *name);
bool fl_row_any_partial(const fl_row_result *mean);
/* True of a column that only a server of a language model has. */
bool fl_row_is_served(const char *name);

/* Sets every number of *mean to the mean of those of count > 0 rows, cells that are not defined left out; `violated`
 * counts, and `workloads` are the rows under mean->seed. room: count doubles. */
void fl_row_mean(const fl_row_result *const *row, size_t count, double *room, fl_row_result *mean);
