#include "traces/trace_open.h"

#include "traces/cache.h"
#include "traces/standard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A database may have changes in a log beside it. */
static bool stands_alone(const char *path) {
    char *beside;
    if (asprintf(&beside, "%s-wal", path) < 0)
        return false;
    bool alone = access(beside, F_OK) != 0;
    free(beside);
    return alone;
}

fl_status fl_trace_open(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                        fl_diag *d) {
    static const fl_import_options ALL = {.device = -1};
    const fl_reader *reader;
    *out = (fl_imported){0};
    fl_status status = fl_reader_find(path, format, &reader, d);
    if (status)
        return status;
    o = o ? o : &ALL;
    fl_cache_stamp before, after;
    char *cache = NULL;
    if (!fl_is_standard(path) && fl_cache_stamp_of(path, &before) && before.size >= FL_CACHE_FROM &&
        stands_alone(path) && asprintf(&cache, "%s" FL_CACHE_SUFFIX, path) < 0)
        cache = NULL;
    if (!cache)
        return reader->read(path, o, out, d);
    if (fl_cache_load(cache, path, reader->name, o, out)) {
        free(cache);
        return FL_OK;
    }
    /* What is cached must be what was read: the file must not have changed meanwhile, and where its times cannot tell
     * that yet, its bytes are compared. */
    fl_cache_key first, key;
    bool known = before.settled || fl_cache_key_make(path, reader->name, o, &first);
    status = reader->read(path, o, out, d);
    if (!status && !out->has_sweep && known && fl_cache_key_make(path, reader->name, o, &key) && fl_cache_stamp_of(path, &after) &&
        fl_cache_same_stamp(&before, &after) &&
        (before.settled || memcmp(first.hash, key.hash, sizeof key.hash) == 0)) {
        struct stat s;
        key.stamp = before;
        if (stat(path, &s) == 0)
            (void)fl_cache_save(cache, &key, out, s.st_mode);
    }
    free(cache);
    return status;
}
