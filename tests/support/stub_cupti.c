/* A stand-in for libcupti: buffers filled with activity records at will, given back as cupti_activity.h says. A thread
 * of its own gives back the full ones at each period; cuptiActivityFlushAll(0) all whose kernels have ended, full or
 * not; cuptiActivityFlushAll(1) every one. STUB_OLD: before 11.8, it takes no clock.
 *
 * FOLDLINE_CUPTI_HELD=TEXT, FOLDLINE_CUPTI_FAILS=TEXT: where TEXT is in the path of this library, another profiler
 * holds it, or it cannot be enabled. FOLDLINE_CUPTI_STUCK: FlushAll(0) does not come back. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { RECORD_BYTES = 216, KIND = 10, NOT_INITIALIZED = 15, HELD = 39 };

typedef void requested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef uint64_t own_clock(void);

typedef struct held { /* a buffer of the client */
    uint8_t *at;
    size_t size, used;
    uint64_t done_ns; /* when its last kernel ends */
    struct held *next;
} held;

static requested *ask;
static completed *give;
static own_clock *told; /* the client's clock */
static bool enabled;
static _Atomic uint32_t period_ms = 100;
static uint64_t clock_ns = 77000000000u; /* a clock of its own, */
static held *full, *open;
static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;    /* of what stands above */
static pthread_mutex_t delivery = PTHREAD_MUTEX_INITIALIZER; /* one at a time: who flushes waits for all before */

static uint64_t monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_full(const held *h) { return h->used + RECORD_BYTES > h->size; }

/* The first to be given back, NULL = none. */
static held *detach(bool only_full, bool forced) {
    const uint64_t now = monotonic();
    held *found = NULL;
    pthread_mutex_lock(&state);
    for (held **at = &full; *at && !found;)
        if (forced || (*at)->done_ns <= now) {
            found = *at;
            *at = found->next;
        } else {
            at = &(*at)->next;
        }
    if (!found && open && !only_full && (forced || open->done_ns <= now)) {
        found = open;
        open = NULL;
    }
    pthread_mutex_unlock(&state);
    return found;
}

static void deliver(bool only_full, bool forced) {
    pthread_mutex_lock(&delivery);
    for (held *h; (h = detach(only_full, forced));) {
        if (h->done_ns > monotonic())
            for (size_t i = 0; i < h->used; i += RECORD_BYTES)
                memset(h->at + i + 16, 0, 16); /* no times */
        give(NULL, 0, h->at, h->size, h->used);
        free(h);
    }
    pthread_mutex_unlock(&delivery);
}

static void *work(void *user) {
    while (true) {
        usleep(period_ms * 1000);
        deliver(true, false);
    }
    return user;
}

/* Whether what that variable says is in the path of this library. */
static bool is_named_by(const char *variable) {
    const char *text = getenv(variable);
    Dl_info here;
    return text && dladdr(&state, &here) && strstr(here.dli_fname, text);
}

API int cuptiActivityRegisterCallbacks(requested *a, completed *g);
API int cuptiActivityRegisterCallbacks(requested *a, completed *g) {
    ask = a;
    give = g;
    return 0;
}
API int cuptiActivityEnable(int kind);
API int cuptiActivityEnable(int kind) {
    pthread_t worker;
    if (is_named_by("FOLDLINE_CUPTI_HELD"))
        return HELD;
    if (is_named_by("FOLDLINE_CUPTI_FAILS"))
        return NOT_INITIALIZED;
    enabled = kind == KIND;
    return pthread_create(&worker, NULL, work, NULL);
}
API int cuptiActivityDisable(int kind);
API int cuptiActivityDisable(int kind) {
    enabled = enabled && kind != KIND;
    return 0;
}
API int cuptiActivityFlushPeriod(uint32_t ms);
API int cuptiActivityFlushPeriod(uint32_t ms) {
    period_ms = ms;
    return 0;
}
#ifndef STUB_OLD
API int cuptiActivityRegisterTimestampCallback(own_clock *clock);
API int cuptiActivityRegisterTimestampCallback(own_clock *clock) {
    told = clock;
    return 0;
}
#endif
API int cuptiGetTimestamp(uint64_t *ns);
API int cuptiGetTimestamp(uint64_t *ns) {
    *ns = told ? told() : monotonic() + clock_ns;
    return 0;
}
API void stub_cupti_set_clock(uint64_t ns);
API void stub_cupti_set_clock(uint64_t ns) { clock_ns = ns; } /* which can be set */
API int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, uint8_t **record);
API int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, uint8_t **record) {
    *record = *record ? *record + RECORD_BYTES : from;
    return *record + RECORD_BYTES > from + valid;
}
API int cuptiActivityFlushAll(uint32_t flag);
API int cuptiActivityFlushAll(uint32_t flag) {
    while (!flag && getenv("FOLDLINE_CUPTI_STUCK"))
        pause();
    deliver(false, flag);
    return 0;
}
API bool stub_cupti_enabled(void);
API bool stub_cupti_enabled(void) { return enabled; }

static void write_record(held *h, const char *name, const uint32_t at[3], uint64_t lasts_ns) {
    const uint32_t kind = KIND, grid[3] = {at[2], 1, 1}, block[3] = {256, 1, 1};
    uint64_t start, end;
    uint8_t *r = h->at + h->used;
    cuptiGetTimestamp(&start);
    end = start + lasts_ns;
    memset(r, 0, RECORD_BYTES);
    memcpy(r, &kind, 4);
    memcpy(r + 16, &start, 8);
    memcpy(r + 24, &end, 8);
    memcpy(r + 40, &at[0], 4);
    memcpy(r + 48, &at[1], 4);
    memcpy(r + 52, grid, 12);
    memcpy(r + 64, block, 12);
    memcpy(r + 104, &name, 8);
    h->used += RECORD_BYTES;
    h->done_ns = monotonic() + lasts_ns;
}

/* One kernel that starts now, by one thread of the program. */
API void stub_cupti_kernel_of(const char *name, uint32_t device, uint32_t stream, uint32_t blocks, uint64_t lasts_ns);
API void stub_cupti_kernel_of(const char *name, uint32_t device, uint32_t stream, uint32_t blocks, uint64_t lasts_ns) {
    held *new = NULL;
    if (!enabled)
        return;
    pthread_mutex_lock(&state);
    if (open && is_full(open)) {
        held **last = &full;
        while (*last)
            last = &(*last)->next;
        *last = open;
        open = NULL;
    }
    if (!open) {
        size_t most;
        pthread_mutex_unlock(&state);
        new = calloc(1, sizeof *new);
        ask(&new->at, &new->size, &most);
        pthread_mutex_lock(&state);
        open = new;
    }
    write_record(open, name, (uint32_t[]){device, stream, blocks}, lasts_ns);
    pthread_mutex_unlock(&state);
}
API void stub_cupti_kernel(const char *name, uint32_t device, uint32_t stream, uint32_t blocks);
API void stub_cupti_kernel(const char *name, uint32_t device, uint32_t stream, uint32_t blocks) {
    stub_cupti_kernel_of(name, device, stream, blocks, 1000);
}
