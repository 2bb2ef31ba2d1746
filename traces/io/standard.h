/* The standard streams in place of files, and sources that can be read only once. "-" is the standard input, or the
 * standard output for a file to write. Readers look at the first bytes, read twice and compute hashes. A source that
 * cannot seek is therefore kept as a whole in a nameless file in $TMPDIR or /tmp, and every open reads that file from
 * its beginning. A killed process leaves nothing behind. */
#pragma once

#include "traces/io/diag.h" /* fl_is_standard */

#include <stddef.h>

/* Opens a file, "-" or a pipe for reading at its first byte, any number of times. -1 on failure. FL_BAD_INPUT: it
 * cannot be opened or is a directory. FL_IO: its contents cannot be read to their end or kept. */
int fl_open_read(const char *path, fl_diag *d);

/* Creates a nameless file to read and write. -1 and FL_IO on failure. */
int fl_open_nameless(fl_diag *d);

/* Writes all bytes. Returns 0 or an errno value. */
int fl_write_whole(int fd, const void *bytes, size_t size);
/* Copies all bytes of `from`, which must be able to seek. Returns 0 or an errno value. */
int fl_copy_whole(int from, int to);

/* Reserves the standard output for one file: from then on, printed text goes to the standard error. */
fl_status fl_stdout_claim(fl_diag *d);
/* A new descriptor of the original standard output, as it was before it was reserved. -1 and errno on failure. */
int fl_stdout_open(void);
