#include "sim/base/huge.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#if defined __linux__ && !defined MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1; older headers do not name it */
#endif

#if defined MADV_HUGEPAGE || defined MADV_COLLAPSE
/* A hint about the whole large pages of a range: without it nothing but speed is lost. */
static void hint(const void *at, size_t bytes, int advice) {
    const uintptr_t from = ((uintptr_t)at + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1),
                    to = ((uintptr_t)at + bytes) & ~(HUGE_PAGE - 1);
    if (at && from < to)
        (void)madvise((void *)from, to - from, advice);
}
#endif

void fl_huge_ask(void *at, size_t bytes) {
#ifdef MADV_HUGEPAGE
    hint(at, bytes, MADV_HUGEPAGE);
#else
    (void)at, (void)bytes;
#endif
}

void fl_huge_gather(const void *at, size_t bytes) {
#ifdef MADV_COLLAPSE
    hint(at, bytes, MADV_COLLAPSE);
#else
    (void)at, (void)bytes;
#endif
}

void *fl_huge_alloc(size_t bytes) {
    const size_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    if (bytes > SIZE_MAX - page)
        return NULL;
    void *at = aligned_alloc(page, (bytes + page - 1) / page * page);
    fl_huge_ask(at, at ? (bytes + page - 1) / page * page : 0);
    return at;
}
