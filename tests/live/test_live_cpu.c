/* The CPU side on a tree of files made for it: clocks, energy that wraps, settings recorded and put back. */
#include "harness/live/guard/guard.h"
#include "harness/live/guard/inside.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <sys/stat.h>

static char root[256];

static void make_folders(const char *path) {
    char part[600];
    for (const char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        mkdir(part, 0700);
    }
}

static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    make_folders(path);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) {
        perror(path);
        exit(1);
    }
}

static long long get(const char *name) {
    char path[512];
    long long value = -1;
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lld", &value) != 1)
        value = -1;
    if (f)
        fclose(f);
    return value;
}

#define CPUFREQ "sys/devices/system/cpu/cpufreq/"
#define RAPL "sys/class/powercap/intel-rapl:"

static void machine(void) {
    snprintf(root, sizeof root, "%.200s", fl_temp_path("root"));
    mkdir(root, 0700);
    put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: Some CPU\n\nprocessor\t: 1\n");
    put("proc/stat", "cpu 100 0 100 800 0 0 0 0 0 0\n");
    put(CPUFREQ "policy0/scaling_cur_freq", "2000000\n");
    put(CPUFREQ "policy1/scaling_cur_freq", "3000000\n");
    put(CPUFREQ "policy0/scaling_max_freq", "3500000\n");
    put(CPUFREQ "policy1/scaling_max_freq", "3400000\n");
    put(CPUFREQ "policy0/scaling_available_frequencies", "3500000 2500000 1500000\n");
    put(CPUFREQ "boost", "1\n");
    put(RAPL "0/name", "package-0\n");
    put(RAPL "1/name", "package-1\n");
    put(RAPL "2/name", "psys\n"); /* the board, with both packages in it */
    put(RAPL "2/energy_uj", "100000\n");
    put(RAPL "2/max_energy_range_uj", "1000000\n");
    put(RAPL "2/constraint_0_power_limit_uw", "300000000\n");
    put(RAPL "0/energy_uj", "900\n");
    put(RAPL "0/max_energy_range_uj", "1000\n");
    put(RAPL "1/energy_uj", "10\n");
    put(RAPL "1/max_energy_range_uj", "5000\n");
    put(RAPL "0/constraint_0_power_limit_uw", "120000000\n");
    put(RAPL "1/constraint_0_power_limit_uw", "110000000\n");
}

static const uint64_t ALL = FL_BIT(FL_HOST_CPU_MHZ) | FL_BIT(FL_HOST_CPU_UTIL_PCT) | FL_BIT(FL_HOST_CPU_ENERGY_J);

static fl_cpu_host *opened(void) {
    fl_cpu_host *c = NULL;
    fl_diag d = {0};
    machine();
    fl_status s = fl_cpu_host_open(&c, root, ALL, &d);
    FL_CHECK(!s, "%s", d.message);
    return c;
}

static void test_facts_and_clock(void) {
    fl_cpu_host *c = opened();
    fl_host_facts f;
    fl_host_sample s = {0};
    fl_cpu_host_facts(c, &f);
    CU_ASSERT(f.cpu.count == 3 && f.cpu.mhz[0] == 1500 && f.cpu.mhz[2] == 3500 && f.cores == 2);
    CU_ASSERT_STRING_EQUAL(f.name, "Some CPU");
    fl_cpu_host_read(c, &s);
    CU_ASSERT(fl_host_known(&s, FL_HOST_CPU_MHZ) && s.value[FL_HOST_CPU_MHZ] == 2500);
    CU_ASSERT(!fl_host_known(&s, FL_HOST_CPU_UTIL_PCT)); /* it takes two readings */
    put("proc/stat", "cpu 130 0 110 860 0 0 0 0 0 0\n");
    s = (fl_host_sample){0};
    fl_cpu_host_read(c, &s);
    CU_ASSERT(fl_host_known(&s, FL_HOST_CPU_UTIL_PCT) && fabs(s.value[FL_HOST_CPU_UTIL_PCT] - 40) < 1e-9);
    fl_cpu_host_close(c);
}

/* Package 0 wraps at 1000 uJ, package 1 at 5000: each on its own. */
static void test_energy_wraps(void) {
    static const struct {
        const char *first, *second;
        double joules;
    } ROWS[] = {{"900", "10", 910e-6},
                {"950", "60", 1010e-6},
                {"20", "60", 1080e-6},
                {"20", "4990", 6010e-6},
                {"30", "90", 6120e-6}};
    fl_cpu_host *c = opened();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_host_sample s = {0};
        put(RAPL "0/energy_uj", ROWS[i].first);
        put(RAPL "1/energy_uj", ROWS[i].second);
        put(RAPL "2/energy_uj", i % 2 ? "200000\n" : "250000\n");
        fl_cpu_host_read(c, &s);
        FL_CHECK(fabs(s.value[FL_HOST_CPU_ENERGY_J] - ROWS[i].joules) < 1e-12, "row %zu: %.9g J, expected %.9g", i,
                 s.value[FL_HOST_CPU_ENERGY_J], ROWS[i].joules);
    }
    fl_cpu_host_close(c);
}

static void test_set_and_restore(void) {
    fl_cpu_host *c = opened();
    fl_record r = {0};
    fl_diag d = {0};
    const uint64_t drives =
        FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST) | FL_BIT(FL_SET_HOST_CPU_POWER_LIMIT_W);
    CU_ASSERT(!fl_cpu_host_prior(c, drives, &r, &d) && r.count == 5);
    CU_ASSERT(strstr(r.prior[0].key, "boost") != NULL); /* before the clocks that it clips */
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_MHZ, 1500, &r, &d));
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_BOOST, 0, &r, &d));
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_POWER_LIMIT_W, 160, &r, &d));
    CU_ASSERT(get(CPUFREQ "policy0/scaling_max_freq") == 1500000 && get(CPUFREQ "policy1/scaling_max_freq") == 1500000);
    CU_ASSERT(get(CPUFREQ "boost") == 0 && get(RAPL "0/constraint_0_power_limit_uw") == 80000000 &&
              get(RAPL "2/constraint_0_power_limit_uw") == 300000000);
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_MHZ, FL_DEFAULT, &r, &d));
    CU_ASSERT(get(CPUFREQ "policy0/scaling_max_freq") == 3500000 && get(CPUFREQ "policy1/scaling_max_freq") == 3400000);
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_MHZ, 2500, &r, &d));
    CU_ASSERT(!fl_cpu_restore(&r, &d));
    CU_ASSERT(get(CPUFREQ "policy0/scaling_max_freq") == 3500000 && get(CPUFREQ "policy1/scaling_max_freq") == 3400000);
    CU_ASSERT(get(CPUFREQ "boost") == 1 && get(RAPL "1/constraint_0_power_limit_uw") == 110000000);
    /* One file that is gone fails, and the others are restored all the same. */
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, CPUFREQ "policy0/scaling_max_freq");
    put(CPUFREQ "boost", "0\n");
    unlink(path);
    mkdir(path, 0700);
    CU_ASSERT(fl_cpu_restore(&r, &d) != FL_OK && strstr(d.file, "policy0") && get(CPUFREQ "boost") == 1);
    rmdir(path);
    fl_record_free(&r);
    fl_cpu_host_close(c);
}

/* The second file refuses this user: what the first one took makes it more than "nothing changed". */
static void test_refused_half_way(void) {
    static const struct {
        int control;
        double value;
        const char *files[2];
        long long set[2];
    } ROWS[] = {{FL_SET_HOST_CPU_MHZ,
                 1500,
                 {CPUFREQ "policy0/scaling_max_freq", CPUFREQ "policy1/scaling_max_freq"},
                 {1500000, 3400000}},
                {FL_SET_HOST_CPU_POWER_LIMIT_W,
                 160,
                 {RAPL "0/constraint_0_power_limit_uw", RAPL "1/constraint_0_power_limit_uw"},
                 {80000000, 110000000}}};
    const bool root_user = geteuid() == 0;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (int refused = 0; refused < 2; refused++) {
            fl_cpu_host *c = opened();
            fl_record r = {0};
            fl_diag d = {0};
            char path[512];
            CU_ASSERT(!fl_cpu_host_prior(c, FL_BIT(ROWS[i].control), &r, &d));
            chmod(fl_temp_folder, 0755); /* for a user without rights */
            for (int k = 0; k < 2; k++) {
                snprintf(path, sizeof path, "%s/%s", root, ROWS[i].files[k]);
                chmod(path, k == refused ? 0444 : 0666);
                for (char *slash; (slash = strrchr(path, '/')) - path >= (long)strlen(root);) {
                    *slash = '\0';
                    chmod(path, 0755);
                }
            }
            CU_ASSERT(!root_user || !seteuid(65534));
            const fl_status s = fl_cpu_host_set(c, ROWS[i].control, ROWS[i].value, &r, &d);
            CU_ASSERT(!root_user || !seteuid(0));
            FL_CHECK(s == (refused ? FL_HARDWARE : FL_IO) && d.status == s, "row %zu, file %d: status %d, %s", i,
                     refused, s, d.message);
            FL_CHECK(!refused || get(ROWS[i].files[0]) == ROWS[i].set[0], "row %zu: first file not set", i);
            CU_ASSERT(get(ROWS[i].files[1]) == ROWS[i].set[1]);
            for (int k = 0; k < 2; k++) {
                snprintf(path, sizeof path, "%s/%s", root, ROWS[i].files[k]);
                chmod(path, 0600);
            }
            fl_record_free(&r);
            fl_cpu_host_close(c);
        }
}

static void test_intel_turbo_is_inverted(void) {
    fl_cpu_host *c = opened();
    fl_record r = {0};
    fl_diag d = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, CPUFREQ "boost");
    unlink(path);
    put("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    CU_ASSERT(!fl_cpu_host_prior(c, FL_BIT(FL_SET_HOST_CPU_BOOST), &r, &d));
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_BOOST, 0, &r, &d));
    CU_ASSERT(get("sys/devices/system/cpu/intel_pstate/no_turbo") == 1);
    CU_ASSERT(!fl_cpu_host_set(c, FL_SET_HOST_CPU_BOOST, FL_DEFAULT, &r, &d));
    CU_ASSERT(get("sys/devices/system/cpu/intel_pstate/no_turbo") == 0);
    fl_record_free(&r);
    fl_cpu_host_close(c);
}

static void test_bare_machine(void) {
    fl_cpu_host *c = NULL;
    fl_host_sample s = {0};
    fl_record r = {0};
    fl_diag d = {0};
    CU_ASSERT(!fl_cpu_host_open(&c, "/nowhere", ALL, &d));
    fl_cpu_host_read(c, &s);
    CU_ASSERT(s.valid == 0);
    for (int id = 0; id < FL_HOST_CONTROL_COUNT; id++)
        CU_ASSERT(fl_cpu_host_prior(c, FL_BIT(id), &r, &d) == FL_IO);
    fl_record_free(&r);
    fl_cpu_host_close(c);
}

static void remove_tree(void) {
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (*root && system(command))
        perror(root);
    fl_temp_remove();
}

static const fl_case CASES[] = {{"facts and clock", test_facts_and_clock},
                                {"energy wraps", test_energy_wraps},
                                {"set and restore", test_set_and_restore},
                                {"refused half-way", test_refused_half_way},
                                {"Intel's turbo is inverted", test_intel_turbo_is_inverted},
                                {"a bare machine", test_bare_machine}};

FL_SUITE_OF("live_cpu", CASES, .close = remove_tree)
