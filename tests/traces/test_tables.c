#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double real(uint64_t *state) { /* of any size, sometimes unknown */
    double value;
    uint64_t bits = next(state);
    if (bits % 5 == 0)
        return NAN;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) && bits % 3 ? value : (double)(bits % 1000) / 8;
}

static bool same(const double *a, const double *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
            return false;
    return true;
}

static bool same_bytes(const char *a, const char *b) {
    size_t sizes[2] = {0};
    char *x = fl_temp_slurp(a, &sizes[0]), *y = fl_temp_slurp(b, &sizes[1]);
    bool equal = x && y && sizes[0] == sizes[1] && memcmp(x, y, sizes[0]) == 0;
    free(x);
    free(y);
    return equal;
}

static char one[512], two[512];

static void name_files(void) {
    snprintf(one, sizeof one, "%s", fl_temp_path("one.csv"));
    snprintf(two, sizeof two, "%s", fl_temp_path("two.csv"));
}

/* ---- bad input, all three kinds of table ---- */

typedef struct bad {
    const char *in;
    int64_t line, column;
    const char *message;
} bad;

typedef union any {
    fl_target target;
    fl_telemetry telemetry;
    fl_sweep sweep;
    fl_decisions decisions;
} any;

static fl_status read_telemetry(const char *path, any *a, fl_diag *d) {
    return fl_telemetry_read(path, &a->telemetry, NULL, d);
}
static fl_status read_sweep(const char *path, any *a, fl_diag *d) { return fl_sweep_read(path, &a->sweep, NULL, d); }
static fl_status read_decisions(const char *path, any *a, fl_diag *d) {
    return fl_decisions_read(path, &a->decisions, d);
}

static void check_bad(fl_status (*reader)(const char *, any *, fl_diag *), size_t size, const bad *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        any a, zero;
        fl_diag d = {0};
        memset(&a, 0xaa, sizeof a);
        memset(&zero, 0, sizeof zero);
        fl_status status = reader(fl_temp_text("bad.csv", rows[i].in), &a, &d);
        FL_CHECK(status == FL_BAD_INPUT && d.line == rows[i].line && d.column == rows[i].column &&
                     strstr(d.message, rows[i].message),
                 "row %zu: %d %lld:%lld: %s", i, status, (long long)d.line, (long long)d.column, d.message);
        FL_CHECK(memcmp(&a, &zero, size) == 0, "row %zu: something was left in the struct", i);
    }
}

/* ---- telemetry ---- */

#define TELEMETRY "# foldline-telemetry 1\n"

static void test_telemetry(void) {
    fl_telemetry t;
    fl_diag d = {0};
    fl_status status =
        fl_telemetry_read(fl_temp_text("t.csv", TELEMETRY "# device: x\nt_ns,device,power_w,sm_mhz\n"
                                                          "0,0,47.5,\n0,host,,\n100,0,48,1410\n50,1,,135"),
                          &t, NULL, &d);
    FL_CHECK(status == FL_OK && t.row_count == 4 && t.signal_count == 2, "%d %lld: %s", status, (long long)d.line,
             d.message);
    if (status != FL_OK)
        return;
    FL_CHECK(t.device[1] == -1 && t.device[3] == 1 && t.t_ns[2] == 100 && t.value[0] == 47.5 && isnan(t.value[1]) &&
                 t.value[5] == 1410 && t.value[7] == 135 && strcmp(t.signal[1], "sm_mhz") == 0,
             "values");
    fl_telemetry_free(&t);
    static const bad ROWS[] = {
        {"t_ns,device,power_w\n0,0,1\n", 1, 1, "expected '# foldline-telemetry 1' first"},
        {TELEMETRY "device,t_ns,power_w\n", 2, 1, "column 1 is 'device', expected 't_ns,device'"},
        {TELEMETRY "t_ns\n", 2, 1, "column 2 is ''"},
        {TELEMETRY "t_ns,device\n", 2, 6, "no signal columns"},
        {TELEMETRY "t_ns,device,a,\n", 2, 15, "not whole"},
        {TELEMETRY "t_ns,device,a,b,a\n", 2, 17, "'a' is given twice"},
        {TELEMETRY "t_ns,device,a\n", 0, 0, "no readings"},
        {TELEMETRY "t_ns,device,a\n0,0,1\n1,0\n", 4, 3, "row has 2 fields, expected 3"},
        {TELEMETRY "t_ns,device,a\n0,0,1\n1,0", 4, 3, "the last row is cut off"},
        {TELEMETRY "t_ns,device,a\n0,0,1,5\n", 3, 7, "row has 4 fields"},
        {TELEMETRY "t_ns,device,a\n0.5,0,1\n", 3, 1, "t_ns is '0.5'"},
        {TELEMETRY "t_ns,device,a\n0,gpu0,1\n", 3, 3, "device (or 'host') is 'gpu0'"},
        {TELEMETRY "t_ns,device,a\n0,-1,1\n", 3, 3, "device (or 'host') is '-1'"},
        {TELEMETRY "t_ns,device,a\n0,0,x\n", 3, 5, "a is 'x', expected a number"},
        {TELEMETRY "t_ns,device,a\n0,0,-inf\n", 3, 5, "a is '-inf', expected a number"},
        {TELEMETRY "t_ns,device,power_w\n0,0,1e9\n", 3, 5, "power_w is 1e+09, expected 0 to 10000"},
        {TELEMETRY "t_ns,device,util_gpu_pct\n0,0,900\n", 3, 5, "util_gpu_pct is 900, expected 0 to 101"},
        {TELEMETRY "t_ns,device,a\nN/A,0,5\n", 3, 1, "t_ns or device is 'N/A'"},
        {TELEMETRY "t_ns,device,a\n5,0,1\n1,1,1\n4,0,1\n", 5, 1, "t_ns 4 is before 5"},
    };
    check_bad(read_telemetry, sizeof t, ROWS, sizeof ROWS / sizeof *ROWS);
}

static void test_telemetry_round_trip(void) {
    name_files();
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t s = seed;
        char *signal[] = {(char[]){"load"}, (char[]){"a,b"}, (char[]){"#c"}};
        int64_t t_ns[50];
        int32_t device[50];
        double value[150];
        fl_telemetry t = {
            .signal = signal, .signal_count = 1 + next(&s) % 3, .t_ns = t_ns, .device = device, .value = value};
        t.row_count = 1 + next(&s) % 50;
        for (size_t i = 0; i < t.row_count; i++) {
            t_ns[i] = (int64_t)i * INT64_C(100000000000000000);
            device[i] = (int32_t)(next(&s) % 5) - 1;
            for (size_t k = 0; k < t.signal_count; k++)
                value[i * t.signal_count + k] = real(&s);
        }
        fl_diag d = {0};
        fl_telemetry u = {0};
        FL_CHECK(fl_telemetry_write(one, &t, &d) == FL_OK && fl_telemetry_read(one, &u, NULL, &d) == FL_OK,
                 "seed %llu: %lld: %s", (unsigned long long)seed, (long long)d.line, d.message);
        FL_CHECK(u.row_count == t.row_count && u.signal_count == t.signal_count &&
                     memcmp(u.t_ns, t_ns, u.row_count * sizeof *t_ns) == 0 &&
                     memcmp(u.device, device, u.row_count * sizeof *device) == 0 &&
                     same(u.value, value, u.row_count * u.signal_count),
                 "seed %llu does not come back", (unsigned long long)seed);
        FL_CHECK(fl_telemetry_write(two, &u, &d) == FL_OK && same_bytes(one, two), "seed %llu: other bytes",
                 (unsigned long long)seed);
        fl_telemetry_free(&u);
    }
}

/* ---- sweep ---- */

#define SWEEP "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"

static void test_sweep(void) {
    fl_sweep s;
    fl_diag d = {0};
    fl_status status = fl_sweep_read(
        fl_temp_text("s.csv", SWEEP "w,,1005,,150,2,100,200.5\nw,k,1005,810,,4,,100\nv,k,,,,0.5,50,\n"), &s, NULL, &d);
    FL_CHECK(status == FL_OK && s.row_count == 3 && s.name_count == 4, "%d %lld: %s", status, (long long)d.line,
             d.message);
    if (status != FL_OK)
        return;
    const fl_sweep_row *r = s.rows;
    FL_CHECK(r[0].power_w == 100 && r[0].energy_j == 200.5 && r[0].power_cap_w == 150 && isnan(r[0].mem_mhz),
             "as measured");
    FL_CHECK(r[1].power_w == 25 && r[1].energy_j == 100, "power is energy over time: %g", r[1].power_w);
    FL_CHECK(r[2].power_w == 50 && r[2].energy_j == 25 && isnan(r[2].sm_mhz), "energy is power times time: %g",
             r[2].energy_j);
    FL_CHECK(r[0].workload == r[1].workload && r[1].kernel == r[2].kernel && s.names[r[0].kernel][0] == '\0' &&
                 strcmp(s.names[r[2].workload], "v") == 0 && r[2].line == 4,
             "names");
    fl_sweep_free(&s);
    FL_CHECK(fl_sweep_read(fl_temp_text("s.csv", "# foldline-sweep 1\n# device: x\n" SWEEP "w,,1,,,1,1,\n"), &s, NULL,
                           &d) == FL_OK &&
                 fl_head_get(&s.head, "device") && s.rows[0].line == 4,
             "with a head: %s", d.message);
    fl_sweep_free(&s);
    FL_CHECK(fl_sweep_read(fl_temp_text("s.csv", "# measured by hand\n" SWEEP "w,,1,,,1,1,\n"), &s, NULL, &d) == FL_OK,
             "with a remark only: %s", d.message);
    fl_sweep_free(&s);
    FL_CHECK(fl_sweep_read(fl_temp_text("s.csv", "time_s,workload,sm_mhz,energy_j,power_w\n2,w,1005,N/A,50\n"), &s,
                           NULL, &d) == FL_OK &&
                 s.names[s.rows[0].kernel][0] == '\0' && isnan(s.rows[0].mem_mhz) && isnan(s.rows[0].power_cap_w) &&
                 s.rows[0].energy_j == 100,
             "without kernel, mem_mhz and power_cap_w: %s", d.message);
    fl_sweep_free(&s);
    FL_CHECK(fl_sweep_read_times(fl_temp_text("s.csv", SWEEP "w,,1005,nan,,2,N/A,\nw,,1100,,,1,80,\n"), &s, NULL, &d) ==
                     FL_OK &&
                 isnan(s.rows[0].power_w) && isnan(s.rows[0].energy_j) && isnan(s.rows[0].mem_mhz) &&
                 s.rows[1].energy_j == 80,
             "times alone: %s", d.message);
    fl_sweep_free(&s);
    FL_CHECK(fl_sweep_read_times(fl_temp_text("s.csv", "workload,sm_mhz,time_s\nw,1005,2\n"), &s, NULL, &d) == FL_OK &&
                 s.rows[0].time_s == 2 && isnan(s.rows[0].power_w),
             "no column of power: %s", d.message);
    fl_sweep_free(&s);
    FL_CHECK(fl_sweep_read(fl_temp_text("s.csv", "workload,sm_mhz,time_s,power_w,util_mem_sd,util_gpu_pct\n"
                                                 "w,1,1,1,3,\nw,2,1,1,N/A,85.5\n"),
                           &s, NULL, &d) == FL_OK &&
                 s.util && !s.activity && s.util[FL_UTIL_MEM_SD] == 3 && isnan(s.util[FL_UTIL_GPU]) &&
                 isnan(s.util[FL_UTILS + FL_UTIL_MEM_SD]) && s.util[FL_UTILS + FL_UTIL_GPU] == 85.5 &&
                 isnan(s.util[FL_UTILS + FL_UTIL_MEM]),
             "utilisations, where they are known: %s", d.message);
    fl_sweep_free(&s);
    static const bad ROWS[] = {
        {SWEEP, 0, 0, "no settings"},
        {"workload,sm_mhz,time_s,power_w,util_gpu_pct\nw,1,1,1,101\n", 2, 9, "util_gpu_pct"},
        {"workload,sm_mhz,time_s,power_w,util_mem_sd\nw,1,1,1,-1\n", 2, 9, "util_mem_sd"},
        {"workload,kernel,mem_mhz,time_s,power_w,energy_j\n", 1, 40, "column 'sm_mhz' is missing"},
        {SWEEP "w,,1,,,1,nan,N/A\n", 2, 10, "neither power_w"},
        {"# foldline-sweep 9\n" SWEEP, 1, 1, "version '9'"},
        {"# foldline-kernels 1\n" SWEEP, 1, 1, "expected 'foldline-sweep 1'"},
        {"workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s\n", 1, 44, "'power_w' and 'energy_j' are missing"},
        {"workload,sm_mhz,time_s,energy_j\nw,1,1,\n", 2, 7, "neither power_w"},
        {"workload,kernel,sm_mhz,mem_mhz,power_cap_w,time,power_w,energy_j\n", 1, 44, "unknown column 'time'"},
        {"workload,kernel,sm_mhz,mem_mhz,power_cap,time_s,power_w,energy_j\n", 1, 32, "expected 'power_cap_w'"},
        {SWEEP ",,1,,,1,1,\n", 2, 1, "workload is empty"},
        {SWEEP "w,,1,,,0,1,\n", 2, 8, "time_s is 0"},
        {SWEEP "w,,1,,,,1,\n", 2, 8, "time_s is empty"},
        {SWEEP "w,,1,,,-2,1,\n", 2, 8, "time_s is '-2'"},
        {SWEEP "w,,1,,,1,,\n", 2, 10, "neither power_w"},
        {SWEEP "w,,0,,,1,1,\n", 2, 4, "sm_mhz is 0"},
        {SWEEP "w,,1 005,,,1,1,\n", 2, 4, "sm_mhz is '1 005'"},
        {SWEEP "w,,1,,,1e308,1e4,\n", 2, 8, "too far apart"},
        {SWEEP "w,,1,,,1,1e300,\n", 2, 10, "above what any node of GPUs draws (10000 W)"},
        {SWEEP "w,,2e9,,,1,1,\n", 2, 4, "as Hz, a factor of 1e+06, it would be 2000"},
        {SWEEP "w,,auto,,,1,1,\n", 2, 4, "sm_mhz is auto"},
        {"workload,sm_mhz,time_s,power_w,energy_j,dram_active_pct\nw,1,1,1,,100.5\n", 2, 10, "dram_active_pct"},
        {"workload,sm_mhz,time_s,power_w,energy_j,fp32_pct\nw,1,1,1,,-1\n", 2, 10, "fp32_pct"},
        {"workload,sm_mhz,time_s,power_w,energy_j,dram_activ_pct\nw,1,1,1,,1\n", 1, 41, "dram_active_pct"},
        {SWEEP "w,,1,,,1,1,\nw,,1,,,1,1\n", 3, 10, "row has 7 fields, expected 8"},
    };
    check_bad(read_sweep, sizeof s, ROWS, sizeof ROWS / sizeof *ROWS);
}

static void test_sweep_round_trip(void) {
    name_files();
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t state = seed;
        char *names[] = {(char[]){"w"}, (char[]){""}, (char[]){"k<1,\"2\">"}};
        fl_sweep_row rows[30];
        double activity[30 * FL_COUNTERS], util[30 * FL_UTILS];
        fl_sweep s = {.names = names, .name_count = 3, .rows = rows, .row_count = 1 + next(&state) % 30};
        s.activity = next(&state) % 2 ? activity : NULL;
        for (size_t i = 0; i < s.row_count * FL_COUNTERS; i++)
            activity[i] = next(&state) % 3 ? (double)(next(&state) % 1001) / 10 : NAN;
        s.util = next(&state) % 2 ? util : NULL;
        for (size_t i = 0; i < s.row_count * FL_UTILS; i++)
            util[i] = next(&state) % 3 ? (double)(next(&state) % 1001) / 10 : NAN;
        for (size_t i = 0; i < s.row_count; i++) {
            rows[i] = (fl_sweep_row){.workload = 0, .kernel = i ? (uint32_t)(1 + next(&state) % 2) : 1};
            rows[i].energy_cv = next(&state) % 2 ? 0.25 : NAN;
            rows[i].ratio = next(&state) % 2 ? 1.5 : NAN;
            rows[i].ratio_cv = next(&state) % 2 ? 0.125 : NAN;
            double *value[] = {&rows[i].sm_mhz, &rows[i].mem_mhz, &rows[i].power_cap_w,
                               &rows[i].time_s, &rows[i].power_w, &rows[i].energy_j};
            for (size_t k = 0; k < 6; k++)
                *value[k] = k < 3 && next(&state) % 2 ? NAN : (double)(1 + next(&state) % 30000) / 7;
            rows[i].energy_j = rows[i].power_w * rows[i].time_s * (0.5 + (double)(next(&state) % 1000) / 1000);
        }
        fl_diag d = {0};
        fl_sweep u = {0};
        FL_CHECK(fl_sweep_write(one, &s, &d) == FL_OK && fl_sweep_read(one, &u, NULL, &d) == FL_OK &&
                     u.row_count == s.row_count,
                 "seed %llu: %s", (unsigned long long)seed, d.message);
        for (size_t i = 0; i < u.row_count; i++)
            FL_CHECK(same(&rows[i].sm_mhz, &u.rows[i].sm_mhz, 6) &&
                         strcmp(names[rows[i].kernel], u.names[u.rows[i].kernel]) == 0,
                     "seed %llu: row %zu does not come back", (unsigned long long)seed, i);
        FL_CHECK(!s.activity == !u.activity && (!s.activity || same(activity, u.activity, s.row_count * FL_COUNTERS)),
                 "seed %llu: activities do not come back", (unsigned long long)seed);
        FL_CHECK(!s.util == !u.util && (!s.util || same(util, u.util, s.row_count * FL_UTILS)),
                 "seed %llu: utilisations do not come back", (unsigned long long)seed);
        FL_CHECK(fl_sweep_write(two, &u, &d) == FL_OK && same_bytes(one, two), "seed %llu: other bytes",
                 (unsigned long long)seed);
        fl_sweep_free(&u);
    }
}

/* ---- targets ---- */

static fl_status read_target(const char *path, any *a, fl_diag *d) { return fl_target_read(path, &a->target, d); }

static void test_target(void) {
    fl_target t;
    fl_diag d = {0};
    const fl_status status = fl_target_read(
        fl_temp_text("t.csv", "# foldline-target 1\n# source: x\nwatts,t_ns\n 180.5 ,0\n0,2500000000\n"), &t, &d);
    FL_CHECK(!status && t.count == 2 && t.t_ns[1] == 2500000000 && t.watts[0] == 180.5 && t.watts[1] == 0 &&
                 fl_head_get(&t.head, "source"),
             "%lld: %s", (long long)d.line, d.message);
    fl_target_free(&t);
    static const bad ROWS[] = {
        {"t_ns,watts\n", 0, 0, "no target"},
        {"time,watts\n0,1\n", 1, 1, "unknown column 'time'"},
        {"t_ns\n0\n", 1, 1, "column 'watts' is missing"},
        {"t_ns,watts\n0,1\n0,2\n", 3, 1, "t_ns is 0 after 0, expected a later time"},
        {"t_ns,watts\n-1,1\n", 2, 1, "t_ns is '-1'"},
        {"t_ns,watts\n0.5,1\n", 2, 1, "t_ns is '0.5'"},
        {"t_ns,watts\n0,-1\n", 2, 3, "watts is '-1'"},
        {"t_ns,watts\n0,\n", 2, 3, "watts is empty"},
        {"t_ns,watts\n0,nan\n", 2, 3, "watts is 'nan'"},
        {"t_ns,watts\n0,1e9\n", 2, 3, "watts is '1e9'"},
        {"t_ns,watts\n0,1,2\n", 2, 5, "fields"},
        {"# foldline-target 2\nt_ns,watts\n0,1\n", 1, 1, "version '2'"},
    };
    check_bad(read_target, sizeof t, ROWS, sizeof ROWS / sizeof *ROWS);
}

/* ---- trajectories ---- */

static fl_status read_trajectory(const char *path, any *a, fl_diag *d) {
    return fl_trajectory_read(path, &a->decisions, d);
}

static void test_trajectory(void) {
    fl_decisions r;
    fl_diag d = {0};
    const fl_status status = fl_trajectory_read(
        fl_temp_text("t.csv",
                     "# foldline-trajectory 1\n# policy: p\nt_s,demand_w,power_w,command_w,sm_mhz,cap_w,set_w\n"
                     "0,180,75.51,300.0,1530,300,\n0.0113,180,75.51,,,,232\n0.5,,80,,1410,,\n"),
        &r, &d);
    FL_CHECK(!status && r.step_count == 3 && r.gpu_count == 1 && r.signal_count == 3 && r.control_count == 1 &&
                 r.t_ns[1] == 11300000 && r.line[2] == 6 && r.delay_ns[0] == -1,
             "%lld: %s", (long long)d.line, d.message);
    if (status)
        return;
    static const double VALUE[] = {180, NAN,   NAN, NAN, 75.51, 1530, 180, NAN, NAN,
                                   NAN, 75.51, NAN, NAN, NAN,   NAN,  NAN, 80,  1410};
    static const double SET[] = {NAN, NAN, NAN, 232, NAN, NAN};
    FL_CHECK(same(r.value, VALUE, 18) && same(r.set, SET, 6), "values");
    FL_CHECK(r.fresh[4] && !r.fresh[10] && r.fresh[16] && r.fresh[0], "power is fresh where it changed");
    fl_decisions_free(&r);
    static const bad ROWS[] = {
        {"t_s,demand_w,power_w,set_w\n", 0, 0, "no rows"},
        {"t_s,demand_w,power_w\n", 1, 14, "column 'set_w' is missing"},
        {"t_s,demand_w,power_w,set_w,error_w\n", 1, 28, "unknown column 'error_w'"},
        {"t_s,demand_w,power_w,set_w\n1,2,3,\n0.5,2,3,\n", 3, 1, "t_s is 0.5 after 1"},
        {"t_s,demand_w,power_w,set_w\n-1,2,3,\n", 2, 1, "t_s is '-1'"},
        {"t_s,demand_w,power_w,set_w\n0,2,1e9,\n", 2, 5, "power_w is '1e9'"},
    };
    check_bad(read_trajectory, sizeof r, ROWS, sizeof ROWS / sizeof *ROWS);
}

/* ---- decisions ---- */

#define DECISIONS "# foldline-decisions 1\n"
#define COLUMNS "step,t_ns,device,util_gpu_pct,power_w,loop_ns,fresh,set_sm_mhz,set_cpu_mhz,delay_ns\n"
#define STEP0 "0,0,host,,,,,,2000,1500\n0,0,0,98,47.5,,*,1410,,\n0,0,1,0,,,,default,,\n"
#define STEP1 "1,200,host,,,300,loop_ns,,,\n1,200,0,97,48,,power_w+util_gpu_pct,,,\n1,200,1,3,9,,power_w,135,,\n"

static void test_decisions(void) {
    fl_decisions r;
    fl_diag d = {0};
    fl_status status = fl_decisions_read(fl_temp_text("d.csv", DECISIONS "# policy: p\n" COLUMNS STEP0 STEP1), &r, &d);
    FL_CHECK(status == FL_OK && r.gpu_count == 2 && r.step_count == 2 && r.signal_count == 3 && r.control_count == 2,
             "%d %lld: %s", status, (long long)d.line, d.message);
    if (status != FL_OK)
        return;
    FL_CHECK(r.torn_line == 0 && r.t_ns[1] == 200 && r.delay_ns[0] == 1500 && r.delay_ns[1] == -1 && r.line[0] == 4 &&
                 r.line[1] == 7,
             "steps");
    FL_CHECK(strcmp(r.control[0], "sm_mhz") == 0 && strcmp(r.signal[2], "loop_ns") == 0, "names");
    static const double VALUE[] = {NAN, NAN, NAN, 98, 47.5, NAN, 0, NAN, NAN, NAN, NAN, 300, 97, 48, NAN, 3, 9, NAN};
    static const bool FRESH[] = {false, false, false, true, true, false, false, false, false,
                                 false, false, true,  true, true, false, false, true,  false};
    static const double SET[] = {NAN, 2000, 1410, NAN, -1, NAN, NAN, NAN, NAN, NAN, 135, NAN};
    FL_CHECK(same(r.value, VALUE, 18), "values");
    FL_CHECK(memcmp(r.fresh, FRESH, sizeof FRESH) == 0, "fresh marks");
    FL_CHECK(same(r.set, SET, 12), "settings");
    fl_decisions_free(&r);
}

#define KERNELS ",lost,kind,name_id,name,grid,block,gpu,stream,start_ns,end_ns"
#define WITH_KERNELS DECISIONS "step,t_ns,device,power_w,fresh,set_sm_mhz,delay_ns" KERNELS "\n"
#define HOST(step, t, lost) step "," t ",host,,,,5," lost ",,,,,,,,,\n"
#define GPUS(step, t) step "," t ",0,4,,,,,,,,,,,,,\n" step "," t ",1,4,,,,,,,,,,,,,\n"
#define KIND(step, t, i, id, name) step "," t ",kind,,,,,," i "," id "," name ",8x1x2,64x1x1,,,,\n"
#define KERNEL(step, t, i, gpu, start, end) step "," t ",kernel,,,,,," i ",,,,," gpu ",7," start "," end "\n"
#define SEEN                                                                                                           \
    HOST("0", "0", "")                                                                                                 \
    KIND("0", "0", "0", "4", "\"f<1,2>\"")                                                                             \
    KERNEL("0", "0", "0", "1", "-3", "9")                                                                              \
    GPUS("0", "0")                                                                                                     \
    HOST("1", "5", "2")                                                                                                \
    KIND("1", "5", "1", "0", "g")                                                                                      \
    KERNEL("1", "5", "1", "0", "2", "") KERNEL("1", "5", "0", "0", "1", "4") GPUS("1", "5")

/* What a policy saw of kernels comes back to the last byte, and only whole steps. */
static void test_decisions_kernels(void) {
    fl_decisions r = {0};
    fl_diag d = {0};
    char in[512], out[512];
    snprintf(in, sizeof in, "%s", fl_temp_text("k.csv", WITH_KERNELS SEEN));
    snprintf(out, sizeof out, "%s", fl_temp_path("k2.csv"));
    fl_status s = fl_decisions_read(in, &r, &d);
    FL_CHECK(!s && r.has_kernels && r.step_count == 2 && r.gpu_count == 2 && r.kind_count == 2 && r.kernel_count == 3,
             "%lld: %s", (long long)d.line, d.message);
    if (s)
        return;
    CU_ASSERT(r.kinds_until[0] == 1 && r.kinds_until[1] == 2 && r.kernels_until[0] == 1 && r.kernels_until[1] == 3);
    CU_ASSERT(r.lost[0] == 0 && r.lost[1] == 2 && !strcmp(r.kind[0].name, "f<1,2>") && r.kind[0].name_id == 4);
    CU_ASSERT(r.kind[1].grid[0] == 8 && r.kind[1].grid[2] == 2 && r.kind[1].block[0] == 64);
    CU_ASSERT(r.kernel[0].start_ns == -3 && r.kernel[0].end_ns == 9 && r.kernel[0].gpu == 1 && r.kernel[0].stream == 7);
    CU_ASSERT(r.kernel[1].end_ns == -1 && r.kernel[1].kind == 1 && r.kernel[2].start_ns == 1);
    CU_ASSERT(fl_decisions_write(out, &r, &d) == FL_OK && same_bytes(in, out));
    fl_decisions_free(&r);
    s = fl_decisions_read(
        fl_temp_text("k.csv", WITH_KERNELS SEEN HOST("2", "7", "") KERNEL("2", "7", "0", "0", "5", "6")), &r, &d);
    FL_CHECK(!s && r.step_count == 2 && r.kernels_until[1] == 3 && r.torn_line == 15, "%s, torn at %lld", d.message,
             (long long)r.torn_line);
    fl_decisions_free(&r);
}

/* A file that breaks off keeps its whole steps. */
static void test_torn(void) {
    static const struct {
        const char *in;
        size_t steps;
        uint32_t gpus;
        int64_t torn;
    } ROWS[] = {
        {DECISIONS COLUMNS STEP0 STEP1, 2, 2, 0},
        {DECISIONS COLUMNS STEP0, 1, 2, 0},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,300,,,,\n", 1, 2, 6},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,300,,,,\n1,200,0,1,1,,,,,\n", 1, 2, 7},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,300,,,,\n1,200,0,1", 1, 2, 7},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,300", 1, 2, 6},
        {DECISIONS COLUMNS STEP0 "1", 1, 2, 6},
        {DECISIONS COLUMNS STEP0 STEP1 "2,400,ho", 2, 2, 9},
        {DECISIONS COLUMNS STEP0 STEP1 "2,400,host,,,,,,,15x", 2, 2, 9},
        {DECISIONS COLUMNS STEP0 STEP1 "2,400,host,,,,,,,", 2, 2, 9}, /* a whole row of a step that is not */
        {DECISIONS "# gpus: 2\n" COLUMNS STEP0 "1,200,host,,,", 1, 2, 7},
        {DECISIONS "# gpus: 2\n" COLUMNS STEP0 "1,200,host,,,300,,,,\n1,200,0,1,1,,,,,\n1,200,1,1,1,,,,,", 2, 2, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_decisions r;
        fl_diag d = {0};
        fl_status status = fl_decisions_read(fl_temp_text("torn.csv", ROWS[i].in), &r, &d);
        FL_CHECK(status == FL_OK && r.step_count == ROWS[i].steps && r.gpu_count == ROWS[i].gpus &&
                     r.torn_line == ROWS[i].torn,
                 "row %zu: %d, %zu steps, %u gpus, torn at %lld; %lld: %s", i, status, r.step_count,
                 (unsigned)r.gpu_count, (long long)r.torn_line, (long long)d.line, d.message);
        FL_CHECK(d.status == FL_OK && d.message[0] == '\0', "row %zu: a message without a failure: %s", i, d.message);
        fl_decisions_free(&r);
    }
}

static void test_bad_decisions(void) {
    static const bad ROWS[] = {
        {DECISIONS COLUMNS, 0, 0, "no complete step"},
        {DECISIONS COLUMNS "0,0,host,,,,,,,\n", 3, 0, "no complete step"},
        {DECISIONS "# gpus: 3\n" COLUMNS STEP0, 6, 0, "no complete step"},
        {DECISIONS "# gpus: 1\n" COLUMNS STEP0, 6, 5, "device 1, expected 'host' first"},
        {DECISIONS "# gpus: none\n" COLUMNS STEP0, 2, 0, "'gpus: none' in the head"},
        {DECISIONS "step,device,t_ns,fresh,delay_ns\n", 2, 6, "column 2 is 'device', expected 't_ns'"},
        {DECISIONS "step,t_ns,device,power_w,delay_ns\n", 2, 26, "column 'fresh' is missing"},
        {DECISIONS "step,t_ns,device,power_w,fresh\n", 2, 26, "column 'delay_ns' is missing"},
        {DECISIONS "step,t_ns,device,power_w,fresh,sm_mhz,delay_ns\n", 2, 32, "expected set_ and the name"},
        {DECISIONS "step,t_ns,device,power_w,fresh,set_,delay_ns\n", 2, 32, "not whole"},
        {DECISIONS "step,t_ns,device,power_w,power_w,fresh,delay_ns\n", 2, 26, "given twice"},
        {DECISIONS "step,t_ns,device,fresh,set_a,set_a,delay_ns\n", 2, 30, "given twice"},
        {DECISIONS COLUMNS "0,0,0,,,,,,,\n", 3, 5, "expected 'host' first"},
        {DECISIONS COLUMNS "0,0,host,,,,,,,\n0,0,1,,,,,,,\n", 4, 5, "device '1', expected 0"},
        {DECISIONS COLUMNS "0,0,host,,,,,,,\n1,0,host,,,,,,,\n", 4, 5, "no GPU row"},
        {DECISIONS COLUMNS "1,0,host,,,,,,,\n", 3, 1, "step is 1, expected 0"},
        {DECISIONS COLUMNS STEP0 "2,200,host,,,,,,,\n", 6, 1, "step is 2, expected 1"},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,,,,,\n1,200,1,,,,,,,\n", 7, 7, "device '1', expected 0"},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,,,,,\n1,201,0,,,,,,,\n", 7, 3, "t_ns is 201, expected 200"},
        {DECISIONS COLUMNS STEP0 STEP1 "2,199,host,,,,,,,\n", 9, 3, "t_ns 199 is before 200"},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,,,,\n", 6, 17, "row has 9 fields, expected 10"},
        {DECISIONS COLUMNS STEP0 "1,200,host,,,,,,,,", 6, 19, "row has 11 fields, expected 10"},
        {DECISIONS COLUMNS "0,0,host,,,,power,,,\n", 3, 13, "fresh names 'power', expected names of signal"},
        {DECISIONS COLUMNS "0,0,host,,,,power_w,,,\n", 3, 13, "'power_w', which has no value"},
        {DECISIONS COLUMNS "0,0,host,,1,,power_w+,,,\n", 3, 14, "fresh ends with '+'"},
        {DECISIONS COLUMNS "0,0,host,,,,,-1,,\n", 3, 14, "sm_mhz is '-1'"},
        {DECISIONS COLUMNS "0,0,host,,,,,off,,\n", 3, 14, "sm_mhz is 'off'"},
        {DECISIONS COLUMNS "0,0,host,,,,,,,-4\n", 3, 16, "delay_ns is '-4'"},
        {DECISIONS COLUMNS "0,0,host,,,,,,,\n0,0,0,,,,,,,5\n", 4, 13, "delay_ns is '5' in a GPU's row"},
        {DECISIONS "step,t_ns,device,fresh,delay_ns,lost\n", 2, 33, "'kind' is missing"},
        {DECISIONS "step,t_ns,device,fresh,delay_ns,kind\n", 2, 33, "is 'kind', expected 'lost'"},
        {DECISIONS "step,t_ns,device,fresh,delay_ns" KERNELS ",x\n", 2, 94, "'x' after 'end_ns'"},
        {DECISIONS COLUMNS "0,0,host,,,,,,,\n0,0,kind,,,,,,,\n", 4, 5, "device (or 'host') is 'kind'"},
        {WITH_KERNELS HOST("0", "0", "-1"), 3, 15, "lost is '-1'"},
        {WITH_KERNELS "0,0,host,,,,5,,0,,,,,,,,\n", 3, 16, "'0' in a row of device 'host'"},
        {WITH_KERNELS KIND("0", "0", "0", "0", "f"), 3, 5, "device (or 'host') is 'kind'"},
        {WITH_KERNELS HOST("0", "0", "") KIND("0", "0", "1", "0", "f"), 4, 15, "kind is 1, expected 0"},
        {WITH_KERNELS HOST("0", "0", "") KIND("1", "0", "0", "0", "f"), 4, 1, "step is 1, expected 0"},
        {WITH_KERNELS HOST("0", "0", "") KIND("0", "1", "0", "0", "f"), 4, 3, "t_ns is 1, expected 0"},
        {WITH_KERNELS HOST("0", "0", "") KERNEL("0", "0", "0", "0", "1", "2"), 4, 17, "kind 0 has no row"},
        {WITH_KERNELS HOST("0", "0", "") "0,0,kind,3,,,,,0,0,f,8x1,1x1x1,,,,\n", 4, 10,
         "'3' in a row of device 'kind'"},
        {WITH_KERNELS HOST("0", "0", "") "0,0,kind,,,,,,0,0,f,8x1,1x1x1,,,,\n", 4, 21, "'8x1', expected three numbers"},
        {WITH_KERNELS HOST("0", "0", "") GPUS("0", "0") HOST("1", "0", "") KIND("1", "0", "0", "0", "f")
             KERNEL("1", "0", "0", "2", "1", "2"),
         8, 23, "gpu is 2 of 2"},
        {DECISIONS COLUMNS "0,0,host,inf,,,,,,\n", 3, 10, "util_gpu_pct is 'inf'"},
    };
    check_bad(read_decisions, sizeof(fl_decisions), ROWS, sizeof ROWS / sizeof *ROWS);
}

static void test_decisions_round_trip(void) {
    name_files();
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t s = seed;
        char *signal[] = {(char[]){"a"}, (char[]){"ab"}, (char[]){"c"}}, *control[] = {(char[]){"x"}, (char[]){"y"}};
        int64_t t_ns[20], delay_ns[20], line[20] = {0};
        double value[20 * 5 * 3], set[20 * 5 * 2];
        bool fresh[20 * 5 * 3];
        fl_decisions r = {.signal = signal,
                          .control = control,
                          .t_ns = t_ns,
                          .delay_ns = delay_ns,
                          .line = line,
                          .value = value,
                          .fresh = fresh,
                          .set = set};
        r.signal_count = next(&s) % 4;
        r.control_count = next(&s) % 3;
        r.gpu_count = (uint32_t)(1 + next(&s) % 4);
        r.step_count = 1 + next(&s) % 20;
        size_t rows = r.step_count * (r.gpu_count + 1);
        for (size_t i = 0; i < r.step_count; i++) {
            t_ns[i] = (i ? t_ns[i - 1] : 0) + (int64_t)(next(&s) % 3);
            delay_ns[i] = (int64_t)(next(&s) % 4) - 1;
        }
        for (size_t i = 0; i < rows * r.signal_count; i++) {
            value[i] = real(&s);
            fresh[i] = next(&s) % 2 && !isnan(value[i]);
        }
        for (size_t i = 0; i < rows * r.control_count; i++)
            set[i] = next(&s) % 3 ? fabs(real(&s)) : -1;
        fl_diag d = {0};
        fl_decisions u = {0};
        fl_status status = fl_decisions_write(one, &r, &d);
        if (status == FL_OK)
            status = fl_decisions_read(one, &u, &d);
        FL_CHECK(status == FL_OK && u.step_count == r.step_count && u.gpu_count == r.gpu_count && u.torn_line == 0,
                 "seed %llu: %d %lld:%lld: %s", (unsigned long long)seed, status, (long long)d.line,
                 (long long)d.column, d.message);
        if (status != FL_OK)
            continue;
        FL_CHECK(memcmp(u.t_ns, t_ns, u.step_count * sizeof *t_ns) == 0 &&
                     memcmp(u.delay_ns, delay_ns, u.step_count * sizeof *t_ns) == 0 &&
                     same(u.value, value, rows * r.signal_count) &&
                     memcmp(u.fresh, fresh, rows * r.signal_count) == 0 && same(u.set, set, rows * r.control_count),
                 "seed %llu does not come back", (unsigned long long)seed);
        FL_CHECK(fl_decisions_write(two, &u, &d) == FL_OK && same_bytes(one, two), "seed %llu: other bytes",
                 (unsigned long long)seed);
        set[0] = -5;
        if (r.control_count)
            FL_CHECK(fl_decisions_write(two, &r, &d) == FL_BAD_INPUT && same_bytes(one, two) && strstr(d.message, "-5"),
                     "a setting of -5 is refused, the old file stays: %s", d.message);
        fl_decisions_free(&u);
    }
}

/* Losses on the way to the disk are told apart from bad input, for every writer. */
static void test_no_folder(void) {
    fl_telemetry t = {0};
    fl_sweep s = {0};
    fl_decisions r = {0};
    fl_diag d = {0};
    FL_CHECK(fl_telemetry_write("/none/x", &t, &d) == FL_IO && fl_sweep_write("/none/x", &s, &d) == FL_IO &&
                 fl_decisions_write("/none/x", &r, &d) == FL_IO && fl_decisions_write("/none/x", &r, NULL) == FL_IO,
             "%s", d.message);
}

static void test_clean_up(void) {
    fl_temp_remove();
    FL_CHECK(fl_temp_folder[0] == '\0', "removed");
}

FL_SUITE("tables", {"telemetry", test_telemetry}, {"telemetry round trip", test_telemetry_round_trip},
         {"sweep", test_sweep}, {"sweep round trip", test_sweep_round_trip}, {"target", test_target},
         {"trajectory", test_trajectory}, {"decisions", test_decisions},
         {"decisions with kernels", test_decisions_kernels}, {"torn", test_torn}, {"bad decisions", test_bad_decisions},
         {"decisions round trip", test_decisions_round_trip}, {"no folder", test_no_folder},
         {"clean up", test_clean_up})
