#include "traces/cache.h"

#include "traces/beside.h"
#include "traces/cache_hash.h"
#include "traces/cache_ops.h"
#include "traces/kernels.h"
#include "traces/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct header {
    char magic[16];
    uint32_t version, byte_order;
    fl_cache_key key;
    uint64_t body_size, body_hash[2];
    uint64_t ops, kinds, names, waits, entries, notes; /* counts */
    uint64_t text_size, ops_size;
} header;

static const char MAGIC[16] = "foldline cache\n";
#define BYTE_ORDER_MARK 0x01020304u

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
    int size = snprintf(how, sizeof how, "%s %d %a", reader, o ? o->device : -1, o ? o->interval_s : 0);
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

/* ---- loading ---- */

/* Big arrays in huge pages: most of the time would else go into faults. Freed like any other. */
static void *big_array(size_t count, size_t size) {
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

typedef struct texts {
    const char *at, *end;
    bool good;
} texts;

static char *take_text(texts *t) {
    const char *nul = t->at < t->end ? memchr(t->at, '\0', (size_t)(t->end - t->at)) : NULL;
    char *copy = nul ? strdup(t->at) : NULL;
    t->good = t->good && copy;
    t->at = nul ? nul + 1 : t->end;
    return copy;
}

/* Counts are bounded by the bytes that the items take, so that a damaged one asks for no memory. */
static bool load_texts(const header *h, const unsigned char *body, fl_imported *out) {
    fl_kernel_trace *t = &out->kernels;
    texts x = {(const char *)body, (const char *)body + h->text_size, true};
    t->head.entry = calloc(h->entries + 1, sizeof *t->head.entry);
    t->names = calloc(h->names + 1, sizeof *t->names);
    out->note = calloc(h->notes + 1, sizeof *out->note);
    if (!t->head.entry || !t->names || !out->note)
        return false;
    t->head.room = h->entries + 1;
    t->name_room = h->names + 1;
    out->note_room = h->notes + 1;
    for (; t->head.count < h->entries && x.good; t->head.count++) {
        t->head.entry[t->head.count].key = take_text(&x);
        t->head.entry[t->head.count].value = take_text(&x);
    }
    while (t->name_count < h->names && x.good)
        t->names[t->name_count++] = take_text(&x);
    while (out->note_count < h->notes && x.good)
        out->note[out->note_count++] = take_text(&x);
    return x.good && x.at == x.end;
}

static bool load_body(const header *h, const unsigned char *body, fl_imported *out) {
    fl_kernel_trace *t = &out->kernels;
    const unsigned char *at = body + h->text_size;
    if (!load_texts(h, body, out))
        return false;
    t->kinds = malloc((h->kinds + 1) * sizeof *t->kinds);
    t->waits = big_array(h->waits + 1, sizeof *t->waits);
    t->ops = big_array(h->ops + 1, sizeof *t->ops);
    if (!t->kinds || !t->waits || !t->ops)
        return false;
    t->kind_room = h->kinds + 1;
    t->wait_room = h->waits + 1;
    t->op_room = h->ops + 1;
    memcpy(t->kinds, at, h->kinds * sizeof *t->kinds);
    at += h->kinds * sizeof *t->kinds;
    memcpy(t->waits, at, h->waits * sizeof *t->waits);
    at += h->waits * sizeof *t->waits;
    t->kind_count = h->kinds;
    t->wait_count = h->waits;
    for (size_t i = 0; i < t->kind_count; i++)
        if (t->kinds[i].name >= t->name_count || !t->names[t->kinds[i].name][0])
            return false;
    if (!fl_cache_ops_unpack(at, h->ops_size, t, t->ops, h->ops))
        return false;
    t->op_count = h->ops;
    for (size_t i = 0; i < t->op_count && !t->has_launches; i++)
        t->has_launches = t->ops[i].launch_ns != INT64_MIN;
    out->has_kernels = true;
    return true;
}

static bool is_ours(const header *h) {
    return memcmp(h->magic, MAGIC, sizeof MAGIC) == 0 && h->version == FL_CACHE_VERSION &&
           h->byte_order == BYTE_ORDER_MARK;
}

/* The counts against the size of the file: each item takes at least a byte. */
static bool sizes_fit(const header *h, uint64_t file) {
    const uint64_t most = UINT32_MAX;
    if (file < sizeof *h || h->body_size != file - sizeof *h || h->text_size > h->body_size ||
        h->ops_size > h->body_size || h->kinds > most || h->names > h->text_size || h->waits > most || h->ops > most ||
        h->entries > h->text_size || h->notes > h->text_size)
        return false;
    /* A block of equal ops takes its head of a hundred bytes. */
    return h->ops / FL_CACHE_BLOCK <= h->ops_size / 100 && h->ops > 0 &&
           h->text_size + h->kinds * sizeof(fl_trace_kind) + h->waits * sizeof(uint32_t) + h->ops_size == h->body_size;
}

/* What was compared once need not be again: the stamp is put right in place. Half a stamp is only another one. */
static void renew_stamp(const char *cache, const char *path, const fl_cache_stamp *stamp) {
    fl_cache_stamp now;
    int fd = stamp->settled && fl_cache_stamp_of(path, &now) && fl_cache_same_stamp(&now, stamp)
                 ? open(cache, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    if (fd < 0)
        return;
    if (pwrite(fd, stamp, sizeof *stamp, offsetof(header, key) + offsetof(fl_cache_key, stamp)) < 0)
        errno = 0; /* it stays as it was */
    close(fd);
}

static bool holds_for(const header *h, const char *cache, const char *path, const char *reader,
                      const fl_import_options *o) {
    fl_cache_stamp now;
    fl_cache_key key;
    if (h->key.reader != hash_reader(reader, o) || !fl_cache_stamp_of(path, &now) || now.size != h->key.stamp.size)
        return false;
    if (h->key.stamp.settled == 1 && fl_cache_same_stamp(&now, &h->key.stamp))
        return true;
    if (!fl_cache_key_make(path, reader, o, &key) || memcmp(key.hash, h->key.hash, sizeof key.hash) != 0)
        return false;
    renew_stamp(cache, path, &key.stamp);
    return true;
}

bool fl_cache_load(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                   fl_imported *out) {
    *out = (fl_imported){0};
    header h;
    struct stat s;
    int fd = open(cache, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); /* it may be a pipe */
    if (fd < 0)
        return false;
    bool good = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && read(fd, &h, sizeof h) == (ssize_t)sizeof h &&
                is_ours(&h) && sizes_fit(&h, (uint64_t)s.st_size) && holds_for(&h, cache, path, reader, o);
    unsigned char *body = good ? big_array((size_t)h.body_size, 1) : NULL;
    size_t held = 0;
    while (body && held < h.body_size) {
        ssize_t n = read(fd, body + held, (size_t)h.body_size - held);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        held += (size_t)n;
    }
    close(fd);
    uint64_t hash[2] = {0};
    good = good && body && held == h.body_size;
    if (good)
        fl_cache_hash(body, held, hash);
    good = good && memcmp(hash, h.body_hash, sizeof hash) == 0 && load_body(&h, body, out);
    free(body);
    if (!good)
        fl_imported_free(out);
    return good;
}

/* ---- saving ---- */

static bool may_replace(const char *cache) {
    struct stat s;
    header h;
    if (lstat(cache, &s) != 0)
        return errno == ENOENT;
    if (!S_ISREG(s.st_mode))
        return false;
    int fd = open(cache, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ours = fd >= 0 && read(fd, h.magic, sizeof h.magic) == (ssize_t)sizeof h.magic &&
                memcmp(h.magic, MAGIC, sizeof MAGIC) == 0;
    if (fd >= 0)
        close(fd);
    return ours;
}

static bool write_all(int fd, const void *bytes, size_t size) {
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

static bool replace_file(const char *cache, uint32_t mode, const header *h, const unsigned char *body) {
    fl_beside beside;
    if (fl_beside_open(&beside, cache, mode & 0666))
        return false;
    const bool good = !fl_memory_failed() && write_all(beside.fd, h, sizeof *h) && write_all(beside.fd, body, (size_t)h->body_size) &&
                      !fl_beside_place(&beside, cache); /* not synced: half a file is known by its hash */
    close(beside.fd);
    fl_beside_drop(&beside);
    return good;
}

static size_t text_size(const char *text) { return strlen(text) + 1; }

static unsigned char *append_bytes(unsigned char *at, const void *bytes, size_t size) {
    if (size)
        memcpy(at, bytes, size);
    return at + size;
}

static bool types_are_those_of_names(const fl_kernel_trace *t) {
    for (size_t i = 0; i < t->op_count; i++)
        if (t->ops[i].type != fl_op_type_of(t->names[t->kinds[t->ops[i].kind].name]))
            return false;
    return true;
}

bool fl_cache_save(const char *cache, const fl_cache_key *key, const fl_imported *in, uint32_t mode) {
    const fl_kernel_trace *t = &in->kernels;
    if (!in->has_kernels || in->has_telemetry || !t->op_count || !may_replace(cache) || !types_are_those_of_names(t))
        return false;
    header h = {.version = FL_CACHE_VERSION,
                .byte_order = BYTE_ORDER_MARK,
                .key = *key,
                .ops = t->op_count,
                .kinds = t->kind_count,
                .names = t->name_count,
                .waits = t->wait_count,
                .entries = t->head.count,
                .notes = in->note_count};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    for (size_t i = 0; i < t->head.count; i++)
        h.text_size += text_size(t->head.entry[i].key) + text_size(t->head.entry[i].value);
    for (size_t i = 0; i < t->name_count; i++)
        h.text_size += text_size(t->names[i]);
    for (size_t i = 0; i < in->note_count; i++)
        h.text_size += text_size(in->note[i]);
    size_t fixed = h.text_size + h.kinds * sizeof *t->kinds + h.waits * sizeof *t->waits;
    unsigned char *body = malloc(fixed + fl_cache_ops_room(t->op_count));
    if (!body)
        return false;
    unsigned char *at = body;
    for (size_t i = 0; i < t->head.count; i++) {
        at = append_bytes(at, t->head.entry[i].key, text_size(t->head.entry[i].key));
        at = append_bytes(at, t->head.entry[i].value, text_size(t->head.entry[i].value));
    }
    for (size_t i = 0; i < t->name_count; i++)
        at = append_bytes(at, t->names[i], text_size(t->names[i]));
    for (size_t i = 0; i < in->note_count; i++)
        at = append_bytes(at, in->note[i], text_size(in->note[i]));
    at = append_bytes(at, t->kinds, h.kinds * sizeof *t->kinds);
    at = append_bytes(at, t->waits, h.waits * sizeof *t->waits);
    h.ops_size = fl_cache_ops_pack(t, at);
    h.body_size = fixed + h.ops_size;
    fl_cache_hash(body, h.body_size, h.body_hash);
    bool good = replace_file(cache, mode, &h, body);
    free(body);
    return good;
}
