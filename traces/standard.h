/* The standard streams where files are named, and what can be read only once: "-" is the standard input, or as a file
 * to write the standard output. Who reads needs to look at the first bytes, to read twice and to hash; so what cannot
 * seek is kept whole in a file without a name, in $TMPDIR or /tmp, and everyone who opens it reads that from its
 * beginning. A kill leaves nothing. */
#ifndef FL_STANDARD_H
#define FL_STANDARD_H

#include "traces/diag.h" /* fl_is_standard */

#include <stddef.h>

/* Opens a file, "-" or a pipe for reading, at its first byte, as often as one likes. -1 where that cannot be (or where
 * it is a directory): FL_BAD_INPUT; FL_IO where what comes cannot be read to its end or kept. */
int fl_open_read(const char *path, fl_diag *d);

/* A new file without a name, to read and write. -1 and FL_IO where there is none to be had. */
int fl_open_nameless(fl_diag *d);

/* Writes all. 0, or an errno value. */
int fl_write_whole(int fd, const void *bytes, size_t size);
/* The bytes of `from`, which can seek, from the first on. 0, or an errno value. */
int fl_copy_whole(int from, int to);

/* Keeps the standard output for one file: from here on, what is printed goes to the standard error. */
fl_status fl_stdout_claim(fl_diag *d);
/* A new descriptor of the standard output, as it was before it was claimed. -1 and errno on failure. */
int fl_stdout_open(void);

#endif
