/* Takes activity records and markers from the rings and puts them into a policy's sample. */
#include "harness/live/records/inside.h"

#include "harness/live/collector/ring.h"
#include "harness/live/guard/guard.h"
#include "harness/live/records/records.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What one call takes at most, whoever writes how much. Programs of any user are behind the rings, and a host that
 * looks at one of them for too long is late for the GPUs. */
enum {
    FL_RINGS_MAX = 1024, /* and half of the files that this process may have open: each is one */
    /* A record costs one, and one more for each 64 bytes of its name; a marker one. Each ring gets its share. */
    FL_COST_AT_ONCE = 1 << 19,
    FL_COST_OF_ONE = 4096 /* at least */
};
#define FL_LOST_AT_ONCE (UINT64_C(1) << 36) /* no program drops as many between two calls */
#define FL_TIME_MAX_NS (INT64_MAX / 4)      /* 73 years of uptime */

typedef struct fl_emptying {
    fl_kernels *k;
    fl_source *s;
    int64_t origin_ns;
    uint32_t gpus;
    uint64_t share; /* of the cost of this call */
    bool over;      /* the program has ended in whatever way */
    bool ended;     /* in order */
    bool emptied;
    const char *why; /* it is set aside; NULL = it is not */
    fl_status status;
    fl_diag *d;
} fl_emptying;

/* ---- markers of one ring ---- */

/* A thread that uses no GPU yet is of the one that its program used last, or of its only one. */
static int32_t gpu_of_mark(const fl_kernels *k, fl_source *s, const fl_ring_mark *m) {
    uint8_t uuid[FL_RING_UUID];
    if (m->gpu != FL_RING_NO_GPU)
        return fl_kernels_gpu_of(k, s, m->gpu);
    return s->last >= 0 || fl_ring_device_of(&s->ring, 1, uuid) ? s->last : fl_kernels_gpu_of(k, s, 0);
}

/* Takes the markers of one ring, in fl_ring_guard: at most its share, the rest with the next take. */
static void fl_kernels_empty_marks(fl_emptying *e) {
    fl_kernels *k = e->k;
    fl_source *s = e->s;
    fl_ring_mark mark;
    bool more = true;
    for (uint64_t i = 0; !e->status && more && i < e->share && i < FL_RING_MARKS; i++) {
        if (!fl_ring_take_mark(&s->ring, e->over || e->ended, &mark, &more, &k->counts.damaged))
            e->why = "its markers cannot be";
        if (e->why)
            return;
        if (!more)
            break;
        k->counts.damaged += mark.time_ns >= FL_TIME_MAX_NS;
        if (mark.time_ns < 0 || mark.time_ns >= FL_TIME_MAX_NS)
            continue;
        k->counts.marks++;
        e->status =
            fl_marks_add(&k->marks, mark.name, mark.time_ns - e->origin_ns, gpu_of_mark(k, s, &mark), s->program, e->d);
    }
    const uint64_t dropped = atomic_load(&s->ring.head->marks_dropped), lost = dropped - s->marks_lost;
    if (lost > FL_LOST_AT_ONCE)
        e->why = "its count of lost markers cannot be";
    if (e->why) /* told again by the next take, which sets the ring aside */
        return;
    k->counts.marks_lost += lost;
    s->marks_lost = dropped;
}

void fl_kernels_iterations(fl_kernels *k, const char *const *name, size_t count, bool all) {
    k->marks.names = name;
    k->marks.name_count = count;
    k->all_marks = all;
}

bool fl_kernels_iterated(const fl_kernels *k, uint32_t gpu, uint64_t *count) {
    *count = gpu < k->marks.gpus ? k->marks.passed[gpu] : 0;
    return k->marks.name_count > 0;
}

const fl_marks *fl_kernels_marks(const fl_kernels *k) { return &k->marks; }

/* Whoever may put rings into the folder may wake. It stays there: programs that go on may have a next reader. */
fl_status fl_kernels_wakes(fl_kernels *k, fl_diag *d) {
    const int folder = fl_ring_folder_fd(k->folder);
    struct stat in, st;
    const bool made = !mkfifoat(folder, FL_RING_WAKE, 0600);
    if (!made && errno != EEXIST)
        return fl_error(d, FL_IO, "cannot make the FIFO " FL_RING_WAKE " in the folder of rings: %s", fl_reason(errno));
    k->wake = openat(folder, FL_RING_WAKE, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (k->wake < 0 || fstat(k->wake, &st) || fstat(folder, &in) || !S_ISFIFO(st.st_mode))
        return fl_error(d, FL_IO, "the file " FL_RING_WAKE " in the folder of rings is no FIFO that can be opened");
    if (made && in.st_mode & (S_IWGRP | S_IWOTH))
        (void)fchmod(k->wake, in.st_mode & 0666);
    return FL_OK;
}

static void look_for_marks(void *user) {
    fl_emptying *e = user;
    e->ended = atomic_load(&e->s->ring.head->ended);
    fl_kernels_empty_marks(e);
}

/* Also of programs that have just begun. A ring that is damaged is set aside by the next take. */
static fl_status take_marks(fl_kernels *k, fl_diag *d) {
    fl_status s = fl_kernels_find(k, d);
    for (size_t i = 0; !s && i < k->source_count; i++) {
        fl_emptying e = {.k = k, .s = &k->source[i], .origin_ns = k->origin_ns, .share = FL_COST_OF_ONE, .d = d};
        if (!e.s->over && fl_ring_guard(look_for_marks, &e))
            s = e.status;
    }
    return s;
}

/* A program that wakes us without need is answered no more often than this. */
enum { LOOKS_APART_NS = 200000 };

fl_status fl_kernels_await(fl_kernels *k, int64_t until_ns, bool *marked, fl_diag *d) {
    struct pollfd wait = {.fd = k->wake, .events = POLLIN};
    const int64_t left = until_ns - fl_clock_ns(), ns = left < 0 ? 0 : left < 1000000000 ? left : 1000000000;
    char bytes[4096];
    *marked = k->marks.iterations != k->shown;
    if (*marked || ppoll(&wait, 1, &(struct timespec){ns / 1000000000, ns % 1000000000}, NULL) <= 0)
        return FL_OK;
    (void)!read(k->wake, bytes, sizeof bytes);
    fl_status s = take_marks(k, d);
    *marked = k->marks.iterations != k->shown;
    if (!s && !*marked)
        nanosleep(&(struct timespec){.tv_nsec = LOOKS_APART_NS}, NULL);
    return s;
}

/* ---- taking records from the rings ---- */

enum { AT_ONCE = 1024 /* records */, KINDS_MAX = 65536, KINDS_OF_ONE_PROGRAM = 16384 };

fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d) {
    *out = NULL;
    fl_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return fl_no_memory(d, "the kernels");
    k->wake = -1;
    struct rlimit files = {.rlim_cur = FL_RINGS_MAX};
    getrlimit(RLIMIT_NOFILE, &files);
    k->rings_max = files.rlim_cur / 2 < FL_RINGS_MAX ? (size_t)files.rlim_cur / 2 : FL_RINGS_MAX;
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
    fl_marks_free(&k->marks);
    if (k->wake >= 0)
        close(k->wake);
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

/* ---- records: streams of further contexts get numbers of their own ---- */

/* A copy, for its program can change it while it is read. */
static void copy_name(const fl_source *s, uint32_t at, char name[FL_RING_NAME_MAX]) {
    fl_ring_copy_name(&s->ring, at, name);
    fl_printable(name, strlen(name));
}

/* Kinds are kept for the whole run. Beyond so many, what is new is all of one kind. */
static fl_status kind_of(fl_kernels *k, fl_source *s, const char *name, const fl_ring_record *r, uint32_t *kind,
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
        fl_ring_folder_say(k->folder, s->file.name, "more kernel classes than are kept: the further ones count as one");
    k->told_kinds = true;
    return fl_kind_of(&k->kinds, "(further kinds)", NONE, NONE, true, kind, d);
}

static bool in_time(const fl_ring_record *r) {
    return r->start_ns >= 0 && r->start_ns < FL_TIME_MAX_NS && r->end_ns < FL_TIME_MAX_NS;
}

static fl_status add_record(fl_kernels *k, fl_source *s, const fl_ring_record *r, uint32_t gpu, int64_t origin_ns,
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
static bool succeeded(const fl_kernels *k, const fl_source *s) {
    for (size_t i = 0; i < k->source_count; i++)
        if (k->source[i].pid == s->pid && k->source[i].owner == s->owner && k->source[i].stamp > s->stamp)
            return true;
    return false;
}

static bool gone(const fl_kernels *k, const fl_source *s) {
    return !fl_ring_held(&s->ring) && (s->pid <= 0 || succeeded(k, s) || (kill(s->pid, 0) && errno == ESRCH));
}

static fl_status see_record(fl_emptying *e, const fl_ring_record *r, uint64_t *cost) {
    fl_kernels *k = e->k;
    fl_source *s = e->s;
    if (!in_time(r)) {
        k->counts.damaged++;
        return FL_OK;
    }
    const int32_t gpu = fl_kernels_gpu_of(k, s, r->gpu);
    s->last = gpu >= 0 && (uint32_t)gpu < e->gpus ? gpu : FL_GPU_NOBODYS;
    if (s->last < 0) {
        k->counts.elsewhere++;
        return FL_OK;
    }
    k->finished[gpu] += r->end_ns >= e->origin_ns;
    return add_record(k, s, r, (uint32_t)gpu, e->origin_ns, cost, e->d);
}

/* No more than the ring holds and than its share: a program that goes on writing must not keep the host. */
static void empty(void *user) {
    fl_emptying *e = user;
    fl_kernels *k = e->k;
    fl_source *s = e->s;
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
    fl_kernels_empty_marks(e);
    e->emptied =
        s->ring.read == atomic_load(&s->ring.head->write) && s->ring.marks_read == atomic_load(&s->ring.head->marks);
    const uint64_t dropped = atomic_load(&s->ring.head->dropped), more = dropped - s->lost;
    if (e->why)
        return;
    if (more > FL_LOST_AT_ONCE) {
        e->why = "its count of lost records cannot be";
        return;
    }
    k->lost += more;
    if (s->last >= 0)
        k->finished[s->last] += more;
    s->lost = dropped;
}

/* Whether the program is over is asked before the ring is emptied: what it put in last is then in. */
static fl_status take_from(fl_kernels *k, fl_source *s, int64_t origin_ns, uint32_t gpus, uint64_t share, fl_diag *d) {
    const bool over = gone(k, s);
    fl_emptying e = {.k = k, .s = s, .origin_ns = origin_ns, .gpus = gpus, .share = share, .over = over, .d = d};
    if (!fl_ring_guard(empty, &e)) /* what it held is lost */
        e.why = "its program cut it short";
    if (e.why) {
        k->counts.damaged++;
        k->counts.ends_missing++;
        fl_kernels_set_aside(k, &s->file, e.why);
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
    uint64_t share = running ? FL_COST_AT_ONCE / running : 0;
    share = share < FL_COST_OF_ONE ? FL_COST_OF_ONE : share;
    k->counts.running = 0;
    for (size_t i = 0; !s && i < k->source_count; i++) {
        fl_source *at = &k->source[i];
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
    k->origin_ns = origin_ns;
    fl_marks_clear(&k->marks);
    fl_status s = fl_grow(&k->finished, &k->finished_room, sample->gpu_count, sizeof *k->finished)
                      ? fl_no_memory(d, "the kernels")
                      : FL_OK;
    for (; !s && k->finished_count < sample->gpu_count; k->finished_count++)
        k->finished[k->finished_count] = 0;
    s = s ? s : fl_marks_size(&k->marks, sample->gpu_count, d);
    s = s ? s : fl_kernels_find(k, d);
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
    k->shown = k->marks.iterations;
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
