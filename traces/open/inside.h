/* What the files of traces/open share: keys of caches, the cache itself, and the ops in it. */
#pragma once

#include "traces/import/import.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_HEAD = 64 << 10 }; /* bytes that tell what a file is */

/* False where path is no regular file. */
bool fl_cache_stamp_of(const char *path, fl_cache_stamp *stamp);
bool fl_cache_same_stamp(const fl_cache_stamp *a, const fl_cache_stamp *b); /* settled or not */

/* Reads the source once, at the speed of memory. False where that fails. */
bool fl_cache_key_make(const char *path, const char *reader, const fl_import_options *o, fl_cache_key *key);

/* True where the key, which stands key_at bytes into the file `cache`, belongs to the source as it is now. Where only
 * its stamp is stale, the function updates the stamp. */
bool fl_cache_key_holds(const fl_cache_key *held, const char *cache, size_t key_at, const char *path,
                        const char *reader, const fl_import_options *o);
/* True where no such file exists, or where it begins with magic: files of other origin are never replaced. */
bool fl_cache_may_replace(const char *cache, const char magic[16]);
bool fl_cache_write(int fd, const void *bytes, size_t size); /* writes all bytes */
/* Allocates count items of size bytes; free them like any other array. Large arrays use huge pages, because page faults
 * would otherwise take most of the time. NULL when out of memory. */
void *fl_cache_array(size_t count, size_t size);

/* ---- the cache: a kernel trace as a compact binary file ----
 *
 * It lies beside its source, so that the next reading takes a tenth of the time. A
 * cache is never needed: anyone may delete it, and a reader ignores one that is stale, damaged, of another version or
 * not a cache at all.
 *
 * A cache holds for exactly the bytes it was made from (their hash), the reader and the options. Where the source had
 * not changed for some time before it was read, and its inode says that no one has touched it since, its bytes are not
 * hashed again. Integers are in the machine's byte order; a machine of the other byte order ignores the file. */

#define FL_CACHE_VERSION 3u /* raise it with the format, or when a reader makes another trace of the same file */
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

/* A fast hash of bytes that arrive in pieces. It tells whether two files are equal; it gives no protection against
 * deliberate collisions. */

/* Hashes all bytes at once. */
void fl_cache_hash(const void *bytes, size_t size, uint64_t hash[2]);

/* The ops of a cache file: blocks of columns. Each value is the difference from the block's
 * minimum, in as few bytes as the largest difference needs. */

enum { FL_CACHE_BLOCK = 256, FL_CACHE_PART = 256 * FL_CACHE_BLOCK };

size_t fl_cache_ops_room(size_t count); /* the packed size is at most this */
size_t fl_cache_ops_pack(const fl_kernel_trace *t, unsigned char *bytes);
/* Fills ops[0, count) and checks every field against the kinds and waits that *t already has. False where the bytes do
 * not hold exactly this many valid ops. */
bool fl_cache_ops_unpack(const unsigned char *bytes, size_t size, fl_kernel_trace *t, fl_trace_op *ops, size_t count);

#define FL_CACHE_FROM (INT64_C(4) << 20) /* bytes; reading a smaller file is as fast as opening a cache */
