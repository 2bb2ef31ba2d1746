/* One controller and its guardian, step by step and without chance: who starts whom, what is recorded before what is
 * set, what is restored after which end, what is told. test_live_guardian tries the same at random times. */
#include "tests/support/fail_alloc.c"

#include "harness/live/guard/guard.h"
#include "harness/live/guard/inside.h"
#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/stub_nvml.h"
#include "tests/support/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { GPUS = 2, LIMIT = 150000, PRIOR = 211000 };
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define GPU0 "GPU-00000000-stub-0"
#define GPU1 "GPU-00000000-stub-1"

static stub_state *stub;
static char state[512], run[512], said_path[512];

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

/* After the last case, where CUnit takes no assertion. */
static void clean_up(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", fl_temp_folder);
    if (system(command))
        perror(fl_temp_folder);
}

static bool there(const char *path) { return !access(path, F_OK); }

static char *text_of(const char *path) {
    size_t size;
    char *text = fl_temp_slurp(path, &size);
    return text ? text : strdup("(none)");
}

static void fresh(void) {
    clean(state);
    clean(run);
    CU_ASSERT(!mkdir(state, 0700) && !mkdir(run, 0700));
    memset(stub, 0, sizeof *stub);
    stub->gpus = GPUS;
    for (int i = 0; i < GPUS; i++)
        stub->gpu[i].limit_mw = LIMIT;
    unlink(said_path);
}

static int descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int exit_of(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void wait_ms(int ms) {
    for (const int64_t end = fl_guard_now_ns() + ms * MS; fl_guard_now_ns() < end;)
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
}

static bool gone(pid_t pid) {
    char path[64], line[256] = "", *at;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    const bool none = !fgets(line, sizeof line, f) || !(at = strrchr(line, ')')) || at[2] == 'Z' || at[2] == 'X';
    fclose(f);
    return none;
}

/* At most a minute, far more than any machine needs. */
#define UNTIL(condition)                                                                                               \
    for (const int64_t end_ = fl_guard_now_ns() + 60 * SECOND; !(condition) && fl_guard_now_ns() < end_;)              \
    nanosleep(&(struct timespec){.tv_nsec = MS}, NULL)

/* Those that were given up: each waits for the end of this process. */
static void end_guardians(void) {
    for (unsigned i = 0; i < stub->inits; i++)
        if (stub->init_pid[i] != getpid() && !gone(stub->init_pid[i]))
            kill(stub->init_pid[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
}

/* ---- the controller's side of the guardian ----------------------------------------------------------------------- */

/* Silence is counted from question to question: so much of each as ten checks last, and 250 checks or a second are too
 * much. The times are set by hand, far from where the machine's own pace could matter. */
static void test_answers(void) {
    static const struct {
        const char *name;
        int64_t check_ns, silent_ns, ago_ns;
        bool looked, answers;
        int64_t silent;
    } ROWS[] = {{"it looked", 4 * MS, 5 * SECOND, 9 * SECOND, true, true, 0},
                {"a long wait counts as ten checks", 4 * MS, 0, 9 * SECOND, false, true, 40 * MS},
                {"a second is not too much", 4 * MS, SECOND - 40 * MS, 9 * SECOND, false, true, SECOND},
                {"more is", 4 * MS, SECOND - 40 * MS + 1, 9 * SECOND, false, false, SECOND + 1},
                {"250 checks are not", 10 * MS, 2400 * MS, 9 * SECOND, false, true, 2500 * MS},
                {"more are", 10 * MS, 2400 * MS + 1, 9 * SECOND, false, false, 2500 * MS + 1}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct fl_beat beat = {.looked_ns = 17};
        fl_guardian g = {.beat = &beat, .check_ns = ROWS[i].check_ns, .silent_ns = ROWS[i].silent_ns};
        g.looked_ns = ROWS[i].looked ? 16 : 17;
        g.asked_ns = fl_guard_now_ns() - ROWS[i].ago_ns;
        const int64_t before = fl_guard_now_ns();
        const bool answers = fl_guardian_answers(&g);
        FL_CHECK(answers == ROWS[i].answers && g.silent_ns == ROWS[i].silent, "%s: %d, %" PRId64 " ns", ROWS[i].name,
                 answers, g.silent_ns);
        CU_ASSERT(g.looked_ns == 17 && g.asked_ns >= before && g.asked_ns <= fl_guard_now_ns());
    }
    fl_guardian none = {.check_ns = 100 * SECOND,
                        .asked_ns = fl_guard_now_ns() - SECOND}; /* less than ten checks: as it is */
    CU_ASSERT(fl_guardian_answers(&none) && none.silent_ns >= SECOND && none.silent_ns < 60 * SECOND);
    fl_guardian_beat(&none, 5); /* nowhere: nothing happens */
    CU_ASSERT(!fl_guardian_alive(&none) && fl_guardian_end(&none));
}

static unsigned long long mask_of(pid_t pid, const char *name) {
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            mask = strtoull(line + strlen(name), NULL, 16);
    if (f)
        fclose(f);
    return mask;
}

static void check_process(pid_t pid) {
    const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ};
    char path[64], target[64];
    for (int i = 0; i < 5; i++)
        FL_CHECK(mask_of(pid, "SigIgn:") >> (ignored[i] - 1) & 1, "signal %d ends it", ignored[i]);
    CU_ASSERT(mask_of(pid, "SigBlk:") == 0 && getsid(pid) == pid);
    for (int fd = 0; fd < 3; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        const ssize_t n = readlink(path, target, sizeof target);
        FL_CHECK(n == 9 && !strncmp(target, "/dev/null", 9), "stream %d is not closed", fd);
    }
}

/* It has a session of its own, ignores what ends a job, and keeps nothing open that it does not need. */
static void test_process(void) {
    fl_guardian g;
    fl_lock lock;
    fl_diag d = {0};
    int ends[2];
    char byte;
    sigset_t blocked, before;
    fresh();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CU_ASSERT(!pipe(ends) && !sigprocmask(SIG_BLOCK, &blocked, &before));
    const int open_now = descriptors();
    CU_ASSERT(!fl_lock_take(state, GPU0, FL_LOCK_CONTROL, 0, &lock, &d));
    CU_ASSERT(!fl_guardian_start(&g, &lock, 1, 20 * MS, &d) && g.pid > 0 && g.check_ns == 20 * MS);
    CU_ASSERT(g.beat->until_ns == INT64_MAX && fl_guardian_alive(&g) && fl_guardian_answers(&g));
    check_process(g.pid);
    close(ends[1]);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    CU_ASSERT(poll(&p, 1, 60000) == 1 && read(ends[0], &byte, 1) == 0); /* nobody else has the other end */
    close(ends[0]);
    char *held = text_of(in(run, GPU0 ".held")), *kept = text_of(in(state, GPU0 ".lock"));
    CU_ASSERT(atoi(held + 64) == g.pid && atoi(kept + 64) == g.pid && atoi(held) == getpid());
    free(held);
    free(kept);
    UNTIL(g.beat->looked_ns);
    CU_ASSERT(!fl_guardian_recorded(&g, &d));
    const int64_t looked = g.beat->looked_ns;
    UNTIL(g.beat->looked_ns != looked); /* without a time to come it looks every ten checks */
    CU_ASSERT(g.beat->looked_ns - looked >= 100 * MS);
    const pid_t pid = g.pid;
    const int64_t asked = fl_guard_now_ns();
    fl_guardian_dismiss(&g);
    CU_ASSERT(gone(pid) && !g.pid && g.wire == -1 && g.beat_fd == -1 && !g.beat);
    FL_CHECK(fl_guard_now_ns() - asked < 900 * MS || fl_guard_now_ns() - asked > 10 * SECOND,
             "it does not end as it is told to");
    fl_lock_close(&lock);
    CU_ASSERT(descriptors() == open_now - 2 && !sigprocmask(SIG_SETMASK, &before, NULL));
}

static void test_start_refused(void) {
    static fl_lock many[UNITS_MAX + 1];
    fl_guardian g;
    fl_diag d = {0};
    fl_lock lock;
    fresh();
    const int before = descriptors();
    CU_ASSERT(fl_guardian_start(&g, many, UNITS_MAX + 1, 20 * MS, &d) == FL_HARDWARE);
    CU_ASSERT(strstr(d.message, "cannot start the guardian") && descriptors() == before && g.wire == -1 && !g.beat);
    CU_ASSERT(!fl_lock_take(state, GPU0, FL_LOCK_CONTROL, 0, &lock, &d));
    stub->init_code = 9; /* no driver */
    CU_ASSERT(fl_guardian_start(&g, &lock, 1, 20 * MS, &d) == FL_HARDWARE && strstr(d.message, "does not get ready"));
    stub->init_code = 0;
    fl_lock_close(&lock);
    fl_lock plain = {.fd = open(in(state, "plain"), O_RDWR | O_CREAT | O_CLOEXEC, 0600), .unit = GPU0};
    plain.held = dup(plain.fd);
    CU_ASSERT(fl_guardian_start(&g, &plain, 1, 20 * MS, &d) == FL_HARDWARE); /* no lock, no guardian */
    fl_lock_close(&plain);
    CU_ASSERT(descriptors() == before);
    end_guardians();
}

/* Arguments that no controller gives. */
static void test_arguments(void) {
    static const struct {
        const char *argument[7];
        int status;
    } ROWS[] = {{{"0"}, 2},
                {{"3", "4", "5", "6"}, 2},
                {{"3", "4", "FD", "6", "1000", "no unit"}, 2},
                {{"3", "4", "FD", "6", "1000", "7:8"}, 2},
                {{"3", "4", "9999", "6", "1000"}, 2},
                {{"3", "4", "FD", "6", "1000", "900:901:" GPU0}, 3}};
    fresh();
    const int shared = memfd_create("beat", 0);
    CU_ASSERT(!ftruncate(shared, 64));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char *argv[8] = {NULL}, fd[16];
        int argc = 0;
        snprintf(fd, sizeof fd, "%d", shared);
        for (; ROWS[i].argument[argc]; argc++)
            argv[argc] = !strcmp(ROWS[i].argument[argc], "FD") ? fd : (char *)(uintptr_t)ROWS[i].argument[argc];
        fflush(stdout);
        const pid_t pid = fork();
        if (!pid)
            _exit(fl_guardian_main(argc, argv));
        const int status = exit_of(pid);
        FL_CHECK(status == ROWS[i].status, "row %zu: %d", i, status);
    }
    close(shared);
}

/* ---- what it does at an end -------------------------------------------------------------------------------------- */

typedef enum way { ENDS, DISMISSES, HANGS, CLOSES_WIRE, CLOSES_AND_HANGS } way;

static bool hangs(way how) { return how == HANGS || how == CLOSES_AND_HANGS; }

typedef struct ending {
    const char *name;
    way how;
    const char *spoil;  /* after it was read: "gone", "torn"; before: "unread", "torn-unread"; "successor", "refuse" */
    bool back;          /* the limit of before returns */
    bool record, locks; /* their files are left */
    const char *log, *told;
} ending;

static void write_record(const char *unit) {
    fl_record r = {0};
    snprintf(r.unit, sizeof r.unit, "%s", unit);
    if (fl_record_add(&r, FL_PRIOR_LIMIT_MW, PRIOR, NULL) || fl_record_write(state, &r, NULL))
        _exit(21);
    fl_record_free(&r);
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, 0600))
        _exit(22);
}

/* A controller of one GPU, as far as its guardian sees one. */
static void control(const ending *e) {
    const char *spoil = e->spoil ? e->spoil : "";
    fl_guardian g;
    fl_lock lock;
    const int err = open(said_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(err, 2);
    if (fl_lock_take(state, GPU1, FL_LOCK_CONTROL, 0, &lock, NULL) || fl_guardian_start(&g, &lock, 1, 4 * MS, NULL))
        _exit(23);
    write_record(GPU1);
    if (!strcmp(spoil, "torn-unread"))
        write_text(in(state, GPU1 ".record"), "torn");
    if (!strstr(spoil, "unread") && fl_guardian_recorded(&g, NULL))
        _exit(24);
    if (!strcmp(spoil, "gone"))
        unlink(in(state, GPU1 ".record"));
    if (!strcmp(spoil, "torn"))
        write_text(in(state, GPU1 ".record"), "torn");
    if (!strcmp(spoil, "successor")) {
        unlink(in(state, GPU1 ".lock"));
        write_text(in(state, GPU1 ".lock"), "");
    }
    if (!strcmp(spoil, "refuse"))
        stub->gpu[1].set_code = 4;
    if (e->how == CLOSES_AND_HANGS)
        close(g.wire);
    fl_guardian_beat(&g, hangs(e->how) ? fl_guard_now_ns() + 100 * MS : INT64_MAX);
    if (hangs(e->how))
        for (;;)
            pause();
    if (e->how == DISMISSES)
        fl_guardian_dismiss(&g);
    if (e->how == CLOSES_WIRE) { /* its end alone counts, not that of the wire */
        close(g.wire);
        wait_ms(150);
        if (stub->gpu[1].limit_mw != LIMIT || !fl_guardian_alive(&g))
            _exit(25);
    }
    _exit(0);
}

static const ending ENDINGS[] = {
    {"it ends", ENDS, 0, true, false, false, "the controller ended; restored\n", 0},
    {"it closes the wire, then ends", CLOSES_WIRE, 0, true, false, false, "the controller ended; restored\n", 0},
    {"its record is lost", ENDS, "gone", true, false, false, "the controller ended; restored\n", 0},
    {"its record is spoiled", ENDS, "torn", true, false, false, "the controller ended; restored\n", 0},
    {"its record was not read before", ENDS, "unread", true, false, false, "the controller ended; restored\n", 0},
    {"its record cannot be read", ENDS, "torn-unread", false, true, true, "the controller ended; not restored: ", 0},
    {"a successor is in control", ENDS, "successor", false, true, true, "the controller ended; restored\n", 0},
    {"it dismisses", DISMISSES, 0, false, true, true, NULL, 0},
    {"it hangs", HANGS, 0, true, false, false, " s and was killed; restored\n",
     "foldline live: killed by its guardian: the controller missed its time by "},
    {"it gives the guardian up and hangs", CLOSES_AND_HANGS, 0, true, false, false, " s and was killed; restored\n",
     "foldline live: killed by its guardian: the controller missed its time by "}};

static void test_endings(void) {
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        const ending *e = &ENDINGS[i];
        fresh();
        fflush(stdout);
        const pid_t pid = fork();
        if (!pid)
            control(e);
        const int status = exit_of(pid);
        FL_CHECK(status == (hangs(e->how) ? 128 + SIGKILL : 0), "%s: status %d", e->name, status);
        const pid_t guardian = stub->init_pid[0];
        UNTIL(gone(guardian));
        CU_ASSERT(guardian && guardian != pid && gone(guardian));
        FL_CHECK(stub->gpu[1].limit_mw == (e->back ? PRIOR : LIMIT) && stub->gpu[0].limit_mw == LIMIT, "%s: limit %u",
                 e->name, stub->gpu[1].limit_mw);
        FL_CHECK(there(in(state, GPU1 ".record")) == e->record, "%s: the record", e->name);
        FL_CHECK(there(in(state, GPU1 ".lock")) == e->locks && there(in(run, GPU1 ".held")) == e->locks,
                 "%s: the locks", e->name);
        char *log = text_of(in(state, "guardian.log")), *told = text_of(said_path);
        FL_CHECK(e->log ? strtoll(log, NULL, 10) > 1600000000 && strstr(log, e->log) : !strcmp(log, "(none)"),
                 "%s: the log says '%s'", e->name, log);
        FL_CHECK(e->told ? !strncmp(told, e->told, strlen(e->told)) && strstr(told, "/guardian.log\n") : !*told,
                 "%s: it was told '%s'", e->name, told);
        free(log);
        free(told);
    }
}

/* A driver that refuses now is asked again, with the library opened anew, until it takes it. */
static void test_restore_repeats(void) {
    static const ending refused = {.name = "refused", .how = ENDS, .spoil = "refuse"};
    fresh();
    fflush(stdout);
    const pid_t pid = fork();
    if (!pid)
        control(&refused);
    CU_ASSERT(exit_of(pid) == 0);
    UNTIL(stub->inits >= 3);
    CU_ASSERT(stub->gpu[1].limit_mw == LIMIT && there(in(state, GPU1 ".record")) && !gone(stub->init_pid[0]));
    stub->gpu[1].set_code = 0;
    UNTIL(gone(stub->init_pid[0]));
    CU_ASSERT(stub->gpu[1].limit_mw == PRIOR && !there(in(state, GPU1 ".record")));
    char *log = text_of(in(state, "guardian.log")); /* what went wrong before does not count any more */
    FL_CHECK(strstr(log, "the controller ended; restored\n"), "the log says '%s'", log);
    free(log);
}

/* The log starts again where it has become large. */
static void test_log_size(void) {
    static const struct {
        long size;
        bool kept;
    } ROWS[] = {{1 << 18, true}, {(1 << 18) + 1, false}};
    for (int i = 0; i < 2; i++) {
        struct stat f;
        fresh();
        write_text(in(state, "guardian.log"), "");
        CU_ASSERT(!truncate(in(state, "guardian.log"), ROWS[i].size));
        fflush(stdout);
        const pid_t pid = fork();
        if (!pid)
            control(&ENDINGS[0]);
        CU_ASSERT(exit_of(pid) == 0);
        UNTIL(gone(stub->init_pid[0]));
        CU_ASSERT(!stat(in(state, "guardian.log"), &f) && (f.st_size > ROWS[i].size) == ROWS[i].kept && f.st_size > 20);
        CU_ASSERT(ROWS[i].kept || f.st_size < 100);
    }
}

/* ---- a session --------------------------------------------------------------------------------------------------- */

static fl_gpus gpus;
#define DRIVES (FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W))

static fl_session *opened(uint64_t drives) {
    fl_session *s = NULL;
    fl_diag d = {0};
    CU_ASSERT_FATAL(!fl_nvml_host_open(&gpus, NULL, NULL, &d));
    const fl_session_options o = {.gpus = &gpus, .gpu_drives = drives, .check_ns = 20 * MS};
    FL_CHECK(!fl_session_open(&s, &o, &d), "%s", d.message);
    CU_ASSERT_FATAL(s != NULL);
    return s;
}

static pid_t guardian(unsigned at) { return stub->init_pid[at]; }

/* Until all its threads have ended: before that its parent is not told. */
static void lose(pid_t pid) {
    siginfo_t info;
    CU_ASSERT_FATAL(pid > 0 && !kill(pid, SIGKILL));
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) && errno == EINTR) {
    }
}

/* Every set that the driver was asked for, "GPU:control=value". */
static const char *audit(void) {
    static char text[400];
    *text = '\0';
    for (unsigned i = 0; i < stub->sets && strlen(text) < sizeof text - 40; i++)
        snprintf(text + strlen(text), 40, "%s%d:%d=%u", i ? " " : "", stub->audit[i].gpu, stub->audit[i].control,
                 stub->audit[i].value);
    return text;
}

static bool left_nothing(void) {
    return !there(in(state, GPU0 ".record")) && !there(in(state, GPU1 ".record")) && !there(in(state, GPU0 ".lock")) &&
           !there(in(state, GPU1 ".lock")) && !there(in(run, GPU0 ".held")) && !there(in(run, GPU1 ".held"));
}

/* Restored is what was set, and nothing else; the records say what was there before. */
static void test_session(void) {
    fl_diag d = {0};
    fresh();
    const int before = descriptors();
    fl_session *s = opened(DRIVES);
    static const char *const LINES[] = {"prior -1 sm_lock\n", "prior -1 mem_lock\n",
                                        "prior 150000 power_limit_mw\nend\n"};
    for (int i = 0; i < 2; i++) {
        char *text = text_of(in(state, i ? GPU1 ".record" : GPU0 ".record"));
        for (int k = 0; k < 3; k++)
            FL_CHECK(strstr(text, LINES[k]) != NULL, "GPU %d: '%s'", i, text);
        free(text);
    }
    CU_ASSERT(stub->sets == 0 && fl_session_replaced(s) == 0);
    const pid_t its = guardian(1);
    CU_ASSERT(its && its != getpid() && !gone(its));
    CU_ASSERT(!fl_session_beat(s, fl_guard_now_ns() + 60 * SECOND, &d));
    CU_ASSERT(!fl_session_set(s, 1, FL_SET_POWER_LIMIT_W, 180, &d) && stub->gpu[1].limit_mw == 180000);
    CU_ASSERT(!fl_session_close(s, &d) && stub->gpu[1].limit_mw == LIMIT && stub->gpu[0].limit_mw == LIMIT);
    for (unsigned i = 0; i < stub->sets; i++)
        CU_ASSERT(stub->audit[i].gpu == 1);
    CU_ASSERT(gone(its) && left_nothing() && !there(in(state, "guardian.log")));
    fl_gpus_close(&gpus);
    CU_ASSERT(descriptors() == before && !fl_session_close(NULL, NULL));
    s = opened(DRIVES); /* nothing set, nothing to restore */
    const unsigned sets = stub->sets;
    write_text(in(state, "cpu.record"), "somebody else's"); /* it drives no CPU, so it leaves one alone */
    CU_ASSERT(!fl_session_close(s, &d) && stub->sets == sets && left_nothing() && there(in(state, "cpu.record")));
    fl_gpus_close(&gpus);
}

/* What was refused has not been set, so it is not restored; what failed otherwise may have been. */
static void test_session_refused(void) {
    static const struct {
        int code;
        fl_status status;
        unsigned sets;
    } ROWS[] = {{4, FL_IO, 0}, {15, FL_HARDWARE, 1}};
    for (int i = 0; i < 2; i++) {
        fresh();
        fl_session *s = opened(FL_BIT(FL_SET_SM_MHZ));
        stub->gpu[0].set_code = ROWS[i].code;
        CU_ASSERT(fl_session_set(s, 0, FL_SET_SM_MHZ, 1200, NULL) == ROWS[i].status);
        stub->gpu[0].set_code = 0;
        const unsigned sets = stub->sets;
        CU_ASSERT(!fl_session_close(s, NULL));
        FL_CHECK((stub->sets > sets) == (ROWS[i].sets > 0), "code %d: %s", ROWS[i].code, audit());
        CU_ASSERT(left_nothing());
        fl_gpus_close(&gpus);
    }
}

/* A record that was left is restored before anything else, and what it says is then the prior value. */
static void test_session_stale(void) {
    fresh();
    write_record(GPU0);
    fl_session *s = opened(DRIVES);
    CU_ASSERT(stub->gpu[0].limit_mw == PRIOR && stub->gpu[1].limit_mw == LIMIT);
    char *text = text_of(in(state, GPU0 ".record"));
    CU_ASSERT(strstr(text, "prior 211000 power_limit_mw\n") != NULL);
    free(text);
    CU_ASSERT(!fl_session_close(s, NULL) && stub->gpu[0].limit_mw == PRIOR);
    fl_gpus_close(&gpus);
}

/* Where what was left cannot be restored nothing begins, and the first reason is told; the other GPU is back. */
static void test_session_stale_fails(void) {
    fl_session *s = NULL;
    fl_diag d = {0};
    fresh();
    write_record(GPU0);
    write_record(GPU1);
    stub->gpu[0].set_code = 4;
    CU_ASSERT_FATAL(!fl_nvml_host_open(&gpus, NULL, NULL, &d));
    const fl_session_options o = {.gpus = &gpus, .gpu_drives = DRIVES, .check_ns = 20 * MS};
    CU_ASSERT(fl_session_open(&s, &o, &d) == FL_IO && !s && stub->inits == 1);
    FL_CHECK(strstr(d.message, "GPU 0"), "%s", d.message);
    CU_ASSERT(stub->gpu[0].limit_mw == LIMIT && stub->gpu[1].limit_mw == PRIOR);
    CU_ASSERT(there(in(state, GPU0 ".record")) && !there(in(state, GPU1 ".record")));
    fl_gpus_close(&gpus);
}

/* All records of a folder, by who calls for it. What fails is counted, keeps its record and its locks, and holds up no
 * other; what is restored leaves nothing. */
static void test_restore_all(void) {
    static const struct {
        const char *name, *says; /* the whole message, NULL: none */
        int set_code, init_code;
        bool stranger;
        size_t restored, failed;
        fl_status status;
    } ROWS[] = {{"both", NULL, 0, 0, false, 2, 0, FL_OK},
                {"one refuses", "GPU 0", 4, 0, false, 1, 1, FL_IO},
                {"no driver", "", 0, 9, false, 0, 2, FL_HARDWARE},
                {"one is not there", "GPU-1: no such GPU now, or it does not answer", 0, 0, true, 2, 1, FL_HARDWARE}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (int told = 0; told < 2; told++) {
            fl_restore_result r = {0};
            fl_diag d = {0};
            fresh();
            write_record(GPU0);
            write_record(GPU1);
            if (ROWS[i].stranger)
                write_record("GPU-1");
            stub->gpu[0].set_code = ROWS[i].set_code;
            stub->init_code = ROWS[i].init_code;
            const int before = descriptors();
            const fl_status status = fl_restore_all(&r, told ? &d : NULL);
            stub->init_code = 0;
            FL_CHECK(status == ROWS[i].status && r.records == 2U + ROWS[i].stranger && r.restored == ROWS[i].restored &&
                         r.failed == ROWS[i].failed,
                     "%s: status %d, of %zu %zu restored, %zu failed", ROWS[i].name, status, r.records, r.restored,
                     r.failed);
            FL_CHECK(!told || (ROWS[i].says ? strstr(d.message, ROWS[i].says) && *d.message : !*d.message), "%s: '%s'",
                     ROWS[i].name, d.message);
            FL_CHECK(!strstr(d.message, "; "), "%s: '%s'", ROWS[i].name, d.message); /* nothing more to tell */
            FL_CHECK(stub->inits == 1, "%s: the library was opened %u times", ROWS[i].name, stub->inits);
            const bool left[] = {ROWS[i].set_code || ROWS[i].init_code, ROWS[i].init_code != 0};
            static const char *const UNIT[] = {GPU0, GPU1};
            for (int k = 0; k < 2; k++) {
                char name[3][64];
                snprintf(name[0], sizeof name[0], "%s.record", UNIT[k]);
                snprintf(name[1], sizeof name[1], "%s.lock", UNIT[k]);
                snprintf(name[2], sizeof name[2], "%s.held", UNIT[k]);
                FL_CHECK(there(in(state, name[0])) == left[k], "%s: the record of GPU %d", ROWS[i].name, k);
                FL_CHECK(there(in(state, name[1])) == (left[k] && !ROWS[i].init_code) &&
                             there(in(run, name[2])) == (left[k] && !ROWS[i].init_code),
                         "%s: the locks of GPU %d", ROWS[i].name, k);
                FL_CHECK(stub->gpu[k].limit_mw == (left[k] ? LIMIT : PRIOR), "%s: GPU %d is at %u mW", ROWS[i].name, k,
                         stub->gpu[k].limit_mw);
            }
            CU_ASSERT(descriptors() == before);
        }
}

/* A restore that fails leaves its record and its guardian, who goes on; the other GPU is back. */
static void test_session_fails(void) {
    fl_diag d = {0};
    fresh();
    fl_session *s = opened(DRIVES);
    const pid_t its = guardian(1);
    for (int i = 0; i < 2; i++)
        CU_ASSERT(!fl_session_set(s, i, FL_SET_POWER_LIMIT_W, 180 + 10 * i, &d));
    stub->gpu[0].set_code = 4;
    /* as in the program, where the session ends with its process: the guardian waits for that */
    CU_ASSERT(fl_session_close(s, &d) == FL_IO && strstr(d.message, "GPU 0"));
    CU_ASSERT(stub->gpu[0].limit_mw == 180000 && stub->gpu[1].limit_mw == LIMIT);
    CU_ASSERT(there(in(state, GPU0 ".record")) && !there(in(state, GPU1 ".record")) && !gone(its));
    CU_ASSERT(there(in(state, GPU0 ".lock")) && there(in(run, GPU0 ".held")));
    kill(its, SIGKILL);
    exit_of(its);
    fl_gpus_close(&gpus);
}

/* The time by which the guardian of this process expects to hear of it next, in the memory that both have; 0: no
 * guardian.
 */
static int64_t time_told(void) {
    char line[400];
    struct fl_beat *beat = NULL;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "foldline-beat"))
            beat = (struct fl_beat *)(uintptr_t)strtoull(line, NULL, 16);
    if (f)
        fclose(f);
    return beat ? atomic_load(&beat->until_ns) : 0;
}

/* A guardian that was lost, or that stands still, is replaced before the next set; its successor knows the time. */
static void test_session_replaces(void) {
    fl_diag d = {0};
    fresh();
    fl_session *s = opened(DRIVES);
    lose(guardian(1)); /* before it was told any time: its successor expects none either, however long it starts */
    stub->init_us = 300000;
    CU_ASSERT(!fl_session_set(s, 0, FL_SET_SM_MHZ, 900, &d) && fl_session_replaced(s) == 1);
    stub->init_us = 0;
    CU_ASSERT(time_told() == INT64_MAX && !fl_session_close(s, &d));
    fl_gpus_close(&gpus);
    fresh();
    s = opened(DRIVES);
    CU_ASSERT(!fl_session_beat(s, fl_guard_now_ns() + 60 * SECOND, &d));
    lose(guardian(1));
    CU_ASSERT(!fl_session_set(s, 0, FL_SET_SM_MHZ, 1200, &d) && fl_session_replaced(s) == 1);
    CU_ASSERT(guardian(2) && guardian(2) != guardian(1) && !gone(guardian(2)));
    const int64_t told = time_told(); /* what was left of the minute */
    CU_ASSERT(told > fl_guard_now_ns() && told < fl_guard_now_ns() + 61 * SECOND);
    lose(guardian(2));
    CU_ASSERT(!fl_session_beat(s, fl_guard_now_ns() + 60 * SECOND, &d) && fl_session_replaced(s) == 2 &&
              !gone(guardian(3)));
    stub->init_code = 9; /* none can follow: nothing is set */
    lose(guardian(3));
    const unsigned sets = stub->sets;
    CU_ASSERT(fl_session_set(s, 0, FL_SET_SM_MHZ, 900, &d) == FL_HARDWARE && stub->sets == sets);
    stub->init_code = 0;
    CU_ASSERT(!fl_session_close(s, &d) && stub->gpu[0].sm_max == 0);
    fl_gpus_close(&gpus);
    end_guardians();
}

/* The successor is told the time that was left at the last report: one that hangs after its guardian was replaced is
 * ended all the same. */
static void test_replaced_knows_the_time(void) {
    fresh();
    fflush(stdout);
    const pid_t pid = fork();
    if (!pid) {
        fl_session *s = opened(DRIVES);
        dup2(open(said_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
        fl_session_beat(s, fl_guard_now_ns() + 2 * SECOND, NULL);
        fl_session_set(s, 0, FL_SET_POWER_LIMIT_W, 180, NULL);
        lose(guardian(1));
        fl_session_set(s, 0, FL_SET_POWER_LIMIT_W, 190, NULL);
        for (;;)
            pause();
    }
    UNTIL(gone(pid));
    CU_ASSERT(gone(pid));
    kill(pid, SIGKILL);
    CU_ASSERT(exit_of(pid) == 128 + SIGKILL);
    UNTIL(gone(guardian(2)));
    char *log = text_of(in(state, "guardian.log"));
    CU_ASSERT(strstr(log, "was killed; restored") && stub->gpu[0].limit_mw == LIMIT);
    free(log);
}

/* What cannot be set here may be asked to be as it is, and not otherwise. */
static void test_session_may(void) {
    fl_diag d = {0};
    bool made;
    fresh();
    stub->gpu[1].limit_code = 3; /* its limit cannot be read, so nobody sets it */
    fl_session *s = opened(DRIVES);
    CU_ASSERT(!fl_session_may(s, 0, FL_SET_POWER_LIMIT_W, 180, &made, &d) && made);
    CU_ASSERT(!fl_session_may(s, 1, FL_SET_SM_MHZ, 1200, &made, &d) && made);
    CU_ASSERT(!fl_session_may(s, 1, FL_SET_POWER_LIMIT_W, FL_DEFAULT, &made, &d) && !made);
    CU_ASSERT(fl_session_may(s, 1, FL_SET_POWER_LIMIT_W, 180, &made, &d) == FL_HARDWARE && !made);
    CU_ASSERT(strstr(d.message, "the policy sets power_limit_w to 180, which cannot be set here: ") != NULL);
    stub->gpu[1].limit_code = 0;
    CU_ASSERT(fl_session_may(s, 1, FL_SET_POWER_LIMIT_W, 180, &made, &d) == FL_HARDWARE);
    FL_CHECK(strstr(d.message, "it could not when control began"), "%s", d.message);
    CU_ASSERT(!fl_session_may(s, -1, FL_SET_HOST_CPU_MHZ, FL_DEFAULT, &made, &d) && !made);
    CU_ASSERT(fl_session_may(s, -1, FL_SET_HOST_CPU_MHZ, 2000, &made, &d) == FL_HARDWARE);
    CU_ASSERT(strstr(d.message, "cpu_mhz") && strstr(d.message, "no CPU is to be had"));
    CU_ASSERT(!fl_session_close(s, &d));
    fl_gpus_close(&gpus);
}

/* Each allocation of a session that begins fails in turn, its own five and some after them: nothing is set and nothing
 * is left, whether it says that there is no memory or does without. */
static void test_session_no_memory(void) {
    enum { OWN = 5, TRIED = 16 };
    fresh();
    CU_ASSERT_FATAL(!fl_nvml_host_open(&gpus, NULL, NULL, NULL));
    const fl_session_options o = {.gpus = &gpus, .gpu_drives = DRIVES, .check_ns = 20 * MS};
    for (long n = 1; n <= TRIED; n++) {
        fl_session *s = NULL;
        fl_diag d = {0};
        const int before = descriptors();
        seen = 0;
        fail_at = n;
        const fl_status status = fl_session_open(&s, &o, &d);
        CU_ASSERT(seen >= n);
        fail_at = -1;
        FL_CHECK((n > OWN || status == FL_NO_MEMORY) && (status == FL_OK) == (s != NULL), "allocation %ld: status %d",
                 n, status);
        CU_ASSERT(stub->sets == 0 && !fl_session_close(s, NULL) && left_nothing());
        FL_CHECK(descriptors() == before, "allocation %ld: a descriptor is left", n);
    }
    fl_gpus_close(&gpus);
    end_guardians();
}

static fl_gpus whole; /* the library's GPUs, before what is changed of them below */
static bool one_sm, one_mem;
static const char *no_clocks(void *self, uint32_t i, int control) {
    return control == FL_SET_SM_MHZ || control == FL_SET_MEM_MHZ ? "not here" : whole.back->hindrance(self, i, control);
}
static fl_status few_clocks(void *self, uint32_t i, fl_gpu_facts *f, fl_diag *d) {
    const fl_status status = whole.back->facts(self, i, f, d);
    f->sm.count = one_sm ? 1 : 2;
    f->mem.count = one_mem ? 1 : 2;
    return status;
}

/* A GPU that has one clock runs at it: a policy that sets it asks for nothing. */
static void test_session_one_clock(void) {
    fl_diag d = {0};
    fl_session *s = NULL;
    fresh();
    CU_ASSERT_FATAL(!fl_nvml_host_open(&whole, NULL, NULL, &d));
    fl_backend back = *whole.back;
    back.hindrance = no_clocks;
    back.facts = few_clocks;
    gpus = (fl_gpus){&back, whole.self};
    const fl_session_options o = {.gpus = &gpus, .gpu_drives = DRIVES, .check_ns = 20 * MS};
    FL_CHECK(!fl_session_open(&s, &o, &d), "%s", d.message);
    CU_ASSERT_FATAL(s != NULL);
    for (int i = 0; i < 16; i++) {
        const int gpu = i & 1, control = i & 2 ? FL_SET_SM_MHZ : FL_SET_MEM_MHZ;
        bool made = true;
        one_sm = i & 4;
        one_mem = i & 8;
        const bool fine = control == FL_SET_SM_MHZ ? one_sm : one_mem;
        CU_ASSERT(fl_session_may(s, gpu, control, 900, &made, &d) == (fine ? FL_OK : FL_HARDWARE) && !made);
    }
    one_sm = one_mem = true; /* the CPU is no GPU */
    bool made;
    CU_ASSERT(fl_session_may(s, -1, FL_SET_HOST_CPU_MHZ, 2000, &made, &d) == FL_HARDWARE && !made);
    CU_ASSERT(!fl_session_close(s, &d));
    fl_gpus_close(&whole);
}

/* Somebody else controls one of the GPUs: nothing is taken, set or left. */
static void test_session_refuses(void) {
    fl_session *s = NULL;
    fl_diag d = {0};
    fl_lock lock;
    fresh();
    CU_ASSERT(!fl_lock_take(state, GPU1, FL_LOCK_CONTROL, 0, &lock, &d));
    CU_ASSERT_FATAL(!fl_nvml_host_open(&gpus, NULL, NULL, &d));
    const int before = descriptors();
    const fl_session_options o = {.gpus = &gpus, .gpu_drives = DRIVES, .check_ns = 20 * MS};
    CU_ASSERT(fl_session_open(&s, &o, &d) == FL_HARDWARE && !s && strstr(d.message, GPU1 " is controlled by process"));
    CU_ASSERT(descriptors() == before && stub->sets == 0 && stub->inits == 1 && !there(in(state, GPU0 ".record")));
    CU_ASSERT(!there(in(state, GPU0 ".lock")) && there(in(state, GPU1 ".lock")));
    fl_lock_close(&lock);
    fl_gpus_close(&gpus);
}

static const fl_case CASES[] = {{"does the guardian answer", test_answers},
                                {"the guardian's process", test_process},
                                {"a guardian that cannot start", test_start_refused},
                                {"arguments that are none", test_arguments},
                                {"ends", test_endings},
                                {"a restore that is repeated", test_restore_repeats},
                                {"the size of the log", test_log_size},
                                {"a session", test_session},
                                {"sets that fail", test_session_refused},
                                {"a record that was left", test_session_stale},
                                {"a record that cannot be restored", test_session_stale_fails},
                                {"all records", test_restore_all},
                                {"a restore that fails", test_session_fails},
                                {"guardians that are lost", test_session_replaces},
                                {"a successor knows the time", test_replaced_knows_the_time},
                                {"what may be set", test_session_may},
                                {"no memory", test_session_no_memory},
                                {"one clock", test_session_one_clock},
                                {"somebody else in control", test_session_refuses}};

static int guardian_main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "live") && !strcmp(argv[2], "--guardian"))
        return fl_guardian_main(argc - 3, argv + 3);
    return -1;
}

static void open_stub(void) {
    snprintf(state, sizeof state, "%s", fl_temp_path("state"));
    snprintf(run, sizeof run, "%s", fl_temp_path("run"));
    snprintf(said_path, sizeof said_path, "%s", fl_temp_path("said"));
    const int fd = open(fl_temp_path("stub"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *stub))
        exit(1);
    stub = mmap(NULL, sizeof *stub, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    setenv("FOLDLINE_STUB", fl_temp_path("stub"), 1);
    setenv("FOLDLINE_STATE", state, 1);
    setenv("FOLDLINE_RUN", run, 1);
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
}

FL_SUITE_OF("live_session", CASES, .program = guardian_main, .open = open_stub, .close = clean_up)
