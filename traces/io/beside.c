/* New files beside the files that they replace, and the removal of those that killed processes left behind. */
#include "traces/io/inside.h"

#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- files left behind ---- */

enum { DAY_S = 86400 };

#define BEGINS ".foldline-"
#define ENDS ".tmp"

/* Which machine, as eight digits: FNV-1a of its name. */
static uint32_t machine(void) {
    struct utsname u;
    uint32_t hash = UINT32_C(2166136261);
    for (const char *c = uname(&u) ? "" : u.nodename; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
    return hash;
}

/* Bytes of path up to and including its last slash; 0: it has none. */
static int fl_beside_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* Turns "a/b/../c" into "a/c", because such paths become names of workloads. It ignores links that would make a
 * difference. */
static void shorten(char *path) {
    for (char *up = strstr(path, "/../"); up; up = strstr(path, "/../")) {
        char *start = up;
        while (start > path && start[-1] != '/')
            start--;
        if (start == up || !strncmp(start, "..", 2))
            return;
        memmove(start, up + 4, strlen(up + 4) + 1);
    }
}

char *fl_path_named(const char *file, const char *path) {
    char *text;
    if (asprintf(&text, "%.*s%s", path[0] == '/' ? 0 : fl_beside_folder(file), file, path) < 0)
        return NULL;
    shorten(text);
    return text;
}

char *fl_beside_name(const char *path) {
    static atomic_uint serial;
    char *name;
    return asprintf(&name, "%.*s" BEGINS "%08x-%ld-%u" ENDS, fl_beside_folder(path), path, machine(), (long)getpid(),
                    atomic_fetch_add(&serial, 1)) < 0
               ? NULL
               : name;
}

bool fl_beside_claim(int fd) {
    struct stat s;
    if (flock(fd, LOCK_EX | LOCK_NB))
        return errno != EWOULDBLOCK;
    return fstat(fd, &s) || s.st_nlink > 0;
}

static bool is_stale(int fd, bool here) {
    struct stat s;
    if (fstat(fd, &s) || !S_ISREG(s.st_mode))
        return false;
    const bool locks = !flock(fd, LOCK_EX | LOCK_NB);
    if (!locks && errno == EWOULDBLOCK)
        return false;
    return (here && locks) || s.st_mtime < time(NULL) - DAY_S;
}

/* The lock is held while it goes, so that whoever has just made it finds out (fl_beside_claim). */
static void remove_stale(int folder, const char *name) {
    unsigned host = 0;
    const bool here = sscanf(name, BEGINS "%8x-", &host) == 1 && host == machine() && name[sizeof BEGINS + 7] == '-';
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (is_stale(fd, here))
        unlinkat(folder, name, 0);
    close(fd);
}

/* Removes the temporary files in the folder of path that no one uses. A file that this machine wrote goes at once,
 * because its lock vanished with its writer. Where locks say nothing (another machine, or a file system without locks),
 * the file goes a day after its last write. A file that cannot be examined stays. */
static void fl_beside_sweep(const char *path) {
    const int before = errno, size = fl_beside_folder(path);
    char *name;
    if (asprintf(&name, "%.*s", size ? size : 1, size ? path : ".") < 0)
        return;
    DIR *folder = opendir(name);
    free(name);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        const size_t length = strlen(e->d_name);
        if (!strncmp(e->d_name, BEGINS, sizeof BEGINS - 1) && length > sizeof ENDS &&
            !strcmp(e->d_name + length - (sizeof ENDS - 1), ENDS))
            remove_stale(dirfd(folder), e->d_name);
    }
    if (folder)
        closedir(folder);
    errno = before;
}

/* ---- new files ---- */

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
