/* The library that a CUDA program loads to tell of its kernels: CUDA_INJECTION64_PATH=/full/path/of/this.so, and
 * FOLDLINE_RINGS=folder. CUDA then calls InitializeInjection. CUPTI is opened at run time ($FOLDLINE_CUPTI where set);
 * without it, without a folder or where another profiler holds it, this does nothing and the program runs on.
 *
 * Own declarations (CUPTI 11 to 13): the layout of a kernel record up to `name` is the same in all its versions. Kind
 * CONCURRENT_KERNEL: the other serialises kernels. Times are ns of CUPTI's clock, turned into CLOCK_MONOTONIC by the
 * difference, which is seen anew with every buffer: CUPTI's may be the wall clock, which is slewed and set. */
#include "harness/live/ring.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KIND_CONCURRENT_KERNEL = 10, BUFFER_BYTES = 1 << 20, FLUSH_MS = 20, NAMES = 16384 };
enum { RING_RECORDS = 1 << 16, RING_NAMES = 4 << 20 };
enum { AT_START = 16, AT_END = 24, AT_DEVICE = 40, AT_CONTEXT = 44, AT_STREAM = 48, AT_GRID = 52, AT_BLOCK = 64 };
enum { AT_CORRELATION = 92, AT_NAME = 104 };

typedef void requested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

typedef struct cupti {
    int (*callbacks)(requested *, completed *);
    int (*enable)(int kind);
    int (*next)(uint8_t *buffer, size_t valid, uint8_t **record);
    int (*dropped)(void *context, uint32_t stream, size_t *count);
    int (*flush)(uint32_t flag);
    int (*period)(uint32_t ms);
    int (*timestamp)(uint64_t *ns);
} cupti;

typedef struct name_entry {
    uint64_t hash; /* 0 = empty */
    uint32_t at;
} name_entry;

static struct { /* CUPTI's callbacks take no pointer of ours */
    cupti api;
    fl_ring ring;
    int64_t offset_ns;
    pthread_mutex_t lock; /* of CUPTI's threads among each other; the program's never take it */
    name_entry name[NAMES];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* By the quickest of a few readings; kept where what those leave open explains the change. */
static void see_clock(void) {
    int64_t best = INT64_MAX, offset = 0;
    for (int i = 0; own.api.timestamp && i < 3; i++) {
        uint64_t theirs = 0;
        const int64_t before = monotonic();
        const int status = own.api.timestamp(&theirs);
        const int64_t took = monotonic() - before;
        if (!status && took < best) {
            best = took;
            offset = before + took / 2 - (int64_t)theirs;
        }
    }
    if (best < INT64_MAX && llabs(offset - own.offset_ns) > best)
        own.offset_ns = offset;
}

static uint32_t intern(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = name; *c && c - name < FL_RING_NAME_MAX; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    hash |= 1;
    for (uint32_t i = 0, at = (uint32_t)(hash >> 32) % NAMES; i < 64; i++, at = (at + 1) % NAMES) {
        if (own.name[at].hash == hash)
            return own.name[at].at;
        if (!own.name[at].hash) {
            own.name[at] = (name_entry){.hash = hash, .at = fl_ring_name(&own.ring, name)};
            return own.name[at].at;
        }
    }
    return fl_ring_name(&own.ring, name);
}

static uint32_t u32(const uint8_t *at) {
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static void put(const uint8_t *from) {
    fl_ring_record r = {.gpu = u32(from + AT_DEVICE),
                        .context = u32(from + AT_CONTEXT),
                        .stream = u32(from + AT_STREAM),
                        .correlation = u32(from + AT_CORRELATION)};
    uint64_t start, end;
    const char *name;
    memcpy(&start, from + AT_START, sizeof start);
    memcpy(&end, from + AT_END, sizeof end);
    memcpy(&name, from + AT_NAME, sizeof name);
    memcpy(r.grid, from + AT_GRID, sizeof r.grid);
    memcpy(r.block, from + AT_BLOCK, sizeof r.block);
    if (!start && !end) { /* not collected */
        fl_ring_lost(&own.ring, 1);
        return;
    }
    r.start_ns = (int64_t)start + own.offset_ns;
    r.end_ns = end ? (int64_t)end + own.offset_ns : -1;
    r.name = name ? intern(name) : 0;
    fl_ring_put(&own.ring, &r);
}

static void on_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    uint8_t *record = NULL;
    size_t lost = 0;
    (void)size;
    pthread_mutex_lock(&own.lock);
    see_clock();
    while (own.ring.head && valid && !own.api.next(buffer, valid, &record))
        if (u32(record) == KIND_CONCURRENT_KERNEL)
            put(record);
    if (own.ring.head && own.api.dropped && !own.api.dropped(context, stream, &lost) && lost)
        fl_ring_lost(&own.ring, lost);
    pthread_mutex_unlock(&own.lock);
    free(buffer);
}

static void at_end(void) {
    if (!own.ring.head)
        return;
    own.api.flush(1); /* forced: half-filled buffers too */
    fl_ring_end(&own.ring);
}

/* After a fork the child shares the ring: it must not write into its parent's. */
static void in_child(void) { own.ring.head = NULL; }

static bool find(void *library, const char *name, void *into) {
    void *symbol = dlsym(library, name);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool open_cupti(void) {
    const char *asked = getenv("FOLDLINE_CUPTI"), *const names[] = {"libcupti.so", "libcupti.so.13", "libcupti.so.12",
                                                                    "libcupti.so.11.8"};
    void *library = asked && *asked ? dlopen(asked, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !(asked && *asked) && !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    cupti *c = &own.api;
    if (!library)
        return false;
    find(library, "cuptiActivityGetNumDroppedRecords", &c->dropped);
    find(library, "cuptiActivityFlushPeriod", &c->period);
    find(library, "cuptiGetTimestamp", &c->timestamp);
    return find(library, "cuptiActivityRegisterCallbacks", &c->callbacks) &&
           find(library, "cuptiActivityEnable", &c->enable) && find(library, "cuptiActivityGetNextRecord", &c->next) &&
           find(library, "cuptiActivityFlushAll", &c->flush);
}

__attribute__((visibility("default"))) int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void) {
    const char *folder = getenv("FOLDLINE_RINGS");
    if (own.ring.head || !folder || !*folder || !open_cupti())
        return 1;
    see_clock();
    if (fl_ring_create(&own.ring, folder, RING_RECORDS, RING_NAMES))
        return 1;
    if (own.api.callbacks(on_requested, on_completed) || own.api.enable(KIND_CONCURRENT_KERNEL)) {
        fl_ring_end(&own.ring); /* another profiler holds it: nothing will come */
        fl_ring_close(&own.ring);
        return 1;
    }
    if (own.api.period)
        own.api.period(FLUSH_MS);
    pthread_atfork(NULL, NULL, in_child);
    atexit(at_end);
    return 1;
}
