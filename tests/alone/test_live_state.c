/* Forged state: records, locks and folders as nobody but an attacker, or a broken disk, leaves them. As root and as
 * another user: nothing outside the state folder is written, nothing hangs, and the GPUs whose records are good are
 * restored. Then each rule broken on purpose must be noticed. */
#include "harness/live/guard/guard.h"
#include "tests/support/live_stub.h"

#include <grp.h>

enum { GPUS = 3, LIMIT = 250000, PRIOR = 211000, OTHER_USER = 65533, HANG_S = 60, MUTANT_HANG_S = 5 };

#define GPU0 "GPU-00000000-stub-0"
#define HEAD "foldline-record 1\nboot BOOT\nunit "
#define RECORD0 HEAD GPU0 "\n"
#define RECORD_CPU HEAD "cpu\n"
#define CPUFREQ "ROOT/sys/devices/system/cpu/cpufreq/"
#define GOOD RECORD0 "prior 100000 power_limit_mw\nend\n" /* but for the file that it is in */

typedef enum shape { TEXT, LINK, HARD_LINK, FIFO, FOLDER, LARGE, FOREIGN, WRITABLE } shape;

typedef struct forgery {
    const char *name, *file;
    shape shape;
    const char
        *text; /* of the file, or of what the link leads to; BOOT, ROOT and VICTIM stand for what they are here */
    const char *says;
    const char *mutation; /* the rule that guards against it */
} forgery;

static const forgery FORGERIES[] = {
    {"a path outside", "cpu.record", TEXT, RECORD_CPU "prior 42 VICTIM\nend\n", "no control of this unit",
     "paths-unchecked"},
    {"a path that climbs", "cpu.record", TEXT,
     RECORD_CPU "prior 42 " CPUFREQ "policy0/../../../../../../../victim\nend\n", "no control of this unit",
     "paths-unchecked"},
    {"a path among the settings", "cpu.record", TEXT, RECORD_CPU "prior 42 " CPUFREQ "policy0/scaling_min_freq\nend\n",
     "no control of this unit", "paths-unchecked"},
    {"a path of a GPU", GPU0 ".record", TEXT, RECORD0 "prior 42 VICTIM\nend\n", "no control of this unit",
     "unknown-keys-taken"},
    {"a clock of the CPU below all", "cpu.record", TEXT,
     RECORD_CPU "prior -1 " CPUFREQ "policy0/scaling_max_freq\nend\n", "cannot hold", "values-unchecked"},
    {"a limit that wraps", GPU0 ".record", TEXT, RECORD0 "prior 4295067296 power_limit_mw\nend\n", "cannot hold",
     "values-unchecked"},
    {"a limit beyond all numbers", GPU0 ".record", TEXT, RECORD0 "prior 99999999999999999999999 power_limit_mw\nend\n",
     "cannot hold", "values-unchecked"},
    {"a limit below zero", GPU0 ".record", TEXT, RECORD0 "prior -1 power_limit_mw\nend\n", "cannot hold",
     "values-unchecked"},
    {"a value twice", GPU0 ".record", TEXT, RECORD0 "prior 250000 power_limit_mw\nprior 100000 power_limit_mw\nend\n",
     GPU0 ".record:5: a second value", NULL},
    {"another way to write a number", GPU0 ".record", TEXT, RECORD0 "prior +0100000 power_limit_mw\nend\n",
     "as nobody writes it", NULL},
    {"a line behind the end", GPU0 ".record", TEXT, GOOD "prior 100000 power_limit_mw\n",
     GPU0 ".record:6: something behind", NULL},
    {"no number", GPU0 ".record", TEXT, RECORD0 "prior 1e5 power_limit_mw\nend\n", "no number", NULL},
    {"an unknown key", GPU0 ".record", TEXT, RECORD0 "prior 100000 power_limit_mw\nprior 1 fan\nend\n",
     GPU0 ".record:5: no control of this unit has the key 'fan'", "unknown-keys-taken"},
    {"a key of another vendor", GPU0 ".record", TEXT, RECORD0 "prior 100000 power_limit_mw\nprior 1 perf_level\nend\n",
     "no control of this unit", "unknown-keys-taken"},
    {"an unknown line", GPU0 ".record", TEXT, RECORD0 "prior 100000 power_limit_mw\ncolour blue\nend\n",
     "expected prior or end", "unknown-keys-taken"},
    {"a record of another GPU", GPU0 ".record", TEXT, HEAD "GPU-00000000-stub-1\nprior 100000 power_limit_mw\nend\n",
     "named after", NULL},
    {"another version", GPU0 ".record", TEXT, "foldline-record 2\nboot BOOT\nend\n", "no record of this version", NULL},
    {"torn after a line", GPU0 ".record", TEXT, RECORD0 "prior 100000 power_limit_mw\n", "no complete record",
     "torn-taken"},
    {"torn within a line", GPU0 ".record", TEXT, RECORD0 "prior 100000 power_limit_mw", "no complete record",
     "torn-taken"},
    {"torn within the boot", GPU0 ".record", TEXT, "foldline-record 1\nboot 12", "no complete record", NULL},
    {"empty", GPU0 ".record", TEXT, "", "no complete record", NULL},
    {"a record that is a link", GPU0 ".record", LINK, GOOD, "it is a link", "links-followed"},
    {"a record of two names", GPU0 ".record", HARD_LINK, GOOD, "second name", "hard-link-taken"},
    {"a record that is a FIFO", GPU0 ".record", FIFO, "", "no regular file", "fifo-waited-for"},
    {"a record that is a folder", GPU0 ".record", FOLDER, "", "no regular file", NULL},
    {"a record without end", GPU0 ".record", LARGE, GOOD, "larger than any", "size-unbounded"},
    {"a record of another user", GPU0 ".record", FOREIGN, GOOD, "belongs to another user", "owner-unchecked"},
    {"a record that others may write", GPU0 ".record", WRITABLE, GOOD, "others may write it", "mode-unchecked"},
    {"a lock that is a link", GPU0 ".lock", LINK, "precious\n", "it is a link", "links-followed"},
    {"a lock of two names", GPU0 ".lock", HARD_LINK, "precious\n", "second name", "hard-link-taken"},
    {"a lock that is a FIFO", GPU0 ".lock", FIFO, "", "no regular file", "not-regular-taken"},
};
enum { FORGERY_COUNT = sizeof FORGERIES / sizeof *FORGERIES };

static char folder[300], root[400], victim[400];
static uid_t user; /* who runs the program */

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static char *filled_in(const char *text) {
    static char out[4096];
    static char boot[64];
    const struct { const char *word, *value; } WORDS[] = {{"BOOT", boot}, {"ROOT", root}, {"VICTIM", victim}};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f || !fgets(boot, sizeof boot, f))
        exit(1);
    fclose(f);
    boot[strcspn(boot, "\n")] = '\0';
    size_t n = 0;
    while (*text && n < sizeof out - sizeof root) {
        size_t i = 0;
        while (i < 3 && strncmp(text, WORDS[i].word, strlen(WORDS[i].word)) != 0)
            i++;
        if (i == 3) {
            out[n++] = *text++;
            continue;
        }
        n += (size_t)snprintf(out + n, sizeof out - n, "%s", WORDS[i].value);
        text += strlen(WORDS[i].word);
    }
    out[n] = '\0';
    return out;
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "we");
    if (!f || fputs(filled_in(text), f) < 0 || fclose(f) || chmod(path, 0600) || chown(path, user, (gid_t)-1)) {
        perror(path);
        exit(1);
    }
}

static char *in_state(const char *file) {
    static char path[700];
    snprintf(path, sizeof path, "%s/%s", getenv("FOLDLINE_STATE"), file);
    return path;
}

static void clean(const char *path) {
    char command[800];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command))
        perror(path);
}

static void make_folder(const char *path) {
    if (mkdir(path, 0700) || chown(path, user, (gid_t)-1)) {
        perror(path);
        exit(1);
    }
}

/* Good records of GPU 1 and 2, and files that nobody may touch. */
static void machine(void) {
    static const char *const TREE[] = {"/sys", "/devices", "/system", "/cpu", "/cpufreq", "/policy0"};
    char path[700];
    clean(getenv("FOLDLINE_STATE"));
    clean(getenv("FOLDLINE_RUN"));
    clean(root);
    make_folder(getenv("FOLDLINE_STATE"));
    make_folder(getenv("FOLDLINE_RUN"));
    make_folder(root);
    snprintf(path, sizeof path, "%s", root);
    for (size_t i = 0; i < sizeof TREE / sizeof *TREE; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "%s", TREE[i]);
        make_folder(path);
    }
    snprintf(path + strlen(path), sizeof path - strlen(path), "/scaling_min_freq");
    put(path, "1000000\n");
    unlink(victim);
    put(victim, "precious\n");
    stub_reset(GPUS);
    for (int i = 1; i < GPUS; i++) {
        char text[256], name[64];
        snprintf(name, sizeof name, "GPU-00000000-stub-%d.record", i);
        snprintf(text, sizeof text, HEAD "GPU-00000000-stub-%d\nprior %d power_limit_mw\nend\n", i, PRIOR);
        put(in_state(name), text);
    }
}

static void forge(const forgery *f) {
    char *path = in_state(f->file);
    bool ok = true;
    if (strstr(f->file, ".lock"))
        put(in_state(GPU0 ".record"), GOOD);
    path = in_state(f->file);
    if (f->shape == LINK || f->shape == HARD_LINK)
        put(victim, f->text);
    else if (f->shape != FIFO && f->shape != FOLDER)
        put(path, f->text);
    switch (f->shape) {
    case LINK:
        ok = !symlink(victim, path);
        break;
    case HARD_LINK:
        ok = !link(victim, path);
        break;
    case FIFO:
        ok = !mkfifo(path, 0600) && !chown(path, user, (gid_t)-1);
        break;
    case FOLDER:
        ok = !mkdir(path, 0700) && !chown(path, user, (gid_t)-1);
        break;
    case LARGE:
        ok = !truncate(path, 2 << 20);
        break;
    case FOREIGN:
        ok = !chown(path, user + 1, (gid_t)-1) && !chmod(path, 0644);
        break;
    case WRITABLE:
        ok = !chmod(path, 0666);
        break;
    default:
        break;
    }
    if (!ok) {
        perror(path);
        exit(1);
    }
}

/* ---- a run, and what is left ---------------------------------------------------------------------------------------
 */

static const char *what_failed;
static bool fail(const char *what) {
    what_failed = what_failed ? what_failed : what;
    return false;
}

/* As that user; one that hangs is ended, which the exit status shows. */
static pid_t start(char *const *argv, unsigned hang_s) {
    const int e = open(fl_temp_path("err.txt"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_t pid = fork();
    if (!pid) {
        dup2(e, 1);
        dup2(e, 2);
        alarm(hang_s);
        if (user && (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user)))
            _exit(125);
        execv("/proc/self/exe", argv);
        _exit(126);
    }
    close(e);
    return pid;
}

static char *slurped(const char *path) {
    size_t size;
    char *text = fl_temp_slurp(path, &size);
    return text ? text : strdup("");
}

static bool said(const char *what) {
    char *text = slurped(fl_temp_path("err.txt"));
    const bool found = strstr(text, what) != NULL;
    if (!found && !getenv("FOLDLINE_MUTATION"))
        printf("\n    it says: %s", text);
    free(text);
    return found || fail("it does not say why");
}

/* Nothing but the state folder was written. */
static bool untouched(const char *expected) {
    char copy[4096], path[800];
    snprintf(copy, sizeof copy, "%s", filled_in(expected));
    char *text = slurped(victim);
    bool ok = !strcmp(text, copy);
    free(text);
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", root);
    text = slurped(path);
    ok = ok && !strcmp(text, "1000000\n");
    free(text);
    return ok || fail("a file outside the state folder was written");
}

static char *const RESTORE[] = {(char *)(uintptr_t) "foldline", (char *)(uintptr_t) "restore", NULL};

static bool refused(const forgery *f) {
    struct stat s;
    machine();
    forge(f);
    what_failed = NULL;
    const int status = exit_of(start(RESTORE, getenv("FOLDLINE_MUTATION") ? MUTANT_HANG_S : HANG_S));
    if (status == 128 + SIGALRM)
        return fail("it hangs");
    if (status != 2 && status != 3)
        return fail("it is not refused");
    const bool others = stub->gpu[1].limit_mw == PRIOR && stub->gpu[2].limit_mw == PRIOR;
    return (others || fail("other GPUs are not restored")) &&
           (stub->gpu[0].limit_mw == LIMIT || fail("a forged value was set")) &&
           (!lstat(in_state(f->file), &s) || fail("it was taken away")) && said(f->says) &&
           untouched(f->shape == LINK || f->shape == HARD_LINK ? f->text : "precious\n");
}

static void test_forgeries(void) {
    const bool as_root = geteuid() == 0;
    for (int as = 0; as < 1 + as_root; as++) {
        user = as ? OTHER_USER : geteuid();
        for (size_t i = 0; i < FORGERY_COUNT; i++) {
            if (FORGERIES[i].shape == FOREIGN && !as_root)
                continue;
            const bool ok = refused(&FORGERIES[i]);
            FL_CHECK(ok, "user %u, %s: %s", (unsigned)user, FORGERIES[i].name, what_failed);
        }
    }
    user = geteuid();
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* One way to make the folder not ours alone; says what is told, NULL where only root could make it. */
static const char *spoil(int how, const char *path) {
    char moved[700];
    if (how == 0)
        return chmod(path, 0770) ? NULL : "others may write the folder";
    if (how == 1)
        return chmod(path, 0707) ? NULL : "others may write the folder";
    if (how == 2)
        return geteuid() || chown(path, user + 1, (gid_t)-1) || chmod(path, 0755) ? NULL : "belongs to user";
    snprintf(moved, sizeof moved, "%s-moved", path);
    clean(moved);
    return rename(path, moved) || symlink(moved, path) ? NULL : "a link to one, which is not followed";
}

static bool folder_refused(int how, const char *path) {
    machine();
    put(in_state(GPU0 ".record"), GOOD);
    const char *says = spoil(how, path);
    what_failed = NULL;
    if (!says)
        return true;
    const int status = exit_of(start(RESTORE, HANG_S));
    const bool none = stub->gpu[0].limit_mw == LIMIT && stub->gpu[1].limit_mw == LIMIT;
    return (status == 3 || fail("it is not refused")) && (none || fail("something was set")) && said(says) &&
           untouched("precious\n");
}

static void test_folders(void) {
    const bool as_root = geteuid() == 0;
    const char *const variable[] = {"FOLDLINE_STATE", "FOLDLINE_RUN"};
    for (int as = 0; as < 1 + as_root; as++) {
        user = as ? OTHER_USER : geteuid();
        for (int i = 0; i < 2; i++)
            for (int how = 0; how < 4; how++) {
                const bool ok = folder_refused(how, getenv(variable[i]));
                FL_CHECK(ok, "user %u, %s, way %d: %s", (unsigned)user, variable[i], how, what_failed);
            }
    }
    user = geteuid();
}

/* ---- a controller in a forged folder -------------------------------------------------------------------------------
 */

/* UNIT.new and guardian.log lead outside, or are FIFOs: a controller that is killed leaves GPUs and files as they were.
 */
static bool control_goes_around(bool fifo) {
    const char *const FILES[] = {GPU0 ".new", "guardian.log"};
    machine();
    what_failed = NULL;
    for (int i = 0; i < 2; i++) {
        char *path = in_state(FILES[i]);
        if (fifo ? mkfifo(path, 0600) || chown(path, user, (gid_t)-1) : symlink(victim, path))
            return fail("cannot forge");
    }
    char *const control[] = {(char *)(uintptr_t) "foldline",  (char *)(uintptr_t) "live",
                             (char *)(uintptr_t) "--policy",  (char *)(uintptr_t) "fixed:sm_mhz=1200,power_limit_w=150",
                             (char *)(uintptr_t) "--control", NULL};
    pid_t pid = start(control, 0);
    siginfo_t end = {0};
    UNTIL(stub->gpu[2].limit_mw == 150000 ||
          (!waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) && end.si_pid));
    const bool controls = stub->gpu[2].limit_mw == 150000;
    kill(pid, SIGKILL);
    exit_of(pid);
    const int status = exit_of(start(RESTORE, getenv("FOLDLINE_MUTATION") ? MUTANT_HANG_S : HANG_S));
    const bool back = stub->gpu[0].limit_mw == LIMIT && stub->gpu[1].limit_mw == PRIOR && !stub->gpu[0].sm_max;
    return (controls || fail("it does not control")) && (!status || fail("a restore fails")) &&
           (back || fail("a GPU is not as it was")) && untouched("precious\n");
}

static void test_control(void) {
    const bool as_root = geteuid() == 0;
    for (int as = 0; as < 1 + as_root; as++)
        for (int fifo = 0; fifo < 2; fifo++) {
            user = as ? OTHER_USER : geteuid();
            const bool ok = control_goes_around(fifo);
            FL_CHECK(ok, "user %u, %s: %s", (unsigned)user, fifo ? "FIFOs" : "links", what_failed);
        }
    user = geteuid();
}

/* ---- broken on purpose ------------------------------------------------------------------------------------------- */

static void test_mutations(void) {
    for (size_t i = 0; i < FORGERY_COUNT; i++) {
        const forgery *f = &FORGERIES[i];
        if (!f->mutation || (f->shape == FOREIGN && geteuid()))
            continue;
        setenv("FOLDLINE_MUTATION", f->mutation, 1);
        const bool unnoticed = refused(f);
        unsetenv("FOLDLINE_MUTATION");
        FL_CHECK(!unnoticed, "%s goes unnoticed: %s", f->mutation, f->name);
        if (!unnoticed)
            printf("\n    %s: noticed, %s: %s", f->mutation, f->name, what_failed);
    }
    for (int how = 0; how < 4; how++) {
        setenv("FOLDLINE_MUTATION", how < 3 ? "folder-unchecked" : "links-followed", 1);
        const bool unnoticed = folder_refused(how, getenv("FOLDLINE_STATE")) && (how != 2 || !geteuid());
        unsetenv("FOLDLINE_MUTATION");
        FL_CHECK(!unnoticed, "a folder, way %d, goes unnoticed", how);
    }
    setenv("FOLDLINE_MUTATION", "links-followed", 1);
    const bool unnoticed = control_goes_around(false);
    unsetenv("FOLDLINE_MUTATION");
    FL_CHECK(!unnoticed, "%s", "links of a controller's files go unnoticed");
}

static const fl_case CASES[] = {{"forged records and locks", test_forgeries},
                                {"folders that are not ours", test_folders},
                                {"control in a forged folder", test_control},
                                {"mutations", test_mutations}};

/* Where another user finds all of it. */
static void open_up(void) {
    size_t size;
    char *library = fl_temp_slurp(FL_STUB_NVML, &size);
    char path[512];
    if (!library)
        exit(1);
    snprintf(path, sizeof path, "%s", fl_temp_write("stub_nvml.so", library, size));
    free(library);
    chmod(path, 0755);
    setenv("FOLDLINE_NVML", path, 1);
    snprintf(folder, sizeof folder, "%s", fl_temp_folder);
    chmod(folder, 0755);
    chmod(getenv("FOLDLINE_STUB"), 0666);
    snprintf(root, sizeof root, "%s/root", folder);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    setenv("FOLDLINE_ROOT", root, 1);
}

static int program(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "live") && !strcmp(argv[2], "--guardian"))
        return fl_guardian_main(argc - 3, argv + 3);
    return foldline_main(argc, argv);
}

static void open_stub(void) {
    stub_open(GPUS);
    open_up();
}

static void close_stub(void) { clean(folder); }

FL_SUITE_OF("live_state", CASES, .program = program, .open = open_stub, .close = close_stub)
