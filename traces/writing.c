#include "traces/writing.h"

#include "traces/beside.h"
#include "traces/memory.h"
#include "traces/numbers.h"

#include <csv.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fl_output {
    FILE *file;
    char *path;  /* where the result goes, links resolved */
    bool direct; /* path is no regular file (a terminal, a pipe) and is written as it is */
    fl_beside beside;
    int error; /* errno of the first failed write: stdio itself forgets it */
};

static ssize_t write_all(void *cookie, const char *data, size_t size) {
    fl_output *o = cookie;
    size_t done = 0;
    while (done < size) {
        ssize_t n = write(o->beside.fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            o->error = o->error ? o->error : n < 0 ? errno : EIO;
            return 0;
        }
        done += (size_t)n;
    }
    return (ssize_t)size;
}

static void destroy(fl_output *o) {
    if (o->file)
        fclose(o->file);
    if (o->beside.fd >= 0)
        close(o->beside.fd);
    fl_beside_drop(&o->beside);
    free(o->path);
    free(o);
}

fl_output *fl_output_open(const char *path, fl_diag *d) {
    fl_output *o = calloc(1, sizeof *o);
    if (!o || (o->beside.fd = -1, o->path = realpath(path, NULL), !o->path && !(o->path = strdup(path)))) {
        free(o);
        fl_no_memory(d, path);
        return NULL;
    }
    struct stat s;
    bool exists = stat(o->path, &s) == 0;
    if (exists && S_ISDIR(s.st_mode)) {
        fl_fail(d, FL_IO, path, 0, 0, "is a directory, expected a file to write");
        destroy(o);
        return NULL;
    }
    o->direct = exists && !S_ISREG(s.st_mode);
    int error = 0;
    if (!o->direct)
        error = fl_beside_open(&o->beside, o->path, 0666);
    else if ((o->beside.fd = open(o->path, O_WRONLY | O_CLOEXEC)) < 0)
        error = errno;
    if (error) {
        fl_fail(d, FL_IO, path, 0, 0, "cannot create: %s", fl_reason(error));
        destroy(o);
        return NULL;
    }
    if (exists && !o->direct && fchmod(o->beside.fd, s.st_mode & 07777) != 0)
        errno = 0; /* keeping the mode of the old file is a courtesy */
    o->file = fopencookie(o, "w", (cookie_io_functions_t){.write = write_all});
    if (!o->file) {
        fl_no_memory(d, path);
        destroy(o);
        return NULL;
    }
    setvbuf(o->file, NULL, _IOFBF, 1 << 16);
    return o;
}

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

fl_status fl_output_commit(fl_output *o, fl_diag *d) {
    if (fl_memory_failed()) {
        fl_no_memory(d, o->path);
        destroy(o);
        return FL_NO_MEMORY;
    }
    bool good = fflush(o->file) == 0 && !ferror(o->file);
    if (!good && !o->error)
        o->error = EIO;
    if (good && !o->direct && fsync(o->beside.fd) != 0)
        o->error = errno;
    if (!o->error && !o->direct) /* before it is closed: that reports nothing that fsync did not */
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
    if (!o->direct)
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
