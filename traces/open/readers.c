/* How a reader is chosen. */
#include "traces/open/readers.h"

#include "traces/io/gunzip.h"

#include <stdio.h>
#include <string.h>

#define ENTRY(ident) &fl_reader_##ident,

const fl_reader *const fl_readers[] = {FL_READERS(ENTRY)};
const size_t fl_readers_count = sizeof fl_readers / sizeof *fl_readers;

enum { HEAD = 64 << 10, READERS_MAX = sizeof fl_readers / sizeof *fl_readers };

/* The first bytes, unpacked where the file is gzipped. */
static fl_status read_head(const char *path, char *head, size_t *size, fl_diag *d) {
    fl_gunzip *g = fl_gunzip_open(path, d);
    *size = 0;
    fl_status s = g ? fl_gunzip_read(g, head, HEAD, size, d) : d ? d->status : FL_BAD_INPUT;
    fl_gunzip_close(g);
    return s || *size ? s : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the file is empty");
}

static void list_names(char *text, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < fl_readers_count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", fl_readers[i]->name);
}

static fl_status by_name(const char *name, const fl_reader **reader, fl_diag *d) {
    const char *names[READERS_MAX];
    for (size_t i = 0; i < fl_readers_count; i++) {
        names[i] = fl_readers[i]->name;
        if (strcmp(names[i], name) == 0) {
            *reader = fl_readers[i];
            return FL_OK;
        }
    }
    const char *near = fl_nearest(name, names, fl_readers_count);
    if (near)
        return fl_refuse(d, "unknown format '%.60s', did you mean '%s'?", name, near);
    char list[512];
    list_names(list, sizeof list);
    return fl_refuse(d, "unknown format '%.60s', expected one of %s", name, list);
}

/* What can be said of a file that nobody knows. */
static fl_status unknown(const char *path, const char *head, size_t size, fl_diag *d) {
    static const char OURS[] = "# foldline-";
    if (size >= 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2)))
        return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                       "the text is UTF-16, expected UTF-8 (PowerShell's '>' writes UTF-16: iconv -f UTF-16 -t UTF-8)");
    if (size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) {
        head += 3;
        size -= 3;
    }
    if (size > sizeof OURS && !memcmp(head, OURS, sizeof OURS - 1)) {
        size_t end = 2;
        while (end < size && end < 60 && head[end] != '\n' && head[end] != '\r')
            end++;
        return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                       "the file says that it is '%.*s', expected 'foldline-kernels 1' or 'foldline-telemetry 1'",
                       (int)(end - 2), head + 2);
    }
    char list[512];
    list_names(list, sizeof list);
    return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                   "not recognised, expected one of %s (--format says which), or '# foldline-kernels 1' first; "
                   "import --map names the columns of a table of measured settings",
                   list);
}

fl_status fl_reader_find(const char *path, const char *name, const fl_reader **reader, fl_diag *d) {
    *reader = NULL;
    if (name)
        return by_name(name, reader, d);
    char head[HEAD + 1];
    size_t size = 0;
    fl_status status = read_head(path, head, &size, d);
    if (status)
        return status;
    head[size] = '\0';
    for (size_t i = 0; i < fl_readers_count; i++)
        if (fl_readers[i]->detect(path, head, size)) {
            *reader = fl_readers[i];
            return FL_OK;
        }
    return unknown(path, head, size, d);
}
