/* Packing what is written: the same bytes always make the same gzip file, for its head carries no time and no name. */
#ifndef FL_GZIP_H
#define FL_GZIP_H

#include <stdbool.h>
#include <stddef.h>

/* By name: FILE.csv.gz is a FILE.csv that is packed. */
bool fl_gzip_named(const char *path);
size_t fl_plain_length(const char *path);                  /* of the name without ".gz" */
bool fl_name_ends(const char *path, const char *ending);   /* that name ends so, and is more than that */
size_t fl_stem_length(const char *path, const char *what); /* without ".gz" and then without `what`, each where it is */

typedef struct fl_gzip fl_gzip;
/* Takes packed bytes; 0, or an errno value. */
typedef int (*fl_gzip_put)(void *user, const void *bytes, size_t size);

typedef enum fl_gzip_upto {
    FL_GZIP_MORE, /* what is held may wait */
    FL_GZIP_SYNC, /* all so far can be unpacked from what was put */
    FL_GZIP_END   /* the end of the file */
} fl_gzip_upto;

fl_gzip *fl_gzip_open(fl_gzip_put put, void *user);                               /* NULL: no memory */
int fl_gzip_write(fl_gzip *g, const void *bytes, size_t size, fl_gzip_upto upto); /* 0, or an errno value */
void fl_gzip_close(fl_gzip *g);                                                   /* may be NULL */

#endif
