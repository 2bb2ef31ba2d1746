/* The bytes of a file, unpacked on the way where it is gzipped: whichever it is shows in its first two bytes. Memory
 * does not grow with the file. */
#ifndef FL_GUNZIP_H
#define FL_GUNZIP_H

#include "traces/diag.h"

typedef struct fl_gunzip fl_gunzip;

/* NULL where the file cannot be opened or is a directory (FL_BAD_INPUT), or without memory; says why. */
fl_gunzip *fl_gunzip_open(const char *path, fl_diag *d);

/* Fills up to size bytes; *got < size only at the end. FL_BAD_INPUT: gzip data that is damaged or cut off (also where
 * its checksum tells), or that something else follows; FL_IO: the file cannot be read on. */
fl_status fl_gunzip_read(fl_gunzip *g, void *bytes, size_t size, size_t *got, fl_diag *d);

double fl_gunzip_share(const fl_gunzip *g); /* of the file that was read, 0..1; 0 where its size is not known */
void fl_gunzip_close(fl_gunzip *g);         /* may be NULL */

#endif
