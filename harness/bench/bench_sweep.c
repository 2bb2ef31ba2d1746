#include "harness/bench/bench.h"
#include "harness/study/sweep_run.h"
#include "traces/writing.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTHS = 3, FILES = 6 };

static const char kinds[] = "# foldline-kinds 1\n# source: made up\n"
                            "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                            "compute,1,0.4,0,inf,0.8,0.3,1,1500,1000\nmemory,0.4,1,0,inf,0.4,0.8,1,1500,1000\n";
/* Kernels of 0.5 ms, 10 s of each program: runs of half a millisecond, so that starting and recording a run counts too.
 */
static const char programs[] =
    "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"
    "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
    "a,1,10,compute,1,500,0.2,10,0\nb,1,10,memory,1,500,0.2,10,0\n";

static fl_status write_text(const char *path, const char *text, fl_diag *d) {
    FILE *f = fopen(path, "wb");
    bool bad = !f || fputs(text, f) < 0;
    if (f && fclose(f))
        bad = true;
    return bad ? fl_fail(d, FL_IO, path, 0, 0, "cannot be written") : FL_OK;
}

static fl_status sweep(const char *experiment, const char *out, int64_t threads, double *took, fl_diag *d) {
    fl_setup_options so = FL_SETUP_UNSET;
    fl_setup u = {0};
    fl_sweep_result r = {0};
    so.threads = threads;
    const double start = fl_bench_seconds();
    fl_status s = fl_texts_add(&so.rest, experiment, d);
    if (!s)
        s = fl_setup_open(&u, &so, d);
    if (!s)
        s = fl_sweep_run(&u, &(fl_sweep_options){.out = out}, &r, d);
    *took = fl_bench_seconds() - start;
    fl_sweep_result_free(&r);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return s;
}

fl_status fl_bench_sweep(const char *folder, size_t runs, int64_t repeat, fl_bench_show show, void *user, fl_diag *d) {
    static const char *const name[FILES] = {"k.csv", "p.csv", "e.json", "r.csv", "r.provenance.json", "r.csv.journal"};
    static const int64_t width[WIDTHS] = {1, 2, 4};
    double took[WIDTHS], best[WIDTHS] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double *ratio = malloc(WIDTHS * (size_t)repeat * sizeof *ratio); /* of each width, one after the other */
    char path[FILES][512], text[512], what[80];
    for (int i = 0; i < FILES; i++)
        if ((size_t)snprintf(path[i], sizeof path[i], "%s/%s", folder, name[i]) >= sizeof path[i])
            return fl_fail(d, FL_IO, folder, 0, 0, "too long a path for temporary files");
    const size_t seeds = runs / 2 / 5 ? runs / 2 / 5 : 1; /* 2 programs x 5 values x seeds */
    snprintf(text, sizeof text,
             "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"programs\": \"p.csv\", \"seeds\": %zu, "
             "\"oracles\": false, \"policies\": [{\"policy\": \"epsilon-greedy\", \"set\": {\"epsilon\": "
             "{\"from\": 0, \"to\": 1, \"count\": 5}, \"interval_ms\": 10}}]}",
             seeds);
    fl_status s = ratio ? write_text(path[0], kinds, d) : fl_no_memory(d, NULL);
    if (!s)
        s = write_text(path[1], programs, d);
    if (!s)
        s = write_text(path[2], text, d);
    for (int64_t r = 0; r < repeat; r++)
        for (int i = 0; i < WIDTHS && !s; i++) {
            s = sweep(path[2], path[3], width[i], &took[i], d);
            best[i] = fmin(best[i], took[i]);
            ratio[i * repeat + r] = took[0] / took[i];
        }
    for (int i = 0; i < FILES; i++)
        unlink(path[i]);
    for (int i = 1; i < WIDTHS && !s; i++) {
        snprintf(what, sizeof what, "sweep of %zu runs on %d threads", seeds * 2 * 5, (int)width[i]);
        gsl_sort(&ratio[i * repeat], 1, (size_t)repeat);
        show(user, what, (double)(seeds * 2 * 5) / best[i] / 1e3, "k runs/s",
             gsl_stats_median_from_sorted_data(&ratio[i * repeat], 1, (size_t)repeat), "times one thread");
    }
    free(ratio);
    return s;
}
