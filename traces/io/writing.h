/* Durable writing, and code that the writers of canonical files share. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdio.h>

/* Opens a FILE with a temporary name beside path. commit flushes, syncs and renames it; abort removes it. "-" is the
 * standard output, which receives everything at commit (traces/io/standard.h). Output to a name that ends in ".gz" is
 * packed. */
typedef struct fl_output fl_output;
fl_output *fl_output_open(const char *path, fl_diag *d);
/* The same for a file that must exist while it grows, such as the log of a live run: it stands at its place from the
 * beginning, and everything flushed can be read. */
fl_output *fl_output_stream(const char *path, fl_diag *d);
FILE *fl_output_file(fl_output *o);
fl_status fl_output_commit(fl_output *o, fl_diag *d);
void fl_output_abort(fl_output *o);

void fl_csv_put(FILE *file, const char *text); /* writes one field, quoted where necessary */

void fl_put_int(FILE *file, int64_t value);
void fl_put_real(FILE *file, double value); /* the shortest text that reads back the same; nothing for NAN */

void fl_put_device(FILE *file, int32_t device); /* "host" for -1 */

/* Writes "# format 1" and the entries. FL_BAD_INPUT for an entry that would not read back unchanged. */
fl_status fl_put_head(FILE *file, const char *path, const char *format, const fl_head *h, fl_diag *d);

/* Opens path (*out) and writes the head, the beginning of a canonical file. Nothing stays open on failure. */
fl_status fl_output_begin(const char *path, const char *format, const fl_head *h, fl_output **out, fl_diag *d);
