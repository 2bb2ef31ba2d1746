/* Memory in large pages, the forced way of advancing, Poisson arrivals, the call of a policy that is under way, and
 * statistics of durations. */
#include "sim/base/base.h"

#include "policies/random.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory in large pages ---- */

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

/* ---- ways of advancing ---- */

#define FL_ROW_PATH_NAME(id, name, meaning) #name,
const char *const fl_path_names[FL_PATH_COUNT] = {FL_PATHS(FL_ROW_PATH_NAME)};

static fl_path forced;
static _Atomic uint64_t taken_by[FL_PATH_COUNT];

void fl_path_force(fl_path path) { forced = path; }
fl_path fl_path_forced(void) { return forced; }

void fl_path_count(const uint64_t taken[FL_PATH_COUNT]) {
    for (int i = 0; i < FL_PATH_COUNT; i++)
        atomic_fetch_add_explicit(&taken_by[i], taken[i], memory_order_relaxed);
}

uint64_t fl_path_taken(fl_path path) { return atomic_load_explicit(&taken_by[path], memory_order_relaxed); }

/* ---- arrivals of a Poisson process ---- */

bool fl_poisson(uint64_t seed, double per_s, int64_t *t_ns, size_t count) {
    fl_random r = fl_random_seed(seed, UINT64_C(0x706f6973736f6e)); /* "poisson": a stream of its own */
    double t_s = 0;
    for (size_t i = 0; i < count; i++) {
        t_s -= log(1 - fl_random_unit(&r)) / per_s;
        if (!(t_s < 26 * 86400.0))
            return false;
        t_ns[i] = (int64_t)(t_s * 1e9 + 0.5);
    }
    return true;
}

/* ---- the call of a policy that is under way ---- */

_Thread_local fl_stepping fl_stepping_now;
void (*fl_stepping_watch)(void);

/* ---- statistics of durations ---- */

static int ascending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double rank_s(const int64_t *ps, size_t count, size_t percent) {
    return fl_seconds(ps[(count * percent + 99) / 100 - 1]);
}

fl_times fl_times_of(int64_t *ps, size_t count) {
    if (!count)
        return (fl_times){0, NAN, NAN, NAN, NAN, NAN, NAN};
    fl_wide sum = 0;
    qsort(ps, count, sizeof *ps, ascending);
    for (size_t i = 0; i < count; i++)
        sum += ps[i];
    return (fl_times){.count = count,
                      .mean_s = (double)sum / (double)count * 1e-12,
                      .p50_s = rank_s(ps, count, 50),
                      .p90_s = rank_s(ps, count, 90),
                      .p95_s = rank_s(ps, count, 95),
                      .p99_s = rank_s(ps, count, 99),
                      .max_s = fl_seconds(ps[count - 1])};
}

static int shorter_run(const void *a, const void *b) {
    const int64_t x = ((const fl_time_run *)a)->ps, y = ((const fl_time_run *)b)->ps;
    return x < y ? -1 : x > y;
}

fl_times fl_times_of_runs(fl_time_run *run, size_t count) {
    static const uint64_t percent[] = {50, 90, 95, 99};
    fl_times t = {0, NAN, NAN, NAN, NAN, NAN, NAN};
    double *const rank_s[] = {&t.p50_s, &t.p90_s, &t.p95_s, &t.p99_s};
    fl_wide sum = 0;
    qsort(run, count, sizeof *run, shorter_run);
    for (size_t i = 0; i < count; i++) {
        t.count += run[i].count;
        sum += (fl_wide)run[i].ps * run[i].count;
    }
    uint64_t passed = 0;
    for (size_t i = 0, k = 0; i < count; i++) {
        passed += run[i].count;
        for (; k < 4 && passed >= (t.count * percent[k] + 99) / 100; k++)
            *rank_s[k] = fl_seconds(run[i].ps);
    }
    if (t.count) {
        t.mean_s = (double)sum / (double)t.count * 1e-12;
        t.max_s = fl_seconds(run[count - 1].ps);
    }
    return t;
}
