#include "harness/live/kernel_feed.h"

#include "harness/live/collector/ring.h"
#include "harness/live/kind_table.h"
#include "harness/live/ring_guard.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1024, VISIBLE_MAX = 64 };

typedef struct source { /* one program */
    fl_ring ring;
    char path[512];
    ino_t inode;
    pid_t pid;
    uint64_t stamp;
    int32_t gpu[VISIBLE_MAX]; /* of the program's numbers those of the host, -1 = none */
    uint64_t lost;            /* of it, told already */
    int32_t last;             /* the host's GPU that it last used, -1 = none yet */
    bool mig;                 /* its list names instances of GPUs, which the library's numbers do not */
    bool over;                /* ended or killed, emptied, closed and removed */
} source;

struct fl_kernels {
    char folder[400];
    source *source;
    size_t source_count, source_room;
    fl_kind_table kinds;
    fl_kernel_record *record;
    size_t record_count, record_room, program_room;
    uint32_t *program;  /* of each record */
    uint64_t lost;      /* found by the take under way */
    uint64_t *finished; /* per GPU */
    size_t finished_count, finished_room;
    fl_kernels_counts counts;
    fl_kernels_position *position; /* may be NULL */
    void *user;
};

fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d) {
    *out = NULL;
    if (mkdir(folder, 0700) && errno != EEXIST)
        return fl_fail(d, FL_IO, folder, 0, 0, "cannot make the folder: %s", fl_reason(errno));
    fl_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return fl_no_memory(d, "the kernels");
    snprintf(k->folder, sizeof k->folder, "%s", folder);
    *out = k;
    return FL_OK;
}

void fl_kernels_close(fl_kernels *k) {
    if (!k)
        return;
    for (size_t i = 0; i < k->source_count; i++)
        fl_ring_close(&k->source[i].ring);
    fl_kind_table_free(&k->kinds);
    free(k->source);
    free(k->record);
    free(k->program);
    free(k->finished);
    free(k);
}

void fl_kernels_gpus(fl_kernels *k, fl_kernels_position *position, void *user) {
    k->position = position;
    k->user = user;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static int32_t position(const fl_kernels *k, const char *name, size_t size) {
    char *end;
    if (k->position)
        return k->position(k->user, name, size);
    const unsigned long number = strtoul(name, &end, 10);
    return end == name + size && size && number < INT32_MAX ? (int32_t)number : -1;
}

static int32_t numbered(const fl_kernels *k, unsigned long number) {
    char name[24];
    return position(k, name, (size_t)snprintf(name, sizeof name, "%lu", number));
}

/* One entry of CUDA_VISIBLE_DEVICES as CUDA reads it: a number as strtoul does, whatever follows it, or (the beginning
 * of) a UUID. False: no GPU, and the list ends before it. */
static bool listed(const fl_kernels *k, const char *entry, int32_t *gpu) {
    char *end;
    entry += strspn(entry, " \t");
    const size_t size = strcspn(entry, ", \t");
    if (size >= 4 && !strncmp(entry, "GPU-", 4)) {
        *gpu = position(k, entry, size);
        return true;
    }
    const unsigned long number = strtoul(entry, &end, 10);
    *gpu = end == entry || *entry == '-' ? -1 : numbered(k, number);
    return end != entry && *entry != '-';
}

/* By the program's list where it has one, else as the library does. */
static void number_gpus(const fl_kernels *k, source *s, const fl_ring_head *head) {
    char text[FL_RING_VISIBLE_MAX];
    const char *at = text;
    memcpy(text, head->visible, sizeof text);
    text[sizeof text - 1] = '\0';
    s->mig = head->chosen && !strncmp(text + strspn(text, " \t"), "MIG-", 4);
    bool more = true;
    for (int i = 0; i < VISIBLE_MAX; i++) {
        s->gpu[i] = -1;
        if (!head->chosen) {
            s->gpu[i] = numbered(k, (unsigned long)i);
        } else if (more && (more = listed(k, at, &s->gpu[i]))) {
            at += strcspn(at, ",");
            more = *at++ == ',';
        }
    }
}

typedef struct opening {
    const fl_kernels *k;
    source *s;
    int error;
} opening;

static void open_source(void *user) {
    opening *o = user;
    o->error = fl_ring_open(&o->s->ring, o->s->path);
    if (o->error)
        return;
    o->s->pid = o->s->ring.head->pid;
    o->s->stamp = o->s->ring.head->stamp;
    number_gpus(o->k, o->s, o->s->ring.head);
}

static fl_status add_source(fl_kernels *k, const char *name, fl_diag *d) {
    source s = {.last = -1};
    struct stat st;
    snprintf(s.path, sizeof s.path, "%s/%.80s", k->folder, name);
    if (stat(s.path, &st))
        return FL_OK;
    s.inode = st.st_ino;
    for (size_t i = 0; i < k->source_count; i++)
        if (!k->source[i].over && k->source[i].inode == s.inode && !strcmp(k->source[i].path, s.path))
            return FL_OK;
    opening o = {.k = k, .s = &s};
    if (!fl_ring_guard(open_source, &o) || o.error) { /* not a ring: not ours */
        fl_ring_close(&s.ring);
        return FL_OK;
    }
    if (fl_grow(&k->source, &k->source_room, k->source_count + 1, sizeof *k->source)) {
        fl_ring_close(&s.ring);
        return fl_no_memory(d, "the kernels");
    }
    k->source[k->source_count++] = s;
    k->counts.programs++;
    return FL_OK;
}

static fl_status find_sources(fl_kernels *k, fl_diag *d) {
    fl_status s = FL_OK;
    DIR *folder = opendir(k->folder);
    for (struct dirent *e; !s && folder && (e = readdir(folder));) {
        size_t size = strlen(e->d_name);
        if (size > 5 && e->d_name[0] != '.' && !strcmp(e->d_name + size - 5, ".ring"))
            s = add_source(k, e->d_name, d);
    }
    if (folder)
        closedir(folder);
    return s;
}

/* ---- records: streams of further contexts get numbers of their own ----------------------------------------------- */

/* A copy, for its program can change it while it is read. */
static void copy_name(const source *s, uint32_t at, char name[FL_RING_NAME_MAX]) {
    const char *from = fl_ring_name_at(&s->ring, at);
    const size_t left = *from ? s->ring.names_size - at : 0,
                 size = strnlen(from, left < FL_RING_NAME_MAX ? left : FL_RING_NAME_MAX - 1);
    memcpy(name, from, size);
    name[size] = '\0';
}

static fl_status add_record(fl_kernels *k, const source *s, const fl_ring_record *r, int64_t origin_ns, fl_diag *d) {
    fl_kernel_record record = {.start_ns = r->start_ns - origin_ns,
                               .end_ns = r->end_ns < 0 ? -1 : r->end_ns - origin_ns,
                               .stream = r->context > 1 ? (r->context << 16) + r->stream : r->stream,
                               .gpu = (uint32_t)(r->gpu < VISIBLE_MAX ? s->gpu[r->gpu] : -1),
                               .flags = (uint32_t)(s - k->source)};
    if (record.start_ns < 0) /* began before this host did */
        return FL_OK;
    char name[FL_RING_NAME_MAX];
    copy_name(s, r->name, name);
    fl_status status = fl_kind_of(&k->kinds, name, r->grid, r->block, &record.kind, d);
    if (status)
        return status;
    if (fl_grow(&k->record, &k->record_room, k->record_count + 1, sizeof *k->record))
        return fl_no_memory(d, "the kernels");
    k->record[k->record_count++] = record;
    return FL_OK;
}

/* The process may live on behind another image (exec) with a ring of its own. */
static bool succeeded(const fl_kernels *k, const source *s) {
    for (size_t i = 0; i < k->source_count; i++)
        if (k->source[i].pid == s->pid && k->source[i].stamp > s->stamp)
            return true;
    return false;
}

static bool gone(const fl_kernels *k, const source *s) {
    return !fl_ring_held(&s->ring) && (s->pid <= 0 || succeeded(k, s) || (kill(s->pid, 0) && errno == ESRCH));
}

typedef struct emptying {
    fl_kernels *k;
    source *s;
    int64_t origin_ns;
    uint32_t gpus;
    bool ended;
    fl_status status;
    fl_diag *d;
} emptying;

/* No more than the ring holds: a program that goes on writing must not keep the host. */
static void empty(void *user) {
    emptying *e = user;
    fl_kernels *k = e->k;
    source *s = e->s;
    fl_ring_record batch[AT_ONCE];
    e->ended = atomic_load(&s->ring.head->ended);
    for (size_t n = AT_ONCE, total = 0; !e->status && n == AT_ONCE && total < s->ring.capacity; total += n) {
        n = fl_ring_take(&s->ring, batch, AT_ONCE, &k->counts.damaged);
        k->counts.consumed += n;
        for (size_t i = 0; !e->status && i < n; i++) {
            const int32_t gpu = batch[i].gpu < VISIBLE_MAX ? s->gpu[batch[i].gpu] : -1;
            s->last = gpu >= 0 && (uint32_t)gpu < e->gpus ? gpu : -1;
            if (s->last < 0) {
                (*(s->mig ? &k->counts.instances : &k->counts.elsewhere))++;
                continue;
            }
            k->finished[gpu] += batch[i].end_ns >= e->origin_ns;
            e->status = add_record(k, s, &batch[i], e->origin_ns, e->d);
        }
    }
    const uint64_t dropped = atomic_load(&s->ring.head->dropped);
    k->lost += dropped - s->lost;
    if (s->last >= 0)
        k->finished[s->last] += dropped - s->lost;
    s->lost = dropped;
}

/* Whether the program is over is asked before the ring is emptied: what it put in last is then in. */
static fl_status take_from(fl_kernels *k, source *s, int64_t origin_ns, uint32_t gpus, fl_diag *d) {
    emptying e = {.k = k, .s = s, .origin_ns = origin_ns, .gpus = gpus, .d = d};
    bool over = gone(k, s);
    if (!fl_ring_guard(empty, &e)) { /* cut short by its program: what it held is lost */
        k->counts.damaged++;
        e.ended = false;
        over = true;
    }
    if (!over && !e.ended)
        return e.status;
    k->counts.ends_missing += !e.ended;
    s->over = true;
    unlink(s->path);
    fl_ring_close(&s->ring);
    return e.status;
}

/* Equal ends in the order of a simulated run. */
static int by_end(const void *a, const void *b) {
    const fl_kernel_record *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? 1 : -1;
    if (x->gpu != y->gpu)
        return x->gpu > y->gpu ? 1 : -1;
    if (x->stream != y->stream)
        return x->stream > y->stream ? 1 : -1;
    return x->start_ns > y->start_ns ? 1 : x->start_ns < y->start_ns ? -1 : 0;
}

fl_status fl_kernels_take(fl_kernels *k, int64_t origin_ns, fl_sample *sample, fl_diag *d) {
    k->record_count = 0;
    k->lost = 0;
    fl_status s = fl_grow(&k->finished, &k->finished_room, sample->gpu_count, sizeof *k->finished)
                      ? fl_no_memory(d, "the kernels")
                      : FL_OK;
    for (; !s && k->finished_count < sample->gpu_count; k->finished_count++)
        k->finished[k->finished_count] = 0;
    s = s ? s : find_sources(k, d);
    k->counts.running = 0;
    for (size_t i = 0; !s && i < k->source_count; i++)
        if (!k->source[i].over) {
            s = take_from(k, &k->source[i], origin_ns, sample->gpu_count, d);
            k->counts.running += !k->source[i].over;
        }
    if (k->record_count)
        qsort(k->record, k->record_count, sizeof *k->record, by_end);
    if (!s && fl_grow(&k->program, &k->program_room, k->record_count + 1, sizeof *k->program))
        s = fl_no_memory(d, "the kernels");
    for (size_t i = 0; !s && i < k->record_count; i++) { /* the flags only kept it through the sorting */
        k->program[i] = k->record[i].flags;
        k->record[i].flags = 0;
    }
    k->counts.lost += k->lost;
    sample->record = k->record_count ? k->record : NULL;
    sample->record_count = k->record_count;
    sample->record_lost = k->lost;
    sample->kind = k->kinds.kind;
    sample->kind_count = (uint32_t)k->kinds.count;
    return s;
}

bool fl_kernels_finished(const fl_kernels *k, uint32_t gpu, uint64_t *count) {
    *count = gpu < k->finished_count ? k->finished[gpu] : 0;
    return k->counts.programs > 0 && gpu < k->finished_count;
}

fl_kernels_counts fl_kernels_count(const fl_kernels *k) { return k->counts; }

const uint32_t *fl_kernels_programs(const fl_kernels *k) { return k->program; }
