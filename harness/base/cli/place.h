/* The folders of the files that ship with foldline. The folder that the environment names comes first; then one
 * relative to the program, as installed (PREFIX/bin/foldline) or as built, so that either tree may be moved; then the
 * folder of the build. */
#pragma once

#include <stddef.h>

typedef enum fl_place_id {
    FL_PLACE_PLATFORMS, /* $FOLDLINE_SHARE/platforms */
    FL_PLACE_BOARDS,    /* $FOLDLINE_SHARE/boards */
    FL_PLACE_PLOTS,     /* $FOLDLINE_PLOTS */
    FL_PLACE_CLIENTS    /* $FOLDLINE_CLIENT_DIR: libraries that emulated and recorded programs load */
} fl_place_id;

/* Writes the path into buf and returns buf. Where no candidate exists, the path is the last candidate. */
const char *fl_place(fl_place_id id, char *buf, size_t size);
