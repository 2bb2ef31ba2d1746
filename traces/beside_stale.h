/* The names of new files until they take their place (traces/beside.h), and those that a kill has left behind. */
#ifndef FL_BESIDE_STALE_H
#define FL_BESIDE_STALE_H

#include <stdbool.h>

/* The next name of ours in the folder of path: short, so that any name that fits the folder can be written. malloc'd;
 * NULL when out of memory. */
char *fl_beside_name(const char *path);
/* Bytes of path up to its last slash, and with it; 0: it has none. */
int fl_beside_folder(const char *path);

/* Says that the open file of such a name is at work. False where another is just removing it: take another name. */
bool fl_beside_claim(int fd);
/* Removes from the folder of path those of such a name that nobody is at work on. One that this machine wrote goes at
 * once, as its lock is gone with its writer. Where locks say nothing, from another machine or on a file system that has
 * none, it goes a day after it was last written. What cannot be looked at stays. */
void fl_beside_sweep(const char *path);

#endif
