#include "harness/base/cli/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *variable, *below; /* the folder: $variable + below */
    const char *installed, *near; /* from the program's folder */
    const char *built;
} places[] = {
    [FL_PLACE_PLATFORMS] = {"FOLDLINE_SHARE", "/platforms", "../share/foldline/platforms", "../models/platforms",
                            FL_SHARE_DIR "/platforms"},
    [FL_PLACE_BOARDS] = {"FOLDLINE_SHARE", "/boards", "../share/foldline/boards", "../models/boards",
                         FL_SHARE_DIR "/boards"},
    [FL_PLACE_PLOTS] = {"FOLDLINE_PLOTS", "", "../share/foldline/plots", "../plots", FL_PLOTS_DIR},
    [FL_PLACE_CLIENTS] = {"FOLDLINE_CLIENT_DIR", "", "../lib/foldline", "emulated", FL_CLIENT_DIR},
};

const char *fl_place(fl_place_id id, char *buf, size_t size) {
    const char *asked = getenv(places[id].variable);
    char folder[2048] = "";
    if (asked && *asked) {
        snprintf(buf, size, "%s%s", asked, places[id].below);
        return buf;
    }
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    char *slash = n > 0 ? strrchr(folder, '/') : NULL;
    const char *const near[] = {places[id].installed, places[id].near};
    for (size_t i = 0; slash && i < sizeof near / sizeof *near; i++) {
        char path[2560], real[PATH_MAX];
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - folder), folder, near[i]);
        if (realpath(path, real) && !access(real, R_OK | X_OK)) {
            snprintf(buf, size, "%s", real);
            return buf;
        }
    }
    snprintf(buf, size, "%s", places[id].built);
    return buf;
}
