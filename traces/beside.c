#include "traces/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int folder_size(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* The next name of ours: short, so that any name that fits the folder can be written. */
static char *next_name(const char *path) {
    static atomic_uint serial;
    char *name;
    return asprintf(&name, "%.*s.foldline-%ld-%u.tmp", folder_size(path), path, (long)getpid(),
                    atomic_fetch_add(&serial, 1)) < 0
               ? NULL
               : name;
}

static int open_nameless(const char *path, mode_t mode) {
    char *folder;
    const int size = folder_size(path);
    if (access("/proc/self/fd", X_OK) || asprintf(&folder, "%.*s", size ? size : 1, size ? path : ".") < 0)
        return -1;
    const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    free(folder);
    return fd;
}

int fl_beside_open(fl_beside *b, const char *path, mode_t mode) {
    *b = (fl_beside){.fd = open_nameless(path, mode)};
    while (b->fd < 0) {
        free(b->temporary);
        if (!(b->temporary = next_name(path)))
            return ENOMEM;
        b->fd = open(b->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (b->fd < 0 && errno != EEXIST) {
            const int error = errno;
            free(b->temporary);
            b->temporary = NULL;
            return error;
        }
    }
    return 0;
}

/* A link never replaces a file, a rename does: so it gets a name of its own first. */
static int give_name(fl_beside *b, const char *path) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", b->fd);
    for (;;) {
        char *name = next_name(path);
        if (!name)
            return ENOMEM;
        if (!linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW)) {
            b->temporary = name;
            return 0;
        }
        const int error = errno;
        free(name);
        if (error != EEXIST)
            return error;
    }
}

int fl_beside_place(fl_beside *b, const char *path) {
    const int error = b->temporary ? 0 : give_name(b, path);
    if (error)
        return error;
    if (rename(b->temporary, path))
        return errno;
    free(b->temporary);
    b->temporary = NULL;
    return 0;
}

void fl_beside_drop(fl_beside *b) {
    if (b->temporary)
        unlink(b->temporary);
    free(b->temporary);
    b->temporary = NULL;
}
