#include "harness/bench/bench.h"

#include "traces/cache.h"
#include "traces/kernels.h"
#include "traces/readers.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KINDS = 512 };

static uint64_t next_bits(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- CSV and cache ---- */

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
        uint64_t r = next_bits(&state);
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

/* libcsv with callbacks that do nothing: what splitting into fields costs at least. */
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

static void keep_best(double *best, double start) {
    double took = fl_bench_seconds() - start;
    *best = took < *best ? took : *best;
}

static fl_status from_cache(const char *path, const char *cache, bool settled, const fl_imported *x, int64_t repeat,
                            double *best, fl_diag *d) {
    fl_cache_key key;
    if (!fl_cache_key_make(path, "foldline-kernels", NULL, &key))
        return fl_fail(d, FL_IO, path, 0, 0, "cannot be read");
    key.stamp.settled = settled;
    for (int64_t r = 0; r < repeat; r++) {
        fl_imported y;
        if (!fl_cache_save(cache, &key, x, 0600)) /* anew, as a load leaves a better stamp behind */
            return fl_fail(d, FL_IO, cache, 0, 0, "cannot be written");
        double start = fl_bench_seconds();
        if (!fl_cache_load(cache, path, "foldline-kernels", NULL, &y))
            return fl_fail(d, FL_IO, cache, 0, 0, "does not hold");
        keep_best(best, start);
        fl_imported_free(&y);
    }
    unlink(cache);
    return FL_OK;
}

static fl_status load_rows(const char *path, const char *cache, uint64_t rows, int64_t repeat, fl_bench_show show,
                           void *user, fl_diag *d) {
    double bare = HUGE_VAL, csv = HUGE_VAL, still = HUGE_VAL, hashed = HUGE_VAL;
    fl_imported x = {.has_kernels = true};
    fl_status s = write_csv(path, rows, d);
    for (int64_t r = 0; r < repeat && !s; r++) {
        double start = fl_bench_seconds();
        s = tokenise(path, d);
        keep_best(&bare, start);
        fl_kernel_trace_free(&x.kernels);
        start = fl_bench_seconds();
        if (!s)
            s = fl_kernels_read(path, &x.kernels, d);
        keep_best(&csv, start);
    }
    if (!s)
        s = from_cache(path, cache, true, &x, repeat, &still, d);
    if (!s)
        s = from_cache(path, cache, false, &x, repeat, &hashed, d);
    fl_imported_free(&x);
    unlink(path);
    if (s)
        return s;
    double n = (double)rows;
    show(user, "CSV kernel rows, only split by libcsv", n / bare / 1e6, "M rows/s", 1, "ceiling");
    show(user, "CSV kernel rows to records", n / csv / 1e6, "M rows/s", bare / csv, "of libcsv alone");
    show(user, "the same from the cache", n / still / 1e6, "M rows/s", csv / still, "times the CSV");
    show(user, "and with the source hashed again", n / hashed / 1e6, "M rows/s", csv / hashed, "times the CSV");
    return FL_OK;
}

/* ---- the profiler's JSON ---- */

/* Writes events into the pipe, ends the process. Launches before kernels, a tenth of the kernels out of order, as the
 * profiler's files have them. */
static void generate(const char *path, uint64_t bytes) {
    FILE *f = fopen(path, "wb");
    uint64_t state = 1, now = 1712867402348289000u, done = 0;
    if (!f)
        _exit(1);
    fputs("{\"schemaVersion\": 1, \"traceEvents\": [\n", f);
    for (uint64_t i = 1; done < bytes; i++) {
        uint64_t r = next_bits(&state), dur = 1000 + (r >> 50), early = i % 10 ? 0 : 20000;
        int n = fprintf(
            f,
            "%s  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 3727853, "
            "\"tid\": "
            "3727853,\n    \"ts\": %llu.%03u, \"dur\": 4.5,\n    \"args\": {\n      \"External id\": %llu, \"cbid\": "
            "211, "
            "\"correlation\": %llu\n    }\n  },\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
            "kernel_%u<float, 4>(float*)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": %llu.%03u, \"dur\": %llu.%03u,\n    "
            "\"args\": {\n      \"External id\": %llu, \"queued\": 0, \"device\": 0, \"context\": 1,\n      "
            "\"stream\": %d, "
            "\"correlation\": %llu, \"registers per thread\": 122,\n      \"shared memory\": 12544, \"grid\": [%u, 16, "
            "5], "
            "\"block\": [128, 1, 1],\n      \"est. achieved occupancy %%\": 25\n    }\n  }",
            i > 1 ? ",\n" : "", (unsigned long long)(now / 1000 - 40), (unsigned)(now % 1000), (unsigned long long)i,
            (unsigned long long)i, (unsigned)(r >> 20) % KINDS, (unsigned long long)((now - early) / 1000),
            (unsigned)((now - early) % 1000), (unsigned long long)(dur / 1000), (unsigned)(dur % 1000),
            (unsigned long long)i, early ? 13 : 7, (unsigned long long)i, 1 + (unsigned)(r >> 20) % KINDS);
        if (n < 0)
            _exit(1);
        done += (uint64_t)n;
        now += dur + 700;
    }
    fputs("\n]}\n", f);
    _exit(fclose(f) == 0 ? 0 : 1);
}

/* A line of /proc/self/status in bytes; 0 where there is none. */
static uint64_t memory(const char *key) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
            kib = strtoull(line + strlen(key) + 1, NULL, 10);
    if (f)
        fclose(f);
    return (uint64_t)kib * 1024;
}

typedef struct outcome {
    uint64_t ops, records, extra; /* records: bytes of the trace itself */
    double took;
    fl_diag d;
} outcome;

/* In a process of its own, whose peak begins where it stands. */
static void measure(const char *path, int to) {
    outcome o = {0};
    fl_imported x;
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f); /* forgets the peak */
        fclose(f);
    }
    uint64_t before = memory("VmRSS");
    double start = fl_bench_seconds();
    if (!fl_reader_kineto.read(path, NULL, &x, &o.d)) {
        const fl_kernel_trace *t = &x.kernels;
        uint64_t peak = memory("VmHWM");
        o.took = fl_bench_seconds() - start;
        o.ops = t->op_count;
        o.records = t->op_count * sizeof *t->ops + t->kind_count * sizeof *t->kinds + t->wait_count * sizeof *t->waits;
        for (size_t i = 0; i < t->name_count; i++)
            o.records += strlen(t->names[i]) + 1 + sizeof *t->names;
        o.extra = peak > before + o.records ? peak - before - o.records : 0;
    }
    _exit(write(to, &o, sizeof o) == (ssize_t)sizeof o ? 0 : 1);
}

static fl_status load_json(const char *path, uint64_t bytes, fl_bench_show show, void *user, fl_diag *d) {
    outcome o = {0};
    int ends[2];
    if (mkfifo(path, 0600) != 0 || pipe(ends) != 0)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot make a pipe: %s", fl_reason(errno));
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0)
        generate(path, bytes);
    pid_t reader = writer > 0 ? fork() : -1;
    if (reader == 0)
        measure(path, ends[1]);
    close(ends[1]);
    ssize_t got = reader > 0 ? read(ends[0], &o, sizeof o) : -1;
    close(ends[0]);
    if (reader > 0)
        waitpid(reader, NULL, 0);
    else if (writer > 0) { /* nobody will read: let it go */
        FILE *f = fopen(path, "rb");
        if (f)
            fclose(f);
    }
    if (writer > 0)
        waitpid(writer, NULL, 0);
    unlink(path);
    if (got != (ssize_t)sizeof o)
        return fl_error(d, FL_IO, "the process that reads the JSON failed");
    if (o.d.status) {
        if (d)
            *d = o.d;
        return o.d.status;
    }
    char what[80];
    double n = (double)bytes, extra = (double)o.extra;
    snprintf(what, sizeof what, "Kineto JSON of %.0f MB, streamed", n / 1e6);
    show(user, what, n / o.took / 1e6, "MB/s", (double)o.ops / o.took / 1e6, "M kernels/s");
    show(user, "and its memory beyond the records", extra / 1e6, "MB", extra / 64e6, "of 64 MB");
    return FL_OK;
}

fl_status fl_bench_load(const char *folder, uint64_t rows, int64_t repeat, uint64_t json_bytes, fl_bench_show show,
                        void *user, fl_diag *d) {
    char path[512], cache[540];
    snprintf(path, sizeof path, "%s/kernels.csv", folder);
    snprintf(cache, sizeof cache, "%s" FL_CACHE_SUFFIX, path);
    fl_status s = load_rows(path, cache, rows, repeat, show, user, d);
    unlink(path);
    unlink(cache);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    return s ? s : load_json(path, json_bytes, show, user, d);
}
