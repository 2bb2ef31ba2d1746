/* The key of a cache: a fast hash of the source, and what the file system reports about it. */
#include "traces/open/inside.h"

#include "traces/import/import.h"
#include "traces/open/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct fl_hasher {
    uint64_t lane[4], total; /* total: bytes so far */
    unsigned char rest[64];
    size_t held;
} fl_hasher;

/* ---- the hash: 64 x 64 -> 128 bit multiplications folded, on four lanes so that none waits for the last ---- */

static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static const uint64_t SALT[4] = {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u};

static void hash_blocks(fl_hasher *h, const unsigned char *at, size_t blocks) {
    uint64_t a = h->lane[0], b = h->lane[1], c = h->lane[2], e = h->lane[3];
    for (; blocks; blocks--, at += 64) {
        uint64_t w[8];
        memcpy(w, at, sizeof w);
        a = fold(w[0] ^ SALT[0], w[1] ^ a);
        b = fold(w[2] ^ SALT[1], w[3] ^ b);
        c = fold(w[4] ^ SALT[2], w[5] ^ c);
        e = fold(w[6] ^ SALT[3], w[7] ^ e);
    }
    h->lane[0] = a;
    h->lane[1] = b;
    h->lane[2] = c;
    h->lane[3] = e;
}

static void fl_hash_start(fl_hasher *h) {
    memset(h, 0, sizeof *h);
    for (size_t i = 0; i < 4; i++)
        h->lane[i] =
            ~SALT[3 - i]; /* unlike the salt of its lane: a multiplication does not know its left from its right */
}

static void fl_hash_add(fl_hasher *h, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    h->total += size;
    if (h->held) {
        size_t n = 64 - h->held < size ? 64 - h->held : size;
        memcpy(h->rest + h->held, at, n);
        h->held += n;
        at += n;
        size -= n;
        if (h->held < 64)
            return;
        hash_blocks(h, h->rest, 1);
        h->held = 0;
    }
    hash_blocks(h, at, size / 64);
    h->held = size % 64;
    if (h->held)
        memcpy(h->rest, at + size - h->held, h->held);
}

/* two independent hashes */
static void fl_hash_end(fl_hasher *h, uint64_t hash[2]) {
    memset(h->rest + h->held, 0, 64 - h->held);
    hash_blocks(h, h->rest, 1);
    uint64_t x = fold(h->lane[0] ^ SALT[1], h->lane[1] ^ h->total),
             y = fold(h->lane[2] ^ SALT[0], h->lane[3] ^ SALT[2]);
    hash[0] = fold(x ^ SALT[2], y ^ h->total);
    hash[1] = fold(x ^ SALT[3], (y << 32 | y >> 32) + h->total);
}

void fl_cache_hash(const void *bytes, size_t size, uint64_t hash[2]) {
    fl_hasher h;
    fl_hash_start(&h);
    if (size)
        fl_hash_add(&h, bytes, size);
    fl_hash_end(&h, hash);
}

/* ---- keys ---- */

/* Wraps around for times that no clock shows. */
static int64_t in_ns(struct timespec t) { return (int64_t)((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec); }

bool fl_cache_stamp_of(const char *path, fl_cache_stamp *stamp) {
    struct stat s;
    struct timespec now;
    *stamp = (fl_cache_stamp){0};
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return false;
    *stamp = (fl_cache_stamp){.device = s.st_dev,
                              .inode = s.st_ino,
                              .size = (uint64_t)s.st_size,
                              .modified_ns = in_ns(s.st_mtim),
                              .changed_ns = in_ns(s.st_ctim)};
    stamp->settled = stamp->changed_ns < in_ns(now) - 2000000000;
    return true;
}

bool fl_cache_same_stamp(const fl_cache_stamp *a, const fl_cache_stamp *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->modified_ns == b->modified_ns &&
           a->changed_ns == b->changed_ns;
}

static uint64_t hash_reader(const char *reader, const fl_import_options *o) {
    char how[128];
    uint64_t hash[2];
    int size = snprintf(how, sizeof how, "%s %d %a %d", reader, o ? o->device : -1, o ? o->interval_s : 0,
                        fl_left_strict);
    fl_cache_hash(how, size < 0 ? 0 : (size_t)size < sizeof how ? (size_t)size : sizeof how - 1, hash);
    return hash[0];
}

bool fl_cache_key_make(const char *path, const char *reader, const fl_import_options *o, fl_cache_key *key) {
    enum { CHUNK = 256 << 10 };
    *key = (fl_cache_key){.reader = hash_reader(reader, o)};
    if (!fl_cache_stamp_of(path, &key->stamp))
        return false;
    unsigned char *chunk = malloc(CHUNK);
    int fd = chunk ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    fl_hasher h;
    fl_hash_start(&h);
    ssize_t got = fd < 0 ? -1 : 1;
    while (fd >= 0 && (got > 0 || (got < 0 && errno == EINTR)))
        if ((got = read(fd, chunk, CHUNK)) > 0)
            fl_hash_add(&h, chunk, (size_t)got);
    fl_hash_end(&h, key->hash);
    if (fd >= 0)
        close(fd);
    free(chunk);
    return got == 0 && h.total == key->stamp.size;
}

/* What was compared once need not be again: the stamp is put right in place. Half a stamp is only another one. */
static void renew_stamp(const char *cache, size_t key_at, const char *path, const fl_cache_stamp *stamp) {
    fl_cache_stamp now;
    int fd = stamp->settled && fl_cache_stamp_of(path, &now) && fl_cache_same_stamp(&now, stamp)
                 ? open(cache, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    if (fd < 0)
        return;
    if (pwrite(fd, stamp, sizeof *stamp, (off_t)(key_at + offsetof(fl_cache_key, stamp))) < 0)
        errno = 0; /* it stays as it was */
    close(fd);
}

bool fl_cache_key_holds(const fl_cache_key *held, const char *cache, size_t key_at, const char *path,
                        const char *reader, const fl_import_options *o) {
    fl_cache_stamp now;
    fl_cache_key key;
    if (held->reader != hash_reader(reader, o) || !fl_cache_stamp_of(path, &now) || now.size != held->stamp.size)
        return false;
    if (held->stamp.settled == 1 && fl_cache_same_stamp(&now, &held->stamp))
        return true;
    if (!fl_cache_key_make(path, reader, o, &key) || memcmp(key.hash, held->hash, sizeof key.hash) != 0)
        return false;
    renew_stamp(cache, key_at, path, &key.stamp);
    return true;
}

bool fl_cache_may_replace(const char *cache, const char magic[16]) {
    struct stat s;
    char held[16];
    if (lstat(cache, &s) != 0)
        return errno == ENOENT;
    if (!S_ISREG(s.st_mode))
        return false;
    int fd = open(cache, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ours = fd >= 0 && read(fd, held, sizeof held) == (ssize_t)sizeof held && memcmp(held, magic, sizeof held) == 0;
    if (fd >= 0)
        close(fd);
    return ours;
}

bool fl_cache_write(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* Big arrays in huge pages: most of the time would else go into faults. Freed like any other. */
void *fl_cache_array(size_t count, size_t size) {
    enum { HUGE = 2 << 20 };
    if (count > SIZE_MAX / 2 / size)
        return NULL;
    size_t bytes = count * size;
    if (bytes < 4 * HUGE)
        return malloc(bytes + 1);
    bytes = (bytes + HUGE - 1) / HUGE * HUGE;
    void *array = aligned_alloc(HUGE, bytes);
    if (array && madvise(array, bytes, MADV_HUGEPAGE) != 0)
        errno = 0; /* slower, no more */
    return array;
}
