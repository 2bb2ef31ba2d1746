#include "harness/live/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Start of a process in clock ticks since boot: with its number it names one process, whatever was reused; 0 = gone. */
static uint64_t started(pid_t pid) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    bool ok = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    char *at = ok ? strrchr(line, ')') : NULL; /* the name may hold anything */
    uint64_t ticks = 0;
    char state = 'X';
    if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                      &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : ticks;
}

static pid_t written_holder(int fd) {
    char text[64] = "";
    int pid = 0;
    uint64_t ticks = 0;
    if (pread(fd, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%d %" SCNu64, &pid, &ticks) != 2 || pid <= 0)
        return 0;
    return ticks && started(pid) == ticks ? pid : 0;
}

#define HOLDER_NS INT64_C(1000000000)

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static fl_status wait_for(int fd, const char *unit, int64_t wait_ns, fl_diag *d) {
    const int64_t start = now_ns(), end = start + wait_ns;
    int64_t free_ns = start; /* when no controller was seen last */
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fl_error(d, FL_IO, "cannot lock %s: %s", unit, fl_reason(errno));
        pid_t holder = written_holder(fd);
        if (!holder)
            free_ns = now_ns();
        if (now_ns() - free_ns > HOLDER_NS)
            return fl_error(d, FL_HARDWARE, "%s is controlled by process %d: stop that first", unit, (int)holder);
        if (now_ns() > end)
            return fl_error(d, FL_HARDWARE, "%s: the restore that holds it does not end", unit);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return FL_OK;
}

/* Whoever held it before may have removed the file: what we locked then is not what the next one opens. */
static bool removed(int fd, const char *path) {
    struct stat ours, there;
    if (!fstat(fd, &ours) && !stat(path, &there) && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
        return false;
    close(fd);
    return true;
}

bool fl_lock_superseded(const char *state, const fl_lock *lock) {
    char path[512];
    struct stat ours, there;
    return fl_state_path(state, lock->unit, ".lock", path, sizeof path) && !fstat(lock->fd, &ours) &&
           !stat(path, &there) && (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev);
}

fl_status fl_lock_take(const char *state, const char *unit, fl_lock_use use, int64_t wait_ns, fl_lock *lock,
                       fl_diag *d) {
    char path[512], text[64];
    *lock = (fl_lock){.fd = -1};
    if (!fl_state_path(state, unit, ".lock", path, sizeof path))
        return fl_refuse(d, "'%.60s' cannot be the name of a lock", unit);
    int fd;
    fl_status s;
    do {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return fl_fail(d, FL_IO, path, 0, 0, "cannot open the lock: %s", fl_reason(errno));
        s = wait_for(fd, unit, wait_ns, d);
    } while (!s && removed(fd, path));
    int size = use == FL_LOCK_CONTROL
                   ? snprintf(text, sizeof text, "%d %" PRIu64 "\n", (int)getpid(), started(getpid()))
                   : snprintf(text, sizeof text, "restore\n");
    if (!s && (ftruncate(fd, 0) || pwrite(fd, text, (size_t)size, 0) != size))
        s = fl_fail(d, FL_IO, path, 0, 0, "cannot write the lock: %s", fl_reason(errno));
    if (s) {
        close(fd);
        return s;
    }
    lock->fd = fd;
    snprintf(lock->unit, sizeof lock->unit, "%s", unit);
    return FL_OK;
}

void fl_lock_unlink(const char *state, const fl_lock *lock) {
    char path[512];
    if (!fl_lock_superseded(state, lock) && fl_state_path(state, lock->unit, ".lock", path, sizeof path))
        unlink(path);
}

void fl_lock_close(fl_lock *lock) {
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}

pid_t fl_lock_holder(const char *state, const char *unit) {
    char path[512];
    if (!fl_state_path(state, unit, ".lock", path, sizeof path))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    pid_t holder = fd >= 0 ? written_holder(fd) : 0;
    if (fd >= 0)
        close(fd);
    return holder;
}
