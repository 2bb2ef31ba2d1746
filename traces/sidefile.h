/* A file kept beside its source, written as a whole and read in pieces straight into the arrays that will hold them,
 * without a second copy. Like a cache (traces/cache.h) it holds for exactly the bytes of the source, the reader and the
 * options; a file that is stale, damaged or of another version is ignored. It is read, not mapped: if someone wrote to
 * the file, a mapping would change during a run, or end the run. */
#pragma once

#include "traces/beside.h"
#include "traces/cache_key.h"
#include "traces/cache_hash.h"

typedef struct fl_sidefile_kind {
    char magic[16];
    uint32_t version; /* raise it when the format changes, or when the same source gives other contents */
} fl_sidefile_kind;

typedef struct fl_sidefile { /* a file that is being read or written */
    int fd;
    bool good;
    uint64_t left; /* bytes of the contents that were not read yet */
    fl_hasher hasher;
    uint64_t hash[2]; /* hash that the file states */
    fl_cache_key key;
    const fl_sidefile_kind *kind;
    fl_beside beside;
} fl_sidefile;

/* Opens a file. False where none exists that holds. Call fl_sidefile_close after true. */
bool fl_sidefile_open(fl_sidefile *f, const fl_sidefile_kind *kind, const char *file, const char *source,
                      const char *reader, const fl_import_options *o);
/* Reads the next bytes of the contents. False where there are not enough; nothing read is then valid. Do not trust
 * anything read before fl_sidefile_close confirms it. */
bool fl_sidefile_take(fl_sidefile *f, void *into, uint64_t size);
/* Reads the next `count` items as a new array into *into; NULL for none. A count that the file cannot hold allocates
 * nothing. */
bool fl_sidefile_take_array(fl_sidefile *f, void **into, uint64_t count, size_t size);
/* Closes the file. True where the whole contents were read and are exactly what was written. */
bool fl_sidefile_close(fl_sidefile *f);

/* Begins a new file. False where a file of other origin has its name, or where it cannot be written. */
bool fl_sidefile_begin(fl_sidefile *f, const fl_sidefile_kind *kind, const char *file, const fl_cache_key *key,
                       uint32_t mode);
void fl_sidefile_put(fl_sidefile *f, const void *bytes, uint64_t size);
/* Ends the new file, which takes its place if everything succeeded. */
bool fl_sidefile_place(fl_sidefile *f, const char *file);
