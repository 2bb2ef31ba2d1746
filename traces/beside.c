#include "traces/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    free(folder);
    return fd;
}

static int open_named(const char *path, mode_t mode, int *fd, char **name) {
    for (;;) {
        if (!(*name = next_name(path)))
            return ENOMEM;
        *fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*fd >= 0)
            return 0;
        const int error = errno;
        free(*name);
        *name = NULL;
        if (error != EEXIST)
            return error;
    }
}

int fl_beside_open(fl_beside *b, const char *path, mode_t mode) {
    *b = (fl_beside){.fd = open_nameless(path, mode)};
    return b->fd >= 0 ? 0 : open_named(path, mode, &b->fd, &b->temporary);
}

static int copy(int from, int to) {
    char chunk[1 << 16];
    for (off_t at = 0;;) {
        const ssize_t got = pread(from, chunk, sizeof chunk, at);
        if (got <= 0)
            return got ? errno : 0;
        for (ssize_t done = 0, n; done < got; done += n)
            if ((n = write(to, chunk + done, (size_t)(got - done))) <= 0)
                return n ? errno : EIO;
        at += got;
    }
}

/* Some sandboxes open files without a name and never let them have one. */
static int copy_to_named(fl_beside *b, const char *path) {
    struct stat s;
    int fd = -1, error = fstat(b->fd, &s) ? errno : open_named(path, s.st_mode & 07777, &fd, &b->temporary);
    if (error)
        return error;
    error = copy(b->fd, fd);
    if (!error && fsync(fd))
        error = errno;
    close(fd);
    return error;
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
            return copy_to_named(b, path);
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
