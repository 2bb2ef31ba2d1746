#include "traces/sidefile.h"

#include "traces/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 256 << 10 }; /* read, and hashed while it is near */

typedef struct header {
    char magic[16];
    uint32_t version, byte_order;
    fl_cache_key key;
    uint64_t size, hash[2]; /* of the contents */
} header;

#define BYTE_ORDER_MARK 0x01020304u

bool fl_sidefile_open(fl_sidefile *f, const fl_sidefile_kind *kind, const char *file, const char *source,
                      const char *reader, const fl_import_options *o) {
    header h;
    struct stat s;
    *f = (fl_sidefile){.kind = kind};
    f->fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); /* it may be a pipe */
    if (f->fd < 0)
        return false;
    f->good = fstat(f->fd, &s) == 0 && S_ISREG(s.st_mode) && read(f->fd, &h, sizeof h) == (ssize_t)sizeof h &&
              memcmp(h.magic, kind->magic, sizeof h.magic) == 0 && h.version == kind->version &&
              h.byte_order == BYTE_ORDER_MARK && (uint64_t)s.st_size >= sizeof h &&
              h.size == (uint64_t)s.st_size - sizeof h &&
              fl_cache_key_holds(&h.key, file, offsetof(header, key), source, reader, o);
    if (!f->good) {
        close(f->fd);
        return false;
    }
    f->left = h.size;
    f->key = h.key;
    memcpy(f->hash, h.hash, sizeof f->hash);
    fl_hash_start(&f->hasher);
    return true;
}

bool fl_sidefile_take(fl_sidefile *f, void *into, uint64_t size) {
    char *at = into;
    f->good = f->good && size <= f->left;
    while (f->good && size) {
        const ssize_t n = read(f->fd, at, size < CHUNK ? (size_t)size : CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        f->good = n > 0;
        if (n <= 0)
            break;
        fl_hash_add(&f->hasher, at, (size_t)n);
        at += n;
        size -= (uint64_t)n;
        f->left -= (uint64_t)n;
    }
    return f->good;
}

bool fl_sidefile_take_array(fl_sidefile *f, void **into, uint64_t count, size_t size) {
    *into = NULL;
    f->good = f->good && count <= f->left / size;
    if (!f->good || !count)
        return f->good;
    f->good = (*into = fl_cache_array((size_t)count, size)) != NULL;
    return f->good && fl_sidefile_take(f, *into, count * size);
}

bool fl_sidefile_close(fl_sidefile *f) {
    uint64_t hash[2];
    fl_hash_end(&f->hasher, hash);
    close(f->fd);
    return f->good && !f->left && memcmp(hash, f->hash, sizeof hash) == 0;
}

bool fl_sidefile_begin(fl_sidefile *f, const fl_sidefile_kind *kind, const char *file, const fl_cache_key *key,
                       uint32_t mode) {
    static const header EMPTY;
    *f = (fl_sidefile){.kind = kind, .key = *key};
    if (!fl_cache_may_replace(file, kind->magic) || fl_beside_open(&f->beside, file, mode & 0666))
        return false;
    fl_hash_start(&f->hasher);
    f->good = fl_cache_write(f->beside.fd, &EMPTY, sizeof EMPTY); /* the head comes last */
    return true;
}

void fl_sidefile_put(fl_sidefile *f, const void *bytes, uint64_t size) {
    if (!size)
        return;
    f->good = f->good && fl_cache_write(f->beside.fd, bytes, (size_t)size);
    if (f->good)
        fl_hash_add(&f->hasher, bytes, (size_t)size);
}

bool fl_sidefile_place(fl_sidefile *f, const char *file) {
    header h = {.version = f->kind->version, .byte_order = BYTE_ORDER_MARK, .key = f->key, .size = f->hasher.total};
    memcpy(h.magic, f->kind->magic, sizeof h.magic);
    fl_hash_end(&f->hasher, h.hash);
    f->good = f->good && !fl_memory_failed() && pwrite(f->beside.fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
              !fl_beside_place(&f->beside, file); /* not synced: half a file is known by its hash */
    close(f->beside.fd);
    fl_beside_drop(&f->beside);
    return f->good;
}
