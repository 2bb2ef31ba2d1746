/* A new file in the folder of another file, which it replaces once it is complete. Where the file system allows it, the
 * new file has no name until then. If a killed process leaves one behind all the same, the next write into the folder
 * removes it (traces/io/beside_stale.h). */
#pragma once

#include <sys/types.h>

typedef struct fl_beside {
    int fd;          /* -1: not open. Whoever opened it closes it */
    char *temporary; /* its temporary name; NULL where it has none */
} fl_beside;

/* Creates the file. Returns 0 or an errno value. */
int fl_beside_open(fl_beside *b, const char *path, mode_t mode);
/* Puts the complete file, still open, in the place of path. Returns 0 or an errno value; after an error path is
 * unchanged. */
int fl_beside_place(fl_beside *b, const char *path);
/* Removes the file if it has not taken its place. Closes nothing. */
void fl_beside_drop(fl_beside *b);
