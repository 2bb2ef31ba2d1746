#include "traces/io/beside.h"

#include "traces/io/beside_stale.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_nameless(const char *path, mode_t mode) {
    char *folder;
    const int size = fl_beside_folder(path);
    if (access("/proc/self/fd", X_OK) || asprintf(&folder, "%.*s", size ? size : 1, size ? path : ".") < 0)
        return -1;
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    free(folder);
    return fd;
}

static int open_named(const char *path, mode_t mode, int *fd, char **name) {
    for (;;) {
        if (!(*name = fl_beside_name(path)))
            return ENOMEM;
        *fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*fd >= 0 && fl_beside_claim(*fd))
            return 0;
        const int error = *fd < 0 ? errno : EEXIST;
        if (*fd >= 0) {
            unlink(*name);
            close(*fd);
        }
        free(*name);
        *name = NULL;
        if (error != EEXIST)
            return error;
    }
}

int fl_beside_open(fl_beside *b, const char *path, mode_t mode) {
    fl_beside_sweep(path);
    *b = (fl_beside){.fd = open_nameless(path, mode)};
    if (b->fd >= 0)
        (void)fl_beside_claim(b->fd); /* for the name that it is going to have */
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
    if (!error && dup3(fd, b->fd, O_CLOEXEC) < 0) /* stays open, and claimed, until it is in its place */
        error = errno;
    close(fd);
    return error;
}

/* A link never replaces a file, a rename does: so it gets a name of its own first. */
static int give_name(fl_beside *b, const char *path) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", b->fd);
    for (;;) {
        char *name = fl_beside_name(path);
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
