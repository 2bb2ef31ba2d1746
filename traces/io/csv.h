/* A thin wrapper over libcsv: rows of fields with the line and column at which each field begins, strict quoting, a
 * limit on the length of a line, and numbers checked to the last character. It streams the file; memory use does not
 * grow with the file. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdbool.h>

#define FL_CSV_LINE_MAX (1u << 20) /* bytes in one line; longer is refused */

typedef struct fl_field {
    const char *text; /* NUL-terminated, valid until the row function returns */
    size_t size;
    int64_t column; /* 1-based byte column of its first character */
} fl_field;

typedef struct fl_csv_row {
    const char *file;
    int64_t line; /* the line on which the row begins, from 1 */
    const fl_field *field;
    size_t count;
    bool torn; /* the last row of the file, which no newline ends */
} fl_csv_row;

/* Called for each row. Any result other than FL_OK stops the reading, and the reader returns it. */
typedef fl_status (*fl_row_function)(void *user, const fl_csv_row *row, fl_diag *d);

typedef struct fl_csv_options {
    char delimiter;     /* 0 = ',' */
    bool trim;          /* drop blanks around fields */
    const char *format; /* "foldline-kernels": read the commented head and check its version line; NULL = no head */
    bool head_optional;
    int head_lines; /* further plain lines to skip first */
} fl_csv_options;

/* Reads path row by row. It skips comment lines (#) after the head where `format` is given, and blank lines everywhere.
 * It refuses NUL bytes, bad quoting, a directory, and an empty file (no row at all). head may be NULL; it belongs to
 * the caller also on failure, who frees it with the rest of the struct. FL_BAD_INPUT: the file cannot be opened. FL_IO:
 * the file cannot be read to its end. */
fl_status fl_csv_read(const char *path, const fl_csv_options *options, fl_head *head, fl_row_function row, void *user,
                      fl_diag *d);

/* Numbers, checked to the last character; the diagnostic names the column. An empty field is an error for the first two
 * functions and NAN for the third. Reals are finite, in C syntax, whatever the locale. */
fl_status fl_field_int(const fl_csv_row *row, size_t index, const char *name, int64_t min, int64_t max, int64_t *value,
                       fl_diag *d);
fl_status fl_field_real(const fl_csv_row *row, size_t index, const char *name, double min, double max, double *value,
                        fl_diag *d);
fl_status fl_field_real_or_nan(const fl_csv_row *row, size_t index, const char *name, double min, double max,
                               double *value, fl_diag *d);
