/* Preloaded into a program: one of its allocations fails. FL_FAIL_AT: which, from 1; FL_FAIL_COUNT: a file that is told
 * at the end how many there were. What the program starts in turn is left alone. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OURS __attribute__((visibility("default")))

static atomic_long seen;
static long fail_at = -1;
static int begun;
static char count_path[512];
static __thread int spared __attribute__((tls_model("initial-exec")));

/* True for the one allocation that is to find no memory. Nothing counts before the program's own start. */
static int fails(void) {
    if (fail_at < 0 || spared || atomic_fetch_add(&seen, 1) + 1 != fail_at)
        return 0;
    errno = ENOMEM;
    return 1;
}

/* The next definition of a function, found once. Two threads may find it at the same time: both find the same. */
#define NEXT(type, name)                                                                                               \
    static _Atomic(type) next;                                                                                         \
    if (!next) {                                                                                                       \
        void *found = dlsym(RTLD_NEXT, name);                                                                          \
        type as;                                                                                                       \
        memcpy(&as, &found, sizeof as);                                                                                \
        next = as;                                                                                                     \
    }

typedef void *of_size(size_t);
typedef void *of_two(size_t, size_t);
typedef void *of_old(void *, size_t);
typedef void *of_old_two(void *, size_t, size_t);
typedef int of_attributes(pthread_t, pthread_attr_t *);
typedef int of_place(void **, size_t, size_t);

OURS void *malloc(size_t size) {
    NEXT(of_size *, "malloc")
    return fails() ? NULL : next(size);
}

/* What the sanitizer itself allocates before the program begins, for a thread of its own, is no leak: it tells its own
 * by who calls, and here this function does. */
extern void __lsan_ignore_object(const void *) __attribute__((weak));

OURS void *calloc(size_t count, size_t size) {
    NEXT(of_two *, "calloc")
    void *found = fails() ? NULL : next(count, size);
    if (!begun && found && __lsan_ignore_object)
        __lsan_ignore_object(found);
    return found;
}

OURS void *realloc(void *old, size_t size) {
    NEXT(of_old *, "realloc")
    return fails() ? NULL : next(old, size);
}

OURS void *reallocarray(void *old, size_t count, size_t size) {
    NEXT(of_old_two *, "reallocarray")
    return fails() ? NULL : next(old, count, size);
}

OURS void *aligned_alloc(size_t alignment, size_t size) {
    NEXT(of_two *, "aligned_alloc")
    return fails() ? NULL : next(alignment, size);
}

OURS int posix_memalign(void **place, size_t alignment, size_t size) {
    NEXT(of_place *, "posix_memalign")
    return fails() ? ENOMEM : next(place, alignment, size);
}

/* A sanitizer asks for this where a thread begins, and ends the program where it fails. */
OURS int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) {
    NEXT(of_attributes *, "pthread_getattr_np")
    spared = 1;
    const int error = next(thread, attributes);
    spared = 0;
    return error;
}

/* A sanitizer's own does not come by malloc. */
OURS char *strndup(const char *text, size_t size) {
    const size_t length = strnlen(text, size);
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

OURS char *strdup(const char *text) { return strndup(text, strlen(text)); }

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FL_FAIL_AT"), *count = getenv("FL_FAIL_COUNT");
    if (count)
        snprintf(count_path, sizeof count_path, "%s", count);
    unsetenv("LD_PRELOAD");
    unsetenv("FL_FAIL_COUNT");
    fail_at = at ? atol(at) : 0;
    begun = 1;
    unsetenv("FL_FAIL_AT");
}

__attribute__((destructor)) static void end(void) {
    const long all = seen;
    fail_at = -1;
    FILE *f = *count_path ? fopen(count_path, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", all);
        fclose(f);
    }
}
