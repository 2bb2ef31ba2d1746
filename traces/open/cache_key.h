/* Shared by every file that is kept beside its source: for which bytes of the source it holds, and how it is read and
 * written. */
#pragma once

#include "traces/import/import.h"

typedef struct fl_cache_stamp { /* what the file system reports about a source */
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
    uint64_t settled; /* 1: the source was not touched for two seconds, so a later change gets another time */
} fl_cache_stamp;

typedef struct fl_cache_key {
    fl_cache_stamp stamp;
    uint64_t hash[2]; /* hash of the source */
    uint64_t reader;  /* hash of the reader's name and the options */
} fl_cache_key;

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
