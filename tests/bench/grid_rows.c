/* Rows about many runs: a grid over one trace, a sweep from reading the experiment to the finished file, and two
 * threads. Work of two threads is timed in wall-clock time, because threads exist to shorten that. */
#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "sim/synth/synth.h"
#include "traces/io/io.h"
#include "tests/bench/case.h"
#include "tests/bench/folder.h"
#include "tests/bench/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char kinds[] = "# foldline-kinds 1\n# source: made up\n"
                            "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                            "compute,1,0.4,0,inf,0.8,0.3,1,1500,1000\nmemory,0.4,1,0,inf,0.4,0.8,1,1500,1000\n";
#define PROGRAMS_HEAD                                                                                                  \
    "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"                      \
    "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"

/* ---- runs without a file ---- */

static fl_status raw(fl_bench *b, fl_diag *d) {
    enum { CONFIGS = 20 };
    fl_node_spec node;
    fl_device dev;
    fl_bench_scene scene;
    const fl_synth_options o = fl_bench_trace(b->kernels);
    fl_bench_features_off(b, &node, &dev);
    fl_bench_case c = {.node = &node, .policy_name = "utilizscale", .period_ms = "1000"};
    fl_status s = fl_bench_scene_open(&scene, b, &o, d);
    for (int k = 0; !s && k < 4; k++) /* the first runs of a grid make the tables of sums */
        s = fl_bench_pass(b, &scene, &c, d);
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        const double start = fl_bench_cpu_seconds();
        for (int k = 0; !s && k < CONFIGS; k++)
            s = fl_bench_pass(b, &scene, &c, d);
        if (!s)
            fl_bench_take(b, "grid.raw", CONFIGS / (fl_bench_cpu_seconds() - start))->step_ns = c.step_ns;
    }
    fl_bench_scene_close(&scene);
    return s;
}

static fl_status many(void *user, size_t i, fl_diag *d) {
    (void)i;
    void *const *at = user;
    fl_bench_case c = *(const fl_bench_case *)at[2]; /* only this thread writes its results */
    return fl_bench_pass(at[0], at[1], &c, d);
}

fl_status fl_bench_threads(fl_bench *b, fl_diag *d) {
    enum { RUNS = 8 };
    if (!fl_bench_wants(b, "threads.2"))
        return FL_OK;
    fl_bench_case c = {.policy_name = "utilizscale", .period_ms = "10"};
    fl_bench_scene scene;
    const fl_synth_options o = fl_bench_trace(b->kernels);
    fl_status s = fl_bench_scene_open(&scene, b, &o, d);
    void *user[] = {b, &scene, &c};
    for (int64_t r = 0; !s && r < b->repeat; r++) { /* each run reads all of the trace, so memory limits them too */
        double took[2] = {0, 0};
        for (unsigned k = 0; !s && k < 2; k++) {
            const double start = fl_bench_seconds();
            s = fl_pool_run(many, user, RUNS, k + 1, NULL, d);
            took[k] = fl_bench_seconds() - start;
        }
        if (!s)
            fl_bench_take(b, "threads.2", took[0] / took[1])->per_second = RUNS * (double)scene.w->op_count / took[1];
    }
    fl_bench_scene_close(&scene);
    return s;
}

/* ---- sweeps ---- */

static fl_status sweep(const char *experiment, const char *out, int64_t threads, double *cpu, double *wall,
                       fl_diag *d) {
    fl_setup_options so = FL_SETUP_UNSET;
    fl_setup u = {0};
    fl_sweep_result r = {0};
    struct timespec from, to;
    so.threads = threads;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    const double start = fl_bench_seconds();
    fl_status s = fl_texts_add(&so.rest, experiment, d);
    if (!s)
        s = fl_setup_open(&u, &so, d);
    if (!s)
        s = fl_sweep_run(&u, &(fl_sweep_options){.out = out}, &r, d);
    *wall = fl_bench_seconds() - start;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    *cpu = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    fl_sweep_result_free(&r);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return s;
}

/* The files of a sweep in the folder: its inputs and its outputs. */
typedef struct files {
    char kinds[512], programs[512], experiment[512], out[512], record[512], journal[512];
} files;

static fl_status write_files(const fl_bench *b, const char *programs, files *f, fl_diag *d) {
    fl_status s = fl_bench_file(b, "k.csv", kinds, f->kinds, d);
    if (!s && !(s = fl_bench_file(b, "p.csv", programs, f->programs, d)) &&
        !(s = fl_bench_file(b, "e.json", NULL, f->experiment, d)) &&
        !(s = fl_bench_file(b, "r.csv", NULL, f->out, d)) &&
        !(s = fl_bench_file(b, "r.provenance.json", NULL, f->record, d)))
        s = fl_bench_file(b, "r.csv.journal", NULL, f->journal, d);
    return s;
}

/* Two sweeps over the same trace, of few and of many configurations, show what each further one costs. */
static fl_status long_runs(fl_bench *b, fl_diag *d) {
    enum { FEW = 20, MANY = 1020 };
    char programs[512], text[512];
    files f;
    snprintf(programs, sizeof programs, PROGRAMS_HEAD "a,1,%g,compute,1,50,0.2,2,0\n", 52e-6 * (double)b->kernels);
    fl_status s = write_files(b, programs, &f, d);
    for (int64_t r = 0; !s && r < (b->repeat > 1 ? 2 : 1); r++) { /* each sweep reads and builds the trace again */
        double cpu[2] = {0, 0}, wall;
        for (int k = 0; !s && k < 2; k++) {
            snprintf(text, sizeof text,
                     "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"programs\": \"p.csv\", \"oracles\": "
                     "false, \"policies\": [{\"policy\": \"utilizscale\", \"set\": {\"period_ms\": 1000, "
                     "\"lowest_mhz\": {\"from\": 0, \"to\": 1000, \"count\": %d}}}]}",
                     k ? MANY : FEW);
            if (!(s = fl_bench_file(b, "e.json", text, f.experiment, d)))
                s = sweep(f.experiment, f.out, 1, &cpu[k], &wall, d);
            unlink(f.journal);
        }
        if (!s)
            fl_bench_take(b, "grid.sweep", (MANY - FEW) / fmax(cpu[1] - cpu[0], 1e-9));
    }
    fl_bench_folder_clear();
    return s;
}

/* Kernels of 0.5 ms, 10 s of each program: runs of half a millisecond, so that starting and recording a run counts. */
static fl_status short_runs(fl_bench *b, fl_diag *d) {
    char text[512];
    files f;
    const int seeds = b->thorough ? 1000 : 200; /* 2 programs x 5 values x seeds */
    fl_status s = write_files(b, PROGRAMS_HEAD "a,1,10,compute,1,500,0.2,10,0\nb,1,10,memory,1,500,0.2,10,0\n", &f, d);
    snprintf(text, sizeof text,
             "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"programs\": \"p.csv\", \"seeds\": %d, "
             "\"oracles\": false, \"policies\": [{\"policy\": \"epsilon-greedy\", \"set\": {\"epsilon\": "
             "{\"from\": 0, \"to\": 1, \"count\": 5}, \"interval_ms\": 10}}]}",
             seeds);
    if (!s)
        s = fl_bench_file(b, "e.json", text, f.experiment, d);
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        double wall[2] = {0, 0}, cpu;
        for (int k = 0; !s && k < 2; k++)
            s = sweep(f.experiment, f.out, k + 1, &cpu, &wall[k], d);
        if (!s)
            fl_bench_take(b, "grid.short_2", wall[0] / wall[1]);
    }
    fl_bench_folder_clear();
    return s;
}

fl_status fl_bench_grid(fl_bench *b, fl_diag *d) {
    fl_status s = fl_bench_wants(b, "grid.raw") ? raw(b, d) : FL_OK;
    if (!s && fl_bench_wants(b, "grid.sweep"))
        s = long_runs(b, d);
    if (!s && fl_bench_wants(b, "grid.short_2"))
        s = short_runs(b, d);
    return s;
}
