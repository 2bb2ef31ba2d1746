/* Packs output with gzip. The same bytes always make the same gzip file, because its header carries no time and no
 * name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The name decides: FILE.csv.gz is a packed FILE.csv. */
bool fl_gzip_named(const char *path);
size_t fl_plain_length(const char *path); /* length of the name without ".gz" */
bool fl_name_ends(const char *path,
                  const char *ending); /* whether the plain name has this ending and something before it */
size_t fl_stem_length(const char *path,
                      const char *what); /* length without ".gz" and then without `what`, where the name has them */

typedef struct fl_gzip fl_gzip;
/* Receives packed bytes. Returns 0 or an errno value. */
typedef int (*fl_gzip_put)(void *user, const void *bytes, size_t size);

typedef enum fl_gzip_upto {
    FL_GZIP_MORE, /* bytes may stay in the buffer */
    FL_GZIP_SYNC, /* the reader can unpack everything written so far */
    FL_GZIP_END   /* the end of the file */
} fl_gzip_upto;

fl_gzip *fl_gzip_open(fl_gzip_put put, void *user);                               /* NULL: out of memory */
int fl_gzip_write(fl_gzip *g, const void *bytes, size_t size, fl_gzip_upto upto); /* 0, or an errno value */
void fl_gzip_close(fl_gzip *g);                                                   /* may be NULL */
