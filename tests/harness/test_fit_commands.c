/* `foldline fit device` and `fit workload` as a user has them: what a few rows cannot tell is not stated, what lies
 * outside the calibration is refused or marked, and workloads that the device was fitted to are named. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    int used = snprintf(command, sizeof command, "cd '%s' && ", fl_temp_folder[0] ? fl_temp_folder : fl_temp_path("."));
    vsnprintf(command + used, sizeof command - (size_t)used, format, args);
    va_end(args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A sweep of made-up workloads from `first` on, at clocks from low to high in steps of 100 MHz. */
static void write_sweep(const char *name, int first, int count, double low, double high) {
    FILE *f = fopen(fl_temp_path(name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n");
    for (int k = first; k < first + count; k++)
        for (double mhz = low; mhz <= high; mhz += 100) {
            const double memory = 0.08 * k, core = 1 - 0.5 * memory, v = 1 + fmax(0, mhz - 900) / 3000,
                         wave = 1 + 0.002 * sin(7 * k + mhz),
                         time = wave * (10 + k) * (pow(pow(core * 1500 / mhz, 6) + pow(memory, 6), 1.0 / 6) + 0.05),
                         power = wave * (60 + (40 + 5 * (k % 5)) * v * v * mhz / 1000 + 30 * memory + 10 * v);
            fprintf(f, "w%d,,%g,800,,%.6g,%.6g,%.9g\n", k, mhz, time, power, time * power);
        }
    fclose(f);
}

static bool says(const char *file, const char *text) { return shell("grep -qF -e '%s' '%s'", text, file) == 0; }

static double json_number(const char *file, const char *key) {
    size_t size = 0;
    char *text = fl_temp_slurp(fl_temp_path(file), &size);
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(root, key);
    const double value = cJSON_IsNumber(x) ? x->valuedouble : (double)NAN;
    cJSON_Delete(root);
    free(text);
    return value;
}

/* As many numbers as rows: a fit meets them, and knows nothing. */
static void test_few(void) {
    write_sweep("few.csv", 1, 1, 1400, 1500);
    write_sweep("many.csv", 1, 8, 600, 1500);
    FL_CHECK(shell("'%s' fit device few.csv -o few.json >few.out", FL_PROGRAM) == 0 &&
                 shell("'%s' fit device many.csv -o many.json >many.out", FL_PROGRAM) == 0,
             "fit device");
    static const char *const rows[] = {"error of time, %", "error of power, %"};
    for (size_t i = 0; i < 2; i++)
        FL_CHECK(shell("grep -F '%s' few.out | grep -q 'n/a.*n/a'", rows[i]) == 0 &&
                     shell("grep -F '%s' many.out | grep -q 'n/a'", rows[i]) == 1,
                 "%s", rows[i]);
    static const char *const loads[] = {"A, W per V^2 GHz", "B, W  "};
    for (size_t i = 0; i < 2; i++)
        FL_CHECK(shell("grep -F '%s' few.out | grep -q 'not identifiable'", loads[i]) == 0 &&
                     shell("grep -F '%s' many.out | grep -q 'not identifiable'", loads[i]) == 1,
                 "%s", loads[i]);
    static const char *const keys[] = {"gpu.power.a_w", "gpu.power.b_w"};
    for (size_t i = 0; i < 2; i++)
        FL_CHECK(shell("grep -q '\"%s\".*not identifiable' few.json", keys[i]) == 0 &&
                     shell("grep -q '\"%s\".*fitted from' many.json", keys[i]) == 0,
                 "%s", keys[i]);
    FL_CHECK(shell("grep -q '\"calibration\".*time n/a, power n/a' few.json") == 0 &&
                 shell("grep -q '\"calibration\".*time [0-9].*power [0-9]' many.json") == 0,
             "the errors in the file");
}

static void test_outside(void) {
    write_sweep("high.csv", 1, 8, 1000, 1500);
    write_sweep("wide.csv", 9, 4, 600, 1500);
    write_sweep("low.csv", 9, 2, 600, 800);
    FL_CHECK(shell("'%s' fit device high.csv -o high.json >out", FL_PROGRAM) == 0, "fit device");
    /* 10 rows each: 1000 to 1500 can be asked for, 600 to 900 cannot; 1000 and 1500 are given. */
#define WORKLOAD "'%s' fit workload --device high.json "
    FL_CHECK(shell(WORKLOAD "wide.csv --at sm=1000,1500 --rows rows.csv -o new.csv >out", FL_PROGRAM) == 0 &&
                 says("out", "16 rows lie outside the clocks that the device was calibrated at (SM 1000 to 1500 MHz, "
                             "memory 800 to 800 MHz): not predicted, --extrapolate does"),
             "what is refused is told");
    FL_CHECK(shell("test $(grep -c ',1$' rows.csv) = 16 && test $(grep -c ',0$' rows.csv) = 24 && "
                   "! grep -q ',[6789]00,800,0,[0-9.]*,[0-9]' rows.csv && "
                   "test $(wc -l <rows.csv) = 41") == 0,
             "no prediction in such rows");
    FL_CHECK(shell("test $(grep -c '^w[0-9]' new.csv) = 24 && ! grep -q '^w[0-9].*,[6789]00,800' new.csv && "
                   "! grep -q beyond new.csv") == 0,
             "the sweep has the others");
    FL_CHECK(shell(WORKLOAD "wide.csv --at sm=1000,1500 --json >j.json", FL_PROGRAM) == 0, "json");
    FL_CHECK(fabs(json_number("j.json", "rows_predicted") - 16) < 0.1 &&
                 fabs(json_number("j.json", "rows_outside_calibration") - 16) < 0.1 &&
                 fabs(json_number("j.json", "rows_refused") - 16) < 0.1,
             "%g predicted, %g outside, %g refused", json_number("j.json", "rows_predicted"),
             json_number("j.json", "rows_outside_calibration"), json_number("j.json", "rows_refused"));
    /* All of it is outside: there is nothing to tell. */
    FL_CHECK(shell(WORKLOAD "low.csv --at ends >out 2>err", FL_PROGRAM) == 2 && says("err", "--extrapolate"),
             "all refused");
    /* Asked for, they are marked wherever they go. */
    FL_CHECK(shell(WORKLOAD "wide.csv --at sm=1000,1500 --extrapolate --rows rows.csv -o new.csv >out", FL_PROGRAM) ==
                     0 &&
                 says("out", "16 rows lie outside the clocks that the device was calibrated at") &&
                 shell("! grep -q 'not predicted' out") == 0,
             "--extrapolate");
    FL_CHECK(shell("test $(grep -c '^w[0-9]' new.csv) = 40 && test $(grep -c '^w[0-9].*,[6789]00,800,0,.*[0-9],1$' "
                   "rows.csv) = 16 "
                   "&& grep -q '^# beyond_calibration: 16 rows' new.csv") == 0,
             "marked");
    FL_CHECK(shell(WORKLOAD "wide.csv --at sm=1000,1500 --extrapolate --json >j.json", FL_PROGRAM) == 0 &&
                 fabs(json_number("j.json", "rows_predicted") - 32) < 0.1 &&
                 fabs(json_number("j.json", "rows_refused")) < 0.1,
             "%g predicted", json_number("j.json", "rows_predicted"));
    FL_CHECK(shell("'%s' compare new.csv --platform ./high.json --policy maxfreq >out 2>&1", FL_PROGRAM) == 0,
             "compare");
    FL_CHECK(says("out", "new.csv: 16 rows predicted at clocks that the device was not calibrated at"),
             "results that stand on them say so");
}

static void test_seen(void) {

    write_sweep("all.csv", 1, 8, 600, 1500);
    write_sweep("new.csv", 9, 3, 600, 1500);
    FL_CHECK(shell("'%s' fit device all.csv --only 'w[1-4]' -o half.json >out", FL_PROGRAM) == 0, "fit device");
    static const struct {
        const char *sweep;
        int seen, of;
    } rows[] = {
        {"all.csv", 4, 8}, {"all.csv --only w5", 0, 1}, {"new.csv", 0, 3}, {"copy.csv", 2, 2}, {"mixed.csv", 2, 5}};
    /* Another name, another order, fewer rows: the same measurements. */
    FL_CHECK(shell("{ head -n 1 all.csv; grep '^w[12],' all.csv | sort -r | grep -v ',700,'; } | sed "
                   "'s/^w\\([0-9]\\)/x\\1/' >copy.csv && "
                   "{ cat copy.csv; tail -n +2 new.csv; } >mixed.csv") == 0,
             "copy");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        snprintf(text, sizeof text, "the device was fitted to %d of these %d workloads", rows[i].seen, rows[i].of);
        FL_CHECK(shell("'%s' fit workload --device half.json %s --at ends >out", FL_PROGRAM, rows[i].sweep) == 0 &&
                     (rows[i].seen ? says("out", text) : !says("out", "was fitted to")),
                 "%s: not told: %s", rows[i].sweep, text);
        FL_CHECK(shell("'%s' fit workload --device half.json %s --at ends --json >j.json", FL_PROGRAM, rows[i].sweep) ==
                         0 &&
                     fabs(json_number("j.json", "workloads_seen_by_device") - rows[i].seen) < 0.1 &&
                     shell("test $(grep -c '\"seen_by_device\":.*true' j.json) = %d", rows[i].seen) == 0,
                 "%s: %g in JSON", rows[i].sweep, json_number("j.json", "workloads_seen_by_device"));
    }
}

/* Settings that nobody measured are predicted where they are asked for, and where nothing else is left to predict. */
static void test_asked(void) {
    write_sweep("all.csv", 1, 8, 600, 1500);
    write_sweep("truth.csv", 5, 1, 600, 1500);
    FL_CHECK(shell("'%s' fit device all.csv --only 'w[1-4]' --only 'w[6-8]' -o asked.json >out && "
                   "grep -E '^workload|,600,|,1500,' truth.csv >two.csv",
                   FL_PROGRAM) == 0,
             "fit device");
    FL_CHECK(shell("'%s' fit workload --device asked.json two.csv -o full.csv >out", FL_PROGRAM) == 0 &&
                 says("out", "predictions for settings without a measurement") &&
                 shell("test $(grep -c '^w5,' full.csv) = 10") == 0,
             "two rows become ten");
    /* Within 1 %: the made-up truth has a wave of 0.2 % upon its law, and the ends are two points of it. */
    FL_CHECK(shell("grep '^w5,' full.csv | sort -t, -k3n >a; grep '^w5,' truth.csv | sort -t, -k3n >b; "
                   "paste -d, a b | awk -F, '{ t = $6 / $16 - 1; p = $7 / $17 - 1; "
                   "if ($3 != $13 || ($9 == \"\") != ($3 == 600 || $3 == 1500) || ($9 != \"\" && !($9 > 0 && $10 > 0)) "
                   "|| t * t > 0.0001 || p * p > 0.0001) bad = 1 } END { exit bad || NR != 10 }'") == 0,
             "near the truth, and how near is said of each row that was not measured");
    FL_CHECK(shell("'%s' fit workload --device asked.json two.csv --clocks sm=700,1500 --rows rows.csv >out",
                   FL_PROGRAM) == 0 &&
                 shell("test $(grep -c '^w5,' rows.csv) = 3 && grep -q '^w5,,700,800,0,,[0-9.]*,[0-9.]*,,[0-9.]*,"
                       "[0-9.]*,0$' rows.csv") == 0,
             "only those asked for");
    FL_CHECK(shell("'%s' fit workload --device asked.json all.csv --clocks sm=1550 --extrapolate >out", FL_PROGRAM) ==
                     0 &&
                 says("out", "the device was fitted to 7 of these 8 workloads"),
             "rows that were asked for are none that the device has seen");
    FL_CHECK(shell("'%s' compare full.csv --platform ./asked.json --policy maxfreq >out", FL_PROGRAM) == 0 &&
                 says("out", "maxfreq"),
             "compare takes it");
    static const char *const wrong[] = {"ends", "all", "sm=", "sm=700/mem=", "calibratet"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FL_CHECK(shell("'%s' fit workload --device asked.json two.csv --clocks %s >out 2>err", FL_PROGRAM, wrong[i]) ==
                         2 &&
                     says("err", "expected calibrated"),
                 "--clocks %s", wrong[i]);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_commands", {"few", test_few}, {"outside", test_outside}, {"seen", test_seen}, {"asked", test_asked},
         {"clean up", test_clean_up})
