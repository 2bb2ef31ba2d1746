/* The rules that keep a machine as it was found, one by one and within this process: what may be a file of state, what
 * a record may say, who holds a lock, what a signal may be, what ends a controller. test_live_state and
 * test_live_guardian hold the same rules in the whole program. */
#include "harness/live/guard/guard.h"
#include "harness/live/guard/inside.h"
#include "harness/live/records/inside.h"
#include "harness/live/vendor/inside.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
static char state[512], other[512], run[512];

static char *in(const char *folder, const char *name) {
    static char path[4][700];
    static unsigned at;
    char *now = path[at++ % 4];
    snprintf(now, sizeof path[0], "%s/%s", folder, name);
    return now;
}

static void clean(const char *path) {
    char command[800];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    CU_ASSERT(!system(command));
}

/* Empty folders of ours. */
static void fresh(void) {
    const char *const folders[] = {state, other, run};
    for (int i = 0; i < 3; i++) {
        clean(folders[i]);
        CU_ASSERT(!mkdir(folders[i], 0700));
    }
    setenv("FOLDLINE_STATE", state, 1);
    setenv("FOLDLINE_RUN", run, 1);
}

static int descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void put(const char *path, const char *text, mode_t mode) {
    FILE *f = fopen(path, "w");
    CU_ASSERT(f && fputs(text, f) >= 0 && !fclose(f) && !chmod(path, mode));
}

static char *text_of(const char *path) {
    size_t size;
    char *text = fl_temp_slurp(path, &size);
    return text ? text : strdup("(none)");
}

/* After the last case, where CUnit takes no assertion. */
static void clean_up(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", fl_temp_folder);
    if (system(command))
        perror(fl_temp_folder);
}

static bool there(const char *path) { return !access(path, F_OK); }
static mode_t mode_of(const char *path) {
    struct stat f;
    return lstat(path, &f) ? 0 : f.st_mode & 07777;
}

static int exit_of(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- names and folders ------------------------------------------------------------------------------------------- */

static void test_paths(void) {
    char unit[FL_UNIT_MAX + 2], path[200];
    static const char *const BAD[] = {"", ".", "..", ".hidden", "a/b", "/a"};
    CU_ASSERT(fl_state_path("f", "cpu", ".record", path, sizeof path) && !strcmp(path, "f/cpu.record"));
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        FL_CHECK(!fl_state_path("f", BAD[i], ".lock", path, sizeof path), "'%s' is taken", BAD[i]);
    memset(unit, 'u', sizeof unit);
    unit[FL_UNIT_MAX - 1] = '\0';
    CU_ASSERT(fl_state_path("f", unit, ".lock", path, sizeof path));
    CU_ASSERT(fl_state_path("f", unit, ".lock", path, 2 + FL_UNIT_MAX - 1 + 5 + 1));
    CU_ASSERT(!fl_state_path("f", unit, ".lock", path, 2 + FL_UNIT_MAX - 1 + 5));
    unit[FL_UNIT_MAX - 1] = 'u';
    unit[FL_UNIT_MAX] = '\0';
    CU_ASSERT(!fl_state_path("f", unit, ".lock", path, sizeof path));
}

static void test_where(void) {
    char own[64];
    snprintf(own, sizeof own, "/tmp/foldline-%u", (unsigned)geteuid());
    setenv("FOLDLINE_STATE", "/a", 1);
    setenv("FOLDLINE_RUN", "/b", 1);
    CU_ASSERT(!strcmp(fl_state_folder(), "/a") && !strcmp(fl_run_folder(), "/b"));
    for (int set = 0; set < 2; set++) {
        setenv("FOLDLINE_STATE", "", 1);
        setenv("FOLDLINE_RUN", "", 1);
        if (!set)
            unsetenv("FOLDLINE_STATE"), unsetenv("FOLDLINE_RUN");
        CU_ASSERT(!strcmp(fl_state_folder(), "/var/lib/foldline"));
        CU_ASSERT(!strcmp(fl_run_folder(), geteuid() ? own : "/run/foldline"));
    }
    if (!geteuid() && !seteuid(65533)) {
        CU_ASSERT(!strcmp(fl_run_folder(), "/tmp/foldline-65533"));
        CU_ASSERT(!seteuid(0));
    }
}

static void expect_folder(const char *path, fl_status status, const char *says) {
    fl_diag d = {0};
    int fd = 99;
    const int before = descriptors();
    const fl_status s = fl_folder_open(path, &fd, &d), quiet = fl_folder_open(path, &(int){0}, NULL);
    FL_CHECK(s == status && (!says || strstr(d.message, says)), "%s: %d: %s", path, (int)s, d.message);
    CU_ASSERT(quiet == status && (fd >= 0) == (!status && there(path)));
    if (fd >= 0)
        CU_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    for (int i = before; i < before + 2 && !status && there(path); i++) /* ours and the quiet one's */
        close(fd + i - before);
    CU_ASSERT(descriptors() == before);
}

static void test_folders(void) {
    fl_diag d = {0};
    const mode_t mask = umask(0);
    fresh();
    const int before = descriptors();
    CU_ASSERT(!fl_folder_make(in(state, "new"), &d) && mode_of(in(state, "new")) == 0700);
    CU_ASSERT(!fl_folder_make(in(state, "new"), &d));
    CU_ASSERT(fl_folder_make(in(state, "no/new"), &d) == FL_IO && strstr(d.message, "cannot make the folder"));
    put(in(state, "file"), "", 0600);
    CU_ASSERT(fl_folder_make(in(state, "file"), &d) == FL_IO && strstr(d.message, "it is no folder"));
    CU_ASSERT(descriptors() == before);
    CU_ASSERT(!symlink(other, in(state, "link")));
    expect_folder(in(state, "none"), FL_OK, NULL);
    expect_folder(in(state, "file"), FL_IO, "it is no folder, or a link to one");
    expect_folder(in(state, "link"), FL_IO, "it is no folder, or a link to one");
    static const struct {
        mode_t mode;
        bool good;
    } MODES[] = {{0700, true}, {0755, true}, {0711, true}, {0720, false}, {0702, false}, {0777, false}};
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        char says[32];
        snprintf(says, sizeof says, "(mode %03o): nothing", (unsigned)MODES[i].mode);
        CU_ASSERT(!chmod(in(state, "new"), MODES[i].mode));
        expect_folder(in(state, "new"), MODES[i].good ? FL_OK : FL_IO, MODES[i].good ? NULL : "others may write");
        expect_folder(in(state, "new"), MODES[i].good ? FL_OK : FL_IO, MODES[i].good ? NULL : says);
    }
    if (!geteuid()) {
        CU_ASSERT(!chmod(in(state, "new"), 0755) && !chown(in(state, "new"), 65533, (gid_t)-1));
        expect_folder(in(state, "new"), FL_IO, "belongs to user 65533, and this runs as user 0");
    }
    const char *where;
    clean(state);
    CU_ASSERT(!fl_state_open(&where, &d) && !strcmp(where, state) && mode_of(state) == 0700);
    umask(mask);
}

/* Descriptor 0 is as good as any, should the standard input be closed. */
static void test_descriptor_0(void) {
    fl_diag d = {0};
    fresh();
    const int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
    CU_ASSERT_FATAL(input >= 0);
    close(0);
    FL_CHECK(!fl_folder_make(in(state, "new"), &d), "%s", d.message);
    CU_ASSERT(fcntl(0, F_GETFD) < 0);
    for (int held = 0; held < 2; held++) {
        CU_ASSERT(open("/dev/null", O_RDWR | O_CLOEXEC) == 0);
        fl_lock lock = {.fd = held ? -1 : 0, .held = held ? 0 : -1};
        fl_lock_close(&lock);
        CU_ASSERT(fcntl(0, F_GETFD) < 0 && lock.fd == -1 && lock.held == -1);
    }
    char **unit = NULL;
    size_t count = 0;
    int file = -1;
    CU_ASSERT(!fl_state_file(state, "GPU-1", ".x", O_RDWR | O_CREAT, &file, &d) && file > 0);
    close(file);
    const int left = open(in(state, "GPU-1.record"), O_RDWR | O_CREAT, 0600);
    close(left);
    CU_ASSERT(left == 0 && !fl_record_units(state, &unit, &count, &d) && count == 1);
    for (size_t i = 0; i < count; i++)
        free(unit[i]);
    free(unit);
    CU_ASSERT(!fl_state_remove(state, "GPU-1", ".record", &d) && !there(in(state, "GPU-1.record")));
    CU_ASSERT(dup2(input, 0) == 0);
    close(input);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void expect_file(const char *unit, int flags, fl_status status, bool opened, const char *says) {
    fl_diag d = {0};
    int fd = 99;
    const int before = descriptors();
    const fl_status s = fl_state_file(state, unit, ".x", flags, &fd, &d);
    FL_CHECK(s == status && (!says || strstr(d.message, says)), "%s: %d: %s", unit, (int)s, d.message);
    FL_CHECK((fd >= 0) == opened, "%s: descriptor %d", unit, fd);
    CU_ASSERT(d.line == 0 && d.column == 0); /* it is about the whole file */
    if (fd >= 0) {
        CU_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
    }
    FL_CHECK(descriptors() == before, "%s: a descriptor is left", unit);
}

static void test_files(void) {
    fl_diag d = {0};
    const mode_t mask = umask(0);
    fresh();
    expect_file("none", O_RDONLY, FL_OK, false, NULL);
    expect_file("a/b", O_RDONLY, FL_BAD_INPUT, false, "cannot be the name");
    expect_file("new", O_RDWR | O_CREAT, FL_OK, true, NULL);
    CU_ASSERT(mode_of(in(state, "new.x")) == 0600);
    expect_file("new", O_RDONLY, FL_OK, true, NULL);
    expect_file("new", O_RDWR | O_CREAT | O_EXCL, FL_IO, false, "cannot open");
    static const struct {
        const char *name;
        mode_t mode;
        bool good;
    } MODES[] = {{"m644", 0644, true}, {"m620", 0620, false}, {"m602", 0602, false}};
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        put(in(state, "new.x"), "", MODES[i].mode);
        expect_file("new", O_RDONLY, MODES[i].good ? FL_OK : FL_BAD_INPUT, MODES[i].good,
                    MODES[i].good ? NULL : "others may write it");
    }
    put(in(state, "new.x"), "", 0600);
    CU_ASSERT(!truncate(in(state, "new.x"), 1 << 20));
    expect_file("new", O_RDONLY, FL_OK, true, NULL);
    CU_ASSERT(!truncate(in(state, "new.x"), (1 << 20) + 1));
    expect_file("new", O_RDONLY, FL_BAD_INPUT, false, "larger than any");
    put(in(state, "new.x"), "", 0600);
    CU_ASSERT(!link(in(state, "new.x"), in(state, "second")));
    expect_file("new", O_RDONLY, FL_BAD_INPUT, false, "a second name of another file");
    CU_ASSERT(!unlink(in(state, "second")) && !symlink(in(state, "new.x"), in(state, "link.x")));
    expect_file("link", O_RDONLY, FL_BAD_INPUT, false, "it is a link");
    CU_ASSERT(!mkfifo(in(state, "pipe.x"), 0600) && !mkdir(in(state, "folder.x"), 0700));
    expect_file("pipe", O_RDONLY, FL_BAD_INPUT, false, "it is no regular file");
    expect_file("pipe", O_WRONLY, FL_BAD_INPUT, false, "it is no regular file");
    expect_file("folder", O_RDONLY, FL_BAD_INPUT, false, "it is no regular file");
    expect_file("folder", O_RDWR, FL_BAD_INPUT, false, "it is no regular file");
    if (!geteuid()) {
        CU_ASSERT(!chown(in(state, "new.x"), 65533, (gid_t)-1));
        expect_file("new", O_RDONLY, FL_BAD_INPUT, false, "it belongs to another user");
    }
    const int before = descriptors();
    CU_ASSERT(!fl_state_remove(state, "link", ".x", &d) && !there(in(state, "link.x")) && there(in(state, "new.x")));
    CU_ASSERT(!fl_state_remove(state, "new", ".x", &d) && !there(in(state, "new.x")));
    CU_ASSERT(!fl_state_remove(state, "new", ".x", &d));
    CU_ASSERT(fl_state_remove(state, "folder", ".x", &d) == FL_IO && strstr(d.message, "cannot remove"));
    CU_ASSERT(fl_state_remove(state, ".x", ".x", &d) == FL_BAD_INPUT && strstr(d.message, "cannot be the name"));
    CU_ASSERT(!chmod(state, 0777));
    CU_ASSERT(fl_state_remove(state, "pipe", ".x", &d) == FL_IO && there(in(state, "pipe.x")));
    expect_file("pipe", O_RDONLY, FL_IO, false, "others may write the folder");
    clean(state);
    CU_ASSERT(!fl_state_remove(state, "new", ".x", &d));
    expect_file("new", O_RDWR | O_CREAT, FL_OK, false, NULL);
    CU_ASSERT(descriptors() == before);
    umask(mask);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static const char *boot(void) {
    static char id[64];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    CU_ASSERT(f && fgets(id, sizeof id, f));
    fclose(f);
    id[strcspn(id, "\n")] = '\0';
    return id;
}

/* Reads a record of that unit with these lines between its head and its end. */
static fl_status read_lines(const char *unit, const char *lines, const char *end, fl_record *r, bool *found,
                            fl_diag *d) {
    char text[2000], name[128];
    snprintf(text, sizeof text, "foldline-record 1\nboot %s\nunit %s\n%s%s", boot(), unit, lines, end);
    snprintf(name, sizeof name, "%s.record", unit);
    put(in(state, name), text, 0600);
    return fl_record_read(state, unit, r, found, d);
}

static bool takes(const char *unit, const char *key, int64_t value) {
    char lines[400];
    fl_record r;
    bool found;
    fl_diag d = {0};
    snprintf(lines, sizeof lines, "prior %" PRId64 " %s\n", value, key);
    const fl_status s = read_lines(unit, lines, "end\n", &r, &found, &d);
    CU_ASSERT(found == !s && (!s || (s == FL_BAD_INPUT && d.line == 4 && !r.count && !r.prior)));
    if (!s)
        CU_ASSERT(r.count == 1 && !strcmp(r.prior[0].key, key) && r.prior[0].value == value && !strcmp(r.unit, unit));
    fl_record_free(&r);
    return !s;
}

/* The controls and their ranges, written down a second time. */
static void test_record_ranges(void) {
    static const struct {
        const char *unit, *key;
        int64_t low, high;
    } ROWS[] = {{"GPU-1", "sm_lock", -1, -1},
                {"GPU-1", "mem_lock", -1, -1},
                {"GPU-1", "power_limit_mw", 0, INT32_MAX},
                {"ze-1", "sm_min_khz:0", -1, INT32_MAX},
                {"ze-1", "sm_max_khz:123456", -1, INT32_MAX},
                {"ze-1", "mem_min_khz:7", -1, INT32_MAX},
                {"ze-1", "mem_max_khz:7", -1, INT32_MAX},
                {"ze-1", "power_limit_mw", -1, INT32_MAX},
                {"ze-1", "sustained_enabled", 0, 1},
                {"rsmi-1", "perf_level", 0, 255},
                {"rsmi-1", "sm_min_mhz", 0, INT32_MAX},
                {"rsmi-1", "sm_max_mhz", 0, INT32_MAX},
                {"rsmi-1", "sm_allowed", -1, -1},
                {"rsmi-1", "mem_allowed", -1, -1},
                {"rsmi-1", "power_cap_uw", 0, INT64_C(1000000000000)},
                {"cpu", "/sys/devices/system/cpu/cpufreq/boost", 0, 1},
                {"cpu", "/sys/devices/system/cpu/intel_pstate/no_turbo", 0, 1},
                {"cpu", "/sys/devices/system/cpu/cpufreq/policy123456/scaling_max_freq", 1, 1000000000},
                {"cpu", "/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", 0, INT64_C(1000000000000)}};
    unsetenv("FOLDLINE_ROOT");
    fresh();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *unit = ROWS[i].unit, *key = ROWS[i].key;
        FL_CHECK(takes(unit, key, ROWS[i].low) && !takes(unit, key, ROWS[i].low - 1), "%s %s: low", unit, key);
        FL_CHECK(takes(unit, key, ROWS[i].high) && !takes(unit, key, ROWS[i].high + 1), "%s %s: high", unit, key);
        static const char *const UNITS[] = {"GPU-1", "ze-1", "rsmi-1", "cpu"};
        for (int u = 0; u < 4; u++) { /* the key of one vendor means nothing to the others */
            const bool shared = !strcmp(key, "power_limit_mw") && (u == 0 || u == 1);
            if (!shared && strcmp(UNITS[u], unit) != 0)
                FL_CHECK(!takes(UNITS[u], key, ROWS[i].high), "%s takes %s", UNITS[u], key);
        }
    }
}

static void test_record_keys(void) {
    static const struct {
        const char *unit, *key;
    } BAD[] = {{"GPU-1", "sm_lockx"},
               {"GPU-1", "sm_loc"},
               {"GPU-1", ""},
               {"ze-1", "sm_min_khz:"},
               {"ze-1", "sm_min_khz:1234567"},
               {"ze-1", "sm_min_khz:1x"},
               {"ze-1", "sm_min_khz"},
               {"ze-1", "xm_min_khz:1"},
               {"cpu", "/sys/devices/system/cpu/cpufreq/policy/scaling_max_freq"},
               {"cpu", "/sys/devices/system/cpu/cpufreq/policy1234567/scaling_max_freq"},
               {"cpu", "/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq"},
               {"cpu", "/sys/devices/system/cpu/cpufreq/boost/x"},
               {"cpu", "/sys/devices/system/cpu/cpufreq/boos"},
               {"cpu", "/etc/passwd"},
               {"cpu", ""}};
    fresh();
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        FL_CHECK(!takes(BAD[i].unit, BAD[i].key, BAD[i].unit[0] == 'G' ? -1 : 1), "%s takes '%s'", BAD[i].unit,
                 BAD[i].key);
    setenv("FOLDLINE_ROOT", "/r", 1);
    CU_ASSERT(takes("cpu", "/r/sys/devices/system/cpu/cpufreq/boost", 1));
    CU_ASSERT(!takes("cpu", "/sys/devices/system/cpu/cpufreq/boost", 1));
    CU_ASSERT(!takes("cpu", "/s/sys/devices/system/cpu/cpufreq/boost", 1));
    unsetenv("FOLDLINE_ROOT");
}

static void test_record_lines(void) {
    static const struct {
        const char *lines, *end;
        int line;
        const char *says;
    } BAD[] = {{"", "", 3, "no complete record"},
               {"prior -1 sm_lock\n", "", 4, "no complete record"},
               {"prior -1 sm_lock\n", "end", 5, "no complete record"},
               {"prior -1 sm_lock\n", "end\nend\n", 6, "something behind the end"},
               {"prior -1 sm_lock\nprior -1 sm_lock\n", "end\n", 5, "a second value of the key 'sm_lock'"},
               {"prior x sm_lock\n", "end\n", 4, "no number, and no key behind it, in 'x sm_lock'"},
               {"prior -1\n", "end\n", 4, "no number"},
               {"prior -1x sm_lock\n", "end\n", 4, "no number"},
               {"prior +5 power_limit_mw\n", "end\n", 4, "a number as nobody writes it"},
               {"prior 05 power_limit_mw\n", "end\n", 4, "a number as nobody writes it"},
               {"prior  5 power_limit_mw\n", "end\n", 4, "a number as nobody writes it"},
               {"prior 99999999999999999999 power_limit_mw\n", "end\n", 4, "a value that the control cannot hold"},
               {"prio -1 sm_lock\n", "end\n", 4, "expected prior or end, not 'prio -1 sm_lock'"},
               {"\n", "end\n", 4, "expected prior or end"},
               {"", "ende\n", 4, "expected prior or end"}};
    fl_record r;
    bool found;
    fresh();
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        fl_diag d = {0};
        const fl_status s = read_lines("GPU-1", BAD[i].lines, BAD[i].end, &r, &found, &d);
        FL_CHECK(s == FL_BAD_INPUT && !found && !r.count && d.line == BAD[i].line && strstr(d.message, BAD[i].says),
                 "'%s%s': %d, line %d: %s", BAD[i].lines, BAD[i].end, (int)s, (int)d.line, d.message);
    }
    CU_ASSERT(!read_lines("GPU-1", "", "end\n", &r, &found, NULL) && found && !r.count);
    fl_record_free(&r);
}

static void test_record_heads(void) {
    char good[200];
    snprintf(good, sizeof good, "boot %s", boot());
    const struct {
        const char *first, *second, *third;
        fl_status status;
        int line;
        const char *says;
    } HEADS[] = {
        {"foldline-record 1", good, "unit GPU-1", FL_OK, 0, NULL},
        {"foldline-record 2", good, "unit GPU-1", FL_BAD_INPUT, 1, "no record of this version"},
        {"foldline-record 1", "boo 1", "unit GPU-1", FL_BAD_INPUT, 2, "expected the boot, not 'boo 1'"},
        {"foldline-record 1", good, "unit GPU-2", FL_BAD_INPUT, 3, "expected the unit that the file is named after"},
        {"foldline-record 1", good, "unix GPU-1", FL_BAD_INPUT, 3, "expected the unit"},
        {"foldline-record 1", "boot 1", "whatever", FL_OK, -1, NULL}}; /* of an earlier boot: void */
    fresh();
    for (size_t i = 0; i < sizeof HEADS / sizeof *HEADS; i++) {
        char text[600];
        fl_record r;
        bool found = true;
        fl_diag d = {0};
        snprintf(text, sizeof text, "%s\n%s\n%s\nprior -1 sm_lock\nend\n", HEADS[i].first, HEADS[i].second,
                 HEADS[i].third);
        put(in(state, "GPU-1.record"), text, 0600);
        const fl_status s = fl_record_read(state, "GPU-1", &r, &found, &d);
        FL_CHECK(s == HEADS[i].status && (!s || ((int)d.line == HEADS[i].line && strstr(d.message, HEADS[i].says))),
                 "head %zu: %d, line %d: %s", i, (int)s, (int)d.line, d.message);
        FL_CHECK(found == (HEADS[i].line == 0) && r.count == (HEADS[i].line == 0), "head %zu: found %d", i, found);
        fl_record_free(&r);
    }
}

static void test_record_written(void) {
    char key[300], expected[600];
    fl_record r = {.unit = "GPU-1"}, back;
    fl_diag d = {0};
    bool found;
    const mode_t mask = umask(0);
    fresh();
    memset(key, 'k', sizeof key);
    key[256] = '\0';
    CU_ASSERT(fl_record_add(&r, key, 1, &d) == FL_BAD_INPUT && strstr(d.message, "too long") && r.count == 0);
    key[255] = '\0';
    CU_ASSERT(!fl_record_add(&r, key, 1, &d) && r.count == 1 && strlen(r.prior[0].key) == 255);
    fl_record_free(&r);
    CU_ASSERT(!r.count && !r.prior && !r.room && !*r.unit);
    snprintf(r.unit, sizeof r.unit, "GPU-1");
    const int before = descriptors();
    for (int round = 0; round < 2; round++) { /* the second replaces the first, and what a killed one left */
        CU_ASSERT(!fl_record_add(&r, round ? "mem_lock" : "sm_lock", -1, &d));
        put(in(state, "GPU-1.new"), "left", 0600);
        CU_ASSERT(!fl_record_write(state, &r, &d) && !there(in(state, "GPU-1.new")));
        snprintf(expected, sizeof expected, "foldline-record 1\nboot %s\nunit GPU-1\nprior -1 sm_lock\n%send\n", boot(),
                 round ? "prior -1 mem_lock\n" : "");
        char *text = text_of(in(state, "GPU-1.record"));
        FL_CHECK(!strcmp(text, expected), "it is '%s'", text);
        free(text);
        CU_ASSERT(mode_of(in(state, "GPU-1.record")) == 0600);
        CU_ASSERT(!fl_record_read(state, "GPU-1", &back, &found, &d) && found && back.count == r.count);
        fl_record_free(&back);
    }
    CU_ASSERT(!fl_record_remove(state, "GPU-1", &d) && !there(in(state, "GPU-1.record")));
    CU_ASSERT(!fl_record_read(state, "GPU-1", &back, &found, &d) && !found && !back.count);
    CU_ASSERT(!mkdir(in(state, "GPU-1.record"), 0700) && !mkdir(in(state, "GPU-1.record/in"), 0700));
    CU_ASSERT(fl_record_write(state, &r, &d) == FL_IO && strstr(d.message, "cannot write the record of prior values"));
    CU_ASSERT(!there(in(state, "GPU-1.new")));
    CU_ASSERT(fl_record_read(state, "GPU-1", &back, &found, &d) == FL_BAD_INPUT && !found);
    CU_ASSERT(!chmod(state, 0777)); /* it says what is wrong, not what that led to */
    CU_ASSERT(fl_record_write(state, &r, &d) == FL_IO && strstr(d.message, "others may write the folder"));
    clean(state);
    CU_ASSERT(fl_record_write(state, &r, &d) == FL_IO);
    CU_ASSERT(descriptors() == before);
    fl_record_free(&r);
    umask(mask);
}

static void test_record_units(void) {
    static const char *const FILES[] = {"b.record", "a.record", ".record",     "a.lock",
                                        "record",   "x.recor",  "c.record.new"};
    char **unit;
    size_t count;
    fresh();
    const int before = descriptors();
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        put(in(state, FILES[i]), "", 0600);
    CU_ASSERT(!fl_record_units(state, &unit, &count, NULL) && count == 2);
    const bool swapped = count == 2 && !strcmp(unit[0], "b");
    CU_ASSERT(count == 2 && !strcmp(unit[swapped], "a") && !strcmp(unit[!swapped], "b"));
    for (size_t i = 0; i < count; i++)
        free(unit[i]);
    free(unit);
    CU_ASSERT(!fl_record_units(in(state, "none"), &unit, &count, NULL) && !count && !unit);
    CU_ASSERT(!chmod(state, 0777) && fl_record_units(state, &unit, &count, NULL) == FL_IO && !count);
    CU_ASSERT(!chmod(state, 0700) && descriptors() == before);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

static void test_lock_files(void) {
    fl_lock lock, restore;
    fl_diag d = {0};
    char place[PATH_MAX], line[64];
    fresh();
    const int before = descriptors();
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d) && !strcmp(lock.unit, "GPU-1"));
    CU_ASSERT(descriptors() == before + 2 && fl_lock_is(lock.fd) && fl_lock_is(lock.held));
    CU_ASSERT(fl_lock_holder(state, "GPU-1") == getpid() && !fl_lock_holder(state, "GPU-2"));
    snprintf(line, sizeof line, "%d ", (int)getpid());
    char *held = text_of(in(run, "GPU-1.held")), *kept = text_of(in(state, "GPU-1.lock"));
    CU_ASSERT(!strncmp(held, line, strlen(line)) && held[63] == '\n' && !strncmp(held, kept, 64) && strlen(kept) == 64);
    CU_ASSERT(realpath(state, place) && !held[64] && strlen(held) == 64); /* the guardian's line is a hole yet */
    free(held);
    fl_lock_guard(&lock);
    held = text_of(in(run, "GPU-1.held"));
    CU_ASSERT(!strncmp(held, held + 64, 64) && !strcmp(held + 128, place));
    free(held);
    free(kept);
    CU_ASSERT(!fl_lock_superseded(state, &lock));
    CU_ASSERT(!unlink(in(run, "GPU-1.held")) && !fl_lock_superseded(state, &lock)); /* nobody took it */
    CU_ASSERT(fl_lock_holder(state, "GPU-1") == getpid());                          /* the other file still says so */
    put(in(run, "GPU-1.held"), "", 0600);
    CU_ASSERT(fl_lock_superseded(state, &lock));
    fl_lock_unlink(state, &lock);
    CU_ASSERT(there(in(run, "GPU-1.held")) && there(in(state, "GPU-1.lock"))); /* a successor's stay */
    fl_lock_close(&lock);
    CU_ASSERT(lock.fd == -1 && lock.held == -1 && descriptors() == before);
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_RESTORE, 0, &restore, &d));
    kept = text_of(in(state, "GPU-1.lock"));
    CU_ASSERT(!strcmp(kept, "restore\n") && !fl_lock_holder(state, "GPU-1"));
    free(kept);
    put(in(state, "GPU-1.record"), "", 0600);
    fl_lock_unlink(state, &restore);
    CU_ASSERT(there(in(run, "GPU-1.held")) && there(in(state, "GPU-1.lock"))); /* as long as a record is there */
    CU_ASSERT(!unlink(in(state, "GPU-1.record")));
    fl_lock_unlink(state, &restore);
    CU_ASSERT(!there(in(run, "GPU-1.held")) && !there(in(state, "GPU-1.lock")));
    put(in(state, "GPU-1.lock"), "", 0600);
    CU_ASSERT(fl_lock_superseded(state, &restore));
    fl_lock_close(&restore);
}

static void test_lock_is(void) {
    fl_lock lock;
    int pipes[2];
    fresh();
    CU_ASSERT(!fl_lock_is(-1) && !pipe(pipes) && !fl_lock_is(pipes[0]));
    close(pipes[0]);
    close(pipes[1]);
    static const struct {
        const char *text;
        bool is;
    } FILES[] = {{"", false},
                 {"restore\n", false},
                 {"1 2", false},
                 {"1 2                                                            \n", true},
                 {"0 2                                                            \n", false},
                 {"x 2                                                            \n", false}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        put(in(state, "file"), FILES[i].text, 0600);
        const int fd = open(in(state, "file"), O_RDWR);
        FL_CHECK(fl_lock_is(fd) == FILES[i].is, "'%s'", FILES[i].text);
        close(fd);
    }
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, NULL));
    const int second = open(in(state, "GPU-1.lock"), O_RDWR);
    CU_ASSERT(!fl_lock_is(second)); /* the same file, but somebody else holds it */
    close(second);
    fl_lock_close(&lock);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void test_lock_taken(void) {
    fl_lock lock, second;
    fl_diag d = {0};
    char says[100];
    fresh();
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d));
    const int before = descriptors();
    const int64_t start = now_ns();
    CU_ASSERT(fl_lock_take(state, "GPU-1", FL_LOCK_RESTORE, 60 * SECOND, &second, &d) == FL_HARDWARE);
    snprintf(says, sizeof says, "GPU-1 is controlled by process %d: stop that first", (int)getpid());
    FL_CHECK(strstr(d.message, says), "%s", d.message);
    CU_ASSERT(second.fd == -1 && second.held == -1 && descriptors() == before && now_ns() - start >= SECOND);
    fl_lock_close(&lock);
    /* the lock of the state folder alone, as two containers that do not share /run have it */
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d) && !unlink(in(run, "GPU-1.held")));
    CU_ASSERT(fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 60 * SECOND, &second, &d) == FL_HARDWARE);
    fl_lock_close(&lock);
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_RESTORE, 0, &lock, &d));
    fl_lock_guard(&lock);
    CU_ASSERT(fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, SECOND / 100, &second, &d) == FL_HARDWARE);
    snprintf(says, sizeof says, "the restore that holds it (process %d) does not end", (int)getpid());
    FL_CHECK(strstr(d.message, says), "%s", d.message);
    fl_lock_close(&lock);
    CU_ASSERT(!fl_lock_take(state, "GPU-2", FL_LOCK_CONTROL, 0, &lock, &d));
    fl_lock_close(&lock);
}

static volatile int unlockable; /* as on a file system without locks */

/* In the place of libc's. */
int flock(int fd, int how) {
    if (!unlockable)
        return (int)syscall(SYS_flock, fd, how);
    errno = ENOLCK;
    return -1;
}

/* Where nothing can be locked, that is said at once: whoever waited for it would wait for nobody. */
static void test_lock_none(void) {
    fl_lock lock;
    fl_diag d = {0};
    fresh();
    const int before = descriptors();
    unlockable = 1;
    const fl_status status = fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, SECOND / 100, &lock, &d);
    unlockable = 0;
    FL_CHECK(status == FL_IO && strstr(d.message, "cannot lock GPU-1: "), "%d: %s", status, d.message);
    CU_ASSERT(lock.fd == -1 && lock.held == -1 && descriptors() == before);
}

/* How often this process has the file open, or a file of that name that was removed. */
static int opened_files(const char *path) {
    char name[700], target[700];
    int count = 0;
    for (int fd = 0; fd < 64; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t size = readlink(name, target, sizeof target - 1);
        target[size > 0 ? size : 0] = '\0';
        count += !strncmp(target, path, strlen(path));
    }
    return count;
}

static fl_lock waited;
static fl_status waited_status;

static void *wait_for_it(void *user) {
    (void)user;
    waited_status = fl_lock_take(state, "GPU-1", FL_LOCK_RESTORE, 600 * SECOND, &waited, NULL);
    return NULL;
}

/* Whoever waits for a lock whose holder removes its files has then locked what is no longer there: it takes the files
 * that are, and keeps nothing of the others open. */
static void test_lock_removed(void) {
    fl_lock lock;
    pthread_t thread;
    fresh();
    const int before = descriptors();
    CU_ASSERT_FATAL(!fl_lock_take(state, "GPU-1", FL_LOCK_RESTORE, 0, &lock, NULL));
    CU_ASSERT_FATAL(!pthread_create(&thread, NULL, wait_for_it, NULL));
    for (const int64_t end = now_ns() + 60 * SECOND; opened_files(in(run, "GPU-1.held")) < 2 && now_ns() < end;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    fl_lock_unlink(state, &lock);
    CU_ASSERT(!there(in(run, "GPU-1.held")) && !there(in(state, "GPU-1.lock")));
    fl_lock_close(&lock);
    CU_ASSERT(!pthread_join(thread, NULL) && !waited_status);
    CU_ASSERT(there(in(run, "GPU-1.held")) && there(in(state, "GPU-1.lock")) && !fl_lock_superseded(state, &waited));
    CU_ASSERT(descriptors() == before + 2);
    fl_lock_close(&waited);
    CU_ASSERT(descriptors() == before);
}

/* A guardian that somebody stopped holds the lock; whoever waits for it continues it. */
static void test_lock_wakes(void) {
    fl_lock lock;
    fl_diag d = {0};
    fresh();
    const pid_t pid = fork();
    if (!pid) {
        if (fl_lock_take(state, "GPU-1", FL_LOCK_RESTORE, 0, &lock, NULL))
            _exit(1);
        fl_lock_guard(&lock);
        raise(SIGSTOP);
        _exit(7);
    }
    CU_ASSERT(waitpid(pid, NULL, WUNTRACED) == pid);
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 60 * SECOND, &lock, &d));
    CU_ASSERT(exit_of(pid) == 7);
    fl_lock_close(&lock);
}

/* A controller that has ended and is not yet waited for is no holder; nor is one whose number another process has. */
static void test_lock_dead(void) {
    fl_lock lock;
    fresh();
    const pid_t pid = fork();
    if (!pid)
        _exit(fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, NULL) ? 1 : 0);
    siginfo_t info;
    CU_ASSERT(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) && !info.si_status);
    CU_ASSERT(there(in(state, "GPU-1.lock")) && !fl_lock_holder(state, "GPU-1"));
    CU_ASSERT(exit_of(pid) == 0 && !fl_lock_holder(state, "GPU-1"));
    char line[100];
    snprintf(line, sizeof line, "%d 1%*s\n", (int)getpid(), 40, "");
    put(in(run, "GPU-1.held"), line, 0600);
    put(in(state, "GPU-1.lock"), line, 0600);
    CU_ASSERT(!fl_lock_holder(state, "GPU-1"));
    put(in(state, "GPU-1.lock"), "-1 1\n", 0600);
    CU_ASSERT(!fl_lock_holder(state, "GPU-1"));
}

/* What a controller left in another state folder is restored there first. */
static void test_lock_places(void) {
    fl_lock lock;
    fl_diag d = {0};
    fl_record r = {.unit = "GPU-1"};
    fresh();
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d));
    fl_lock_close(&lock);                                                    /* killed, with its guardian */
    CU_ASSERT(!fl_lock_take(other, "GPU-1", FL_LOCK_RESTORE, 0, &lock, &d)); /* which keeps where it was */
    fl_lock_close(&lock);
    CU_ASSERT(!fl_record_write(state, &r, &d));
    CU_ASSERT(fl_lock_take(other, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d) == FL_HARDWARE);
    char says[600];
    snprintf(says, sizeof says, "FOLDLINE_STATE=%s foldline restore first", state);
    FL_CHECK(strstr(d.message, says), "%s", d.message);
    put(in(state, "GPU-1.record"), "torn", 0600);
    CU_ASSERT(fl_lock_take(other, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d) == FL_HARDWARE);
    CU_ASSERT(!fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d)); /* there it may go on */
    fl_lock_close(&lock);
    CU_ASSERT(!unlink(in(state, "GPU-1.record")));
    CU_ASSERT(!fl_lock_take(other, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d));
    fl_lock_close(&lock);
    CU_ASSERT(!fl_record_write(state, &r, &d)); /* now the place is the other, where nothing is left */
    CU_ASSERT(!fl_lock_take(other, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d));
    fl_lock_close(&lock);
    const int before = descriptors();
    CU_ASSERT(fl_lock_take(in(state, "none"), "GPU-1", FL_LOCK_RESTORE, 0, &lock, &d) == FL_IO &&
              strstr(d.message, "is missing"));
    CU_ASSERT(fl_lock_take(in(state, "none"), "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d) == FL_IO);
    CU_ASSERT(lock.fd == -1 && lock.held == -1 && descriptors() == before);
    CU_ASSERT(!chmod(run, 0777) && fl_lock_take(state, "GPU-1", FL_LOCK_CONTROL, 0, &lock, &d) == FL_IO);
    CU_ASSERT(!chmod(run, 0700));
}

/* ---- restores ---------------------------------------------------------------------------------------------------- */

static int restored_gpu;
static fl_status restores;
static uint32_t two(void *self) {
    (void)self;
    return 2;
}
static const char *unit_of(void *self, uint32_t i) {
    (void)self;
    return i ? "GPU-1" : "GPU-0";
}
static fl_status restore(void *self, uint32_t i, const fl_record *r, fl_diag *d) {
    (void)self;
    CU_ASSERT(r->count == 1);
    restored_gpu = (int)i;
    return restores ? fl_error(d, restores, "it does not want to") : FL_OK;
}
static const fl_backend BACK = {.count = two, .unit = unit_of, .restore = restore};

static void test_restores(void) {
    const fl_gpus gpus = {&BACK, &restored_gpu}, none = {0};
    fl_record r = {.unit = "GPU-1"}, lost = {.unit = "GPU-9"};
    fl_diag d = {0};
    bool restored = true;
    fresh();
    CU_ASSERT(!fl_restore_unit(state, "GPU-1", &gpus, &restored, &d) && !restored);
    CU_ASSERT(!fl_record_add(&r, "sm_lock", -1, &d) && !fl_record_add(&lost, "sm_lock", -1, &d));
    for (int i = 0; i < 4; i++) { /* with and without asking, in order and not */
        restored = i & 1;
        restored_gpu = -1;
        restores = i & 2 ? FL_HARDWARE : FL_OK;
        CU_ASSERT(!fl_record_write(state, &r, &d));
        CU_ASSERT(fl_restore_unit(state, "GPU-1", &gpus, i & 1 ? &restored : NULL, &d) == restores);
        CU_ASSERT(restored_gpu == 1 && there(in(state, "GPU-1.record")) == (restores != FL_OK));
        CU_ASSERT(restored == (i == 1));
    }
    restores = FL_OK;
    CU_ASSERT(fl_restore_record(&lost, &gpus, &d) == FL_HARDWARE && strstr(d.message, "GPU-9: no such GPU now"));
    CU_ASSERT(fl_restore_record(&r, NULL, &d) == FL_HARDWARE && fl_restore_record(&r, &none, &d) == FL_HARDWARE);
    put(in(state, "GPU-1.record"), "foldline-record 1\nboot 1\n", 0600);
    restored_gpu = -1;
    CU_ASSERT(!fl_restore_unit(state, "GPU-1", &gpus, &restored, &d) && !restored && restored_gpu == -1);
    CU_ASSERT(!there(in(state, "GPU-1.record"))); /* of an earlier boot */
    put(in(state, "GPU-1.record"), "torn", 0600);
    CU_ASSERT(fl_restore_unit(state, "GPU-1", &gpus, &restored, &d) == FL_BAD_INPUT &&
              there(in(state, "GPU-1.record")));
    fl_record_free(&r);
    fl_record_free(&lost);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static bool passes(const fl_gpu_facts *facts, int signal, double value) {
    fl_guard *g;
    fl_gpu_sample s = {.valid = FL_BIT(signal), .fresh = FL_BIT(signal)};
    CU_ASSERT_FATAL(!fl_guard_open(&g, 2, NULL));
    fl_bounds_set(g, 1, facts);
    s.value[signal] = value;
    fl_guard_gpu(g, 1, 1, &s);
    fl_guard_close(g);
    return s.valid;
}

static void test_bounds(void) {
    static const int32_t sm[] = {210, 1400}, mem[] = {800};
    const fl_gpu_facts known = {.sm = {sm, 2}, .mem = {mem, 1}, .power_max_w = 300}, unknown = {0};
    const double bits = FL_THROTTLE_POWER + FL_THROTTLE_THERMAL + FL_THROTTLE_IDLE + FL_THROTTLE_OTHER;
    const struct {
        const fl_gpu_facts *facts;
        int signal;
        double low, high;
    } ROWS[] = {{&known, FL_GPU_UTIL_GPU_PCT, 0, 101}, {&known, FL_GPU_TEMP_C, 0, 150},
                {&known, FL_GPU_POWER_W, 0, 3000},     {&unknown, FL_GPU_POWER_W, 0, 1e5},
                {&known, FL_GPU_SM_MHZ, 1, 2800},      {&unknown, FL_GPU_SM_MHZ, 1, 1e5},
                {&known, FL_GPU_MEM_MHZ, 1, 1600},     {&unknown, FL_GPU_MEM_MHZ, 1, 1e5},
                {&known, FL_GPU_THROTTLE, 0, bits},    {&known, FL_GPU_POWER_INSTANT_W, 0, 3000}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const int id = ROWS[i].signal;
        const double low = ROWS[i].low, high = ROWS[i].high;
        FL_CHECK(passes(ROWS[i].facts, id, low) && !passes(ROWS[i].facts, id, low - 1e-6), "row %zu, low", i);
        FL_CHECK(passes(ROWS[i].facts, id, high) && !passes(ROWS[i].facts, id, high * (1 + 1e-9)), "row %zu, high", i);
    }
    CU_ASSERT(passes(&known, FL_GPU_ENERGY_J, 1e12)); /* a counter has no bound */
    fl_guard *g;
    char text[64], small[12];
    CU_ASSERT_FATAL(!fl_guard_open(&g, 2, NULL));
    for (uint32_t gpu = 0; gpu < 2; gpu++)
        fl_bounds_set(g, gpu, &known);
    CU_ASSERT(fl_bounds_tell(g, 2, text, sizeof text) == 0 && !*text);
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        fl_gpu_sample s = {.valid = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_TEMP_C)};
        s.value[FL_GPU_POWER_W] = 4e9;
        s.value[FL_GPU_TEMP_C] = gpu ? 255 : 50;
        fl_guard_gpu(g, gpu, 1, &s);
    }
    const uint64_t count = fl_bounds_tell(g, 2, text, sizeof text);
    FL_CHECK(count == 3 && !strcmp(text, "power_w 2, temp_c 1"), "%s", text);
    CU_ASSERT(fl_bounds_tell(g, 1, text, sizeof text) == 1 && !strcmp(text, "power_w 1"));
    CU_ASSERT(fl_bounds_tell(g, 2, small, sizeof small) == 3 && !strcmp(small, "power_w 2, "));
    CU_ASSERT(fl_bounds_tell(g, 2, small, 5) == 3 && !strcmp(small, "powe"));
    fl_guard_close(g);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static struct sigaction action_of(int number) {
    struct sigaction a = {0};
    sigaction(number, NULL, &a);
    return a;
}

static void from_kernel(int number) { /* as the terminal's */
    siginfo_t info = {.si_signo = number, .si_code = SI_KERNEL};
    syscall(SYS_rt_sigqueueinfo, getpid(), number, &info);
}

#define MUST(condition)                                                                                                \
    if (!(condition))                                                                                                  \
    _exit(__LINE__ % 200 + 1)

/* In a process of its own, which a signal may end. */
static void listen_and_hear(void) {
    sigset_t all, mask;
    sigfillset(&all);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_DFL); /* ignored where this suite runs in the background */
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    MUST(fl_stop_ignored(SIGHUP) && !fl_stop_ignored(SIGTERM));
    sigprocmask(SIG_SETMASK, &all, NULL); /* as a parent may leave them */
    MUST(!fl_stop_asked() && !fl_stop_hand_on());
    fl_stop_listen();
    sigprocmask(SIG_SETMASK, NULL, &mask);
    const int heard[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    for (int i = 0; i < 4; i++)
        MUST(!sigismember(&mask, heard[i]));
    MUST(sigismember(&mask, SIGUSR1));
    MUST(fl_stop_ignored(SIGHUP) && fl_stop_ignored(SIGPIPE) && fl_stop_ignored(SIGXFSZ));
    MUST(action_of(SIGCHLD).sa_handler != SIG_DFL && action_of(SIGCHLD).sa_flags & SA_NOCLDSTOP);
    MUST(!(action_of(SIGCHLD).sa_flags & SA_RESTART) && !(action_of(SIGTERM).sa_flags & SA_RESTART));
    raise(SIGCHLD);
    MUST(!fl_stop_asked());
    raise(SIGHUP);
    MUST(!fl_stop_asked());
    from_kernel(SIGINT);
    MUST(fl_stop_asked() && !fl_stop_hand_on()); /* the whole job has had it already */
    raise(SIGINT);
    raise(SIGTERM);
    MUST(fl_stop_asked() && fl_stop_hand_on() == SIGTERM && fl_stop_hand_on() == 0 && fl_stop_asked());
    fl_stop_forget();
    MUST(fl_stop_ignored(SIGHUP) && action_of(SIGTERM).sa_handler == SIG_DFL);
    MUST(action_of(SIGINT).sa_handler == SIG_DFL);
    raise(SIGINT);
    _exit(250);
}

static void test_stop(void) {
    fflush(stdout);
    const pid_t pid = fork();
    if (!pid)
        listen_and_hear();
    const int status = exit_of(pid);
    FL_CHECK(status == 128 + SIGINT, "it ends with %d: line %d, if below 128", status, status - 1);
}

static void *mask_of_it(void *user) {
    pthread_sigmask(SIG_SETMASK, NULL, user);
    return NULL;
}

/* A thread beside the controller takes no signal that is meant for it; the controller takes them as before. */
static void test_stop_thread(void) {
    const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1};
    pthread_t thread;
    sigset_t before, after, there_mask;
    CU_ASSERT(!pthread_sigmask(SIG_SETMASK, NULL, &before));
    CU_ASSERT_FATAL(!fl_stop_thread(&thread, mask_of_it, &there_mask) && !pthread_join(thread, NULL));
    CU_ASSERT(!pthread_sigmask(SIG_SETMASK, NULL, &after));
    for (int i = 0; i < 5; i++) {
        FL_CHECK(sigismember(&there_mask, numbers[i]) == 1, "the thread takes signal %d", numbers[i]);
        FL_CHECK(sigismember(&after, numbers[i]) == sigismember(&before, numbers[i]), "signal %d is blocked",
                 numbers[i]);
    }
    CU_ASSERT(!pthread_sigmask(SIG_SETMASK, &before, NULL));
}

/* ---- a ring that is cut while it is read ------------------------------------------------------------------------- */

static volatile int work_done;
static void read_all(void *user) {
    volatile const char *at = user;
    work_done = 1;
    work_done += at[4096] == 0;
}

static void test_ring_guard(void) {
    fresh();
    const int fd = open(in(state, "ring"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, 8192));
    char *at = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    CU_ASSERT_FATAL(at != MAP_FAILED);
    signal(SIGBUS, SIG_IGN);
    CU_ASSERT(fl_ring_guard(read_all, at) && work_done == 2 && action_of(SIGBUS).sa_handler == SIG_IGN);
    CU_ASSERT(!ftruncate(fd, 0));
    for (int i = 0; i < 2; i++) { /* the second time too: the signal is not left blocked */
        work_done = 0;
        CU_ASSERT(!fl_ring_guard(read_all, at) && work_done == 1 && action_of(SIGBUS).sa_handler == SIG_IGN);
    }
    signal(SIGBUS, SIG_DFL);
    munmap(at, 8192);
    close(fd);
}

static const fl_case CASES[] = {{"names of files", test_paths},
                                {"where they are", test_where},
                                {"folders", test_folders},
                                {"without a standard input", test_descriptor_0},
                                {"files", test_files},
                                {"records: ranges", test_record_ranges},
                                {"records: keys", test_record_keys},
                                {"records: lines", test_record_lines},
                                {"records: heads", test_record_heads},
                                {"records: written", test_record_written},
                                {"records: units", test_record_units},
                                {"locks: files", test_lock_files},
                                {"locks: which descriptor is one", test_lock_is},
                                {"locks: taken", test_lock_taken},
                                {"locks: where there are none", test_lock_none},
                                {"locks: removed by their holder", test_lock_removed},
                                {"locks: a stopped guardian", test_lock_wakes},
                                {"locks: a dead holder", test_lock_dead},
                                {"locks: places", test_lock_places},
                                {"restores", test_restores},
                                {"bounds", test_bounds},
                                {"signals that end it", test_stop},
                                {"a thread beside it", test_stop_thread},
                                {"a ring that is cut", test_ring_guard}};

static void name_folders(void) {
    snprintf(state, sizeof state, "%s", fl_temp_path("state"));
    snprintf(other, sizeof other, "%s", fl_temp_path("other"));
    snprintf(run, sizeof run, "%s", fl_temp_path("run"));
}

FL_SUITE_OF("live_rules", CASES, .open = name_folders, .close = clean_up)
