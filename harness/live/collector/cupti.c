/* Finds CUPTI and the GPUs' UUIDs, gives CUPTI its buffers, and flushes it regularly. */
#include "harness/live/collector/inside.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- buffers for CUPTI ---- */

enum { KEPT = 64 };

static _Alignas(8) uint8_t kept[KEPT][FL_BUFFER_BYTES];
static _Atomic uint64_t taken; /* one bit per buffer */

uint8_t *fl_buffer_take(void) {
    uint64_t now = atomic_load_explicit(&taken, memory_order_relaxed);
    while (~now) {
        const int first = __builtin_ctzll(~now);
        if (atomic_compare_exchange_weak_explicit(&taken, &now, now | UINT64_C(1) << first, memory_order_acquire,
                                                  memory_order_relaxed))
            return kept[first];
    }
    return aligned_alloc(8, FL_BUFFER_BYTES);
}

void fl_buffer_give(uint8_t *buffer) {
    const uintptr_t at = (uintptr_t)buffer - (uintptr_t)kept;
    if ((uintptr_t)buffer >= (uintptr_t)kept && at < sizeof kept)
        atomic_fetch_and_explicit(&taken, ~(UINT64_C(1) << at / FL_BUFFER_BYTES), memory_order_release);
    else
        free(buffer);
}

/* ---- UUIDs of the program's GPUs ---- */

typedef struct cuda_uuid { /* CUuuid */
    uint8_t bytes[FL_CUDA_UUID];
} cuda_uuid;

/* cuDeviceGetUuid without _v2 returns the GPU's UUID for each of its MIG instances, so its result would be a guess. */
bool fl_cuda_uuid(uint32_t number, uint8_t uuid[FL_CUDA_UUID]) {
    int (*get)(int *device, int ordinal) = NULL, (*name)(cuda_uuid * uuid, int device) = NULL, device = 0;
    cuda_uuid found = {{0}};
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver)
        return false;
    void *symbol[2] = {dlsym(driver, "cuDeviceGet"), dlsym(driver, "cuDeviceGetUuid_v2")};
    memcpy(&get, &symbol[0], sizeof get);
    memcpy(&name, &symbol[1], sizeof name);
    const bool ok = get && name && !get(&device, (int)number) && !name(&found, device);
    dlclose(driver); /* the program holds it open too */
    if (ok)
        memcpy(uuid, found.bytes, FL_CUDA_UUID);
    return ok;
}

typedef int cuda_get(int *device, int ordinal);
typedef int cuda_current(int *device);
static cuda_get *_Atomic get_device;
static cuda_current *_Atomic current_device; /* comes after the other: both are there */

static bool find_calls(void) {
    if (atomic_load_explicit(&current_device, memory_order_acquire))
        return true;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); /* stays open: its functions are kept */
    void *symbol[2] = {driver ? dlsym(driver, "cuDeviceGet") : NULL, driver ? dlsym(driver, "cuCtxGetDevice") : NULL};
    cuda_get *get;
    cuda_current *current;
    memcpy(&get, &symbol[0], sizeof get);
    memcpy(&current, &symbol[1], sizeof current);
    if (!get || !current)
        return false;
    atomic_store_explicit(&get_device, get, memory_order_relaxed);
    atomic_store_explicit(&current_device, current, memory_order_release);
    return true;
}

uint32_t fl_cuda_current(void) {
    int current = 0, device = 0;
    if (!find_calls() || atomic_load(&current_device)(&current))
        return UINT32_MAX;
    for (uint32_t i = 0; !atomic_load(&get_device)(&device, (int)i); i++)
        if (device == current)
            return i;
    return UINT32_MAX;
}

/* ---- the thread that flushes ---- */

static struct {
    int (*flush)(uint32_t flag);
    unsigned ms;
    bool running, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of stop; never held while flush runs */
    pthread_cond_t wake;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct timespec after_ms(clockid_t clock, unsigned ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static bool wait_for_stop(void) {
    const struct timespec until = after_ms(CLOCK_MONOTONIC, own.ms);
    pthread_mutex_lock(&own.lock);
    while (!own.stop && !pthread_cond_timedwait(&own.wake, &own.lock, &until)) {
    }
    const bool stop = own.stop;
    pthread_mutex_unlock(&own.lock);
    return stop;
}

static void *run(void *user) {
    while (!wait_for_stop())
        own.flush(0);
    return user;
}

bool fl_flusher_start(int (*flush)(uint32_t flag), unsigned ms) {
    pthread_condattr_t steady;
    sigset_t all, before;
    own.flush = flush;
    own.ms = ms;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&own.wake, &steady);
    pthread_condattr_destroy(&steady);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it */
    own.running = !pthread_create(&own.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (own.running)
        pthread_setname_np(own.thread, "foldline-flush");
    return own.running;
}

bool fl_flusher_stop(void) {
    if (!own.running)
        return true;
    pthread_mutex_lock(&own.lock);
    own.stop = true;
    pthread_cond_signal(&own.wake);
    pthread_mutex_unlock(&own.lock);
    const struct timespec until = after_ms(CLOCK_REALTIME, 1000);
    own.running = false;
    return !pthread_timedjoin_np(own.thread, NULL, &until);
}

/* ---- finding CUPTI ---- */

enum { HELD = 39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */, PATH = PATH_MAX };

typedef struct search {
    fl_cupti *c;
    fl_cupti_requested *requested;
    fl_cupti_completed *completed;
    fl_cupti_clock *clock;
    bool found, held;
} search;

static bool find_symbol(void *library, const char *name, void *into) {
    void *symbol = dlsym(library, name);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool look_up(fl_cupti *c, void *library) {
    *c = (fl_cupti){0};
    find_symbol(library, "cuptiActivityDisable", &c->disable);
    find_symbol(library, "cuptiActivityGetNumDroppedRecords", &c->dropped);
    find_symbol(library, "cuptiActivityFlushPeriod", &c->period);
    find_symbol(library, "cuptiGetTimestamp", &c->timestamp);
    find_symbol(library, "cuptiActivityRegisterTimestampCallback", &c->use_clock);
    return find_symbol(library, "cuptiActivityRegisterCallbacks", &c->callbacks) &&
           find_symbol(library, "cuptiActivityEnable", &c->enable) &&
           find_symbol(library, "cuptiActivityGetNextRecord", &c->next) &&
           find_symbol(library, "cuptiActivityFlushAll", &c->flush);
}

/* The clock must be set before a kind is enabled. All times are then on that clock, including those that the GPU took
 * (CUPTI interpolates between the two). */
static void enable(search *s) {
    fl_cupti *c = s->c;
    if (c->callbacks(s->requested, s->completed))
        return;
    c->on_our_clock = c->use_clock && !c->use_clock(s->clock);
    const int error = c->enable(FL_CUPTI_KERNEL);
    s->found = !error;
    s->held = error == HELD;
}

static bool over(const search *s) { return s->found || s->held; }

static void try_library(search *s, const char *path, int flags) {
    void *library = over(s) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (library && look_up(s->c, library))
        enable(s); /* it stays loaded in any case, since it may have threads now */
    else if (library)
        dlclose(library);
}

/* folder NULL: search as the loader does. */
static void try_names(search *s, const char *folder, const char *below, int flags) {
    static const char *const NAMES[] = {"libcupti.so",      "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                        "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4",
                                        "libcupti.so.11.3", "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0"};
    char path[PATH];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !over(s); i++) {
        const int size = folder ? snprintf(path, sizeof path, "%s/%s/%s", folder, below, NAMES[i])
                                : snprintf(path, sizeof path, "%s", NAMES[i]);
        if ((size_t)size < sizeof path)
            try_library(s, path, flags);
    }
}

static void try_toolkit(search *s, const char *folder) {
    if (!folder || !*folder)
        return;
    try_names(s, folder, "extras/CUPTI/lib64", 0);
    try_names(s, folder, "lib64", 0);
}

static int is_cudart(struct dl_phdr_info *object, size_t size, void *folder) {
    const char *slash = strrchr(object->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash, "/libcudart", strlen("/libcudart")) != 0 || slash - object->dlpi_name >= PATH)
        return 0;
    snprintf(folder, PATH, "%.*s", (int)(slash - object->dlpi_name), object->dlpi_name);
    return 1;
}

/* A toolkit has it in the same folder or in a sibling; Python's packages have one folder for each library. */
static void try_beside_cudart(search *s) {
    char folder[PATH];
    if (!dl_iterate_phdr(is_cudart, folder))
        return;
    try_names(s, folder, ".", 0);
    try_names(s, folder, "../extras/CUPTI/lib64", 0);
    try_names(s, folder, "../../cuda_cupti/lib", 0);
}

bool fl_cupti_start(fl_cupti *c, fl_cupti_requested *requested, fl_cupti_completed *completed, fl_cupti_clock *clock) {
    search s = {.c = c, .requested = requested, .completed = completed, .clock = clock};
    const char *asked = getenv("FOLDLINE_CUPTI");
    if (asked && *asked) {
        try_library(&s, asked, 0);
        return s.found;
    }
    try_names(&s, NULL, NULL, RTLD_NOLOAD);
    try_beside_cudart(&s);
    try_toolkit(&s, getenv("CUDA_HOME"));
    try_toolkit(&s, getenv("CUDA_PATH"));
    try_names(&s, NULL, NULL, 0);
    try_toolkit(&s, "/usr/local/cuda");
    return s.found;
}
