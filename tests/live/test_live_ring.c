/* Kernel records: no record lost without being counted, none damaged, whatever kills the program. FL_KILLS=1000 for
 * more kills. */
#include "tests/support/ring_fixture.h"

/* The name says which record it is: a mixture of two would show. */
static fl_ring_record made(uint64_t i) {
    return (fl_ring_record){.start_ns = (int64_t)i, .end_ns = (int64_t)i + 7, .grid = {(uint32_t)(i * 3), 1, 1}};
}

static bool sound(const fl_ring_record *r) {
    return r->start_ns == (int64_t)r->number && r->end_ns == r->start_ns + 7 && r->grid[0] == (uint32_t)(r->number * 3);
}

/* ---- the ring itself --------------------------------------------------------------------------------------------- */

static void test_full_ring_drops_and_counts(void) {
    fl_ring writer, reader;
    fl_ring_record out[16];
    uint64_t bad = 0;
    size_t n = 0;
    char path[400], name[FL_RING_NAME_MAX];
    fresh_folder();
    CU_ASSERT(fl_ring_create(&writer, folder, 8, 64) == 0);
    CU_ASSERT(ring_of(getpid(), path, sizeof path));
    CU_ASSERT(open_ring(&reader, path) == 0);
    for (uint64_t i = 0; i < 11; i++) {
        fl_ring_record r = made(i);
        FL_CHECK(fl_ring_put(&writer, &r) == (i < 8), "record %llu", (unsigned long long)i);
    }
    CU_ASSERT(fl_ring_take(&reader, out, 16, &n, &bad) && n == 8 && !bad && out[7].number == 7);
    fl_ring_record r = made(11);
    CU_ASSERT(fl_ring_put(&writer, &r));
    CU_ASSERT(fl_ring_take(&reader, out, 16, &n, &bad) && n == 1 && out[0].number == 11 &&
              sound(&out[0])); /* 8 to 10 lost */
    CU_ASSERT(atomic_load(&reader.head->dropped) == 3);
    uint32_t at = fl_ring_name(&writer, "kernel");
    fl_ring_copy_name(&reader, at, name);
    CU_ASSERT_STRING_EQUAL(name, "kernel");
    for (uint32_t none = 0; none <= 60; none += 60) {
        fl_ring_copy_name(&reader, none, name);
        CU_ASSERT_STRING_EQUAL(name, "");
    }
    CU_ASSERT(fl_ring_name(&writer, "a name that is longer than all the room that is left for names here") == 0);
    for (uint64_t i = 12; i < 14; i++) { /* damaged after they were published */
        r = made(i);
        fl_ring_put(&writer, &r);
        writer.record[(atomic_load(&writer.head->write) - 1) & 7].end_ns ^= 64;
    }
    CU_ASSERT(fl_ring_take(&reader, out, 16, &n, &bad) && n == 0 && bad == 2);
    fl_ring_close(&writer);
    fl_ring_close(&reader);
    CU_ASSERT(truncate(path, 5000) == 0 && open_ring(&reader, path) == FL_RING_NO_RING);
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
        while (!ring_of(pid, path, sizeof path) || open_ring(&ring, path))
            wait_us(100);
        const double end = now_s() + rand() % 10000 * 1e-6;
        bool killed = false;
        for (size_t n = 1; n || !killed;) {
            if (!killed && now_s() > end) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                killed = true;
            }
            bad += !fl_ring_take(&ring, out, 4096, &n, &bad);
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

/* ---- programs that are not to be trusted, or not known ------------------------------------------------------------
 */

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
    if (new_ring(&ring, SMALL, 64))
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
        if (new_ring(ring, SMALL, 64))
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
    fresh_folder();
    fl_kernels *k = open_folder();
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

/* ---- which GPU --------------------------------------------------------------------------------------------------- */

/* Where the kernels of a program's first four GPUs are put, which are these of the machine's ('-': none of the host's,
 * '?': the program does not tell). */
static void told(const char *program, const char *expected) {
    char got[5] = "----";
    fl_ring ring;
    fl_sample s = {.gpu_count = 4};
    fresh_folder();
    CU_ASSERT(!fl_ring_create(&ring, folder, 16, 64));
    fl_kernels *k = open_folder();
    for (uint32_t i = 0; program[i]; i++)
        if (program[i] != '?')
            tell_gpu(&ring, i, (uint8_t)(program[i] - '0'));
    for (uint32_t i = 0; i < 4; i++)
        fl_ring_put(&ring, &(fl_ring_record){.start_ns = i + 1, .end_ns = i + 2, .gpu = i});
    fl_ring_put(&ring, &(fl_ring_record){.start_ns = 1, .end_ns = 2, .gpu = FL_RING_DEVICES});
    fl_ring_put(&ring, &(fl_ring_record){.start_ns = 1, .end_ns = 2, .gpu = UINT32_MAX});
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
    for (size_t i = 0; i < s.record_count; i++)
        got[s.record[i].start_ns - 1] = (char)('0' + s.record[i].gpu);
    FL_CHECK(!strcmp(got, expected), "'%s': %s, expected %s", program, got, expected);
    FL_CHECK(s.record_count + fl_kernels_count(k).elsewhere == 6, "'%s': counts", program);
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* By UUID, in any order; one that is not told or not watched is nobody's, whatever its number. */
static void test_which_gpu(void) {
    told("0123", "0123");
    told("3210", "3210");
    told("2", "2---");
    told("7123", "-123");
    told("?1?0", "-1-0");
    told("", "----");
}

/* A UUID that is told after the first records counts from then on; one that stands does not change. */
static void test_told_late(void) {
    fl_ring ring;
    fl_sample s = {.gpu_count = 2};
    fresh_folder();
    CU_ASSERT(!fl_ring_create(&ring, folder, 16, 64));
    fl_kernels *k = open_folder();
    for (int round = 0; round < 3; round++) {
        if (round)
            tell_gpu(&ring, 0, round == 1);
        fl_ring_put(&ring, &(fl_ring_record){.start_ns = 1, .end_ns = 2});
        CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL) && s.record_count == (round > 0));
        FL_CHECK(!round || s.record[0].gpu == 1, "round %d: GPU %u", round, s.record[0].gpu);
    }
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* ---- how many --------------------------------------------------------------------------------------------------- */

static void finished(const fl_kernels *k, const char *when, bool known, uint64_t first, uint64_t second) {
    uint64_t count[2] = {0};
    const bool told = fl_kernels_finished(k, 0, &count[0]);
    CU_ASSERT(fl_kernels_finished(k, 1, &count[1]) == told);
    FL_CHECK(told == known && count[0] == first && count[1] == second, "%s: %s, %llu and %llu", when,
             told ? "known" : "not known", (unsigned long long)count[0], (unsigned long long)count[1]);
}

/* Unknown until a program has a collector; lost ones are of the GPU that the program last used. */
static void test_finished(void) {
    fl_ring ring;
    uint64_t none;
    fl_sample s = {.gpu_count = 2};
    fresh_folder();
    fl_kernels *k = open_folder();
    CU_ASSERT(!fl_kernels_take(k, 100, &s, NULL));
    finished(k, "without a program", false, 0, 0);
    CU_ASSERT(!new_ring(&ring, 4, 64) && !fl_kernels_take(k, 100, &s, NULL));
    finished(k, "with one", true, 0, 0);
    static const fl_ring_record FIRST[] = {{.start_ns = 50, .end_ns = 60}, /* before the host began */
                                           {.start_ns = 50, .end_ns = 160},
                                           {.start_ns = 170, .end_ns = 180, .gpu = 1},
                                           {.start_ns = 170, .end_ns = -1, .gpu = 1}};
    for (size_t i = 0; i < 4; i++) {
        fl_ring_record r = FIRST[i];
        fl_ring_put(&ring, &r);
    }
    CU_ASSERT(!fl_kernels_take(k, 100, &s, NULL));
    finished(k, "four kernels", true, 1, 1);
    for (uint32_t i = 0; i < 7; i++) /* three find no room */
        fl_ring_put(&ring, &(fl_ring_record){.start_ns = 200, .end_ns = 210, .gpu = i < 2});
    CU_ASSERT(!fl_kernels_take(k, 100, &s, NULL) && s.record_lost == 3);
    finished(k, "seven more, three of them lost", true, 1 + 2 + 3, 1 + 2);
    for (uint32_t i = 0; i < 4; i++)
        fl_ring_put(&ring, &(fl_ring_record){.start_ns = 300, .end_ns = 310, .gpu = 2});
    CU_ASSERT(!fl_kernels_take(k, 100, &s, NULL));
    finished(k, "on another GPU", true, 6, 3);
    CU_ASSERT(!fl_kernels_finished(k, 2, &none));
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* ---- many kinds of kernels --------------------------------------------------------------------------------------- */

/* CPU time of taking 100,000 records of so many kinds: names of 200 letters that differ at their end, grids of their
 * own.
 */
static double take_s(uint32_t kinds) {
    enum { NAMES = 200, ROUNDS = 2, RECORDS = 50000 };
    fl_ring ring;
    uint32_t name[NAMES], seed = 1;
    double lasted = 0;
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, 1 << 16, 1 << 20));
    fl_kernels *k = open_folder();
    for (int i = 0; i < NAMES; i++) {
        char text[256];
        snprintf(text, sizeof text, "%0200d", i);
        name[i] = fl_ring_name(&ring, text);
    }
    for (int round = 0; round < ROUNDS; round++) {
        fl_sample s = {.gpu_count = 1};
        for (uint32_t i = 0; i < RECORDS; i++) {
            const uint32_t kind = (seed = seed * 1664525 + 1013904223) % kinds;
            fl_ring_record r = {.start_ns = i + 1, .end_ns = i + 2, .name = name[kind % NAMES]};
            r.grid[0] = kind / NAMES + 1;
            fl_ring_put(&ring, &r);
        }
        const clock_t before = clock();
        CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL) && s.record_count == RECORDS);
        lasted += (double)(clock() - before) / CLOCKS_PER_SEC;
        FL_CHECK(round < ROUNDS - 1 || s.kind_count == kinds, "%u of %u kinds", s.kind_count, kinds);
        for (uint32_t i = 0; i < 1000; i++) {
            const fl_kernel_kind *kind = &s.kind[s.record[i].kind];
            FL_CHECK(strlen(kind->name) == 200 && kind->name_id < (kinds < NAMES ? kinds : NAMES), "%s, name %u",
                     kind->name, kind->name_id);
        }
    }
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
    return lasted;
}

/* A record costs about the same however many kinds there are: a host that slows down with them misses its time. */
static void test_many_kinds(void) {
    const double few = take_s(10), many = take_s(10000);
    FL_CHECK(many < 10 * few + 0.5, "%.3g s for 10 kinds, %.3g s for 10000", few, many);
    fl_temp_remove();
}

FL_SUITE("live_ring", {"a full ring drops and counts", test_full_ring_drops_and_counts}, {"kills", test_kills},
         {"a ring cut short", test_a_ring_cut_short}, {"a program in a container", test_a_container},
         {"another image of a program", test_next_image}, {"a program without end", test_a_program_without_end},
         {"which GPU", test_which_gpu}, {"told late", test_told_late}, {"finished kernels", test_finished},
         {"many kinds", test_many_kinds})
