/* The folders that hold records and locks, and the files in them. A controller runs as root and writes what it finds
 * there into clocks and limits, so nobody else may have had a hand in it: the folder belongs to the effective user and
 * nobody else may write it; it is no link. A file in it is a regular file of the same user with one name; links are not
 * followed, a FIFO does not hold us up. Everything else is refused, and the diagnostic says what to do. */
#ifndef FL_LIVE_STATE_H
#define FL_LIVE_STATE_H

#include "traces/diag.h"

#include <stdbool.h>

#define FL_UNIT_MAX 96 /* UUID of a GPU, or "cpu" */

/* The folder of records, $FOLDLINE_STATE or /var/lib/foldline: its path, without making it. Static or from the
 * environment. */
const char *fl_state_folder(void);
/* The folder of the locks that hold across all state folders of this machine: $FOLDLINE_RUN, else /run/foldline for
 * root and /tmp/foldline-UID for others. Static or from the environment. */
const char *fl_run_folder(void);

/* Makes the folder of records where it is missing (mode 0700) and checks it. FL_IO with the reason. */
fl_status fl_state_open(const char **state, fl_diag *d);
/* The same of any folder. */
fl_status fl_folder_make(const char *folder, fl_diag *d);

/* Path of a file of a unit into buf; false where the unit's name is no plain name. */
bool fl_state_path(const char *folder, const char *unit, const char *ending, char *buf, size_t size);

/* Opens UNIT+ENDING in the checked folder with these flags (mode 0600 where O_CREAT makes it). *fd = -1 and FL_OK where
 * folder or file is missing. Close-on-exec. FL_BAD_INPUT where the name is none or what is there cannot be trusted,
 * FL_IO with the reason else. */
fl_status fl_state_file(const char *folder, const char *unit, const char *ending, int flags, int *fd, fl_diag *d);

/* Removes it; nothing to do where it is missing. A link is removed, not what it points to. */
fl_status fl_state_remove(const char *folder, const char *unit, const char *ending, fl_diag *d);

/* Opens the checked folder itself, close-on-exec. *fd = -1 and FL_OK where it is missing. */
fl_status fl_folder_open(const char *folder, int *fd, fl_diag *d);

#endif
