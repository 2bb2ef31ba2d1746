/* The cache of a kernel trace: loading and saving. */
#include "traces/open/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct header {
    char magic[16];
    uint32_t version, byte_order;
    fl_cache_key key;
    uint64_t body_size, body_hash[2];
    uint64_t ops, kinds, names, waits, entries, notes; /* counts */
    uint64_t text_size, ops_size;
    uint64_t doubts, lost; /* the first of the notes */
} header;

static const char MAGIC[16] = "foldline cache\n";
#define BYTE_ORDER_MARK 0x01020304u

/* ---- loading ---- */

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
    out->doubt_count = h->doubts;
    out->lost_count = h->lost;
    return x.good && x.at == x.end;
}

static bool load_body(const header *h, const unsigned char *body, fl_imported *out) {
    fl_kernel_trace *t = &out->kernels;
    const unsigned char *at = body + h->text_size;
    if (!load_texts(h, body, out))
        return false;
    t->kinds = malloc((h->kinds + 1) * sizeof *t->kinds);
    t->waits = fl_cache_array(h->waits + 1, sizeof *t->waits);
    t->ops = fl_cache_array(h->ops + 1, sizeof *t->ops);
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
        h->entries > h->text_size || h->notes > h->text_size || h->doubts > h->notes || h->lost > h->doubts)
        return false;
    /* A block of equal ops takes its head of a hundred bytes. */
    return h->ops / FL_CACHE_BLOCK <= h->ops_size / 100 && h->ops > 0 &&
           h->text_size + h->kinds * sizeof(fl_trace_kind) + h->waits * sizeof(uint32_t) + h->ops_size == h->body_size;
}

bool fl_cache_load_key(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                       fl_imported *out, fl_cache_key *key) {
    *out = (fl_imported){0};
    header h;
    struct stat s;
    int fd = open(cache, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); /* it may be a pipe */
    if (fd < 0)
        return false;
    bool good = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && read(fd, &h, sizeof h) == (ssize_t)sizeof h &&
                is_ours(&h) && sizes_fit(&h, (uint64_t)s.st_size) &&
                fl_cache_key_holds(&h.key, cache, offsetof(header, key), path, reader, o);
    unsigned char *body = good ? fl_cache_array((size_t)h.body_size, 1) : NULL;
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
    else
        *key = h.key;
    return good;
}

bool fl_cache_load(const char *cache, const char *path, const char *reader, const fl_import_options *o,
                   fl_imported *out) {
    fl_cache_key key;
    return fl_cache_load_key(cache, path, reader, o, out, &key);
}

/* ---- saving ---- */

static bool replace_file(const char *cache, uint32_t mode, const header *h, const unsigned char *body) {
    fl_beside beside;
    if (fl_beside_open(&beside, cache, mode & 0666))
        return false;
    const bool good = !fl_memory_failed() && fl_cache_write(beside.fd, h, sizeof *h) &&
                      fl_cache_write(beside.fd, body, (size_t)h->body_size) &&
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
    if (!in->has_kernels || in->has_telemetry || !t->op_count || !fl_cache_may_replace(cache, MAGIC) ||
        !types_are_those_of_names(t))
        return false;
    header h = {.version = FL_CACHE_VERSION,
                .byte_order = BYTE_ORDER_MARK,
                .key = *key,
                .ops = t->op_count,
                .kinds = t->kind_count,
                .names = t->name_count,
                .waits = t->wait_count,
                .entries = t->head.count,
                .notes = in->note_count,
                .doubts = in->doubt_count,
                .lost = in->lost_count};
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
