/* The library that a CUDA program loads to report its kernels: CUDA_INJECTION64_PATH=/full/path/of/this.so, and
 * FOLDLINE_RINGS=folder. CUDA then calls InitializeInjection. Without CUPTI (inside.h), without a folder, or where
 * another profiler holds CUPTI, the library reports no kernels and the program runs on. With
 * NVTX_INJECTION64_PATH=/full/path/of/this.so it reports the program's markers and starts of ranges too: NVTX calls
 * InitializeInjectionNvtx2.
 *
 * A program that ends without an exit (a signal, _exit) loses the records of the last FLUSH_MS and the running kernels.
 * The layout of a kernel record up to `name` is the same in all versions. Times are CLOCK_MONOTONIC: the library gives
 * CUPTI that clock where CUPTI accepts one. Otherwise CUPTI counts ns of its own clock, the wall clock, which may be
 * slewed and set; the library corrects them by the difference of the clocks, measured again with every buffer. */
#include "harness/live/collector/inside.h"

#include "harness/live/collector/ring.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FLUSH_MS = 20, NAMES = 16384 };
enum { RING_RECORDS = 1 << 16, RING_NAMES = 4 << 20 };
enum { AT_START = 16, AT_END = 24, AT_DEVICE = 40, AT_CONTEXT = 44, AT_STREAM = 48, AT_GRID = 52, AT_BLOCK = 64 };
enum { AT_CORRELATION = 92, AT_NAME = 104 };

typedef struct name_entry {
    uint64_t hash; /* 0 = empty */
    uint32_t at;
} name_entry;

static struct { /* global, because CUPTI's callbacks take no user pointer */
    fl_cupti api;
    bool started;
    bool stuck;        /* CUPTI did not come back at the end */
    _Atomic bool open; /* the ring is open */
    _Atomic bool devices_told;
    char folder[PATH_MAX];
    fl_ring ring; /* records under the lock, markers without */
    /* Serialises the threads that deliver CUPTI's records. No function of CUPTI is called while it is held. The
     * program's threads take it only until its GPUs are in the ring. It guards the members below. */
    pthread_mutex_t lock;
    int64_t offset_ns;
    name_entry name[NAMES];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint64_t our_clock(void) { return (uint64_t)monotonic(); }

/* Takes the quickest of a few readings. Keeps the old difference where their uncertainty explains the change. */
static void see_clock(void) {
    int64_t best = INT64_MAX, offset = 0;
    for (int i = 0; !own.api.on_our_clock && own.api.timestamp && i < 3; i++) {
        uint64_t theirs = 0;
        const int64_t before = monotonic();
        const int status = own.api.timestamp(&theirs);
        const int64_t took = monotonic() - before;
        if (!status && took < best) {
            best = took;
            offset = before + took / 2 - (int64_t)theirs;
        }
    }
    pthread_mutex_lock(&own.lock);
    if (best < INT64_MAX && llabs(offset - own.offset_ns) > best)
        own.offset_ns = offset;
    pthread_mutex_unlock(&own.lock);
}

/* Writes the program's GPUs into the ring as soon as the driver has started; it has not yet started when it calls us.
 */
static void tell_devices(void) {
    uint8_t uuid[FL_RING_DEVICES][FL_RING_UUID];
    uint32_t count = 0;
    while (!atomic_load(&own.devices_told) && count < FL_RING_DEVICES && fl_cuda_uuid(count, uuid[count]))
        count++;
    if (!count)
        return;
    pthread_mutex_lock(&own.lock);
    for (uint32_t i = 0; i < count && !atomic_load(&own.devices_told) && atomic_load(&own.open); i++)
        fl_ring_tell_device(&own.ring, i, uuid[i]);
    atomic_store(&own.devices_told, true);
    pthread_mutex_unlock(&own.lock);
}

/* Called by the flusher, which usually reports the GPUs before the first record comes. */
static int flush_steadily(uint32_t flag) {
    tell_devices();
    return own.api.flush(flag);
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

static void put_record(const uint8_t *from) {
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
    pthread_mutex_lock(&own.lock);
    if (!start && !end) { /* not collected */
        fl_ring_lost(&own.ring, 1);
    } else {
        r.start_ns = (int64_t)start + own.offset_ns;
        r.end_ns = end ? (int64_t)end + own.offset_ns : -1;
        r.name = name ? intern(name) : 0;
        fl_ring_put(&own.ring, &r);
    }
    pthread_mutex_unlock(&own.lock);
}

static void on_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    *buffer = fl_buffer_take();
    *size = *buffer ? FL_BUFFER_BYTES : 0;
    *max_records = 0;
}

static void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    uint8_t *record = NULL;
    size_t lost = 0;
    (void)size;
    if (atomic_load(&own.open)) {
        see_clock();
        tell_devices();
        while (valid && !own.api.next(buffer, valid, &record))
            if (u32(record) == FL_CUPTI_KERNEL)
                put_record(record);
        if (own.api.dropped && own.api.dropped(context, stream, &lost))
            lost = 0;
        pthread_mutex_lock(&own.lock);
        fl_ring_lost(&own.ring, lost);
        pthread_mutex_unlock(&own.lock);
    }
    fl_buffer_give(buffer);
}

/* Called at each marker, in the thread that passes it. */
static void on_mark(const char *name) {
    const int64_t now = monotonic();
    if (!atomic_load(&own.open))
        return;
    const uint32_t gpu = fl_cuda_current();
    if (gpu != FL_RING_NO_GPU && !atomic_load(&own.devices_told))
        tell_devices();
    if (fl_ring_put_mark(&own.ring, now, gpu, name))
        fl_ring_wake(own.folder);
}

/* Runs before the driver's own exit handlers: CUDA called us first, so its handlers were registered before this one. */
static void end_records(void) {
    if (!atomic_load(&own.open))
        return;
    own.stuck = !fl_flusher_stop();
    if (!own.stuck)
        own.api.flush(FL_CUPTI_FORCED); /* half-filled buffers too */
}

/* Runs after end_records, which was registered later. */
static void end_ring(void) {
    if (atomic_load(&own.open) && !own.stuck)
        fl_ring_end(&own.ring);
}

/* A forked child shares the ring and must not write into its parent's. After an exec its own kernels go into its own
 * ring. */
static void in_child(void) {
    atomic_store(&own.open, false);
    fl_ring_close(&own.ring);
}

static bool has_folder(void) {
    const char *folder = getenv("FOLDLINE_RINGS");
    return folder && *folder && !access(folder, W_OK);
}

static void make_ring(void) {
    if (!realpath(getenv("FOLDLINE_RINGS"),
                  own.folder)) /* a program may change its folder before it wakes the reader */
        return;
    if (fl_ring_create(&own.ring, own.folder, RING_RECORDS, RING_NAMES))
        return;
    atomic_store(&own.open, true);
    pthread_atfork(NULL, NULL, in_child);
    atexit(end_ring);
    fl_ring_wake(own.folder); /* its markers can wake the reader once it has opened the ring */
}

/* Whichever of CUDA and NVTX comes first makes the ring. */
static bool open_ring(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_ring);
    return atomic_load(&own.open);
}

__attribute__((visibility("default"))) int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void) {
    if (own.started || !has_folder())
        return 1;
    own.started = true;
    /* The ring comes last, so that none is left behind where nothing can be collected. No kernel runs before we return.
     */
    if (!fl_cupti_start(&own.api, on_requested, on_completed, our_clock))
        return 1;
    if (!open_ring()) {
        if (own.api.disable)
            own.api.disable(FL_CUPTI_KERNEL);
        return 1;
    }
    see_clock();
    if (own.api.period)
        own.api.period(FLUSH_MS);
    fl_flusher_start(flush_steadily, FLUSH_MS);
    atexit(end_records);
    return 1;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(fl_nvtx_export *get);
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(fl_nvtx_export *get) {
    if (has_folder() && open_ring())
        fl_nvtx_attach(get, on_mark);
    return 1;
}
