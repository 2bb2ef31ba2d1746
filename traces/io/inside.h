/* What the files of traces/io share: the longest line, and the names and bytes of new files. */
#pragma once

#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if FL_HAS_ZLIB
#include <zlib.h>
#else /* gzipped files are refused before any of this runs */
typedef unsigned uInt;
typedef struct z_stream {
    unsigned char *next_in, *next_out;
    uInt avail_in, avail_out;
    void *(*zalloc)(void *user, uInt count, uInt size);
    void (*zfree)(void *user, void *bytes);
} z_stream;
enum { Z_OK, Z_STREAM_END, Z_BUF_ERROR, Z_MEM_ERROR, Z_STREAM_ERROR, Z_NO_FLUSH, Z_FINISH, Z_SYNC_FLUSH };
#define inflateInit2(z, bits) ((void)(z), Z_STREAM_ERROR)
#define inflateReset(z) ((void)(z), Z_STREAM_ERROR)
#define inflate(z, flush) ((void)(z), Z_STREAM_ERROR)
#define inflateEnd(z) ((void)(z))
#define deflateInit2(z, level, method, bits, memory, strategy) ((void)(z), Z_STREAM_ERROR)
#define deflate(z, flush) ((void)(z), (void)(flush), Z_STREAM_ERROR)
#define deflateEnd(z) ((void)(z))
#endif

#define FL_CSV_LINE_MAX (1u << 20) /* bytes in one line; longer is refused */

/* Add an entry to a head unless it has the key (*twice). keys: zeroed at first, it finds a key among many at once.
 * FL_NO_MEMORY. */
fl_status fl_head_add(fl_head *h, fl_intern *keys, const char *key, const char *value, bool *twice);

/* A new temporary name in the folder of path. It is short, so it fits wherever path's own name fits. malloc'd; NULL
 * when out of memory. */
char *fl_beside_name(const char *path);

/* Marks the open temporary file as in use. False where another process is just removing it: take another name then. */
bool fl_beside_claim(int fd);

/* Creates a nameless file to read and write. -1 and FL_IO on failure. */
int fl_open_nameless(fl_diag *d);

/* Writes all bytes. Returns 0 or an errno value. */
int fl_write_whole(int fd, const void *bytes, size_t size);
/* Copies all bytes of `from`, which must be able to seek. Returns 0 or an errno value. */
int fl_copy_whole(int from, int to);

/* A new descriptor of the original standard output, as it was before it was reserved. -1 and errno on failure. */
int fl_stdout_open(void);
