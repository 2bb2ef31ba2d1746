/* MODULE sim/base */
#pragma once

#include "policies/policy.h"
#include "policies/random.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Standard normals of one generator, made in blocks: what the distribution replay draws from at each step. */

enum { FL_NORMALS = 64 }; /* in a block; a multiple of 8 */

typedef struct fl_normals {  /* plain state: a copy of it is a copy of everything */
    fl_random first, random; /* at the first of the block, and behind its last */
    double value[FL_NORMALS];
    size_t next;
} fl_normals;

fl_normals fl_normals_seed(uint64_t seed, uint64_t component);

/* The next block, by the vector form where the processor has it. */
void fl_normals_refill(fl_normals *n);

/* The next normal. Each is what fl_random_normal would make of the same two uniform numbers, but for rounding (1e-14 at
 * most). */
static inline double fl_normals_next(fl_normals *n) {
    if (n->next == FL_NORMALS)
        fl_normals_refill(n);
    return n->value[n->next++];
}

/* The generator as it was before the last normal. */
fl_random fl_normals_last(const fl_normals *n);

/* Durations that vary: a lognormal of a given mean and coefficient of variation, so that none falls to 0. Synthetic
 * programs and the jitter of a replayed sweep draw by this one law. */

typedef struct fl_spread { /* once for all its draws */
    double mean, cv, variance, deviation;
} fl_spread;

static inline fl_spread fl_spread_of(double mean, double cv) {
    const double variance = log(1 + cv * cv);
    return (fl_spread){mean, cv, variance, sqrt(variance)};
}

/* The next one. Of no variation it is the mean, and nothing is drawn. */
static inline double fl_spread_draw(const fl_spread *s, fl_random *r) {
    return s->cv <= 0 ? s->mean : s->mean * exp(s->deviation * fl_random_normal(r) - s->variance / 2);
}

/* A number with the whole part of scale x the next one. The quick normal is off by less than 1e-14, and its exponential
 * by that times the deviation: where a millionth of a millionth cannot move the whole part, it is the same. Elsewhere,
 * and where no int64_t holds it, the number is made again from the same uniform ones as fl_spread_draw makes it. */
static inline double fl_spread_whole(const fl_spread *s, double scale, fl_normals *n) {
    if (s->cv <= 0)
        return scale * s->mean;
    const double quick = scale * (s->mean * exp(s->deviation * fl_normals_next(n) - s->variance / 2));
    if (quick < 1e15 && (int64_t)(quick * (1 - 1e-12)) == (int64_t)(quick * (1 + 1e-12)))
        return quick;
    fl_random again = fl_normals_last(n);
    return scale * fl_spread_draw(s, &again);
}

/* Ways of advancing. All give the same bits, so a run takes whichever is fastest where it applies; tests force one of
 * them, and one that does not apply to a workload gives way to the plain one there (of several streams or launches that
 * is the way of events). */

#define FL_PATHS(X)                                                                                                    \
    X(AUTO, auto, "whichever is fastest")                                                                              \
    X(PLAIN, plain, "a lone stream op by op in one loop: what all others mean")                                        \
    X(VECTOR, vector, "several ops at a time in the processor's vector registers")                                     \
    X(PREFIX, prefix, "a lone stream by sums over its ops, made once per clock")                                       \
    X(EVENTS, events, "any streams of an island from event to event")                                                  \
    X(LAUNCHES, launches, "one stream with its launches as a recurrence")

#define FL_ROW_PATH_ID(id, name, meaning) FL_PATH_##id,
typedef enum fl_path { FL_PATHS(FL_ROW_PATH_ID) FL_PATH_COUNT } fl_path;
extern const char *const fl_path_names[FL_PATH_COUNT];

/* Forces a path on every node of this process that is opened afterwards and does not ask for one itself. To be called
 * before any thread starts. */
void fl_path_force(fl_path path);
fl_path fl_path_forced(void); /* FL_PATH_AUTO where nobody forced one */

/* Whether a path may be taken where `path` is asked for. */
static inline bool fl_path_may(fl_path path, fl_path taken) { return path == FL_PATH_AUTO || path == taken; }

/* How often each path was taken, by all nodes of this process that have been closed: a stretch of work between two
 * boundaries counts once for each path that carried a part of it. Thread-safe. */
void fl_path_count(const uint64_t taken[FL_PATH_COUNT]);
uint64_t fl_path_taken(fl_path path);

/* 128-bit integers for sums that outgrow 64 bits: femtojoules (ps x mW) over hours. */

__extension__ typedef __int128 fl_wide;
__extension__ typedef unsigned __int128 fl_uwide;

#define FL_PS_PER_NS INT64_C(1000)
#define FL_PS_PER_S INT64_C(1000000000000)
#define FL_TIME_NEVER INT64_MAX
/* Longest stretch between two boundaries: the femtojoules of a lone stream fit 64 bits up to 9 kW (see
 * sim/gpu/rates.c). */
#define FL_BOUNDARY_MAX_PS FL_PS_PER_S
#define FL_TIME_END (INT64_MAX / 4) /* 26 days: longer runs are refused */

/* A wide integer as a double, rounded as C does; without a call of the compiler's library where 64 bits hold it. */
static inline double fl_real(fl_wide x) { return x == (int64_t)x ? (double)(int64_t)x : (double)x; }

static inline double fl_joules(fl_wide femtojoules) { return fl_real(femtojoules) * 1e-15; }
static inline double fl_seconds(int64_t ps) { return (double)ps * 1e-12; }

/* What a set of durations looks like: mean, percentiles, longest. */

typedef struct fl_times { /* in s; all NAN where there are none */
    uint64_t count;
    double mean_s, p50_s, p90_s, p95_s, p99_s, max_s;
} fl_times;

/* Of `count` durations in ps, which it sorts. A percentile is the least duration that at least so many percent do not
 * exceed (nearest rank): one of the durations itself. */
fl_times fl_times_of(int64_t *ps, size_t count);

typedef struct fl_time_run { /* `count` durations of `ps` each */
    int64_t ps;
    uint64_t count;
} fl_time_run;

/* The same of runs of equal durations, which it sorts. */
fl_times fl_times_of_runs(fl_time_run *run, size_t count);

/* Memory that is read here and there: in pages of 2 MiB where the system has them, so that finding a page costs less.
 * Internal to sim/. */

/* bytes > 0, at a multiple of 64 at least; not zeroed. free() it. NULL: no memory. */
void *fl_huge_alloc(size_t bytes);
/* Asks for large pages for memory from malloc, before or after it is written. What begins or ends within such a page
 * stays as it is. */
void fl_huge_ask(void *at, size_t bytes);
/* Moves memory that is written already into large pages at once, where the system can; its bytes stay as they are. */
void fl_huge_gather(const void *at, size_t bytes);

/* Requests that arrive as a Poisson process: the times between them are exponential. */

/* Fills t_ns[0 .. count) with the first `count` arrivals after 0 at `per_s` requests per second. Same seed, same times.
 * False where they go beyond 26 days. */
bool fl_poisson(uint64_t seed, double per_s, int64_t *t_ns, size_t count);

/* Which call of a policy is under way on this thread: for whoever has to name it when the policy crashes or does not
 * come back (harness/input/policy/policy.h). Written around every call, read by signal handlers of the same thread. */

typedef enum fl_call {
    FL_CALL_NONE,
    FL_CALL_LOAD, /* constructors of a plug-in: there is no policy yet, only calls counts */
    FL_CALL_INIT,
    FL_CALL_STEP
} fl_call;

typedef struct fl_stepping {
    volatile sig_atomic_t call; /* fl_call; the rest holds while it is not FL_CALL_NONE */
    const fl_policy *policy;
    const char *label, *run; /* of the instance's options; NULL where nobody said */
    uint64_t seed, step;     /* step: of the sample */
    int64_t time_ns;
    uint64_t calls; /* so far: two calls are told apart by it */
    bool watched;   /* fl_stepping_watch was called on this thread */
} fl_stepping;

extern _Thread_local fl_stepping fl_stepping_now;

/* Called once on each thread, before the first call of a policy there. NULL = nobody watches. To be set before any
 * thread starts. */
extern void (*fl_stepping_watch)(void);
