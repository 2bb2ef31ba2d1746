/* Kernel records: no record lost without being counted, none damaged, whatever kills the program; the collector on a
 * stub of CUPTI. FL_KILLS=1000 for more kills. */
#include "harness/live/kernels.h"
#include "harness/live/ring.h"
#include "tests/suite.h"
#include "tests/temp_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char folder[300];

static void fresh_folder(void) {
    snprintf(folder, sizeof folder, "%.250s", fl_temp_path("rings"));
    mkdir(folder, 0700);
}

static void clear_folder(void) {
    DIR *at = opendir(folder);
    for (struct dirent *e; at && (e = readdir(at));)
        unlinkat(dirfd(at), e->d_name, 0);
    if (at)
        closedir(at);
    rmdir(folder);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_us(long us) {
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* The name says which record it is: a mixture of two would show. */
static fl_ring_record made(uint64_t i) {
    return (fl_ring_record){.start_ns = (int64_t)i, .end_ns = (int64_t)i + 7, .grid = {(uint32_t)(i * 3), 1, 1}};
}

static bool sound(const fl_ring_record *r) {
    return r->start_ns == (int64_t)r->number && r->end_ns == r->start_ns + 7 && r->grid[0] == (uint32_t)(r->number * 3);
}

/* The ring of that process in the folder. */
static bool ring_of(pid_t pid, char *path, size_t size) {
    char begin[32];
    bool found = false;
    snprintf(begin, sizeof begin, "%d-", (int)pid);
    DIR *at = opendir(folder);
    for (struct dirent *e; at && !found && (e = readdir(at));)
        if ((found = !strncmp(e->d_name, begin, strlen(begin))))
            snprintf(path, size, "%.299s/%.80s", folder, e->d_name);
    if (at)
        closedir(at);
    return found;
}

/* ---- the ring itself --------------------------------------------------------------------------------------------- */

static void test_full_ring_drops_and_counts(void) {
    fl_ring writer, reader;
    fl_ring_record out[16];
    uint64_t bad = 0;
    char path[400];
    fresh_folder();
    CU_ASSERT(fl_ring_create(&writer, folder, 8, 64) == 0);
    CU_ASSERT(ring_of(getpid(), path, sizeof path));
    CU_ASSERT(fl_ring_open(&reader, path) == 0);
    for (uint64_t i = 0; i < 11; i++) {
        fl_ring_record r = made(i);
        FL_CHECK(fl_ring_put(&writer, &r) == (i < 8), "record %llu", (unsigned long long)i);
    }
    CU_ASSERT(fl_ring_take(&reader, out, 16, &bad) == 8 && !bad && out[7].number == 7);
    fl_ring_record r = made(11);
    CU_ASSERT(fl_ring_put(&writer, &r));
    CU_ASSERT(fl_ring_take(&reader, out, 16, &bad) == 1 && out[0].number == 11 && sound(&out[0])); /* 8, 9, 10 lost */
    CU_ASSERT(atomic_load(&reader.head->dropped) == 3);
    uint32_t at = fl_ring_name(&writer, "kernel");
    CU_ASSERT_STRING_EQUAL(fl_ring_name_at(&reader, at), "kernel");
    CU_ASSERT(*fl_ring_name_at(&reader, 0) == '\0' && *fl_ring_name_at(&reader, 60) == '\0');
    CU_ASSERT(fl_ring_name(&writer, "a name that is longer than all the room that is left for names here") == 0);
    writer.record[0].start_ns ^= 1; /* damaged after it was published */
    atomic_store(&reader.head->read, atomic_load(&reader.head->write) - 1);
    r = made(12);
    fl_ring_put(&writer, &r);
    writer.record[(atomic_load(&writer.head->write) - 1) & 7].end_ns ^= 64;
    bad = 0;
    CU_ASSERT(fl_ring_take(&reader, out, 16, &bad) == 0 && bad == 2);
    fl_ring_close(&writer);
    fl_ring_close(&reader);
    CU_ASSERT(truncate(path, 5000) == 0 && fl_ring_open(&reader, path) == EINVAL);
    clear_folder();
}

/* A program that writes as fast as it can is killed at a random time while the host reads: what was read and what was
 * dropped is what was produced, numbered without a gap that was not counted. */
static void test_kills(void) {
    const char *asked = getenv("FL_KILLS");
    const int kills = asked && *asked ? atoi(asked) : 100;
    uint64_t total = 0, dropped_total = 0, bad_trials = 0;
    _Atomic uint64_t *generated = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const double start = now_s();
    srand(7);
    for (int trial = 0; trial < kills; trial++) {
        fl_ring ring = {0};
        char path[400];
        fl_ring_record *out = malloc(4096 * sizeof *out);
        uint64_t consumed = 0, next = 0, gaps = 0, bad = 0, unsound = 0;
        fresh_folder();
        atomic_store(generated, 0);
        pid_t pid = fork();
        if (!pid) {
            if (fl_ring_create(&ring, folder, trial % 2 ? 1024 : 1 << 16, 64))
                _exit(1);
            for (uint64_t i = 0;; i++) {
                fl_ring_record r = made(i);
                fl_ring_put(&ring, &r);
                atomic_store_explicit(generated, i + 1, memory_order_relaxed);
            }
        }
        while (!ring_of(pid, path, sizeof path) || fl_ring_open(&ring, path))
            wait_us(100);
        const double end = now_s() + rand() % 10000 * 1e-6;
        bool killed = false;
        for (size_t n = 1; n || !killed;) {
            if (!killed && now_s() > end) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                killed = true;
            }
            n = fl_ring_take(&ring, out, 4096, &bad);
            for (size_t i = 0; i < n; i++) {
                gaps += out[i].number - next;
                next = out[i].number + 1;
                unsound += !sound(&out[i]);
            }
            consumed += n;
            if (rand() % 8 == 0)
                wait_us(rand() % 200);
        }
        const uint64_t dropped = atomic_load(&ring.head->dropped), told = atomic_load(generated);
        const uint64_t produced = consumed + dropped;
        /* The count outside can be one behind: the kill may come between record and count. */
        if (bad || unsound || gaps > dropped || next > produced || produced < told || produced > told + 1) {
            bad_trials++;
            printf("\n    trial %d: consumed %llu + dropped %llu, generated %llu, gaps %llu, damaged %llu", trial,
                   (unsigned long long)consumed, (unsigned long long)dropped, (unsigned long long)told,
                   (unsigned long long)gaps, (unsigned long long)(bad + unsound));
        }
        total += produced;
        dropped_total += dropped;
        fl_ring_close(&ring);
        free(out);
        clear_folder();
    }
    printf("\n    %d kills, %.3g million records, %.2g dropped, %.3g million a second ", kills, (double)total * 1e-6,
           (double)dropped_total / (double)total, (double)total * 1e-6 / (now_s() - start));
    CU_ASSERT(bad_trials == 0);
    munmap(generated, 4096);
}

/* ---- collector and host ------------------------------------------------------------------------------------------ */

typedef void launch(const char *name, uint32_t device, uint32_t stream, uint32_t blocks);

/* A program with the collector in it: `count` kernels, then the end as asked. The driver's clock is set in between. */
static void program(int count, bool killed) {
    void *cupti = dlopen(FL_STUB_CUPTI, RTLD_NOW), *collector = dlopen(FL_COLLECTOR, RTLD_NOW);
    int (*start)(void) = NULL;
    launch *run = NULL;
    int (*flush)(uint32_t flag) = NULL;
    void (*set_clock)(uint64_t ns) = NULL;
    if (!cupti || !collector)
        _exit(9);
    *(void **)(void *)&start = dlsym(collector, "InitializeInjection");
    *(void **)(void *)&run = dlsym(cupti, "stub_cupti_kernel");
    *(void **)(void *)&flush = dlsym(cupti, "cuptiActivityFlushAll");
    *(void **)(void *)&set_clock = dlsym(cupti, "stub_cupti_set_clock");
    if (!start || !run || !flush || !set_clock || start() != 1)
        _exit(8);
    for (int i = 0; i < count; i++) {
        if (i == count / 2) {
            flush(0);
            set_clock(5000000000);
        }
        run(i % 3 ? "sgemm" : "axpy", (uint32_t)i % 2, 5, i % 3 ? 64 : 8);
    }
    if (killed)
        kill(getpid(), SIGKILL);
    exit(0);
}

static int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
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

static void test_collector(void) {
    fl_kernels *k = NULL;
    fl_diag d = {0};
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    CU_ASSERT(!fl_kernels_open(&k, folder, &d));
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
    FL_CHECK(s.record_lost > 0 && s.record_count > 30000, "%llu records, %llu lost", (unsigned long long)s.record_count,
             (unsigned long long)s.record_lost);
    for (size_t i = 0; i < s.record_count; i++)
        if (s.record[i].gpu) {
            FL_CHECK(false, "record %zu is of GPU %u", i, s.record[i].gpu);
            break;
        }
    fl_kernels_close(k);
    clear_folder();
}

/* ---- programs that are not to be trusted, or not known ------------------------------------------------------------
 */

static bool is_mapped(const char *ending) {
    char line[1024];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, ending) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* Rings of 9 MB each: none of a program that has ended stays, neither on disk nor in memory. */
static void test_ended_programs_leave_nothing(void) {
    fl_kernels *k = NULL;
    fl_diag d = {0};
    char path[400];
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUPTI", FL_STUB_CUPTI, 1);
    CU_ASSERT(!fl_kernels_open(&k, folder, &d));
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

typedef struct shared {
    _Atomic int stage; /* the host's wish */
    _Atomic int done;  /* the program's answer */
} shared;

static void reach(_Atomic int *stage, int value) {
    while (atomic_load(stage) < value)
        wait_us(200);
}

enum { SMALL = 1024 };

/* Writes a ring; then does at each stage what the test asks for, until it is killed. */
static pid_t start_writer(shared *s, void (*stages)(fl_ring *ring, int stage)) {
    pid_t pid = fork();
    if (pid)
        return pid;
    fl_ring ring;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fl_ring_create(&ring, folder, SMALL, 64))
        _exit(1);
    for (int stage = 0;; stage++) {
        reach(&s->stage, stage);
        stages(&ring, stage);
        atomic_store(&s->done, stage + 1);
    }
}

static void put_some(fl_ring *ring) {
    for (uint64_t i = 0; i < 10; i++) {
        fl_ring_record r = made(i + 1);
        fl_ring_put(ring, &r);
    }
}

static void cut_short(fl_ring *ring, int stage) {
    put_some(ring);
    if (stage == 1 && ftruncate(ring->fd, 0)) /* its own next look would end it */
        _exit(1);
    if (stage == 1)
        ring->head = NULL;
}

static void of_a_container(fl_ring *ring, int stage) {
    if (!stage)
        ring->head->pid = 4194300; /* in a space of its own, where nobody of ours is */
    put_some(ring);
}

/* As after an exec: the lock of the image before is gone, and the process lives on with a ring of its own. */
static void next_image(fl_ring *ring, int stage) {
    put_some(ring);
    if (stage == 1) {
        close(ring->fd);
        if (fl_ring_create(ring, folder, SMALL, 64))
            _exit(1);
        put_some(ring);
    }
}

static void without_end(fl_ring *ring, int stage) {
    (void)stage;
    for (uint64_t i = 1; i <= SMALL; i++) {
        fl_ring_record r = made(i);
        fl_ring_put(ring, &r);
    }
    if (stage == 1)
        while (true) {
            fl_ring_record r = made(1);
            fl_ring_put(ring, &r);
        }
}

static void with_writer(void (*stages)(fl_ring *ring, int stage), void (*test)(fl_kernels *k, shared *s, pid_t pid)) {
    shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fl_kernels *k = NULL;
    fresh_folder();
    CU_ASSERT(!fl_kernels_open(&k, folder, NULL));
    pid_t pid = start_writer(s, stages);
    reach(&s->done, 1);
    test(k, s, pid);
    kill(pid, SIGKILL);
    end_of(pid);
    fl_kernels_close(k);
    clear_folder();
    munmap(s, 4096);
}

static void cut_short_test(fl_kernels *k, shared *s, pid_t pid) {
    fl_sample sample = {.gpu_count = 1};
    (void)pid;
    CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL) && sample.record_count == 10);
    atomic_store(&s->stage, 1);
    reach(&s->done, 2);
    CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL) && sample.record_count == 0);
    fl_kernels_counts c = fl_kernels_count(k);
    CU_ASSERT(c.damaged == 1 && c.ends_missing == 1 && c.running == 0);
    CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL));
}
static void test_a_ring_cut_short(void) { with_writer(cut_short, cut_short_test); }

static void container_test(fl_kernels *k, shared *s, pid_t pid) {
    fl_sample sample = {.gpu_count = 1};
    for (int stage = 0; stage < 3; stage++) {
        atomic_store(&s->stage, stage);
        reach(&s->done, stage + 1);
        CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL) && sample.record_count == 10);
        CU_ASSERT(fl_kernels_count(k).running == 1);
    }
    kill(pid, SIGKILL);
    end_of(pid);
    CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL) && fl_kernels_count(k).running == 0);
    CU_ASSERT(fl_kernels_count(k).ends_missing == 1);
}
static void test_a_container(void) { with_writer(of_a_container, container_test); }

static void next_image_test(fl_kernels *k, shared *s, pid_t pid) {
    fl_sample sample = {.gpu_count = 1};
    (void)pid;
    atomic_store(&s->stage, 1);
    reach(&s->done, 2);
    CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL) && sample.record_count == 30);
    fl_kernels_counts c = fl_kernels_count(k);
    CU_ASSERT(c.programs == 2 && c.running == 1 && c.ends_missing == 1);
}
static void test_next_image(void) { with_writer(next_image, next_image_test); }

/* However fast a program writes, one take ends. */
static void without_end_test(fl_kernels *k, shared *s, pid_t pid) {
    fl_sample sample = {.gpu_count = 1};
    (void)pid;
    atomic_store(&s->stage, 1);
    for (int i = 0; i < 200; i++) {
        CU_ASSERT(!fl_kernels_take(k, 0, &sample, NULL));
        FL_CHECK(sample.record_count <= SMALL, "%llu records at once", (unsigned long long)sample.record_count);
    }
}
static void test_a_program_without_end(void) { with_writer(without_end, without_end_test); }

/* Without CUPTI, without a folder, or where a profiler holds it, the program runs on and leaves nothing. */
static void test_collector_does_nothing(void) {
    static const struct {
        const char *cupti, *rings, *held;
    } ROWS[] = {{"/nowhere/libcupti.so", NULL, NULL},
                {FL_STUB_CUPTI, "", NULL},
                {FL_STUB_CUPTI, "/nowhere/rings", NULL},
                {FL_STUB_CUPTI, NULL, "1"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_kernels *k = NULL;
        fl_sample s = {.gpu_count = 2};
        fresh_folder();
        setenv("FOLDLINE_CUPTI", ROWS[i].cupti, 1);
        setenv("FOLDLINE_RINGS", ROWS[i].rings ? ROWS[i].rings : folder, 1);
        if (ROWS[i].held)
            setenv("FOLDLINE_CUPTI_HELD", ROWS[i].held, 1);
        FL_CHECK(end_of(start_program(10, false)) == 0, "row %zu: the program fails", i);
        CU_ASSERT(!fl_kernels_open(&k, folder, NULL) && !fl_kernels_take(k, 0, &s, NULL) && s.record_count == 0);
        fl_kernels_close(k);
        unsetenv("FOLDLINE_CUPTI_HELD");
        clear_folder();
    }
    fl_temp_remove();
}

FL_SUITE("live_ring", {"a full ring drops and counts", test_full_ring_drops_and_counts}, {"kills", test_kills},
         {"collector and host", test_collector}, {"ended programs leave nothing", test_ended_programs_leave_nothing},
         {"a ring cut short", test_a_ring_cut_short}, {"a program in a container", test_a_container},
         {"another image of a program", test_next_image}, {"a program without end", test_a_program_without_end},
         {"a collector with nothing to do", test_collector_does_nothing})
