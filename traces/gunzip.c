#include "traces/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 64 << 10 };

struct fl_gunzip {
    char *path;
    int fd;
    bool packed, at_end; /* at_end: of the file */
    bool between;        /* no member of the gzip file is open */
    off_t size, taken;
    size_t begin, end; /* of what chunk holds */
    z_stream z;
    unsigned char chunk[CHUNK];
};

static fl_status read_more(fl_gunzip *g, fl_diag *d) {
    memmove(g->chunk, g->chunk + g->begin, g->end - g->begin);
    g->end -= g->begin;
    g->begin = 0;
    ssize_t n;
    do
        n = read(g->fd, g->chunk + g->end, CHUNK - g->end);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fl_fail(d, FL_IO, g->path, 0, 0, "cannot read on: %s", fl_reason(errno));
    g->at_end = n == 0;
    g->end += (size_t)n;
    g->taken += n;
    return FL_OK;
}

static bool is_gzip(const fl_gunzip *g) {
    return g->end - g->begin >= 2 && g->chunk[g->begin] == 0x1f && g->chunk[g->begin + 1] == 0x8b;
}

fl_gunzip *fl_gunzip_open(const char *path, fl_diag *d) {
    fl_gunzip *g = calloc(1, sizeof *g);
    if (!g || !(g->path = strdup(path))) {
        free(g);
        fl_no_memory(d, path);
        return NULL;
    }
    struct stat s = {0};
    g->fd = open(path, O_RDONLY | O_CLOEXEC);
    fl_status status = FL_OK;
    if (g->fd < 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "cannot open: %s", fl_reason(errno));
    else if (fstat(g->fd, &s) == 0 && S_ISDIR(s.st_mode))
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "is a directory, expected a file");
    g->size = S_ISREG(s.st_mode) ? s.st_size : 0;
    while (!status && !g->at_end && g->end < 2)
        status = read_more(g, d);
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
