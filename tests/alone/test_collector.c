/* The collector in a program, on a stub of CUPTI: what of its kernels comes when, however the program ends, and which
 * CUPTI it takes. */
#include "tests/support/ring_fixture.h"

#include <dlfcn.h>

/* ---- collector and host ------------------------------------------------------------------------------------------ */

/* What a program of the tests calls: the collector, and the stub that stands for the driver. */
typedef struct calls {
    int (*start)(void);
    void (*run)(const char *name, uint32_t device, uint32_t stream, uint32_t blocks);
    void (*run_for)(const char *name, uint32_t device, uint32_t stream, uint32_t blocks, uint64_t ns);
    int (*flush)(uint32_t flag);
    void (*set_clock)(uint64_t ns);
    bool (*enabled)(void);
} calls;

static const char *driver = FL_STUB_CUPTI;

static calls load(const char *stub) {
    void *cupti = dlopen(stub, RTLD_NOW), *collector = dlopen(FL_COLLECTOR, RTLD_NOW);
    calls c = {0};
    if (!cupti || !collector)
        _exit(9);
    *(void **)(void *)&c.start = dlsym(collector, "InitializeInjection");
    *(void **)(void *)&c.run = dlsym(cupti, "stub_cupti_kernel");
    *(void **)(void *)&c.run_for = dlsym(cupti, "stub_cupti_kernel_of");
    *(void **)(void *)&c.flush = dlsym(cupti, "cuptiActivityFlushAll");
    *(void **)(void *)&c.set_clock = dlsym(cupti, "stub_cupti_set_clock");
    *(void **)(void *)&c.enabled = dlsym(cupti, "stub_cupti_enabled");
    if (!c.start || !c.run || !c.run_for || !c.flush || !c.set_clock || !c.enabled || c.start() != 1)
        _exit(8);
    return c;
}

/* A program with the collector in it: `count` kernels, then the end as asked. The driver's clock is set in between. */
static void program(int count, bool killed) {
    const calls c = load(driver);
    for (int i = 0; i < count; i++) {
        if (i == count / 2) {
            wait_us(1000); /* all have ended */
            c.flush(0);
            c.set_clock(5000000000);
        }
        c.run(i % 3 ? "sgemm" : "axpy", (uint32_t)i % 2, 5, i % 3 ? 64 : 8);
    }
    if (killed) {
        wait_us(300000);
        kill(getpid(), SIGKILL);
    }
    exit(0);
}

static pid_t start_program(int count, bool killed) {
    pid_t pid = fork();
    if (!pid)
        program(count, killed);
    return pid;
}

static int64_t origin(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void collector_and_host(const char *stub) {
    fl_diag d = {0};
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUPTI", stub, 1);
    fl_kernels *k = open_folder();
    const int64_t begin = origin();
    CU_ASSERT(end_of(start_program(30000, false)) == 0);
    const int64_t end = origin() - begin;
    fl_sample s = {.gpu_count = 2};
    CU_ASSERT(!fl_kernels_take(k, begin, &s, &d));
    FL_CHECK(s.record_count == 30000 && s.record_lost == 0, "%llu records, %llu lost",
             (unsigned long long)s.record_count, (unsigned long long)s.record_lost);
    CU_ASSERT(s.kind_count == 2);
    for (size_t i = 0; i < s.record_count; i++) {
        const fl_kernel_record *r = &s.record[i];
        const fl_kernel_kind *kind = &s.kind[r->kind];
        const bool sgemm = !strcmp(kind->name, "sgemm");
        if (r->start_ns < 0 || r->end_ns != r->start_ns + 1000 || r->start_ns > end || r->stream != 5 || r->gpu > 1 ||
            (!sgemm && strcmp(kind->name, "axpy") != 0) || kind->grid[0] != (sgemm ? 64 : 8) || kind->block[0] != 256) {
            FL_CHECK(false, "record %zu: %s from %lld to %lld", i, kind->name, (long long)r->start_ns,
                     (long long)r->end_ns);
            break;
        }
        CU_ASSERT(!i || r->end_ns >= s.record[i - 1].end_ns);
    }
    fl_kernels_counts c = fl_kernels_count(k);
    CU_ASSERT(c.programs == 1 && c.running == 0 && c.ends_missing == 0);
    int status = end_of(start_program(70000, true));
    CU_ASSERT(WIFSIGNALED(status));
    s = (fl_sample){.gpu_count = 1}; /* of GPU 0 only */
    CU_ASSERT(!fl_kernels_take(k, begin, &s, &d));
    c = fl_kernels_count(k);
    FL_CHECK(c.programs == 2 && c.ends_missing == 1, "%llu ends missing", (unsigned long long)c.ends_missing);
    FL_CHECK(s.record_lost == 70000 - 65536 && s.record_count == 65536 / 2, "%llu records, %llu lost",
             (unsigned long long)s.record_count, (unsigned long long)s.record_lost);
    for (size_t i = 0; i < s.record_count; i++)
        if (s.record[i].gpu) {
            FL_CHECK(false, "record %zu is of GPU %u", i, s.record[i].gpu);
            break;
        }
    fl_kernels_close(k);
    clear_folder();
}

static void test_collector(void) { collector_and_host(FL_STUB_CUPTI); }
static void test_collector_clock_of_cupti(void) {
    driver = FL_STUB_CUPTI_OLD;
    collector_and_host(FL_STUB_CUPTI_OLD);
    driver = FL_STUB_CUPTI;
}

/* A program with two of the machine's GPUs, in an order of its own, and a MIG instance: its numbers mean nothing here.
 * Its driver starts after the collector, as drivers do. */
static void test_gpus_by_uuid(void) {
    size_t of[4] = {0};
    fl_sample s = {.gpu_count = 4};
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    setenv("FOLDLINE_CUDA_DEVICES", "3,mig,0", 1);
    setenv("FOLDLINE_CUDA_LATE", "1", 1);
    fl_kernels *k = open_folder();
    pid_t pid = fork();
    if (!pid) {
        const calls c = load(FL_STUB_CUPTI);
        for (uint32_t i = 0; i < 60; i++)
            c.run("sgemm", i % 3, 5, 64);
        exit(0);
    }
    CU_ASSERT(end_of(pid) == 0);
    unsetenv("FOLDLINE_CUDA_DEVICES");
    unsetenv("FOLDLINE_CUDA_LATE");
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
    for (size_t i = 0; i < s.record_count; i++)
        of[s.record[i].gpu]++;
    FL_CHECK(of[0] == 20 && of[1] == 0 && of[2] == 0 && of[3] == 20, "%zu, %zu, %zu, %zu kernels", of[0], of[1], of[2],
             of[3]);
    CU_ASSERT(fl_kernels_count(k).elsewhere == 20);
    fl_kernels_close(k);
    clear_folder();
}

/* ---- while a program runs, and how it ends ----------------------------------------------------------------------- */

/* Runs the program and hands its records over to see(); kills it after two minutes. Returns its status. */
static int watch(void (*run)(const calls *c), void (*see)(pid_t pid, const fl_kernels *k, size_t records)) {
    size_t records = 0;
    int status = 0;
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    fl_kernels *k = open_folder();
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const calls c = load(FL_STUB_CUPTI);
        run(&c);
        exit(0);
    }
    const double start = now_s();
    for (bool ended = false, last = false; !last;) {
        fl_sample s = {.gpu_count = 1};
        last = ended;
        if (!last && now_s() - start > 120)
            kill(pid, SIGKILL);
        ended = waitpid(pid, &status, ended ? 0 : WNOHANG) != 0;
        CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
        records += s.record_count;
        see(last ? 0 : pid, k, records);
        wait_us(2000);
    }
    fl_kernels_close(k);
    clear_folder();
    return status;
}

enum { FEW = 10 }; /* far fewer than a buffer holds */

static void few_and_wait(const calls *c) {
    for (int i = 0; i < FEW; i++)
        c->run("sgemm", 0, 7, 64);
    pause();
}

/* Ends the program when all is there. */
static void end_when_seen(pid_t pid, const fl_kernels *k, size_t records) {
    (void)k;
    if (pid && records == FEW)
        kill(pid, SIGTERM);
}

/* The buffer never gets full: only a flush of the collector's own brings them. */
static void test_records_come_while_it_runs(void) {
    const int status = watch(few_and_wait, end_when_seen);
    FL_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "ended by signal %d", WTERMSIG(status));
}

static void steady_until_killed(const calls *c) {
    for (int i = 0; i < 500; i++) {
        c->run("sgemm", 0, 7, 64);
        wait_us(1000);
    }
    kill(getpid(), SIGTERM);
}

static size_t records_at_end;

static void keep_count(pid_t pid, const fl_kernels *k, size_t records) {
    (void)pid;
    records_at_end = records;
    if (!pid)
        CU_ASSERT(fl_kernels_count(k).ends_missing == 1);
}

/* A program that TERM ends loses what the last period held: at most 20 kernels where one begins every ms. */
static void test_a_signal_costs_one_period(void) {
    const int status = watch(steady_until_killed, keep_count);
    FL_CHECK(WIFSIGNALED(status) && records_at_end >= 400, "%zu of 500 kernels", records_at_end);
}

static void one_under_way(const calls *c) {
    for (int i = 0; i < FEW; i++)
        c->run("sgemm", 0, 7, 64);
    c->run_for("endless", 0, 7, 64, UINT64_C(3600000000000));
    wait_us(100000);
}

static void keep_lost(pid_t pid, const fl_kernels *k, size_t records) {
    if (!pid) {
        const fl_kernels_counts c = fl_kernels_count(k);
        FL_CHECK(c.lost + records == FEW + 1 && c.ends_missing == 0, "%zu records, %llu lost", records,
                 (unsigned long long)c.lost);
    }
}

/* At the end all buffers come, those too with kernels that have not ended. */
static void test_an_orderly_end_leaves_none(void) { CU_ASSERT(watch(one_under_way, keep_lost) == 0); }

/* The sanitizer looks for leaks as a process ends, and takes its allocator's locks for it: in a child that was forked
 * while another thread of its parent held one, for ever. */
static bool forked;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return forked; }

/* Without memory of its own, which may wait for such a lock too. */
static bool says(const char *path, const char *text) {
    static char all[1 << 20];
    size_t size = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got; fd >= 0 && (got = read(fd, all + size, sizeof all - 1 - size)) > 0;)
        size += (size_t)got;
    all[size] = '\0';
    close(fd);
    return strstr(all, text) != NULL;
}

static bool thread_named(const char *name, char *blocked, size_t size) {
    char path[320], line[256];
    bool found = false;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && !found && (e = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%.200s/status", e->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = '\0';
            if (!strncmp(line, "Name:\t", 6))
                found = !strcmp(line + 6, name);
            if (found && !strncmp(line, "SigBlk:\t", 8))
                snprintf(blocked, size, "%.200s", line + 8);
        }
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* The thread takes no signal of the program's, and a child of a fork has none: it ends without waiting for it, and
 * neither ends nor writes its parent's ring. */
static void forks(const calls *c) {
    char blocked[256] = "";
    for (int i = 0; i < FEW; i++)
        c->run("sgemm", 0, 7, 64);
    if (!thread_named("foldline-flush", blocked, sizeof blocked) || strncmp(blocked, "fffffff", 7) != 0)
        _exit(3);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            forked = true;
            exit(says("/proc/self/status", "\nThreads:\t1\n") && !says("/proc/self/maps", ".ring") ? 0 : 5);
        }
        if (end_of(child))
            _exit(4);
    }
    for (int i = 0; i < FEW; i++)
        c->run("sgemm", 0, 7, 64);
}

static void keep_whole(pid_t pid, const fl_kernels *k, size_t records) {
    if (!pid)
        FL_CHECK(fl_kernels_count(k).ends_missing == 0 && records == FEW * 2, "%zu records", records);
}

static void test_forks(void) {
    const int status = watch(forks, keep_whole);
    FL_CHECK(status == 0, "exit status %d", WEXITSTATUS(status));
}

static void few(const calls *c) {
    for (int i = 0; i < FEW; i++)
        c->run("sgemm", 0, 7, 64);
    wait_us(100000);
}

static void ignore(pid_t pid, const fl_kernels *k, size_t records) {
    (void)pid;
    (void)k;
    (void)records;
}

/* Where CUPTI does not come back, the program still ends as it would. */
static void test_stuck_in_cupti(void) {
    setenv("FOLDLINE_CUPTI_STUCK", "1", 1);
    CU_ASSERT(watch(few, ignore) == 0);
    unsetenv("FOLDLINE_CUPTI_STUCK");
}

/* Rings of 9 MB each: none of a program that has ended stays, neither on disk nor in memory. */
static void test_ended_programs_leave_nothing(void) {
    fl_diag d = {0};
    char path[400];
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    fl_kernels *k = open_folder();
    for (int i = 0; i < 6; i++) {
        pid_t pid = start_program(10, i % 2);
        end_of(pid);
        fl_sample s = {.gpu_count = 2};
        CU_ASSERT(ring_of(pid, path, sizeof path));
        CU_ASSERT(!fl_kernels_take(k, 0, &s, &d) && (i % 2 || s.record_count == 10));
        CU_ASSERT(!ring_of(pid, path, sizeof path) && !is_mapped(".ring"));
    }
    const fl_kernels_counts c = fl_kernels_count(k);
    CU_ASSERT(c.programs == 6 && c.running == 0 && c.ends_missing == 3);
    fl_kernels_close(k);
    clear_folder();
}

/* ---- which CUPTI ------------------------------------------------------------------------------------------------- */

static void copy_to(const char *path) {
    char command[1200];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\" && cp '%s' '%s'", path, FL_STUB_CUPTI, path);
    CU_ASSERT(system(command) == 0);
}

typedef struct place {
    const char *files[2]; /* copies of the stub, in a folder of the test */
    const char *loaded;   /* by the program itself, before CUDA */
    const char *fails;    /* in the path of one that cannot be enabled */
    const char *home;     /* $CUDA_HOME */
    const char *taken;    /* "" = none */
    const char *held;     /* in the path of one that another profiler holds */
} place;

static const char *in_place(size_t row, const char *name) {
    static char path[500];
    snprintf(path, sizeof path, "%.300s/%zu/%.100s", fl_temp_path("places"), row, name);
    return path;
}

/* Tells by its status whether the one that should be was enabled, and no other. */
static void find_cupti(const place *p, size_t row) {
    if (p->loaded && !dlopen(in_place(row, p->loaded), RTLD_NOW))
        _exit(9);
    void *collector = dlopen(FL_COLLECTOR, RTLD_NOW);
    int (*start)(void) = NULL;
    *(void **)(void *)&start = dlsym(collector, "InitializeInjection");
    if (start() != 1)
        _exit(8);
    for (size_t i = 0; i < 2 && p->files[i]; i++) {
        void *cupti = dlopen(in_place(row, p->files[i]), RTLD_NOW);
        bool (*enabled)(void) = NULL;
        *(void **)(void *)&enabled = dlsym(cupti, "stub_cupti_enabled");
        if (enabled() != !strcmp(p->files[i], p->taken))
            _exit(10 + (int)i);
    }
    _exit(0);
}

static void test_which_cupti(void) {
    static const place ROWS[] = {
        {{"extras/CUPTI/lib64/libcupti.so.11.4"}, NULL, NULL, ".", "extras/CUPTI/lib64/libcupti.so.11.4", NULL},
        {{"lib64/libcupti.so.13", "lib64/libcupti.so.11.0"}, NULL, ".so.13", ".", "lib64/libcupti.so.11.0", NULL},
        {{"own.so", "lib64/libcupti.so.13"}, "own.so", NULL, ".", "own.so", NULL},
        {{"own.so", "lib64/libcupti.so.13"}, "own.so", "own.so", ".", "lib64/libcupti.so.13", NULL},
        {{"rt/lib/libcudart.so.12", "cuda_cupti/lib/libcupti.so.12"},
         "rt/lib/libcudart.so.12",
         "libcudart",
         NULL,
         "cuda_cupti/lib/libcupti.so.12",
         NULL},
        {{"lib64/libcudart.so.12", "extras/CUPTI/lib64/libcupti.so.11.8"},
         "lib64/libcudart.so.12",
         "libcudart",
         NULL,
         "extras/CUPTI/lib64/libcupti.so.11.8",
         NULL},
        {{"lib64/libcupti.so.13", "lib64/libcupti.so.12"}, NULL, NULL, ".", "", ".so.13"},
    };
    unsetenv("FOLDLINE_CUPTI");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fresh_folder();
        setenv("FOLDLINE_RINGS", folder, 1);
        for (size_t k = 0; k < 2 && ROWS[i].files[k]; k++)
            copy_to(in_place(i, ROWS[i].files[k]));
        if (ROWS[i].home)
            setenv("CUDA_HOME", in_place(i, ROWS[i].home), 1);
        if (ROWS[i].fails)
            setenv("FOLDLINE_CUPTI_FAILS", ROWS[i].fails, 1);
        if (ROWS[i].held)
            setenv("FOLDLINE_CUPTI_HELD", ROWS[i].held, 1);
        pid_t pid = fork();
        if (!pid)
            find_cupti(&ROWS[i], i);
        const int status = end_of(pid);
        FL_CHECK(status == 0, "row %zu: status %d", i, WEXITSTATUS(status));
        unsetenv("CUDA_HOME");
        unsetenv("FOLDLINE_CUPTI_HELD");
        unsetenv("FOLDLINE_CUPTI_FAILS");
        clear_folder();
    }
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", fl_temp_path("places"));
    CU_ASSERT(system(command) == 0);
}

/* Without CUPTI, without a folder, or where a profiler holds it, the program runs on and leaves nothing. */
static void test_collector_does_nothing(void) {
    static const struct {
        const char *cupti, *rings, *why;
    } ROWS[] = {{"/nowhere/libcupti.so", NULL, NULL},
                {FL_STUB_CUPTI, "", NULL},
                {FL_STUB_CUPTI, "/nowhere/rings", NULL},
                {FL_STUB_CUPTI, NULL, "FOLDLINE_CUPTI_HELD"},
                {FL_STUB_CUPTI, NULL, "FOLDLINE_CUPTI_FAILS"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_kernels *k = NULL;
        fl_sample s = {.gpu_count = 2};
        fresh_folder();
        setenv("FOLDLINE_CUPTI", ROWS[i].cupti, 1);
        setenv("FOLDLINE_RINGS", ROWS[i].rings ? ROWS[i].rings : folder, 1);
        if (ROWS[i].why)
            setenv(ROWS[i].why, "libstub", 1);
        pid_t pid = start_program(10, false);
        char path[400];
        FL_CHECK(end_of(pid) == 0, "row %zu: the program fails", i);
        FL_CHECK(!ring_of(pid, path, sizeof path), "row %zu: a ring is left", i);
        CU_ASSERT(!fl_kernels_open(&k, folder, NULL) && !fl_kernels_take(k, 0, &s, NULL) && s.record_count == 0);
        fl_kernels_close(k);
        if (ROWS[i].why)
            unsetenv(ROWS[i].why);
        clear_folder();
    }
    fl_temp_remove();
}

FL_SUITE("collector", {"collector and host", test_collector},
         {"a CUPTI that takes no clock", test_collector_clock_of_cupti}, {"GPUs by UUID", test_gpus_by_uuid},
         {"records come while it runs", test_records_come_while_it_runs},
         {"a signal costs one period", test_a_signal_costs_one_period},
         {"an orderly end leaves none", test_an_orderly_end_leaves_none}, {"forks", test_forks},
         {"stuck in CUPTI", test_stuck_in_cupti}, {"ended programs leave nothing", test_ended_programs_leave_nothing},
         {"which CUPTI", test_which_cupti}, {"with nothing to do", test_collector_does_nothing})
