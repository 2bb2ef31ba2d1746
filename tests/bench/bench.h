/* tests/bench: the simulator's own speed, row by row, each beside the goal that is set for it. A row is measured in
 * several rounds, in turn with the bare loop (bare_loop.h) and the other rows of its group, so that a slow moment of
 * the machine hits all of them; what counts is the median of the rounds, and half of their range is the noise. */
#pragma once

#include "tests/bench/bare_loop.h"
#include "harness/input/platform/platform.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <regex.h>
#include <stdbool.h>
#include <time.h>

typedef enum fl_bench_measure { /* what a row's value is, and so what of it may be compared with another run's */
                                FL_BENCH_RATIO, /* a ratio within one run; more is better */
                                FL_BENCH_RATE,  /* per second of this machine; more is better */
                                FL_BENCH_TIME,  /* on this machine; less is better */
                                FL_BENCH_MEMORY /* less is better */
} fl_bench_measure;

#define FL_BENCH_ROUND_S 0.02 /* a round lasts as long, where it can: what interrupts it then hardly shows */

typedef struct fl_bench_row { /* key: stable, for scripts; "" ends the table */
    const char *key, *what, *unit;
    fl_bench_measure measure;
    double goal; /* NAN: none is set */
} fl_bench_row;

extern const fl_bench_row fl_bench_rows[];

typedef struct fl_bench_result { /* of one row of the table */
    double *value;               /* count, one a round */
    size_t count, room;
    double step_ns;    /* the last round's, of one policy step; 0 = there are none */
    double per_second; /* kernels, of the best round; 0 = there are none */
    bool brief;        /* its rounds, or the command that they repeat, are over in half of FL_BENCH_ROUND_S */
} fl_bench_result;

typedef struct fl_bench {
    uint64_t kernels; /* of the trace on one stream; other rows take a share of them */
    int64_t repeat;   /* rounds */
    bool thorough;    /* rows that take minutes too */
    const regex_t *only;
    const char *program; /* foldline, for rows that measure a whole command as a process of its own */
    const char *folder;  /* for files; empty again afterwards */
    fl_platform platform;
    fl_facts facts;
    fl_bare_rec *rec; /* what the bare loop runs over */
    size_t rec_count;
    double bare;             /* kernels per second, of the best round */
    double scan;             /* of the last round of "one.utilizscale"; 0 = it was not measured */
    fl_bench_result *result; /* one for each row of the table */
} fl_bench;

/* Whether a row is asked for. */
bool fl_bench_wants(const fl_bench *b, const char *key);
/* A round's value of a row; the key is one of the table's. Without memory the round is lost. */
fl_bench_result *fl_bench_take(fl_bench *b, const char *key, double value);
/* The best of the bare loop's variants, now: kernels per second. */
double fl_bench_bare(fl_bench *b);

/* The groups of rows. Each does nothing where none of its rows is asked for. */
fl_status fl_bench_one_stream(fl_bench *b, fl_diag *d);
fl_status fl_bench_streams(fl_bench *b, fl_diag *d);
fl_status fl_bench_features(fl_bench *b, fl_diag *d);
fl_status fl_bench_grid(fl_bench *b, fl_diag *d);
fl_status fl_bench_draws(fl_bench *b, fl_diag *d);
fl_status fl_bench_serving(fl_bench *b, fl_diag *d);
fl_status fl_bench_pipeline(fl_bench *b, fl_diag *d);
fl_status fl_bench_threads(fl_bench *b, fl_diag *d);
fl_status fl_bench_load(fl_bench *b, fl_diag *d);
fl_status fl_bench_load_json(fl_bench *b, fl_diag *d); /* called by fl_bench_load */
fl_status fl_bench_commands(fl_bench *b, fl_diag *d);

static inline double fl_bench_seconds(void) { /* of the clock on the wall */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of this thread: what other programs take does not count, so it is steadier where one thread works. */
static inline double fl_bench_cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline uint64_t fl_bench_bits(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
