#include "traces/open/cache_hash.h"

#include <string.h>

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

void fl_hash_start(fl_hasher *h) {
    memset(h, 0, sizeof *h);
    for (size_t i = 0; i < 4; i++)
        h->lane[i] =
            ~SALT[3 - i]; /* unlike the salt of its lane: a multiplication does not know its left from its right */
}

void fl_hash_add(fl_hasher *h, const void *bytes, size_t size) {
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

void fl_hash_end(fl_hasher *h, uint64_t hash[2]) {
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
