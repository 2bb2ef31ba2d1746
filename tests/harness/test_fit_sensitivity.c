/* Frequency sensitivity and its regression on counters: exact planes come back, what the data cannot tell is said. */
#include "harness/fit/policy/inside.h"
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

static bool near(double a, double b, double by) { return fabs(a - b) <= by; }

static void test_definition(void) {
    static const struct {
        double low_mhz, low_s, high_mhz, high_s, sensitivity;
    } rows[] = {{400, 2, 800, 1, 1},       {400, 1, 800, 1, 0},      {400, 1.5, 800, 1, 0.5}, {1400, 3, 4200, 1, 1},
                {1400, 1.2, 4200, 1, 0.1}, {400, 0.9, 800, 1, -0.1}, {800, 1, 400, 1, NAN},   {400, 1, 400, 1, NAN},
                {0, 1, 400, 1, NAN},       {400, 0, 800, 1, NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double s = fl_sensitivity(rows[i].low_mhz, rows[i].low_s, rows[i].high_mhz, rows[i].high_s);
        FL_CHECK(isnan(rows[i].sensitivity) ? isnan(s) : near(s, rows[i].sensitivity, 1e-12), "row %zu: %g", i, s);
    }
}

enum { COUNT = 60, METRICS = 3 };

/* Rows of three metrics in the ranges that DynaCo's have; noise as a share of the spread of the sensitivity. */
static void draw(double *x, double *y, double noise, uint64_t seed) {
    fl_random r = fl_random_seed(seed, 0);
    for (int i = 0; i < COUNT; i++) {
        x[i * METRICS] = 100 * fl_random_unit(&r);
        x[i * METRICS + 1] = 80 * fl_random_unit(&r);
        x[i * METRICS + 2] = 1.5 * fl_random_unit(&r);
        y[i] = 0.2 + 0.008 * x[i * METRICS] - 0.004 * x[i * METRICS + 1] - 0.3 * x[i * METRICS + 2] +
               noise * fl_random_normal(&r);
    }
}

static void test_plane(void) {
    double x[COUNT * METRICS], y[COUNT];
    fl_sensitivity_fit f;
    draw(x, y, 0, 1);
    FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, METRICS, &f) == FL_MODEL_OK, "no fit");
    FL_CHECK(near(f.intercept, 0.2, 1e-9) && near(f.weight[0], 0.008, 1e-11) && near(f.weight[1], -0.004, 1e-11) &&
                 near(f.weight[2], -0.3, 1e-9),
             "%g + %g, %g, %g", f.intercept, f.weight[0], f.weight[1], f.weight[2]);
    FL_CHECK(near(f.multiple, 1, 1e-9) && f.rms < 1e-9 && f.rank == METRICS && f.condition < 2,
             "R %g, rms %g, rank %zu", f.multiple, f.rms, f.rank);
    FL_CHECK(f.correlation[0] > 0.5 && f.correlation[1] < 0 && f.correlation[2] < 0, "correlations %g %g %g",
             f.correlation[0], f.correlation[1], f.correlation[2]);
    for (int m = 0; m < METRICS; m++)
        FL_CHECK(f.inflation[m] >= 1 && f.inflation[m] < 1.3, "inflation %g", f.inflation[m]);
    const double at[METRICS] = {50, 20, 1};
    double sum = f.intercept;
    for (int m = 0; m < METRICS; m++)
        sum += f.weight[m] * at[m];
    FL_CHECK(near(sum, 0.2 + 0.4 - 0.08 - 0.3, 1e-9), "%g", sum);
}

/* Over many draws the weights scatter as their standard errors say, and about the truth. */
static void test_noise(void) {
    enum { DRAWS = 400 };
    static const double truth[METRICS] = {0.008, -0.004, -0.3};
    double x[COUNT * METRICS], y[COUNT], squares[METRICS] = {0};
    for (uint64_t k = 0; k < DRAWS; k++) {
        fl_sensitivity_fit f;
        draw(x, y, 0.1, k + 1);
        FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, METRICS, &f) == FL_MODEL_OK, "draw %zu", (size_t)k);
        for (int m = 0; m < METRICS; m++)
            squares[m] += pow((f.weight[m] - truth[m]) / f.error[m], 2) / DRAWS;
        FL_CHECK(near(f.rms, 0.1, 0.04) && f.multiple < 1, "draw %zu: rms %g", (size_t)k, f.rms);
    }
    for (int m = 0; m < METRICS; m++) /* 1 in expectation, with a deviation of 0.07 */
        FL_CHECK(near(squares[m], 1, 0.3), "weight %d: mean squared error %g of what its standard error says", m,
                 squares[m]);
}

static void test_not_told(void) {
    double x[COUNT * METRICS], y[COUNT];
    fl_sensitivity_fit f;
    draw(x, y, 0.05, 3);
    for (int i = 0; i < COUNT; i++)
        x[i * METRICS + 2] = 7;
    FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, METRICS, &f) == FL_MODEL_OK && f.weight[2] == 0 &&
                 isinf(f.inflation[2]) && isnan(f.correlation[2]) && isnan(f.error[2]) && f.rank == 2 &&
                 isfinite(f.inflation[0]) && isfinite(f.error[0]),
             "a constant metric: weight %g, inflation %g, rank %zu", f.weight[2], f.inflation[2], f.rank);
    draw(x, y, 0.05, 3);
    for (int i = 0; i < COUNT; i++)
        x[i * METRICS + 1] = 90 - 0.5 * x[i * METRICS];
    FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, METRICS, &f) == FL_MODEL_OK && isinf(f.inflation[0]) &&
                 isinf(f.inflation[1]) && isfinite(f.inflation[2]) && f.rank == 2 && f.condition > 1e6,
             "two metrics on a line: inflation %g, %g and %g, rank %zu, condition %g", f.inflation[0], f.inflation[1],
             f.inflation[2], f.rank, f.condition);
    FL_CHECK(fl_fit_sensitivity_linear(x, y, METRICS, METRICS, &f) == FL_MODEL_NO_FIT, "three points, three metrics");
    FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, 0, &f) == FL_MODEL_INVALID &&
                 fl_fit_sensitivity_linear(x, y, 4, 9, &f) == FL_MODEL_INVALID,
             "no metrics, or too many");
    for (int i = 0; i < COUNT; i++)
        y[i] = 0.5;
    FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, METRICS, &f) == FL_MODEL_NO_FIT, "the same sensitivity everywhere");
    y[5] = NAN;
    FL_CHECK(fl_fit_sensitivity_linear(x, y, COUNT, METRICS, &f) == FL_MODEL_INVALID, "not a number");
}

/* ---- runs over states ---------------------------------------------------------------------------------------------
 */

#define HEAD                                                                                                           \
    "# foldline-state-runs 1\n# source: made up\n"                                                                     \
    "kernel,cpu_mhz,sm_mhz,time_s,energy_j,weighted_alu_busy,global_mem_util,clock_weighted_upc\n"

static void test_runs_file(void) {
    static const char text[] = HEAD "a,3800,800,1,100,90,20,0.3\n"
                                    "b,3800,800,1,100,50,70,0.2\n"
                                    "a,1400,800,1.1,70,89,19,\n" /* 84.7: best of a, but for the next */
                                    "a,1400,400,2,10,70,10,0.3\n"
                                    "b,1400,400,1,100,40,69,0.2\n"
                                    "c,1400,400,1,,40,69,0.2\n";
    char copy[512], table[512];
    fl_state_runs r, again;
    fl_diag d = {0};
    fl_status s = fl_state_runs_read(fl_temp_text("runs.csv", text), &r, &d);
    FL_CHECK(s == FL_OK && r.count == 6, "%lld: %s", (long long)d.line, d.message);
    if (s)
        return;
    FL_CHECK(isnan(r.run[2].metric[FL_METRIC_UPC]) && r.run[2].metric[FL_METRIC_MEMORY] == 19 &&
                 isnan(r.run[5].energy_j),
             "what is empty is not known");
    size_t count, *first = fl_state_runs_kernels(&r, &count);
    FL_CHECK(count == 3 && first[0] == 0 && first[1] == 1 && first[2] == 5, "%zu kernels", count);
    FL_CHECK(fl_state_runs_best(&r, 0, 0) == 3, "a: run %zu (100, 84.7 and 40 J s2)", fl_state_runs_best(&r, 0, 0));
    FL_CHECK(fl_state_runs_best(&r, 1, 0) == 1, "b: run %zu, expected the higher of equals",
             fl_state_runs_best(&r, 1, 0));
    FL_CHECK(fl_state_runs_best(&r, 5, 0) == r.count, "c: energy is not known");
    FL_CHECK(fl_state_runs_best(&r, 0, 2900) == 0 && fl_state_runs_best(&r, 0, 4000) == r.count,
             "a, from 2900 and from 4000 MHz on");
    free(first);
    snprintf(copy, sizeof copy, "%s", fl_temp_path("copy.csv"));
    snprintf(table, sizeof table, "%s", fl_temp_path("table.csv"));
    FL_CHECK(fl_state_runs_write_best(table, &r, 0, &d) == FL_BAD_INPUT && strstr(d.message, "'c'"), "%s", d.message);
    free(r.run[--r.count].kernel);
    d = (fl_diag){0};
    FL_CHECK(fl_state_runs_write_best(table, &r, 0, &d) == FL_OK &&
                 fl_state_runs_write(copy, &r, "made up", &d) == FL_OK && fl_state_runs_read(copy, &again, &d) == FL_OK,
             "%s", d.message);
    size_t size;
    char *written = fl_temp_slurp(table, &size);
    FL_CHECK(written && !strcmp(written, "kernel,cpu_mhz,sm_mhz\na,1400,400\nb,3800,800\n"), "%s", written);
    free(written);
    for (size_t i = 0; i < r.count; i++)
        FL_CHECK(!strcmp(r.run[i].kernel, again.run[i].kernel) && r.run[i].time_s == again.run[i].time_s &&
                     (r.run[i].metric[2] == again.run[i].metric[2] || isnan(again.run[i].metric[2])),
                 "run %zu came back otherwise", i);
    FL_CHECK(isnan(r.run[0].metric[FL_METRIC_ALU_BUSY]), "a column that is not there");
    fl_state_runs_free(&r);
    fl_state_runs_free(&again);
    static const char wide[] = "# foldline-state-runs 1\n"
                               "kernel,cpu_mhz,sm_mhz,time_s,energy_j,weighted_alu_busy,global_mem_util,"
                               "clock_weighted_upc,alu_busy,gpu_clock_busy\na,1400,400,1,1,1,1,1,30,60\n";
    CU_ASSERT_FATAL(fl_state_runs_read(fl_temp_text("wide.csv", wide), &r, &d) == FL_OK);
    FL_CHECK(r.run[0].metric[FL_METRIC_ALU_BUSY] == 30 && r.run[0].metric[FL_METRIC_CLOCK_BUSY] == 60,
             "two more columns");
    fl_state_runs_free(&r);
    static const struct {
        const char *text, *message;
    } bad[] = {{HEAD, "no runs"},
               {HEAD "a,1400,400,1,1,1,1,1\na,1400,400,2,1,1,1,1\n", "a second run of 'a'"},
               {HEAD "a,1400,400,0,1,1,1,1\n", "time_s"},
               {HEAD "a,1400,400,1,1,1,1\n", "7 fields"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FL_CHECK(fl_state_runs_read(fl_temp_text("bad.csv", bad[i].text), &r, &d) == FL_BAD_INPUT &&
                     strstr(d.message, bad[i].message) && !r.count,
                 "row %zu: %s", i, d.message);
}

/* Kernels whose sensitivity is known by their making: bound by the GPU's core, by memory, by launches. */
static void test_profile(void) {
    static const char kinds[] = "# foldline-kinds 1\n"
                                "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                                "core,1,0.2,0,9,1,0.2,1,800,800\nmemory,0.3,1,0,9,0.5,1,1,800,800\n"
                                "launch,0.3,0.3,0.4,9,0.4,0.3,1,800,800\n";
    char text[1024];
    fl_temp_text("p.kinds.csv", kinds);
    snprintf(text, sizeof text,
             "# foldline-programs 1\n# sm_mhz: 800\n# mem_mhz: 800\n# kinds: p.kinds.csv\n"
             "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
             "x,1,1,core,1,20000,0,20,0\nx,1,1,launch,50,40,0,40,0\ny,1,1,memory,1,15000,0,20,0\n"
             "y,1,1,core,1,99000,0,20,0\n"); /* a kernel that is known already */
    char path[512];
    snprintf(path, sizeof path, "%s", fl_temp_text("p.csv", text));
    fl_profile_options o = {.programs = path, .platform = "apu-a10-5800k", .seconds = 0.3, .seed = 1, .threads = 1};
    fl_state_runs r, again;
    fl_diag d = {0};
    fl_status s = fl_profile_states(&o, &r, &d);
    FL_CHECK(s == FL_OK && r.count == 3 * 7 * 3, "%s", d.message);
    if (s)
        return;
    FL_CHECK(r.run[0].cpu_mhz == 4200 && r.run[0].sm_mhz == 800 && r.run[20].cpu_mhz == 1400 && r.run[20].sm_mhz == 400,
             "from the highest pair to the lowest");
    const struct {
        const char *name;
        double gpu, cpu, alu, memory, upc, by;
    } want[] = {{"core", 1, 0, 100, 15, 0.25, 0.02},
                {"launch", 0.2, 0.4, 40, 15, 0.5, 0.15},
                {"memory", 0.01, 0, 30, 75, 0.25, 0.02}};
    for (size_t k = 0; k < 3; k++) {
        const fl_state_run *run = &r.run[21 * k];
        const double gpu = fl_sensitivity(400, run[2].time_s, 800, run[0].time_s),
                     cpu = fl_sensitivity(1400, run[18].time_s, 4200, run[0].time_s);
        FL_CHECK(!strcmp(run->kernel, want[k].name) && near(gpu, want[k].gpu, want[k].by) &&
                     near(cpu, want[k].cpu, want[k].by),
                 "%s: GPU sensitivity %g, CPU %g", run->kernel, gpu, cpu);
        FL_CHECK(near(run->metric[0], want[k].alu, 10) && near(run->metric[1], want[k].memory, 4) &&
                     near(run->metric[2], want[k].upc, 0.1),
                 "%s: metrics %g, %g, %g", run->kernel, run->metric[0], run->metric[1], run->metric[2]);
        const double alu = run->metric[FL_METRIC_ALU_BUSY], busy = run->metric[FL_METRIC_CLOCK_BUSY];
        FL_CHECK(near(100 * alu / busy, run->metric[FL_METRIC_ALU], 1e-9) &&
                     (k == 1 ? busy > 40 && busy < 60 : busy > 95),
                 "%s: ALUs busy %g %% of the time, GPU %g %%", run->kernel, alu, busy);
        const fl_state_run *best = &r.run[fl_state_runs_best(&r, 21 * k, 0)];
        FL_CHECK(k == 0 ? best->sm_mhz == 800 && best->cpu_mhz <= 1900 : k == 1 || best->sm_mhz < 800,
                 "%s: best at %g, %g", run->kernel, best->cpu_mhz, best->sm_mhz);
    }
    o.threads = 3;
    CU_ASSERT_FATAL(fl_profile_states(&o, &again, &d) == FL_OK);
    for (size_t i = 0; i < r.count; i++)
        FL_CHECK(r.run[i].time_s == again.run[i].time_s && r.run[i].energy_j == again.run[i].energy_j,
                 "run %zu depends on the number of threads", i);
    fl_state_runs_free(&again);
    fl_state_runs_free(&r);
    o.platform = "v100-300w";
    s = fl_profile_states(&o, &r, &d);
    FL_CHECK(s == FL_OK || (s == FL_BAD_INPUT && !r.count), "%s", d.message);
    fl_state_runs_free(&r);
    fl_temp_remove();
}

/* The ideal static scheme's tables of the experiment are what the profile gives. */
static void test_tables(void) {
    static const struct {
        const char *name;
        double cpu_from;
    } tables[] = {{"dynaco.states.csv", 0}, {"dynaco.states-p2.csv", 2900}};
    fl_profile_options o = {.programs = FL_ROOT "/traces/samples/dynaco.programs.csv",
                            .platform = "apu-a10-5800k",
                            .seconds = 4,
                            .seed = 1};
    fl_state_runs r;
    fl_diag d = {0};
    const fl_status s = fl_profile_states(&o, &r, &d);
    FL_CHECK(s == FL_OK, "%s", d.message);
    for (size_t i = 0; !s && i < 2; i++) {
        char kept[512], made[512];
        size_t size;
        snprintf(kept, sizeof kept, FL_ROOT "/harness/experiments/%s", tables[i].name);
        snprintf(made, sizeof made, "%s", fl_temp_path(tables[i].name));
        FL_CHECK(fl_state_runs_write_best(made, &r, tables[i].cpu_from, &d) == FL_OK, "%s", d.message);
        char *a = fl_temp_slurp(kept, &size), *b = fl_temp_slurp(made, &size);
        FL_CHECK(a && b && !strcmp(a, b), "%s is not what the profile gives", tables[i].name);
        free(a), free(b);
    }
    fl_state_runs_free(&r);
    fl_temp_remove();
}

FL_SUITE("sensitivity", {"definition", test_definition}, {"an exact plane", test_plane}, {"noise", test_noise},
         {"what is not told apart", test_not_told}, {"runs as a file", test_runs_file}, {"profile", test_profile},
         {"tables of the experiment", test_tables})
