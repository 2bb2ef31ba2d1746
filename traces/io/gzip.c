#include "traces/io/gzip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static bool ends(const char *text, size_t size, const char *ending) {
    const size_t n = strlen(ending);
    return size > n && !memcmp(text + size - n, ending, n);
}

bool fl_gzip_named(const char *path) { return ends(path, strlen(path), ".gz"); }

size_t fl_plain_length(const char *path) { return strlen(path) - (fl_gzip_named(path) ? 3 : 0); }

bool fl_name_ends(const char *path, const char *ending) { return ends(path, fl_plain_length(path), ending); }

size_t fl_stem_length(const char *path, const char *what) {
    return fl_plain_length(path) - (fl_name_ends(path, what) ? strlen(what) : 0);
}

struct fl_gzip {
    fl_gzip_put put;
    void *user;
    z_stream z;
    unsigned char chunk[64 << 10];
};

/* zlib's own would not be seen to fail (harness/base/work/memory.h). */
static void *allocate(void *user, unsigned count, unsigned size) {
    (void)user;
    return calloc(count, size);
}

static void release(void *user, void *bytes) {
    (void)user;
    free(bytes);
}

fl_gzip *fl_gzip_open(fl_gzip_put put, void *user) {
    fl_gzip *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (fl_gzip){.put = put, .user = user, .z = {.zalloc = allocate, .zfree = release}};
    if (deflateInit2(&g->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK) /* 16: with a gzip head */
        return g;
    free(g);
    return NULL;
}

int fl_gzip_write(fl_gzip *g, const void *bytes, size_t size, fl_gzip_upto upto) {
    const unsigned char *at = bytes;
    do {
        const size_t piece = size < (size_t)1 << 30 ? size : (size_t)1 << 30;
        const int flush = piece < size           ? Z_NO_FLUSH
                          : upto == FL_GZIP_END  ? Z_FINISH
                          : upto == FL_GZIP_SYNC ? Z_SYNC_FLUSH
                                                 : Z_NO_FLUSH;
        g->z.next_in = (unsigned char *)(uintptr_t)at;
        g->z.avail_in = (uInt)piece;
        do {
            g->z.next_out = g->chunk;
            g->z.avail_out = sizeof g->chunk;
            if (deflate(&g->z, flush) == Z_STREAM_ERROR)
                return EIO;
            const int error = g->put(g->user, g->chunk, sizeof g->chunk - g->z.avail_out);
            if (error)
                return error;
        } while (g->z.avail_out == 0);
        at += piece;
        size -= piece;
    } while (size);
    return 0;
}

void fl_gzip_close(fl_gzip *g) {
    if (g)
        deflateEnd(&g->z);
    free(g);
}
