#include "harness/live/vendor/state.h"

#include "harness/live/vendor/mutation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 }; /* a record of 4,096 CPUs is half of it */

const char *fl_state_folder(void) {
    const char *asked = getenv("FOLDLINE_STATE");
    return asked && *asked ? asked : "/var/lib/foldline";
}

const char *fl_run_folder(void) {
    static char own[64];
    const char *asked = getenv("FOLDLINE_RUN");
    if (asked && *asked)
        return asked;
    if (!geteuid())
        return "/run/foldline";
    snprintf(own, sizeof own, "/tmp/foldline-%u", (unsigned)geteuid());
    return own;
}

bool fl_state_path(const char *folder, const char *unit, const char *ending, char *buf, size_t size) {
    if (!*unit || *unit == '.' || strchr(unit, '/') || strlen(unit) >= FL_UNIT_MAX)
        return false;
    return (size_t)snprintf(buf, size, "%s/%s%s", folder, unit, ending) < size;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static fl_status check_folder(int fd, const char *folder, fl_diag *d) {
    struct stat f;
    if (fstat(fd, &f))
        return fl_error(d, FL_IO, "cannot look at the folder %s: %s", folder, fl_reason(errno));
    if (fl_mutated("folder-unchecked"))
        return FL_OK;
    if (f.st_uid != geteuid())
        return fl_error(
            d, FL_IO,
            "the folder %s belongs to user %u, and this runs as user %u: nothing in it is believed. Run it as "
            "that user, or name another folder",
            folder, (unsigned)f.st_uid, (unsigned)geteuid());
    if (f.st_mode & (S_IWGRP | S_IWOTH))
        return fl_error(d, FL_IO,
                        "others may write the folder %s (mode %03o): nothing in it is believed. Look at what is in it, "
                        "then chmod 0700 it",
                        folder, (unsigned)(f.st_mode & 0777));
    return FL_OK;
}

fl_status fl_folder_open(const char *folder, int *fd, fl_diag *d) {
    const int follow = fl_mutated("links-followed") ? 0 : O_NOFOLLOW;
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    if (*fd < 0 && errno == ENOENT)
        return FL_OK;
    if (*fd < 0)
        return fl_error(d, FL_IO, "cannot open the folder %s: %s", folder,
                        errno == ENOTDIR || errno == ELOOP ? "it is no folder, or a link to one, which is not followed"
                                                           : fl_reason(errno));
    fl_status s = check_folder(*fd, folder, d);
    if (s) {
        close(*fd);
        *fd = -1;
    }
    return s;
}

fl_status fl_folder_make(const char *folder, fl_diag *d) {
    int fd = -1;
    if (mkdir(folder, 0700) && errno != EEXIST)
        return fl_error(d, FL_IO, "cannot make the folder %s: %s", folder, fl_reason(errno));
    fl_status s = fl_folder_open(folder, &fd, d);
    if (!s && fd < 0)
        s = fl_error(d, FL_IO, "the folder %s is gone again", folder);
    if (fd >= 0)
        close(fd);
    return s;
}

fl_status fl_state_open(const char **state, fl_diag *d) {
    *state = fl_state_folder();
    return fl_folder_make(*state, d);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* The reason not to trust a file; NULL = none. */
static const char *distrust(const struct stat *f) {
    if (!S_ISREG(f->st_mode))
        return fl_mutated("not-regular-taken") ? NULL : "it is no regular file";
    if (f->st_uid != geteuid())
        return fl_mutated("owner-unchecked") ? NULL : "it belongs to another user";
    if (f->st_mode & (S_IWGRP | S_IWOTH))
        return fl_mutated("mode-unchecked") ? NULL : "others may write it";
    if (f->st_nlink > 1)
        return fl_mutated("hard-link-taken") ? NULL : "it is a second name of another file";
    if (f->st_size > FILE_MAX)
        return fl_mutated("size-unbounded") ? NULL : "it is larger than any that foldline writes";
    return NULL;
}

static fl_status distrusted(const char *path, const char *why, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                   "foldline did not write it in this form: %s. foldline leaves it alone: remove it", why);
}

fl_status fl_state_file(const char *folder, const char *unit, const char *ending, int flags, int *fd, fl_diag *d) {
    char path[512];
    struct stat f;
    int at;
    *fd = -1;
    if (!fl_state_path(folder, unit, ending, path, sizeof path))
        return fl_refuse(d, "'%.60s' cannot be the name of a file of state", unit);
    fl_status s = fl_folder_open(folder, &at, d);
    if (s || at < 0)
        return s;
    const int follow = fl_mutated("links-followed") ? 0 : O_NOFOLLOW;
    const int wait = fl_mutated("fifo-waited-for") ? 0 : O_NONBLOCK;
    *fd = openat(at, path + strlen(folder) + 1, flags | O_CLOEXEC | O_NOCTTY | follow | wait, 0600);
    const int error = errno;
    close(at);
    if (*fd < 0)
        return error == ENOENT && !(flags & O_CREAT) ? FL_OK
               : error == ELOOP                      ? distrusted(path, "it is a link", d)
               : error == ENXIO || error == EISDIR   ? distrusted(path, "it is no regular file", d)
                                                   : fl_fail(d, FL_IO, path, 0, 0, "cannot open: %s", fl_reason(error));
    const char *why = fstat(*fd, &f) ? fl_reason(errno) : distrust(&f);
    if (why) {
        close(*fd);
        *fd = -1;
        return distrusted(path, why, d);
    }
    return FL_OK;
}

fl_status fl_state_remove(const char *folder, const char *unit, const char *ending, fl_diag *d) {
    char path[512];
    int at;
    if (!fl_state_path(folder, unit, ending, path, sizeof path))
        return fl_refuse(d, "'%.60s' cannot be the name of a file of state", unit);
    fl_status s = fl_folder_open(folder, &at, d);
    if (s || at < 0)
        return s;
    if (!unlinkat(at, path + strlen(folder) + 1, 0))
        fsync(at); /* the removal must be on disk too, or a crash could bring the entry back */
    else if (errno != ENOENT)
        s = fl_fail(d, FL_IO, path, 0, 0, "cannot remove: %s", fl_reason(errno));
    close(at);
    return s;
}
