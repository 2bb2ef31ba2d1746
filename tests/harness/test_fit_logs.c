/* The way round for a device: runs of the simulator, recorded as its sensors show them, made a sweep of, and fitted,
 * give back the platform that they were made with. Through the program alone, as a user would. */
#include "harness/base/json/json.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    static char command[16384];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Times and powers of a GPU are what its workloads make of it: SMs idle, core-bound, memory-bound, between. */
static const struct {
    const char *name;
    double tc, tm, tl, alpha, beta;
} workloads[] = {{"idle", 0.02, 0, 1, 0, 0.05},   {"core1", 1, 0.1, 0, 1, 0.1},     {"core2", 1, 0.2, 0.05, 0.6, 0.2},
                 {"core3", 0.9, 0.3, 0, 0.8, 0},  {"mem1", 0.3, 1, 0, 0.4, 1},      {"mem2", 0.2, 1, 0.1, 0.25, 0.7},
                 {"mix1", 0.8, 0.8, 0, 0.7, 0.6}, {"mix2", 0.6, 0.8, 0.1, 0.5, 0.5}};

static void write_workloads(double sharpness) {
    char text[400], name[64];
    for (size_t k = 0; k < COUNT(workloads); k++) {
        const double c = workloads[k].tc, m = workloads[k].tm, l = workloads[k].tl,
                     t = pow(pow(c, sharpness) + pow(m, sharpness), 1 / sharpness) + l;
        snprintf(text, sizeof text,
                 "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                 "%s,%.9g,%.9g,%.9g,%g,%g,%g,1,1500,1000\n",
                 workloads[k].name, c / t, m / t, l / t, sharpness, workloads[k].alpha, workloads[k].beta);
        snprintf(name, sizeof name, "%s.kinds.csv", workloads[k].name);
        fl_temp_text(name, text);
        snprintf(name, sizeof name, "%s.csv", workloads[k].name);
        FILE *f = fopen(fl_temp_path(name), "w");
        CU_ASSERT_FATAL(f != NULL);
        fprintf(f, "# foldline-kernels 1\n# sm_mhz: 1500\n# mem_mhz: 1000\ndevice,process,stream,start_ns,end_ns,name,"
                   "grid_x,grid_y,grid_z,block_x,block_y,block_z\n");
        for (long long i = 0; i < 1000; i++) /* 20 s at the top */
            fprintf(f, "0,0,0,%lld,%lld,%s,1,1,1,1,1,1\n", i * 20000000, (i + 1) * 20000000, workloads[k].name);
        fclose(f);
    }
}

typedef struct truth {
    const char *what;
    double a, a0, b, b0[2], c, floor_mhz, top, sharpness;
    const char *power_sensor, *energy_sensor; /* energy: empty = the board has no counter */
    /* Tolerances: A and B relative, A0 in W per V^2 GHz, B0's step and C in W, V, sharpness relative. */
    double tol_share, tol_a0, tol_step, tol_c, tol_volt, tol_p;
} truth;

static const truth boards[] = {
    {"with an energy counter",
     80,
     10,
     50,
     {10, 20},
     30,
     900,
     1.2,
     9,
     "\"refresh_ms\": 100, \"window_ms\": 100, \"quantum\": 0.001, \"noise\": 1",
     "\"energy\": {\"refresh_ms\": 100, \"quantum\": 0.001},",
     0.01,
     0.3,
     0.5,
     2,
     0.005,
     0.05},
    {"by a noisy power sensor",
     80,
     10,
     50,
     {10, 20},
     30,
     900,
     1.2,
     9,
     "\"refresh_ms\": 100, \"window_ms\": 100, \"quantum\": 0.001, \"noise\": 3",
     "",
     0.02,
     0.8,
     1,
     4,
     0.01,
     0.05},
    {"another chip, slow sensor in whole watts",
     60,
     25,
     40,
     {12, 45},
     20,
     1100,
     1.3,
     5,
     "\"refresh_ms\": 100, \"window_ms\": 1000, \"quantum\": 1, \"noise\": 2",
     "",
     0.02,
     1.2,
     1,
     5,
     0.015,
     0.1},
};

static void write_platform(const truth *t) {
    char text[2048];
    snprintf(text, sizeof text,
             "{\"foldline_platform\": 1, \"title\": \"made up\", \"count\": 1, \"gpu\": {\"name\": \"Made up\","
             "\"sm_mhz\": {\"from\": 300, \"to\": 1500, \"steps\": [100]}, \"mem_mhz\": [500, 1000],"
             "\"default_sm_mhz\": 1500, \"default_mem_mhz\": 1000, \"sms\": 100, \"cores_per_sm\": 100,"
             "\"peak_gb_s\": 1000, \"tdp_w\": 500, \"power\": {\"a_w\": %g, \"a0_w\": %g, \"b_w\": %g,"
             "\"b0_w\": [%g, %g], \"c_w\": %g, \"no_context_w\": 30, \"voltage\": [[300, 1], [%g, 1], [1500, %g]]},"
             "\"sharpness\": %g, \"limits\": {\"min_w\": 100, \"max_w\": 500, \"default_w\": 500},"
             "\"sensors\": {\"power\": {%s}, %s \"utilisation\": {\"refresh_ms\": 200, \"window_ms\": 200,"
             "\"quantum\": 1, \"mem_noise_pct\": 2}, \"clock\": {\"refresh_ms\": 0}},"
             "\"actuator\": {\"call_ms\": 5, \"settle_ms\": 20, \"read_ms\": 1}},"
             "\"host\": {\"name\": \"host\", \"static_w\": 100, \"peak_gb_s\": 100, \"cores\": 10, \"launch_queue\": "
             "1000}, \"notes\": {\"count\": \"assumed: made up\", \"gpu\": \"assumed: made up\", \"host\": \"assumed: "
             "made up\"}}\n",
             t->a, t->a0, t->b, t->b0[0], t->b0[1], t->c, t->floor_mhz, t->top, t->sharpness, t->power_sensor,
             t->energy_sensor);
    fl_temp_text("board.json", text);
}

/* Every workload at every setting, each run with a seed of its own: 9 x 2 logs. */
static void record(const char *folder) {
    for (size_t k = 0; k < COUNT(workloads); k++)
        FL_CHECK(shell("cd '%s' && for sm in 300 500 700 900 1100 1200 1300 1400 1500; do for mem in 500 1000; do "
                       "'%s' run %s.csv --kinds %s.kinds.csv --platform ./board.json --no-cpu --seed $sm$mem "
                       "--policy fixed:sm_mhz=$sm,mem_mhz=$mem --telemetry %s@$sm-$mem.log >out 2>&1 || exit 1; "
                       "done; done",
                       folder, FL_PROGRAM, workloads[k].name, workloads[k].name, workloads[k].name) == 0,
                 "%s", workloads[k].name);
}

static double number(const cJSON *o, const char *key, int index) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, key);
    x = index >= 0 ? cJSON_GetArrayItem(x, index) : x;
    return cJSON_IsNumber(x) ? x->valuedouble : (double)NAN;
}

static void test_way_round(void) {
    char folder[600];
    for (size_t i = fl_nightly() ? 0 : COUNT(boards) - 1; i < COUNT(boards); i++) { /* test_idle needs the last one */
        const truth *t = &boards[i];
        write_platform(t);
        snprintf(folder, sizeof folder, "%s", fl_temp_path("."));
        write_workloads(t->sharpness);
        record(folder);
        FL_CHECK(shell("cd '%s' && '%s' fit logs *.log -o all.sweep.csv >out 2>&1 && grep -q '144 of 144 runs' out",
                       folder, FL_PROGRAM) == 0,
                 "%s: fit logs", t->what);
        FL_CHECK(shell("cd '%s' && '%s' fit device all.sweep.csv -o fitted.json >out 2>&1", folder, FL_PROGRAM) == 0,
                 "%s: fit device", t->what);
        fl_diag d = {0};
        cJSON *root = NULL;
        CU_ASSERT_FATAL(fl_json_read(fl_temp_path("fitted.json"), &root, &d) == FL_OK);
        const cJSON *gpu = cJSON_GetObjectItemCaseSensitive(root, "gpu"),
                    *power = cJSON_GetObjectItemCaseSensitive(gpu, "power"),
                    *volt = cJSON_GetObjectItemCaseSensitive(power, "voltage");
        const double a = number(power, "a_w", -1), a0 = number(power, "a0_w", -1), b = number(power, "b_w", -1),
                     c = number(power, "c_w", -1), low = number(power, "b0_w", 0), high = number(power, "b0_w", 1),
                     p = number(gpu, "sharpness", -1);
        const double top = cJSON_IsNumber(cJSON_GetArrayItem(cJSON_GetArrayItem(volt, 8), 1))
                               ? cJSON_GetArrayItem(cJSON_GetArrayItem(volt, 8), 1)->valuedouble
                               : (double)NAN;
        printf("\n    %s: A %.2f (%g), A0 %.2f (%g), B %.2f (%g), B0 %.2f and %.2f (%g and %g), C %.2f (%g), "
               "V %.4f (%g), p %.2f (%g)",
               t->what, a, t->a, a0, t->a0, b, t->b, low, high, t->b0[0], t->b0[1], c, t->c, top, t->top, p,
               t->sharpness);
        FL_CHECK(fabs(a / t->a - 1) < t->tol_share && fabs(b / t->b - 1) < t->tol_share, "%s: A, B", t->what);
        FL_CHECK(fabs(a0 - t->a0) < t->tol_a0, "%s: A0", t->what);
        FL_CHECK(fabs(high - low - (t->b0[1] - t->b0[0])) < t->tol_step, "%s: B0's step", t->what);
        FL_CHECK(fabs(c - t->c) < t->tol_c && fabs(low - t->b0[0]) < t->tol_c, "%s: C, B0", t->what);
        FL_CHECK(fabs(c + low - t->c - t->b0[0]) < t->tol_step, "%s: C and B0 together", t->what);
        FL_CHECK(fabs(top - t->top) < t->tol_volt, "%s: V at the top", t->what);
        for (int k = 0; k < 4; k++) /* to 900 MHz all of them are at the floor */
            FL_CHECK(fabs(cJSON_GetArrayItem(cJSON_GetArrayItem(volt, k), 1)->valuedouble - 1) < t->tol_volt,
                     "%s: V's floor", t->what);
        FL_CHECK(fabs(p / t->sharpness - 1) < t->tol_p, "%s: p", t->what);
        cJSON_Delete(root);
    }
    putchar('\n');
}

/* Without the workload that leaves the SMs idle, sweeps only bound A0 of the last board; a log of the idle GPU tells
 * it, and the most active kernel draws what it drew. */
static void test_idle(void) {
    const truth *t = &boards[COUNT(boards) - 1];
    char folder[600];
    static char text[40000];
    snprintf(folder, sizeof folder, "%s", fl_temp_path("."));
    size_t used =
        (size_t)snprintf(text, sizeof text, "# foldline-telemetry 1\nt_ns,device,util_gpu_pct,power_w,sm_mhz\n");
    for (int i = 0; i < 500; i++) {
        const double mhz = 300 + 200 * (double)(i / 100), w = t->b0[1] + t->c + t->a0 * mhz / 1000;
        const bool busy = i % 100 < 40;
        used += (size_t)snprintf(text + used, sizeof text - used, "%lld,1,%d,%.2f,%g\n", 100000000LL * i, busy ? 90 : 0,
                                 busy ? 200 : w + 0.2 * (i % 5 - 2), mhz);
    }
    fl_temp_text("idle.log", text);
    static const char *const options[] = {"", "--idle idle.log"};
    double a[2], a0[2];
    for (int k = 0; k < 2; k++) {
        cJSON *root = NULL;
        FL_CHECK(shell("cd '%s' && '%s' fit device all.sweep.csv --only 'core*' --only 'm*' %s -o i.json "
                       ">out 2>&1",
                       folder, FL_PROGRAM, options[k]) == 0,
                 "%s", options[k]);
        CU_ASSERT_FATAL(fl_json_read(fl_temp_path("i.json"), &root, NULL) == FL_OK);
        const cJSON *power = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "gpu"), "power");
        a[k] = number(power, "a_w", -1);
        a0[k] = number(power, "a0_w", -1);
        cJSON_Delete(root);
    }
    printf(" A0 at most %.1f, with the log %.2f (%g) ", a0[0], a0[1], t->a0);
    FL_CHECK(a0[0] > t->a0 + 5 && fabs(a0[1] - t->a0) < 0.5, "A0 %g and %g", a0[0], a0[1]);
    FL_CHECK(fabs(a[0] + a0[0] - a[1] - a0[1]) < 1e-6 && fabs(a[1] / t->a - 1) < 0.05, "A %g and %g", a[0], a[1]);
    for (char *at = text; (at = strstr(at, ",1100\n")); at++)
        memcpy(at, ",0300", 5); /* and 500, 700, 900: still enough; without 900 no more */
    for (char *at = text; (at = strstr(at, ",900\n")); at++)
        memcpy(at, ",300", 4);
    fl_temp_text("idle.log", text);
    FL_CHECK(shell("cd '%s' && '%s' fit device all.sweep.csv --idle idle.log -o i.json >out 2>&1", folder,
                   FL_PROGRAM) == 2 &&
                 shell("grep -q 'no GPU idles' '%s/out'", folder) == 0,
             "three clocks");
}

/* Recording does not change the run: not a byte of what it says. */
static void test_unchanged(void) {
    char folder[600];
    snprintf(folder, sizeof folder, "%s", fl_temp_path("."));
    FL_CHECK(shell("cd '%s' && for policy in assure nvboost fixed:sm_mhz=900; do "
                   "'%s' run mix1.csv --kinds mix1.kinds.csv --platform generic --policy $policy >with "
                   "--telemetry seen.log && "
                   "'%s' run mix1.csv --kinds mix1.kinds.csv --platform generic --policy $policy >without && "
                   "cmp with without || exit 1; done",
                   folder, FL_PROGRAM, FL_PROGRAM) == 0,
             "recorded runs differ");
}

/* A log of another tool, and what cannot be used. */
static void test_foreign(void) {
    char folder[600], text[9000];
    snprintf(folder, sizeof folder, "%s", fl_temp_path("."));
    static const struct {
        const char *what;
        int clock_after; /* from 6 s on */
        int gpus, idle_w;
        const char *power;       /* of each second: idle, 50, 90, 150 or 200 W */
        const char *busy, *idle; /* utilisation */
        const char *says;        /* in what is printed */
        const char *row;         /* of the sweep; NULL: exit 2 */
    } rows[] = {
        {"steady", 900, 1, 40, "..aahhhhhhhh..", "97 %", "0 %", "1 of 1 runs", "10,200,2000$"},
        {"clocks change", 1200, 1, 40, "..aahhhhhhhh..", "97 %", "0 %", "the SM clock changed", NULL},
        {"two GPUs", 900, 2, 40, "..aahhhhhhhh..", "97 %", "0 %", "--device", NULL},
        {"never busy", 900, 1, 40, "..aahhhhhhhh..", "0 %", "0 %", "busy", NULL},
        {"a desktop", 900, 1, 40, "..aahhhhhhhh..", "97 %", "8 %", "above 80 W, a quarter", "10,200,2000$"},
        {"no utilisation", 900, 1, 40, "..aahhhhhhhh..", "[N/A]", "[N/A]", "above 80 W, a quarter", "10,200,2000$"},
        {"nor two levels of power", 900, 1, 110, "..aahhhhhhhh..", "[N/A]", "[N/A]",
         "changed during the run, from 210 to 900", NULL},
        {"a phase of less than half the power", 900, 1, 40, "..hhhhmmmmmm..", "[N/A]", "[N/A]", "a quarter", "10,"},
        {"a short phase of high power", 900, 1, 40, "..hmmmmmmmmm..", "[N/A]", "[N/A]", "a quarter", "10,"},
        {"bursts, and no idle ends", 900, 1, 40, "mmmhmmmmmmhmmm", "[N/A]", "[N/A]", "does not idle before", "13,"},
        {"light work with a burst", 900, 1, 40, "..lllhhlllll..", "6 %", "0 %", "1 of 1 runs", "10,"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t used =
            (size_t)snprintf(text, sizeof text,
                             "timestamp, index, power.draw [W], utilization.gpu [%%], clocks.current.sm [MHz], "
                             "clocks.current.memory [MHz]\n");
        for (int k = 0; rows[i].power[k]; k++)
            for (int gpu = 0; gpu < rows[i].gpus; gpu++) {
                const char at = rows[i].power[k];
                const bool runs = at != '.';
                const int w = at == 'l' ? 50 : at == 'm' ? 90 : at == 'a' ? 150 : at == 'h' ? 200 : rows[i].idle_w;
                used += (size_t)snprintf(text + used, sizeof text - used,
                                         "2024/01/01 10:00:%02d.000, %d, %d.00 W, %s, %d MHz, 877 MHz\n", k, gpu, w,
                                         runs ? rows[i].busy : rows[i].idle,
                                         !runs   ? 210
                                         : k < 6 ? 900
                                                 : rows[i].clock_after);
            }
        fl_temp_text("prog.smi", text);
        const int status = shell("cd '%s' && '%s' fit logs prog.smi -o smi.csv >out 2>&1", folder, FL_PROGRAM);
        FL_CHECK(status == (rows[i].row ? 0 : 2) && shell("grep -q -e '%s' '%s/out'", rows[i].says, folder) == 0,
                 "%s: status %d", rows[i].what, status);
        if (rows[i].row) /* half a second at either end; the first two seconds of power are left out */
            FL_CHECK(shell("grep -q '^prog,,900,877,,%s' '%s/smi.csv'", rows[i].row, folder) == 0, "%s", rows[i].what);
    }
    FL_CHECK(shell("cd '%s' && '%s' fit logs mix1.csv -o smi.csv >out 2>&1", folder, FL_PROGRAM) == 2 &&
                 shell("grep -q 'no telemetry' '%s/out'", folder) == 0,
             "kernels alone");
}

/* A log whose clock is read at other times than its power and utilisation. */
static void test_in_turn(void) {
    char folder[600], text[4000];
    snprintf(folder, sizeof folder, "%s", fl_temp_path("."));
    for (int used_too = 0; used_too < 2; used_too++) {
        size_t used = (size_t)snprintf(text, sizeof text, "# foldline-telemetry 1\nt_ns,device,sm_mhz,power_w%s\n",
                                       used_too ? ",util_gpu_pct" : "");
        for (int k = 0; k < 14; k++) {
            const bool runs = k >= 2 && k < 12;
            used += (size_t)snprintf(text + used, sizeof text - used, "%d000000000,0,,%d%s\n%d500000000,0,%d,%s\n", k,
                                     runs ? 200 : 40,
                                     !used_too ? ""
                                     : runs    ? ",97"
                                               : ",0",
                                     k, runs ? 900 : 210, used_too ? "," : "");
        }
        fl_temp_text("turn.csv", text);
        FL_CHECK(shell("cd '%s' && '%s' fit logs turn.csv -o smi.csv >out 2>&1", folder, FL_PROGRAM) == 0 &&
                     shell("grep -q '^turn,,900,,,9.5,200,1900$' '%s/smi.csv'", folder) == 0,
                 "utilisation: %d", used_too);
    }
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("fit_logs", {"way round", test_way_round}, {"idle", test_idle}, {"unchanged", test_unchanged},
         {"foreign", test_foreign}, {"in turn", test_in_turn}, {"clean up", test_clean_up})
