/* The folder of rings, which programs of any user may write to: looked through a bounded piece at a time, so that
 * nobody's files hold up the host. What is no ring that can be believed is set aside, and named once. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FL_RING_FILE_MAX = 256 };

typedef struct fl_ring_folder fl_ring_folder;

typedef struct fl_ring_file {
    char name[FL_RING_FILE_MAX];
    ino_t inode;
} fl_ring_file;

typedef void fl_ring_tell(void *user, const char *line);

/* The folder is made where it is missing (mode 0700). */
fl_status fl_ring_folder_open(fl_ring_folder **out, const char *path, fl_diag *d);
void fl_ring_folder_close(fl_ring_folder *f);                                  /* NULL is allowed */
int fl_ring_folder_fd(const fl_ring_folder *f);                                /* valid until close */
void fl_ring_folder_teller(fl_ring_folder *f, fl_ring_tell *tell, void *user); /* until then nothing is told */

/* A look through the folder: begin, then next until false, for each *.ring that was not set aside. It ends after a
 * bounded number of files; the next look goes on from there. */
void fl_ring_folder_begin(fl_ring_folder *f);
bool fl_ring_folder_next(fl_ring_folder *f, fl_ring_file *file);
void fl_ring_folder_pause(fl_ring_folder *f); /* no more of this look: the file given last counts as not looked at */

/* Not looked at again. Told with its path and why; after FL_RING_TOLD_MAX lines it is only counted. */
enum { FL_RING_TOLD_MAX = 32 };
void fl_ring_folder_set_aside(fl_ring_folder *f, const fl_ring_file *file, const char *why);
/* One line about the folder, under the same bound. */
void fl_ring_folder_say(fl_ring_folder *f, const char *name, const char *text);
