/* The temporary names of new files (traces/io/beside.h), and the removal of files that killed processes left behind. */
#pragma once

#include <stdbool.h>

/* A new temporary name in the folder of path. It is short, so it fits wherever path's own name fits. malloc'd; NULL
 * when out of memory. */
char *fl_beside_name(const char *path);
/* Bytes of path up to and including its last slash; 0: it has none. */
int fl_beside_folder(const char *path);

/* Marks the open temporary file as in use. False where another process is just removing it: take another name then. */
bool fl_beside_claim(int fd);
/* Removes the temporary files in the folder of path that no one uses. A file that this machine wrote goes at once,
 * because its lock vanished with its writer. Where locks say nothing (another machine, or a file system without locks),
 * the file goes a day after its last write. A file that cannot be examined stays. */
void fl_beside_sweep(const char *path);
