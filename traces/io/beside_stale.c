#include "traces/io/beside_stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

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

int fl_beside_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
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

void fl_beside_sweep(const char *path) {
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
