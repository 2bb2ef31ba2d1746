/* How a kernel of a sweep is cut into ops: exact sums, markers, jitter. */
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

typedef struct cut_of {
    uint64_t ops, markers;
    int64_t total, first, last; /* of work, ns */
    uint64_t first_marker;      /* ops before it */
} cut_of;

static cut_of cut(fl_sweep_replay replay, const char *name, int64_t total) {
    fx_rig r;
    fx_open(&r, 1);
    const uint32_t work = fx_light(&r), stream = fx_stream(&r, 0, 0);
    uint32_t marker = 0;
    fl_sweep_ops o = fl_sweep_ops_of(r.w, &replay, stream, name);
    if (replay.iteration_ns)
        FX_MUST(fl_sweep_ops_marker(&o, &r.w->class[work].load, &marker, d));
    FX_MUST(fl_sweep_ops_add(&o, work, marker, total, d));
    cut_of c = {0};
    const fl_stream *s = &r.w->stream[stream];
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t gap, ns;
        uint32_t id;
        fl_workload_op(s, i, &gap, &ns, &id);
        if (r.w->class[id].iteration) {
            c.first_marker = c.markers++ ? c.first_marker : c.ops;
            FL_CHECK(!ns && !gap, "a marker takes no time");
            continue;
        }
        c.first = c.ops ? c.first : ns;
        c.last = ns;
        c.total += ns;
        c.ops++;
    }
    fx_close(&r);
    return c;
}

static void test_exact(void) {
    static const struct {
        int64_t total;
        uint64_t ops;
    } rows[] = {{1000000000, 100}, {999, 100}, {2000000000, 200}, {2009999999, 200}, {2010000000, 201}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cut_of c = cut((fl_sweep_replay){.repeat = 1, .seed = 1}, "a", rows[i].total);
        FL_CHECK(c.ops == rows[i].ops && c.total == rows[i].total && !c.markers, "%lld ns: %llu ops of %lld ns",
                 (long long)rows[i].total, (unsigned long long)c.ops, (long long)c.total);
        FL_CHECK(c.last - c.first <= 1 && c.first - c.last <= 1, "all alike");
    }
}

/* 2 s in iterations of 0.3 s: seven of them, of 200 / 7 = 29 ops. */
static void test_markers(void) {
    const cut_of c = cut((fl_sweep_replay){.repeat = 1, .seed = 1, .iteration_ns = 300000000}, "a", 2000000000);
    FL_CHECK(c.markers == 7 && c.ops == 203 && c.first_marker == 29, "%llu markers, %llu ops",
             (unsigned long long)c.markers, (unsigned long long)c.ops);
    FL_CHECK(c.total == 2000000000, "the work is what it was");
    const cut_of one = cut((fl_sweep_replay){.repeat = 1, .seed = 1, .iteration_ns = 9000000000}, "a", 2000000000);
    FL_CHECK(one.markers == 1 && one.ops == 200, "an iteration longer than all: one");
    const cut_of each = cut((fl_sweep_replay){.repeat = 1, .seed = 1, .iteration_ns = 1000}, "a", 2000000000);
    FL_CHECK(each.markers == 200 && each.first_marker == 1, "shorter than an op: one for each");
}

static void test_jitter(void) {
    const fl_sweep_replay replay = {.repeat = 1, .seed = 7, .jitter = 0.05};
    const cut_of c = cut(replay, "a", INT64_C(100000000000)), again = cut(replay, "a", INT64_C(100000000000));
    FL_CHECK(c.total == again.total && c.first == again.first, "the same seed is the same work");
    FL_CHECK(c.total != cut(replay, "b", INT64_C(100000000000)).total, "another workload varies in its own way");
    fl_sweep_replay other = replay;
    other.seed = 8;
    FL_CHECK(c.total != cut(other, "a", INT64_C(100000000000)).total, "and so does another seed");
    /* the mean of 10,000 draws of cv 0.05 has a cv of 0.0005 */
    FL_CHECK(fabs((double)c.total / 1e11 - 1) < 0.0025 && c.total != INT64_C(100000000000), "%lld ns",
             (long long)c.total);
    other.jitter = 1;
    FL_CHECK(cut(other, "a", 200).total >= 100, "no op has no work");
}

FL_SUITE("sweep_ops", {"exact", test_exact}, {"markers", test_markers}, {"jitter", test_jitter})
