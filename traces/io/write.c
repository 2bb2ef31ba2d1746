/* Durable writing: temporary files and a rename, gzip, texts in memory. */
#include "traces/io/inside.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <csv.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct fl_gzip fl_gzip;
/* Receives packed bytes. Returns 0 or an errno value. */
typedef int (*fl_gzip_put)(void *user, const void *bytes, size_t size);

typedef enum fl_gzip_upto {
    FL_GZIP_MORE, /* bytes may stay in the buffer */
    FL_GZIP_SYNC, /* the reader can unpack everything written so far */
    FL_GZIP_END   /* the end of the file */
} fl_gzip_upto;

/* ---- gzip ---- */

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

/* zlib's own would not be seen to fail (harness/base/work/work.h). */
static void *allocate(void *user, unsigned count, unsigned size) {
    (void)user;
    return calloc(count, size);
}

static void release(void *user, void *bytes) {
    (void)user;
    free(bytes);
}

/* NULL: out of memory */
static fl_gzip *fl_gzip_open(fl_gzip_put put, void *user) {
    fl_gzip *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (fl_gzip){.put = put, .user = user, .z = {.zalloc = allocate, .zfree = release}};
    if (deflateInit2(&g->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK) /* 16: with a gzip head */
        return g;
    free(g);
    return NULL;
}

/* 0, or an errno value */
static int fl_gzip_write(fl_gzip *g, const void *bytes, size_t size, fl_gzip_upto upto) {
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

/* may be NULL */
static void fl_gzip_close(fl_gzip *g) {
    if (g)
        deflateEnd(&g->z);
    free(g);
}

/* ---- texts in memory ---- */

FILE *fl_text_open(fl_text *t) {
    *t = (fl_text){0};
    return t->file = open_memstream(&t->text, &t->size);
}

char *fl_text_close(fl_text *t, size_t *size) {
    if (!t->file)
        return NULL;
    const bool torn = ferror(t->file) != 0;
    const bool closed = !fclose(t->file);
    t->file = NULL;
    if (torn || !closed || !t->text) { /* where the last byte found none, all is well but for the text */
        fl_memory_lost();
        free(t->text);
        return NULL;
    }
    if (size)
        *size = t->size;
    return t->text;
}

/* ---- writing ---- */

struct fl_output {
    FILE *file;
    char *path;    /* where the result goes, links resolved */
    bool direct;   /* written as it comes: path is no regular file (a terminal, a pipe), or a stream was asked for */
    bool standard; /* the standard output, which gets the whole at once */
    fl_beside beside;
    fl_gzip *gzip;
    int error; /* errno of the first failed write: stdio itself forgets it */
};

static int put(void *user, const void *bytes, size_t size) {
    const fl_output *o = user;
    return fl_write_whole(o->beside.fd, bytes, size);
}

static ssize_t write_all(void *cookie, const char *data, size_t size) {
    fl_output *o = cookie;
    const int error =
        o->gzip ? fl_gzip_write(o->gzip, data, size, o->direct ? FL_GZIP_SYNC : FL_GZIP_MORE) : put(o, data, size);
    o->error = o->error ? o->error : error;
    return error ? 0 : (ssize_t)size;
}

static void destroy(fl_output *o) {
    if (o->file)
        fclose(o->file);
    if (o->beside.fd >= 0)
        close(o->beside.fd);
    fl_beside_drop(&o->beside);
    fl_gzip_close(o->gzip);
    free(o->path);
    free(o);
}

static fl_status open_standard(fl_output *o, bool stream, fl_diag *d) {
    o->direct = stream;
    o->standard = !stream;
    o->beside.fd = stream ? fl_stdout_open() : fl_open_nameless(d);
    if (stream && o->beside.fd < 0)
        return fl_fail(d, FL_IO, o->path, 0, 0, "cannot write: %s", fl_reason(errno));
    return o->beside.fd < 0 ? FL_IO : FL_OK;
}

static fl_status open_named(fl_output *o, const char *path, bool stream, fl_diag *d) {
    struct stat s;
    const bool exists = stat(o->path, &s) == 0;
    if (exists && S_ISDIR(s.st_mode))
        return fl_fail(d, FL_IO, path, 0, 0, "is a directory, expected a file to write");
    o->direct = stream || (exists && !S_ISREG(s.st_mode));
    int error = 0;
    if (!o->direct)
        error = fl_beside_open(&o->beside, o->path, 0666);
    else if ((o->beside.fd = open(o->path, O_WRONLY | O_CLOEXEC | (stream ? O_CREAT | O_TRUNC : 0), 0666)) < 0)
        error = errno;
    if (error)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot create: %s", fl_reason(error));
    if (exists && !o->direct && fchmod(o->beside.fd, s.st_mode & 07777) != 0)
        errno = 0; /* keeping the mode of the old file is a courtesy */
    return FL_OK;
}

static fl_output *open_output(const char *path, bool stream, fl_diag *d) {
    const bool standard = fl_is_standard(path);
    if (fl_gzip_named(path) && !FL_HAS_ZLIB) {
        fl_no_library(d, path, "the file is to be gzipped", "zlib");
        return NULL;
    }
    fl_output *o = calloc(1, sizeof *o);
    if (!o || (o->beside.fd = -1, o->path = standard ? strdup("<stdout>") : realpath(path, NULL),
               !o->path && !(o->path = strdup(path)))) {
        free(o);
        fl_no_memory(d, path);
        return NULL;
    }
    fl_status s = standard ? open_standard(o, stream, d) : open_named(o, path, stream, d);
    if (!s && ((fl_gzip_named(path) && !(o->gzip = fl_gzip_open(put, o))) ||
               !(o->file = fopencookie(o, "w", (cookie_io_functions_t){.write = write_all}))))
        s = fl_no_memory(d, path);
    if (s) {
        destroy(o);
        return NULL;
    }
    setvbuf(o->file, NULL, _IOFBF, 1 << 16);
    return o;
}

fl_output *fl_output_open(const char *path, fl_diag *d) { return open_output(path, false, d); }

fl_status fl_output_try(const char *path, fl_diag *d) {
    struct stat s;
    if (!path || fl_is_standard(path) ||
        (!stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode) && !access(path, W_OK)))
        return FL_OK; /* a pipe is opened once only */
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    fl_output_abort(o);
    return FL_OK;
}
fl_output *fl_output_stream(const char *path, fl_diag *d) { return open_output(path, true, d); }

FILE *fl_output_file(fl_output *o) { return o->file; }

/* After the rename the name itself must survive a power cut too; a folder that cannot be synced is no failure. */
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, sizeof folder, ".");
    else if (snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path) >= (int)sizeof folder)
        return;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fsync(fd) != 0)
        errno = 0;
    close(fd);
}

/* The whole of it, to who reads there. */
static int give_stdout(int from) {
    const int to = fl_stdout_open();
    int error = to < 0 ? errno : fl_copy_whole(from, to);
    if (to >= 0 && close(to) && !error)
        error = errno;
    return error;
}

fl_status fl_output_commit(fl_output *o, fl_diag *d) {
    if (fl_memory_failed()) {
        fl_no_memory(d, o->path);
        destroy(o);
        return FL_NO_MEMORY;
    }
    bool good = fflush(o->file) == 0 && !ferror(o->file);
    if (!good && !o->error)
        o->error = EIO;
    if (good && o->gzip)
        o->error = fl_gzip_write(o->gzip, "", 0, FL_GZIP_END);
    if (!o->error && o->standard)
        o->error = give_stdout(o->beside.fd);
    const bool in_place = !o->direct && !o->standard;
    if (!o->error && in_place && fsync(o->beside.fd) != 0)
        o->error = errno;
    if (!o->error && in_place) /* before it is closed: that reports nothing that fsync did not */
        o->error = fl_beside_place(&o->beside, o->path);
    const int fd = o->beside.fd;
    o->beside.fd = -1;
    if (close(fd) != 0 && !o->error && o->direct)
        o->error = errno;
    if (o->error) {
        fl_fail(d, FL_IO, o->path, 0, 0, "cannot write: %s", fl_reason(o->error));
        destroy(o);
        return FL_IO;
    }
    if (in_place)
        sync_folder(o->path);
    destroy(o);
    return FL_OK;
}

void fl_output_abort(fl_output *o) {
    if (o)
        destroy(o);
}

void fl_csv_put(FILE *file, const char *text) {
    size_t size = strlen(text);
    bool quote =
        size && (strpbrk(text, ",\"\r\n") || text[0] == '#' || strchr(" \t", text[0]) || strchr(" \t", text[size - 1]));
    if (quote)
        csv_fwrite(file, text, size);
    else
        fwrite(text, 1, size, file);
}

void fl_put_real(FILE *file, double value) {
    char text[FL_REAL_TEXT];
    if (!isnan(value))
        fputs(fl_real_text(value, text), file);
}

void fl_put_int(FILE *file, int64_t value) {
    char text[24];
    char *t = text + sizeof text;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--t = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--t = '-';
    fwrite(t, 1, (size_t)(text + sizeof text - t), file);
}

void fl_put_device(FILE *file, int32_t device) {
    if (device < 0)
        fputs("host", file);
    else
        fl_put_int(file, device);
}

static bool clean(const char *text, bool is_key) {
    size_t left = strlen(text);
    if (left && (strchr(" \t", text[0]) || strchr(" \t", text[left - 1])))
        return false;
    if (is_key && (!left || strchr(text, ':')))
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 && *text != '\t')
            return false;
    return true;
}

fl_status fl_put_head(FILE *file, const char *path, const char *format, const fl_head *h, fl_diag *d) {
    fprintf(file, "# %s 1\n", format);
    for (size_t i = 0; i < h->count; i++) {
        const char *key = h->entry[i].key, *value = h->entry[i].value;
        if (!clean(key, true) || !clean(value, false))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "head entry '%.60s' cannot be written, expected one line without blanks at its ends and no "
                           "':' in its name",
                           key);
        fprintf(file, "# %s:%s%s\n", key, *value ? " " : "", value);
    }
    return FL_OK;
}

fl_status fl_output_begin(const char *path, const char *format, const fl_head *h, fl_output **out, fl_diag *d) {
    if (!(*out = fl_output_open(path, d)))
        return d ? d->status : FL_IO;
    fl_status s = fl_put_head((*out)->file, path, format, h, d);
    if (s)
        fl_output_abort(*out);
    return s;
}
