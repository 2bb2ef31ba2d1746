/* Rings of programs that mean harm: the host may be root, and they anybody's. Whatever stands in the folder, the host
 * neither ends nor hangs nor grows without end, and the honest program beside loses no record. FL_HOSTILE=2000 for more
 * trials, FL_SEED for others. */
#include "harness/live/collector/ring.h"
#include "harness/live/records/inside.h"
#include "harness/live/records/records.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/ring_fixture.h"

#include <grp.h>
#include <sys/resource.h>

enum { NOBODY = 65534, OTHERS = 256 /* rings of one user that are looked at */, LINES = 33 };

static uint64_t draw_state;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = draw_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int setting(const char *name, int standard) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : standard;
}

/* ---- what the host tells ----------------------------------------------------------------------------------------- */

static char lines[64][1200];
static int line_count;

static void keep_line(void *user, const char *line) {
    (void)user;
    if (line_count < 64)
        snprintf(lines[line_count], sizeof lines[0], "%.1100s", line);
    line_count++;
}

static bool told(const char *file, const char *why) {
    int found = 0;
    for (int i = 0; i < line_count && i < 64; i++)
        found += strstr(lines[i], file) && strstr(lines[i], why);
    return found == 1;
}

static fl_kernels *open_telling(void) {
    fl_kernels *k = open_folder();
    line_count = 0;
    fl_kernels_tell(k, keep_line, NULL);
    return k;
}

/* ---- an honest program beside ------------------------------------------------------------------------------------ */

static uint64_t put_honest(fl_ring *ring, int count) {
    for (int i = 0; i < count; i++)
        fl_ring_put(ring, &(fl_ring_record){.start_ns = 1000, .end_ns = 2000, .gpu = 1, .stream = 4242});
    return (uint64_t)count;
}

/* How many of its records came; everything that came is within bounds. */
static uint64_t take_all(fl_kernels *k, const char *when) {
    uint64_t honest = 0;
    fl_sample s = {.gpu_count = 2};
    fl_diag d = {0};
    FL_CHECK(!fl_kernels_take(k, 0, &s, &d), "%s: %s", when, d.message);
    for (size_t i = 0; i < s.record_count; i++) {
        const fl_kernel_record *r = &s.record[i];
        bool fine = r->gpu < 2 && r->kind < s.kind_count && r->start_ns >= 0;
        const char *name = fine ? s.kind[r->kind].name : "";
        for (size_t at = 0, size = strlen(name), n; fine && at < size; at += n)
            fine = (n = fl_utf8(name + at, size - at)) > 0;
        honest += r->stream == 4242;
        if (!fine) {
            FL_CHECK(false, "%s: record %zu of GPU %u, kind %u, from %lld", when, i, r->gpu, r->kind,
                     (long long)r->start_ns);
            break;
        }
    }
    return honest;
}

/* ---- random bytes ------------------------------------------------------------------------------------------------ */

/* Mostly what matters: the numbers of the head, those near their limits. */
static void spoil(uint8_t *at, size_t size) {
    static const size_t FIELDS[] = {
        offsetof(fl_ring_head, magic),      offsetof(fl_ring_head, pid),        offsetof(fl_ring_head, capacity),
        offsetof(fl_ring_head, names_size), offsetof(fl_ring_head, names_used), offsetof(fl_ring_head, ended),
        offsetof(fl_ring_head, stamp),      offsetof(fl_ring_head, write),      offsetof(fl_ring_head, read),
        offsetof(fl_ring_head, dropped),    offsetof(fl_ring_head, device)};
    static const uint64_t VALUES[] = {0,          1,          15,          16,        17,
                                      1024,       INT32_MAX,  UINT32_MAX,  INT64_MAX, UINT64_MAX,
                                      0xfffffff0, 0x80000000, 0xffff0000u, 63,        UINT64_C(1) << 40};
    for (uint64_t n = 1 + draw() % 4; n; n--) {
        const uint64_t value = draw() % 3 ? VALUES[draw() % (sizeof VALUES / sizeof *VALUES)] : draw();
        const size_t field = FIELDS[draw() % (sizeof FIELDS / sizeof *FIELDS)];
        if (draw() % 3)
            memcpy(at + field, &value, draw() % 2 ? 4 : 8);
        else
            at[draw() % size] = (uint8_t)draw();
    }
}

/* A ring with records and names; some of its records say what they like, with a checksum that fits. */
static void fill(fl_ring *ring) {
    uint32_t name[4];
    char text[64];
    for (int i = 0; i < 4; i++) {
        for (size_t c = 0; c + 1 < sizeof text; c++)
            text[c] = (char)(1 + draw() % 255);
        text[sizeof text - 1] = '\0';
        name[i] = fl_ring_name(ring, text);
    }
    for (int i = 0; i < 12; i++) {
        fl_ring_record r = {.start_ns = 1000, .end_ns = 2000, .gpu = (uint32_t)(draw() % 3), .name = name[draw() % 4]};
        if (draw() % 2)
            r.name = (uint32_t)draw();
        if (draw() % 4 == 0)
            r.start_ns = (int64_t)draw();
        if (draw() % 4 == 0)
            r.end_ns = (int64_t)draw();
        if (draw() % 4 == 0)
            r.gpu = (uint32_t)draw();
        fl_ring_put(ring, &r);
    }
}

/* Until it is killed: the file spoiled, cut, made longer. */
static void spoil_without_end(uint8_t *at, size_t size, int fd) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
        if (draw() % 64 == 0 && (ftruncate(fd, (off_t)(draw() % (2 * size))) || ftruncate(fd, (off_t)size)))
            _exit(1);
        for (int i = 0; i < 8; i++)
            spoil(at, size);
    }
}

static void one_trial(uint64_t seed) {
    fl_ring honest, bad;
    char when[64];
    uint64_t put = 0, taken = 0;
    pid_t pid = 0;
    draw_state = seed;
    snprintf(when, sizeof when, "seed %llu", (unsigned long long)seed);
    fresh_folder();
    CU_ASSERT(!new_ring(&honest, 64, 64) && !new_ring(&bad, 16, 512));
    bad.head->pid = getppid(); /* of a process of its own */
    fl_kernels *k = open_telling();
    fill(&bad);
    const uint64_t way = draw() % 4;
    put += put_honest(&honest, 3);
    if (draw() % 2) /* it is known, and good, before */
        taken += take_all(k, when);
    if (way == 1 && ftruncate(bad.fd, (off_t)(draw() % (2 * bad.size))))
        CU_FAIL("cannot be cut");
    if (way == 2 && !(pid = fork()))
        spoil_without_end((uint8_t *)bad.head, bad.size, bad.fd);
    if (way == 3 && !(pid = fork())) { /* nothing but noise, from the first byte on */
        for (size_t i = 0; i < bad.size; i++)
            ((uint8_t *)bad.head)[i] = (uint8_t)draw();
        pause();
    }
    for (int round = 0; round < 6; round++) {
        if (way == 0)
            spoil((uint8_t *)bad.head, bad.size);
        put += put_honest(&honest, 5);
        taken += take_all(k, when);
    }
    FL_CHECK(taken == put, "%s: %llu of %llu honest records", when, (unsigned long long)taken, (unsigned long long)put);
    FL_CHECK(line_count <= LINES, "%s: %d lines", when, line_count);
    if (pid) {
        kill(pid, SIGKILL);
        end_of(pid);
    }
    fl_ring_close(&bad);
    fl_ring_close(&honest);
    fl_kernels_close(k);
    clear_folder();
}

/* A writer that spoils its own ring under us would end by its own SIGBUS: it is a child, or nothing is cut. */
static void test_random_bytes(void) {
    const int trials = setting("FL_HOSTILE", 300), first = setting("FL_SEED", 1);
    printf("\n    seeds %d to %d ", first, first + trials - 1);
    for (int i = 0; i < trials; i++)
        one_trial((uint64_t)(first + i));
}

/* ---- files that are none ----------------------------------------------------------------------------------------- */

static const char *in_folder(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%.300s/%.250s", folder, name);
    return path;
}

static void make_file(const char *name, off_t size, mode_t mode, uid_t owner) {
    const int fd = open(in_folder(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, size) || fchmod(fd, mode) || fchown(fd, owner, (gid_t)-1))
        CU_FAIL("cannot be made");
    close(fd);
}

/* A whole ring under that name, its head changed. */
static void make_ring(const char *name, uint64_t magic, uint32_t capacity) {
    fl_ring ring;
    char path[400];
    CU_ASSERT(!new_ring(&ring, 16, 64) && ring_of(getpid(), path, sizeof path));
    ring.head->magic = magic;
    ring.head->capacity = capacity;
    fl_ring_close(&ring);
    CU_ASSERT(!rename(path, in_folder(name)));
}

/* Each is named once, with its reason, and never waited for; what a link points to stays as it was. */
static void test_no_rings(void) {
    const bool root = !geteuid();
    const uid_t other = root ? NOBODY : geteuid();
    fl_ring honest;
    fresh_folder();
    fl_temp_text("target", "precious");
    CU_ASSERT(!mkfifo(in_folder("fifo.ring"), 0600) && !mkdir(in_folder("folder.ring"), 0700));
    CU_ASSERT(!symlink(fl_temp_path("target"), in_folder("link.ring")));
    make_file("small.ring", 100, 0600, geteuid());
    make_file("large.ring", (off_t)1 << 40, 0600, geteuid());
    make_file("zeros.ring", 8192, 0600, geteuid());
    make_ring("linked.ring", FL_RING_MAGIC, 16);
    CU_ASSERT(!link(in_folder("linked.ring"), fl_temp_path("other name")));
    make_ring("old.ring", UINT64_C(0x32474e49524c46), 16);
    make_ring("odd.ring", FL_RING_MAGIC, 15);
    make_ring("short.ring", FL_RING_MAGIC, 1024); /* than that takes */
    make_ring("huge.ring", FL_RING_MAGIC, 1u << 31);
    make_ring("open.ring", FL_RING_MAGIC, 16);
    CU_ASSERT(!chmod(in_folder("open.ring"), 0666));
    make_ring("theirs.ring", FL_RING_MAGIC, 16);
    CU_ASSERT(!chown(in_folder("theirs.ring"), other, (gid_t)-1));
    make_file("na\033[2Jme\n.ring", 5000, 0600, geteuid());
    CU_ASSERT(!new_ring(&honest, 16, 64));
    fl_kernels *k = open_telling();
    for (int round = 0; round < 3; round++)
        CU_ASSERT(take_all(k, "no rings") == 0 && put_honest(&honest, 2) == 2 && take_all(k, "no rings") == 2);
    static const char *const FILES[][2] = {{"/fifo.ring", "no file of its own"},
                                           {"/folder.ring", "no file of its own"},
                                           {"/link.ring", "no file of its own"},
                                           {"/small.ring", "this size"},
                                           {"/large.ring", "this size"},
                                           {"/zeros.ring", "cannot be"},
                                           {"/linked.ring", "no file of its own"},
                                           {"/old.ring", "another version"},
                                           {"/odd.ring", "cannot be"},
                                           {"/huge.ring", "cannot be"},
                                           {"/open.ring", "may write to it"},
                                           {"/theirs.ring", "may write to it"},
                                           {"/na?[2Jme?.ring", "cannot be"},
                                           {"/short.ring", "cannot be"}};
    const size_t count = sizeof FILES / sizeof *FILES;
    for (size_t i = 0; i < count; i++)
        FL_CHECK(told(FILES[i][0], FILES[i][1]) || (!root && i == 11), "%s is not told, or not once", FILES[i][0]);
    const fl_kernels_counts c = fl_kernels_count(k);
    FL_CHECK(c.set_aside == count - !root && (size_t)line_count == c.set_aside, "%llu set aside, %d lines",
             (unsigned long long)c.set_aside, line_count);
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path("target"), &size);
    CU_ASSERT(text && size == 8 && !memcmp(text, "precious", 8));
    free(text);
    fl_ring_close(&honest);
    fl_kernels_close(k);
    rmdir(in_folder("folder.ring"));
    clear_folder();
}

/* ---- what a ring may not make the host do ------------------------------------------------------------------------ */

/* Where the host reads is its own: the file's copy is for the writer only. */
static void test_indices(void) {
    fl_ring ring, runaway, lost;
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, 64, 64) && !new_ring(&runaway, 64, 64) && !new_ring(&lost, 64, 64));
    runaway.head->pid = getppid(); /* of processes of their own */
    lost.head->pid = 1;
    fl_kernels *k = open_telling();
    CU_ASSERT(put_honest(&ring, 10) == 10 && take_all(k, "indices") == 10);
    for (int i = 0; i < 5; i++) {
        atomic_store(&ring.head->read, 0);
        ring.head->capacity = 1u << 31;
        CU_ASSERT(take_all(k, "read again") == 0);
    }
    CU_ASSERT(put_honest(&ring, 10) == 10 && take_all(k, "indices") == 10);
    atomic_store(&runaway.head->write, UINT64_MAX);
    atomic_store(&lost.head->dropped, UINT64_C(1) << 60);
    for (int i = 0; i < 5; i++)
        CU_ASSERT(take_all(k, "runs away") == 0);
    CU_ASSERT(told(runaway.file, "its indices cannot be") && told(lost.file, "lost records cannot be"));
    const fl_kernels_counts c = fl_kernels_count(k);
    FL_CHECK(c.set_aside == 2 && c.running == 1 && c.lost == 0, "%llu set aside, %llu lost",
             (unsigned long long)c.set_aside, (unsigned long long)c.lost);
    fl_ring_close(&ring);
    fl_ring_close(&runaway);
    fl_ring_close(&lost);
    fl_kernels_close(k);
    clear_folder();
}

/* Times that no clock shows are damage, and never summed. */
static void test_times(void) {
    static const int64_t TIMES[][2] = {{INT64_MIN, 5}, {-5, 5}, {INT64_MAX, INT64_MAX}, {5, INT64_MAX}, {2000, 3000}};
    fl_ring ring;
    fl_sample s = {.gpu_count = 1};
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, 64, 64));
    fl_kernels *k = open_telling();
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++)
        fl_ring_put(&ring, &(fl_ring_record){.start_ns = TIMES[i][0], .end_ns = TIMES[i][1]});
    CU_ASSERT(!fl_kernels_take(k, 1000, &s, NULL) && s.record_count == 1 && s.record[0].start_ns == 1000);
    FL_CHECK(fl_kernels_count(k).damaged == 4, "%llu damaged", (unsigned long long)fl_kernels_count(k).damaged);
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* A full ring of long names comes in pieces, and none of it is lost, also when its program has ended. */
static void test_one_call_takes_its_share(void) {
    enum { RECORDS = 1 << 16 };
    fl_ring ring;
    char text[1001];
    int calls = 0;
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, RECORDS, 4096));
    memset(text, 'x', 1000);
    text[1000] = '\0';
    const uint32_t name = fl_ring_name(&ring, text);
    for (int i = 0; i < RECORDS; i++)
        fl_ring_put(&ring, &(fl_ring_record){.start_ns = 1, .end_ns = 2, .name = name, .stream = 4242});
    fl_ring_end(&ring);
    fl_kernels *k = open_telling();
    for (uint64_t taken = 0, n; taken < RECORDS && calls < 100; taken += n, calls++) {
        n = take_all(k, "a share");
        FL_CHECK(n > 0 && n <= (1 << 19) / 16 + 1024, "call %d: %llu records", calls, (unsigned long long)n);
    }
    char path[400];
    FL_CHECK(calls >= 2 && calls < 100 && fl_kernels_count(k).running == 0 && !ring_of(getpid(), path, sizeof path),
             "%d calls", calls);
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* Beyond so many of one program, further kinds are one. */
static void test_kinds_are_bounded(void) {
    enum { KINDS = 20000, KEPT = 16384 };
    fl_ring ring;
    fl_sample s = {.gpu_count = 1};
    uint64_t other = 0;
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, 1 << 16, 64));
    fl_kernels *k = open_telling();
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < KINDS; i++) {
            fl_ring_record r = {.start_ns = 1, .end_ns = 2};
            r.grid[0] = i + 1;
            fl_ring_put(&ring, &r);
        }
        CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL) && s.record_count == KINDS);
        FL_CHECK(s.kind_count == KEPT + 1, "%u kinds", s.kind_count);
        for (size_t i = 0; i < s.record_count; i++)
            other += !strcmp(s.kind[s.record[i].kind].name, "(further kinds)");
    }
    FL_CHECK(other == 2 * (KINDS - KEPT) && fl_kernels_count(k).unkept_kinds == other, "%llu of a further kind",
             (unsigned long long)other);
    CU_ASSERT(line_count == 1 && told(ring.file, "more kernel classes"));
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* Rings take half of the files that the host may open, so that there are some for its libraries. None is set aside for
 * want of files, and those that wait come when others end. */
static void test_few_files(void) {
    enum { RINGS = 60, FILES = 64 };
    static fl_ring ring[RINGS];
    struct rlimit before, few;
    fresh_folder();
    for (int i = 0; i < RINGS; i++) {
        CU_ASSERT(!new_ring(&ring[i], 16, 64));
        ring[i].head->pid = getppid(); /* which lives, */
        ring[i].head->stamp = 1;       /* and none is a later image of it */
        close(ring[i].fd);             /* its mapping is enough for a writer */
        ring[i].fd = -1;
        put_honest(&ring[i], 1);
    }
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){.rlim_cur = FILES, .rlim_max = before.rlim_max};
    CU_ASSERT(!setrlimit(RLIMIT_NOFILE, &few));
    fl_kernels *k = open_telling();
    uint64_t taken = 0;
    for (int i = 0; i < 5; i++)
        taken += take_all(k, "few files");
    FL_CHECK(taken == FILES / 2 && fl_kernels_count(k).running == FILES / 2, "%llu records, %llu running",
             (unsigned long long)taken, (unsigned long long)fl_kernels_count(k).running);
    for (int i = 0; i < RINGS; i++)
        fl_ring_end(&ring[i]);
    for (int i = 0; i < 5; i++)
        taken += take_all(k, "few files");
    FL_CHECK(taken == RINGS && !fl_kernels_count(k).set_aside && line_count == 1, "%llu records, %d lines",
             (unsigned long long)taken, line_count);
    CU_ASSERT(!setrlimit(RLIMIT_NOFILE, &before));
    for (int i = 0; i < RINGS; i++)
        munmap(ring[i].head, ring[i].size);
    fl_kernels_close(k);
    clear_folder();
}

/* So many rings of that user, each with a record, whose program lives. */
static void rings_of(uid_t owner, fl_ring *ring, int count) {
    for (int i = 0; i < count; i++) {
        CU_ASSERT(!new_ring(&ring[i], 16, 64));
        CU_ASSERT(!fchown(ring[i].fd, owner, (gid_t)-1));
        ring[i].head->pid = getppid();
        ring[i].head->stamp = 1;
        close(ring[i].fd);
        ring[i].fd = -1;
        put_honest(&ring[i], 1);
    }
}

/* One user has half of the places, all others three quarters: there is room for a third, and for the host's own. */
static void test_rings_are_shared(void) {
    enum { RINGS = 40, FILES = 64, PLACES = FILES / 2 };
    static fl_ring ring[3][RINGS];
    struct rlimit before, few;
    const uid_t user[] = {NOBODY, NOBODY - 1, geteuid()};
    const uint64_t expected[] = {PLACES / 2, PLACES / 4, PLACES / 4};
    if (geteuid()) {
        printf("\n    skipped: takes root");
        return;
    }
    fresh_folder();
    CU_ASSERT(!chmod(folder, 01777) && !getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){.rlim_cur = FILES, .rlim_max = before.rlim_max};
    CU_ASSERT(!setrlimit(RLIMIT_NOFILE, &few));
    fl_kernels *k = open_telling();
    CU_ASSERT(!setrlimit(RLIMIT_NOFILE, &before));
    for (int u = 0; u < 3; u++) {
        uint64_t taken = 0;
        rings_of(user[u], ring[u], RINGS);
        for (int i = 0; i < 5; i++)
            taken += take_all(k, "shared");
        FL_CHECK(taken == expected[u], "user %u: %llu of %llu rings", (unsigned)user[u], (unsigned long long)taken,
                 (unsigned long long)expected[u]);
    }
    for (int i = 0; i < 3 * RINGS; i++)
        munmap(ring[i / RINGS][i % RINGS].head, ring[i / RINGS][i % RINGS].size);
    fl_kernels_close(k);
    clear_folder();
}

/* A folder that only its owner writes to: the owner's programs are believed, whoever the host is. */
static void test_folder_of_its_user(void) {
    fl_ring ring, other;
    if (geteuid()) {
        printf("\n    skipped: takes root");
        return;
    }
    fresh_folder();
    rings_of(NOBODY, &ring, 1);
    rings_of(NOBODY - 1, &other, 1);
    CU_ASSERT(!chown(folder, NOBODY, (gid_t)-1));
    fl_kernels *k = open_telling();
    CU_ASSERT(take_all(k, "its user's") == 1 && line_count == 1 && told(other.file, "may write to it"));
    munmap(ring.head, ring.size);
    munmap(other.head, other.size);
    fl_kernels_close(k);
    clear_folder();
}

/* Another user's ring says that it is a later image of our program: ours goes on. */
static void test_false_image(void) {
    fl_ring ring, other;
    if (geteuid()) {
        printf("\n    skipped: takes root");
        return;
    }
    fresh_folder();
    CU_ASSERT(!chmod(folder, 01777) && !new_ring(&ring, 16, 64) && !new_ring(&other, 16, 64));
    CU_ASSERT(!fchown(other.fd, NOBODY, (gid_t)-1) && other.head->stamp > ring.head->stamp);
    fl_kernels *k = open_telling();
    CU_ASSERT(take_all(k, "false image") == 0 && put_honest(&ring, 3) == 3 && take_all(k, "false image") == 3);
    FL_CHECK(fl_kernels_count(k).running == 2, "%llu running", (unsigned long long)fl_kernels_count(k).running);
    fl_ring_close(&ring);
    fl_ring_close(&other);
    fl_kernels_close(k);
    clear_folder();
}

/* A host after another goes on where that one ended, also where the ring has gone round meanwhile. */
static void test_second_host(void) {
    fl_ring ring;
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, 16, 64));
    for (int host = 0; host < 3; host++) {
        fl_kernels *k = open_telling();
        for (int i = 0; i < 3; i++)
            CU_ASSERT(put_honest(&ring, 10) == 10 && take_all(k, "second host") == 10);
        CU_ASSERT(!fl_kernels_count(k).set_aside);
        fl_kernels_close(k);
    }
    fl_ring_close(&ring);
    clear_folder();
}

/* Not for good where it is the host that has no more files: it is looked at again. */
static void test_no_more_files(void) {
    struct rlimit before, none;
    fl_ring ring;
    fresh_folder();
    CU_ASSERT(!new_ring(&ring, 16, 64));
    fl_kernels *k = open_telling();
    const int next = dup(0);
    close(next);
    CU_ASSERT(!getrlimit(RLIMIT_NOFILE, &before));
    none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    CU_ASSERT(put_honest(&ring, 1) == 1 && !setrlimit(RLIMIT_NOFILE, &none));
    CU_ASSERT(take_all(k, "no more files") == 0 && !fl_kernels_count(k).set_aside);
    CU_ASSERT(!setrlimit(RLIMIT_NOFILE, &before) && take_all(k, "files again") == 1);
    fl_ring_close(&ring);
    fl_kernels_close(k);
    clear_folder();
}

/* What was set aside is known by its file, not by its name alone; more than there is room to remember is no harm. */
static void test_set_aside(void) {
    fl_ring_file file;
    fl_ring_folder *f = NULL;
    char path[600];
    fresh_folder();
    make_file("one.ring", 5000, 0600, geteuid());
    fl_kernels *k = open_telling();
    CU_ASSERT(take_all(k, "set aside") == 0 && fl_kernels_count(k).set_aside == 1);
    make_ring("two.ring", FL_RING_MAGIC, 16);
    snprintf(path, sizeof path, "%s", in_folder("two.ring"));
    CU_ASSERT(!rename(path, in_folder("one.ring")));
    CU_ASSERT(take_all(k, "another file") == 0 && fl_kernels_count(k).programs == 1);
    fl_kernels_close(k);
    CU_ASSERT(!fl_ring_folder_open(&f, folder, NULL));
    for (unsigned i = 0; i < 200000; i++) {
        file.inode = i;
        snprintf(file.name, sizeof file.name, "%u.ring", i);
        fl_ring_folder_set_aside(f, &file, "of the test");
    }
    fl_ring_folder_begin(f);
    CU_ASSERT(fl_ring_folder_next(f, &file) && !strcmp(file.name, "one.ring"));
    fl_ring_folder_close(f);
    clear_folder();
}

/* Where a program puts its ring together, others may have left files of theirs, links among them, under any name that
 * it could be known to take: it writes into none. */
static void test_files_that_wait(void) {
    char name[64], text[16] = "";
    struct stat st;
    fl_ring ring;
    fresh_folder();
    snprintf(name, sizeof name, ".%d.new", (int)getpid());
    fl_temp_text("target", "precious");
    CU_ASSERT(!link(fl_temp_path("target"), in_folder(name)));
    CU_ASSERT(!new_ring(&ring, 16, 64) && !fstat(ring.fd, &st) && st.st_nlink == 1);
    const int fd = open(fl_temp_path("target"), O_RDONLY | O_CLOEXEC);
    CU_ASSERT(read(fd, text, sizeof text) == 8 && !memcmp(text, "precious", 8));
    close(fd);
    fl_ring_close(&ring);
    clear_folder();
}

/* ---- another user, the host root --------------------------------------------------------------------------------- */

/* In a folder that all may write to: more rings than are looked at, each full; files that hold an open up or cannot be
 * opened; one that is cut again and again. Until it is killed. */
static void be_another_user(_Atomic int *ready) {
    static fl_ring ring[OTHERS + 50];
    char name[64];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(folder) || setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
        _exit(9);
    for (int i = 0; i < OTHERS + 50; i++) {
        if (fl_ring_create(&ring[i], ".", 16, 64))
            _exit(8);
        for (int r = 0; r < 16; r++)
            fl_ring_put(&ring[i], &(fl_ring_record){.start_ns = 1, .end_ns = 2});
    }
    for (int i = 0; i < 1500; i++) {
        snprintf(name, sizeof name, "0-junk-%d.ring", i);
        if (i % 3 == 0 ? mkfifo(name, 0600) : i % 3 == 1 ? symlink("/etc/passwd", name) : close(creat(name, 0600)))
            _exit(7);
    }
    if (link(ring[0].file, "0-two-names.ring"))
        _exit(6);
    const int leased = open(ring[1].file, O_RDONLY | O_CLOEXEC);
    fcntl(leased, F_SETLEASE, F_RDLCK); /* an open that waited would wait for 45 s */
    *ready = 1;
    for (int i = 0;; i = (i + 1) % OTHERS) {
        if (ftruncate(ring[i].fd, i % 2 ? 0 : 1 << 20) && errno != EINVAL)
            _exit(5);
        wait_us(100);
    }
}

/* The host is as quick and as whole as alone: what its own user's program writes comes, every time. */
static void test_another_user(void) {
    if (geteuid()) {
        printf("\n    skipped: takes root");
        return;
    }
    _Atomic int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fl_ring honest;
    fresh_folder();
    CU_ASSERT(!chmod(folder, 01777));
    pid_t pid = fork();
    if (!pid)
        be_another_user((_Atomic int *)ready);
    int status = 0;
    while (!*ready && !waitpid(pid, &status, WNOHANG))
        wait_us(1000);
    FL_CHECK(*ready, "the other user's program ended: %d", WEXITSTATUS(status));
    fl_kernels *k = open_telling();
    CU_ASSERT(!new_ring(&honest, 64, 64));
    uint64_t put = 0, taken = 0;
    int rounds = 1;
    taken += take_all(k, "another user");
    /* a ring that the other one cuts while it is read is a program, and set aside too: one file that was opened */
    const uint64_t opened = fl_kernels_count(k).running + fl_kernels_count(k).set_aside;
    FL_CHECK(opened > 0 && opened <= 64, "one look opened %llu files", (unsigned long long)opened);
    for (; taken == 0 && rounds < 200; rounds++) { /* a look goes through the folder in pieces */
        put += rounds < 5 ? put_honest(&honest, 5) : 0;
        taken += take_all(k, "another user");
    }
    for (int i = 0; i < 50; i++) {
        put += put_honest(&honest, 5);
        taken += take_all(k, "another user");
    }
    const fl_kernels_counts c = fl_kernels_count(k);
    FL_CHECK(taken == put, "%llu of %llu records", (unsigned long long)taken, (unsigned long long)put);
    FL_CHECK(c.running >= 1 && c.running <= OTHERS + 1 && c.set_aside > 1500 && c.set_aside <= 1500 + OTHERS + 51,
             "%llu running, %llu set aside", (unsigned long long)c.running, (unsigned long long)c.set_aside);
    FL_CHECK(line_count <= LINES, "%d lines", line_count);
    printf("\n    %llu set aside, %d looks until the honest ring was found ", (unsigned long long)c.set_aside, rounds);
    kill(pid, SIGKILL);
    end_of(pid);
    /* A folder that others write to but do not keep apart (no sticky bit) trusts its owner only. */
    CU_ASSERT(!chmod(folder, 0777));
    fl_kernels *again = open_telling();
    for (int i = 0; i < 40; i++)
        CU_ASSERT(!take_all(again, "not kept apart"));
    FL_CHECK(fl_kernels_count(again).programs == 1, "%llu programs",
             (unsigned long long)fl_kernels_count(again).programs);
    fl_kernels_close(again);
    fl_ring_close(&honest);
    fl_kernels_close(k);
    clear_folder();
    munmap((void *)(uintptr_t)ready, 4096);
    fl_temp_remove();
}

FL_SUITE("live_hostile", {"random bytes", test_random_bytes}, {"files that are no rings", test_no_rings},
         {"indices", test_indices}, {"times", test_times}, {"one call takes its share", test_one_call_takes_its_share},
         {"kinds are bounded", test_kinds_are_bounded}, {"few files", test_few_files},
         {"rings are shared", test_rings_are_shared}, {"a folder of its user", test_folder_of_its_user},
         {"files that wait", test_files_that_wait}, {"a false image", test_false_image},
         {"a second host", test_second_host}, {"no more files", test_no_more_files}, {"set aside", test_set_aside},
         {"another user", test_another_user})
