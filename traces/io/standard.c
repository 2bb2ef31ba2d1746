#include "traces/io/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fl_write_whole(int fd, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, (const char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        done += (size_t)n;
    }
    return 0;
}

int fl_copy_whole(int from, int to) {
    char chunk[1 << 16];
    for (off_t at = 0;;) {
        const ssize_t got = pread(from, chunk, sizeof chunk, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? errno : 0;
        const int error = fl_write_whole(to, chunk, (size_t)got);
        if (error)
            return error;
        at += got;
    }
}

/* ---- reading ---- */

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int fl_open_nameless(fl_diag *d) {
    const char *folder = temporary_folder();
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char name[4096];
    const int size = fd < 0 ? snprintf(name, sizeof name, "%s/foldline-XXXXXX", folder) : 0;
    if (fd < 0 && size > 0 && size < (int)sizeof name && (fd = mkostemp(name, O_CLOEXEC)) >= 0)
        unlink(name);
    if (fd < 0)
        fl_fail(d, FL_IO, folder, 0, 0, "cannot keep a temporary file there: %s", fl_reason(errno));
    return fd;
}

/* What came through a pipe, by the pipe's own identity, so that any path to it finds it. */
typedef struct kept {
    dev_t device;
    ino_t inode;
    int fd;
} kept;

enum { KEPT_MAX = 64 }; /* more pipes than a command line has */
static kept all[KEPT_MAX];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A descriptor of its own place in the file. */
static int again(int fd) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int fresh = open(path, O_RDONLY | O_CLOEXEC);
    if (fresh >= 0)
        return fresh;
    const int same = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* without /proc one reader at a time has to do */
    if (same >= 0 && lseek(same, 0, SEEK_SET) != 0) {
        close(same);
        return -1;
    }
    return same;
}

static fl_status keep(int from, const char *path, int *fd, fl_diag *d) {
    char chunk[1 << 16];
    if ((*fd = fl_open_nameless(d)) < 0)
        return FL_IO;
    for (;;) {
        const ssize_t got = read(from, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return FL_OK;
        const int error = got > 0 ? fl_write_whole(*fd, chunk, (size_t)got) : 0;
        if (got > 0 && !error)
            continue;
        const fl_status s = got < 0 ? fl_fail(d, errno == EISDIR ? FL_BAD_INPUT : FL_IO, path, 0, 0, "cannot read: %s",
                                              fl_reason(errno))
                                    : fl_fail(d, FL_IO, path, 0, 0, "cannot be kept in %s, which TMPDIR names: %s",
                                              temporary_folder(), fl_reason(error));
        close(*fd);
        *fd = -1;
        return s;
    }
}

/* Under the lock: who comes second waits for the whole. */
static int open_kept(int from, const struct stat *s, const char *path, fl_diag *d) {
    int fd = -1;
    size_t i = 0;
    while (i < count && (all[i].device != s->st_dev || all[i].inode != s->st_ino))
        i++;
    if (i == KEPT_MAX) {
        fl_fail(d, FL_BAD_INPUT, path, 0, 0, "more than %d pipes, expected fewer", KEPT_MAX);
        return -1;
    }
    if (i == count) {
        const int opened = from >= 0 ? from : open(path, O_RDONLY | O_CLOEXEC);
        if (opened < 0) {
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "cannot open: %s", fl_reason(errno));
            return -1;
        }
        const fl_status status = keep(opened, path, &fd, d);
        if (opened != from)
            close(opened);
        if (status)
            return -1;
        all[count++] = (kept){s->st_dev, s->st_ino, fd};
    }
    if ((fd = again(all[i].fd)) < 0)
        fl_fail(d, FL_IO, path, 0, 0, "cannot read again: %s", fl_reason(errno));
    return fd;
}

static int open_stdin(const char *path, fl_diag *d) {
    struct stat s;
    int fd = -1;
    if (fstat(STDIN_FILENO, &s)) {
        fl_fail(d, FL_BAD_INPUT, path, 0, 0, "cannot read: %s", fl_reason(errno));
        return -1;
    }
    if (S_ISREG(s.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 && (fd = again(STDIN_FILENO)) >= 0)
        return fd;
    pthread_mutex_lock(&lock);
    fd = open_kept(STDIN_FILENO, &s, path, d);
    pthread_mutex_unlock(&lock);
    return fd;
}

int fl_open_read(const char *path, fl_diag *d) {
    struct stat s;
    if (fl_is_standard(path))
        return open_stdin(path, d);
    if (!stat(path, &s) && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode))) {
        pthread_mutex_lock(&lock);
        const int fd = open_kept(-1, &s, path, d);
        pthread_mutex_unlock(&lock);
        return fd;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fl_fail(d, FL_BAD_INPUT, path, 0, 0, "cannot open: %s", fl_reason(errno));
        return -1;
    }
    if (fstat(fd, &s) == 0 && S_ISDIR(s.st_mode)) {
        fl_fail(d, FL_BAD_INPUT, path, 0, 0, "is a directory, expected a file");
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- writing ---- */

static int claimed = -1; /* the standard output as it was */

fl_status fl_stdout_claim(fl_diag *d) {
    if (claimed >= 0)
        return FL_OK;
    fflush(stdout);
    if ((claimed = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return fl_error(d, FL_IO, "<stdout>: cannot be kept for a file: %s", fl_reason(errno));
    setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what else goes there */
    return FL_OK;
}

int fl_stdout_open(void) { return fcntl(claimed >= 0 ? claimed : STDOUT_FILENO, F_DUPFD_CLOEXEC, 3); }
