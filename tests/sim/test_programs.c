/* Programs files: what is read and refused, that they come back as written, and the kernel traces made of them. */
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <sys/resource.h>

#define HEAD "# foldline-programs 1\n# sm_mhz: 1000\n# mem_mhz: 800\n# cpu_mhz: 2000\n# kinds: k.csv\n"
#define COLUMNS "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv"
#define PLAIN "a,1,0.01,k,2,100,0,10,0\n"

static fl_programs read_text(const char *text) {
    fl_programs p;
    fl_diag d = {0};
    FL_CHECK(fl_programs_read(fl_temp_text("p.csv", text), &p, &d) == FL_OK, "%s", d.message);
    return p;
}

static void test_read(void) {
    fl_programs p = read_text(HEAD COLUMNS ",stream,grid_x,block_x,cycles\n"
                                           "a,1,2.5,k,3,100,0.1,10,0.2,0,64,128,4\n"
                                           "a,1,2.5,m,1,50,0,0,0,1,32,256,4\n"
                                           "a,2,1,k,1,7,0,0,0,0,64,128,4\n"
                                           "b,1,1,k,1,7,0,0,0,0,64,128,1\n");
    FL_CHECK(p.row_count == 4 && p.program_count == 2, "%zu rows, %zu programs", p.row_count, p.program_count);
    FL_CHECK(!strcmp(p.names[p.programs[1]], "b") && !strcmp(p.names[p.rows[1].kernel], "m"), "names");
    const fl_program_row *r = &p.rows[0];
    FL_CHECK(r->part_s == 2.5 && r->count == 3 && r->time_us == 100 && r->time_cv == 0.1 && r->gap_us == 10 &&
                 r->gap_cv == 0.2 && r->grid_x == 64 && r->block_x == 128 && r->cycles == 4 && p.rows[1].stream == 1,
             "cells");
    char one[512], two[512];
    fl_diag d = {0};
    snprintf(one, sizeof one, "%s", fl_temp_text("one.csv", ""));
    snprintf(two, sizeof two, "%s", fl_temp_text("two.csv", ""));
    fl_programs q;
    FL_CHECK(!fl_programs_write(one, &p, &d) && !fl_programs_read(one, &q, &d) && !fl_programs_write(two, &q, &d), "%s",
             d.message);
    FL_CHECK(q.row_count == 4 && !memcmp(&q.rows[2].part_s, &p.rows[2].part_s, sizeof(double)) &&
                 !strcmp(fl_head_get(&q.head, "kinds"), "k.csv"),
             "does not come back");
    fl_programs_free(&p);
    fl_programs_free(&q);
    p = read_text(HEAD COLUMNS "\n" PLAIN);
    FL_CHECK(p.rows[0].grid_x == 256 && p.rows[0].block_x == 256 && p.rows[0].cycles == 1 && !p.rows[0].stream,
             "standards");
    fl_programs_free(&p);
}

static void test_refusals(void) {
    static const struct {
        const char *rows, *expected;
        int line, column;
    } row[] = {
        {"", "no programs", 0, 0},
        {"a,2,1,k,1,1,0,0,0\n", "part 1", 7, 1},
        {PLAIN "a,3,1,k,1,1,0,0,0\n", "in order", 8, 1},
        {PLAIN "a,1,0.02,k,1,1,0,0,0\n", "part_s must be the same", 8, 1},
        {PLAIN "b,1,1,k,1,1,0,0,0\n" PLAIN, "stand together", 9, 1},
        {"a,1,0,k,1,1,0,0,0\n", "part_s", 7, 5},
        {"a,1,1,,1,1,0,0,0\n", "kernel is empty", 7, 7},
        {"a,1,1,k,0,1,0,0,0\n", "count", 7, 9},
        {"a,1,1,k,1,x,0,0,0\n", "time_us", 7, 11},
        {"a,1,1,k,1,1,-1,0,0\n", "time_cv", 7, 13},
        {"a,1,1,k,1,1,0,0\n", "fields", 7, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[1024];
        fl_programs p;
        fl_diag d = {0};
        snprintf(text, sizeof text, "%s%s\n%s", HEAD, COLUMNS, row[i].rows);
        fl_status s = fl_programs_read(fl_temp_text("p.csv", text), &p, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, row[i].expected) && (!row[i].line || d.line == row[i].line) &&
                     (!row[i].column || d.column == row[i].column),
                 "row %zu: %d at %lld:%lld: %s", i, s, (long long)d.line, (long long)d.column, d.message);
        FL_CHECK(!p.row_count && !p.names, "row %zu: half filled", i);
    }
}

static fl_kernel_trace make(const char *rows, double seconds, uint64_t seed) {
    char text[2048];
    fl_kernel_trace t;
    fl_diag d = {0};
    snprintf(text, sizeof text, "%s%s,stream,grid_x,block_x,cycles\n%s", HEAD, COLUMNS, rows);
    fl_programs p = read_text(text);
    FL_CHECK(fl_synth_program(&p, 0, seed, seconds, &t, &d) == FL_OK, "%s", d.message);
    fl_programs_free(&p);
    return t;
}

static int64_t end_of(const fl_kernel_trace *t) {
    int64_t end = 0;
    for (size_t i = 0; i < t->op_count; i++)
        end = t->ops[i].end_ns > end ? t->ops[i].end_ns : end;
    return end;
}

/* By hand: an iteration is 2 x (10 + 100) + (0 + 80) = 300 us; 10 ms hold 34 of them, the last one over the end. */
static void test_iterations(void) {
    fl_kernel_trace t = make("a,1,0.01,k,2,100,0,10,0,0,64,128,1\na,1,0.01,m,1,80,0,0,0,0,1,1,1\n", 0, 1);
    FL_CHECK(t.op_count == 34 * 3 && end_of(&t) == 34 * 300000, "%zu ops to %lld ns", t.op_count,
             (long long)end_of(&t));
    FL_CHECK(t.ops[0].start_ns == 10000 && t.ops[0].end_ns == 110000 && t.ops[2].start_ns == 220000 &&
                 t.ops[3].start_ns == 310000,
             "times");
    FL_CHECK(t.kind_count == 2 && t.kinds[0].grid[0] == 64 && t.kinds[0].block[0] == 128, "kinds");
    FL_CHECK(!strcmp(fl_head_get(&t.head, "sm_mhz"), "1000") && !strcmp(fl_head_get(&t.head, "cpu_mhz"), "2000"),
             "head");
    fl_kernel_trace_free(&t);
}

static void test_lengths(void) {
    static const struct {
        const char *rows;
        double seconds;
        int64_t end_ms;
        size_t ops;
    } row[] = {
        {"a,1,0.2,k,1,1000,0,0,0,0,1,1,1\na,2,0.1,m,1,1000,0,0,0,0,1,1,1\n", 0, 300, 300},
        {"a,1,0.2,k,1,1000,0,0,0,0,1,1,1\na,2,0.1,m,1,1000,0,0,0,0,1,1,1\n", 0.6, 600, 600},
        {"a,1,0.2,k,1,1000,0,0,0,0,1,1,5\na,2,0.1,m,1,1000,0,0,0,0,1,1,5\n", 0, 1500, 1500},
        {"a,1,0.2,k,1,1000,0,0,0,0,1,1,5\na,2,0.1,m,1,1000,0,0,0,0,1,1,5\n", 0.61, 600, 600}, /* two cycles */
        {"a,1,0.2,k,1,1000,0,0,0,0,1,1,5\na,2,0.1,m,1,1000,0,0,0,0,1,1,5\n", 0.01, 300, 300}, /* one at least */
        {"a,1,0.2,k,1,1000,0,0,0,0,1,1,1\na,1,0.2,m,1,500,0,0,0,3,1,1,1\n", 0, 200, 600},     /* two streams */
        {"a,1,0.1,k,1,1000,0,0,0,0,1,1,1\na,2,0.1,m,1,1000,0,0,0,3,1,1,1\n", 0, 200, 200},    /* one waits */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_kernel_trace t = make(row[i].rows, row[i].seconds, 1);
        FL_CHECK(end_of(&t) == row[i].end_ms * 1000000 && t.op_count == row[i].ops, "row %zu: %zu ops to %g ms", i,
                 t.op_count, (double)end_of(&t) * 1e-6);
        fl_kernel_trace_free(&t);
    }
    fl_kernel_trace t = make(row[6].rows, 0, 1);
    for (size_t i = 0; i < t.op_count; i++)
        FL_CHECK((t.ops[i].stream == 3) == (t.ops[i].start_ns >= 100000000), "part 2 began in part 1");
    fl_kernel_trace_free(&t);
}

static void test_spread(void) {
    fl_kernel_trace t = make("a,1,20,k,1,100,0.3,50,0.5,0,1,1,1\n", 0, 7), u;
    double sum[2] = {0}, sq[2] = {0};
    const double n = (double)t.op_count;
    for (size_t i = 0; i < t.op_count; i++) {
        const double v[2] = {(double)(t.ops[i].end_ns - t.ops[i].start_ns) * 1e-3,
                             (double)(t.ops[i].start_ns - (i ? t.ops[i - 1].end_ns : 0)) * 1e-3};
        for (int k = 0; k < 2; k++) {
            sum[k] += v[k];
            sq[k] += v[k] * v[k];
        }
    }
    for (int k = 0; k < 2; k++) {
        const double mean = sum[k] / n, cv = sqrt(sq[k] / n - mean * mean) / mean;
        FL_CHECK(fabs(mean / (k ? 50 : 100) - 1) < 0.01 && fabs(cv / (k ? 0.5 : 0.3) - 1) < 0.02, "%s: mean %g, cv %g",
                 k ? "gap" : "time", mean, cv);
    }
    u = make("a,1,20,k,1,100,0.3,50,0.5,0,1,1,1\n", 0, 7);
    FL_CHECK(u.op_count == t.op_count && !memcmp(u.ops, t.ops, t.op_count * sizeof *t.ops), "not the same twice");
    fl_kernel_trace_free(&u);
    u = make("a,1,20,k,1,100,0.3,50,0.5,0,1,1,1\n", 0, 8);
    FL_CHECK(u.ops[0].end_ns != t.ops[0].end_ns, "another seed, the same draw");
    fl_kernel_trace_free(&u);
    fl_kernel_trace_free(&t);
}

/* Refused before a kernel is made: by how many there would be by the means, and by how long it would take. */
static void test_too_large(void) {
    static const struct {
        const char *rows, *expected;
    } row[] = {
        {"a,1,10,k,1000000000,1,0,0,0,0,1,1,1\n", "more than 100000000 kernels"},
        {"a,1,10,k,1000,100,0,0,0,0,1,1,1\na,2,1,m,1000000000,1,0,0,0,0,1,1,1\n", "more than 100000000 kernels"},
        {"a,1,1000,k,1,0.5,0,0.1,0,0,1,1,1\n", "more than 100000000 kernels"},
        {"a,1,10,k,1,0.5,0,0.1,0,0,1,1,1000\n", "more than 100000000 kernels"},
        {"a,1,10,k,40000000,1,0,0,0,0,1,1,1\na,1,10,m,70000000,1,0,0,0,1,1,1,1\n", "more than 100000000 kernels"},
        {"a,1,1e7,k,1,1e9,0,0,0,0,1,1,1\n", "26 days"},
        {"a,1,1000,k,1,1e9,0,0,0,0,1,1,1000000\n", "26 days"},
        {"a,1,1,k,1,1e12,0,0,0,0,1,1,1\n", "25 hours"},
        {"a,1,1,k,1,1,0,1e12,0,0,1,1,1\n", "25 hours"},
        {"a,1,1,k,1000,8e10,0,0,0,0,1,1,1\n", "26 days"},
    };
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[1024];
        snprintf(text, sizeof text, HEAD COLUMNS ",stream,grid_x,block_x,cycles\n%s", row[i].rows);
        fl_programs p = read_text(text);
        fl_kernel_trace t;
        fl_diag d = {0};
        FL_CHECK(fl_synth_program(&p, 0, 1, 0, &t, &d) == FL_BAD_INPUT && strstr(d.message, row[i].expected) &&
                     !t.op_count,
                 "row %zu: %d, '%s'", i, d.status, d.message);
        fl_programs_free(&p);
    }
    getrusage(RUSAGE_SELF, &after);
    FL_CHECK(after.ru_maxrss - before.ru_maxrss < 100 << 10, "refused after %ld KiB",
             after.ru_maxrss - before.ru_maxrss);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("programs", {"read and written", test_read}, {"refusals", test_refusals}, {"iterations", test_iterations},
         {"parts, cycles, streams", test_lengths}, {"spread", test_spread}, {"too large", test_too_large},
         {"clean up", test_clean_up})
