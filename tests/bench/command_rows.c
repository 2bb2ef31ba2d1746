/* Rows about whole commands, as a user waits for them. Each command is a separate process, timed in processor time. */
#include "tests/bench/folder.h"
#include "tests/bench/process.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs a command in each round, and puts its processor time x scale into a row. A command that ends before
 * FL_BENCH_ROUND_S repeats until then, and its least time counts: other programs that disturb the caches only make the
 * other runs longer. */
static fl_status timed(fl_bench *b, const char *key, const char *const *argv, double scale, int64_t rounds,
                       fl_diag *d) {
    fl_status s = FL_OK;
    for (int64_t r = 0; !s && r < rounds; r++) {
        double least = INFINITY;
        for (double took = 0; !s && took < FL_BENCH_ROUND_S;) {
            fl_bench_cost cost;
            if (!(s = fl_bench_process(b, argv, &cost, d))) {
                least = fmin(least, cost.cpu_s);
                took += fmax(cost.cpu_s, 1e-4);
            }
        }
        if (!s)
            fl_bench_take(b, key, scale * least)->brief = least < FL_BENCH_ROUND_S / 2;
    }
    return s;
}

static fl_status small_run(fl_bench *b, fl_diag *d) {
    char path[512];
    fl_bench_cost cost;
    fl_status s = fl_bench_file(b, "s.csv", NULL, path, d);
    const char *const make[] = {"synth", "-o", path, "--kernels", "1000", NULL}, *const run[] = {
                                                                                     "run",        path,
                                                                                     "--platform", "generic",
                                                                                     "--policy",   "utilizscale",
                                                                                     NULL};
    if (!s && !(s = fl_bench_process(b, make, &cost, d)))
        s = timed(b, "command.run", run, 1e3, b->repeat, d);
    fl_bench_folder_clear();
    return s;
}

/* ---- many rows ---- */

/* The index of the column `name` in the header. */
static size_t column(const char *header, const char *name) {
    size_t at = 0;
    for (const char *p = header; p; p = strchr(p, ','), p = p ? p + 1 : NULL, at++)
        if (!strncmp(p, name, strlen(name)) && strchr(",\r\n", p[strlen(name)]))
            return at;
    return SIZE_MAX;
}

static char *field(char *row, size_t index) {
    bool quoted = false;
    for (; index && *row; row++) {
        quoted ^= *row == '"';
        index -= *row == ',' && !quoted;
    }
    return row;
}

/* Makes the result of a sweep with `rows` rows: it repeats those of a small one, each time with further seeds. */
static fl_status multiply(const char *from, const char *to, size_t rows, fl_diag *d) {
    size_t room = 0, header = 0, written = 0;
    char *line = NULL;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    fl_status s = in && out ? FL_OK : fl_fail(d, FL_IO, from, 0, 0, "cannot be copied");
    for (long copy = 0; !s && written < rows; copy++) {
        rewind(in);
        if (getline(&line, &room, in) < 0 || (!copy && fputs(line, out) < 0) ||
            (header = column(line, "seed")) == SIZE_MAX)
            s = fl_fail(d, FL_IO, from, 0, 0, "has no rows");
        while (!s && written < rows && getline(&line, &room, in) >= 0) {
            char *seed = field(line, header), *end;
            const long value = strtol(seed, &end, 10);
            written++;
            if (fprintf(out, "%.*s%ld%s", (int)(seed - line), line, value + 100 * copy, end) < 0)
                s = fl_fail(d, FL_IO, to, 0, 0, "cannot be written");
        }
    }
    free(line);
    if (in)
        fclose(in);
    if (out && fclose(out) && !s)
        s = fl_fail(d, FL_IO, to, 0, 0, "cannot be written");
    return s;
}

static fl_status many_rows(fl_bench *b, fl_diag *d) {
    char k[512], p[512], e[512], r[512], many[512], html[512], png[512];
    fl_bench_cost cost;
    fl_status s = fl_bench_file(b, "k.csv",
                                "# foldline-kinds 1\n# source: made up\n"
                                "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                                "compute,1,0.4,0,inf,0.8,0.3,1,1500,1000\nmemory,0.4,1,0,inf,0.4,0.8,1,1500,1000\n",
                                k, d);
    if (!s)
        s = fl_bench_file(b, "p.csv",
                          "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"
                          "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
                          "a,1,2,compute,1,500,0.2,10,0\nb,1,2,memory,1,500,0.2,10,0\n",
                          p, d);
    if (!s)
        s = fl_bench_file(b, "e.json",
                          "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"programs\": \"p.csv\", "
                          "\"seeds\": 100, \"oracles\": false, \"policies\": [{\"policy\": \"epsilon-greedy\", "
                          "\"set\": {\"epsilon\": {\"from\": 0, \"to\": 1, \"count\": 5}, \"interval_ms\": 10}}]}",
                          e, d);
    if (s || (s = fl_bench_file(b, "r.csv", NULL, r, d)) || (s = fl_bench_file(b, "many.csv", NULL, many, d)) ||
        (s = fl_bench_file(b, "many.html", NULL, html, d)) || (s = fl_bench_file(b, "many.png", NULL, png, d)))
        return s;
    const char *const sweep[] = {"grid", e, "-o", r, NULL}, *const report[] = {"report", many, "-o", html, NULL},
                      *const plot[] = {"plot", "pareto", many, "-o", png, NULL};
    if (!(s = fl_bench_process(b, sweep, &cost, d)))
        s = multiply(r, many, 100000, d);
    const int64_t rounds = b->repeat < 2 ? b->repeat : 2;
    if (!s && fl_bench_wants(b, "command.report"))
        s = timed(b, "command.report", report, 1, rounds, d);
    if (!s && fl_bench_wants(b, "command.plot"))
        s = timed(b, "command.plot", plot, 1, rounds, d);
    fl_bench_folder_clear();
    return s;
}

static fl_status one_oracle(fl_bench *b, fl_diag *d) {
    char path[512];
    fl_bench_cost cost;
    fl_status s = fl_bench_file(b, "apps.csv", NULL, path, d);
    const char *const make[] = {"synth", "--apps", "57", "-o", path, NULL}, *const oracle[] = {
                                                                                "compare",   path,         "--workload",
                                                                                "GR_1536",   "--platform", "rtx3080ti",
                                                                                "--threads", "1",          NULL};
    if (!s && !(s = fl_bench_process(b, make, &cost, d)))
        s = timed(b, "command.oracle", oracle, 1, b->repeat < 2 ? b->repeat : 2, d);
    fl_bench_folder_clear();
    return s;
}

/* Runs once, because it takes minutes. */
static fl_status compare_all(fl_bench *b, fl_diag *d) {
    fl_bench_cost cost;
    if (access("harness/experiments/mf-gpoeo.json", R_OK) != 0)
        return fl_error(d, FL_IO,
                        "command.compare needs harness/experiments/mf-gpoeo.json: start it in the source tree");
    const char *const compare[] = {"compare", "harness/experiments/mf-gpoeo.json", "--threads", "2", NULL};
    const fl_status s = fl_bench_process(b, compare, &cost, d);
    if (!s) {
        fl_bench_take(b, "command.compare", cost.wall_s);
        fl_bench_take(b, "command.compare_mb", cost.peak_mb);
    }
    return s;
}

fl_status fl_bench_commands(fl_bench *b, fl_diag *d) {
    fl_status s = FL_OK;
    fl_bench_shrink(b);
    if (fl_bench_wants(b, "command.run"))
        s = small_run(b, d);
    if (!s && fl_bench_wants(b, "command.oracle"))
        s = one_oracle(b, d);
    if (!s && (fl_bench_wants(b, "command.report") || fl_bench_wants(b, "command.plot")))
        s = many_rows(b, d);
    if (!s && b->thorough && (fl_bench_wants(b, "command.compare") || fl_bench_wants(b, "command.compare_mb")))
        s = compare_all(b, d);
    return s;
}
