/* The program's allocations, redirected by the linker, so that each failure is noted. */
#include "harness/base/work/work.h"

#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The names are the linker's: __wrap_X is called for X, and __real_X is X. */
#define PAIR(type, name, ...)                                                                                          \
    type __real_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__);

PAIR(void *, malloc, size_t)
PAIR(void *, calloc, size_t, size_t)
PAIR(void *, realloc, void *, size_t)
PAIR(void *, aligned_alloc, size_t, size_t)
PAIR(char *, strdup, const char *)
PAIR(char *, strndup, const char *, size_t)
PAIR(int, vasprintf, char **, const char *, va_list)
PAIR(FILE *, open_memstream, char **, size_t *)
/* GSL's allocations, where a part inside an object may be missing; the handles are only passed on. */
PAIR(void *, gsl_vector_alloc, size_t)
PAIR(void *, gsl_matrix_alloc, size_t, size_t)
PAIR(void *, gsl_permutation_alloc, size_t)
PAIR(void *, gsl_interp_alloc, const void *, size_t)
PAIR(void *, gsl_multimin_fminimizer_alloc, const void *, size_t)
PAIR(void *, gsl_multifit_nlinear_alloc, const void *, const void *, size_t, size_t)
PAIR(FILE *, fopen, const char *, const char *)
PAIR(ssize_t, __getdelim, char **, size_t *, int, FILE *) /* getline calls this where it is inlined */
int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void *noted(void *bytes) {
    if (!bytes)
        fl_memory_lost();
    return bytes;
}

void *__wrap_malloc(size_t size) { return noted(__real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) { return noted(__real_calloc(count, size)); }
void *__wrap_realloc(void *old, size_t size) {
    void *bytes = __real_realloc(old, size);
    return size ? noted(bytes) : bytes;
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) { return noted(__real_aligned_alloc(alignment, size)); }
char *__wrap_strdup(const char *text) { return noted(__real_strdup(text)); }
char *__wrap_strndup(const char *text, size_t size) { return noted(__real_strndup(text, size)); }
FILE *__wrap_open_memstream(char **text, size_t *size) { return noted(__real_open_memstream(text, size)); }

void *__wrap_gsl_vector_alloc(size_t n) { return noted(__real_gsl_vector_alloc(n)); }
void *__wrap_gsl_matrix_alloc(size_t n, size_t m) { return noted(__real_gsl_matrix_alloc(n, m)); }
void *__wrap_gsl_permutation_alloc(size_t n) { return noted(__real_gsl_permutation_alloc(n)); }
void *__wrap_gsl_interp_alloc(const void *type, size_t n) { return noted(__real_gsl_interp_alloc(type, n)); }

void *__wrap_gsl_multimin_fminimizer_alloc(const void *type, size_t n) {
    return noted(__real_gsl_multimin_fminimizer_alloc(type, n));
}

void *__wrap_gsl_multifit_nlinear_alloc(const void *type, const void *how, size_t rows, size_t columns) {
    return noted(__real_gsl_multifit_nlinear_alloc(type, how, rows, columns));
}

FILE *__wrap_fopen(const char *path, const char *mode) {
    FILE *file = __real_fopen(path, mode);
    if (!file && errno == ENOMEM)
        fl_memory_lost();
    return file;
}

/* A failure that is neither the end nor an error of the file: there was no room for the line. */
ssize_t __wrap___getdelim(char **line, size_t *room, int end, FILE *file) {
    const ssize_t size = __real___getdelim(line, room, end, file);
    if (size < 0 && !feof(file) && !ferror(file))
        fl_memory_lost();
    return size;
}

int __wrap_vasprintf(char **text, const char *format, va_list list) {
    const int size = __real_vasprintf(text, format, list);
    if (size < 0)
        fl_memory_lost();
    return size;
}

int __wrap_asprintf(char **text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int size = __wrap_vasprintf(text, format, list);
    va_end(list);
    return size;
}

/* Arrays of kernels, of 1 MiB and more, come directly from the system and return to it. Without this, glibc raises its
 * threshold up to 32 MiB once a large array was freed, and takes ever larger arrays from its heaps. The small parts of
 * results, which stay, then pin the memory around them: a comparison of many workloads held three times the memory it
 * used. */
static void part_big_from_small(void) {
#ifdef __GLIBC__
    enum { BIG = 1 << 20 };
    mallopt(M_MMAP_THRESHOLD, BIG);
    mallopt(M_TRIM_THRESHOLD,
            16 * BIG); /* with a lower threshold the top of a heap would be returned and requested all the time */
    /* Under a sanitizer, which has an allocator of its own, this is the first call that glibc's gets. Two threads that
     * make it at once crash (glibc 2.36: ptmalloc_init is not guarded), so it is made here, before there are threads.
     */
    malloc_trim(0);
#endif
}

void fl_memory_watch(void) {
    part_big_from_small();
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = __wrap_malloc, .free_fn = free});
}
