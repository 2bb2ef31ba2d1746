/* Shared by the readers of other tools' text: they find the header line below the lines that a shell or tool wrote
 * above it, recognise cells that mean "not known", and name common mistakes in numbers (decimal commas, thousands
 * separators). */
#pragma once

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_cell { /* not NUL-terminated */
    const char *text;
    size_t size;
} fl_cell;

enum { FL_CELLS_MAX = 128 };

typedef struct fl_cells { /* the cells of one line, cut at , ; | and tab, without quotes and surrounding blanks */
    fl_cell cell[FL_CELLS_MAX];
    size_t count;
} fl_cells;

typedef bool (*fl_header_function)(const fl_cells *line);

/* Number of lines above the first header, among the first bytes of a file (a byte-order mark is skipped); -1 = no
 * header. */
int fl_header_find(const char *head, size_t size, fl_header_function is);

/* The same for a file. FL_BAD_INPUT: the first 64 KiB contain no such line ("no header line, expected ..."), or the
 * file is gzipped or UTF-16. */
fl_status fl_header_seek(const char *path, fl_header_function is, const char *expected, int *lines, fl_diag *d);

/* Refuses a header whose fields are separated by something other than the comma. */
fl_status fl_header_commas(const fl_csv_row *header, fl_diag *d);

/* Refuses a row with another number of fields. Where it has more, the message mentions decimal commas. */
fl_status fl_foreign_width(const fl_csv_row *row, size_t expected, fl_diag *d);

/* True for "", N/A, nan, anything in square brackets ([Not Supported]), and dashes. */
bool fl_cell_unknown(const char *text);

/* Parses text as a number. The diagnostic contains `what`, and the comma where there is one. */
fl_status fl_foreign_real(const fl_csv_row *row, size_t index, const char *text, const char *what, double *value,
                          fl_diag *d);
fl_status fl_foreign_int(const fl_csv_row *row, size_t index, const char *what, int64_t min, int64_t max,
                         int64_t *value, fl_diag *d);

/* Converts a decimal number of units of 10^power ns (seconds: 9) to whole ns, exactly, with the last digit rounded. */
fl_status fl_foreign_ns(const fl_csv_row *row, size_t index, const char *what, int power, int64_t *ns, fl_diag *d);

/* Adds key: value to a head, unless it has the key. The value is text from a file; bytes that are not printable become
 * '?'. */
fl_status fl_foreign_head(fl_head *head, const char *key, const char *text, fl_diag *d);

/* Reports through the options, now and then, how much of the file a reader has read. */
typedef struct fl_progress {
    const fl_import_options *o;
    double size, done;
    size_t rows;
} fl_progress;

void fl_progress_start(fl_progress *p, const char *path, const fl_import_options *o);
void fl_progress_row(fl_progress *p, const fl_csv_row *row);
