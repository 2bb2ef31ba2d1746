#include "traces/open/trace_open.h"

#include "traces/open/cache.h"

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

static bool keeps = true;

void fl_trace_keep(bool keep) { keeps = keep; }

/* True where a file is large enough, and of a kind, for a cache beside it, and the setting allows it. */
static bool may_keep(const char *path) {
    fl_cache_stamp now;
    return keeps && !fl_is_standard(path) && fl_cache_stamp_of(path, &now) && now.size >= FL_CACHE_FROM &&
           stands_alone(path);
}

/* Reads the file itself. What is kept must be what was read: the file must not have changed meanwhile, and where its
 * times cannot tell that yet, its bytes are compared. */
static fl_status read_source(const fl_reader *reader, const char *path, const fl_import_options *o, fl_imported *out,
                             fl_cache_key *key, bool *known, fl_diag *d) {
    fl_cache_stamp before, after;
    fl_cache_key first;
    *known = fl_cache_stamp_of(path, &before) && (before.settled || fl_cache_key_make(path, reader->name, o, &first));
    const fl_status status = fl_reader_read(reader, path, o, out, d);
    *known = *known && !status && !out->has_sweep && !out->has_requests &&
             fl_cache_key_make(path, reader->name, o, key) && fl_cache_stamp_of(path, &after) &&
             fl_cache_same_stamp(&before, &after) &&
             (before.settled || memcmp(first.hash, key->hash, sizeof key->hash) == 0);
    if (*known)
        key->stamp = before;
    return status;
}

fl_status fl_trace_open_key(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                            fl_cache_key *key, bool *known, fl_diag *d) {
    static const fl_import_options ALL = {.device = -1};
    const fl_reader *reader;
    *out = (fl_imported){0};
    *known = false;
    fl_status status = fl_reader_find(path, format, &reader, d);
    if (status)
        return status;
    o = o ? o : &ALL;
    char *cache = NULL;
    if (!may_keep(path) || asprintf(&cache, "%s" FL_CACHE_SUFFIX, path) < 0)
        return fl_reader_read(reader, path, o, out, d);
    *known = fl_cache_load_key(cache, path, reader->name, o, out, key);
    if (!*known) {
        struct stat s;
        status = read_source(reader, path, o, out, key, known, d);
        if (!status && *known && stat(path, &s) == 0)
            (void)fl_cache_save(cache, key, out, s.st_mode);
    }
    free(cache);
    return status;
}

fl_status fl_trace_open(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                        fl_diag *d) {
    fl_cache_key key;
    bool known;
    return fl_trace_open_key(path, format, o, out, &key, &known, d);
}
