/* `foldline fit device` and `fit workload` as a user has them: what a few rows cannot tell is not stated, what lies
 * outside the calibration is refused or marked, and workloads that the device was fitted to are named. */
#include "tests/suite.h"
#include "tests/temp_file.h"

#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    int used = snprintf(command, sizeof command, "cd '%s' && ", fl_temp_folder);
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

/* As many numbers as rows: a fit meets them, and knows nothing. */
static void test_few(void) {
    write_sweep("few.csv", 1, 1, 1400, 1500);
    write_sweep("many.csv", 1, 8, 600, 1500);
    FL_CHECK(shell("'%s' fit device --sweep few.csv --out few.json >few.out", FL_PROGRAM) == 0 &&
                 shell("'%s' fit device --sweep many.csv --out many.json >many.out", FL_PROGRAM) == 0,
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

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_commands", {"few", test_few}, {"clean up", test_clean_up})
