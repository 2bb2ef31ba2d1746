/* A kernel trace as a compact binary file beside its source, so that the next reading takes a tenth of the time. A
 * cache is never needed: anyone may delete it, and a reader ignores one that is stale, damaged, of another version or
 * not a cache at all.
 *
 * A cache holds for exactly the bytes it was made from (their hash), the reader and the options. Where the source had
 * not changed for some time before it was read, and its inode says that no one has touched it since, its bytes are not
 * hashed again. Integers are in the machine's byte order; a machine of the other byte order ignores the file. */
#pragma once

#include "traces/open/cache_key.h"

#define FL_CACHE_VERSION 1u /* raise it with the format, or when a reader makes another trace of the same file */
#define FL_CACHE_SUFFIX ".foldline-cache"

/* Loads the cache of a source. False where no cache holds or memory runs out; *out is then zeroed. The second function
 * also returns the cache's key. */
bool fl_cache_load(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                   fl_imported *out);
bool fl_cache_load_key(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                       fl_imported *out, fl_cache_key *key);

/* Writes the cache through a temporary file in the same folder and a rename, with the permissions in mode. It leaves a
 * file of that name alone that is not a cache. False where writing is impossible; only kernels without telemetry can be
 * cached. */
bool fl_cache_save(const char *cache, const fl_cache_key *key, const fl_imported *in, uint32_t mode);
