/* Power limits: which of them bind, what a program does under one, and the fit commands on sweeps that have them. */
#include "harness/base/json.h"
#include "models/cap.h"
#include "models/fit_chip.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    (void)fl_temp_path("");
    int used = snprintf(command, sizeof command, "cd '%s' && ", fl_temp_folder);
    vsnprintf(command + used, sizeof command - (size_t)used, format, args);
    va_end(args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *file, const char *text) { return shell("grep -qF -e '%s' '%s'", text, file) == 0; }

/* path: "capped/time_mape_pct" */
static double json_number(const char *file, const char *path) {
    size_t size = 0;
    char key[128], *text = fl_temp_slurp(fl_temp_path(file), &size);
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    const cJSON *x = root;
    snprintf(key, sizeof key, "%s", path);
    for (char *part = strtok(key, "/"); part; part = strtok(NULL, "/"))
        x = cJSON_GetObjectItemCaseSensitive(x, part);
    const double value = cJSON_IsNumber(x) ? x->valuedouble : (double)NAN;
    cJSON_Delete(root);
    free(text);
    return value;
}

/* ---- which limits bind ---- */

/* B binds, F does not, ? cannot be told; scatter 0.2 % in time, 0.5 % in power. */
static void test_binds(void) {
    static const struct {
        const char *what;
        fl_cap_cell cell[4];
        const char *want;
    } rows[] = {
        {"none binds", {{300, 10, 150, 0}, {250, 10.01, 150.3, 0}, {200, 9.99, 149.8, 0}}, "FFF"},
        {"close to its limit, and free", {{300, 10, 148, 0}, {200, 10.01, 148.2, 0}, {150, 10.0, 147.5, 0}}, "FFF"},
        {"at 95.5 % of its limit, and bound",
         {{300, 10, 180, 0}, {200, 10.01, 180.3, 0}, {150, 11.2, 143.2, 0}},
         "FFB"},
        {"memory-bound: only the power tells",
         {{300, 10, 169.9, 0}, {175, 10, 169.5, 0}, {150, 10.01, 145.2, 0}},
         "FFB"},
        {"all bind", {{300, 10, 290, 0}, {250, 10.8, 242, 0}, {200, 11.9, 195, 0}}, "BBB"},
        {"no limit at the top", {{INFINITY, 10, 290, 0}, {250, 10.8, 242, 0}}, "FB"},
        {"below a limit that binds all do", {{300, 10, 200, 0}, {200, 11, 190, 0}, {190, 11.01, 189.5, 0}}, "FBB"},
        {"no power known", {{300, 10, NAN, 0}, {200, 11, NAN, 0}}, "FF"},
        {"one limit, far", {{300, 10, 200, 0}}, "F"},
        {"one limit, close", {{300, 10, 294, 0}}, "?"},
        {"one limit, none", {{INFINITY, 10, 294, 0}}, "F"},
    };
    const fl_cap_scatter scatter = {0.002, 0.005};
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_cap_cell cell[4];
        const size_t n = strlen(rows[i].want);
        memcpy(cell, rows[i].cell, sizeof cell);
        fl_cap_test(cell, n, &scatter);
        for (size_t k = 0; k < n; k++)
            FL_CHECK("FB?"[cell[k].verdict] == rows[i].want[k], "%s, cell %zu: %c, expected %c", rows[i].what, k,
                     "FB?"[cell[k].verdict], rows[i].want[k]);
    }
}

static void test_scatter(void) {
    fl_cap_cell cell[8];
    double time[8], power[8];
    for (int i = 0; i < 8; i++) /* powers alternate by 1 %, times by 0.2 % */
        cell[i] = (fl_cap_cell){400 - 20 * i, i % 2 ? 10.02 : 10, i % 2 ? 101 : 100, FL_CAP_FREE};
    const size_t n = fl_cap_repeats(cell, 8, time, power);
    const fl_cap_scatter s = fl_cap_scatter_of(time, power, n);
    FL_CHECK(n == 7, "%zu repeats", n);
    FL_CHECK(fabs(s.time - 1.4826 * 0.002 / M_SQRT2) < 1e-4 && fabs(s.power - 1.4826 * 0.01 / M_SQRT2) < 1e-4,
             "time %g, power %g", s.time, s.power);
    for (int i = 0; i < 8; i++)
        cell[i].power_w = 390 - 20 * i; /* all are close to their limits: none says how readings repeat */
    FL_CHECK(fl_cap_repeats(cell, 8, time, power) == 0, "limits that may bind");
    const fl_cap_scatter none = fl_cap_scatter_of(time, power, 4);
    FL_CHECK(none.time > 0.004 && none.power > 0.009, "four repeats are too few: %g, %g", none.time, none.power);
}

static void test_clock(void) {
    const double mhz[] = {600, 900, 1200, 1500}, watts[] = {100, 130, 180, 260};
    static const struct {
        double watts, want;
        fl_model_status status;
    } rows[] = {{300, 1500, FL_MODEL_OK}, {260, 1500, FL_MODEL_OK},  {180, 1200, FL_MODEL_OK},
                {100, 600, FL_MODEL_OK},  {99, 600, FL_MODEL_RANGE}, {216.333, 1341.6, FL_MODEL_OK}};
    double at = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fl_model_status s = fl_cap_clock(mhz, watts, 4, rows[i].watts, &at);
        FL_CHECK(s == rows[i].status && fabs(at - rows[i].want) < 0.5, "%g W: %s, %g MHz", rows[i].watts,
                 fl_model_text(s), at);
    }
    const double bad[] = {100, NAN, 180, 260};
    FL_CHECK(fl_cap_clock(mhz, bad, 4, 150, &at) == FL_MODEL_INVALID, "a power that is none");
    FL_CHECK(fl_cap_clock(mhz, watts, 0, 150, &at) == FL_MODEL_INVALID, "no clocks");
    FL_CHECK(fl_cap_clock(mhz, watts, 4, 0, &at) == FL_MODEL_INVALID, "no power");
}

/* ---- sweeps by the known law, under limits ---- */

static double law_time(int k, double mhz) {
    const double memory = 0.1 * k, core = 1 - 0.5 * memory;
    return (10 + k) * (pow(pow(core * 1500 / mhz, 6) + pow(memory, 6), 1.0 / 6) + 0.05);
}

static double law_power(int k, double mhz) {
    const double v = 1 + fmax(0, mhz - 900) / 1500;
    return 40 + (60 + 5 * (k % 5)) * v * v * mhz / 1000 + 10 * 0.1 * k + 10 * v;
}

#define CREST 0.955
static const double limits[] = {600, 240, 180, 150, 120};

/* The board lowers the clock until the mean power is CREST times the limit. */
static void write_limits(const char *name, int first, int count, bool clocks) {
    FILE *f = fopen(fl_temp_path(name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w\n");
    for (int k = first; k < first + count; k++)
        for (double mhz = clocks ? 700 : 1500; mhz <= 1500; mhz += 100)
            for (size_t i = 0; i < COUNT(limits); i++) {
                double ran = mhz;
                while (law_power(k, ran) > CREST * limits[i] && ran > 300)
                    ran -= 0.05;
                const double wave = 1 + 0.001 * sin(7 * k + mhz + limits[i]);
                char asked[32] = "";
                if (clocks)
                    snprintf(asked, sizeof asked, "%g", mhz);
                fprintf(f, "w%d,,%s,,%g,%.6g,%.6g\n", k, asked, limits[i], wave * law_time(k, ran),
                        law_power(k, ran) * (2 - wave));
            }
    fclose(f);
}

static size_t count_bound(int first, int count) {
    size_t n = 0;
    for (int k = first; k < first + count; k++)
        for (double mhz = 700; mhz <= 1500; mhz += 100)
            for (size_t i = 0; i < COUNT(limits); i++)
                n += law_power(k, mhz) > CREST * limits[i] ? 1 : 0;
    return n;
}

static void test_sweep(void) {
    write_limits("a.csv", 1, 6, true);
    write_limits("b.csv", 7, 2, true);
    FL_CHECK(shell("'%s' fit device --sweep a.csv --out a.json >out", FL_PROGRAM) == 0, "fit device");
    /* A limit that binds by less than the scatter is none that can be told. */
    char text[64];
    size_t said = 0;
    for (size_t n = count_bound(1, 6); !said && n + 8 > count_bound(1, 6); n--) {
        snprintf(text, sizeof text, "note: %zu rows at a power limit that binds", n);
        said = says("out", text) ? n : 0;
    }
    FL_CHECK(said > 0, "%zu rows are bound", count_bound(1, 6));
    FL_CHECK(fabs(json_number("a.json", "gpu/limits/max_w") - 600) < 0.1 &&
                 fabs(json_number("a.json", "gpu/limits/default_w") - 600) < 0.1 &&
                 fabs(json_number("a.json", "gpu/limits/min_w") - 100) < 0.1,
             "the sweep's limits, and the base's least: %g %g %g", json_number("a.json", "gpu/limits/max_w"),
             json_number("a.json", "gpu/limits/default_w"), json_number("a.json", "gpu/limits/min_w"));
    FL_CHECK(fabs(json_number("a.json", "calibration/crest/share") - CREST) < 0.003, "crest %g",
             json_number("a.json", "calibration/crest/share"));
    static const char *const crests[] = {"run", "device", "0.955"};
    for (size_t i = 0; i < COUNT(crests); i++) {
        FL_CHECK(shell("'%s' fit workload --device a.json --sweep b.csv --at all --crest %s --json >j.json", FL_PROGRAM,
                       crests[i]) == 0,
                 "fit workload");
        FL_CHECK(json_number("j.json", "capped/rows_predicted") > 20 &&
                     json_number("j.json", "capped/time_mape_pct") < 1.2 &&
                     json_number("j.json", "capped/energy_mape_pct") < 1.5 &&
                     json_number("j.json", "capped/power_mape_pct") < 0.6,
                 "--crest %s: %g rows, time %g, power %g, energy %g %%", crests[i],
                 json_number("j.json", "capped/rows_predicted"), json_number("j.json", "capped/time_mape_pct"),
                 json_number("j.json", "capped/power_mape_pct"), json_number("j.json", "capped/energy_mape_pct"));
    }
    FL_CHECK(shell("'%s' fit workload --device a.json --sweep b.csv --at ends --crest 0.8 --json >j.json",
                   FL_PROGRAM) == 0 &&
                 json_number("j.json", "capped/power_mape_pct") > 10,
             "a crest that is not theirs is not met: %g %%", json_number("j.json", "capped/power_mape_pct"));
    FL_CHECK(
        shell("'%s' fit workload --device a.json --sweep b.csv --at ends --csv rows.csv >out && head -n 1 rows.csv | "
              "grep -q '^workload,kernel,power_cap_w,sm_mhz' && grep -q '^w7,,150,1500,' rows.csv && "
              "grep -q 'from a run at' out",
              FL_PROGRAM) == 0,
        "--csv");
    FL_CHECK(shell("'%s' fit split --sweep a.csv --at ends --splits 2 --json >j.json", FL_PROGRAM) == 0 &&
                 json_number("j.json", "capped/time_mape_pct") < 1.2,
             "fit split: %g %%", json_number("j.json", "capped/time_mape_pct"));
    static const char *const bad[] = {"0", "1.2", "x", "0.9x", ""};
    for (size_t i = 0; i < COUNT(bad); i++)
        FL_CHECK(shell("'%s' fit workload --device a.json --sweep b.csv --crest '%s' >out 2>err", FL_PROGRAM, bad[i]) ==
                         2 &&
                     says("err", "expected run, device, or mean power over limit"),
                 "--crest '%s'", bad[i]);
}

/* A deeper limit than any calibrated clock can hold: not predicted unasked, and marked. */
static void test_below(void) {
    FILE *f = fopen(fl_temp_path("deep.csv"), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w\n");
    for (double mhz = 700; mhz <= 1500; mhz += 400)
        fprintf(f, "w7,,%g,,600,%.6g,%.6g\n", mhz, law_time(7, mhz), law_power(7, mhz));
    fprintf(f, "w7,,1500,,95,%.6g,%.6g\nw7,,1500,,150,%.6g,%.6g\n", law_time(7, 500), law_power(7, 500),
            law_time(7, 950), law_power(7, 950));
    fclose(f);
    write_limits("a.csv", 1, 6, true);
    FL_CHECK(shell("'%s' fit device --sweep a.csv --out a.json >out", FL_PROGRAM) == 0, "fit device");
    FL_CHECK(shell("'%s' fit workload --device a.json --sweep deep.csv --at ends --crest 0.955 --csv rows.csv >out && "
                   "grep -q 'below the calibration' out && grep -q '^w7,,95,1500,,0,[0-9.]*,,,' rows.csv",
                   FL_PROGRAM) == 0,
             "not predicted");
    FL_CHECK(
        shell("'%s' fit workload --device a.json --sweep deep.csv --at ends --crest 0.955 --extrapolate --csv rows.csv "
              ">out && grep -q '^w7,,95,1500,,0,[0-9.]*,[0-9.]*,.*,1$' rows.csv && "
              "grep -q '^w7,,150,1500,,0,[0-9.]*,[0-9.]*,.*,0$' rows.csv",
              FL_PROGRAM) == 0,
        "marked");
}

/* One limit only: a row close to it that is out of line was held down; one in line was not. */
static void test_one_limit(void) {
    FILE *f = fopen(fl_temp_path("one.csv"), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,sm_mhz,power_cap_w,time_s,power_w\n");
    size_t held = 0; /* by more than 3 %: less is not told */
    for (int k = 1; k <= 6; k++)
        for (double mhz = 700; mhz <= 1500; mhz += 100) {
            const double limit = k == 1 ? 191 : k == 2 ? law_power(2, 1500) / 0.98 : 600;
            double ran = mhz;
            while (k == 1 && law_power(k, ran) > CREST * limit)
                ran -= 0.05;
            held += ran < 0.97 * mhz ? 1 : 0;
            fprintf(f, "w%d,%g,%g,%.6g,%.6g\n", k, mhz, limit, law_time(k, ran), law_power(k, ran));
        }
    fclose(f);
    char text[64];
    snprintf(text, sizeof text, "note: %zu rows at a power limit that binds", held);
    FL_CHECK(shell("'%s' fit device --sweep one.csv --out one.json >out", FL_PROGRAM) == 0, "fit device");
    FL_CHECK(held > 0 && says("out", text), "%zu are held down, none of w2 at 0.98 of its limit", held);
}

/* Rows that the device would not predict teach it nothing. */
static void test_untaught(void) {
    write_limits("a.csv", 1, 6, true);
    FILE *f = fopen(fl_temp_path("lied.csv"), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,sm_mhz,time_s,power_w\n"); /* 400 MHz that ran at 220 */
    for (double mhz = 400; mhz <= 1500; mhz += mhz < 700 ? 300 : 100)
        fprintf(f, "w7,%g,%.6g,%.6g\n", mhz, law_time(7, mhz > 400 ? mhz : 220), law_power(7, mhz > 400 ? mhz : 220));
    fclose(f);
    FL_CHECK(
        shell("grep -v ',400,' lied.csv >true.csv && '%s' fit device --sweep a.csv --out a.json >out", FL_PROGRAM) == 0,
        "fit device");
    static const char *const at[] = {"sm=400,1100,1500", "sm=1100,1500"};
    FL_CHECK(shell("'%s' fit workload --device a.json --sweep lied.csv --at %s --json >lied.json && "
                   "'%s' fit workload --device a.json --sweep true.csv --at %s --json >true.json",
                   FL_PROGRAM, at[0], FL_PROGRAM, at[1]) == 0,
             "fit workload");
    FL_CHECK(fabs(json_number("lied.json", "rows_untaught") - 1) < 0.1 &&
                 fabs(json_number("lied.json", "time_mape_pct") - json_number("true.json", "time_mape_pct")) < 1e-9,
             "%g rows teach nothing; time %g %%, without them %g", json_number("lied.json", "rows_untaught"),
             json_number("lied.json", "time_mape_pct"), json_number("true.json", "time_mape_pct"));
    FL_CHECK(shell("'%s' fit workload --device a.json --sweep lied.csv --at sm=400 >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "expected some, or --extrapolate"),
             "nothing is left to teach");
}

/* Power limits without SM clocks: along the limits, by the law of a platform; a plain error where none is given. */
static void test_latent(void) {
    write_limits("latent.csv", 1, 4, false);
    FL_CHECK(shell("'%s' fit device --sweep latent.csv --out l.json >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "latent.csv: power limits but no SM clocks") && says("err", "expected --base"),
             "no platform");
    write_limits("a.csv", 1, 6, true);
    FL_CHECK(shell("'%s' fit device --sweep a.csv --out a.json >out && "
                   "'%s' fit device --sweep latent.csv --base ./a.json --out l.json >out",
                   FL_PROGRAM, FL_PROGRAM) == 0 &&
                 says("l.json", "latent: latent.csv names power limits and no clocks"),
             "by the law of another fit");
    write_limits("asked.csv", 7, 2, false);
    static const char *const device[] = {"a.json", "l.json"}, *const at[] = {"ends", "caps=120,180,600"};
    for (size_t i = 0; i < COUNT(device); i++)
        for (size_t k = 0; k < COUNT(at); k++) {
            FL_CHECK(shell("'%s' fit workload --device %s --sweep asked.csv --at %s --json >j.json", FL_PROGRAM,
                           device[i], at[k]) == 0 &&
                         json_number("j.json", "capped/rows_predicted") > 3,
                     "%s at %s", device[i], at[k]);
            FL_CHECK(json_number("j.json", "capped/time_mape_pct") < (k ? 3 : 6) &&
                         json_number("j.json", "capped/power_mape_pct") < 3,
                     "%s at %s: time %g, power %g %%", device[i], at[k], json_number("j.json", "capped/time_mape_pct"),
                     json_number("j.json", "capped/power_mape_pct"));
        }
    FL_CHECK(shell("'%s' fit workload --device a.json --sweep asked.csv --at caps=150 >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "fewer than two of its power limits"),
             "one limit");
    FL_CHECK(shell("'%s' fit workload --device a.json --sweep asked.csv --at caps=x >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "expected power limits in W"),
             "no number");
    FL_CHECK(shell("'%s' fit split --sweep asked.csv >out 2>err", FL_PROGRAM) == 2 && says("err", "--device-sweep"),
             "fit split");
}

/* The A100, each of its two workloads by a device fitted to the other: rows at 95 to 98 % of the limit among them. */
static void test_a100(void) {
    const char *folder = getenv("FOLDLINE_DATA");
    char path[1024];
    snprintf(path, sizeof path, "%s/sweeps/a100-pcie-lock-x-cap.csv", folder ? folder : "");
    if (!folder || access(path, R_OK) != 0) {
        printf("\n    skipped: a100-pcie-lock-x-cap.csv (set FOLDLINE_DATA)");
        return;
    }
    FL_CHECK(shell("'%s' fit split --sweep '%s' --at ends --splits 10 --json >j.json", FL_PROGRAM, path) == 0,
             "fit split");
    const double time = json_number("j.json", "capped/time_mape_pct"),
                 energy = json_number("j.json", "capped/energy_mape_pct");
    printf("\n    A100 under limits: time %.2f %% (1.2), power %.2f %%, energy %.2f %% (1.5)", time,
           json_number("j.json", "capped/power_mape_pct"), energy);
    FL_CHECK(time <= 1.2 && energy <= 1.5, "time %g, energy %g %%", time, energy);
}

static void clean_up(void) { fl_temp_remove(); }

FL_SUITE("cap", {"binds", test_binds}, {"scatter", test_scatter}, {"clock", test_clock}, {"sweep", test_sweep},
         {"below the calibration", test_below}, {"one limit", test_one_limit}, {"untaught", test_untaught},
         {"latent clocks", test_latent}, {"A100", test_a100}, {"clean up", clean_up})
