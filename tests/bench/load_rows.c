/* Rows about loading: reading a CSV compared with splitting the same file into fields, the cache compared with the
 * CSV, and the whole cost of a run from the cache. */
#include "tests/bench/folder.h"
#include "tests/bench/process.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/inside.h"
#include "traces/open/open.h"

#include <csv.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 512 };

static fl_status write_csv(const char *path, uint64_t rows, fl_diag *d) {
    fl_kernel_trace t = {0};
    uint64_t state = 1;
    int64_t now = 1000000000;
    fl_status s = FL_OK;
    for (uint32_t i = 0; i < KINDS && !s; i++) {
        const uint32_t grid[3] = {1 + i % 100, 1, 1}, block[3] = {256, 1, 1};
        char name[64];
        snprintf(name, sizeof name, "volta_sgemm_128x%u_nn_splitK", i);
        if (fl_trace_add_kind(&t, name, grid, block) == UINT32_MAX)
            s = fl_no_memory(d, NULL);
    }
    for (uint64_t i = 0; i < rows && !s; i++) {
        uint64_t r = fl_bench_bits(&state);
        fl_trace_op op = {.start_ns = now,
                          .end_ns = now + 1000 + (int64_t)(r >> 47),
                          .launch_ns = now - 4000 - (int64_t)(r & 1023),
                          .bytes = -1,
                          .kind = (uint32_t)(r >> 20) % KINDS,
                          .stream = 7,
                          .host_thread = 1};
        now = op.end_ns + 500;
        if (fl_trace_add_op(&t, &op))
            s = fl_no_memory(d, NULL);
    }
    if (!s)
        s = fl_kernels_write(path, &t, d);
    fl_kernel_trace_free(&t);
    return s;
}

static void count_field(void *text, size_t size, void *user) {
    (void)text;
    *(uint64_t *)user += size > 0;
}

static void count_row(int end, void *user) {
    (void)end;
    (void)user;
}

/* Runs libcsv with callbacks that do nothing: the least that splitting into fields costs. */
static fl_status tokenise(const char *path, fl_diag *d) {
    enum { CHUNK = 256 << 10 };
    struct csv_parser p;
    uint64_t fields = 0;
    FILE *f = fopen(path, "rb");
    char *chunk = malloc(CHUNK);
    if (!f || !chunk || csv_init(&p, CSV_STRICT) != 0) {
        if (f)
            fclose(f);
        free(chunk);
        return fl_fail(d, FL_IO, path, 0, 0, "cannot be read");
    }
    for (size_t got; (got = fread(chunk, 1, CHUNK, f)) > 0;)
        csv_parse(&p, chunk, got, count_field, count_row, &fields);
    csv_fini(&p, count_field, count_row, &fields);
    csv_free(&p);
    free(chunk);
    fclose(f);
    return FL_OK;
}

/* Seconds of one load from the cache. settled: the loader trusts the source's stamp, otherwise it hashes the source
 * again. */
static fl_status from_cache(const char *path, const char *cache, bool settled, const fl_imported *x, double *took,
                            fl_diag *d) {
    fl_cache_key key;
    if (!fl_cache_key_make(path, "foldline-kernels", NULL, &key))
        return fl_fail(d, FL_IO, path, 0, 0, "cannot be read");
    key.stamp.settled = settled;
    fl_imported y;
    if (!fl_cache_save(cache, &key, x, 0600)) /* save again, because a load leaves a better stamp behind */
        return fl_fail(d, FL_IO, cache, 0, 0, "cannot be written");
    const double start = fl_bench_cpu_seconds();
    const bool held = fl_cache_load(cache, path, "foldline-kernels", NULL, &y);
    *took = fl_bench_cpu_seconds() - start;
    if (held)
        fl_imported_free(&y);
    unlink(cache);
    return held ? FL_OK : fl_fail(d, FL_IO, cache, 0, 0, "does not hold");
}

static fl_status one_round(fl_bench *b, const char *path, const char *cache, uint64_t rows, fl_diag *d) {
    fl_imported x = {.has_kernels = true};
    double still = 1, hashed = 1, start = fl_bench_cpu_seconds();
    fl_status s = tokenise(path, d);
    const double bare = fl_bench_cpu_seconds() - start;
    start = fl_bench_cpu_seconds();
    if (!s)
        s = fl_kernels_read(path, &x.kernels, NULL, d);
    const double csv = fl_bench_cpu_seconds() - start;
    if (!s)
        s = from_cache(path, cache, true, &x, &still, d);
    if (!s)
        s = from_cache(path, cache, false, &x, &hashed, d);
    if (!s) {
        fl_bench_take(b, "load.csv", bare / csv)->per_second = (double)rows / csv;
        fl_bench_take(b, "load.cache", csv / still)->per_second = (double)rows / still;
        fl_bench_take(b, "load.hashed", csv / hashed)->per_second = (double)rows / hashed;
    }
    fl_imported_free(&x);
    return s;
}

/* Calls `run` as a user does, twice: the first run leaves a cache behind. The cost of loading is the time of the
 * second run, less that of a small run and of simulating (which "one.utilizscale" measures). */
static fl_status whole_run(fl_bench *b, uint64_t kernels, fl_diag *d) {
    enum { SMALL = 1000 };
    char big[512], small[512], count[32];
    fl_bench_cost little, much;
    fl_status s = fl_bench_file(b, "big.csv", NULL, big, d);
    if (!s)
        s = fl_bench_file(b, "small.csv", NULL, small, d);
    snprintf(count, sizeof count, "%llu", (unsigned long long)kernels);
    const char *const make_big[] = {"synth", "-o", big, "--kernels", count, "--mean-us", "50", "--kinds", "512", NULL},
                      *const make_small[] = {"synth", "-o", small, "--kernels", "1000", "--mean-us", "50", NULL},
                      *const run_big[] = {"run", big, "--platform", "generic", "--policy", "utilizscale", NULL},
                      *const run_small[] = {"run", small, "--platform", "generic", "--policy", "utilizscale", NULL};
    if (!s && !(s = fl_bench_process(b, make_big, &much, d)) && !(s = fl_bench_process(b, make_small, &little, d)) &&
        !(s = fl_bench_process(b, run_big, &much, d))) {
        /* A load hashes a source that changed in the last two seconds. The rows are about one that has not: the next
         * run finds that out, and those after it trust the stamp that it leaves. */
        nanosleep(&(struct timespec){.tv_sec = 2, .tv_nsec = 100000000}, NULL);
        s = fl_bench_process(b, run_big, &much, d);
    }
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        if ((s = fl_bench_process(b, run_small, &little, d)) || (s = fl_bench_process(b, run_big, &much, d)))
            break;
        const double n = (double)(kernels - SMALL), simulating = b->scan > 0 ? n / b->scan : 0;
        if (fl_bench_wants(b, "load.run_ns"))
            fl_bench_take(b, "load.run_ns", 1e9 * (much.cpu_s - little.cpu_s - simulating) / n);
        if (fl_bench_wants(b, "load.run_mb"))
            fl_bench_take(b, "load.run_mb", (much.peak_mb - little.peak_mb) / n * 1e6);
    }
    fl_bench_folder_clear();
    return s;
}

static bool any(const fl_bench *b, const char *const *key) {
    for (; *key; key++)
        if (fl_bench_wants(b, *key))
            return true;
    return false;
}

fl_status fl_bench_load(fl_bench *b, fl_diag *d) {
    static const char *const of_rows[] = {"load.csv", "load.cache", "load.hashed", NULL};
    static const char *const of_run[] = {"load.run_ns", "load.run_mb", NULL};
    const uint64_t most = b->thorough ? 10000000 : 1000000, rows = b->kernels < most ? b->kernels : most;
    char path[512], cache[540];
    fl_bench_shrink(b);
    fl_status s = fl_bench_file(b, "kernels.csv", NULL, path, d);
    snprintf(cache, sizeof cache, "%s" FL_CACHE_SUFFIX, path);
    if (!s && any(b, of_run))
        s = whole_run(b, rows, d);
    if (!s && any(b, of_rows)) {
        s = write_csv(path, rows, d);
        for (int64_t r = 0; !s && r < b->repeat; r++)
            s = one_round(b, path, cache, rows, d);
        unlink(path);
        unlink(cache);
    }
    return s ? s : fl_bench_load_json(b, d);
}
