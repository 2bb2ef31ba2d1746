/* What all modules of sim share: units of time and energy, 128-bit sums, ways of advancing, and seeded draws.
 *
 * Time is int64 picoseconds, power is whole milliwatts, and energy is femtojoules (ps x mW) in fl_wide. fl_seconds and
 * fl_joules convert to reals for output. Nothing here allocates but fl_huge_alloc, and nothing fails but
 * fl_poisson (arrivals beyond 26 days) and fl_huge_alloc (no memory).
 *
 * In this order: units; statistics of durations; draws; ways of advancing; the call of a policy that is under way;
 * memory in large pages. */
#pragma once

#include "policies/policy.h"
#include "policies/random.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- units of time and energy ---- */

/* 128-bit integers for sums that outgrow 64 bits: femtojoules (ps x mW) over hours. */

__extension__ typedef __int128 fl_wide;
__extension__ typedef unsigned __int128 fl_uwide;

#define FL_PS_PER_NS INT64_C(1000)
#define FL_PS_PER_S INT64_C(1000000000000)
#define FL_TIME_NEVER INT64_MAX
/* Longest stretch between two boundaries: the femtojoules of a lone stream fit 64 bits up to 9 kW (see
 * sim/gpu/rates.c). */
#define FL_BOUNDARY_MAX_PS FL_PS_PER_S
#define FL_TIME_END (INT64_MAX / 4) /* 26 days: the engine refuses longer runs */

/* Convert a wide integer to a double, rounded as C does. Where 64 bits hold it, this avoids a call of the compiler's
 * library. */
static inline double fl_real(fl_wide x) { return x == (int64_t)x ? (double)(int64_t)x : (double)x; }

static inline double fl_joules(fl_wide femtojoules) { return fl_real(femtojoules) * 1e-15; }
static inline double fl_seconds(int64_t ps) { return (double)ps * 1e-12; }

/* ---- statistics of durations ---- */

typedef struct fl_times { /* in s; all NAN for an empty set */
    uint64_t count;
    double mean_s, p50_s, p90_s, p95_s, p99_s, max_s;
} fl_times;

/* Return mean, percentiles and maximum of `count` durations in ps. Sorts the array. A percentile is the least duration
 * that at least so many percent do not exceed (nearest rank), so it is one of the durations. */
fl_times fl_times_of(int64_t *ps, size_t count);

typedef struct fl_time_run { /* `count` durations of `ps` each */
    int64_t ps;
    uint64_t count;
} fl_time_run;

/* Return the statistics of runs of equal durations. Sorts the array. */
fl_times fl_times_of_runs(fl_time_run *run, size_t count);

/* ---- draws: normals, durations, arrivals ---- */

/* Standard normals of one generator, made in blocks of 64, since the distribution replay draws two at each step. */

enum { FL_NORMALS = 64 }; /* in a block; a multiple of 8 */

typedef struct fl_normals {  /* plain state: a copy of it is a copy of everything */
    fl_random first, random; /* at the first of the block, and behind its last */
    double value[FL_NORMALS];
    size_t next;
} fl_normals;

fl_normals fl_normals_seed(uint64_t seed, uint64_t component);

/* Make the next block. Uses vector registers where the CPU has them, with the same bits. */
void fl_normals_refill(fl_normals *n);

/* Return the next normal. It equals what fl_random_normal makes of the same two uniform numbers, to 1e-14. */
static inline double fl_normals_next(fl_normals *n) {
    if (n->next == FL_NORMALS)
        fl_normals_refill(n);
    return n->value[n->next++];
}

/* Return the generator as it was before the last normal, so that a caller can draw that normal again. */
fl_random fl_normals_last(const fl_normals *n);

/* Durations that vary: a lognormal of a given mean and coefficient of variation, so that none falls to 0. Synthetic
 * programs and the jitter of a replayed sweep draw by this one law. */

typedef struct fl_spread { /* made once, used for all draws */
    double mean, cv, variance, deviation;
} fl_spread;

static inline fl_spread fl_spread_of(double mean, double cv) {
    const double variance = log(1 + cv * cv);
    return (fl_spread){mean, cv, variance, sqrt(variance)};
}

/* Draw the next duration. With cv = 0 it is the mean, and the generator does not move. */
static inline double fl_spread_draw(const fl_spread *s, fl_random *r) {
    return s->cv <= 0 ? s->mean : s->mean * exp(s->deviation * fl_random_normal(r) - s->variance / 2);
}

/* Draw the next duration times `scale`; only the whole part of the result is exact. The quick normal is off by less
 * than 1e-14. Where a relative 1e-12 could move the whole part, or no int64_t holds the number, the function makes it
 * again from the same uniform numbers by fl_spread_draw. */
static inline double fl_spread_whole(const fl_spread *s, double scale, fl_normals *n) {
    if (s->cv <= 0)
        return scale * s->mean;
    const double quick = scale * (s->mean * exp(s->deviation * fl_normals_next(n) - s->variance / 2));
    if (quick < 1e15 && (int64_t)(quick * (1 - 1e-12)) == (int64_t)(quick * (1 + 1e-12)))
        return quick;
    fl_random again = fl_normals_last(n);
    return scale * fl_spread_draw(s, &again);
}

/* Fill t_ns with the first `count` arrivals of a Poisson process after time 0, at `per_s` requests per second. The same
 * seed gives the same times. Returns false where they go beyond 26 days. */
bool fl_poisson(uint64_t seed, double per_s, int64_t *t_ns, size_t count);

/* ---- ways of advancing ----
 *
 * All ways give the same bits, so a run takes the fastest that applies; sim/README.md describes them. Tests force one.
 * Where a forced way does not apply, the plain one runs instead, or for several streams or launches the way of events.
 */

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

/* Force a way on every node of this process that is opened afterwards and does not ask for one itself. Call it before
 * any thread starts. */
void fl_path_force(fl_path path);
fl_path fl_path_forced(void); /* FL_PATH_AUTO: none is forced */

/* Return whether way `taken` may be used where `path` is asked for. */
static inline bool fl_path_may(fl_path path, fl_path taken) { return path == FL_PATH_AUTO || path == taken; }

/* Add to, and return, how often each way was taken by all closed nodes of this process. A stretch of work between two
 * boundaries counts once for each way that carried a part of it. Thread-safe. */
void fl_path_count(const uint64_t taken[FL_PATH_COUNT]);
uint64_t fl_path_taken(fl_path path);

/* ---- the call of a policy that is under way on this thread ----
 *
 * sim/instance writes it around every call. Signal handlers of the same thread read it, to name the policy that
 * crashed or did not return (harness/input/policy/policy.h). */

typedef enum fl_call {
    FL_CALL_NONE,
    FL_CALL_LOAD, /* constructors of a plug-in: there is no policy yet, only calls counts */
    FL_CALL_INIT,
    FL_CALL_STEP
} fl_call;

typedef struct fl_stepping {
    volatile sig_atomic_t call; /* fl_call; the rest holds while it is not FL_CALL_NONE */
    const fl_policy *policy;
    const char *label, *run; /* of the instance's options; NULL = not stated */
    uint64_t seed, step;     /* step: of the sample */
    int64_t time_ns;
    uint64_t calls; /* calls so far; tells two calls apart */
    bool watched;   /* fl_stepping_watch was called on this thread */
} fl_stepping;

extern _Thread_local fl_stepping fl_stepping_now;

/* A function that each thread calls once, before its first call of a policy; NULL = none. Set it before any thread
 * starts. */
extern void (*fl_stepping_watch)(void);

/* ---- memory in large pages ----
 *
 * Arrays that are read out of order lie in pages of 2 MiB where the system has them, since looking pages up then costs
 * less. */

/* Allocate bytes > 0 at a multiple of 64 or more, not zeroed. The caller frees it with free(). NULL: no memory. */
void *fl_huge_alloc(size_t bytes);
/* Ask for large pages for memory from malloc, before or after it is written. Partial pages at the ends stay small. */
void fl_huge_ask(void *at, size_t bytes);
/* Move written memory into large pages at once, where the system can. Addresses and contents stay. */
void fl_huge_gather(const void *at, size_t bytes);
