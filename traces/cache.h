/* A kernel trace as a compact binary file beside the one that it was read from, so that the next reading takes a tenth
 * of the time. It is never needed: any cache may be deleted, and one that is stale, damaged, of another version or no
 * cache at all is ignored.
 *
 * It holds for the very bytes it was made from (their hash), the reader and the options. Where the source had lain
 * still for some time before it was read, and its inode says that it was not touched since, its bytes are not hashed
 * again. Integers are the machine's own; a machine of the other byte order ignores it. */
#ifndef FL_CACHE_H
#define FL_CACHE_H

#include "traces/cache_key.h"

#define FL_CACHE_VERSION 1u /* raise it with the format, and where a reader makes another trace of the same file */
#define FL_CACHE_SUFFIX ".foldline-cache"

/* Loads the cache of a source. False where there is none that holds, or no memory: *out is zeroed then. The second says
 * its key too. */
bool fl_cache_load(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                   fl_imported *out);
bool fl_cache_load_key(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                       fl_imported *out, fl_cache_key *key);

/* Writes through a temporary file in the same folder and a rename, as readable as mode says; a file of that name that
 * is no cache is left alone. False where that is not possible; only kernels without telemetry can be cached. */
bool fl_cache_save(const char *cache, const fl_cache_key *key, const fl_imported *in, uint32_t mode);

#endif
