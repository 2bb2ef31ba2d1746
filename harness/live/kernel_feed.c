#include "harness/live/kernel_feed.h"

#include "harness/live/collector/ring.h"
#include "harness/live/kind_table.h"
#include "harness/live/ring_folder.h"
#include "harness/live/ring_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1024 /* records */ };

/* What one call takes at most, whoever writes how much. Programs of any user are behind the rings, and a host that
 * looks at one of them for too long is late for the GPUs. */
enum {
    RINGS_MAX = 1024,        /* and half of the files that this process may have open: each is one */
    RINGS_OF_ONE_USER = 256, /* who is not the host's own, and half of all; a quarter is kept for the host's own user */
    OPENED_AT_ONCE = 64,
    /* A record costs one, and one more for each 64 bytes of its name. Each ring gets its share of the whole. */
    COST_AT_ONCE = 1 << 19,
    COST_OF_ONE = 4096, /* at least */
    KINDS_MAX = 65536,
    KINDS_OF_ONE_PROGRAM = 16384
};
#define LOST_AT_ONCE (UINT64_C(1) << 36) /* no program drops as many between two calls */
#define TIME_MAX_NS (INT64_MAX / 4)      /* 73 years of uptime */

enum { UNKNOWN = -2 /* not asked yet */, NOBODYS = -1 };

typedef struct source { /* one program */
    fl_ring ring;
    fl_ring_file file;
    uid_t owner;
    pid_t pid;
    uint64_t stamp;
    uint32_t program;             /* its number, in the order in which they were seen */
    int32_t gpu[FL_RING_DEVICES]; /* of the program's numbers those of the host */
    uint64_t lost;                /* of it, told already */
    uint32_t kinds;               /* that it brought */
    int32_t last;                 /* the host's GPU that it last used, -1 = none yet */
    bool over;                    /* ended, killed or set aside: closed; the next program takes its place */
} source;

struct fl_kernels {
    fl_ring_folder *folder;
    source *source;
    size_t source_count, source_room;
    size_t rings_max;
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
    bool told_kinds, told_rings;
};

fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d) {
    *out = NULL;
    fl_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return fl_no_memory(d, "the kernels");
    struct rlimit files = {.rlim_cur = RINGS_MAX};
    getrlimit(RLIMIT_NOFILE, &files);
    k->rings_max = files.rlim_cur / 2 < RINGS_MAX ? (size_t)files.rlim_cur / 2 : RINGS_MAX;
    fl_status s = fl_ring_folder_open(&k->folder, folder, d);
    if (s)
        free(k);
    else
        *out = k;
    return s;
}

void fl_kernels_close(fl_kernels *k) {
    if (!k)
        return;
    for (size_t i = 0; i < k->source_count; i++)
        fl_ring_close(&k->source[i].ring);
    fl_ring_folder_close(k->folder);
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

void fl_kernels_tell(fl_kernels *k, void (*tell)(void *user, const char *line), void *user) {
    fl_ring_folder_teller(k->folder, tell, user);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

typedef struct opening {
    const fl_kernels *k;
    source *s;
    fl_ring_refusal why;
    int error;
} opening;

static void open_source(void *user) {
    opening *o = user;
    o->why = fl_ring_open_at(&o->s->ring, fl_ring_folder_fd(o->k->folder), o->s->file.name, &o->error);
    if (o->why)
        return;
    o->s->pid = o->s->ring.head->pid;
    o->s->stamp = o->s->ring.head->stamp;
}

static void set_aside(fl_kernels *k, const fl_ring_file *file, const char *why) {
    fl_ring_folder_set_aside(k->folder, file, why);
    k->counts.set_aside++;
}

/* The place of a program that is over, or a new one; NULL: out of memory. */
static source *place_of(fl_kernels *k) {
    for (size_t i = 0; i < k->source_count; i++)
        if (k->source[i].over)
            return &k->source[i];
    return fl_grow(&k->source, &k->source_room, k->source_count + 1, sizeof *k->source) ? NULL
                                                                                        : &k->source[k->source_count++];
}

/* Whether there is room for one more, of that owner. */
static bool has_room(const fl_kernels *k, uid_t owner) {
    const size_t of_one = k->rings_max / 2 < RINGS_OF_ONE_USER ? k->rings_max / 2 : RINGS_OF_ONE_USER;
    size_t all = 0, its = 0, others = 0;
    for (size_t i = 0; i < k->source_count; i++)
        if (!k->source[i].over) {
            all++;
            its += k->source[i].owner == owner;
            others += k->source[i].owner != geteuid();
        }
    return all < k->rings_max && (owner == geteuid() || (its < of_one && others < k->rings_max - k->rings_max / 4));
}

static bool is_known(const fl_kernels *k, const fl_ring_file *file) {
    for (size_t i = 0; i < k->source_count; i++)
        if (!k->source[i].over && k->source[i].file.inode == file->inode && !strcmp(k->source[i].file.name, file->name))
            return true;
    return false;
}

/* Until one of the others ends: it is looked at again. */
static void let_wait(fl_kernels *k, const fl_ring_file *file) {
    if (!k->told_rings)
        fl_ring_folder_say(k->folder, file->name, "more programs at a time than are looked at: it waits");
    k->told_rings = true;
}

static void refuse(fl_kernels *k, const fl_ring_file *file, const opening *o) {
    const bool ours = o->error == EMFILE || o->error == ENFILE || o->error == ENOMEM; /* to blame */
    if (o->why == FL_RING_GONE)
        return;
    if (o->why == FL_RING_SYSTEM && ours)
        let_wait(k, file);
    else
        set_aside(k, file, o->why == FL_RING_SYSTEM ? fl_reason(o->error) : fl_ring_why(o->why));
}

static fl_status add_source(fl_kernels *k, const fl_ring_file *file, fl_diag *d) {
    source s = {.file = *file, .last = NOBODYS, .program = (uint32_t)k->counts.programs};
    struct stat st;
    opening o = {.k = k, .s = &s};
    const bool whole = fl_ring_guard(open_source, &o);
    if (!whole || o.why || fstat(s.ring.fd, &st)) { /* fstat: it worked a moment ago */
        fl_ring_close(&s.ring);
        if (!whole)
            set_aside(k, file, "its program cut it short");
        else
            refuse(k, file, &o);
        return FL_OK;
    }
    s.owner = st.st_uid;
    for (int i = 0; i < FL_RING_DEVICES; i++)
        s.gpu[i] = UNKNOWN;
    if (!has_room(k, s.owner)) {
        fl_ring_close(&s.ring);
        let_wait(k, file);
        return FL_OK;
    }
    source *at = place_of(k);
    if (!at) {
        fl_ring_close(&s.ring);
        return fl_no_memory(d, "the kernels");
    }
    *at = s;
    k->counts.programs++;
    return FL_OK;
}

static fl_status find_sources(fl_kernels *k, fl_diag *d) {
    fl_ring_file file;
    fl_status s = FL_OK;
    fl_ring_folder_begin(k->folder);
    for (int opened = 0; !s && fl_ring_folder_next(k->folder, &file);) {
        if (is_known(k, &file))
            continue;
        s = add_source(k, &file, d);
        if (++opened == OPENED_AT_ONCE)
            fl_ring_folder_pause(k->folder);
    }
    return s;
}

/* ---- records: streams of further contexts get numbers of their own ----------------------------------------------- */

/* By its UUID: what a program calls GPU 0 may be any. */
static int32_t gpu_of(const fl_kernels *k, source *s, uint32_t number) {
    uint8_t uuid[FL_RING_UUID];
    char text[FL_RING_UUID_TEXT];
    if (number >= FL_RING_DEVICES)
        return NOBODYS;
    if (s->gpu[number] == UNKNOWN && fl_ring_device_of(&s->ring, number, uuid)) {
        fl_ring_uuid_text(uuid, text);
        s->gpu[number] = k->position ? k->position(k->user, text, strlen(text)) : NOBODYS;
    }
    return s->gpu[number] < 0 ? NOBODYS : s->gpu[number];
}

/* A copy, for its program can change it while it is read; what is not printable is not shown to anybody. */
static void copy_name(const source *s, uint32_t at, char name[FL_RING_NAME_MAX]) {
    fl_ring_copy_name(&s->ring, at, name);
    for (size_t i = 0, size = strlen(name); i < size;) {
        const size_t n = fl_utf8(name + i, size - i);
        if (!n)
            name[i] = '?';
        i += n ? n : 1;
    }
}

/* Kinds are kept for the whole run. Beyond so many, what is new is all of one kind. */
static fl_status kind_of(fl_kernels *k, source *s, const char *name, const fl_ring_record *r, uint32_t *kind,
                         fl_diag *d) {
    static const uint32_t NONE[3] = {0};
    const size_t before = k->kinds.count;
    const bool add = s->kinds < KINDS_OF_ONE_PROGRAM && before < KINDS_MAX;
    fl_status status = fl_kind_of(&k->kinds, name, r->grid, r->block, add, kind, d);
    s->kinds += (uint32_t)(k->kinds.count - before);
    if (status || *kind != UINT32_MAX)
        return status;
    k->counts.unkept_kinds++;
    if (!k->told_kinds)
        fl_ring_folder_say(k->folder, s->file.name,
                           "more kinds of kernels than are kept: the further ones count as one");
    k->told_kinds = true;
    return fl_kind_of(&k->kinds, "(further kinds)", NONE, NONE, true, kind, d);
}

static bool in_time(const fl_ring_record *r) {
    return r->start_ns >= 0 && r->start_ns < TIME_MAX_NS && r->end_ns < TIME_MAX_NS;
}

static fl_status add_record(fl_kernels *k, source *s, const fl_ring_record *r, uint32_t gpu, int64_t origin_ns,
                            uint64_t *cost, fl_diag *d) {
    fl_kernel_record record = {.start_ns = r->start_ns - origin_ns,
                               .end_ns = r->end_ns < 0 ? -1 : r->end_ns - origin_ns,
                               .stream = r->context > 1 ? (r->context << 16) + r->stream : r->stream,
                               .gpu = gpu,
                               .flags = s->program};
    if (record.start_ns < 0) /* began before this host did */
        return FL_OK;
    char name[FL_RING_NAME_MAX];
    copy_name(s, r->name, name);
    *cost += strlen(name) / 64;
    fl_status status = kind_of(k, s, name, r, &record.kind, d);
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
        if (k->source[i].pid == s->pid && k->source[i].owner == s->owner && k->source[i].stamp > s->stamp)
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
    uint64_t share; /* of the cost of this call */
    bool ended;     /* in order */
    bool emptied;
    const char *why; /* it is set aside; NULL = it is not */
    fl_status status;
    fl_diag *d;
} emptying;

static fl_status see_record(emptying *e, const fl_ring_record *r, uint64_t *cost) {
    fl_kernels *k = e->k;
    source *s = e->s;
    if (!in_time(r)) {
        k->counts.damaged++;
        return FL_OK;
    }
    const int32_t gpu = gpu_of(k, s, r->gpu);
    s->last = gpu >= 0 && (uint32_t)gpu < e->gpus ? gpu : NOBODYS;
    if (s->last < 0) {
        k->counts.elsewhere++;
        return FL_OK;
    }
    k->finished[gpu] += r->end_ns >= e->origin_ns;
    return add_record(k, s, r, (uint32_t)gpu, e->origin_ns, cost, e->d);
}

/* No more than the ring holds and than its share: a program that goes on writing must not keep the host. */
static void empty(void *user) {
    emptying *e = user;
    fl_kernels *k = e->k;
    source *s = e->s;
    fl_ring_record batch[AT_ONCE];
    uint64_t cost = 0;
    e->ended = atomic_load(&s->ring.head->ended);
    for (size_t n = AT_ONCE, total = 0; !e->status && n == AT_ONCE && total < s->ring.capacity && cost < e->share;) {
        const uint64_t before = k->counts.damaged;
        if (!fl_ring_take(&s->ring, batch, AT_ONCE, &n, &k->counts.damaged)) {
            e->why = "its indices cannot be";
            return;
        }
        k->counts.consumed += n;
        const uint64_t seen = n + (k->counts.damaged - before);
        total += seen;
        cost += seen;
        for (size_t i = 0; !e->status && i < n; i++)
            e->status = see_record(e, &batch[i], &cost);
    }
    e->emptied = s->ring.read == atomic_load(&s->ring.head->write);
    const uint64_t dropped = atomic_load(&s->ring.head->dropped), more = dropped - s->lost;
    if (more > LOST_AT_ONCE) {
        e->why = "its count of lost records cannot be";
        return;
    }
    k->lost += more;
    if (s->last >= 0)
        k->finished[s->last] += more;
    s->lost = dropped;
}

/* Whether the program is over is asked before the ring is emptied: what it put in last is then in. */
static fl_status take_from(fl_kernels *k, source *s, int64_t origin_ns, uint32_t gpus, uint64_t share, fl_diag *d) {
    emptying e = {.k = k, .s = s, .origin_ns = origin_ns, .gpus = gpus, .share = share, .d = d};
    const bool over = gone(k, s);
    if (!fl_ring_guard(empty, &e)) /* what it held is lost */
        e.why = "its program cut it short";
    if (e.why) {
        k->counts.damaged++;
        k->counts.ends_missing++;
        set_aside(k, &s->file, e.why);
    } else if ((over || e.ended) && e.emptied) {
        k->counts.ends_missing += !e.ended;
        unlinkat(fl_ring_folder_fd(k->folder), s->file.name, 0);
    } else {
        return e.status;
    }
    s->over = true;
    fl_ring_close(&s->ring);
    return e.status;
}

/* Each has a share of its own, so it does not matter whose turn is first. */
static fl_status empty_all(fl_kernels *k, int64_t origin_ns, uint32_t gpus, fl_diag *d) {
    fl_status s = FL_OK;
    uint64_t running = 0;
    for (size_t i = 0; i < k->source_count; i++)
        running += !k->source[i].over;
    uint64_t share = running ? COST_AT_ONCE / running : 0;
    share = share < COST_OF_ONE ? COST_OF_ONE : share;
    k->counts.running = 0;
    for (size_t i = 0; !s && i < k->source_count; i++) {
        source *at = &k->source[i];
        if (at->over)
            continue;
        s = take_from(k, at, origin_ns, gpus, share, d);
        k->counts.running += !at->over;
    }
    return s;
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
    s = s ? s : empty_all(k, origin_ns, sample->gpu_count, d);
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
