/* The scan of a lone stream: its plain loop against a model of one op at a time in 128 bits, and the loops in vector
 * registers against the plain one, over random rows and streams up to the borders of their integers. */
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/advance/inside.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

#define MOST_PS INT64_C(1000000000000) /* between two boundaries: see FL_BOUNDARY_MAX_PS */

typedef struct loop {
    const char *name;
    fl_scan_ops *run;
} loop;

/* All that this CPU has, the plain one first. */
static size_t loops(loop out[3]) {
    size_t n = 0;
    out[n++] = (loop){"plain", fl_scan_plain};
#if FL_SCAN_X86
    if (__builtin_cpu_supports("avx2"))
        out[n++] = (loop){"AVX2", fl_scan_avx2};
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out[n++] = (loop){"AVX-512", fl_scan_avx512};
#endif
    return n;
}

/* ---- rows and streams, drawn ---- */

typedef struct scene {
    fl_row *row;
    uint32_t classes;
    fl_clock_rates rates;
    fl_stream s;
    uint32_t gap_mul;
    bool profiled;
    int64_t *class_ps, *expected_ps;
} scene;

static uint64_t below(fl_random *g, uint64_t n) { return fl_random_below(g, n); }

/* Spread over the orders of magnitude: borders come as often as the middle. */
static uint64_t bits(fl_random *g, unsigned most) {
    const unsigned n = (unsigned)below(g, most + 1);
    const uint64_t top = n ? UINT64_C(1) << (n - 1) : 0;
    return below(g, 8) ? top + (n > 1 ? below(g, top) : 0) : n ? 2 * top - 1 : 0;
}

static uint32_t draw_mul(fl_random *g) {
    switch (below(g, 8)) {
    case 0:
        return UINT32_MAX;
    case 1:
        return (uint32_t)bits(g, 32);
    default:
        return FL_MUL_ONE / 2 + (uint32_t)below(g, 2 * FL_MUL_ONE);
    }
}

static void draw_rows(scene *x, fl_random *g, bool other) {
    x->classes = below(g, 20) ? 1 + (uint32_t)below(g, 40) : FL_CLASSES_MAX;
    x->row = fx_alloc(x->classes, sizeof *x->row);
    for (uint32_t i = 0; i < x->classes; i++)
        x->row[i] = (fl_row){.mul = draw_mul(g),
                             .dyn_mw = (int32_t)below(g, 9000000) - (below(g, 4) ? 0 : 8000000),
                             .memory = (uint16_t)below(g, 65536),
                             .sms = (uint16_t)below(g, 65536),
                             .alu = (uint16_t)below(g, 65536),
                             .resident = (uint16_t)(other ? below(g, 3) : FL_RESIDENT_KERNEL)};
    x->rates.row = x->row;
}

/* One in `escapes` is an escape, and of those some need more than 32 bits; `most` bits of work in the others, as far as
 * a record has them. */
static void draw_ops(scene *x, fl_random *g, size_t count, uint64_t escapes, unsigned most) {
    fl_stream *s = &x->s;
    s->count = count;
    s->rec = fx_alloc(count, sizeof *s->rec); /* exactly: a read beyond an end is seen */
    s->big = fx_alloc(count, sizeof *s->big);
    for (size_t i = 0; i < count; i++) {
        const uint32_t id = below(g, 30) ? (uint32_t)below(g, x->classes) : x->classes - 1;
        fl_rec *r = &s->rec[i];
        *r = fl_rec_of(bits(g, most < FL_WORK_BITS ? most : FL_WORK_BITS), bits(g, FL_GAP_BITS), id);
        if (!escapes || below(g, escapes))
            continue;
        const bool wide = !below(g, 25);
        s->big[s->big_count] = (fl_big){.work_ns = (int64_t)bits(g, wide          ? 40
                                                                    : below(g, 3) ? most
                                                                                  : 32),
                                        .gap_ns = (int64_t)bits(g, wide ? 40 : 32),
                                        .class_id = id};
        *r = fl_rec_escape(s->big_count++);
    }
    s->big = realloc(s->big, (s->big_count ? s->big_count : 1) * sizeof *s->big);
    if (!s->big)
        exit(1);
}

static void open_scene(scene *x, fl_random *g, size_t count, uint64_t escapes, unsigned most) {
    *x = (scene){.profiled = below(g, 2), .gap_mul = below(g, 2) ? FL_MUL_ONE : (uint32_t)bits(g, 32)};
    x->s.other = below(g, 2);
    draw_rows(x, g, x->s.other);
    draw_ops(x, g, count, escapes, most);
    x->class_ps = fx_alloc(x->classes, sizeof *x->class_ps);
    x->expected_ps = fx_alloc(x->classes, sizeof *x->expected_ps);
}

static void close_scene(scene *x) {
    free(x->row);
    free(x->s.rec);
    free(x->s.big);
    free(x->class_ps);
    free(x->expected_ps);
}

/* ---- one stretch, by a loop and by the model ---- */

typedef struct outcome {
    int64_t t;
    fl_gpu g;
    fl_lane l;
} outcome;

static void start(const scene *x, uint64_t first, bool in_parts, fl_slot *slot, int64_t *class_ps, outcome *o) {
    memset(class_ps, 0, x->classes * sizeof *class_ps);
    *slot = (fl_slot){.class_ps = class_ps};
    *o = (outcome){.g = {.rates = &x->rates, .slot = slot, .profiled = x->profiled},
                   .l = {.s = &x->s, .next = first, .in_parts = in_parts && x->s.other}};
}

static int64_t wide_length(int64_t ns, uint32_t mul) { return (int64_t)(((fl_wide)ns * mul + 32768) / 65536); }

static void by_model(const scene *x, outcome *o, int64_t t, int64_t until, uint64_t stop) {
    for (; o->l.next < stop; o->l.next++) {
        int64_t gap_ns, work_ns;
        uint32_t id;
        fl_workload_op(&x->s, o->l.next, &gap_ns, &work_ns, &id);
        const fl_row *k = &x->row[id];
        const int64_t ps = wide_length(work_ns, k->mul), end = t + wide_length(gap_ns, x->gap_mul) + ps;
        if (gap_ns > UINT32_MAX || work_ns > UINT32_MAX || end > until)
            break;
        t = end;
        o->g.slot[0].class_ps[id] += ps;
        o->g.window.dyn_fj += (fl_wide)ps * k->dyn_mw;
        o->g.window.memory += (fl_wide)ps * k->memory;
        o->g.sums.busy_ps += k->resident ? ps : 0;
        o->g.sums.kernels += k->resident == FL_RESIDENT_KERNEL;
        o->l.worked_ps += ps;
        o->l.in_parts = k->resident == FL_RESIDENT_PART;
        if (x->profiled) {
            o->g.window.alu += (fl_wide)ps * k->alu;
            o->g.window.sms += (fl_wide)ps * k->sms;
            o->g.sums.copy_ps += k->resident ? 0 : ps;
        }
    }
    o->t = t;
}

static bool same(const scene *x, const outcome *a, const outcome *b) {
    return a->t == b->t && a->l.next == b->l.next && a->l.in_parts == b->l.in_parts &&
           a->l.worked_ps == b->l.worked_ps && a->g.window.dyn_fj == b->g.window.dyn_fj &&
           a->g.window.memory == b->g.window.memory && a->g.window.alu == b->g.window.alu &&
           a->g.window.sms == b->g.window.sms && a->g.sums.busy_ps == b->g.sums.busy_ps &&
           a->g.sums.copy_ps == b->g.sums.copy_ps && a->g.sums.kernels == b->g.sums.kernels &&
           !memcmp(x->class_ps, x->expected_ps, x->classes * sizeof *x->class_ps);
}

/* Returns the ops taken. */
static uint64_t check_stretch(const char *what, const scene *x, uint64_t first, int64_t t, int64_t until,
                              uint64_t stop) {
    loop l[3];
    outcome expected, got;
    fl_slot slot[2];
    const bool in_parts = first & 1;
    start(x, first, in_parts, &slot[0], x->expected_ps, &expected);
    by_model(x, &expected, t, until, stop);
    for (size_t i = 0, n = loops(l); i < n; i++) {
        start(x, first, in_parts, &slot[1], x->class_ps, &got);
        got.t = l[i].run(&got.g, &got.l, t, until, stop, x->gap_mul);
        FL_CHECK(same(x, &expected, &got),
                 "%s, %s: ops %llu to %llu from %lld to %lld: takes up to %llu at %lld, expected %llu at %lld", what,
                 l[i].name, (unsigned long long)first, (unsigned long long)stop, (long long)t, (long long)until,
                 (unsigned long long)got.l.next, (long long)got.t, (unsigned long long)expected.l.next,
                 (long long)expected.t);
    }
    return expected.l.next - first;
}

/* ---- records of a stretch ---- */

/* The pass behind a loop, against one op at a time: the same records, and the same beginning of a kernel whose phases
 * go on. */
static void check_records(const scene *x, uint64_t first, int64_t t, int64_t until, uint64_t stop) {
    outcome o;
    fl_slot slot;
    start(x, first, first & 1, &slot, x->class_ps, &o);
    o.l.gpu = &o.g;
    o.l.began_ps = t / 2;
    const fl_scan_place begun = {.op = first, .t = t, .in_parts = o.l.in_parts};
    int64_t at = t, began_ps = o.l.began_ps;
    bool in_parts = o.l.in_parts, same = true;
    size_t n = 0;
    fl_scan_plain(&o.g, &o.l, t, until, stop, x->gap_mul);
    fl_scan_record(&o.l, &begun, x->gap_mul);
    for (uint64_t i = first; i < o.l.next; i++) {
        int64_t gap_ns, work_ns;
        uint32_t id;
        fl_workload_op(&x->s, i, &gap_ns, &work_ns, &id);
        at += wide_length(gap_ns, x->gap_mul);
        if (!in_parts)
            began_ps = at;
        at += wide_length(work_ns, x->row[id].mul);
        in_parts = x->row[id].resident == FL_RESIDENT_PART;
        if (x->row[id].resident != FL_RESIDENT_KERNEL)
            continue;
        const fl_kernel_record *r = &o.g.records.record[n++];
        same &= n <= o.g.records.count && r->start_ns == began_ps / 1000 && r->end_ns == at / 1000 && r->kind == id;
    }
    FL_CHECK(same && n == o.g.records.count && o.l.began_ps == began_ps,
             "ops %llu to %llu: %zu records, expected %zu; or one is wrong", (unsigned long long)first,
             (unsigned long long)o.l.next, o.g.records.count, n);
    free(o.g.records.record);
}

/* ---- the tests ---- */

/* Any stretch of any stream; boundaries wherever they fall. */
static void test_random_streams(void) {
    static const uint64_t escapes[] = {0, 1, 2, 10, 200};
    static const unsigned most[] = {10, 16, 21, 32};
    fl_random g = fl_random_seed(19, 1);
    uint64_t taken = 0;
    for (int k = 0; k < 1200; k++) {
        scene x;
        open_scene(&x, &g, (size_t)below(&g, 300), escapes[k % 5], most[k % 4]);
        uint64_t first = 0;
        for (int n = 0; n < 40 && first < x.s.count; n++) {
            const uint64_t stop = first + below(&g, x.s.count - first + 1);
            const int64_t t = (int64_t)bits(&g, 60), span = below(&g, 4) ? (int64_t)bits(&g, 39) : MOST_PS;
            const uint64_t some = check_stretch("random", &x, first, t, t + span, stop);
            check_records(&x, first, t, t + span, stop);
            taken += some;
            first += some && below(&g, 2) ? some : below(&g, 20);
        }
        close_scene(&x);
    }
    FL_CHECK(taken > 100000, "only %llu ops were taken", (unsigned long long)taken);
}

/* A boundary one ps before the end of each op, at it, one after it, and likewise before op `stop`, for every place in a
 * block. */
static void test_every_place(void) {
    enum { OPS = 37 };
    fl_random g = fl_random_seed(19, 2);
    for (int k = 0; k < 12; k++) {
        scene x;
        open_scene(&x, &g, OPS, k % 3 == 0 ? 0 : k % 3 == 1 ? 1 : 4, 17);
        for (uint64_t first = 0; first < 9; first++) {
            int64_t end = 5;
            for (uint64_t i = first; i < OPS; i++) {
                int64_t gap_ns, work_ns;
                uint32_t id;
                fl_workload_op(&x.s, i, &gap_ns, &work_ns, &id);
                end += wide_length(gap_ns, x.gap_mul) + wide_length(work_ns, x.row[id].mul);
                for (int by = -1; by <= 1 && end <= MOST_PS; by++)
                    check_stretch("place", &x, first, 5, end + by < 5 ? 5 : end + by, OPS);
            }
            for (uint64_t stop = first; stop <= OPS; stop++)
                check_stretch("stop", &x, first, 5, 5 + MOST_PS, stop);
        }
        close_scene(&x);
    }
}

/* One op at the border of what 32 bits hold, at each place among short ones. */
static void test_borders(void) {
    static const int64_t border[] = {0,          1,          65535,      65536,       2147482,
                                     2147483,    2147484,    0x7ffffff,  0x8000000,   0x7fffffff,
                                     0x80000000, 0xfffffffe, 0xffffffff, 0x100000000, 0x7fffffffff};
    fl_random g = fl_random_seed(19, 3);
    for (size_t b = 0; b < 2 * (sizeof border / sizeof *border); b++)
        for (size_t place = 0; place < 19; place++) {
            scene x;
            open_scene(&x, &g, 19, place % 2 ? 3 : 0, 8);
            x.row[0].mul = place % 3 ? FL_MUL_ONE : UINT32_MAX;
            const int64_t v = border[b / 2];
            if (v <= FL_WORK_MAX && b % 2) { /* as a record */
                x.s.rec[place] = fl_rec_of((uint64_t)v, 0, 0);
            } else { /* as an escape of its own */
                fl_big *big = realloc(x.s.big, (x.s.big_count + 1) * sizeof *big);
                if (!big)
                    exit(1);
                x.s.big = big;
                big[x.s.big_count] = (fl_big){.work_ns = b % 2 ? v : 7, .gap_ns = b % 2 ? 7 : v};
                x.s.rec[place] = fl_rec_escape(x.s.big_count++);
            }
            check_stretch("border", &x, 0, 0, MOST_PS, 19);
            check_stretch("border", &x, place, 0, MOST_PS, 19);
            close_scene(&x);
        }
}

/* ---- whole runs ---- */

typedef struct digest {
    uint64_t hash;
    fl_wide energy;
} digest;

static digest whole_run(const fx_rig *r, fl_path path, const fx_how *base) {
    fx_how how = *base;
    how.path = path;
    fl_run_result result;
    fx_run(r, &how, &result);
    const digest d = {result.hash, result.energy_fj};
    fl_run_result_free(&result);
    return d;
}

/* Whole runs of random streams with marks, escapes, clock changes, sensors: the same hash of every step. */
static void test_runs(void) {
    fl_random g = fl_random_seed(19, 4);
    for (int k = 0; k < 60; k++) {
        fx_rig r;
        fx_open(&r, 1);
        fx_random_classes(&r, &g, 1 + (uint32_t)below(&g, 20), 1);
        fx_random_ops(&r, &g, fx_stream(&r, 0, 0), 1 + (size_t)below(&g, 4000), 1 << below(&g, 20));
        fx_finish(&r, (uint32_t)below(&g, 30));
        const fx_how how = {.mode = (int)below(&g, 3),
                            .step_us = 1 + (int64_t)bits(&g, 14),
                            .records = !below(&g, 6),
                            .needs = below(&g, 2) ? ~UINT64_C(0) : 0};
        const digest plain = whole_run(&r, FL_PATH_PLAIN, &how);
        static const fl_path other[] = {FL_PATH_VECTOR, FL_PATH_AUTO, FL_PATH_EVENTS};
        for (int i = 0; i < 3; i++) {
            const digest d = whole_run(&r, other[i], &how);
            FL_CHECK(d.hash == plain.hash && d.energy == plain.energy, "run %d by %s: %llx, plain %llx", k,
                     fl_path_names[other[i]], (unsigned long long)d.hash, (unsigned long long)plain.hash);
        }
        fx_close(&r);
    }
    FL_CHECK(!fl_scan_vector() || fl_path_taken(FL_PATH_VECTOR), "no run went by vector");
}

FL_SUITE("scan", {"random streams", test_random_streams}, {"a boundary at every place", test_every_place},
         {"ops at the borders", test_borders}, {"whole runs", test_runs})
