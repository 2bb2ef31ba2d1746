/* A file kept beside its source, written whole and read in pieces straight into the arrays that will hold them: no
 * second copy. Like a cache (traces/cache.h) it holds for the very bytes of the source, the reader and the options, and
 * one that is stale, damaged or of another version is ignored. It is read, not mapped: a mapping would change under a
 * run, or end it, if somebody wrote to the file. */
#ifndef FL_SIDEFILE_H
#define FL_SIDEFILE_H

#include "traces/beside.h"
#include "traces/cache_key.h"
#include "traces/cache_hash.h"

typedef struct fl_sidefile_kind {
    char magic[16];
    uint32_t version; /* raise it with the format, and whenever the same source makes other contents */
} fl_sidefile_kind;

typedef struct fl_sidefile { /* one being read, or being written */
    int fd;
    bool good;
    uint64_t left; /* bytes of the contents not read yet */
    fl_hasher hasher;
    uint64_t hash[2]; /* as the file states it */
    fl_cache_key key;
    const fl_sidefile_kind *kind;
    fl_beside beside;
} fl_sidefile;

/* False where there is none that holds. What was opened is to be closed. */
bool fl_sidefile_open(fl_sidefile *f, const fl_sidefile_kind *kind, const char *file, const char *source,
                      const char *reader, const fl_import_options *o);
/* The next bytes of the contents; false, and nothing good any more, where there are not so many. What was taken is not
 * to be believed before fl_sidefile_close has said so. */
bool fl_sidefile_take(fl_sidefile *f, void *into, uint64_t size);
/* The next `count` items as a new array in *into; a count that the file cannot hold allocates nothing. NULL for none. */
bool fl_sidefile_take_array(fl_sidefile *f, void **into, uint64_t count, size_t size);
/* True where all of the contents was taken and is what was written. */
bool fl_sidefile_close(fl_sidefile *f);

/* Begins a file; false where its place is taken by somebody else's, or it cannot be written. */
bool fl_sidefile_begin(fl_sidefile *f, const fl_sidefile_kind *kind, const char *file, const fl_cache_key *key,
                       uint32_t mode);
void fl_sidefile_put(fl_sidefile *f, const void *bytes, uint64_t size);
/* Ends what was begun: it takes its place if all went well. */
bool fl_sidefile_place(fl_sidefile *f, const char *file);

#endif
