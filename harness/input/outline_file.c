#include "harness/input/outline_file.h"

#include "traces/sidefile.h"
#include "traces/trace_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const fl_sidefile_kind KIND = {"foldline built\n", 2};

typedef struct counts { /* what comes first */
    uint64_t text, entries, names, notes, kinds, reps, devices, streams, threads;
    uint64_t digest[2];
    uint32_t overlap, untangled, launches, unused;
} counts;

typedef struct rep { /* of fl_trace_op what a class hangs on */
    uint32_t kind;
    int32_t device;
    uint16_t sm_mhz, type;
} rep;

typedef struct lane { /* of fl_stream, before its arrays */
    uint32_t gpu;
    int32_t process, id;
    uint32_t launched, waits_per_op;
    uint32_t unused;
    uint64_t count, big, waits;
} lane;

typedef struct thread {
    int32_t id;
    uint32_t unused;
    uint64_t count, waits;
} thread;

/* An op too long for its record, a wait and an item as they are in a file: no holes, which would hold anything. */
typedef struct long_op {
    int64_t work_ns, gap_ns;
    uint64_t class_id;
} long_op;

typedef struct wait {
    uint64_t stream, done;
} wait;

typedef struct item {
    int64_t host_ns, after_ns;
    uint32_t stream, parts, wait_first, wait_count, type, unused;
} item;

enum { BATCH = 4096 }; /* converted at a time */

static char *path_of(const char *trace) {
    char *path;
    return asprintf(&path, "%s" FL_OUTLINE_SUFFIX, trace) < 0 ? NULL : path;
}

/* ---- writing ---- */

static void put_text(fl_sidefile *f, const char *text) { fl_sidefile_put(f, text, strlen(text) + 1); }

static void put_texts(fl_sidefile *f, const fl_imported *in) {
    const fl_kernel_trace *t = &in->kernels;
    for (size_t i = 0; i < t->head.count; i++) {
        put_text(f, t->head.entry[i].key);
        put_text(f, t->head.entry[i].value);
    }
    for (size_t i = 0; i < t->name_count; i++)
        put_text(f, t->names[i]);
    for (size_t i = 0; i < in->note_count; i++)
        put_text(f, in->note[i]);
}

static uint64_t text_size(const fl_imported *in) {
    const fl_kernel_trace *t = &in->kernels;
    uint64_t size = 0;
    for (size_t i = 0; i < t->head.count; i++)
        size += strlen(t->head.entry[i].key) + strlen(t->head.entry[i].value) + 2;
    for (size_t i = 0; i < t->name_count; i++)
        size += strlen(t->names[i]) + 1;
    for (size_t i = 0; i < in->note_count; i++)
        size += strlen(in->note[i]) + 1;
    return size;
}

static void put_waits(fl_sidefile *f, const fl_wait *from, size_t count) {
    wait out[BATCH];
    for (size_t i = 0; i < count;) {
        size_t n = 0;
        for (; n < BATCH && i < count; n++, i++)
            out[n] = (wait){from[i].stream, from[i].done};
        fl_sidefile_put(f, out, n * sizeof *out);
    }
}

static void put_stream(fl_sidefile *f, const fl_stream *s) {
    const lane head = {.gpu = s->gpu,
                       .process = s->process,
                       .id = s->id,
                       .launched = s->launched,
                       .waits_per_op = s->wait_first != NULL,
                       .count = s->count,
                       .big = s->big_count,
                       .waits = s->wait_count};
    long_op out[BATCH];
    fl_sidefile_put(f, &head, sizeof head);
    fl_sidefile_put(f, s->rec, s->count * sizeof *s->rec);
    for (size_t i = 0; i < s->big_count;) {
        size_t n = 0;
        for (; n < BATCH && i < s->big_count; n++, i++)
            out[n] = (long_op){s->big[i].work_ns, s->big[i].gap_ns, s->big[i].class_id};
        fl_sidefile_put(f, out, n * sizeof *out);
    }
    put_waits(f, s->wait, s->wait_count);
    if (s->wait_first)
        fl_sidefile_put(f, s->wait_first, (s->count + 1) * sizeof *s->wait_first);
}

static void put_thread(fl_sidefile *f, const fl_thread *t) {
    const thread head = {.id = t->id, .count = t->count, .waits = t->wait_count};
    item out[BATCH];
    fl_sidefile_put(f, &head, sizeof head);
    for (size_t i = 0; i < t->count;) {
        size_t n = 0;
        for (; n < BATCH && i < t->count; n++, i++) {
            const fl_item *x = &t->item[i]; /* its load is the platform's */
            out[n] = (item){x->host_ns,
                            x->after_ns,
                            x->type == FL_ITEM_LAUNCH ? x->stream : 0,
                            x->parts,
                            x->wait_first,
                            x->wait_count,
                            (uint32_t)x->type,
                            0};
        }
        fl_sidefile_put(f, out, n * sizeof *out);
    }
    put_waits(f, t->wait, t->wait_count);
}

static void put_reps(fl_sidefile *f, const fl_outline *o) {
    for (size_t i = 0; i < o->rep_count; i++) {
        const rep r = {o->rep[i].kind, o->rep[i].device, o->rep[i].sm_mhz, o->rep[i].type};
        fl_sidefile_put(f, &r, sizeof r);
    }
    fl_sidefile_put(f, o->device, o->device_count * sizeof *o->device);
}

void fl_kept_workload_save(const char *trace, const fl_cache_key *key, const fl_imported *in, const fl_outline *o,
                           const fl_workload *w) {
    const fl_kernel_trace *t = &in->kernels;
    struct stat s;
    char *path = path_of(trace);
    fl_sidefile f;
    if (path && stat(trace, &s) == 0 && fl_sidefile_begin(&f, &KIND, path, key, s.st_mode)) {
        counts c = {.text = text_size(in),
                    .entries = t->head.count,
                    .names = t->name_count,
                    .notes = in->note_count,
                    .kinds = t->kind_count,
                    .reps = o->rep_count,
                    .devices = o->device_count,
                    .streams = w->stream_count,
                    .threads = w->thread_count,
                    .overlap = o->overlap,
                    .untangled = w->untangled,
                    .launches = t->has_launches};
        memcpy(c.digest, o->digest, sizeof c.digest);
        fl_sidefile_put(&f, &c, sizeof c);
        put_texts(&f, in);
        fl_sidefile_put(&f, t->kinds, t->kind_count * sizeof *t->kinds);
        put_reps(&f, o);
        for (uint32_t i = 0; i < w->stream_count; i++)
            put_stream(&f, &w->stream[i]);
        for (uint32_t i = 0; i < w->thread_count; i++)
            put_thread(&f, &w->thread[i]);
        (void)fl_sidefile_place(&f, path);
    }
    free(path);
}

/* ---- reading: every field is checked, as if the hash could not tell ---- */

typedef struct texts {
    const char *at, *end;
    bool good;
} texts;

static char *next_text(texts *t) {
    const char *nul = t->at < t->end ? memchr(t->at, '\0', (size_t)(t->end - t->at)) : NULL;
    char *copy = nul ? strdup(t->at) : NULL;
    t->good = t->good && copy;
    t->at = nul ? nul + 1 : t->end;
    return copy;
}

/* Each text takes a byte at least, so that the counts are bounded by the size of the file. */
static bool take_texts(fl_sidefile *f, const counts *c, fl_kept_workload *k) {
    void *bytes = NULL;
    fl_kernel_trace *t = &k->t;
    if (c->entries > c->text || c->names > c->text || c->notes > c->text ||
        !fl_sidefile_take_array(f, &bytes, c->text, 1)) {
        free(bytes);
        return false;
    }
    texts x = {bytes, bytes ? (const char *)bytes + c->text : NULL, true};
    t->head.entry = calloc(c->entries + 1, sizeof *t->head.entry);
    t->names = calloc(c->names + 1, sizeof *t->names);
    k->note = calloc(c->notes + 1, sizeof *k->note);
    x.good = t->head.entry && t->names && k->note;
    for (; x.good && t->head.count < c->entries; t->head.count++) {
        t->head.entry[t->head.count].key = next_text(&x);
        t->head.entry[t->head.count].value = next_text(&x);
    }
    while (x.good && t->name_count < c->names)
        t->names[t->name_count++] = next_text(&x);
    while (x.good && k->note_count < c->notes)
        k->note[k->note_count++] = next_text(&x);
    free(bytes);
    return x.good && x.at == x.end;
}

static bool take_kinds(fl_sidefile *f, const counts *c, fl_kernel_trace *t) {
    void *kinds;
    const bool all = c->kinds <= UINT32_MAX && fl_sidefile_take_array(f, &kinds, c->kinds, sizeof *t->kinds);
    if (c->kinds <= UINT32_MAX) {
        t->kinds = kinds;
        t->kind_count = all ? (size_t)c->kinds : 0;
    }
    for (size_t i = 0; i < t->kind_count; i++)
        if (t->kinds[i].name >= t->name_count || !t->names[t->kinds[i].name][0])
            return false;
    return all && t->kind_count;
}

static bool knows_device(const fl_outline *o, int32_t device) {
    uint32_t i = 0;
    while (i < o->device_count && o->device[i] != device)
        i++;
    return i < o->device_count;
}

static bool take_outline(fl_sidefile *f, const counts *c, fl_kept_workload *k) {
    void *reps = NULL, *devices = NULL;
    fl_outline *o = &k->outline;
    bool good = c->reps <= FL_CLASSES_MAX && c->devices <= UINT16_MAX &&
                fl_sidefile_take_array(f, &reps, c->reps, sizeof(rep)) &&
                fl_sidefile_take_array(f, &devices, c->devices, sizeof *o->device) &&
                (o->rep = calloc(c->reps + 1, sizeof *o->rep)) != NULL;
    o->device = devices;
    o->device_count = good ? (uint32_t)c->devices : 0;
    for (uint32_t i = 1; good && i < o->device_count; i++)
        good = o->device[i - 1] < o->device[i];
    for (size_t i = 0; good && i < c->reps; i++) {
        const rep *r = (const rep *)reps + i;
        good = r->kind < k->t.kind_count && knows_device(o, r->device) && r->type <= FL_OP_ITERATION &&
               r->type != FL_OP_SYNC;
        o->rep[o->rep_count++] = (fl_trace_op){.kind = r->kind,
                                               .device = r->device,
                                               .sm_mhz = r->sm_mhz,
                                               .type = (uint8_t)r->type,
                                               .launch_ns = INT64_MIN};
    }
    free(reps);
    o->overlap = c->overlap;
    memcpy(o->digest, c->digest, sizeof o->digest);
    return good && o->rep_count && o->device_count;
}

static bool take_waits(fl_sidefile *f, fl_wait **into, size_t *held, uint64_t count) {
    wait in[BATCH];
    if (count > f->left / sizeof *in || count > UINT32_MAX)
        return false;
    if (count && !(*into = fl_cache_array((size_t)count, sizeof **into)))
        return false;
    while (*held < count) {
        const size_t n = count - *held < BATCH ? (size_t)(count - *held) : BATCH;
        if (!fl_sidefile_take(f, in, n * sizeof *in))
            return false;
        for (size_t i = 0; i < n; i++) {
            if (in[i].stream > UINT32_MAX)
                return false;
            (*into)[(*held)++] = (fl_wait){(uint32_t)in[i].stream, in[i].done};
        }
    }
    return true;
}

static bool take_long_ops(fl_sidefile *f, fl_stream *s, uint64_t count) {
    long_op in[BATCH];
    if (count > f->left / sizeof *in || count > UINT32_MAX)
        return false;
    if (count && !(s->big = fl_cache_array((size_t)count, sizeof *s->big)))
        return false;
    s->big_room = (size_t)count;
    while (s->big_count < count) {
        const size_t n = count - s->big_count < BATCH ? (size_t)(count - s->big_count) : BATCH;
        if (!fl_sidefile_take(f, in, n * sizeof *in))
            return false;
        for (size_t i = 0; i < n; i++) {
            if (in[i].work_ns < 0 || in[i].work_ns > FL_DURATION_MAX_NS || in[i].gap_ns < 0 ||
                in[i].gap_ns > FL_DURATION_MAX_NS || in[i].class_id > UINT32_MAX)
                return false;
            s->big[s->big_count++] = (fl_big){in[i].work_ns, in[i].gap_ns, (uint32_t)in[i].class_id};
        }
    }
    return true;
}

static bool waits_ascend(const fl_stream *s) {
    bool good = s->wait_first[0] == 0 && s->wait_first[s->count] == s->wait_count;
    for (size_t i = 0; good && i < s->count; i++)
        good = s->wait_first[i] <= s->wait_first[i + 1];
    return good;
}

static bool take_stream(fl_sidefile *f, fl_workload *w) {
    lane head;
    fl_diag ignored;
    uint32_t index;
    if (!fl_sidefile_take(f, &head, sizeof head) || head.gpu > UINT16_MAX ||
        fl_workload_add_stream(w, head.gpu, head.process, head.id, &index, &ignored))
        return false;
    fl_stream *s = &w->stream[index];
    void *records, *first = NULL;
    const bool taken = fl_sidefile_take_array(f, &records, head.count, sizeof *s->rec);
    s->rec = records;
    s->launched = head.launched;
    if (!taken || !head.count || !take_long_ops(f, s, head.big) || !take_waits(f, &s->wait, &s->wait_count, head.waits))
        return false;
    s->count = s->room = (size_t)head.count;
    s->wait_room = s->wait_count;
    w->op_count += s->count;
    if (head.waits_per_op) {
        const bool all = fl_sidefile_take_array(f, &first, head.count + 1, sizeof *s->wait_first);
        s->wait_first = first;
        s->first_room = s->count + 1;
        if (!all || !waits_ascend(s))
            return false;
    }
    return head.waits_per_op || !s->wait_count;
}

static bool take_thread(fl_sidefile *f, fl_workload *w) {
    thread head;
    fl_diag ignored;
    uint32_t index;
    item in[BATCH];
    if (!fl_sidefile_take(f, &head, sizeof head) || fl_workload_add_thread(w, head.id, &index, &ignored))
        return false;
    fl_thread *t = &w->thread[index];
    if (head.count > f->left / sizeof *in ||
        (head.count && !(t->item = fl_cache_array((size_t)head.count, sizeof *t->item))))
        return false;
    t->room = (size_t)head.count;
    while (t->count < head.count) {
        const size_t n = head.count - t->count < BATCH ? (size_t)(head.count - t->count) : BATCH;
        if (!fl_sidefile_take(f, in, n * sizeof *in))
            return false;
        for (size_t i = 0; i < n; i++) {
            const item *x = &in[i];
            if (x->type > FL_ITEM_SYNC || x->wait_first > head.waits || x->wait_count > head.waits - x->wait_first ||
                x->host_ns > FL_DURATION_MAX_NS || x->after_ns > FL_DURATION_MAX_NS)
                return false;
            t->item[t->count++] = (fl_item){.host_ns = x->host_ns,
                                            .after_ns = x->after_ns,
                                            .stream = x->stream,
                                            .parts = x->parts,
                                            .wait_first = x->wait_first,
                                            .wait_count = x->wait_count,
                                            .type = (fl_item_type)x->type};
        }
    }
    const bool good = take_waits(f, &t->wait, &t->wait_count, head.waits);
    t->wait_room = t->wait_count;
    return good;
}

static bool take_all(fl_sidefile *f, fl_kept_workload *k) {
    counts c;
    fl_diag ignored;
    if (!fl_sidefile_take(f, &c, sizeof c) || !take_texts(f, &c, k) || !take_kinds(f, &c, &k->t) ||
        !take_outline(f, &c, k) || fl_workload_new(&k->w, "", &ignored) || c.streams > UINT32_MAX ||
        c.threads > UINT32_MAX)
        return false;
    k->t.has_launches = c.launches;
    k->w->untangled = c.untangled;
    bool good = true;
    for (uint64_t i = 0; good && i < c.streams; i++)
        good = take_stream(f, k->w);
    for (uint64_t i = 0; good && i < c.threads; i++)
        good = take_thread(f, k->w);
    return good && k->w->stream_count;
}

bool fl_kept_workload_load(const char *trace, fl_kept_workload *k) {
    *k = (fl_kept_workload){0};
    static const fl_import_options ALL = {.device = -1};
    const fl_reader *reader;
    fl_diag ignored = {0};
    fl_sidefile f;
    char *path = fl_trace_may_keep(trace) ? path_of(trace) : NULL;
    bool good = path && access(path, R_OK) == 0 && !fl_reader_find(trace, NULL, &reader, &ignored) &&
                fl_sidefile_open(&f, &KIND, path, trace, reader->name, &ALL);
    free(path);
    if (!good)
        return false;
    good = take_all(&f, k);
    k->key = f.key;
    good = fl_sidefile_close(&f) && good;
    if (!good)
        fl_kept_workload_free(k);
    return good;
}

void fl_kept_workload_free(fl_kept_workload *k) {
    fl_kernel_trace_free(&k->t);
    for (size_t i = 0; i < k->note_count; i++)
        free(k->note[i]);
    free(k->note);
    fl_outline_free(&k->outline);
    fl_workload_free(k->w);
    *k = (fl_kept_workload){0};
}
