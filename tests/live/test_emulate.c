/* The simulated driver's library, end to end: real programs under `foldline emulate`. */
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENT FL_CLIENTS
#define OUT_MAX 65536

static char folder[64];
static char out[OUT_MAX];

/* Runs a command of the shell; what it wrote, standard error too, is in `out`. Its exit status. */
static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    FILE *f = popen(command, "r");
    size_t n = f ? fread(out, 1, sizeof out - 1, f) : 0;
    out[n] = 0;
    const int status = f ? pclose(f) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A workload of 6 s, and one of 10 minutes. */
static void make_workloads(void) {
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "/tmp/foldline-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CU_ASSERT_EQUAL(shell("%s synth -o %s/w.csv --kernels 2000 --mean-us 3000 --seed 3", FL_PROGRAM, folder), 0);
    CU_ASSERT_EQUAL(shell("%s synth -o %s/long.csv --kernels 200000 --mean-us 3000 --seed 3", FL_PROGRAM, folder), 0);
}

#define EMULATE "timeout 60 %s emulate %s/w.csv --platform generic --quiet --privileged "

static cJSON *report(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/report.json", folder);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, sizeof out - 1, f) : 0;
    out[n] = 0;
    if (f)
        fclose(f);
    return cJSON_Parse(out);
}

static double number(const cJSON *tree, const char *key) {
    const cJSON *at = cJSON_GetObjectItem(tree, key);
    return cJSON_IsNumber(at) ? at->valuedouble : (double)NAN;
}

static bool near(double a, double b, double share) { return fabs(a - b) <= share * fabs(b); }

/* ---- the host's own state ---- */

/* A controller that loses its simulated GPU leaves a record: with the session, not with the host, unless asked to. */
static void test_state_folder(void) {
    make_workloads();
    static const char LOST[] =
        "--time virtual --fault lost:gpu=0,from_s=1 -- " FL_PROGRAM " live --policy assure --control --for 3s 2>&1";
    CU_ASSERT_EQUAL(shell("env -u FOLDLINE_STATE " EMULATE "%s", FL_PROGRAM, folder, LOST), 3);
    CU_ASSERT(strstr(out, "lost") != NULL);
    char first[OUT_MAX];
    snprintf(first, sizeof first, "%s", out);
    CU_ASSERT_EQUAL(shell("env -u FOLDLINE_STATE " EMULATE "%s", FL_PROGRAM, folder, LOST), 3);
    CU_ASSERT_STRING_EQUAL(first, out);
    CU_ASSERT_EQUAL(shell("env -u FOLDLINE_STATE " EMULATE "-- sh -c 'mkdir $FOLDLINE_STATE; echo $FOLDLINE_STATE'",
                          FL_PROGRAM, folder),
                    0);
    out[strcspn(out, "\n")] = 0;
    FL_CHECK(!strncmp(out, "/tmp/foldline-", 14) && access(out, F_OK), "its state folder: %s", out);
    CU_ASSERT_EQUAL(
        shell("FOLDLINE_STATE=%s/mine " EMULATE "-- sh -c 'echo $FOLDLINE_STATE'", folder, FL_PROGRAM, folder), 0);
    CU_ASSERT(strstr(out, "/mine\n") != NULL);
}

/* ---- closed loop ---- */

/* A lock at the start, and the whole work at that clock, as a run of the policy that does the same. */
static void test_closed_loop(void) {
    make_workloads();
    CU_ASSERT_EQUAL(shell("%s run %s/w.csv --platform generic --policy fixed:sm_mhz=1200 --json", FL_PROGRAM, folder),
                    0);
    cJSON *run = cJSON_Parse(out);
    CU_ASSERT_EQUAL(shell(EMULATE "--time virtual -o %s/report.json -- " CLIENT "probe lock 0 1200 1200 sleep 60",
                          FL_PROGRAM, folder, folder),
                    0);
    cJSON *emulated = report();
    const char *const keys[] = {"energy_j", "node_energy_j", "makespan_s"};
    for (size_t i = 0; i < 3; i++)
        FL_CHECK(near(number(emulated, keys[i]), number(run, keys[i]), 1e-3), "%s: %.9g emulated, %.9g run", keys[i],
                 number(emulated, keys[i]), number(run, keys[i]));
    FL_CHECK(cJSON_IsTrue(cJSON_GetObjectItem(emulated, "done")), "the work is not done");
    cJSON_Delete(run);
    cJSON_Delete(emulated);
}

/* The workload and the platform of an experiment file, as of the same named on the command line. */
static void test_experiment(void) {
    make_workloads();
    char path[128];
    snprintf(path, sizeof path, "%s/e.json", folder);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(
        "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"traces\": [\"w.csv\"], \"policies\": [\"maxfreq\"]}",
        f);
    fclose(f);
    double energy[2] = {0};
    for (int i = 0; i < 2; i++) {
        FL_CHECK(!shell("timeout 60 %s emulate %s/%s --quiet --time virtual -o %s/report.json -- " CLIENT
                        "probe sleep 60 2>&1",
                        FL_PROGRAM, folder, i ? "e.json" : "w.csv --platform generic", folder),
                 "%s", out);
        cJSON *emulated = report();
        energy[i] = number(emulated, "energy_j");
        cJSON_Delete(emulated);
    }
    FL_CHECK(energy[0] > 0 && energy[0] == energy[1], "%.9g J, from the experiment %.9g J", energy[0], energy[1]);
}

static double shown(const char *text, const char *what) {
    const char *at = strstr(text, what);
    double v = NAN;
    if (at && sscanf(at + strlen(what), " %*d %lf", &v) != 1)
        v = NAN;
    return v;
}

/* What one process locks, another reads; power and clock follow, wall time and virtual. */
static void test_processes(void) {
    static const char *const times[] = {"virtual", "wall", "5x"};
    make_workloads();
    for (size_t i = 0; i < 3; i++) {
        const int status = shell("timeout 60 %s emulate %s/long.csv --platform generic --quiet --privileged --time %s "
                                 "-o %s/report.json "
                                 "-- sh -c '" CLIENT "probe lock 0 300 900; " CLIENT "probe sleep 0.3 show; " CLIENT
                                 "probe unlock 0 sleep 0.3 show'",
                                 FL_PROGRAM, folder, times[i], folder);
        char *first = strstr(out, "gpu 0"), *second = first ? strstr(first + 1, "gpu 0") : NULL;
        FL_CHECK(!status && second, "%s: status %d, %s", times[i], status, out);
        if (!second)
            continue;
        FL_CHECK(shown(first, "lock") == 900 && shown(first, "sm") == 900, "%s: %s", times[i], out);
        FL_CHECK(shown(second, "sm") == 1500 && shown(second, "power") > 1.3 * shown(first, "power"), "%s: %s",
                 times[i], out);
        FL_CHECK(shown(second, "energy") > shown(first, "energy"), "%s: %s", times[i], out);
        cJSON *tree = report();
        const cJSON *process = cJSON_GetObjectItem(tree, "processes"), *at;
        double sets = 0;
        int setters = 0;
        cJSON_ArrayForEach(at, process) {
            sets += number(at, "sets");
            setters += number(at, "sets") > 0;
        }
        FL_CHECK(sets == 2 && setters == 2, "%s: %g sets by %d processes", times[i], sets, setters);
        FL_CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "sets")) == 2, "%s: the audit has other sets", times[i]);
        cJSON_Delete(tree);
    }
}

static void test_errors(void) {
    static const struct {
        const char *option, *command, *expect;
        int status;
    } row[] = {
        {"--error no-permission", "lock 0 900 900 limit 0 200000 show", "lock 4\nlimit 4\ngpu 0 power 0", 0},
        {"--error not-supported:call=nvmlDeviceGetPowerUsage", "show", "power 3 0 sm 0", 0},
        {"--error lost:gpu=1,from_s=1 --gpus 2", "sleep 2 show", "gpu 1 power 15 0 sm 15", 0},
        {"--error lost:gpu=1,from_s=1 --gpus 2", "sleep 2 show", "gpu 0 power 0", 0},
        {"--fault lost:gpu=0,from_s=1", "sleep 2 show", "gpu 0 power 15 0", 0},
        {"--fault refuse:control=sm_mhz", "lock 0 900 900 show", "lock 999", 0},
        {"--error driver-gone", "show", "init 9", 1},
        {"--error no-permision", "show", "did you mean 'no-permission'", 2},
        {"--error lost:when=3", "show", "expected the keys", 2},
        {"--time 10", "show", "expected wall, virtual or a factor", 2},
        {"--set-ms 5..1", "show", "expected milliseconds", 2},
        {"", "lock 0 900 600 lock 0 0 4294967042 lock 0 4294967041 4294967042 limit 0 1",
         "lock 2\nlock 2\nlock 2\nlimit 2\n", 0},
        {"", "call nvmlDeviceGetSupportedMemoryClocks 0 call nvmlDeviceGetMigMode 0 call nvmlDeviceGetName 3",
         "nvmlDeviceGetMigMode 3\nnvmlDeviceGetName 2\n", 0},
    };
    make_workloads();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int status = shell(EMULATE "--time virtual %s -- " CLIENT "probe %s 2>&1", FL_PROGRAM, folder,
                                 row[i].option, row[i].command);
        FL_CHECK(status == row[i].status && strstr(out, row[i].expect), "%s, %s: status %d, %s", row[i].option,
                 row[i].command, status, out);
    }
}

/* Whatever NVML would answer, the live host hears: its readings and sets go through no other way. */
static void test_live_errors(void) {
    static const struct {
        const char *error, *expect;
        int status;
    } row[] = {
        {"driver-gone:from_s=1", "Driver Not Loaded", 3},
        {"lost:from_s=1", "GPU is lost", 3},
        {"no-permission", "locking the SM clock: Insufficient Permissions", 3},
        {"in-use", "locking the SM clock", 3},
        {"not-supported:call=nvmlDeviceGet@(Util|Power|Clock)*", "nothing to decide on here", 3},
        {"timeout:call=nvmlDeviceGet@(Util|Power|Clock)*", "nothing to decide on here", 3},
        {"unknown:call=nvmlDeviceGet@(Util|Power|Clock)*", "nothing to decide on here", 3},
        {"unknown:call=nvmlDeviceGetPowerUsage", "cannot be read here: power_w", 0},
        {"driver-gone:from_s=9", "15 steps", 0},
    };
    make_workloads();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int status =
            shell(EMULATE "--time virtual --error '%s' -- %s live --policy assure --control --for 3s 2>&1", FL_PROGRAM,
                  folder, row[i].error, FL_PROGRAM);
        FL_CHECK(status == row[i].status && strstr(out, row[i].expect), "%s: status %d, %s", row[i].error, status, out);
    }
}

/* A driver that takes a lock and does nothing: the live host sees it by the clock that the GPU has under its work. The
 * other GPU has its lock. A limit that is not made is seen when it is read back. */
static void test_sets_without_effect(void) {
    static const struct {
        const char *error, *policy, *expect, *not_there;
        int status;
    } row[] = {
        {"gpu=0", "fixed:sm_mhz=600", "GPU 0: SM clock: 600 MHz was set", "GPU 1: SM clock", 0},
        {"gpu=0", "fixed:sm_mhz=600", "1 clock locks had no visible effect", "changed by another program", 0},
        {"call=nvmlDeviceSetMem*", "fixed:sm_mhz=600", "2 sets made", "was set", 0},
        {"from_s=2", "fixed:sm_mhz=600", "2 sets made", "was set", 0},
        {"gpu=0", "fixed:power_limit_w=200", "power limit reads back as", "2 sets made", 3},
    };
    make_workloads();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int status = shell(EMULATE "--gpus 2 --time virtual --error without-effect:%s -- %s live --policy %s "
                                         "--control --for 6s 2>&1",
                                 FL_PROGRAM, folder, row[i].error, FL_PROGRAM, row[i].policy);
        FL_CHECK(status == row[i].status && strstr(out, row[i].expect) && !strstr(out, row[i].not_there),
                 "%s, %s: status %d, %s", row[i].error, row[i].policy, status, out);
    }
}

/* As with the driver: whoever is not root may read only. */
static void test_root_alone(void) {
    static const struct {
        const char *option, *expect;
    } row[] = {{"", "lock 4\nlimit 4\n"}, {"--privileged", "lock 0\nlimit 0\n"}};
    make_workloads();
    const char *user = geteuid() ? "" : "setpriv --reuid 65534 --regid 65534 --clear-groups";
    CU_ASSERT_EQUAL(shell("chmod 755 %s && chmod 644 %s/w*", folder, folder), 0);
    if (shell("%s test -x %s && %s test -r " CLIENT "../libnvidia-ml.so.1 -o -r %s", user, FL_PROGRAM, user,
              FL_PROGRAM)) {
        printf("skipped: no other user can run the program here ");
        return;
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int status =
            shell("%s timeout 60 %s emulate %s/w.csv --platform generic --quiet --time virtual %s -- " CLIENT
                  "probe lock 0 900 900 limit 0 200000 2>&1",
                  user, FL_PROGRAM, folder, row[i].option);
        FL_CHECK(!status && strstr(out, row[i].expect), "'%s': status %d, %s", row[i].option, status, out);
    }
}

/* Wherever a program looks for the library, it finds the simulated one. */
static void test_paths(void) {
    static const char *const path[] = {"libnvidia-ml.so", "libnvidia-ml.so.1",
                                       "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                       "/nowhere/at/all/libnvidia-ml.so.1"};
    static const char *const times[] = {"wall", "virtual"};
    make_workloads();
    for (size_t i = 0; i < 8; i++) {
        const int status = shell(EMULATE "--time %s -- " CLIENT "probe --lib %s lock 0 900 900 show 2>&1", FL_PROGRAM,
                                 folder, times[i / 4], path[i % 4]);
        FL_CHECK(!status && strstr(out, "lock 0 900"), "%s: status %d, %s", path[i % 4], status, out);
    }
}

/* The server stands still, a set waits, its client is killed, another restores: the killed one's set is never made. */
static void test_dead_first(void) {
    make_workloads();
    const int status = shell(EMULATE "--set-ms 0..5 -- " CLIENT "frozen 300", FL_PROGRAM, folder);
    FL_CHECK(!status, "status %d, %s", status, out);
}

/* ---- virtual time ---- */

static void repeat(const char *command, int runs) {
    char first[512] = "";
    for (int i = 0; i < runs; i++) {
        const int status = shell(EMULATE "--time virtual -o %s/report.json -- %s", FL_PROGRAM, folder, folder, command);
        char now[512];
        snprintf(now, 256, "%.200s", out);
        cJSON *tree = report();
        const cJSON *hash = cJSON_GetObjectItem(tree, "session_hash");
        snprintf(now + strlen(now), 64, "%s", cJSON_IsString(hash) ? hash->valuestring : "none");
        cJSON_Delete(tree);
        if (!i)
            snprintf(first, sizeof first, "%s", now);
        FL_CHECK(!status && !strcmp(first, now), "%s, run %d: status %d, %s instead of %s", command, i, status, now,
                 first);
    }
}

static void test_repeats(void) {
    const int runs = fl_nightly() ? 100 : 12;
    make_workloads();
    repeat(CLIENT "probe probe 60 0.2", runs);
    repeat(CLIENT "threads", runs);
    repeat("sh -c '" CLIENT "threads & " CLIENT "threads; wait'", runs);
}

/* An hour passes, once a second as the client sees it; one constant of the model changes: another hash. */
static void test_hour(void) {
    char before[64] = "";
    make_workloads();
    CU_ASSERT_EQUAL(
        shell("sed 's/\"a_w\": 80/\"a_w\": 81/' %s/models/platforms/generic.json > %s/g.json", FL_ROOT, folder), 0);
    for (int i = 0; i < 2; i++) {
        char platform[128] = "generic";
        double elapsed_s = 0;
        int loops = 0;
        if (i)
            snprintf(platform, sizeof platform, "%s/g.json", folder);
        const int status = shell("timeout 300 %s emulate %s/w.csv --platform %s --quiet --time virtual -- " CLIENT
                                 "probe probe 3600 1",
                                 FL_PROGRAM, folder, platform);
        FL_CHECK(!status && sscanf(out, "loops %d elapsed %lf", &loops, &elapsed_s) == 2, "status %d, %s", status, out);
        FL_CHECK(loops > 3500 && elapsed_s >= 3600 && elapsed_s < 3602, "%d loops in %g s", loops, elapsed_s);
        FL_CHECK(strcmp(before, out) != 0, "the same with another model: %s", out);
        snprintf(before, sizeof before, "%.60s", out);
    }
}

static void test_unfit(void) {
    static const struct {
        const char *command, *expect;
    } row[] = {
        {CLIENT "unfit raw", "nanosleep"},
        {CLIENT "unfit itimer", "setitimer of the processor's time"},
        {CLIENT "unfit deadlock", "wait for ever"},
        {CLIENT "unfit timer", "timer_create of the processor's time"},
        {CLIENT "unfit rawclock", "clock_gettime"},
        {CLIENT "unfit_static timer", "timer_create"},
        {"sh -c '" CLIENT "unfit_static itimer; echo after'", "setitimer"},
    };
    make_workloads();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int status = shell(EMULATE "--time virtual -- %s 2>&1", FL_PROGRAM, folder, row[i].command);
        FL_CHECK(status == 3 && strstr(out, row[i].expect) && !strstr(out, "after"), "%s: status %d, %s",
                 row[i].command, status, out);
    }
}

/* TERM and HUP to the session are the command's: it ends, the report is written, nothing is left. */
static void test_signals(void) {
    static const char *const times[] = {"wall", "virtual"};
    static const struct {
        const char *name;
        int number;
    } row[] = {{"TERM", SIGTERM}, {"HUP", SIGHUP}};
    make_workloads();
    for (size_t i = 0; i < 4; i++) {
        const int number = row[i / 2].number;
        const int status = shell("cd %s && rm -f report.json where; " EMULATE
                                 "--time %s -o report.json -- sh -c 'echo $FOLDLINE_EMULATE >where; kill "
                                 "-%s $PPID; exec sleep 1000000' 2>&1",
                                 folder, FL_PROGRAM, folder, times[i % 2], row[i / 2].name);
        cJSON *tree = report();
        FL_CHECK(status == 128 + number && tree, "%s, %s: status %d, %s report", times[i % 2], row[i / 2].name, status,
                 tree ? "a" : "no");
        cJSON_Delete(tree);
        CU_ASSERT_EQUAL(shell("! test -e \"$(cat %s/where)\"", folder), 0);
    }
}

/* Too few descriptors are told, and end the session; so does TERM, whatever the command does about it. */
static void test_descriptors(void) {
    int told = 0;
    make_workloads();
    for (int i = 0; i < 14; i++) {
        const int n = 7 + i / 2;
        const int status =
            shell("exec 2>&1; ulimit -n %d; exec timeout -s KILL 40 %s emulate %s/w.csv --platform generic --quiet "
                  "--time %s -- " CLIENT "probe sleep 0.3 show",
                  n, FL_PROGRAM, folder, i % 2 ? "virtual" : "wall");
        const bool said = status == 3 && strstr(out, "Too many open files");
        told += said;
        FL_CHECK(said || (status == 0 && strstr(out, "gpu 0 power 0")), "%d descriptors: status %d, %s", n, status,
                 out);
    }
    FL_CHECK(told > 1, "only %d numbers of descriptors are too few", told);
    const int status =
        shell("timeout -s KILL 60 %s emulate %s/w.csv --platform generic --quiet -- sh -c 'trap \"\" TERM; "
              "kill -TERM $PPID; exec " CLIENT "probe sleep 1000' 2>&1",
              FL_PROGRAM, folder);
    FL_CHECK(status == 3 && strstr(out, "does not end on TERM"), "TERM: status %d, %s", status, out);
}

/* A path of any length goes before the command's own. */
static void test_long_path(void) {
    make_workloads();
    const int status =
        shell("p=$(printf '/none/%%0500d' 0); p=$p:$p:$p:$p; p=$p:$p:$p:$p:$p; LD_LIBRARY_PATH=$p:/last " EMULATE
              "-- sh -c 'echo ${#LD_LIBRARY_PATH} ${LD_LIBRARY_PATH##*:}'",
              FL_PROGRAM, folder);
    int size = 0;
    char last[16] = "";
    FL_CHECK(!status && sscanf(out, "%d %15s", &size, last) == 2 && size > 10000 && !strcmp(last, "/last"),
             "status %d, %d characters, last %s", status, size, last);
}

static void test_many_gpus(void) {
    make_workloads();
    CU_ASSERT_EQUAL(shell("%s emulate %s/w.csv --platform generic --gpus 100 --quiet -- %s record -o %s/t.csv "
                          "--for 200ms --every-ms 50 2>&1 && grep -c ,99, %s/t.csv",
                          FL_PROGRAM, folder, FL_PROGRAM, folder, folder),
                    0);
}

/* The command's own status; and nothing is left behind. */
static void test_end(void) {
    make_workloads();
    CU_ASSERT_EQUAL(shell(EMULATE "-- sh -c 'exit 7'", FL_PROGRAM, folder), 7);
    CU_ASSERT_EQUAL(shell(EMULATE "--time virtual -- sh -c 'kill -TERM $$'", FL_PROGRAM, folder), 143);
    const int status = shell(EMULATE "-- sh -c 'echo $FOLDLINE_EMULATE'", FL_PROGRAM, folder);
    out[strcspn(out, "\n")] = 0;
    FL_CHECK(!status && out[0] && access(out, F_OK), "the session's folder is still there: %s", out);
    CU_ASSERT_EQUAL(shell("timeout 60 %s emulate %s/w.csv --platform generic 2>&1", FL_PROGRAM, folder), 2);
    CU_ASSERT_EQUAL(shell("rm -rf %s", folder), 0);
    folder[0] = 0;
}

FL_SUITE("emulate", {"closed loop", test_closed_loop}, {"experiment file", test_experiment},
         {"processes", test_processes}, {"errors", test_errors}, {"paths", test_paths},
         {"dead clients first", test_dead_first}, {"one hash", test_repeats}, {"an hour", test_hour},
         {"what cannot be virtual", test_unfit}, {"signals", test_signals}, {"many GPUs", test_many_gpus},
         {"errors end control", test_live_errors}, {"sets without effect", test_sets_without_effect},
         {"root alone sets", test_root_alone}, {"few descriptors", test_descriptors}, {"a long path", test_long_path},
         {"a state folder of its own", test_state_folder}, {"end", test_end})
