/* `fit device` and `fit workload` on sweeps with power limits, with rows that teach nothing, and with clocks that are
 * not what they say. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    (void)fl_temp_path("");
    int used = snprintf(command, sizeof command, "cd '%s' && ", fl_temp_folder[0] ? fl_temp_folder : fl_temp_path("."));
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

/* A board that lowers the clock until the mean power is CREST times the limit. */
static double held_crest(double power, double limit) { return fmin(power, CREST * limit); }

/* A board that cuts each moment's power at the limit: the mean of min(X, limit), where X is lognormal with the mean
 * `power` and a deviation of ln X of 0.1. Its mean comes near the limit under deep limits only. */
static double held_peaks(double power, double limit) {
    const double sd = 0.1, a = (log(limit / power) + sd * sd / 2) / sd;
    return power * 0.5 * erfc((sd - a) / sqrt(2)) + limit * 0.5 * erfc(a / sqrt(2));
}

static void write_limits_of(const char *name, int first, int count, bool clocks, double (*held)(double, double)) {
    FILE *f = fopen(fl_temp_path(name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w\n");
    for (int k = first; k < first + count; k++)
        for (double mhz = clocks ? 700 : 1500; mhz <= 1500; mhz += 100)
            for (size_t i = 0; i < COUNT(limits); i++) {
                double ran = mhz;
                const double mean = held(law_power(k, mhz), limits[i]);
                while (law_power(k, ran) > mean && ran > 300)
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

static void write_limits(const char *name, int first, int count, bool clocks) {
    write_limits_of(name, first, count, clocks, held_crest);
}

/* The device of a sweep that several cases use: a.csv, a.json, and in `out` what the fit says. */
static void fit_device(void) {
    if (access(fl_temp_path("a.json"), R_OK) == 0)
        return;
    write_limits("a.csv", 1, 6, true);
    FL_CHECK(shell("'%s' fit device a.csv -o a.json >out", FL_PROGRAM) == 0, "fit device");
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
    fit_device();
    write_limits("b.csv", 7, 2, true);
    /* A limit that binds by less than the scatter is none that can be told. */
    char text[64];
    size_t said = 0;
    for (size_t n = count_bound(1, 6); !said && n + 8 > count_bound(1, 6); n--) {
        snprintf(text, sizeof text, "note: %zu rows left out, since a power limit binds", n);
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
        FL_CHECK(shell("'%s' fit workload --device a.json b.csv --at all --crest %s --json >j.json", FL_PROGRAM,
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
    FL_CHECK(shell("'%s' fit workload --device a.json b.csv --at ends --crest 0.8 --json >j.json", FL_PROGRAM) == 0 &&
                 json_number("j.json", "capped/power_mape_pct") > 10,
             "a crest that is not theirs is not met: %g %%", json_number("j.json", "capped/power_mape_pct"));
    FL_CHECK(shell("'%s' fit workload --device a.json b.csv --at ends --rows rows.csv >out && head -n 1 rows.csv | "
                   "grep -q '^workload,kernel,power_cap_w,sm_mhz' && grep -q '^w7,,150,1500,' rows.csv && "
                   "grep -q 'from a run at' out",
                   FL_PROGRAM) == 0,
             "--rows");
    FL_CHECK(shell("'%s' fit device a.csv --only w1 --only w3 --only w6 -o half.json >out && "
                   "'%s' fit workload --device half.json a.csv --only w2 --only w4 --only w5 --at ends --json >j.json",
                   FL_PROGRAM, FL_PROGRAM) == 0 &&
                 json_number("j.json", "capped/time_mape_pct") < 1.2,
             "a device of the other half: %g %%", json_number("j.json", "capped/time_mape_pct"));
    static const char *const bad[] = {"0", "1.2", "x", "0.9x", ""};
    for (size_t i = 0; i < COUNT(bad); i++)
        FL_CHECK(shell("'%s' fit workload --device a.json b.csv --crest '%s' >out 2>err", FL_PROGRAM, bad[i]) == 2 &&
                     says("err", "expected run, device, or the mean power divided by the limit"),
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
    fit_device();
    FL_CHECK(shell("'%s' fit workload --device a.json deep.csv --at ends --crest 0.955 --rows rows.csv >out && "
                   "grep -q 'below the calibration' out && grep -q '^w7,,95,1500,,0,[0-9.]*,,,' rows.csv",
                   FL_PROGRAM) == 0,
             "not predicted");
    FL_CHECK(shell("'%s' fit workload --device a.json deep.csv --at ends --crest 0.955 --extrapolate --rows rows.csv "
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
    snprintf(text, sizeof text, "note: %zu rows left out, since a power limit binds", held);
    FL_CHECK(shell("'%s' fit device one.csv -o one.json >out", FL_PROGRAM) == 0, "fit device");
    FL_CHECK(held > 0 && says("out", text), "%zu are held down, none of w2 at 0.98 of its limit", held);
}

/* Rows that the device would not predict teach it nothing. */
static void test_untaught(void) {
    fit_device();
    FILE *f = fopen(fl_temp_path("lied.csv"), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,sm_mhz,time_s,power_w\n"); /* 400 MHz that ran at 220 */
    for (double mhz = 400; mhz <= 1500; mhz += mhz < 700 ? 300 : 100)
        fprintf(f, "w7,%g,%.6g,%.6g\n", mhz, law_time(7, mhz > 400 ? mhz : 220), law_power(7, mhz > 400 ? mhz : 220));
    fclose(f);
    FL_CHECK(shell("grep -v ',400,' lied.csv >true.csv") == 0, "without 400 MHz");
    static const char *const at[] = {"sm=400,1100,1500", "sm=1100,1500"};
    FL_CHECK(shell("'%s' fit workload --device a.json lied.csv --at %s --json >lied.json && "
                   "'%s' fit workload --device a.json true.csv --at %s --json >true.json",
                   FL_PROGRAM, at[0], FL_PROGRAM, at[1]) == 0,
             "fit workload");
    FL_CHECK(fabs(json_number("lied.json", "rows_untaught") - 1) < 0.1 &&
                 fabs(json_number("lied.json", "time_mape_pct") - json_number("true.json", "time_mape_pct")) < 1e-9,
             "%g rows teach nothing; time %g %%, without them %g", json_number("lied.json", "rows_untaught"),
             json_number("lied.json", "time_mape_pct"), json_number("true.json", "time_mape_pct"));
    FL_CHECK(shell("'%s' fit workload --device a.json lied.csv --at sm=400 >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "expected some, or --extrapolate"),
             "nothing is left to teach");
}

/* A clock that is wrong throughout the device's sweep is told by it, taken as what it was, and known to the device: a
 * sweep of two rows has it too. */
static void test_wrong_clock(void) {
    FILE *f = fopen(fl_temp_path("wrong.csv"), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,sm_mhz,time_s,power_w\n");
    for (int k = 0; k < 8; k++)
        for (double mhz = 600; mhz <= 1500; mhz += 100) {
            const double ran = mhz < 650 ? 400 : mhz;
            fprintf(f, "w%d,%g,%.6g,%.6g\n", k, mhz, law_time(k, ran), law_power(k, ran));
        }
    fclose(f);
    FL_CHECK(
        shell("'%s' fit device wrong.csv -o wrong.json >out", FL_PROGRAM) == 0 &&
            shell("grep -Eq 'note: rows at 600 MHz in fact ran at about (39|40). MHz .*: used at that clock' out") == 0,
        "told");
    FL_CHECK(fabs(json_number("wrong.json", "calibration/sm_min_mhz") - 400) < 10, "calibrated from %g MHz",
             json_number("wrong.json", "calibration/sm_min_mhz"));
    FL_CHECK(shell("grep -E '^workload|^w3,(600|900|1500)' wrong.csv >few.csv && '%s' fit workload --device wrong.json "
                   "few.csv --at sm=600,1500 --rows rows.csv --json >j.json && grep -q '^w3,,600,,1,' rows.csv",
                   FL_PROGRAM) == 0 &&
                 json_number("j.json", "time_mape_pct") < 2,
             "a sweep too small to tell, by the clock that was asked for: %g %%",
             json_number("j.json", "time_mape_pct"));
}

/* Power limits without SM clocks: along the limits, by laws of each workload's own, and a device from them. The laws
 * let the crest fall with the depth of the limit. They must meet a board that cuts peaks from two rows. A board of
 * constant crest needs three rows: two do not show that its crest does not change. */
static void test_latent(void) {
    write_limits("latent.csv", 1, 4, false);
    FL_CHECK(shell("'%s' fit device latent.csv -o l.json >out 2>err", FL_PROGRAM) == 0 &&
                 says("l.json", "inferred: latent.csv names power limits and no clocks"),
             "a device");
    write_limits("asked.csv", 7, 2, false);
    write_limits_of("peaks.csv", 7, 2, false, held_peaks);
    static const struct {
        const char *device, *file, *at;
        double time_pct, power_pct; /* largest mean errors */
    } of[] = {{"", "peaks.csv", "ends", 6, 3},
              {"", "peaks.csv", "caps=120,180,600", 3, 3},
              {"", "asked.csv", "ends", 6, 6},
              {"", "asked.csv", "caps=120,180,600", 3, 3},
              {"--device l.json", "peaks.csv", "ends", 6, 3},
              {"--device l.json", "asked.csv", "caps=120,180,600", 3, 3}};
    for (size_t i = 0; i < COUNT(of); i++) {
        FL_CHECK(shell("'%s' fit workload %s %s --at %s --json >j.json", FL_PROGRAM, of[i].device, of[i].file,
                       of[i].at) == 0 &&
                     json_number("j.json", "capped/rows_predicted") > 3,
                 "%s of %s at %s", of[i].device, of[i].file, of[i].at);
        FL_CHECK(json_number("j.json", "capped/time_mape_pct") < of[i].time_pct &&
                     json_number("j.json", "capped/power_mape_pct") < of[i].power_pct,
                 "%s of %s at %s: time %g, power %g %%", of[i].device, of[i].file, of[i].at,
                 json_number("j.json", "capped/time_mape_pct"), json_number("j.json", "capped/power_mape_pct"));
    }
    FL_CHECK(shell("'%s' fit workload asked.csv --at caps=600,120 >out", FL_PROGRAM) == 0 &&
                 says("out", "a run under a power limit of"),
             "watts to measure");
    FL_CHECK(shell("'%s' fit workload asked.csv --at caps=150 >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "fewer than two of its power limits"),
             "one limit");
    FL_CHECK(shell("'%s' fit workload asked.csv --at caps=x >out 2>err", FL_PROGRAM) == 2 &&
                 says("err", "expected power limits in W"),
             "no number");
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
    static const char *const of[] = {"babelstream", "pi-solver"};
    double time = 0, energy = 0;
    for (int i = 0; i < 2; i++) {
        FL_CHECK(shell("'%s' fit device '%s' --only %s -o d.json >out && "
                       "'%s' fit workload --device d.json '%s' --only %s --at ends --extrapolate --json >j.json",
                       FL_PROGRAM, path, of[i], FL_PROGRAM, path, of[1 - i]) == 0,
                 "%s by a device of %s", of[1 - i], of[i]);
        time += json_number("j.json", "capped/time_mape_pct") / 2;
        energy += json_number("j.json", "capped/energy_mape_pct") / 2;
    }
    printf("\n    A100 under limits: time %.2f %% (1.2), energy %.2f %% (1.5)", time, energy);
    FL_CHECK(time <= 1.2 && energy <= 1.5, "time %g, energy %g %%", time, energy);
}

static void clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_limits", {"sweep", test_sweep}, {"below the calibration", test_below}, {"one limit", test_one_limit},
         {"untaught", test_untaught}, {"wrong clock", test_wrong_clock}, {"latent clocks", test_latent},
         {"A100", test_a100}, {"clean up", clean_up})
