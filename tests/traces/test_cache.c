/* The binary cache of kernel traces: what goes in comes out, and only for the source it was made from. */
#include "tests/support/same_trace.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/inside.h"
#include "traces/open/open.h"

#include <fcntl.h>
#include <sys/stat.h>

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)(next(state) % n); }

/* A trace with every field at its extremes now and then. */
static void make_trace(fl_kernel_trace *t, uint64_t seed, size_t count) {
    static const char *const NAME[] = {"f", "void g<int>(\"x\")", "[sync]", "[CUDA memcpy, DtoH]", "\303\251"};
    uint64_t s = seed;
    *t = (fl_kernel_trace){0};
    fl_head_set(&t->head, "device", "a chip");
    fl_head_set(&t->head, "empty", "");
    int64_t at[4] = {0};
    bool rich = seed % 3 > 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t lane = below(&s, 4), name = below(&s, 5);
        uint32_t size[3] = {below(&s, 3), 1, below(&s, 50) ? 1 : UINT32_MAX};
        fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
        op.kind = fl_trace_add_kind(t, NAME[name], size, size);
        op.type = (uint8_t)fl_op_type_of(NAME[name]);
        op.device = lane & 1 ? INT32_MAX : 0;
        op.stream = lane & 2 ? INT32_MAX : 7;
        op.process = rich ? (int32_t)lane : 0;
        op.start_ns = at[lane] + (int64_t)(below(&s, 9) ? below(&s, 5000) : next(&s) >> (rich ? 16 : 34));
        op.end_ns = op.start_ns + (int64_t)below(&s, 1000000);
        at[lane] = op.end_ns;
        if (rich && below(&s, 2)) {
            op.launch_ns = below(&s, 4) ? op.start_ns - (int64_t)below(&s, 1u << 20) : below(&s, 2) ? 0 : op.start_ns;
            op.launch_ns = op.launch_ns < 0 ? 0 : op.launch_ns;
            op.host_thread = below(&s, 9) ? (int32_t)below(&s, 1000) : INT32_MAX;
            op.bytes = below(&s, 9) ? (int64_t)(next(&s) >> 1 >> below(&s, 63)) : INT64_MAX;
            op.sm_mhz = (uint16_t)below(&s, 65536);
        }
        if (rich && i && !below(&s, 4)) {
            op.waits_first = (uint32_t)t->wait_count;
            op.waits_count = (uint16_t)(1 + below(&s, 3));
            for (int k = 0; k < op.waits_count; k++)
                if (fl_grow(&t->waits, &t->wait_room, t->wait_count + 1, sizeof *t->waits) == FL_OK)
                    t->waits[t->wait_count++] = below(&s, (uint32_t)i);
        }
        fl_trace_add_op(t, &op);
    }
}

static bool same(const fl_imported *m, const fl_imported *n) {
    if (m->has_kernels != n->has_kernels || m->has_telemetry != n->has_telemetry || m->note_count != n->note_count ||
        m->doubt_count != n->doubt_count)
        return false;
    for (size_t i = 0; i < m->note_count; i++)
        if (strcmp(m->note[i], n->note[i]) != 0)
            return false;
    return fl_same_trace(&m->kernels, &n->kernels);
}

static char source[512], cache[600];

static void paths(const char *name) {
    snprintf(source, sizeof source, "%s", fl_temp_path(name));
    snprintf(cache, sizeof cache, "%s%s", source, FL_CACHE_SUFFIX);
    unlink(cache);
}

/* ---- what goes in comes out ---- */

static void test_round_trip(void) {
    static const size_t COUNT[] = {1, 2, 255, 256, 257, 1000};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        fl_imported a = {.has_kernels = true}, b;
        fl_cache_key key;
        fl_diag d = {0};
        make_trace(&a.kernels, seed, seed == 50 ? 2 * FL_CACHE_PART + 1 : COUNT[seed % 6]); /* once in several parts */
        fl_import_note(&a, &d, "note %d", (int)seed);
        paths("source");
        fl_temp_write("source", &seed, sizeof seed);
        FL_CHECK(fl_cache_key_make(source, "kineto", NULL, &key) && fl_cache_save(cache, &key, &a, 0644),
                 "seed %d: save", (int)seed);
        bool loaded = fl_cache_load(cache, source, "kineto", NULL, &b);
        FL_CHECK(loaded && same(&a, &b), "seed %d: %d", (int)seed, loaded);
        fl_imported_free(&a);
        fl_imported_free(&b);
    }
}

static void write_big(const char *path, uint64_t seed) {
    fl_diag d = {0};
    fl_kernel_trace t = {0};
    static const uint32_t ONE[3] = {4, 1, 1};
    uint64_t s = seed;
    int64_t now = 1000000000;
    for (size_t i = 0; i < 120000; i++) {
        char name[40];
        snprintf(name, sizeof name, "kernel<%u>", below(&s, 20));
        fl_trace_op op = {.launch_ns = now - 100, .bytes = -1, .host_thread = 5, .start_ns = now, .end_ns = now + 5000};
        op.kind = fl_trace_add_kind(&t, name, ONE, ONE);
        now += 5000 + below(&s, 999);
        fl_trace_add_op(&t, &op);
    }
    FL_CHECK(fl_kernels_write(path, &t, &d) == FL_OK, "%s", d.message);
    fl_kernel_trace_free(&t);
}

static ino_t inode(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? s.st_ino : 0;
}

static fl_status reopen(fl_imported *x) {
    fl_diag d = {0};
    fl_status s = fl_trace_open(source, NULL, NULL, x, &d);
    FL_CHECK(s == FL_OK, "%s", d.message);
    return s;
}

static void test_opening(void) {
    fl_imported a, b, c;
    fl_diag d = {0};
    fl_kernel_trace plain;
    paths("big.csv");
    write_big(source, 1);
    FL_CHECK(fl_kernels_read(source, &plain, NULL, &d) == FL_OK && plain.op_count == 120000, "%s", d.message);
    reopen(&a);
    ino_t first = inode(cache);
    FL_CHECK(first && fl_same_ops(&plain, &a.kernels), "a cache is written");
    reopen(&b);
    FL_CHECK(same(&a, &b) && inode(cache) == first, "and is used, not written again");
    fl_imported direct;
    FL_CHECK(fl_cache_load(cache, source, "foldline-kernels", &(fl_import_options){.device = -1}, &direct) &&
                 same(&a, &direct),
             "it is that of the source");
    fl_imported_free(&direct);

    /* Other bytes of the same length and date. */
    struct stat s;
    stat(source, &s);
    int fd = open(source, O_RDWR);
    char byte = 0;
    off_t at = s.st_size - 4;
    FL_CHECK(pread(fd, &byte, 1, at) == 1, "read");
    byte = byte == '1' ? '2' : '1';
    FL_CHECK(pwrite(fd, &byte, 1, at) == 1, "written");
    futimens(fd, (struct timespec[2]){s.st_atim, s.st_mtim});
    close(fd);
    reopen(&c);
    FL_CHECK(!same(&a, &c) && inode(cache) != first, "a stale cache is replaced");
    fl_imported_free(&c);
    first = inode(cache);
    reopen(&c);
    FL_CHECK(inode(cache) == first, "by one that holds");
    fl_imported_free(&b);
    fl_imported_free(&c);

    /* Beside a copy of the file the cache is as good: the bytes count. */
    fl_imported_free(&a);
    reopen(&a);
    char moved[600];
    snprintf(moved, sizeof moved, "%s.moved", source);
    rename(source, moved);
    size_t size = 0;
    char *bytes = fl_temp_slurp(moved, &size);
    fl_temp_write("big.csv", bytes, size);
    first = inode(cache);
    reopen(&b);
    FL_CHECK(same(&a, &b) && inode(cache) == first, "the cache of a copy");
    free(bytes);
    unlink(moved);
    fl_imported_free(&b);

    /* Damage of any kind: read anew and replaced. */
    bytes = fl_temp_slurp(cache, &size);
    for (int i = 0; i < 6; i++) {
        size_t cut = i == 0   ? 0
                     : i == 1 ? 100
                     : i == 2 ? size - 1
                              : size,
               place = i == 3   ? 17
                       : i == 4 ? 150
                                : size - 9;
        bytes[place] ^= i > 2;
        fl_temp_write("big.csv" FL_CACHE_SUFFIX, bytes, cut);
        bytes[place] ^= i > 2;
        FL_CHECK(!fl_cache_load(cache, source, "foldline-kernels", NULL, &b) && !b.kernels.ops, "damage %d", i);
        reopen(&b);
        FL_CHECK(same(&a, &b), "damage %d", i);
        fl_imported_free(&b);
        if (i && i != 3) { /* an empty file and another version are not ours to replace, or are: see below */
            fl_imported x;
            FL_CHECK(fl_cache_load(cache, source, "foldline-kernels", NULL, &x), "damage %d is repaired", i);
            fl_imported_free(&x);
        }
    }
    free(bytes);
    fl_imported_free(&a);
    fl_kernel_trace_free(&plain);
}

/* Each count in the head, at values that no body of that size can have: refused, and nothing is allocated for it. The
 * head is not hashed, so that only the counts themselves speak against it. */
static void test_stated_counts(void) {
    static const uint64_t stated[] = {UINT64_MAX,        UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_MAX / 64 + 1,
                                      UINT64_C(1) << 32, UINT32_MAX,     UINT64_C(1) << 40, UINT64_C(0x07ffffff)};
    enum { COUNTS = 8 }; /* ops, kinds, names, waits, entries, notes; the sizes of texts and ops */
    fl_imported x;
    paths("counts.csv");
    write_big(source, 3);
    reopen(&x);
    fl_imported_free(&x);
    size_t size = 0, first = 0;
    unsigned char *bytes = (unsigned char *)fl_temp_slurp(cache, &size);
    const uint64_t ops = 120000, kinds = 20;
    while (first < 300 && (memcmp(bytes + first, &ops, 8) != 0 || memcmp(bytes + first + 8, &kinds, 8) != 0))
        first++;
    FL_CHECK(first < 300, "the head has its counts");
    for (size_t i = 0; i < COUNTS * (sizeof stated / sizeof *stated); i++) {
        unsigned char kept[8], *at = bytes + first + i % COUNTS * 8;
        memcpy(kept, at, 8);
        memcpy(at, &stated[i / COUNTS], 8);
        fl_temp_write("counts.csv" FL_CACHE_SUFFIX, bytes, size);
        FL_CHECK(!fl_cache_load(cache, source, "foldline-kernels", &(fl_import_options){.device = -1}, &x),
                 "count %zu is %llu", i % COUNTS, (unsigned long long)stated[i / COUNTS]);
        memcpy(at, kept, 8);
    }
    fl_temp_write("counts.csv" FL_CACHE_SUFFIX, bytes, size);
    FL_CHECK(fl_cache_load(cache, source, "foldline-kernels", &(fl_import_options){.device = -1}, &x), "and as it was");
    fl_imported_free(&x);
    free(bytes);
}

/* ---- what is not ours, and where nothing can be written ---- */

static void test_foreign(void) {
    fl_imported a, b;
    paths("big.csv");
    reopen(&a);
    fl_temp_text("big.csv" FL_CACHE_SUFFIX, "a letter to somebody");
    reopen(&b);
    size_t size = 0;
    char *text = fl_temp_slurp(cache, &size);
    FL_CHECK(same(&a, &b) && text && !strcmp(text, "a letter to somebody"), "a file that is no cache is left alone");
    free(text);
    fl_imported_free(&b);
    unlink(cache);
    FL_CHECK(mkfifo(cache, 0600) == 0, "fifo");
    reopen(&b); /* does not wait for a writer */
    FL_CHECK(same(&a, &b), "a pipe is left alone");
    fl_imported_free(&b);
    unlink(cache);
    FL_CHECK(symlink("/dev/null", cache) == 0, "link");
    reopen(&b);
    struct stat s;
    FL_CHECK(same(&a, &b) && lstat(cache, &s) == 0 && S_ISLNK(s.st_mode), "a link is left alone");
    fl_imported_free(&b);
    unlink(cache);
    char longest[256];
    memset(longest, 'n', sizeof longest); /* a name that leaves no room for the suffix */
    longest[255] = '\0';
    size_t bytes = 0;
    char *copy = fl_temp_slurp(source, &bytes);
    snprintf(source, sizeof source, "%s", fl_temp_write(longest, copy, bytes));
    free(copy);
    int before = fl_temp_count();
    reopen(&b);
    FL_CHECK(same(&a, &b) && fl_temp_count() == before, "no cache, no rest of one");
    fl_imported_free(&b);
    unlink(source);
    fl_imported_free(&a);
}

static void test_private(void) {
    fl_imported a;
    struct stat s;
    paths("big.csv");
    chmod(source, 0600);
    reopen(&a);
    FL_CHECK(stat(cache, &s) == 0 && (s.st_mode & 0777) == 0600, "as private as its source: %o", s.st_mode);
    fl_imported_free(&a);
}

static void test_key(void) {
    fl_imported x;
    fl_cache_key key;
    const fl_import_options one = {.device = 1}, all = {.device = -1}, slow = {.device = -1, .interval_s = 2};
    make_trace(&x.kernels, 2, 10);
    x = (fl_imported){.has_kernels = true, .kernels = x.kernels};
    paths("key");
    fl_temp_text("key", "source");
    FL_CHECK(fl_cache_key_make(source, "kineto", &one, &key) && fl_cache_save(cache, &key, &x, 0644), "saved");
    fl_imported y;
    FL_CHECK(fl_cache_load(cache, source, "kineto", &one, &y), "the same");
    fl_imported_free(&y);
    FL_CHECK(!fl_cache_load(cache, source, "kineto", &all, &y) && !fl_cache_load(cache, source, "kineto", &slow, &y) &&
                 !fl_cache_load(cache, source, "nsys-csv", &one, &y),
             "other options, another reader");
    /* One that lay still when it was cached is known by its inode, until that changes. */
    struct stat was;
    stat(source, &was);
    key.stamp.settled = 1;
    FL_CHECK(fl_cache_save(cache, &key, &x, 0644) && fl_cache_load(cache, source, "kineto", &one, &y), "settled");
    fl_imported_free(&y);
    usleep(20000); /* the file system's clock ticks */
    int fd = open(source, O_WRONLY);
    FL_CHECK(pwrite(fd, "x", 1, 0) == 1, "written");
    futimens(fd, (struct timespec[2]){was.st_atim, was.st_mtim});
    close(fd);
    FL_CHECK(!fl_cache_load(cache, source, "kineto", &one, &y), "other bytes of the same length and date");
    fl_temp_text("key", "sourcf");
    FL_CHECK(!fl_cache_load(cache, source, "kineto", &one, &y), "other bytes");
    unlink(source);
    FL_CHECK(!fl_cache_load(cache, source, "kineto", &one, &y), "no source");
    x.has_telemetry = true;
    FL_CHECK(!fl_cache_save(cache, &key, &x, 0644), "telemetry is not cached");
    fl_imported_free(&x);
}

static void test_small(void) {
    fl_imported x;
    paths("small.csv");
    fl_temp_text("small.csv",
                 "# foldline-kernels 1\ndevice,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,"
                 "block_y,block_z\n0,0,7,1,2,f,1,1,1,1,1,1\n");
    reopen(&x);
    FL_CHECK(access(cache, F_OK) != 0, "no cache of small files");
    fl_imported_free(&x);
}

/* Every byte of the packed ops changed, with the hash set aside: what is taken is sound, the rest refused. */
static void test_packed(void) {
    fl_kernel_trace t;
    make_trace(&t, 4, 300);
    unsigned char *bytes = calloc(1, fl_cache_ops_room(300));
    size_t size = fl_cache_ops_pack(&t, bytes), refused = 0;
    fl_trace_op *ops = malloc(300 * sizeof *ops);
    FL_CHECK(fl_cache_ops_unpack(bytes, size, &t, ops, 300) && !memcmp(&ops[299].start_ns, &t.ops[299].start_ns, 8),
             "as is");
    FL_CHECK(!fl_cache_ops_unpack(bytes, size, &t, ops, 299) && !fl_cache_ops_unpack(bytes, size - 1, &t, ops, 300) &&
                 !fl_cache_ops_unpack(bytes, size + 1, &t, ops, 300),
             "fewer ops, fewer bytes, more bytes");
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x80;
        if (!fl_cache_ops_unpack(bytes, size, &t, ops, 300))
            refused++;
        else
            for (size_t k = 0; k < 300; k++) {
                for (uint32_t n = 0; n < ops[k].waits_count; n++)
                    FL_CHECK(ops[k].waits_first + n < t.wait_count && t.waits[ops[k].waits_first + n] < k,
                             "byte %zu, op %zu waits for a later one", i, k);
                FL_CHECK(ops[k].end_ns >= ops[k].start_ns && ops[k].start_ns >= 0 &&
                             ops[k].launch_ns <= ops[k].start_ns && ops[k].device >= 0 && ops[k].kind < t.kind_count &&
                             ops[k].waits_first + ops[k].waits_count <= t.wait_count + UINT16_MAX,
                         "byte %zu, op %zu", i, k);
            }
        bytes[i] ^= 0x80;
    }
    FL_CHECK(refused > 100, "%zu of %zu refused", refused, size);
    free(bytes);
    free(ops);
    fl_kernel_trace_free(&t);
}

static void test_hash(void) {
    static unsigned char bytes[300];
    uint64_t seen[600][2];
    size_t count = 0;
    for (size_t size = 0; size < 200; size++) /* lengths of zeros, then single bits */
        fl_cache_hash(bytes, size, seen[count++]);
    for (size_t i = 0; i < 300; i++) {
        bytes[i] = 1;
        fl_cache_hash(bytes, sizeof bytes, seen[count++]);
        bytes[i] = 0;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            FL_CHECK(seen[i][0] != seen[k][0] && seen[i][1] != seen[k][1], "%zu and %zu", i, k);
    fl_temp_remove();
}

FL_SUITE("cache", {"round trip", test_round_trip}, {"opening", test_opening},
         {"counts that a cache states", test_stated_counts}, {"foreign", test_foreign}, {"private", test_private},
         {"key", test_key}, {"small", test_small}, {"packed", test_packed}, {"hash", test_hash})
