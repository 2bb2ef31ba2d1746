/* Reading bytes: files, the standard input, pipes, gzip. */
#include "traces/io/inside.h"

#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FL_GUNZIP_FREE (256 << 20)
#define FL_GUNZIP_TIMES 200
#define FL_PIPE_MOST (INT64_C(4) << 30) /* bytes that are kept of a pipe, which may have no end */

/* ---- standard streams and pipes ---- */

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
static kept kept_files[KEPT_MAX];
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
    int64_t sum = 0;
    if ((*fd = fl_open_nameless(d)) < 0)
        return FL_IO;
    for (;;) {
        const ssize_t got = read(from, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return FL_OK;
        sum += got > 0 ? got : 0;
        const bool endless = sum > FL_PIPE_MOST;
        const int error = got > 0 && !endless ? fl_write_whole(*fd, chunk, (size_t)got) : 0;
        if (got > 0 && !error && !endless)
            continue;
        const fl_status s = endless   ? fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                                                "more than %lld GiB came through the pipe, expected an end, or a file",
                                                (long long)(FL_PIPE_MOST >> 30))
                            : got < 0 ? fl_fail(d, errno == EISDIR ? FL_BAD_INPUT : FL_IO, path, 0, 0,
                                                "cannot read: %s", fl_reason(errno))
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
    while (i < count && (kept_files[i].device != s->st_dev || kept_files[i].inode != s->st_ino))
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
        kept_files[count++] = (kept){s->st_dev, s->st_ino, fd};
    }
    if ((fd = again(kept_files[i].fd)) < 0)
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

/* ---- gzip ---- */

enum { CHUNK = 64 << 10 };

struct fl_gunzip {
    char *path;
    int fd;
    bool packed, at_end; /* at_end: of the file */
    bool between;        /* no member of the gzip file is open */
    off_t size, taken;
    size_t begin, end; /* of what chunk holds */
    uint64_t unpacked; /* bytes so far */
    z_stream z;
    unsigned char chunk[CHUNK]; /* last, as fl_gunzip_open clears all but this */
};

/* Adds to *have what one read gives. */
static fl_status read_into(fl_gunzip *g, unsigned char *bytes, size_t size, size_t *have, fl_diag *d) {
    ssize_t n;
    do
        n = read(g->fd, bytes, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fl_fail(d, FL_IO, g->path, 0, 0, "cannot read on: %s", fl_reason(errno));
    g->at_end = n == 0;
    *have += (size_t)n;
    g->taken += n;
    return FL_OK;
}

static fl_status read_more(fl_gunzip *g, fl_diag *d) {
    memmove(g->chunk, g->chunk + g->begin, g->end - g->begin);
    g->end -= g->begin;
    g->begin = 0;
    return read_into(g, g->chunk + g->end, CHUNK - g->end, &g->end, d);
}

static bool is_gzip(const fl_gunzip *g) {
    return g->end - g->begin >= 2 && g->chunk[g->begin] == 0x1f && g->chunk[g->begin + 1] == 0x8b;
}

fl_gunzip *fl_gunzip_open(const char *path, fl_diag *d) {
    fl_gunzip *g = malloc(sizeof *g);
    if (g)
        memset(g, 0, offsetof(fl_gunzip, chunk)); /* the chunk is 16 pages, of which a short file needs one */
    if (!g || !(g->path = strdup(path))) {
        free(g);
        fl_no_memory(d, path);
        return NULL;
    }
    struct stat s = {0};
    fl_diag none; /* its status is wanted */
    d = d ? d : &none;
    g->fd = fl_open_read(path, d);
    fl_status status = g->fd < 0 ? d->status : FL_OK;
    g->size = !status && !fstat(g->fd, &s) && S_ISREG(s.st_mode) ? s.st_size : 0;
    while (!status && !g->at_end && g->end < 2)
        status = read_more(g, d);
    if (!status && is_gzip(g) && !FL_HAS_ZLIB)
        status = fl_no_library(d, path, "the file is gzipped", "zlib");
    if (!status && is_gzip(g)) {
        g->packed = g->between = true;
        if (inflateInit2(&g->z, 15 + 16) != Z_OK) { /* 16: a gzip head and end around the data */
            g->packed = false;
            status = fl_no_memory(d, path);
        }
    }
    if (!status)
        return g;
    fl_gunzip_close(g);
    return NULL;
}

void fl_gunzip_close(fl_gunzip *g) {
    if (!g)
        return;
    if (g->packed)
        inflateEnd(&g->z);
    if (g->fd >= 0)
        close(g->fd);
    free(g->path);
    free(g);
}

double fl_gunzip_share(const fl_gunzip *g) {
    double share = g->size > 0 ? (double)(g->taken - (off_t)(g->end - g->begin)) / (double)g->size : 0;
    return share > 1 ? 1 : share; /* it may grow while it is read */
}

static fl_status damaged(const fl_gunzip *g, const char *what, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, g->path, 0, 0, "%s", what);
}

/* A member may follow the last one, or the zeros by which a tape or block device fills up. */
static fl_status next_member(fl_gunzip *g, bool *ended, fl_diag *d) {
    for (;;) {
        while (g->end - g->begin < 2 && !g->at_end) {
            fl_status status = read_more(g, d);
            if (status)
                return status;
        }
        *ended = g->begin == g->end;
        if (*ended)
            return FL_OK;
        if (is_gzip(g)) {
            g->between = false;
            return inflateReset(&g->z) == Z_OK ? FL_OK : damaged(g, "gzip data cannot be unpacked", d);
        }
        if (g->chunk[g->begin] != 0)
            return damaged(g, "something else follows the gzip data, expected its end", d);
        g->begin++;
    }
}

static fl_status unpack(fl_gunzip *g, void *bytes, size_t size, size_t *got, fl_diag *d) {
    while (*got < size) {
        bool ended = false;
        fl_status status = FL_OK;
        if (g->between && ((status = next_member(g, &ended, d)) || ended))
            return status;
        if (g->begin == g->end && !g->at_end && (status = read_more(g, d)))
            return status;
        if (g->begin == g->end)
            return damaged(g, "the gzip data is cut off, expected its end", d);
        size_t room = size - *got < (size_t)1 << 30 ? size - *got : (size_t)1 << 30;
        g->z.next_in = g->chunk + g->begin;
        g->z.avail_in = (uInt)(g->end - g->begin);
        g->z.next_out = (unsigned char *)bytes + *got;
        g->z.avail_out = (uInt)room;
        int result = inflate(&g->z, Z_NO_FLUSH);
        g->begin = g->end - g->z.avail_in;
        *got += room - g->z.avail_out;
        g->unpacked += room - g->z.avail_out;
        if (g->unpacked > FL_GUNZIP_FREE && g->unpacked / FL_GUNZIP_TIMES > (uint64_t)g->taken)
            return fl_fail(d, FL_BAD_INPUT, g->path, 0, 0,
                           "the gzip data unpacks to more than %d times its size, and to more than %d MiB, expected "
                           "measurements (if it holds measurements, unpack it with gunzip first)",
                           FL_GUNZIP_TIMES, FL_GUNZIP_FREE >> 20);
        if (result == Z_STREAM_END)
            g->between = true;
        else if (result == Z_MEM_ERROR)
            return fl_no_memory(d, g->path);
        else if (result != Z_OK && result != Z_BUF_ERROR)
            return damaged(g, "the gzip data is damaged", d);
    }
    return FL_OK;
}

fl_status fl_gunzip_read(fl_gunzip *g, void *bytes, size_t size, size_t *got, fl_diag *d) {
    *got = 0;
    if (g->packed)
        return unpack(g, bytes, size, got, d);
    while (*got < size) {
        if (g->begin == g->end && size - *got >= CHUNK && !g->at_end) { /* without a copy */
            fl_status status = read_into(g, (unsigned char *)bytes + *got, size - *got, got, d);
            if (status)
                return status;
            continue;
        }
        if (g->begin == g->end) {
            fl_status status = g->at_end ? FL_OK : read_more(g, d);
            if (status || g->begin == g->end)
                return status;
        }
        size_t n = g->end - g->begin < size - *got ? g->end - g->begin : size - *got;
        memcpy((char *)bytes + *got, g->chunk + g->begin, n);
        g->begin += n;
        *got += n;
    }
    return FL_OK;
}

bool fl_gunzip_packed(const fl_gunzip *g) { return g->packed; }

fl_status fl_gunzip_text(const char *path, size_t most, char **text, size_t *size, fl_diag *d) {
    fl_gunzip *g = fl_gunzip_open(path, d);
    fl_diag none = {0};
    fl_status s = g ? FL_OK : d ? d->status : FL_BAD_INPUT;
    char *all = NULL;
    size_t room = 0, used = 0;
    d = d ? d : &none;
    for (size_t got = 1; !s && got;) {
        if (fl_grow(&all, &room, used + 4097, 1)) {
            s = fl_no_memory(d, path);
            break;
        }
        s = fl_gunzip_read(g, all + used, room - used - 1, &got, d);
        used += got;
        if (!s && used > most)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "more than %zu bytes, expected a smaller file", most);
    }
    fl_gunzip_close(g);
    if (s) {
        free(all);
        return s;
    }
    all[used] = '\0';
    *text = all;
    *size = used;
    return FL_OK;
}

/* Unpacks into a file without a name. -1 on failure. */
static int unpack_whole(fl_gunzip *g, fl_diag *d) {
    enum { PIECE = 256 << 10 };
    char *piece = malloc(PIECE);
    int fd = piece ? fl_open_nameless(d) : -1, error = 0;
    fl_status s = fd >= 0 ? FL_OK : piece ? FL_IO : fl_no_memory(d, g->path);
    for (size_t got = PIECE; !s && got == PIECE;) {
        s = fl_gunzip_read(g, piece, PIECE, &got, d);
        if (!s && (error = fl_write_whole(fd, piece, got)))
            s = fl_fail(d, FL_IO, g->path, 0, 0, "cannot be unpacked to a temporary file: %s", fl_reason(error));
    }
    free(piece);
    if (s && fd >= 0)
        close(fd);
    return s ? -1 : fd;
}

int fl_gunzip_whole(const char *path, fl_diag *d) {
    fl_gunzip *g = fl_gunzip_open(path, d);
    int fd = -1;
    if (g && g->packed) {
        fd = unpack_whole(g, d);
    } else if (g) {
        fd = g->fd;
        g->fd = -1;
    }
    fl_gunzip_close(g);
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET); /* what cannot seek was kept by fl_open_read, or is a device that has no place */
    return fd;
}
