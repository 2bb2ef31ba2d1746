/* Whatever happens to controller and guardian, the GPUs come back as they were found. Trials at random times in every
 * pattern; FL_TRIALS=1000 for more of them, FL_SEED for others. Then each safety rule broken on purpose must be
 * noticed. State is read from the stub's shared memory, not through the code under test. */
#include "harness/live/guard/guard.h"
#include "harness/live/guard/inside.h"
#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/live_stub.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { GPUS = 2, CHECK_MS = 4, FREEZE_CHECK_MS = 100, SHORT_MS = 40, TRIALS = 99, MUTANT_TRIALS = 80 };
enum { PATIENT_BEATS = 4000 }; /* reports of a controller; a guardian that does not look is replaced long before */

static uint64_t seed;
static int check_ms = CHECK_MS;

/* Shared with the controllers. Only where a pattern is about the deadline is there a short one, and only once the
 * controller has set something: elsewhere a slow machine must not miss it. */
typedef enum lack { NO_LACK, MEMORY, PROCESSES, DESCRIPTORS, DISK } lack;
static struct shared {
    _Atomic bool hurried;         /* the deadline is SHORT_MS away, not a minute */
    _Atomic unsigned short_beats; /* reports with such a deadline */
    _Atomic unsigned beats;       /* all reports */
    _Atomic int lack;             /* what the controller shall run out of */
    _Atomic int lacking;          /* what it has run out of */
    _Atomic unsigned room;        /* that much is left of it */
} * shared;

static unsigned draw(unsigned below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

/* ---- a controller that sets at random ---------------------------------------------------------------------------- */

static volatile sig_atomic_t stopping;
static void on_stop(int number) {
    (void)number;
    stopping = 1;
}

static fl_status set_something(fl_session *s, fl_diag *d) {
    const int32_t gpu = (int32_t)draw(GPUS);
    switch (draw(4)) {
    case 0:
        return fl_session_set(s, gpu, FL_SET_MEM_MHZ, draw(2) ? 810 : 1215, d);
    case 1:
        return fl_session_set(s, gpu, FL_SET_POWER_LIMIT_W, 100 + draw(200), d);
    default:
        return fl_session_set(s, gpu, FL_SET_SM_MHZ, draw(5) ? 210 + 15 * (double)draw(80) : FL_DEFAULT, d);
    }
}

/* No search for leaks at the end of these processes: where there is no memory or no process to be had, the sanitizer
 * waits for its helper for ever, and a guardian that has done its work stays, busy. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

/* Root is given processes whatever the limit says: another real user is not, once two capabilities are gone. */
static void limit_processes(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2] = {0};
    if (geteuid() == 0 && !setresuid(65533, 0, 0) && !syscall(SYS_capget, &head, caps)) {
        caps[0].effective &= ~((1u << CAP_SYS_ADMIN) | (1u << CAP_SYS_RESOURCE));
        syscall(SYS_capset, &head, caps);
    }
    setrlimit(RLIMIT_NPROC, &(struct rlimit){0});
}

/* From here on there is no more of it, or hardly any. */
static void run_out(void) {
    const rlim_t room = shared->room;
    switch (shared->lack) {
    case MEMORY: /* of addresses; whatever is mapped already stays */
        setrlimit(RLIMIT_AS, &(struct rlimit){room << 20, room << 20});
        break;
    case PROCESSES:
        limit_processes();
        break;
    case DESCRIPTORS:
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){room, room});
        break;
    default: /* a file cannot grow beyond it, as on a full disk */
        signal(SIGXFSZ, room % 2 ? SIG_IGN : SIG_DFL);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, room});
    }
    shared->lacking = shared->lack;
}

/* Takes until it gets none, as a policy or a library would: it may be told, or be ended by what it runs on. */
static void eat(void) {
    for (void *at; (at = malloc(1 << 20));)
        memset(at, 1, 1 << 20);
}

static int control(unsigned sleep_us) {
    fl_gpus gpus = {0};
    fl_session *s = NULL;
    fl_diag d = {0};
    signal(SIGTERM, on_stop);
    signal(SIGINT, on_stop);
    signal(SIGHUP, on_stop);
    signal(SIGSEGV, SIG_DFL);                            /* not the sanitizer's */
    if (shared->lack && shared->lack == shared->lacking) /* from the start */
        run_out();
    if (fl_nvml_host_open(&gpus, NULL, NULL, &d))
        return 3;
    const fl_session_options o = {.gpus = &gpus,
                                  .gpu_drives =
                                      FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W),
                                  .check_ns = check_ms * INT64_C(1000000)};
    fl_status status = fl_session_open(&s, &o, &d);
    while (!status && !stopping) {
        const bool hurried = shared->hurried;
        if (shared->lack && !shared->lacking)
            run_out();
        if (shared->lacking == MEMORY)
            eat();
        status = fl_session_beat(s, now_ns() + (hurried ? SHORT_MS : 60000) * INT64_C(1000000), &d);
        shared->short_beats += hurried;
        shared->beats++;
        status = status ? status : set_something(s, &d);
        if (!status && !stopping && sleep_us)
            wait_us(draw(sleep_us));
    }
    if (s)
        fl_session_beat(s, now_ns() + INT64_C(10000000000), NULL);
    fl_status back = fl_session_close(s, NULL);
    fl_gpus_close(&gpus);
    if (status)
        fprintf(stderr, "controller: %s\n", d.message);
    return status || back ? 3 : 0;
}

/* What controllers and guardians say. */
static void hush(void) {
    const int fd = open(fl_temp_path("said.txt"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 2);
    close(fd);
}

static pid_t start(void) {
    const uint64_t own = seed ^ (uint64_t)now_ns();
    pid_t pid = fork();
    if (!pid) {
        setpgid(0, 0);
        hush();
        seed = own;
        _exit(control(2000));
    }
    setpgid(pid, pid);
    return pid;
}

/* ---- what a trial sees ------------------------------------------------------------------------------------------- */

static unsigned prior[GPUS];
static const char *what_failed;

static bool fail(const char *what) {
    what_failed = what_failed ? what_failed : what;
    return false;
}

/* At most two minutes, far more than any machine needs. */
static bool until(bool (*holds)(pid_t), pid_t pid) {
    for (int64_t end = now_ns() + INT64_C(120000000000); now_ns() < end; wait_us(200))
        if (holds(pid))
            return true;
    return holds(pid);
}

/* The process that opened the library after `controller` and is another; 0 = not yet. */
static pid_t guardian_of(pid_t controller) {
    bool seen = false;
    for (unsigned i = 0; i < stub->inits && i < STUB_INITS_MAX; i++) {
        seen = seen || stub->init_pid[i] == controller;
        if (seen && stub->init_pid[i] && stub->init_pid[i] != controller)
            return stub->init_pid[i];
    }
    return 0;
}

static bool has_set(pid_t pid) {
    for (unsigned i = 0; i < stub->sets && i < STUB_AUDIT_MAX; i++)
        if (stub->audit[i].pid == pid)
            return true;
    return false;
}

static bool ended(pid_t pid) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid == pid : errno == ECHILD;
}

/* A guardian is not our child: it is gone when no such process is left, or only its remains. */
static bool gone(pid_t pid) {
    char path[64], line[256] = "", *at;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = pid ? fopen(path, "re") : NULL;
    if (!f)
        return true;
    bool none = !fgets(line, sizeof line, f) || !(at = strrchr(line, ')')) || at[2] == 'Z' || at[2] == 'X';
    fclose(f);
    return none;
}

/* Waits until nobody holds a lock any more: whoever restores has finished. */
static bool settled(void) {
    const char *state;
    if (fl_state_open(&state, NULL))
        return fail("no state folder");
    for (int i = 0; i < GPUS; i++) {
        char unit[FL_UNIT_MAX];
        fl_lock lock;
        snprintf(unit, sizeof unit, "GPU-00000000-stub-%d", i);
        if (fl_lock_take(state, unit, FL_LOCK_RESTORE, INT64_C(120000000000), &lock, NULL))
            return fail("a lock stays taken");
        fl_lock_close(&lock);
    }
    return true;
}

static bool as_found(void) {
    for (int i = 0; i < GPUS; i++) {
        stub_gpu *g = &stub->gpu[i];
        if (g->limit_mw != prior[i])
            return fail("a power limit is not what it was");
        if (g->sm_min || g->sm_max)
            return fail("an SM clock lock was left");
        if (g->mem_min || g->mem_max)
            return fail("a memory clock lock was left");
    }
    return left_behind(".record") == 0 || fail("a record was left");
}

static bool restore_all(void) {
    fl_restore_result r;
    fl_diag d = {0};
    return !fl_restore_all(&r, &d) || fail("restore failed");
}

static void reap(pid_t pid) {
    if (pid > 0) {
        kill(pid, SIGCONT);
        exit_of(pid);
    }
}

/* ---- the patterns ------------------------------------------------------------------------------------------------ */

static bool ended_or_set(pid_t pid) { return has_set(pid) || ended(pid); }

static bool started(pid_t pid) {
    return (until(ended_or_set, pid) && has_set(pid)) || fail("the controller sets nothing");
}

static bool hurries(pid_t pid) { return shared->short_beats || ended(pid); }

/* From here on its deadlines are short: one that stands still misses them. Its guardian knows at its next look, which
 * is at most ten checks away. */
static bool hurry(pid_t pid, int its_check_ms) {
    shared->hurried = true;
    const bool reported = until(hurries, pid) || fail("the controller does not report");
    wait_us(10000 * its_check_ms);
    return reported;
}

static bool by_signal(int number) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(12000));
    kill(pid, number);
    int status = exit_of(pid);
    const bool orderly = number == SIGTERM || number == SIGINT || number == SIGHUP;
    if (orderly && status)
        ok = fail("an orderly end fails");
    return ok && settled() && as_found();
}
static bool by_term(void) { return by_signal(SIGTERM); }
static bool by_int(void) { return by_signal(SIGINT); }
static bool by_hup(void) { return by_signal(SIGHUP); }
static bool by_segv(void) { return by_signal(SIGSEGV); }
static bool by_kill(void) { return by_signal(SIGKILL); }

/* At the first sets: whatever is set is in the record already. */
static bool kill_early(void) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(4000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && as_found();
}

/* Some time between start and first set: the guardian may be there or not, the record too. */
static bool before_first_set(void) {
    pid_t pid = start();
    for (int64_t end = now_ns() + INT64_C(120000000000); now_ns() < end && !stub->inits;)
        wait_us(50);
    wait_us(draw(2) ? draw(60000) : draw(8000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return settled() && as_found();
}

/* The moment at which a record is there: a guardian must have been there before it. */
static bool as_the_record_appears(void) {
    pid_t pid = start();
    for (int64_t end = now_ns() + INT64_C(120000000000); now_ns() < end && !left_behind(".record");)
        sched_yield();
    kill(pid, SIGKILL);
    exit_of(pid);
    return settled() && as_found();
}

static bool both(void) {
    pid_t pid = start();
    bool ok = started(pid);
    pid_t guardian = guardian_of(pid);
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    wait_us(draw(3000));
    kill(guardian, SIGKILL);
    exit_of(pid);
    return ok && settled() && restore_all() && as_found();
}

static bool both_and_new(void) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(8000));
    kill(guardian_of(pid), SIGKILL);
    kill(pid, SIGKILL);
    exit_of(pid);
    pid_t next = start();
    ok = started(next) && ok;
    wait_us(draw(8000));
    kill(next, draw(2) ? SIGTERM : SIGKILL);
    exit_of(next);
    return ok && settled() && restore_all() && as_found();
}

static bool guardian_first(void) {
    pid_t pid = start();
    bool ok = started(pid);
    pid_t guardian = guardian_of(pid);
    kill(guardian, SIGKILL);
    wait_us(draw(2) ? draw(5000) : draw(120000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && restore_all() && as_found();
}

static bool guardian_in_restore(void) {
    pid_t pid = start();
    bool ok = started(pid);
    pid_t guardian = guardian_of(pid);
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    exit_of(pid);
    wait_us(draw(12000));
    kill(guardian, SIGKILL);
    return ok && settled() && restore_all() && as_found();
}

static bool within_3_ms(void) {
    pid_t pid = start();
    bool ok = started(pid), first = draw(2);
    pid_t guardian = guardian_of(pid);
    wait_us(draw(8000));
    kill(first ? pid : guardian, SIGKILL);
    wait_us(draw(3000));
    kill(first ? guardian : pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && restore_all() && as_found();
}

static unsigned sets_then;
static bool ended_or_sets(pid_t pid) { return ended(pid) || stub->sets > sets_then; }

static bool next_started(pid_t pid) {
    (void)pid;
    return stub->inits > 2;
}

/* Their records are lost while it controls: files taken away or spoiled, or the whole folder. Its guardian, perhaps a
 * second one, knows them. */
static bool without_records(void) {
    const char *const state = getenv("FOLDLINE_STATE");
    const unsigned way = draw(3);
    pid_t pid = start();
    bool ok = started(pid);
    if (draw(2)) { /* it reads them as it starts */
        kill(guardian_of(pid), SIGKILL);
        ok = (until(next_started, pid) || fail("a lost guardian is not replaced")) && ok;
        sets_then = stub->sets;
        ok = until(ended_or_sets, pid) && ok;
    }
    wait_us(draw(8000));
    for (int i = 0; i < GPUS; i++) {
        char name[64], path[512];
        snprintf(name, sizeof name, "GPU-00000000-stub-%d", i);
        if (!fl_state_path(state, name, ".record", path, sizeof path) || (way ? unlink(path) : truncate(path, 30)))
            ok = fail("no record to take away");
    }
    if (way == 2) {
        empty_folder(state);
        rmdir(state);
    }
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && as_found();
}

static bool process_group(void) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(8000));
    kill(-pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && as_found();
}

static bool said(const char *path, const char *what) {
    size_t size;
    char *text = fl_temp_slurp(path, &size);
    const bool found = text && strstr(text, what);
    free(text);
    return found;
}

static bool kill_is_said(void) {
    return said(fl_temp_path("said.txt"), "killed by its guardian: the controller missed its time by ") &&
           said(fl_temp_path("said.txt"), "/guardian.log");
}

/* On its standard error, which the guardian writes last, and in the log that is named there. */
static bool told_of_kill(void) {
    char log[512];
    snprintf(log, sizeof log, "%s/guardian.log", getenv("FOLDLINE_STATE"));
    if (!said(log, " s and was killed; restored"))
        return fail("the log does not tell of a kill");
    for (int i = 0; i < 50000 && !kill_is_said(); i++)
        wait_us(200);
    return kill_is_said() || fail("a kill is not told");
}

static bool stopped_for_good(void) {
    pid_t pid = start();
    bool ok = started(pid) && hurry(pid, CHECK_MS);
    wait_us(draw(8000));
    kill(pid, SIGSTOP);
    ok = (until(ended, pid) || fail("a stopped controller lives on")) && ok;
    reap(pid);
    return ok && settled() && as_found() && told_of_kill();
}

static bool stopped_for_a_while(void) {
    pid_t pid = start();
    bool ok = started(pid) && hurry(pid, CHECK_MS);
    wait_us(draw(8000));
    kill(pid, SIGSTOP);
    wait_us(1000 * (SHORT_MS + 2 * CHECK_MS) + draw(20000) - 8000);
    kill(pid, SIGCONT);
    wait_us(draw(30000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && restore_all() && as_found();
}

/* Long past the deadline, then back to life: it must not be able to set anything. */
static bool stopped_then_back(void) {
    pid_t pid = start();
    bool ok = started(pid) && hurry(pid, CHECK_MS);
    pid_t guardian = guardian_of(pid);
    kill(pid, SIGSTOP);
    until(gone, guardian);
    sets_then = stub->sets;
    kill(pid, SIGCONT);
    until(ended_or_sets, pid);
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && as_found();
}

static bool new_at_once(void) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    pid_t next = start();
    exit_of(pid);
    ok = started(next) && ok;
    wait_us(draw(8000));
    kill(next, SIGKILL);
    exit_of(next);
    return ok && settled() && as_found();
}

static bool three_restores(void) {
    pid_t pid = start(), other[3];
    bool ok = started(pid);
    wait_us(draw(8000));
    kill(guardian_of(pid), SIGKILL);
    kill(pid, SIGKILL);
    exit_of(pid);
    for (int i = 0; i < 3; i++)
        if (!(other[i] = fork())) {
            fl_restore_result r;
            fl_diag d = {0};
            int status = fl_restore_all(&r, &d);
            if (status)
                fprintf(stderr, "restore: %s\n", d.message);
            _exit(status);
        }
    for (int i = 0; i < 3; i++)
        ok = (exit_of(other[i]) == 0 || fail("one of three restores fails")) && ok;
    return ok && settled() && as_found();
}

/* As a frozen machine or container does: neither may be taken for dead. The guardian looks so seldom that a slow
 * machine lets the controller report between its thaw and three looks, and the freeze lasts until it must have
 * overslept. */
static bool freeze(void) {
    check_ms = FREEZE_CHECK_MS;
    pid_t pid = start();
    check_ms = CHECK_MS;
    bool ok = started(pid) && hurry(pid, FREEZE_CHECK_MS);
    pid_t guardian = guardian_of(pid);
    wait_us(draw(40000));
    kill(guardian, SIGSTOP);
    kill(pid, SIGSTOP);
    wait_us(1000 * (SHORT_MS + 2 * FREEZE_CHECK_MS) + draw(50000));
    kill(guardian, SIGCONT);
    wait_us(draw(30000)); /* whoever thaws first */
    kill(pid, SIGCONT);
    wait_us(1000 * 4 * FREEZE_CHECK_MS);
    ok = (!ended(pid) || fail("a frozen controller was killed")) && ok;
    kill(pid, SIGTERM);
    ok = (exit_of(pid) == 0 || fail("a frozen controller does not end in order")) && ok;
    return ok && settled() && as_found();
}

/* A successor that is still starting when its controller dies, as where the library takes its time. */
static bool while_replaced(void) {
    pid_t pid = start();
    bool ok = started(pid);
    stub->init_us = 30000;
    kill(guardian_of(pid), SIGKILL);
    ok = (until(next_started, pid) || fail("a lost guardian is not replaced")) && ok;
    wait_us(draw(35000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && as_found();
}

/* A successor that cannot open the library; the controller dies while it gives up, or has given up in order. */
static bool while_not_replaced(void) {
    pid_t pid = start();
    bool ok = started(pid);
    stub->init_code = 9;
    kill(guardian_of(pid), SIGKILL);
    ok = (until(next_started, pid) || fail("a lost guardian is not replaced")) && ok;
    wait_us(draw(2) ? draw(12000) : draw(60000));
    kill(pid, SIGKILL);
    exit_of(pid);
    wait_us(100000);
    stub->init_code = 0;
    return ok && settled() && as_found();
}

/* ---- what runs out ----------------------------------------------------------------------------------------------- */

/* Some streams closed, in a controller without the program's main, which would have opened them: what it opens gets
 * their numbers. It controls, or it refuses; killed, it leaves nothing. */
static pid_t start_closed(unsigned closed) {
    pid_t pid = fork();
    if (pid)
        return pid;
    for (int fd = 0; fd < 3; fd++)
        if (closed >> fd & 1)
            close(fd);
    _exit(control(2000));
}

static bool closed_streams_of(unsigned closed) {
    pid_t pid = start_closed(closed);
    until(ended_or_set, pid);
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return settled() && as_found();
}
static bool closed_streams(void) { return closed_streams_of(1 + draw(7)); }

/* What took the number of a lock is none, and a guardian without its locks is none either. */
static bool not_a_lock(void) {
    const char *state;
    const unsigned other = draw(3);
    fl_guardian g;
    fl_lock lock;
    if (fl_state_open(&state, NULL) ||
        fl_lock_take(state, "GPU-00000000-stub-0", FL_LOCK_CONTROL, INT64_C(120000000000), &lock, NULL))
        return fail("a lock stays taken");
    const int fd = other == 0   ? open("/dev/null", O_RDWR | O_CLOEXEC)
                   : other == 1 ? open(fl_temp_text("other", "no lock\n"), O_RDWR | O_CLOEXEC)
                                : open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dup2(fd, draw(2) ? lock.fd : lock.held);
    close(fd);
    const bool refused = fl_guardian_start(&g, &lock, 1, CHECK_MS * INT64_C(1000000), NULL);
    fl_guardian_dismiss(&g);
    fl_lock_close(&lock);
    return (refused || fail("a guardian without its locks")) && settled() && as_found();
}

/* The whole program, as from a shell: it must control, with each of its streams closed and with all. */
static bool program_with_closed_streams(void) {
    const unsigned closed = draw(4) ? 7 : 1 + draw(7);
    pid_t pid = fork();
    if (!pid) {
        hush();
        for (int fd = 0; fd < 3; fd++)
            if (closed >> fd & 1)
                close(fd);
        execl(FL_PROGRAM, "foldline", "live", "--policy", "fixed:sm_mhz=1200,power_limit_w=150", "--control", "--gpus",
              "0,1", NULL);
        _exit(126);
    }
    bool ok = started(pid);
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    exit_of(pid);
    return ok && settled() && as_found();
}

/* `foldline tune` at any moment: before its first set, in a run of the command, between two clocks. */
static bool tune_ended(void) {
    const bool early = !draw(4);
    pid_t pid = fork();
    if (!pid) {
        hush();
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
        execl(FL_PROGRAM, "foldline", "tune", "--runs", "2", "--clocks", "3", "--gpus", "0,1", "--", "sleep", "0.02",
              NULL);
        _exit(126);
    }
    const bool ok = early || started(pid);
    wait_us(draw(early ? 60000 : 400000));
    kill(pid, draw(4) ? SIGKILL : draw(2) ? SIGTERM : SIGSEGV);
    exit_of(pid);
    return ok && settled() && as_found();
}

static bool has_run_out(pid_t pid) { return shared->lacking || ended(pid); }

/* From the start, or while it controls; then its guardian is killed, so that it needs another. It may end of itself. */
static bool without(lack what, unsigned room) {
    const bool at_once = draw(2);
    shared->room = room;
    if (at_once) {
        shared->lacking = what;
        shared->lack = what;
    }
    pid_t pid = start();
    until(ended_or_set, pid);
    const pid_t guardian = ended(pid) ? 0 : guardian_of(pid);
    shared->lack = what;
    until(has_run_out, pid);
    if (guardian && draw(2))
        kill(guardian, SIGKILL);
    wait_us(draw(60000));
    kill(pid, SIGKILL);
    exit_of(pid);
    shared->lack = shared->lacking = NO_LACK;
    return settled() && restore_all() && as_found();
}
static bool without_memory(void) { return without(MEMORY, draw(2) ? 1 : draw(400)); }
static bool without_processes(void) { return without(PROCESSES, 0); }
static bool without_descriptors(void) { return without(DESCRIPTORS, draw(20)); }
static bool without_disk(void) { return without(DISK, draw(200)); }

/* ---- a guardian that stands still -------------------------------------------------------------------------------- */

static unsigned beats_then;
static bool replaced_or_not(pid_t pid) {
    return stub->inits > 2 || ended(pid) || shared->beats > beats_then + PATIENT_BEATS;
}

/* Its controller sees that it does not look, and takes another. */
static bool guardian_stopped(void) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(8000));
    const pid_t guardian = guardian_of(pid);
    kill(guardian, SIGSTOP);
    beats_then = shared->beats;
    until(replaced_or_not, pid);
    ok = (stub->inits > 2 || fail("a stopped guardian is not replaced")) && ok;
    wait_us(draw(35000));
    kill(pid, draw(2) ? SIGKILL : SIGTERM);
    exit_of(pid);
    kill(guardian, SIGCONT);
    return ok && settled() && as_found();
}

/* The locks are free again soon after; whoever wants them next wakes a guardian that somebody stopped. */
static bool freed(int64_t wait_s) {
    const char *state;
    bool ok = !fl_state_open(&state, NULL);
    for (int i = 0; ok && i < GPUS; i++) {
        char unit[FL_UNIT_MAX];
        fl_lock lock;
        snprintf(unit, sizeof unit, "GPU-00000000-stub-%d", i);
        ok = !fl_lock_take(state, unit, FL_LOCK_RESTORE, wait_s * INT64_C(1000000000), &lock, NULL);
        fl_lock_close(&lock);
    }
    return ok || fail("a stopped guardian keeps a lock");
}

/* Both locks of a GPU, asked without waiting and without waking anybody. */
static bool held(void) {
    const char *const folder[] = {getenv("FOLDLINE_STATE"), getenv("FOLDLINE_RUN")}, *const ending[] = {".lock",
                                                                                                        ".held"};
    bool all = true;
    for (int i = 0; i < 2; i++) {
        char path[512];
        const int fd = fl_state_path(folder[i], "GPU-00000000-stub-0", ending[i], path, sizeof path)
                           ? open(path, O_RDWR | O_CLOEXEC)
                           : -1;
        all = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && all;
        close(fd);
    }
    return all || fail("a lock does not outlive its controller");
}

static bool stopped_guardian_and(int end) {
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(8000));
    const pid_t guardian = guardian_of(pid);
    kill(guardian, SIGSTOP);
    wait_us(draw(3000));
    kill(pid, end);
    exit_of(pid);
    ok = (end == SIGKILL || gone(guardian) || fail("a stopped guardian outlives an orderly end")) && ok;
    ok = (end != SIGKILL || held()) && ok; /* whoever comes next waits until it has restored */
    ok = freed(30) && ok;
    kill(guardian, SIGCONT);
    return ok && settled() && restore_all() && as_found();
}
static bool stopped_guardian_and_kill(void) { return stopped_guardian_and(SIGKILL); }
static bool stopped_guardian_and_term(void) { return stopped_guardian_and(SIGTERM); }

/* ---- two state folders ------------------------------------------------------------------------------------------- */

/* A second controller that looks for records and locks elsewhere is refused, and sets nothing. */
static bool two_state_folders(void) {
    char first[512], second[600];
    snprintf(first, sizeof first, "%s", getenv("FOLDLINE_STATE"));
    snprintf(second, sizeof second, "%s-2", first);
    pid_t pid = start();
    bool ok = started(pid);
    setenv("FOLDLINE_STATE", second, 1);
    pid_t other = start();
    setenv("FOLDLINE_STATE", first, 1);
    until(ended_or_set, other);
    ok = (!has_set(other) || fail("two controllers of one GPU")) && ok;
    wait_us(draw(8000));
    kill(pid, SIGKILL);
    kill(other, SIGKILL);
    exit_of(pid);
    exit_of(other);
    ok = settled() && as_found() && ok;
    setenv("FOLDLINE_STATE", second, 1);
    ok = settled() && ok;
    empty_folder(second);
    rmdir(second);
    setenv("FOLDLINE_STATE", first, 1);
    return ok;
}

/* Both killed, and the next controller looks for records elsewhere: it would take for prior values what was set. It is
 * refused until the first folder's are restored, and then it is not. */
static bool left_elsewhere(void) {
    char first[512], second[600];
    snprintf(first, sizeof first, "%s", getenv("FOLDLINE_STATE"));
    snprintf(second, sizeof second, "%s-2", first);
    pid_t pid = start();
    bool ok = started(pid);
    wait_us(draw(8000));
    kill(guardian_of(pid), SIGKILL);
    kill(pid, SIGKILL);
    exit_of(pid);
    setenv("FOLDLINE_STATE", second, 1);
    pid_t other = start();
    until(ended_or_set, other);
    setenv("FOLDLINE_STATE", first, 1);
    const bool left = left_behind(".record") > 0; /* a guardian that was quicker, or a second one, has restored */
    ok = (!left || !has_set(other) || fail("it controls what another folder's controller has set")) && ok;
    kill(other, SIGTERM);
    exit_of(other);
    ok = settled() && restore_all() && as_found() && ok;
    setenv("FOLDLINE_STATE", second, 1);
    other = start();
    ok = started(other) && ok;
    kill(other, SIGTERM);
    exit_of(other);
    ok = settled() && as_found() && ok;
    empty_folder(second);
    rmdir(second);
    setenv("FOLDLINE_STATE", first, 1);
    return ok;
}

typedef struct pattern {
    const char *name;
    bool (*run)(void);
} pattern;
static const pattern PATTERNS[] = {{"TERM", by_term},
                                   {"INT", by_int},
                                   {"HUP", by_hup},
                                   {"SEGV", by_segv},
                                   {"KILL", by_kill},
                                   {"KILL before the first set", before_first_set},
                                   {"KILL as the record appears", as_the_record_appears},
                                   {"both killed", both},
                                   {"both killed and a new controller", both_and_new},
                                   {"guardian first", guardian_first},
                                   {"guardian during its restore", guardian_in_restore},
                                   {"both within 3 ms", within_3_ms},
                                   {"KILL of the process group", process_group},
                                   {"records lost, then KILL", without_records},
                                   {"STOP for good", stopped_for_good},
                                   {"STOP, then CONT near the deadline", stopped_for_a_while},
                                   {"new controller at once, killed in turn", new_at_once},
                                   {"three restores at once", three_restores},
                                   {"freeze of both", freeze},
                                   {"KILL while a guardian is replaced", while_replaced},
                                   {"KILL where no guardian can follow", while_not_replaced},
                                   {"streams closed", closed_streams},
                                   {"a lock that is none", not_a_lock},
                                   {"streams closed, the program", program_with_closed_streams},
                                   {"no more memory", without_memory},
                                   {"no more processes", without_processes},
                                   {"no more descriptors", without_descriptors},
                                   {"no more disk", without_disk},
                                   {"guardian STOP", guardian_stopped},
                                   {"guardian STOP, then KILL", stopped_guardian_and_kill},
                                   {"guardian STOP, then TERM", stopped_guardian_and_term},
                                   {"two state folders", two_state_folders},
                                   {"both killed, another state folder", left_elsewhere}};
enum { PATTERN_COUNT = sizeof PATTERNS / sizeof *PATTERNS };

static bool trial(bool (*run)(void)) {
    stub_reset(GPUS);
    *shared = (struct shared){0};
    empty_folder(getenv("FOLDLINE_STATE"));
    unlink(fl_temp_path("said.txt"));
    stub->set_us = 5000;
    for (int i = 0; i < GPUS; i++)
        stub->gpu[i].limit_mw = prior[i] = 100000 + draw(200000);
    what_failed = NULL;
    return run();
}

static unsigned long asked(const char *name, unsigned long standard) {
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 10) : standard;
}

static void test_patterns(void) {
    const unsigned long trials = asked("FL_TRIALS", TRIALS);
    unsigned failed[PATTERN_COUNT] = {0}, total = 0;
    seed = asked("FL_SEED", 1);
    for (unsigned long i = 0; i < trials; i++) {
        const pattern *p = &PATTERNS[i % PATTERN_COUNT];
        if (!trial(p->run)) {
            failed[i % PATTERN_COUNT]++;
            total++;
            printf("\n    trial %lu, %s: %s", i, p->name, what_failed);
            fflush(stdout);
        }
    }
    printf("\n    %lu trials, %u failed ", trials, total);
    CU_ASSERT(total == 0);
}

/* The controller is foldline tune. */
static void test_tune(void) {
    const unsigned long trials = asked("FL_TUNE_TRIALS", getenv("FL_NIGHTLY") ? 200 : 6);
    unsigned failed = 0;
    seed = asked("FL_SEED", 1);
    for (unsigned long i = 0; i < trials; i++)
        if (!trial(tune_ended)) {
            failed++;
            printf("\n    trial %lu: %s", i, what_failed);
            fflush(stdout);
        }
    printf("\n    %lu trials of tune, %u failed ", trials, failed);
    CU_ASSERT(failed == 0);
}

/* ---- broken on purpose ------------------------------------------------------------------------------------------- */

static void test_mutations(void) {
    static const struct {
        const char *name;
        bool (*run)(void);
    } MUTANTS[] = {{"record-after-set", kill_early},
                   {"stale-record-ignored", both_and_new},
                   {"deadline-without-kill", stopped_then_back},
                   {"lock-not-inherited", stopped_guardian_and_kill},
                   {"record-before-guardian", as_the_record_appears},
                   {"verdict-after-oversleep", freeze},
                   {"records-on-disk-alone", without_records},
                   {"descriptor-unchecked", not_a_lock},
                   {"stopped-guardian-unnoticed", guardian_stopped},
                   {"stopped-guardian-left", stopped_guardian_and_kill},
                   {"stopped-guardian-kept", stopped_guardian_and_term},
                   {"run-lock-left-out", two_state_folders},
                   {"left-record-ignored", left_elsewhere},
                   {"kill-untold", stopped_for_good}};
    seed = asked("FL_SEED", 1) + 77;
    for (size_t i = 0; i < sizeof MUTANTS / sizeof *MUTANTS; i++) {
        int at = 0, sound = 0;
        for (; sound < 3 && trial(MUTANTS[i].run); sound++) { /* the same without the mutation comes through */
        }
        FL_CHECK(sound == 3, "%s, not broken: %s", MUTANTS[i].name, what_failed);
        setenv("FOLDLINE_MUTATION", MUTANTS[i].name, 1);
        while (at < MUTANT_TRIALS && trial(MUTANTS[i].run))
            at++;
        unsetenv("FOLDLINE_MUTATION");
        FL_CHECK(at < MUTANT_TRIALS, "%s goes unnoticed in %d trials", MUTANTS[i].name, MUTANT_TRIALS);
        if (at < MUTANT_TRIALS)
            printf("\n    %s: noticed in trial %d, %s", MUTANTS[i].name, at + 1, what_failed);
        wait_us(300000); /* whoever is still at it */
    }
}

static const fl_case CASES[] = {{"patterns", test_patterns}, {"tune", test_tune}, {"mutations", test_mutations}};

static int guardian_main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "live") && !strcmp(argv[2], "--guardian"))
        return fl_guardian_main(argc - 3, argv + 3);
    return -1;
}

static void open_stub(void) {
    stub_open(GPUS);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

FL_SUITE_OF("live_guardian", CASES, .program = guardian_main, .open = open_stub, .close = stub_close)
