/* Kernels of a program without chance, by hand: parts that end where they were to end, cycles, streams, and what a
 * length changes. Lengths in microseconds; test_programs.c holds what is drawn to its distribution. */
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/sim_fixture.h"

enum { PROGRAM_A, PROGRAM_B, K, SYNC_COPY, ITERATION, NAMES };

static char *names[NAMES] = {(char[]){"a"}, (char[]){"b"}, (char[]){"k"}, (char[]){"[CUDA memcpy HtoD]"},
                             (char[]){"[iteration]"}};

#define ROW(of, number, lasts_us, which, launches, gap, time, on, turns)                                               \
    {                                                                                                                  \
        .program = (of), .part = (number), .part_s = (lasts_us)*1e-6, .kernel = (which), .count = (launches),          \
        .gap_us = (gap), .time_us = (time), .stream = (on), .cycles = (turns), .grid_x = 64, .block_x = 128            \
    }

typedef struct made {
    uint32_t kernel; /* name */
    int32_t stream;
    int64_t from_ns, to_ns;
} made;

static void check(const char *what, fl_program_row *row, size_t rows, size_t index, double seconds, const made *want,
                  size_t count) {
    uint32_t programs[] = {PROGRAM_A, PROGRAM_B};
    const fl_programs p = {
        .names = names, .name_count = NAMES, .rows = row, .row_count = rows, .programs = programs, .program_count = 2};
    fl_kernel_trace t;
    FX_MUST(fl_synth_program(&p, index, 5, seconds, &t, d));
    FL_CHECK(t.op_count == count, "%s: %zu kernels, expected %zu", what, t.op_count, count);
    for (size_t i = 0; i < count && i < t.op_count; i++) {
        const fl_trace_op *op = &t.ops[i];
        const fl_trace_kind *kind = &t.kinds[op->kind];
        FL_CHECK(op->stream == want[i].stream && op->start_ns == want[i].from_ns && op->end_ns == want[i].to_ns,
                 "%s: kernel %zu on stream %d from %lld to %lld ns", what, i, op->stream, (long long)op->start_ns,
                 (long long)op->end_ns);
        FL_CHECK(!strcmp(t.names[kind->name], names[want[i].kernel]) && kind->grid[0] == 64 && kind->grid[1] == 1 &&
                     kind->grid[2] == 1 && kind->block[0] == 128 && kind->block[1] == 1 && kind->block[2] == 1,
                 "%s: kernel %zu is a %s", what, i, t.names[kind->name]);
        FL_CHECK(op->type == (want[i].kernel == SYNC_COPY   ? FL_OP_COPY
                              : want[i].kernel == ITERATION ? FL_OP_ITERATION
                                                            : FL_OP_KERNEL) &&
                     op->launch_ns == INT64_MIN && op->bytes == -1 && op->host_thread == -1 && op->device == 0 &&
                     op->process == 0,
                 "%s: kernel %zu: nothing else is said of it", what, i);
    }
    fl_kernel_trace_free(&t);
}

#define CHECK(what, index, seconds, row, ...)                                                                          \
    do {                                                                                                               \
        const made want_[] = {__VA_ARGS__};                                                                            \
        check(what, row, sizeof(row) / sizeof *(row), index, seconds, want_, sizeof want_ / sizeof *want_);            \
    } while (0)

/* The first part of program b lasts 10 us: turns of 4 us, three of them, to 12; the second, of 10 more, begins there.
 */
static void test_parts(void) {
    fl_program_row row[] = {ROW(PROGRAM_A, 1, 3, K, 1, 0, 2, 0, 1), ROW(PROGRAM_B, 1, 10, K, 1, 1, 2, 0, 1),
                            ROW(PROGRAM_B, 1, 10, SYNC_COPY, 1, 0, 1, 0, 1), ROW(PROGRAM_B, 2, 10, K, 2, 0, 3, 0, 1)};
    CHECK("a program by itself", 0, 0, row, {K, 0, 0, 2000}, {K, 0, 2000, 4000});
    CHECK("two parts", 1, 0, row, {K, 0, 1000, 3000}, {SYNC_COPY, 0, 3000, 4000}, {K, 0, 5000, 7000},
          {SYNC_COPY, 0, 7000, 8000}, {K, 0, 9000, 11000}, {SYNC_COPY, 0, 11000, 12000}, {K, 0, 12000, 15000},
          {K, 0, 15000, 18000}, {K, 0, 18000, 21000}, {K, 0, 21000, 24000});
    /* half as long: 5 us, two turns to 8; then to 10 */
    CHECK("half of them", 1, 10e-6, row, {K, 0, 1000, 3000}, {SYNC_COPY, 0, 3000, 4000}, {K, 0, 5000, 7000},
          {SYNC_COPY, 0, 7000, 8000}, {K, 0, 8000, 11000}, {K, 0, 11000, 14000});
}

/* A stream stands still through the parts in which it has nothing; a marker takes a ns. */
static void test_streams(void) {
    fl_program_row row[] = {ROW(PROGRAM_A, 1, 5, K, 1, 0, 4, 0, 1), ROW(PROGRAM_A, 1, 5, ITERATION, 1, 0, 0, 0, 1),
                            ROW(PROGRAM_A, 2, 5, K, 1, 0, 5, 3, 1), ROW(PROGRAM_A, 3, 2, K, 1, 0, 1, 0, 1)};
    CHECK("two streams", 0, 0, row, {K, 0, 0, 4000}, {ITERATION, 0, 4000, 4001}, {K, 0, 4001, 8001},
          {ITERATION, 0, 8001, 8002}, {K, 0, 10000, 11000}, {K, 0, 11000, 12000}, {K, 3, 5000, 10000});
}

/* Of several cycles a length takes fewer or more, one at least, and leaves each as it is. */
static void test_cycles(void) {
    fl_program_row row[] = {ROW(PROGRAM_A, 1, 4, K, 1, 0, 4, 0, 2), ROW(PROGRAM_A, 2, 6, SYNC_COPY, 1, 0, 6, 0, 2)};
    const made all[] = {{K, 0, 0, 4000},      {SYNC_COPY, 0, 4000, 10000},
                        {K, 0, 10000, 14000}, {SYNC_COPY, 0, 14000, 20000},
                        {K, 0, 20000, 24000}, {SYNC_COPY, 0, 24000, 30000}};
    static const struct {
        double seconds;
        size_t cycles;
    } rows[] = {{0, 2}, {20e-6, 2}, {1e-6, 1}, {10e-6, 1}, {14e-6, 1}, {16e-6, 2}, {30e-6, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check("cycles", row, 2, 0, rows[i].seconds, all, 2 * rows[i].cycles);
}

/* What the head of the programs says of clocks and source, the trace's says. */
static void test_head(void) {
    static const char *const keys[] = {"sm_mhz", "mem_mhz", "cpu_mhz", "source"};
    fl_program_row row[] = {ROW(PROGRAM_A, 1, 3, K, 1, 0, 2, 0, 1)};
    uint32_t programs[] = {PROGRAM_A};
    for (unsigned said = 0; said < 16; said += 5) {
        fl_programs p = {
            .names = names, .name_count = NAMES, .rows = row, .row_count = 1, .programs = programs, .program_count = 1};
        for (unsigned k = 0; k < 4; k++)
            if (said >> k & 1)
                CU_ASSERT_FATAL(fl_head_set(&p.head, keys[k], k == 3 ? "somewhere" : "700"));
        CU_ASSERT_FATAL(fl_head_set(&p.head, "kinds", "k.csv"));
        fl_kernel_trace t;
        FX_MUST(fl_synth_program(&p, 0, 5, 0, &t, d));
        for (unsigned k = 0; k < 4; k++) {
            const char *value = fl_head_get(&t.head, keys[k]);
            FL_CHECK(said >> k & 1 ? value && !strcmp(value, k == 3 ? "somewhere" : "700") : !value, "head %u: %s",
                     said, keys[k]);
        }
        FL_CHECK(!fl_head_get(&t.head, "kinds"), "kinds are not the trace's");
        fl_kernel_trace_free(&t);
        fl_head_free(&p.head);
    }
}

static fl_status count(void *user, const fl_trace_op *op, fl_diag *d) {
    (void)op;
    uint64_t *n = user;
    return ++*n == 3 ? fl_refuse(d, "enough") : FL_OK;
}

/* As many kernels as count takes; *n: how many came. */
static fl_status try(fl_program_row *row, size_t rows, double seconds, uint64_t *n, fl_diag *d) {
    uint32_t programs[] = {PROGRAM_A};
    const fl_programs p = {
        .names = names, .name_count = NAMES, .rows = row, .row_count = rows, .programs = programs, .program_count = 1};
    fl_kernel_trace t;
    double about;
    *n = 0;
    const fl_status s = fl_synth_program_each(&p, 0, 1, seconds, &t, &about, count, n, d);
    fl_kernel_trace_free(&t);
    return s;
}

/* 1e8 kernels by their means are the most, 26 days the longest, and who takes the kernels may end it. */
static void test_refused(void) {
    static const struct {
        double seconds;
        const char *says;
    } rows[] = {{187.6, "more than 100000000 kernels"},
                {2306000, "would take 2.306e+06 s, expected 26 days at most"},
                {187.4, "enough"},
                {1, "enough"}};
    fl_program_row row[] = {ROW(PROGRAM_A, 1, 1e6, K, 1, 1, 2, 0, 1), ROW(PROGRAM_A, 1, 1e6, K, 1, 1, 4, 9, 1),
                            ROW(PROGRAM_A, 1, 1e6, K, 1, 1, 4, 9, 1)};
    /* a third of a kernel in a us on one stream, a fifth on the other: 1e8 of them in 187.5 s */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_diag d = {0};
        uint64_t n;
        FL_CHECK(try(row, 3, rows[i].seconds, &n, &d) == FL_BAD_INPUT && strstr(d.message, rows[i].says) &&
                     n == (i < 2 ? 0 : 3),
                 "%g s: %d kernels, %s", rows[i].seconds, (int)n, d.message);
    }
}

/* How long a program would take follows from its own cycles, whatever stands behind it in its file: a program of one
 * row that lasts 1 s, once for each cycle. */
static void test_own_cycles(void) {
    static const struct {
        uint32_t own, next;
        double seconds;
        const char *says;
    } rows[] = {{1, 1000000, 2306000, "would take 2.306e+06 s, expected 26 days at most"},
                {1, 1000000, 1000, "enough"},
                {1000000, 1, 1000000, "enough"},
                {1000000, 1, 2306000, "would take 2.306e+06 s, expected 26 days at most"},
                {1, 1, 1000, "enough"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_program_row row[] = {ROW(PROGRAM_A, 1, 1e6, K, 1, 5e5, 5e5, 0, rows[i].own),
                                ROW(PROGRAM_B, 1, 1e6, K, 1, 5e5, 5e5, 0, rows[i].next)};
        fl_diag d = {0};
        uint64_t n;
        FL_CHECK(try(row, 2, rows[i].seconds, &n, &d) == FL_BAD_INPUT && strstr(d.message, rows[i].says),
                 "row %zu: %d kernels, %s", i, (int)n, d.message);
    }
}

/* Kernels are counted by part and cycle, stream by stream: a us each on the one, a s on the other. */
static void test_counted(void) {
    static const struct {
        double first_s, second_s;
        uint32_t cycles;
        bool fine;
    } rows[] = {{60, 39, 1, true}, {60, 41, 1, false}, {41, 60, 1, false}, {20, 13, 3, true}, {20, 13, 4, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_program_row row[] = {ROW(PROGRAM_A, 1, 1e6 * rows[i].first_s, K, 1, 0, 1, 0, rows[i].cycles),
                                ROW(PROGRAM_A, 1, 1e6 * rows[i].first_s, K, 1, 0, 1e6, 2, rows[i].cycles),
                                ROW(PROGRAM_A, 2, 1e6 * rows[i].second_s, K, 3, 0.25, 0.75, 0, rows[i].cycles)};
        fl_diag d = {0};
        uint64_t n;
        FL_CHECK(try(row, 3, 0, &n, &d) == FL_BAD_INPUT &&
                     strstr(d.message, rows[i].fine ? "enough" : "program 'a' would have more than 100000000 kernels"),
                 "row %zu: %s", i, d.message);
    }
}

/* A kernel, or the host time before it, of more than 25 hours says which it is. */
static void test_too_long(void) {
    static const struct {
        double gap_us, time_us;
        const char *says;
    } rows[] = {{2e6, 9.3e10, "program 'a': a kernel of 93000 s after 2 s, 4 s from its start"},
                {9.3e10, 2e6, "program 'a': a kernel of 2 s after 93000 s, 4 s from its start"},
                {8.9e10, 8.9e10, "enough"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_program_row row[] = {ROW(PROGRAM_A, 1, 1e6, K, 1, 0, 4e6, 0, 1),
                                ROW(PROGRAM_A, 1, 1e6, K, 1, rows[i].gap_us, rows[i].time_us, 0, 1),
                                ROW(PROGRAM_A, 1, 1e6, K, 1, 0, 4e6, 0, 1)};
        fl_diag d = {0};
        uint64_t n;
        FL_CHECK(try(row, 3, 0, &n, &d) == FL_BAD_INPUT && strstr(d.message, rows[i].says), "row %zu: %s", i,
                 d.message);
    }
}

FL_SUITE("synth_program", {"parts", test_parts}, {"streams", test_streams}, {"cycles", test_cycles},
         {"head", test_head}, {"refused", test_refused}, {"own cycles", test_own_cycles}, {"counted", test_counted},
         {"too long", test_too_long})
