/* The bytes of a file, of "-" or of a pipe (traces/io/standard.h). A gzipped source is unpacked on the way; its first two
 * bytes identify it. Memory use does not grow with the file.
 *
 * Deflate packs a thousand zeros into one byte, so a small file could fill a disk. The project's own samples pack 11
 * times at most. Beyond FL_GUNZIP_FREE bytes, a file that unpacks to more than FL_GUNZIP_TIMES its size is refused. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

#define FL_GUNZIP_FREE (256 << 20)
#define FL_GUNZIP_TIMES 200

typedef struct fl_gunzip fl_gunzip;

/* NULL where the file cannot be opened or is a directory (FL_BAD_INPUT), or where memory runs out; the diagnostic says
 * which. */
fl_gunzip *fl_gunzip_open(const char *path, fl_diag *d);

/* Fills up to size bytes; *got < size only at the end. FL_BAD_INPUT: the gzip data is damaged or cut off (its checksum
 * is verified), or other bytes follow it. FL_IO: reading fails. */
fl_status fl_gunzip_read(fl_gunzip *g, void *bytes, size_t size, size_t *got, fl_diag *d);

double fl_gunzip_share(const fl_gunzip *g); /* share of the source that was read, 0..1; 0 where its size is not known */
void fl_gunzip_close(fl_gunzip *g);         /* may be NULL */
bool fl_gunzip_packed(const fl_gunzip *g);

/* Reads the whole source into memory: *text, with a NUL after it; the caller frees it. FL_BAD_INPUT beyond `most`
 * bytes. */
fl_status fl_gunzip_text(const char *path, size_t most, char **text, size_t *size, fl_diag *d);

/* For callers that need a file: opens the file itself where it is plain, else a nameless file with the unpacked bytes.
 * Returns a descriptor at its first byte, which the caller closes; -1 on failure. */
int fl_gunzip_whole(const char *path, fl_diag *d);
