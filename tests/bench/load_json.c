/* Rows about a profiler's JSON and the memory that reading it takes. A process makes the JSON up and writes it into
 * a pipe. */
#include "tests/bench/folder.h"
#include "tests/bench/process.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KINDS = 512 };

/* Writes events into the pipe and ends the process. As in the profiler's files, launches come before kernels, and a
 * tenth of the kernels is out of order. */
static void generate(const char *path, uint64_t bytes) {
    FILE *f = fopen(path, "wb");
    uint64_t state = 1, now = 1712867402348289000u, done = 0;
    if (!f)
        _exit(1);
    fputs("{\"schemaVersion\": 1, \"traceEvents\": [\n", f);
    for (uint64_t i = 1; done < bytes; i++) {
        uint64_t r = fl_bench_bits(&state), dur = 1000 + (r >> 50), early = i % 10 ? 0 : 20000;
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

/* A line of /proc/self/status in bytes; 0 if there is none. */
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

/* Runs in a separate process, whose peak starts from its present memory. */
static void measure(const char *path, int to) {
    outcome o = {0};
    fl_imported x;
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f); /* resets the peak */
        fclose(f);
    }
    uint64_t before = memory("VmRSS");
    double start = fl_bench_seconds();
    if (!fl_reader_read(&fl_reader_kineto, path, NULL, &x, &o.d)) {
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

static fl_status load(fl_bench *b, const char *path, uint64_t bytes, fl_diag *d) {
    outcome o = {0};
    int ends[2];
    fl_bench_shrink(b); /* otherwise the process would reuse what earlier rows have freed, and no growth would show */
    if (mkfifo(path, 0600) != 0 || pipe(ends) != 0)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot make a pipe: %s", fl_reason(errno));
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0) {
        fl_bench_folder_leave();
        generate(path, bytes);
    }
    pid_t reader = writer > 0 ? fork() : -1;
    if (reader == 0) {
        fl_bench_folder_leave();
        measure(path, ends[1]);
    }
    close(ends[1]);
    ssize_t got = reader > 0 ? read(ends[0], &o, sizeof o) : -1;
    close(ends[0]);
    if (reader > 0)
        waitpid(reader, NULL, 0);
    else if (writer > 0) { /* nobody will read, so the writer must not wait */
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
    fl_bench_take(b, "load.json", (double)bytes / o.took / 1e6)->per_second = (double)o.ops / o.took;
    fl_bench_take(b, "load.json_mb", (double)o.extra / 1e6);
    return FL_OK;
}

fl_status fl_bench_load_json(fl_bench *b, fl_diag *d) {
    char path[512];
    const uint64_t bytes = (uint64_t)((b->thorough ? 1e9 : 1.5e8) * fmin(1, (double)b->kernels / 10e6));
    if (!fl_bench_wants(b, "load.json") && !fl_bench_wants(b, "load.json_mb"))
        return FL_OK;
    fl_status s = fl_bench_file(b, "trace.json", NULL, path, d);
    for (int64_t r = 0; !s && r < (b->repeat < 2 ? b->repeat : 2); r++)
        s = load(b, path, bytes, d);
    return s;
}
