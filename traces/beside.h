/* A new file in the folder of another, to take its place once it is whole. Where the file system can, it has no name
 * until then. What a kill leaves behind all the same, the next that writes into the folder removes
 * (traces/beside_stale.h). */
#ifndef FL_BESIDE_H
#define FL_BESIDE_H

#include <sys/types.h>

typedef struct fl_beside {
    int fd;          /* -1: not open; to be closed by whoever opened it */
    char *temporary; /* its name for now; NULL where it has none */
} fl_beside;

/* 0, or an errno value. */
int fl_beside_open(fl_beside *b, const char *path, mode_t mode);
/* The file, complete and still open, takes the place of path. 0, or an errno value; the place is then as it was. */
int fl_beside_place(fl_beside *b, const char *path);
/* Removes what has not taken its place; closes nothing. */
void fl_beside_drop(fl_beside *b);

#endif
