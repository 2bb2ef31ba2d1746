/* foldline fit policy capping: tables of the static method from a sweep written by hand, from the simulated node, and
 * the committed ones against what the command makes today. */
#include "policies/policy.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <math.h>

#define SAMPLES FL_ROOT "/traces/samples/"
#define HEAD "# foldline-sweep 1\nworkload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"

static const fl_param table_row = {.name = "model", .type = FL_PARAM_TABLE, .choices = "key:quantity|mhz|value"};

/* Exit status; what the program said on either channel is in text. */
static int run_program(const char *arguments, char *text, size_t size) {
    char command[8192];
    snprintf(command, sizeof command, "'%s' %s 2>&1", FL_PROGRAM, arguments);
    FILE *p = popen(command, "r");
    CU_ASSERT_FATAL(p != NULL);
    const size_t used = fread(text, 1, size - 1, p);
    text[used] = 0;
    const int status = pclose(p);
    return status >= 0 ? status >> 8 : -1;
}

static void read_table(const char *path, fl_table *t) {
    fl_diag d = {0};
    const fl_status s = fl_table_file_read(path, &table_row, t, &d);
    FL_CHECK(s == FL_OK, "%s: %s", path, d.message);
    if (s)
        exit(1);
}

static double value_of(const fl_table *t, const char *quantity, double mhz) {
    for (uint32_t i = 0; i < t->row_count; i++)
        if (!strcmp(t->key[i], quantity) && t->cell[2 * i] == mhz)
            return t->cell[2 * i + 1];
    return (double)NAN;
}

/* A = 90, B = 45, C = 50; V = 1, 1.05, 1.15; the application alpha 0.6, beta 0.5. */
#define VOLT_1 1.05
#define VOLT_2 1.15
static double board(double alpha, double beta, double mhz, double v) {
    return alpha * 90 * v * v * mhz / 1000 + beta * 45 + 50 * v;
}

static const char *sweep_text(const char *left_out) {
    static char text[4096];
    static const double mhz[] = {600, 700, 800}, volt[] = {1, VOLT_1, VOLT_2};
    static const struct {
        const char *workload;
        double alpha, beta;
    } rows[] = {{"memory-bound", 0, 1}, {"compute-bound", 1, 0}, {"app", 0.6, 0.5}};
    size_t used = (size_t)snprintf(text, sizeof text, HEAD);
    char line[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 3; k-- > 0;) { /* order does not matter */
            snprintf(line, sizeof line, "%s,gpu,%g,,,%g,%.15g,\n", rows[i].workload, mhz[k], 12 * 800 / mhz[k],
                     board(rows[i].alpha, rows[i].beta, mhz[k], volt[k]));
            if (!left_out || strncmp(line, left_out, strlen(left_out)) != 0)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s", line);
        }
    static const char *const others[] = {"rest,static,,,,5,120,\n", "app,comm,,,,2,30,\n", "copies,comm,,,,6,50,\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!left_out || strncmp(others[i], left_out, strlen(left_out)) != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", others[i]);
    return text;
}

static void test_by_hand(void) {
    static const struct {
        const char *quantity;
        double mhz, value;
    } want[] = {{"static_w", 0, 120},      {"comm_w", 0, 45},         {"comm_s", 0, 2},     {"gpu.volt", 600, 1},
                {"gpu.volt", 700, VOLT_1}, {"gpu.volt", 800, VOLT_2}, {"gpu.a_w", 0, 90},   {"gpu.b_w", 0, 45},
                {"gpu.c_w", 0, 50},        {"gpu.alpha", 0, 0.6},     {"gpu.beta", 0, 0.5}, {"gpu.time_s", 600, 16},
                {"gpu.time_s", 800, 12}};
    char arguments[4096], out[512], text[8192];
    fl_table t;
    snprintf(out, sizeof out, "%s", fl_temp_path("hand"));
    snprintf(arguments, sizeof arguments, "fit policy capping '%s' -o '%s'",
             fl_temp_text("sweep.csv", sweep_text(NULL)), out);
    FL_CHECK(run_program(arguments, text, sizeof text) == 0, "%s", text);
    read_table(fl_temp_path("hand.app.csv"), &t);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const double got = value_of(&t, want[i].quantity, want[i].mhz);
        FL_CHECK(fabs(got - want[i].value) <= 1e-4 * want[i].value, "%s at %g MHz is %g, expected %g", want[i].quantity,
                 want[i].mhz, got, want[i].value);
    }
    FL_CHECK(isnan(value_of(&t, "cpu.a_w", 0)) && t.row_count == sizeof want / sizeof *want, "%u rows", t.row_count);
    fl_table_file_free(&t);
}

static void test_refuses(void) {
    static const struct {
        const char *left_out, *more, *message;
    } rows[] = {
        {"rest", "", "no row whose kernel is static"},
        {"memory-bound", "", "0 clocks of memory-bound and 3 of compute-bound"},
        {"compute-bound,gpu,700", "", "3 clocks of memory-bound and 2 of compute-bound"},
        {"compute-bound,gpu,700", "compute-bound,gpu,650,,,12,100,\n",
         "3 clocks of memory-bound and 3 of compute-bound"},
        {"app,gpu,600", "", "app: no rows of gpu at both 600 and 800 MHz"},
        {"app,gpu,800", "", "app: no rows of gpu at both 600 and 800 MHz"},
        {"app", "", "no application"},
        {NULL, "app,gpu,700,,,12,100,\n", "app at 700 MHz twice"},
        {NULL, "app,gpu,,,,12,100,\n", "no sm_mhz"},
        {NULL, "cpu-memory-bound,cpu,1000,,,12,100,\n", "1 clocks of cpu-memory-bound and 0 of cpu-compute-bound"},
    };
    char arguments[4096], text[8192], all[8192];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(all, sizeof all, "%s%s", sweep_text(rows[i].left_out), rows[i].more);
        snprintf(arguments, sizeof arguments, "fit policy capping '%s'", fl_temp_text("bad.csv", all));
        const int status = run_program(arguments, text, sizeof text);
        FL_CHECK(status == 2 && strstr(text, rows[i].message), "row %zu: %d: %s", i, status, text);
    }
    FL_CHECK(run_program("fit policy capping", text, sizeof text) == 2 && strstr(text, "expected one sweep"), "%s",
             text);
    const char *sweep = fl_temp_text("good.csv", sweep_text(NULL));
    snprintf(arguments, sizeof arguments, "fit policy capping '%s' '%s'", sweep, sweep);
    FL_CHECK(run_program(arguments, text, sizeof text) == 2 && strstr(text, "expected one file of this type"), "%s",
             text);
    snprintf(arguments, sizeof arguments, "fit policy capping '%s' --measured b.csv", sweep);
    FL_CHECK(run_program(arguments, text, sizeof text) == 2 && strstr(text, "--measured"), "%s", text);
    FL_CHECK(run_program("fit policy capping --platform k20xm-e5-2660 " SAMPLES
                         "powercap.programs.csv --workload gpustream",
                         text, sizeof text) == 2 &&
                 strstr(text, "no workload 'rest'"),
             "%s", text);
}

/* What is committed is what the command makes; numbers may differ in the last digits between C libraries. */
static void test_committed(void) {
    static const char *const apps[] = {"gpustream", "gpustream-even", "diffusion", "matmul"};
    char arguments[4096], out[512], sweep[512], text[8192], path[1024];
    snprintf(out, sizeof out, "%s", fl_temp_path("made"));
    snprintf(sweep, sizeof sweep, "%s", fl_temp_path("made.sweep.csv"));
    snprintf(arguments, sizeof arguments,
             "fit policy capping --platform k20xm-e5-2660 " SAMPLES "powercap.programs.csv --measured '%s' -o '%s'",
             sweep, out);
    FL_CHECK(run_program(arguments, text, sizeof text) == 0, "%s", text);
    snprintf(arguments, sizeof arguments, "fit policy capping '%s' -o '%s'", sweep, fl_temp_path("again"));
    FL_CHECK(run_program(arguments, text, sizeof text) == 0, "from the sweep that was kept: %s", text);
    for (size_t i = 0; i < sizeof apps / sizeof *apps; i++) {
        fl_table t[3];
        snprintf(path, sizeof path, "%s.%s.csv", out, apps[i]);
        read_table(path, &t[0]);
        snprintf(path, sizeof path, SAMPLES "powercap.%s.csv", apps[i]);
        read_table(path, &t[1]);
        snprintf(path, sizeof path, "%s.%s.csv", fl_temp_path("again"), apps[i]);
        read_table(path, &t[2]);
        for (int k = 1; k < 3; k++) {
            FL_CHECK(t[k].row_count == t[0].row_count, "%s: %u rows, expected %u", apps[i], t[k].row_count,
                     t[0].row_count);
            for (uint32_t n = 0; n < t[0].row_count && n < t[k].row_count; n++)
                FL_CHECK(!strcmp(t[0].key[n], t[k].key[n]) && t[0].cell[2 * n] == t[k].cell[2 * n] &&
                             fabs(t[0].cell[2 * n + 1] - t[k].cell[2 * n + 1]) <= 1e-4 * fabs(t[0].cell[2 * n + 1]),
                         "%s: %s at %g MHz is %g, the command makes %g", apps[i], t[k].key[n], t[k].cell[2 * n],
                         t[k].cell[2 * n + 1], t[0].cell[2 * n + 1]);
        }
        /* What the platform has (models/platforms): the model's A takes the idle clock tree in, its C the idle memory.
         */
        FL_CHECK(value_of(&t[0], "gpu.a_w", 0) > 85 && value_of(&t[0], "gpu.a_w", 0) < 98 &&
                     value_of(&t[0], "gpu.volt", 784) > 1.12 && value_of(&t[0], "gpu.volt", 784) < 1.18 &&
                     value_of(&t[0], "gpu.b_w", 0) > 43 && value_of(&t[0], "gpu.b_w", 0) < 48,
                 "%s: A %g, B %g, V(784) %g", apps[i], value_of(&t[0], "gpu.a_w", 0), value_of(&t[0], "gpu.b_w", 0),
                 value_of(&t[0], "gpu.volt", 784));
        for (int k = 0; k < 3; k++)
            fl_table_file_free(&t[k]);
    }
}

/* Every verdict of the replay of the paper is as recorded, and what does not come out stands in the table. */
static void test_experiment(void) {
    static char text[1 << 18];
    static const struct {
        const char *line, *verdict;
    } stated[] = {
        {"time above the cap, gpustream, 260 W: hybrid1 less static", "reproduced"},
        {"time above the cap, matmul, 300 W: hybrid1 less static", "depends on an unpublished input"},
        {"mean node power, diffusion, 270 W, most over methods", "not reproduced"},
    };
    const int status =
        run_program("compare " FL_ROOT "/harness/experiments/power-capping.json --all", text, sizeof text);
    FL_CHECK(status == 0 && !strstr(text, "BUT RECORDED"), "%d: %s", status, text);
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
        const char *line = strstr(text, stated[i].line), *end = line ? strchr(line, '\n') : NULL;
        const char *said = line ? strstr(line, stated[i].verdict) : NULL;
        FL_CHECK(said && end && said < end, "%s: not told as %s", stated[i].line, stated[i].verdict);
    }
    fl_temp_remove();
}

FL_SUITE("capping tables", {"by hand", test_by_hand}, {"refuses", test_refuses}, {"committed", test_committed},
         {"experiment", test_experiment})
