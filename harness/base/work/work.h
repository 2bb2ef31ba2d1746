/* Work on many items, and what a few noisy results allow one to conclude.
 *
 * Threads: fl_pool_run runs independent jobs, fl_turns_run runs items of several stages with few items in memory at
 * once. Both store results by index, so a result never depends on the number of threads. Both return the diagnostic of
 * the first failing job in order.
 *
 * Statistics: fl_means adds up means that share their bootstrap draws, with 95 % intervals; paired differences and
 * ranks build on it. Begin with a struct {.b = ...}, add, draw, then fl_means_free. Nothing here reads a clock: the
 * same values give the same bytes.
 *
 * Allocations: fl_memory_watch notes each allocation that fails. */
#pragma once

#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Threads for independent jobs. Indices come from one counter and results are stored by index, so the number of threads
 * does not affect the result. */

/* One job. It must touch nothing except what belongs to its index. */
typedef fl_status (*fl_job)(void *user, size_t index, fl_diag *d);

/* Runs job 0..count-1 on `threads` threads (0 = as many as the machine has). On failure the diagnostic is that of the
 * failing job with the lowest index, whichever failed first; jobs above it may not have run. progress: the name of the
 * work where its progress is shown (traces/io/io.h), a static text; NULL = no progress. */
fl_status fl_pool_run(fl_job job, void *user, size_t count, unsigned threads, const char *progress, fl_diag *d);

/* The number of threads: `threads`, or as many as the machine has where `threads` is 0; at least 1. */
unsigned fl_threads(unsigned threads);

/* The option row for `threads`, for tables of options (harness/base/cli/cli.h). */
#define FL_THREADS_OPTION(into)                                                                                        \
    { "threads", "N", FL_OPTION_INT, into, 1, 1024, "threads (all); the result does not depend on it" }

/* Means of a handful of noisy results, with intervals. Many means share their draws.
 *
 * Values come as workloads x seeds, row by row; NAN = no such run. A run without randomness stands once, at the first
 * seed that has a value. The mean is the mean over workloads of the means over their seeds, so that no workload has
 * more weight because it has more runs.
 *
 * Intervals are 95 % percentile intervals of a two-level bootstrap (Davison and Hinkley, "Bootstrap Methods and their
 * Application", 1997, 3.8): it draws workloads with replacement, then seeds within each drawn workload. A single
 * workload stays, and only its seeds are drawn. With neither two workloads nor two seeds, low and high are NAN. The
 * draws are seeded: the same values give the same bytes.
 *
 * The runs of a draw depend on the seed and on how many runs each workload has, not on the values. Means over the same
 * pattern of runs therefore use the same draws: fl_means makes those once and adds up eight means side by side. */

typedef struct fl_bootstrap {
    uint64_t seed;
    size_t draws; /* at least 1 */
} fl_bootstrap;

#define FL_DRAWS_STANDARD 2000

typedef struct fl_interval {
    double mean, low, high; /* NAN where not defined */
    size_t workloads, runs; /* number of workloads and of runs that had a value */
} fl_interval;

typedef struct fl_means_pattern fl_means_pattern;

typedef struct fl_means { /* begin with {.b = ...}, end with fl_means_free */
    fl_bootstrap b;
    uint64_t stream; /* stream of the random numbers: 0, or another one for draws that must differ */
    bool sums;       /* a draw is the sum over its workloads, not the mean: the values are already shares of a mean */
    fl_means_pattern *pattern;
    size_t count, room, held; /* number of patterns and room for them; number of values that wait */
    fl_intern by_runs;
} fl_means;

/* Sets all of *out except low and high, which fl_means_draw sets later: *out must stay at its address until then. The
 * caller may free value at once. */
fl_status fl_means_add(fl_means *m, const double *value, size_t workloads, size_t seeds, fl_interval *out, fl_diag *d);
/* Draws for all means that were added since the last call. */
fl_status fl_means_draw(fl_means *m, fl_diag *d);
void fl_means_free(fl_means *m);

/* Compute one mean with its interval. The only error is FL_NO_MEMORY, as for all functions of means and ranks. */
fl_status fl_bootstrap_mean(const double *value, size_t workloads, size_t seeds, const fl_bootstrap *b,
                            fl_interval *out, fl_diag *d);

/* Paired differences and ranks, with bootstrap intervals. */

typedef struct fl_paired {
    fl_interval difference;    /* a - b, paired by workload and, where both have the seed, by seed */
    size_t wins, ties, losses; /* workloads whose mean difference is above tie, within it, below -tie */
} fl_paired;

/* a and b: workloads x seeds. A run that only one of them has does not count. Where one of them has a single run of a
 * workload, all runs of the other are compared with it. fl_means_draw later sets the interval's ends. */
fl_status fl_means_add_paired(fl_means *m, const double *a, const double *b, size_t workloads, size_t seeds, double tie,
                              fl_paired *out, fl_diag *d);

typedef struct fl_rank_result {
    fl_interval rank; /* mean over the workloads where all policies have a value */
    size_t firsts;    /* workloads where the policy ranks first, alone or tied */
} fl_rank_result;

/* value: policies x workloads x seeds, larger is better; out: one per policy. Each draw takes the same runs of all
 * policies. */
fl_status fl_bootstrap_ranks(const double *value, size_t policies, size_t workloads, size_t seeds,
                             const fl_bootstrap *b, fl_rank_result *out, fl_diag *d);

/* The program's allocations: it notes each that fails (traces/io/io.h). The linker redirects the allocations of our
 * own code here (--wrap, CMakeLists.txt), in the program alone. cJSON silently drops a key for which it finds no
 * memory, so it allocates here too. */

/* Call it once, before a second thread starts or cJSON allocates. */
void fl_memory_watch(void);

/* For commands and what only they use: where memory runs out, these functions end the program at once, with one line
 * on standard error and FL_EXIT_SYSTEM. Any thread may call them. Unfinished outputs vanish as on a signal
 * (traces/io/io.h), and nothing that waits in a stream is written. Modules that a live host or a library calls return
 * FL_NO_MEMORY instead. */

_Noreturn void fl_memory_end(void);
/* Returns what an allocation returned; NULL ends the program. */
void *fl_must(void *memory) __attribute__((returns_nonnull));
/* Ends the program unless `had`: for calls that report a lack of memory in another way than by NULL. */
void fl_must_have(bool had);
/* fl_grow, which cannot fail here. */
void fl_must_grow(void *items, size_t *room, size_t need, size_t size);
/* Returns a printed text, which the caller frees. */
char *fl_must_print(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* Threads for work on many items. Each item is a sequence of stages, and each stage has independent jobs. A stage
 * begins when the one before it is complete. Only a limited number of items are in progress at once, which bounds the
 * memory they need. Results are stored by index, so the number of threads does not affect the result. */

#define FL_TURNS_OVER SIZE_MAX

typedef struct fl_turns {
    /* The number of jobs of a stage, may be 0; FL_TURNS_OVER: the item is complete. Called once for each stage, one
     * call at a time. */
    size_t (*jobs)(void *user, size_t item, size_t stage);
    fl_status (*run)(void *user, size_t item, size_t stage, size_t job, fl_diag *d);
    void *user;
    size_t items, at_once; /* at_once: items in progress at the same time; at least 1 */
} fl_turns;

/* threads: 0 = as many as the machine has. Of several failures, the diagnostic is that of the first item's first
 * stage's first job; work after it may not have run. */
fl_status fl_turns_run(const fl_turns *t, unsigned threads, fl_diag *d);

/* ---- hashes ---- */

enum { FL_SHA256_TEXT = 65 }; /* 64 hexadecimal digits, and a NUL */

typedef struct fl_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} fl_sha256;

void fl_sha256_begin(fl_sha256 *s);
void fl_sha256_add(fl_sha256 *s, const void *bytes, size_t size);
/* Write the hash of all that was added, in hexadecimal. Return text. */
char *fl_sha256_end(fl_sha256 *s, char text[FL_SHA256_TEXT]);
char *fl_sha256_of(const void *bytes, size_t size, char text[FL_SHA256_TEXT]);
