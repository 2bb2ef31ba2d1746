/* Header rows of CSV files: the position of each column. */
#pragma once

#include "traces/io/csv.h"

/* Sets where[i] to the field index of known[i], or SIZE_MAX where the header lacks it; the first `required` of the
 * `count` columns must exist. Refuses unknown columns (offering the nearest name) and repeated ones. */
fl_status fl_columns_find(const fl_csv_row *header, const char *const *known, size_t count, size_t required,
                          size_t *where, fl_diag *d);

/* Refuses a row that does not have exactly `expected` fields. */
fl_status fl_columns_width(const fl_csv_row *row, size_t expected, fl_diag *d);

/* Copies the field texts [first, first + count) of a header, refusing empty and repeated names. *names is allocated
 * (also for count 0) and filled up to *named, also on failure, so that the caller can free it. */
fl_status fl_columns_names(const fl_csv_row *header, size_t first, size_t count, size_t skip, char ***names,
                           size_t *named, fl_diag *d);

/* Reports an error at a field: status FL_BAD_INPUT with the row's line and the field's column. */
#define FL_FIELD_FAIL(d, row, index, ...)                                                                              \
    fl_fail((d), FL_BAD_INPUT, (row)->file, (row)->line, (row)->field[index].column, __VA_ARGS__)
