/* Workloads kept beside their trace: what is taken is what would be built, on every platform, or is not taken. */
#include "harness/input/outline_file.h"
#include "harness/input/platform.h"
#include "policies/random.h"
#include "tests/support/same_workload.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"
#include "traces/kernels.h"
#include "traces/sidefile.h"

#include <math.h>
#include <sys/stat.h>

static char source[512], kept[600];

/* A file that a reader knows and that is large enough; what is kept beside it is made up here. */
static void write_source(void) {
    static char line[1 << 20];
    snprintf(source, sizeof source, "%s", fl_temp_path("source.csv"));
    snprintf(kept, sizeof kept, "%s%s", source, FL_OUTLINE_SUFFIX);
    FILE *f = fopen(source, "w");
    fputs("# foldline-kernels 1\n", f);
    memset(line, 'x', sizeof line - 100);
    for (int i = 0; i < 5; i++)
        fprintf(f, "# pad%d: %s\n", i, line);
    fputs("device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z\n"
          "0,0,7,0,10,f,1,1,1,1,1,1\n",
          f);
    fclose(f);
}

typedef struct shape { /* what a trace has; by seed */
    bool launches, overlap, copies, marks, waits, long_ops, clocks, shuffled;
    uint32_t devices, streams;
} shape;

static uint32_t below(fl_random *r, uint32_t n) { return (uint32_t)fl_random_below(r, n); }

static shape draw_shape(fl_random *r) {
    return (shape){.launches = below(r, 2),
                   .overlap = below(r, 2),
                   .copies = below(r, 2),
                   .marks = below(r, 3) == 0,
                   .waits = below(r, 2),
                   .long_ops = below(r, 2),
                   .clocks = below(r, 3) == 0,
                   .shuffled = below(r, 3) == 0,
                   .devices = 1 + below(r, 3),
                   .streams = 1 + below(r, 4)};
}

static void add_wait(fl_kernel_trace *t, fl_trace_op *op, fl_random *r) {
    op->waits_first = (uint32_t)t->wait_count;
    op->waits_count = 1;
    CU_ASSERT_FATAL(!fl_grow(&t->waits, &t->wait_room, t->wait_count + 1, sizeof *t->waits));
    t->waits[t->wait_count++] = below(r, (uint32_t)t->op_count);
}

static void make_trace(fl_kernel_trace *t, const shape *h, size_t count, fl_random *r) {
    static const char *const NAME[] = {"f", "g", "h", "[CUDA memcpy DtoH]", "[iteration]"};
    int64_t at[12] = {0}, now = 1000;
    *t = (fl_kernel_trace){0};
    fl_head_set(&t->head, "sm_mhz", "1000");
    for (size_t i = 0; i < count; i++) {
        uint32_t name = below(r, 3), lane = below(r, h->streams), device = below(r, h->devices);
        name = h->copies && !below(r, 5) ? 3 : h->marks && !below(r, 9) ? 4 : name;
        const uint32_t size[3] = {1 + below(r, 90), 1, 1};
        fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
        op.kind = fl_trace_add_kind(t, NAME[name], size, size);
        op.type = (uint8_t)fl_op_type_of(NAME[name]);
        op.device = (int32_t)(3 * device);
        op.stream = (int32_t)lane;
        op.process = (int32_t)(lane % 2);
        int64_t *end = h->overlap ? &at[device * 4 + lane] : &now;
        const int64_t gap = below(r, 4) ? below(r, 3000) : h->long_ops ? 70000 + (int64_t)below(r, 1u << 30) : 0;
        op.start_ns = *end + gap;
        op.end_ns = op.start_ns + (name == 4     ? 0
                                   : below(r, 9) ? below(r, 90000)
                                   : h->long_ops ? INT64_C(5000000000)
                                                 : 1);
        *end = op.end_ns;
        op.sm_mhz = h->clocks ? (uint16_t)(900 + 100 * below(r, 3)) : 0;
        if (h->launches) {
            op.launch_ns = op.start_ns - (int64_t)below(r, 900);
            op.host_thread = (int32_t)lane % 2;
        }
        if (h->waits && i && !below(r, 6))
            add_wait(t, &op, r);
        CU_ASSERT_FATAL(!fl_trace_add_op(t, &op));
    }
}

/* Rows in any order: of what does not wait for a row by its number. */
static void shuffle(fl_kernel_trace *t, fl_random *r) {
    for (size_t i = t->op_count; !t->wait_count && i > 1; i--) {
        const size_t k = (size_t)fl_random_below(r, i);
        const fl_trace_op swap = t->ops[i - 1];
        t->ops[i - 1] = t->ops[k];
        t->ops[k] = swap;
    }
}

static void save(const fl_kernel_trace *t, const fl_node_spec *node, const fl_build_options *how) {
    fl_imported in = {.has_kernels = true, .kernels = *t};
    fl_outline outline;
    fl_workload *w;
    fl_cache_key key;
    fl_diag d = {0};
    static const fl_import_options ALL = {.device = -1};
    const fl_reader *reader;
    unlink(kept);
    FL_CHECK(!fl_reader_find(source, NULL, &reader, &d) && fl_cache_key_make(source, reader->name, &ALL, &key), "%s",
             d.message);
    const fl_status s = fl_build_trace_outline(&w, &outline, "a trace", t, node, how, &d);
    FL_CHECK(!s, "%s", d.message);
    if (!s) {
        fl_kept_workload_save(source, &key, &in, &outline, w);
        fl_outline_free(&outline);
        fl_workload_free(w);
    }
}

/* 1: taken, and the same; 0: not taken; -1: taken, and another. */
static int take(const fl_kernel_trace *t, const fl_node_spec *node, const fl_build_options *how) {
    fl_kept_workload k;
    fl_workload *w;
    bool fits = false;
    fl_diag d = {0}, e = {0};
    if (!fl_kept_workload_load(source, &k))
        return 0;
    free(k.w->name);
    k.w->name = strdup("a trace");
    const fl_status s = fl_build_outline(k.w, &k.outline, &k.t, node, how, &fits, &d);
    const fl_status plain = fl_build_trace(&w, "a trace", t, node, how, &e);
    int taken = fits ? 1 : 0;
    if (s != plain && (s || fits))
        taken = -1;
    if (s && plain && strcmp(d.message, e.message) != 0)
        taken = -1;
    if (!plain && fits && !fl_same_workload(k.w, w))
        taken = -1;
    if (!plain)
        fl_workload_free(w);
    fl_kept_workload_free(&k);
    return taken;
}

static void open_platform(const char *name, fl_platform *p) {
    fl_diag d = {0};
    FL_CHECK(!fl_platform_open(name, 4, p, &d), "%s", d.message);
}

/* Kinds of which one has two phases, whose shares differ by set. */
static void make_kinds(fl_kinds *k, int set) {
    const char *text[] = {
        "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
        "f,1,0.2,0,2,1,0.2,0.6,0,0\n*,0.4,1,0,2,0.4,1,0.7,0,0\n",
        "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,phase\n"
        "f,1,0.2,0,2,1,0.2,0.6,0,0,0.5\nf,0.2,1,0,2,0.4,1,0.6,0,0,0.5\n*,0.4,1,0,2,0.4,1,0.7,0,0,1\n",
        "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,phase\n"
        "f,1,0.2,0,2,1,0.2,0.6,0,0,0.25\nf,0.2,1,0,2,0.4,1,0.6,0,0,0.75\n*,0.4,1,0,2,0.4,1,0.7,0,0,1\n"};
    fl_diag d = {0};
    FL_CHECK(!fl_kinds_read(fl_temp_text("kinds.csv", text[set]), k, &d), "%s", d.message);
}

static void test_same_as_built(void) {
    fl_platform p[3];
    fl_kinds kinds[3];
    int taken = 0, other = 0;
    write_source();
    open_platform("generic", &p[0]);
    open_platform("a100", &p[1]);
    open_platform("v100-300w", &p[2]);
    for (int i = 0; i < 3; i++)
        make_kinds(&kinds[i], i);
    for (uint64_t seed = 1; seed <= 120; seed++) {
        fl_random r = fl_random_seed(seed, 19);
        const shape h = draw_shape(&r);
        fl_kernel_trace t;
        make_trace(&t, &h, 1 + below(&r, seed % 5 ? 60 : 900), &r);
        if (h.shuffled)
            shuffle(&t, &r);
        const fl_build_options how[] = {{.windows = 20, .assume = "balanced"},
                                        {.windows = 7, .kinds = &kinds[0]},
                                        {.windows = 20, .kinds = &kinds[1]},
                                        {.windows = 20, .kinds = &kinds[2]},
                                        {.windows = 20}}; /* the last: refused, by either in the same words */
        const size_t first = seed % 4, at = seed % 3;
        save(&t, &p[at].node, &how[first]);
        for (size_t i = 0; i < 3; i++)
            for (size_t k = 0; k < 5; k++) {
                const int got = take(&t, &p[i].node, &how[k]);
                FL_CHECK(got >= 0, "seed %d, platform %zu, kinds %zu: another workload", (int)seed, i, k);
                FL_CHECK(got == 1 || i != at || k != first, "seed %d: not taken where it was built", (int)seed);
                taken += got == 1;
                other += got == 1 && i != at;
            }
        fl_kernel_trace_free(&t);
    }
    FL_CHECK(taken > 300 && other > 100, "%d were taken, %d of them by another platform", taken, other);
    for (int i = 0; i < 3; i++) {
        fl_kinds_free(&kinds[i]);
        fl_platform_free(&p[i]);
    }
    fl_temp_remove();
}

/* Streams in any order of rows are the same streams. */
static void test_order_of_rows(void) {
    fl_platform p;
    open_platform("generic", &p);
    const fl_build_options how = {.windows = 20, .assume = "compute"};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fl_random r = fl_random_seed(seed, 20);
        const shape h = {.overlap = seed % 2, .launches = seed % 3 == 0, .long_ops = true, .devices = 2, .streams = 3};
        fl_kernel_trace t;
        fl_workload *a, *b;
        fl_diag d = {0};
        make_trace(&t, &h, 500, &r);
        for (size_t i = 0; i < t.op_count; i++) /* no two start at once, which the row would decide */
            t.ops[i].end_ns += t.ops[i].end_ns == t.ops[i].start_ns;
        /* one kind, so that classes are numbered alike */
        for (size_t i = 0; i < t.op_count; i++)
            t.ops[i].kind = 0;
        FL_CHECK(!fl_build_trace(&a, "t", &t, &p.node, &how, &d), "%s", d.message);
        shuffle(&t, &r);
        FL_CHECK(!fl_build_trace(&b, "t", &t, &p.node, &how, &d), "%s", d.message);
        bool same = a->stream_count == b->stream_count && a->untangled == b->untangled;
        for (uint32_t i = 0; same && i < a->stream_count; i++)
            same = fl_same_stream(&a->stream[i], &b->stream[i]);
        FL_CHECK(same, "seed %d", (int)seed);
        fl_workload_free(a);
        fl_workload_free(b);
        fl_kernel_trace_free(&t);
    }
    fl_platform_free(&p);
}

/* Every byte changed in turn, or cut off there: what is taken then is what was kept. */
static void test_damage(void) {
    fl_platform p;
    fl_random r = fl_random_seed(5, 21);
    const shape h = {.launches = true, .waits = true, .long_ops = true, .copies = true, .devices = 2, .streams = 2};
    const fl_build_options how = {.windows = 20, .assume = "balanced"};
    fl_kernel_trace t;
    fl_kept_workload k;
    size_t size = 0;
    write_source();
    open_platform("generic", &p);
    make_trace(&t, &h, 40, &r);
    save(&t, &p.node, &how);
    char *bytes = fl_temp_slurp(kept, &size);
    FL_CHECK(size > 1000 && take(&t, &p.node, &how) == 1, "%zu bytes", size);
    for (size_t i = 0; i < size; i++) {
        const char was = bytes[i];
        bytes[i] = (char)(was ^ (1 + (int)below(&r, 255)));
        fl_temp_write("source.csv" FL_OUTLINE_SUFFIX, bytes, size);
        bytes[i] = was;
        /* A stamp alone may be another: the bytes of the source are looked at then. */
        const int got = i < 24 || i >= 96 ? (fl_kept_workload_load(source, &k) ? -1 : 0) : take(&t, &p.node, &how);
        FL_CHECK(got >= 0, "byte %zu", i);
    }
    for (size_t cut = 0; cut < size; cut += 1 + cut / 40) {
        fl_temp_write("source.csv" FL_OUTLINE_SUFFIX, bytes, cut);
        FL_CHECK(!fl_kept_workload_load(source, &k), "cut to %zu of %zu", cut, size);
    }
    free(bytes);
    fl_kernel_trace_free(&t);
    fl_platform_free(&p);
    fl_temp_remove();
}

static bool classes_exist(const fl_workload *w) {
    bool all = true;
    for (uint32_t i = 0; i < w->stream_count; i++)
        for (uint64_t k = 0; k < w->stream[i].count; k++) {
            int64_t gap, work;
            uint32_t class_id;
            const fl_rec *r = &w->stream[i].rec[k];
            all &= r->class_id != FL_REC_ESCAPE || fl_rec_index(r) < w->stream[i].big_count;
            if (all)
                fl_workload_op(&w->stream[i], k, &gap, &work, &class_id);
            all &= all && class_id < w->class_count;
        }
    return all;
}

/* Contents with a hash that is right and numbers that are not: counts that no file of that size holds, and any others.
 */
static void test_forged(void) {
    enum { HEAD = 16 + 8 + sizeof(fl_cache_key) + 24, HASH = HEAD - 16 };
    fl_platform p;
    fl_random r = fl_random_seed(6, 22);
    const shape h = {.launches = true, .waits = true, .long_ops = true, .devices = 2, .streams = 2};
    const fl_build_options how = {.windows = 20, .assume = "balanced"};
    fl_kernel_trace t;
    size_t size = 0;
    write_source();
    open_platform("generic", &p);
    make_trace(&t, &h, 40, &r);
    save(&t, &p.node, &how);
    char *bytes = fl_temp_slurp(kept, &size);
    for (int i = 0; i < 1500; i++) {
        uint64_t was, forged = below(&r, 3) ? fl_random_next(&r) >> below(&r, 64) : UINT64_MAX >> below(&r, 40),
                      hash[2];
        char *at = bytes + HEAD + (size_t)fl_random_below(&r, (size - HEAD) / 8) * 8;
        fl_kept_workload k;
        fl_diag d = {0};
        bool fits;
        memcpy(&was, at, sizeof was);
        memcpy(at, &forged, sizeof forged);
        fl_cache_hash(bytes + HEAD, size - HEAD, hash);
        memcpy(bytes + HASH, hash, sizeof hash);
        fl_temp_write("source.csv" FL_OUTLINE_SUFFIX, bytes, size);
        if (fl_kept_workload_load(source, &k)) { /* not what was kept, but a workload: nothing runs off with it */
            if (!fl_build_outline(k.w, &k.outline, &k.t, &p.node, &how, &fits, &d) && fits)
                FL_CHECK(classes_exist(k.w), "forgery %d", i);
            fl_kept_workload_free(&k);
        }
        memcpy(at, &was, sizeof was);
    }
    free(bytes);
    fl_kernel_trace_free(&t);
    fl_platform_free(&p);
    fl_temp_remove();
}

/* Another source, and a file of that name that is somebody's. */
static void test_not_ours(void) {
    fl_platform p;
    fl_random r = fl_random_seed(7, 23);
    const shape h = {.devices = 1, .streams = 1};
    const fl_build_options how = {.windows = 20, .assume = "balanced"};
    fl_kernel_trace t;
    fl_kept_workload k;
    write_source();
    open_platform("generic", &p);
    make_trace(&t, &h, 40, &r);
    save(&t, &p.node, &how);
    FL_CHECK(take(&t, &p.node, &how) == 1, "kept");
    FILE *f = fopen(source, "r+");
    fseek(f, -3, SEEK_END);
    fputc('2', f);
    fclose(f);
    FL_CHECK(!fl_kept_workload_load(source, &k), "other bytes of the same length");
    unlink(kept);
    fl_temp_text("source.csv" FL_OUTLINE_SUFFIX, "mine, not a workload, and longer than a name\n");
    struct stat before, after;
    stat(kept, &before);
    fl_imported in = {.has_kernels = true, .kernels = t};
    fl_outline outline;
    fl_workload *w;
    fl_cache_key key = {0};
    fl_diag d = {0};
    FL_CHECK(!fl_build_trace_outline(&w, &outline, "a trace", &t, &p.node, &how, &d), "%s", d.message);
    fl_kept_workload_save(source, &key, &in, &outline, w);
    FL_CHECK(!stat(kept, &after) && before.st_ino == after.st_ino, "somebody's file is left alone");
    fl_outline_free(&outline);
    fl_workload_free(w);
    fl_kernel_trace_free(&t);
    fl_platform_free(&p);
    fl_temp_remove();
}

FL_SUITE("kept_workload", {"same_as_built", test_same_as_built}, {"order_of_rows", test_order_of_rows},
         {"damage", test_damage}, {"forged", test_forged}, {"not_ours", test_not_ours})
