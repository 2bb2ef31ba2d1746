/* Where the files that come with foldline lie: the folder that the environment names; else beside the program, as
 * installed (PREFIX/bin/foldline) or as built, so that either may be moved; else where it was built. */
#ifndef FL_PLACE_H
#define FL_PLACE_H

#include <stddef.h>

typedef enum fl_place_id {
    FL_PLACE_PLATFORMS, /* $FOLDLINE_SHARE/platforms */
    FL_PLACE_BOARDS,    /* $FOLDLINE_SHARE/boards */
    FL_PLACE_PLOTS,     /* $FOLDLINE_PLOTS */
    FL_PLACE_CLIENTS    /* $FOLDLINE_CLIENT_DIR: libraries for emulated and recorded programs */
} fl_place_id;

/* Into buf, which it returns; the last of them where none is there. */
const char *fl_place(fl_place_id id, char *buf, size_t size);

#endif
