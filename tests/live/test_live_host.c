/* The live commands on the stub: modes, what is set and what is left, refusals, and that every log replays. */
#include "harness/base/cli/cli.h"
#include "harness/input/policy/policy.h"
#include "harness/live/guard/guard.h"
#include "harness/live/guard/inside.h"
#include "harness/live/host/host.h"
#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/vendor.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/live_stub.h"

#include <dlfcn.h>

#include <math.h>

#define ARG(text) ((char *)(uintptr_t)(text))

static char log_path[512];

static void fresh(unsigned gpus) {
    stub_reset(gpus);
    empty_folder(getenv("FOLDLINE_STATE"));
    rmdir(getenv("FOLDLINE_STATE"));
    snprintf(log_path, sizeof log_path, "%s", fl_temp_path("log.csv"));
    unlink(log_path);
}

static char *text_of(const char *name) {
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path(name), &size);
    return text ? text : strdup("");
}

static bool mentions(const char *name, const char *what) {
    char *text = text_of(name);
    bool found = strstr(text, what) != NULL;
    free(text);
    return found;
}

static bool said(const char *name, const char *what) {
    const bool found = mentions(name, what);
    char *text = text_of(name);
    if (!found)
        printf("\n    %s: %s", name, text);
    free(text);
    return found;
}

static int lines_of(const char *name) {
    char *text = text_of(name);
    int lines = 0;
    for (char *at = text; *at; at++)
        lines += *at == '\n';
    free(text);
    return lines;
}

static bool untouched(unsigned gpus) {
    UNTIL(!left_behind(".lock")); /* a guardian that restored by itself takes its locks away after the records */
    const int records = left_behind(".record"), locks = left_behind(".lock");
    bool ok = records == 0 && locks == 0;
    for (unsigned i = 0; i < gpus; i++)
        ok = ok && stub->gpu[i].limit_mw == 250000 && !stub->gpu[i].sm_max && !stub->gpu[i].mem_max &&
             !stub->gpu[i].sm_min && !stub->gpu[i].mem_min;
    for (unsigned i = 0; !ok && i < gpus; i++)
        printf("\n    %d records, %d locks left; GPU %u: %u mW, SM %u to %u, memory %u to %u", records, locks, i,
               stub->gpu[i].limit_mw, stub->gpu[i].sm_min, stub->gpu[i].sm_max, stub->gpu[i].mem_min,
               stub->gpu[i].mem_max);
    return ok;
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

static void test_shadow_sets_nothing(void) {
    fresh(3);
    int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("assure"), ARG("--for"), ARG("900ms"));
    FL_CHECK(status == 0, "exit status %d", status);
    FL_CHECK(stub->sets == 0, "%u sets in shadow mode", stub->sets);
    FL_CHECK(stub->inits == 1, "%u processes opened the library", stub->inits);
    CU_ASSERT(untouched(3));
    CU_ASSERT(said("out.txt", "none made (shadow)"));
}

static void test_control_sets_and_restores(void) {
    fresh(3);
    stub->gpu[1].limit_mw = 250000;
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("--min-set-ms"), ARG("0"), NULL});
    UNTIL(stub->sets > 3);
    kill(pid, SIGTERM);
    int status = exit_of(pid);
    FL_CHECK(status == 0, "exit status %d", status);
    FL_CHECK(stub->sets > 3, "%u sets in control mode", stub->sets);
    CU_ASSERT(untouched(3));
    CU_ASSERT(said("out.txt", "all restored"));
}

static void test_only_listed_gpus(void) {
    fresh(3);
    int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--control"), ARG("--for"), ARG("300ms"),
                          ARG("--gpus"), ARG("0,GPU-00000000-stub-2"));
    FL_CHECK(status == 0, "exit status %d", status);
    bool others = false;
    for (unsigned i = 0; i < stub->sets && i < STUB_AUDIT_MAX; i++)
        others = others || stub->audit[i].gpu == 1;
    CU_ASSERT(stub->sets > 0 && !others);
    CU_ASSERT(
        FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--gpus"), ARG("7"), ARG("--for"), ARG("1s")) == 2);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--observe"), ARG("--gpus"), ARG("0,9"), ARG("--for"), ARG("200ms")) == 2);
    CU_ASSERT(said("err.txt", "'9' is none of the 3 GPUs"));
    CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--gpus"), ARG("2,GPU-none")) == 2 && said("err.txt", "'GPU-none'"));
    CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--gpus"), ARG("2")) == 0 && said("out.txt", "GPU 2: Stub GPU"));
}

static void test_observe(void) {
    fresh(2);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--observe"), ARG("--for"), ARG("300ms")) == 0);
    CU_ASSERT(said("out.txt", "observed on 2 GPUs") && stub->sets == 0 && untouched(2));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--observe"), ARG("--control")) == 2);
}

static void test_term_ends_in_order(void) {
    fresh(2);
    stub->gpu[0].limit_mw = 211000;
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("-o"), log_path, NULL});
    UNTIL(stub->sets >= 2);
    kill(pid, SIGTERM);
    int status = exit_of(pid);
    FL_CHECK(status == 0, "exit status %d", status);
    CU_ASSERT(stub->gpu[0].limit_mw == 211000 && !stub->gpu[0].sm_max && left_behind(".record") == 0);
}

static void test_second_controller_is_refused(void) {
    fresh(1);
    pid_t pid = foldline_start(
        (char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), NULL});
    UNTIL(stub->sets);
    int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--control"), ARG("--for"), ARG("1s"));
    FL_CHECK(status == 3, "exit status %d", status);
    CU_ASSERT(said("err.txt", "is controlled by process"));
    CU_ASSERT(FOLDLINE(ARG("restore")) == 3);
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 0 && said("out.txt", "controlled by process"));
    kill(pid, SIGKILL);
    exit_of(pid);
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0); /* waits for the guardian */
    CU_ASSERT(!stub->gpu[0].sm_max && left_behind(".record") == 0);
}

/* A state folder that somebody empties, or takes away: what was set is put back all the same. */
static void test_vanished_record(void) {
    for (int folder = 0; folder < 2; folder++) {
        fresh(1);
        stub->gpu[0].limit_mw = 211000;
        pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"),
                                              ARG("fixed:sm_mhz=1200,power_limit_w=150"), ARG("--control"), NULL});
        UNTIL(stub->gpu[0].limit_mw == 150000);
        FL_CHECK(stub->gpu[0].sm_max == 1200 && stub->gpu[0].limit_mw == 150000, "SM %u MHz, %u mW",
                 stub->gpu[0].sm_max, stub->gpu[0].limit_mw);
        empty_folder(getenv("FOLDLINE_STATE"));
        if (folder)
            rmdir(getenv("FOLDLINE_STATE"));
        kill(pid, SIGTERM);
        int status = exit_of(pid);
        FL_CHECK(status == 0 && said("out.txt", "all restored"), "exit status %d", status);
        FL_CHECK(!stub->gpu[0].sm_max && stub->gpu[0].limit_mw == 211000, "left at SM %u MHz, %u mW",
                 stub->gpu[0].sm_max, stub->gpu[0].limit_mw);
    }
}

/* One that sets once and then only sleeps gets a new guardian at once, not at a next set that never comes. */
static void test_set_once_stays_guarded(void) {
    fresh(1);
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"),
                                          ARG("fixed:sm_mhz=1200,period_ms=600000"), ARG("--control"), NULL});
    UNTIL(stub->sets);
    CU_ASSERT_FATAL(stub->inits == 2);
    kill(stub->init_pid[1], SIGKILL);
    UNTIL(stub->inits >= 3);
    FL_CHECK(stub->inits == 3, "%u processes opened the library", stub->inits);
    kill(pid, SIGKILL);
    exit_of(pid);
    UNTIL(!stub->gpu[0].sm_max && !left_behind(".record"));
    FL_CHECK(!stub->gpu[0].sm_max && !left_behind(".record"), "left at %u MHz", stub->gpu[0].sm_max);
}

/* ---- what this machine cannot give --------------------------------------------------------------------------------
 */

#define CONTROL(policy)                                                                                                \
    FOLDLINE(ARG("live"), ARG("--policy"), ARG(policy), ARG("--control"), ARG("--for"), ARG("300ms"))

/* As on a virtual machine: no cpufreq, no RAPL. What is not set needs not be there; what is, is refused before
 * anything is set. */
static void test_missing_controls(void) {
    static const struct {
        const char *policy, *told;
        int status;
    } ROWS[] = {{"fixed:sm_mhz=1200", "cannot be set here: cpu_mhz (no cpufreq driver), cpu_boost (no file for it)", 0},
                {"fixed:sm_mhz=1200,cpu_boost=0", "sets cpu_boost to 0, which cannot be set here: no file for it", 3},
                {"maxfreq", "", 0}};
    setenv("FOLDLINE_ROOT", fl_temp_path("bare"), 1);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fresh(1);
        int status = CONTROL(ROWS[i].policy);
        FL_CHECK(status == ROWS[i].status && said("err.txt", ROWS[i].told), "%s: exit status %d", ROWS[i].policy,
                 status);
        FL_CHECK((stub->sets > 0) == !ROWS[i].status && untouched(1), "%s: %u sets", ROWS[i].policy, stub->sets);
        FL_CHECK(lines_of("err.txt") == (*ROWS[i].told ? 1 + (ROWS[i].status > 0) : 0), "%s: %d lines", ROWS[i].policy,
                 lines_of("err.txt"));
    }
    fresh(1);
    CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--policy"), ARG("fixed")) == 0);
    CU_ASSERT(said("out.txt", "controls    cannot be set here: cpu_mhz (no cpufreq driver), cpu_boost"));
    unsetenv("FOLDLINE_ROOT");
}

/* A limit that the driver does not support stops only who sets it. */
static void test_unsupported_limit(void) {
    fresh(1);
    stub->gpu[0].limit_code = 3;
    CU_ASSERT(CONTROL("fixed:sm_mhz=1200") == 0 && said("err.txt", "power_limit_w (") && stub->sets > 0);
    fresh(1);
    stub->gpu[0].limit_code = 3;
    CU_ASSERT(CONTROL("fixed:sm_mhz=1200,power_limit_w=200") == 3 && stub->sets == 0);
    CU_ASSERT(said("err.txt", "sets power_limit_w to 200, which cannot be set here"));
}

static void test_missing_signals(void) {
    static const struct {
        const char *policy, *told;
        bool control;
        int status;
    } ROWS[] = {
        {"energyucb", "energyucb reads util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns on nvidia", true, 0},
        {"bapm", "needs signals that cannot be read here: cpu_energy_j; it may never decide", false, 0},
        {"cap-dynamic-min",
         "has nothing to decide on here: of the signals it needs (node_power_w) none can be read; --blind", true, 3},
        {"cap-dynamic-min", "cannot be read here: node_power_w; it has nothing to decide on", false, 0},
        {"assure", "", true, 0}};
    setenv("FOLDLINE_ROOT", fl_temp_path("bare"), 1);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fresh(1);
        int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG(ROWS[i].policy), ARG("--for"), ARG("300ms"),
                              ARG(ROWS[i].control ? "--control" : "--seed=1"));
        FL_CHECK(status == ROWS[i].status && said("err.txt", ROWS[i].told), "row %zu: exit status %d", i, status);
        FL_CHECK(!status || !stub->sets, "row %zu: %u sets", i, stub->sets);
        FL_CHECK(*ROWS[i].told || !lines_of("err.txt"), "row %zu: %d lines", i, lines_of("err.txt"));
    }
    fresh(1); /* it reads the meter for its accounts only */
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("cap-static-max"), ARG("--control"), ARG("--blind"),
                       ARG("--for"), ARG("300ms")) == 0 &&
              stub->sets > 0);
    fresh(1);
    CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--policy"), ARG("energyucb")) == 0);
    CU_ASSERT(said("out.txt",
                   "nvidia      util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns\n  signals     all there"));
    CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--policy"), ARG("nosuch")) == 2);
    for (int i = 0; i < 2; i++) /* kernels are counted, or seen one by one: both come from the collector */
        CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--policy"), i ? ARG("depo") : ARG("mf-gpoeo")) == 0 &&
                  said("out.txt", "activity records by the collector\n  signals     all there"));
    unsetenv("FOLDLINE_ROOT");
}

/* Root of a rootless container has every capability, and the driver refuses it. */
static void test_privilege(void) {
    static const struct {
        const char *caps, *map;
        bool capable, all;
    } ROWS[] = {{"000001ffffffffff", "         0          0 4294967295\n", true, true},
                {"000001ffffffffff", "         0       1000          1\n", true, false},
                {"000001ffffffffff", "0 0 65536\n", true, false},
                {"00000000a80425fb", "0 0 4294967295\n", false, true},
                {"0", "", false, false}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char status[512], map[512];
        snprintf(status, sizeof status, "%s", fl_temp_path("status"));
        snprintf(map, sizeof map, "%s", fl_temp_path("uid_map"));
        FILE *f = fopen(status, "w");
        fprintf(f, "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t%s\n", ROWS[i].caps);
        fclose(f);
        f = fopen(map, "w");
        fputs(ROWS[i].map, f);
        fclose(f);
        FL_CHECK(fl_privilege_capable(status) == ROWS[i].capable && fl_privilege_maps_all(map) == ROWS[i].all,
                 "row %zu", i);
    }
    CU_ASSERT(fl_privilege_maps_all("/nonexistent") && !fl_privilege_capable("/nonexistent"));
}

/* ---- profiling ----------------------------------------------------------------------------------------------------
 */

/* Readings 100 ms apart, some of them a little less: each has a value of its own, of two samples over 100 ms apart. */
static void test_profiling_windows(void) {
    static const double MS[] = {0, 100.2, 200.1, 300.3, 399.9, 500, 599.9, 700.1};
    enum { ROWS = sizeof MS / sizeof *MS };
    const uint64_t needs = FL_BIT(FL_GPU_SM_ACTIVE_PCT) | FL_BIT(FL_GPU_DRAM_ACTIVE_PCT);
    fl_gpus g = {0};
    int taken = -1;
    fresh(1);
    stub->gpu[0].gpm = 1;
    CU_ASSERT(!fl_nvml_host_open(&g, NULL, NULL, NULL));
    for (int i = 0; i < ROWS; i++) {
        fl_gpu_sample s;
        CU_ASSERT(!g.back->read(g.self, 0, needs, (int64_t)(MS[i] * 1e6), &s, NULL));
        FL_CHECK(s.valid == (i ? needs : 0) && s.fresh == s.valid, "reading %d: valid %llx, fresh %llx", i,
                 (unsigned long long)s.valid, (unsigned long long)s.fresh);
        const int second = (int)s.value[FL_GPU_SM_ACTIVE_PCT] % 1000, first = (int)s.value[FL_GPU_SM_ACTIVE_PCT] / 1000;
        taken = i == 1 ? second - 1 : taken; /* number of the sample of the first reading */
        if (i)
            FL_CHECK(second - taken == i && MS[i] - MS[first - taken] > 100 && MS[i] - MS[first - taken] < 201,
                     "reading %d: of samples %d and %d", i, first, second);
    }
    fl_gpus_close(&g);
}

/* A profiler that takes the counters away: unknown, not the last value for ever. */
static void test_profiling_fails(void) {
    const uint64_t needs = FL_BIT(FL_GPU_SM_ACTIVE_PCT);
    static const struct {
        int64_t ms;
        int code;
        bool valid;
    } ROWS[] = {{0, 0, false},   {110, 0, true},  {220, 999, false}, {330, 999, false},
                {440, 0, false}, {460, 0, false}, {550, 0, true},    {570, 999, true}}; /* the last: not asked */
    fl_gpus g = {0};
    fresh(1);
    stub->gpu[0].gpm = 1;
    CU_ASSERT(!fl_nvml_host_open(&g, NULL, NULL, NULL));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_gpu_sample s;
        stub->gpu[0].gpm_code = ROWS[i].code;
        CU_ASSERT(!g.back->read(g.self, 0, needs, ROWS[i].ms * 1000000, &s, NULL));
        FL_CHECK((s.valid == needs) == ROWS[i].valid, "reading %zu: valid %llx", i, (unsigned long long)s.valid);
    }
    stub->gpu[0].limit_mw = 214712; /* 214712 * 1e-3 is 214.71200000000002 */
    CU_ASSERT(g.back->limit_w(g.self, 0) == 214.712);
    fl_gpus_close(&g);
}

/* ---- signals that are ignored from the start ----------------------------------------------------------------------
 */

static void test_nohup(void) {
    fresh(1);
    signal(SIGHUP, SIG_IGN);
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"), NULL});
    UNTIL(stub->reads > 4);
    kill(pid, SIGHUP);
    const unsigned reads = stub->reads;
    UNTIL(stub->reads > reads + 4); /* it goes on as if nothing had been */
    FL_CHECK(stub->reads > reads + 4, "%u readings, then %u", reads, stub->reads);
    kill(pid, SIGTERM);
    int status = exit_of(pid);
    FL_CHECK(status == 0, "exit status %d", status);
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--"), ARG("sh"), ARG("-c"),
                       ARG("kill -HUP $$; exit 5")) == 5);
    signal(SIGHUP, SIG_DFL);
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--"), ARG("sh"), ARG("-c"),
                       ARG("kill -HUP $$; exit 5")) == 128 + SIGHUP);
}

/* A parent that waits by sigwait leaves its children what it blocked: TERM must end us all the same. */
static void test_blocked_signals(void) {
    const int number[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        sigset_t blocked, before;
        fresh(1);
        sigemptyset(&blocked);
        sigaddset(&blocked, number[i]);
        sigprocmask(SIG_BLOCK, &blocked, &before);
        pid_t pid = foldline_start(
            (char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), NULL});
        sigprocmask(SIG_SETMASK, &before, NULL);
        UNTIL(stub->sets);
        kill(pid, number[i]);
        const unsigned reads = stub->reads;
        siginfo_t end = {0};
        UNTIL((!waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) && end.si_pid) ||
              stub->reads > reads + 1000);
        FL_CHECK(stub->reads <= reads + 1000, "signal %d does not end it", number[i]);
        kill(pid, SIGKILL);
        int status = exit_of(pid);
        FL_CHECK(status == 0, "signal %d: exit status %d", number[i], status);
        CU_ASSERT(FOLDLINE(ARG("restore")) == 0 && untouched(1));
    }
}

/* ---- what may go wrong ------------------------------------------------------------------------------------------- */

static void test_no_permission(void) {
    fresh(2);
    stub->gpu[0].set_code = stub->gpu[1].set_code = 4;
    int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--control"), ARG("--for"), ARG("2s"));
    FL_CHECK(status == 3, "exit status %d", status);
    CU_ASSERT(said("err.txt", "Insufficient Permissions"));
    FL_CHECK(lines_of("err.txt") == 1, "%d lines", lines_of("err.txt"));
    CU_ASSERT(stub->sets == 0 && untouched(2));
}

/* A limit that was set but may not be read back is no limit that was not set. */
static void test_read_back_refused(void) {
    fresh(1);
    stub->gpu[0].readback_code = 4;
    pid_t pid = fork();
    if (!pid) {
        fl_gpus gpus = {0};
        fl_session *s = NULL;
        const fl_session_options o = {.gpus = &gpus, .gpu_drives = FL_BIT(FL_SET_POWER_LIMIT_W), .check_ns = 20000000};
        if (fl_nvml_host_open(&gpus, NULL, NULL, NULL) || fl_session_open(&s, &o, NULL))
            _exit(1);
        fl_session_beat(s, now_ns() + INT64_C(120000000000), NULL);
        const bool set = fl_session_set(s, 0, FL_SET_POWER_LIMIT_W, 150, NULL) != FL_HARDWARE;
        _exit(set ? 2 : fl_session_close(s, NULL) ? 3 : 4);
    }
    int status = exit_of(pid);
    FL_CHECK(status == 3, "exit status %d", status);
    FL_CHECK(stub->gpu[0].limit_mw == 250000, "left at %u mW", stub->gpu[0].limit_mw);
    FL_CHECK(left_behind(".record") == 1, "%d records", left_behind(".record"));
    stub->gpu[0].readback_code = 0;
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0 && untouched(1)); /* waits for the guardian */
}

static void test_no_library(void) {
    fresh(1);
    setenv("FOLDLINE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    const char *const commands[] = {"live", "record", "doctor"};
    for (size_t i = 0; i < 3; i++) {
        int status = i == 0   ? FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--control"))
                     : i == 1 ? FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--"), ARG("true"))
                              : FOLDLINE(ARG("doctor"));
        FL_CHECK(status == 3, "%s: exit status %d", commands[i], status);
        CU_ASSERT(said("err.txt", "no NVIDIA management library"));
        FL_CHECK(lines_of("err.txt") == 1, "%s: %d lines", commands[i], lines_of("err.txt"));
    }
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
    CU_ASSERT(untouched(1) && access(getenv("FOLDLINE_STATE"), F_OK) != 0 && access(log_path, F_OK) != 0);
    fresh(1);
    stub->init_code = 9;
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--control")) == 3);
    CU_ASSERT(said("err.txt", "Driver Not Loaded"));
}

static void test_gpu_lost(void) {
    fresh(2);
    stub->lost_after_sets = 3;
    int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), ARG("--for"), ARG("120s"),
                          ARG("--min-set-ms"), ARG("0"));
    FL_CHECK(status == 3, "exit status %d", status);
    CU_ASSERT(said("err.txt", "GPU is lost"));
    CU_ASSERT(!stub->gpu[1].sm_max && stub->gpu[1].limit_mw == 250000); /* what can be restored is */
    FL_CHECK(left_behind(".record") == 1, "%d records", left_behind(".record"));
    stub->lost_after_sets = 0;
    stub->gpu[0].code = 0; /* it comes back: the record is still there */
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0);
    CU_ASSERT(untouched(2));
}

/* Both processes are killed, then one GPU is lost: whatever is to be done with the others is done. */
static void test_lost_gpu_holds_up_no_other(void) {
    fresh(3);
    pid_t pid = foldline_start(
        (char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), NULL});
    UNTIL(stub->gpu[0].sm_max && stub->gpu[1].sm_max && stub->gpu[2].sm_max);
    CU_ASSERT_FATAL(stub->inits == 2);
    hold_still(pid);
    kill(stub->init_pid[1], SIGKILL);
    kill(pid, SIGKILL);
    exit_of(pid);
    stub->gpu[0].code = 15;
    CU_ASSERT(FOLDLINE(ARG("restore")) == 3 && said("err.txt", "GPU is lost"));
    CU_ASSERT(!stub->gpu[1].sm_max && !stub->gpu[2].sm_max && left_behind(".record") == 1);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--observe"), ARG("--gpus"), ARG("1,2"), ARG("--for"), ARG("200ms")) == 0);
    const char *const meant[] = {"all", "0", "GPU-00000000-stub-0", "1,0"};
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        int status = FOLDLINE(ARG("live"), ARG("--observe"), ARG("--gpus"), ARG(meant[i]), ARG("--for"), ARG("1s"));
        FL_CHECK(status == 3 && said("err.txt", "GPU is lost"), "--gpus %s: exit status %d", meant[i], status);
    }
    for (int code = 4; code <= 15; code += 11) { /* a device that a container was not given, a lost one */
        stub->gpu[0].code = code;
        for (int i = 0; i < 2; i++) {
            int status = i ? FOLDLINE(ARG("live"), ARG("--observe"), ARG("--for"), ARG("1s"))
                           : FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--for"), ARG("1s"));
            FL_CHECK(status == 3 && said("err.txt", "GPU 0: looking for it: ") &&
                         said("err.txt", "(--gpus LIST with the others leaves it out)") &&
                         !mentions("err.txt", "AMD") && !mentions("err.txt", "Level Zero"),
                     "code %d: exit status %d", code, status);
        }
    }
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 3 && said("err.txt", "GPU is lost"));
    CU_ASSERT(said("out.txt", "GPU 1: Stub GPU") && said("out.txt", "GPU 2: Stub GPU"));
    CU_ASSERT(FOLDLINE(ARG("doctor"), ARG("--gpus"), ARG("2")) == 0);
    stub->gpu[0].code = 0;
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0 && untouched(3));
}

static void test_frozen_sensor(void) {
    fresh(1);
    stub->gpu[0].frozen = 1;
    int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), ARG("--for"), ARG("120s"),
                          ARG("--frozen-s"), ARG("0.5"));
    FL_CHECK(status == 3, "exit status %d", status);
    CU_ASSERT(said("err.txt", "stood still"));
    CU_ASSERT(untouched(1));
}

/* ---- the loop's own time ------------------------------------------------------------------------------------------
 */

typedef struct hand_clock { /* moved by hand: 1 ms a step, but 35 ms in every tenth */
    int64_t t_ns;
    int steps;
    unsigned moves; /* of the energy counter, in each step */
    int64_t at[64];
} hand_clock;

static int64_t hand_now(void *user) { return ((hand_clock *)user)->t_ns; }
static void hand_sleep(void *user, int64_t until) { ((hand_clock *)user)->t_ns = until; }

static fl_status hand_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    hand_clock *c = user;
    (void)decision;
    (void)d;
    if (c->steps < 64)
        c->at[c->steps] = sample->time_ns;
    stub->gpu[0].counter += c->moves;
    c->t_ns += ++c->steps % 10 ? 1000000 : 35000000;
    return FL_OK;
}

static void test_late_steps(void) {
    hand_clock c = {.t_ns = 5000000000};
    fl_gpus gpus = {0};
    fl_diag d = {0};
    fl_live_result r;
    fresh(1);
    CU_ASSERT(!fl_nvml_host_open(&gpus, NULL, NULL, &d));
    const fl_live_options o = {.mode = FL_LIVE_OBSERVE,
                               .gpus = &gpus,
                               .gpu_needs = FL_BIT(FL_GPU_POWER_W),
                               .period_ns = 10000000,
                               .for_ns = 500000000,
                               .clock = {hand_now, hand_sleep, &c},
                               .on_step = hand_step,
                               .user = &c};
    CU_ASSERT(!fl_live(&o, &r, &d));
    FL_CHECK(r.steps == 40 && r.late == 4, "%llu steps, %llu late", (unsigned long long)r.steps,
             (unsigned long long)r.late);
    CU_ASSERT(r.longest_ns == 35000000 && r.lasted_ns == 500000000);
    CU_ASSERT(c.at[9] == 90000000 && c.at[10] == 125000000 && c.at[11] == 135000000); /* at once, then 10 ms apart */
    fl_gpus_close(&gpus);
}

/* Energy counters are slow to read: where nobody needs one, it is read as often as a frozen one must be found. */
static void test_energy_reads(void) {
    static const struct {
        uint64_t needs;
        int64_t frozen_ns;
        unsigned moves, reads;
    } rows[] = {{FL_BIT(FL_GPU_POWER_W), 0, 1, 0},
                {FL_BIT(FL_GPU_POWER_W), 1600000000, 0, 4}, /* each 100 ms of 500; the steps are 10 and 35 ms apart */
                {FL_BIT(FL_GPU_POWER_W), 1600000000, 1, 4},
                {FL_BIT(FL_GPU_POWER_W), 16000000000, 1, 1},
                {FL_BIT(FL_GPU_ENERGY_J), 1600000000, 1, 40},
                {FL_BIT(FL_GPU_ENERGY_J), 0, 1, 40}}; /* each step */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hand_clock c = {.t_ns = 5000000000, .moves = rows[i].moves};
        fl_gpus gpus = {0};
        fl_diag d = {0};
        fl_live_result r;
        fresh(1);
        stub->gpu[0].counter = 1;
        CU_ASSERT(!fl_nvml_host_open(&gpus, NULL, NULL, &d));
        const unsigned before = stub->energy_reads;
        const fl_live_options o = {.mode = FL_LIVE_OBSERVE,
                                   .gpus = &gpus,
                                   .gpu_needs = rows[i].needs,
                                   .period_ns = 10000000,
                                   .for_ns = 500000000,
                                   .frozen_ns = rows[i].frozen_ns,
                                   .clock = {hand_now, hand_sleep, &c},
                                   .on_step = hand_step,
                                   .user = &c};
        CU_ASSERT(!fl_live(&o, &r, &d));
        FL_CHECK(r.steps == 40 && stub->energy_reads - before == rows[i].reads, "row %zu: %llu steps, %u readings", i,
                 (unsigned long long)r.steps, stub->energy_reads - before);
        fl_gpus_close(&gpus);
    }
}

static void test_bad_usage(void) {
    fresh(1);
    CU_ASSERT(FOLDLINE(ARG("live")) == 2);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("assur")) == 2 && said("err.txt", "did you mean 'assure'"));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--for"), ARG("soon")) == 2);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("mfgpoeo")) != 0);
    setenv("FOLDLINE_NVML", "/nowhere/libnvidia-ml.so.1", 1); /* the command line comes first */
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("assur")) == 2 && said("err.txt", "did you mean 'assure'"));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("maxfreq"), ARG("--for"), ARG("10x")) == 2);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("fixed"), ARG("--set"), ARG("sm_mzh=1200")) == 2 &&
              said("err.txt", "did you mean 'sm_mhz'?"));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("fixed:sm_mhz=x")) == 2 && said("err.txt", "sm_mhz"));
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--for"), ARG("10x")) == 2);
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
}

/* ---- a power target ---------------------------------------------------------------------------------------------- */

/* The file is read again when it changes; wrong contents leave the old rows, and without the file the default holds. */
static void test_target(void) {
    char target[512];
    fresh(1);
    snprintf(target, sizeof target, "%s", fl_temp_text("target.csv", "t_ns,watts\n0,180\n"));
    const pid_t pid = foldline_start((char *[]){
        ARG("foldline"), ARG("live"), ARG("--policy"), ARG("gridpilot:kp=0,ki=0,kd=0,interval_s=0,period_ms=20"),
        ARG("--control"), ARG("--min-set-ms"), ARG("0"), ARG("--target"), target, ARG("-o"), log_path, NULL});
    UNTIL(stub->gpu[0].limit_mw == 180000);
    fl_temp_text("target.csv", "t_ns,watts\n0,170\n40000000,190.25\n");
    UNTIL(stub->gpu[0].limit_mw == 190000);
    fl_temp_text("target.csv", "t_ns,watts\n0,many\n");
    UNTIL(mentions("err.txt", "watts is 'many'"));
    FL_CHECK(stub->gpu[0].limit_mw == 190000, "the rows before hold: %u mW", stub->gpu[0].limit_mw);
    unlink(target);
    UNTIL(stub->gpu[0].limit_mw == 250000);
    kill(pid, SIGTERM);
    FL_CHECK(exit_of(pid) == 0 && said("err.txt", "is gone"), "ended");
    CU_ASSERT(untouched(1));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("gridpilot"), ARG("--target"), target) == 2 &&
              said("err.txt", target));
}

/* ---- replay ------------------------------------------------------------------------------------------------------ */

static pid_t start_cuda_program(const char *rings) {
    pid_t pid = fork();
    if (pid)
        return pid;
    setenv("FOLDLINE_RINGS", rings, 1);
    setenv("CUDA_INJECTION64_PATH", FL_COLLECTOR, 1);
    execl("/proc/self/exe", "cuda", "cuda-program", NULL);
    _exit(126);
}

/* Runs a policy with a log; with programs, from its first step on until all their records are taken. */
static int run_logged(const char *policy, bool control, const char *rings, int programs) {
    const char *mode = control ? "--control" : "--seed=1";
    if (!rings)
        return FOLDLINE(ARG("live"), ARG("--policy"), ARG(policy), ARG("--for"), ARG("1200ms"), ARG("-o"), log_path,
                        ARG(mode));
    pid_t program[2],
        pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG(policy), ARG("-o"), log_path,
                                        ARG(mode), ARG("--rings"), ARG(rings), NULL});
    UNTIL(stub->reads > 8); /* two GPUs: the first step is in the log */
    for (int i = 0; i < programs; i++)
        program[i] = start_cuda_program(rings);
    for (int i = 0; i < programs; i++)
        FL_CHECK(exit_of(program[i]) == 0, "program %d", i);
    UNTIL(!files_in(rings, ".ring"));
    kill(pid, SIGTERM);
    return exit_of(pid);
}

/* How many kernels are in its log, which replays. */
static size_t replays(const char *policy, bool control, const char *rings, int programs) {
    fl_decisions log = {0};
    fl_facts facts = {0};
    fl_diag d = {0};
    fl_replay_result r = {0};
    fl_instance *in = NULL;
    fl_spec spec = {0};
    fl_texts set = {0};
    char *owned[96];
    size_t owned_count = 0;
    fresh(2);
    int status = run_logged(policy, control, rings, programs);
    FL_CHECK(status == 0, "%s: exit status %d", policy, status);
    fl_status s = fl_decisions_read(log_path, &log, &d);
    for (size_t i = 0; !s && i < log.head.count && owned_count < 96; i++)
        if (!strncmp(log.head.entry[i].key, "set.", 4) &&
            asprintf(&owned[owned_count], "%s=%s", log.head.entry[i].key + 4, log.head.entry[i].value) > 0)
            s = fl_texts_add(&set, owned[owned_count++], &d);
    if (!s)
        s = fl_facts_from_head(&log.head, log_path, log.gpu_count, 1, &facts, &d);
    if (!s)
        s = fl_spec_open_set(policy, &set, &spec, &d);
    if (!s) {
        const fl_instance_options o = {.policy = spec.policy,
                                       .facts = &facts,
                                       .layer = &spec.layer,
                                       .layer_count = 1,
                                       .min_set_interval_ns =
                                           (int64_t)(strtod(fl_head_get(&log.head, "min_set_ms"), NULL) * 1e6)};
        s = fl_instance_open(&in, &o, &d);
    }
    if (!s)
        s = fl_replay(&log, log_path, in, &r, &d);
    FL_CHECK(!s, "%s: %s", policy, d.message);
    FL_CHECK(r.differ == 0, "%s: %llu of %llu decisions differ, first in step %llu: %s %g, here %g", policy,
             (unsigned long long)r.differ, (unsigned long long)r.decisions, (unsigned long long)r.step, r.control,
             r.recorded, r.decided);
    FL_CHECK(r.steps > 0 && log.gpu_count == 2, "%s: %llu steps", policy, (unsigned long long)r.steps);
    const size_t kernels = log.kernel_count;
    fl_instance_close(in);
    fl_spec_free(&spec);
    fl_facts_head_free(&facts);
    fl_decisions_free(&log);
    fl_texts_free(&set);
    for (size_t i = 0; i < owned_count; i++)
        free(owned[i]);
    return kernels;
}

static void test_logs_replay(void) {
    const char *const policies[] = {"maxfreq", "assure",    "utilizscale",       "sweetspot",
                                    "random",  "energyucb", "fixed:sm_mhz=1200", "skeleton"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        replays(policies[i], i % 2, NULL, 0);
}

/* Two programs with the collector; what the policy saw of their kernels is in the log. */
static void test_logs_with_kernels_replay(void) {
    char rings[512];
    fresh(2);
    snprintf(rings, sizeof rings, "%s", fl_temp_path("rings"));
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    setenv("FOLDLINE_STUB_UUIDS", "1", 1);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("mf-gpoeo")) == 3 && said("err.txt", "give --rings DIR"));
    const size_t kernels = replays("tightrope:signal=records,records_cost=0", true, rings, 2);
    FL_CHECK(kernels == 1000, "%zu kernels of 1000 in the log", kernels);
    CU_ASSERT(replays("assure", false, rings, 1) == 0); /* is shown none, and none is in its log */
    CU_ASSERT(replays("skeleton", false, rings, 1) == 0);
    empty_folder(rings);
    rmdir(rings);
    unsetenv("FOLDLINE_CUPTI");
    unsetenv("FOLDLINE_STUB_UUIDS");
}

/* A signal of a GPU in the log: the last value, and how many steps do not know it. */
static double last_of(const char *signal, uint32_t gpu, size_t *unknown) {
    fl_decisions log = {0};
    double last = (double)NAN;
    size_t column = 0;
    *unknown = 0;
    CU_ASSERT(!fl_decisions_read(log_path, &log, NULL));
    while (column < log.signal_count && strcmp(log.signal[column], signal) != 0)
        column++;
    for (size_t i = 0; column < log.signal_count && i < log.step_count; i++) {
        last = log.value[(i * (log.gpu_count + 1) + gpu + 1) * log.signal_count + column];
        *unknown += isnan(last) ? 1 : 0;
    }
    fl_decisions_free(&log);
    return last;
}

/* No library counts kernels: the records do, for a policy that takes no records too. */
static void test_kernels_are_counted(void) {
    char rings[512];
    size_t unknown;
    fresh(2);
    snprintf(rings, sizeof rings, "%s", fl_temp_path("rings"));
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    setenv("FOLDLINE_STUB_UUIDS", "1", 1);
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("depo")) == 3 && said("err.txt", "give --rings DIR"));
    CU_ASSERT(replays("depo", true, rings, 1) == 0);
    const double first = last_of("kernels", 0, &unknown);
    FL_CHECK(first == 500 && unknown > 0, "%g kernels, unknown in %zu steps", first, unknown);
    CU_ASSERT(last_of("kernels", 1, &unknown) == 0);
    empty_folder(rings);
    rmdir(rings);
    unsetenv("FOLDLINE_CUPTI");
    unsetenv("FOLDLINE_STUB_UUIDS");
}

/* A killed run leaves a log that reads, but for its last step. */
static void test_killed_log_reads(void) {
    fl_decisions log = {0};
    fl_diag d = {0};
    fresh(2);
    pid_t pid = foldline_start(
        (char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"), ARG("-o"), log_path, NULL});
    UNTIL(stub->reads > 16); /* two in each step, and two more now and then */
    kill(pid, SIGKILL);
    exit_of(pid);
    fl_status s = fl_decisions_read(log_path, &log, &d);
    FL_CHECK(!s && log.step_count > 1, "%s", d.message);
    fl_decisions_free(&log);
}

/* ---- record and doctor ------------------------------------------------------------------------------------------- */

static void program_of(const char *path, long long *start, long long *end, int *status) {
    fl_telemetry t = {0};
    fl_diag d = {0};
    *start = *end = *status = -1;
    fl_status s = fl_telemetry_read(path, &t, NULL, &d);
    const char *text = s ? NULL : fl_head_get(&t.head, "program");
    FL_CHECK(text && sscanf(text, "%lld to %lld ns, exit status %d", start, end, status) == 3, "%s",
             text ? text : d.message);
    if (!s)
        fl_telemetry_free(&t);
}

static void test_record_a_program(void) {
    fl_telemetry t = {0};
    fl_diag d = {0};
    long long start, end;
    int told;
    fresh(2);
    int status = FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--every-ms"), ARG("50"), ARG("--"), ARG("sh"),
                          ARG("-c"), ARG("sleep 0.42; exit 7"));
    FL_CHECK(status == 7, "exit status %d", status);
    fl_status s = fl_telemetry_read(log_path, &t, NULL, &d);
    FL_CHECK(!s, "%s", d.message);
    if (s)
        return;
    program_of(log_path, &start, &end, &told);
    CU_ASSERT(told == 7);
    const int64_t first = t.t_ns[0], last = t.t_ns[t.row_count - 1];
    FL_CHECK(first == start && last == end, "readings from %lld to %lld, the program %lld to %lld", (long long)first,
             (long long)last, start, end);
    FL_CHECK(last - first >= 420000000, "it lasted %lld ns", (long long)(last - first));
    bool power = false;
    for (size_t i = 0; i < t.signal_count; i++)
        power = power || !strcmp(t.signal[i], "power_w");
    CU_ASSERT(power && stub->sets == 0);
    CU_ASSERT(fl_head_get(&t.head, "program") != NULL);
    fl_telemetry_free(&t);
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--"), ARG("/no/such/program")) == 127);
}

/* Whatever ends the recording, the program has ended too, and what is written of it is true. */
static void test_record_outlives_its_program(void) {
    static const struct {
        const char *lasts, *sleeps;
        int signal; /* to us, once the program runs; -1: the GPU is lost then */
        int status, told;
        double at_least_s;
    } ROWS[] = {{"300ms", "7.77", 0, 128 + SIGTERM, 128 + SIGTERM, 0.3},
                {"120s", "7.77", SIGTERM, 128 + SIGTERM, 128 + SIGTERM, 0},
                {"120s", "7.77", SIGINT, 128 + SIGINT, 128 + SIGINT, 0},
                {"120s", "0.77", -1, 3, 0, 0.77}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        long long start, end;
        int told;
        char mark[512], program[600];
        fresh(1);
        snprintf(mark, sizeof mark, "%s", fl_temp_path("begun"));
        snprintf(program, sizeof program, "touch '%s'; exec sleep %s", mark, ROWS[i].sleeps);
        unlink(mark);
        pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("record"), ARG("-o"), log_path, ARG("--for"),
                                              ARG(ROWS[i].lasts), ARG("--"), ARG("sh"), ARG("-c"), program, NULL});
        UNTIL(!access(mark, F_OK));
        if (ROWS[i].signal > 0)
            kill(pid, ROWS[i].signal);
        else if (ROWS[i].signal)
            stub->gpu[0].code = 15;
        const int status = exit_of(pid);
        FL_CHECK(status == ROWS[i].status, "row %zu: exit status %d", i, status);
        program_of(log_path, &start, &end, &told);
        FL_CHECK(told == ROWS[i].told, "row %zu: exit status %d is told", i, told); /* 0: it slept to its own end */
        const double lasted = (double)(end - start) * 1e-9;
        FL_CHECK(start >= 0 && lasted >= ROWS[i].at_least_s, "row %zu: it lasted %g s", i, lasted);
    }
}

/* An output that cannot be written costs no program's life. */
static void test_record_tries_outputs_first(void) {
    char mark[512];
    fresh(1);
    snprintf(mark, sizeof mark, "%s", fl_temp_path("mark"));
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), ARG("/nonexistent/t.csv"), ARG("--"), ARG("touch"), mark) == 3);
    CU_ASSERT(said("err.txt", "/nonexistent/t.csv: cannot create") && access(mark, F_OK) != 0);
    setenv("FOLDLINE_COLLECTOR", FL_COLLECTOR, 1);
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--kernels"), ARG("/nonexistent/k.csv"), ARG("--"),
                       ARG("touch"), mark) == 3);
    unsetenv("FOLDLINE_COLLECTOR");
    CU_ASSERT(said("err.txt", "/nonexistent/k.csv: cannot create") && access(mark, F_OK) != 0);
    CU_ASSERT(access(log_path, F_OK) != 0);
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--"), ARG("touch"), mark) == 0 &&
              access(mark, F_OK) == 0);
}

/* Stands for a CUDA program: loads what CUDA_INJECTION64_PATH names, as CUDA does, and runs kernels. */
static int cuda_program(uint32_t device, const char *again) {
    void *cupti = dlopen(FL_STUB_CUPTI, RTLD_NOW), *injected = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
    int (*start)(void) = NULL;
    void (*run)(const char *, uint32_t, uint32_t, uint32_t) = NULL;
    void (*run_for)(const char *, uint32_t, uint32_t, uint32_t, uint64_t) = NULL;
    if (!cupti || !injected)
        return 9;
    *(void **)(void *)&start = dlsym(injected, "InitializeInjection");
    *(void **)(void *)&run = dlsym(cupti, "stub_cupti_kernel");
    *(void **)(void *)&run_for = dlsym(cupti, "stub_cupti_kernel_of");
    if (!start || !run || !run_for || start() != 1)
        return 8;
    const bool waits = again && !strcmp(again, "waits"), early = again && !strcmp(again, "early");
    for (int i = 0; early && i < 500; i++) { /* each begins up to 15 us before the end of the one before it */
        run_for("sgemm", device, 7, 16, 100000);
        for (const int64_t end = now_ns() + 85000; now_ns() < end;) {
        }
    }
    if (early)
        return 0;
    for (int i = 0; i < 500; i++) {
        run(i % 2 ? "sgemm" : "axpy", device, 7, 16);
        if (!waits)
            wait_us(200);
        for (const int64_t end = now_ns() + 2000; now_ns() < end;) { /* kernels of one stream do not overlap */
        }
    }
    if (waits)
        pause();
    if (!again)
        return 0;
    int (*flush)(uint32_t) = NULL; /* the records are out when another image takes over */
    *(void **)(void *)&flush = dlsym(cupti, "cuptiActivityFlushAll");
    return flush && !flush(0) ? execl("/proc/self/exe", "cuda", "cuda-program", "0", NULL) : 7;
}

typedef struct recording { /* of a CUDA program's kernels */
    const char *gpus, *device, *again, *every_ms, *lasts;
    int status;
} recording;

static const char *collector = FL_COLLECTOR;

/* *t stays empty where no trace was written. */
static void record_kernels(const recording *r, fl_kernel_trace *t) {
    char trace[512];
    fl_diag d = {0};
    snprintf(trace, sizeof trace, "%s", fl_temp_path("kernels.csv"));
    unlink(trace);
    setenv("FOLDLINE_COLLECTOR", collector, 1);
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    setenv("FOLDLINE_STUB_UUIDS", "1", 1);
    const int status = FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--gpus"), ARG(r->gpus), ARG("--kernels"),
                                trace, ARG("--every-ms"), ARG(r->every_ms), ARG("--for"), ARG(r->lasts), ARG("--"),
                                ARG("/proc/self/exe"), ARG("cuda-program"), ARG(r->device), ARG(r->again));
    FL_CHECK(status == r->status, "--gpus %s, device %s: exit status %d", r->gpus, r->device, status);
    *t = (fl_kernel_trace){0};
    if (!access(trace, F_OK))
        FL_CHECK(!fl_kernels_read(trace, t, NULL, &d), "%s", d.message);
    unsetenv("FOLDLINE_COLLECTOR");
    unsetenv("FOLDLINE_CUPTI");
    unsetenv("FOLDLINE_STUB_UUIDS");
}

static void test_record_kernels(void) {
    fl_kernel_trace t;
    fresh(1);
    record_kernels(&(recording){"all", "0", NULL, "100", "1h", 0}, &t);
    said("err.txt", "readings");
    FL_CHECK(t.op_count == 500 && t.kind_count == 2 && t.name_count == 2, "%zu kernels, %zu kinds", t.op_count,
             t.kind_count);
    const char *lost = fl_head_get(&t.head, "lost");
    CU_ASSERT(lost && !strcmp(lost, "0"));
    FL_CHECK(fl_head_get(&t.head, "sm_mhz") != NULL && said("err.txt", "500 of 500 kernels have an SM clock"),
             "no clock of the kernels");
    fl_kernel_trace_free(&t);
    record_kernels(&(recording){"all", "0", "early", "100", "1h", 0}, &t); /* it reads what was written */
    FL_CHECK(t.op_count == 500 && fl_head_get(&t.head, "dependent launches") && said("err.txt", "dependent launches"),
             "%zu kernels", t.op_count);
    fl_kernel_trace_free(&t);
    setenv("FOLDLINE_COLLECTOR", FL_COLLECTOR, 1);
    CU_ASSERT(FOLDLINE(ARG("record"), ARG("-o"), log_path, ARG("--kernels"), ARG(fl_temp_path("kernels.csv")),
                       ARG("--"), ARG("true")) == 3);
    unsetenv("FOLDLINE_COLLECTOR");
    CU_ASSERT(said("err.txt", "no kernel was recorded") && said("err.txt", "FOLDLINE_CUPTI="));
}

/* Folders of 100 letters each below the temporary folder: so deep that a path in them has about that length. */
static const char *deep_folder(size_t length) {
    static char path[8192], name[101];
    memset(name, 'x', 100);
    snprintf(path, sizeof path, "%s", fl_temp_path("deep"));
    while (mkdir(path, 0700), strlen(path) + 101 < length)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
    return path;
}

/* A long path is used whole, or refused; never cut. */
static void test_record_long_paths(void) {
    char before[512], command[9000], link[4096];
    const char *base = getenv("TMPDIR");
    fl_kernel_trace t;
    snprintf(before, sizeof before, "%.500s", base ? base : "");
    fresh(1);
    setenv("TMPDIR", deep_folder(1500), 1);
    record_kernels(&(recording){"all", "0", NULL, "100", "1h", 0}, &t);
    FL_CHECK(t.op_count == 500, "a long TMPDIR: %zu kernels", t.op_count);
    fl_kernel_trace_free(&t);
    static char endless[6000];
    memset(endless, 'x', sizeof endless - 1);
    endless[0] = '/';
    setenv("TMPDIR", endless, 1);
    record_kernels(&(recording){"all", "0", NULL, "100", "1h", 3}, &t);
    CU_ASSERT(said("err.txt", "TMPDIR: its path is longer"));
    base ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR");
    snprintf(link, sizeof link, "%s/collector.so", deep_folder(3000));
    CU_ASSERT(!symlink(FL_COLLECTOR, link));
    collector = link;
    record_kernels(&(recording){"all", "0", NULL, "100", "1h", 0}, &t);
    FL_CHECK(t.op_count == 500, "a long collector: %zu kernels", t.op_count);
    fl_kernel_trace_free(&t);
    collector = endless;
    record_kernels(&(recording){"all", "0", NULL, "100", "1h", 3}, &t);
    CU_ASSERT(said("err.txt", "the collector: its path is longer"));
    collector = FL_COLLECTOR;
    snprintf(command, sizeof command, "rm -rf '%s'", fl_temp_path("deep"));
    CU_ASSERT(system(command) == 0);
}

/* A program numbers the GPUs that it sees, the host those that it was given. */
static void test_record_kernels_of_listed_gpus(void) {
    static const struct {
        const char *gpus, *visible, *device;
        int status, position;
    } ROWS[] = {{"1", NULL, "1", 0, 0},    {"1", NULL, "0", 3, -1},   {"0,1", "1", "0", 0, 1},
                {"2,0", "2,0", "0", 0, 1}, /* the host keeps the library's order */
                {"1", "0,2", "1", 3, -1},  {"0,2", "1,2", "1", 0, 1}, {"all", "mig", "0", 3, -1}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_kernel_trace t;
        fresh(3);
        if (ROWS[i].visible)
            setenv("FOLDLINE_CUDA_DEVICES", ROWS[i].visible, 1);
        record_kernels(&(recording){ROWS[i].gpus, ROWS[i].device, NULL, "100", "1h", ROWS[i].status}, &t);
        unsetenv("FOLDLINE_CUDA_DEVICES");
        size_t there = 0;
        for (size_t k = 0; k < t.op_count; k++)
            there += t.ops[k].device == ROWS[i].position;
        FL_CHECK(ROWS[i].status ? said("err.txt", "all 500 ran on GPUs that --gpus leaves out") : there == 500,
                 "row %zu: %zu of %zu kernels on GPU %d", i, there, t.op_count, ROWS[i].position);
        fl_kernel_trace_free(&t);
    }
}

/* An image that takes over (exec) before the host has looked does not take the records of the one before along. */
static void test_record_kernels_across_exec(void) {
    fl_kernel_trace t;
    fresh(1);
    record_kernels(&(recording){"all", "0", "again", "10000", "1h", 0}, &t);
    FL_CHECK(t.op_count == 1000, "%zu kernels", t.op_count);
    const char *missing = fl_head_get(&t.head, "end missing"), *lost = fl_head_get(&t.head, "lost");
    FL_CHECK(missing && !strcmp(missing, "1 programs") && lost && !strcmp(lost, "0"), "end missing: %s, lost: %s",
             missing ? missing : "none", lost ? lost : "none");
    fl_kernel_trace_free(&t);
}

/* --for ends it by TERM, which runs nothing of the collector's: the records were there before. */
static void test_record_kernels_until_the_time_is_over(void) {
    fl_kernel_trace t;
    fresh(1);
    record_kernels(&(recording){"all", "0", "waits", "100", "3s", 128 + SIGTERM}, &t);
    FL_CHECK(t.op_count == 500, "%zu of 500 kernels", t.op_count);
    fl_kernel_trace_free(&t);
}

static void test_doctor(void) {
    fresh(2);
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 0);
    CU_ASSERT(said("out.txt", "GPU 1: Stub GPU, GPU-00000000-stub-1"));
    CU_ASSERT(said("out.txt", "81 clocks, 210 to 1410 MHz") && said("out.txt", "power_w=") &&
              said("out.txt", "throttle=3bits"));
    CU_ASSERT(stub->sets == 0 && untouched(2));
}

/* Nobody may have read its message; the log keeps it. */
static void test_doctor_tells_of_a_kill(void) {
    fresh(1);
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("--grace-ms"), ARG("300"), NULL});
    UNTIL(stub->sets);
    hold_still(pid);
    const int status = exit_of(pid); /* its guardian kills it */
    FL_CHECK(status == 128 + SIGKILL, "exit status %d", status);
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0 && untouched(1)); /* waits for the guardian */
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 0);
    CU_ASSERT(said("out.txt", " the controller missed its time by ") &&
              said("out.txt", " s and was killed; restored (") && said("out.txt", "/guardian.log)"));
}

static void test_restore_without_records(void) {
    fresh(1);
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0 && stub->sets == 0 && stub->inits == 0);
}

static void test_void_after_reboot(void) {
    fl_record r = {.unit = "GPU-00000000-stub-0"};
    const char *state;
    char path[512];
    fl_diag d = {0};
    bool found;
    fresh(1);
    CU_ASSERT(!fl_state_open(&state, &d) && !fl_record_add(&r, FL_PRIOR_LIMIT_MW, 111000, &d));
    CU_ASSERT(!fl_record_write(state, &r, &d));
    fl_record_free(&r);
    CU_ASSERT(!fl_record_read(state, "GPU-00000000-stub-0", &r, &found, &d) && found && r.count == 1);
    fl_record_free(&r);
    CU_ASSERT(fl_state_path(state, "GPU-00000000-stub-0", ".record", path, sizeof path));
    FILE *f = fopen(path, "w");
    fputs("foldline-record 1\nboot of-long-ago\nunit GPU-00000000-stub-0\nprior 111000 power_limit_mw\nend\n", f);
    fclose(f);
    CU_ASSERT(FOLDLINE(ARG("doctor")) == 0 && left_behind(".record") == 1); /* reads only */
    CU_ASSERT(FOLDLINE(ARG("restore")) == 0 && stub->gpu[0].limit_mw == 250000 && left_behind(".record") == 0);
    f = fopen(path, "w");
    fputs("foldline-record 1\nboot of-lo", f);
    fclose(f);
    CU_ASSERT(FOLDLINE(ARG("restore")) != 0 && left_behind(".record") == 1); /* never lost in silence */
    unlink(path);
}

static void test_durations(void) {
    static const struct {
        const char *text;
        int64_t ns;
    } ROWS[] = {{"60s", 60000000000},
                {"500ms", 500000000},
                {"5m", 300000000000},
                {"1h", 3600000000000},
                {"2", 2000000000},
                {"", 0},
                {"-1s", 0},
                {"0", 0},
                {"1d", 0},
                {"nan", 0}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        int64_t ns = 0;
        fl_status s = fl_duration_parse(ROWS[i].text, &ns, NULL);
        FL_CHECK(ns == ROWS[i].ns && (s == FL_OK) == (ns > 0), "'%s' is %lld", ROWS[i].text, (long long)ns);
    }
}

static const fl_case CASES[] = {{"shadow sets nothing", test_shadow_sets_nothing},
                                {"control sets and restores", test_control_sets_and_restores},
                                {"only the GPUs of the list", test_only_listed_gpus},
                                {"observe", test_observe},
                                {"TERM ends in order", test_term_ends_in_order},
                                {"a second controller is refused", test_second_controller_is_refused},
                                {"a record that vanished", test_vanished_record},
                                {"who sets once stays guarded", test_set_once_stays_guarded},
                                {"missing controls", test_missing_controls},
                                {"an unsupported limit", test_unsupported_limit},
                                {"missing signals", test_missing_signals},
                                {"privilege", test_privilege},
                                {"profiling windows", test_profiling_windows},
                                {"profiling fails", test_profiling_fails},
                                {"nohup", test_nohup},
                                {"signals blocked at the start", test_blocked_signals},
                                {"no permission", test_no_permission},
                                {"a read-back refused", test_read_back_refused},
                                {"no library", test_no_library},
                                {"GPU lost", test_gpu_lost},
                                {"a lost GPU holds up no other", test_lost_gpu_holds_up_no_other},
                                {"frozen sensor", test_frozen_sensor},
                                {"energy read no more than needed", test_energy_reads},
                                {"late steps are counted", test_late_steps},
                                {"bad usage", test_bad_usage},
                                {"a power target", test_target},
                                {"logs replay", test_logs_replay},
                                {"logs with kernels replay", test_logs_with_kernels_replay},
                                {"kernels are counted", test_kernels_are_counted},
                                {"the log of a killed run reads", test_killed_log_reads},
                                {"a program's life recorded", test_record_a_program},
                                {"a recording outlives its program", test_record_outlives_its_program},
                                {"outputs are tried first", test_record_tries_outputs_first},
                                {"a program's kernels recorded", test_record_kernels},
                                {"kernels and long paths", test_record_long_paths},
                                {"kernels of listed GPUs", test_record_kernels_of_listed_gpus},
                                {"kernels across an exec", test_record_kernels_across_exec},
                                {"kernels until the time is over", test_record_kernels_until_the_time_is_over},
                                {"doctor", test_doctor},
                                {"doctor tells of a kill", test_doctor_tells_of_a_kill},
                                {"restore without records", test_restore_without_records},
                                {"records are void after a reboot", test_void_after_reboot},
                                {"durations", test_durations}};

static int program(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "cuda-program"))
        return cuda_program(argc > 2 ? (uint32_t)atoi(argv[2]) : 0, argc > 3 ? argv[3] : NULL);
    return foldline_main(argc, argv);
}

static void open_stub(void) { stub_open(2); }

FL_SUITE_OF("live_host", CASES, .program = program, .open = open_stub, .close = stub_close)
