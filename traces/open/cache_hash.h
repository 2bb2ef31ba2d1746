/* A fast hash of bytes that arrive in pieces. It tells whether two files are equal; it gives no protection against
 * deliberate collisions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct fl_hasher {
    uint64_t lane[4], total; /* total: bytes so far */
    unsigned char rest[64];
    size_t held;
} fl_hasher;

void fl_hash_start(fl_hasher *h);
void fl_hash_add(fl_hasher *h, const void *bytes, size_t size);
void fl_hash_end(fl_hasher *h, uint64_t hash[2]); /* two independent hashes */

/* Hashes all bytes at once. */
void fl_cache_hash(const void *bytes, size_t size, uint64_t hash[2]);
