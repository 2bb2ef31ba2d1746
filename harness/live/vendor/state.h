/* The folders that hold records and locks, and the files in them. A controller runs as root and writes what it finds
 * there into clocks and limits, so no other user may have touched it. A folder must belong to the effective user, must
 * not be writable by others and must not be a link. A file in it must be a regular file of the same user with one name;
 * links are not followed, and a FIFO does not block. Everything else is refused, and the diagnostic says what to do. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

#define FL_UNIT_MAX 96 /* UUID of a GPU, or "cpu" */

/* The path of the folder of records, $FOLDLINE_STATE or /var/lib/foldline, without creating it. Static or from the
 * environment. */
const char *fl_state_folder(void);
/* The folder of the locks, which hold across all state folders of this machine: $FOLDLINE_RUN, else /run/foldline for
 * root and /tmp/foldline-UID for others. Static or from the environment. */
const char *fl_run_folder(void);

/* Creates the folder of records where it is missing (mode 0700) and checks it. FL_IO with the reason. */
fl_status fl_state_open(const char **state, fl_diag *d);
/* The same of any folder. */
fl_status fl_folder_make(const char *folder, fl_diag *d);

/* Writes the path of a file of a unit into buf; false where the unit's name is not a plain name. */
bool fl_state_path(const char *folder, const char *unit, const char *ending, char *buf, size_t size);

/* Opens UNIT+ENDING in the checked folder with these flags (mode 0600 where O_CREAT creates it), close-on-exec. *fd =
 * -1 and FL_OK where folder or file is missing. FL_BAD_INPUT where the name is invalid or the file cannot be trusted;
 * otherwise FL_IO with the reason. */
fl_status fl_state_file(const char *folder, const char *unit, const char *ending, int flags, int *fd, fl_diag *d);

/* Removes the file; does nothing where it is missing. Of a link it removes the link, not the target. */
fl_status fl_state_remove(const char *folder, const char *unit, const char *ending, fl_diag *d);

/* Opens the checked folder itself, close-on-exec. *fd = -1 and FL_OK where it is missing. */
fl_status fl_folder_open(const char *folder, int *fd, fl_diag *d);
