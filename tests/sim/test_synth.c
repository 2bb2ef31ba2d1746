/* Synthetic traces, their kinds and the same kernels as a workload: what the options mean, which are refused, and that
 * a seed gives the same kernels for ever (golden/synth.csv). */
#include "models/laws/laws.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/golden.h"
#include "tests/support/sim_fixture.h"

typedef struct drawn {
    fl_kernel_trace t;
    fl_kinds k;
} drawn;

static drawn draw(const fl_synth_options *o) {
    drawn x;
    FX_MUST(fl_synth_trace(o, 1000, 800, &x.t, &x.k, d));
    return x;
}

static void end(drawn *x) {
    fl_kernel_trace_free(&x->t);
    fl_kinds_free(&x->k);
}

static bool within(double x, double low, double high) { return x >= low && x <= high; }

/* ---- kinds ---- */

/* Kinds that are bound by memory come first: their share, rounded. The lesser term of either is 0.2 to 0.9, that of
 * memory 0.8 times as much; a kernel on a few SMs moves as little of the bandwidth. */
static void test_kinds(void) {
    static const struct {
        uint32_t kinds, memory_kinds;
        double memory, sm_demand;
    } rows[] = {{40, 20, 0.5, 1}, {40, 0, 0, 1},       {40, 40, 1, 1},   {5, 3, 0.5, 1},
                {5, 2, 0.49, 1},  {40, 10, 0.25, 0.3}, {40, 10, 0.25, 0}};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        fl_synth_options o = fl_synth_standard;
        o.kinds = rows[n].kinds, o.memory = rows[n].memory, o.sm_demand = rows[n].sm_demand, o.kernels = 10;
        drawn x = draw(&o);
        FL_CHECK(x.k.count == o.kinds && x.t.kind_count == o.kinds, "row %zu: %zu kinds", n, x.k.count);
        double least_demand = 1, most_demand = 0, least_lesser = 1, most_lesser = 0;
        for (uint32_t i = 0; i < o.kinds; i++) {
            const fl_kind_load *l = &x.k.kind[i];
            const fl_trace_kind *shape = &x.t.kinds[i];
            const bool memory = i < rows[n].memory_kinds;
            const double scale = o.sm_demand > 0 ? o.sm_demand : 1, lesser = memory ? l->tc : l->tm / 0.8 / scale;
            char name[32];
            snprintf(name, sizeof name, "%s_%u", memory ? "mem" : "comp", i);
            FL_CHECK(!strcmp(l->name, name) && !strcmp(x.t.names[shape->name], name), "row %zu: kind %u is %s", n, i,
                     l->name);
            FL_CHECK((memory ? l->tm / scale : l->tc) == 1 && within(lesser, 0.2, 0.9) && within(l->tl, 0, 0.02) &&
                         isinf(l->sharpness),
                     "row %zu: kind %u: %g %g %g", n, i, l->tc, l->tm, l->tl);
            FL_CHECK(memory ? within(l->alpha, 0.3, 0.7) && within(l->beta, 0.6, 1)
                            : within(l->alpha, 0.6, 1) && within(l->beta, 0.1, 0.5),
                     "row %zu: kind %u: alpha %g, beta %g", n, i, l->alpha, l->beta);
            FL_CHECK(o.sm_demand > 0 ? l->sm_demand == o.sm_demand : within(l->sm_demand, 0.2, 1),
                     "row %zu: kind %u wants %g of the SMs", n, i, l->sm_demand);
            FL_CHECK(l->sm_mhz == 1000 && l->mem_mhz == 800 && l->phase == 1 && isnan(l->host_bound) &&
                         isnan(l->host_alpha) && isnan(l->host_upc) && isnan(l->host_gb_s),
                     "row %zu: kind %u: clocks, one phase, nothing of the host", n, i);
            FL_CHECK(within(shape->grid[0], 1, 4096) && shape->grid[1] == 1 && shape->grid[2] == 1 &&
                         shape->block[0] == 256 && shape->block[1] == 1 && shape->block[2] == 1,
                     "row %zu: kind %u: its shape", n, i);
            least_demand = fmin(least_demand, l->sm_demand);
            most_demand = fmax(most_demand, l->sm_demand);
            least_lesser = fmin(least_lesser, lesser);
            most_lesser = fmax(most_lesser, lesser);
        }
        FL_CHECK(o.kinds < 40 || (least_lesser < 0.3 && most_lesser > 0.8), "row %zu: from %g to %g", n, least_lesser,
                 most_lesser);
        FL_CHECK(o.sm_demand > 0 || (least_demand < 0.3 && most_demand > 0.9), "row %zu: from %g to %g of the SMs", n,
                 least_demand, most_demand);
        static const struct {
            const char *key, *want;
        } head[] = {{"sm_mhz", "1000"}, {"mem_mhz", "800"}, {"source", "foldline synth, seed 1: drawn, not measured"}};
        for (size_t i = 0; i < 3; i++)
            FL_CHECK(!strcmp(fl_head_get(&x.t.head, head[i].key), head[i].want) &&
                         !strcmp(fl_head_get(&x.k.head, head[i].key), head[i].want),
                     "head: %s", head[i].key);
        end(&x);
    }
}

/* ---- kernels ---- */

/* Kernels are dealt evenly to the streams, the first of which take what is left. One after the other on each, without
 * an overlap; a kernel is within a fifth of its kind's mean, so that no two of a kind differ by more than half. */
static void test_kernels(void) {
    fl_synth_options o = fl_synth_standard;
    o.kernels = 4003, o.streams = 2, o.gpus = 2, o.kinds = 8, o.gap_us = 20;
    drawn x = draw(&o);
    uint32_t lane = 0;
    uint64_t in_lane = 0, runs = 0;
    double least[8], most[8] = {0}, gap_ns = 0, work_ns = 0;
    for (int i = 0; i < 8; i++)
        least[i] = INFINITY;
    int64_t last = 0;
    FL_CHECK(x.t.op_count == 4003 && !x.t.has_launches, "%zu kernels", x.t.op_count);
    for (size_t i = 0; i < x.t.op_count; i++, in_lane++) {
        const fl_trace_op *op = &x.t.ops[i];
        if (in_lane == (lane < 3 ? 1001 : 1000))
            lane++, in_lane = 0, last = 0;
        const double length = (double)(op->end_ns - op->start_ns);
        FL_CHECK(op->device == (int32_t)(lane / 2) && op->stream == (int32_t)(lane % 2) && op->process == 0,
                 "kernel %zu: device %d, stream %d", i, op->device, op->stream);
        FL_CHECK(op->launch_ns == INT64_MIN && op->host_thread == -1 && op->bytes == -1 && op->type == FL_OP_KERNEL &&
                     !op->waits_count,
                 "kernel %zu: nothing else was recorded", i);
        FL_CHECK(op->start_ns >= last && length >= 1 && op->kind < 8, "kernel %zu begins %lld ns, last ended %lld", i,
                 (long long)op->start_ns, (long long)last);
        runs += in_lane == 0 || op->kind != op[-1].kind;
        gap_ns += (double)(op->start_ns - last);
        work_ns += length;
        least[op->kind] = fmin(least[op->kind], length);
        most[op->kind] = fmax(most[op->kind], length);
        last = op->end_ns;
    }
    for (int i = 0; i < 8; i++)
        FL_CHECK(most[i] / least[i] > 1.4 && most[i] / least[i] <= 1.5 * (1 + 1 / least[i]), "kind %d: %g to %g ns", i,
                 least[i], most[i]);
    FL_CHECK(lane == 3 && in_lane == 1000, "the last stream has %d", (int)in_lane);
    /* exponential gaps of 4003 kernels: their mean is known to 1.6 % (a standard deviation) */
    FL_CHECK(fabs(gap_ns / 4003 / 20000 - 1) < 0.05, "mean gap %g ns", gap_ns / 4003);
    /* eight kinds whose means spread by half */
    FL_CHECK(within(work_ns / 4003, 100000, 400000), "mean kernel %g ns", work_ns / 4003);
    /* one in four changes the kind, to another in seven of eight cases: 876 of them, within 28 */
    FL_CHECK(within((double)runs, 876 - 112, 876 + 112), "%d runs of one kind", (int)runs);
    end(&x);

    o.gap_us = 0, o.burst = 1, o.kernels = 200, o.streams = o.gpus = 1; /* back to back, a kind of its own each time */
    x = draw(&o);
    for (size_t i = 0; i < x.t.op_count; i++)
        FL_CHECK(x.t.ops[i].start_ns == (i ? x.t.ops[i - 1].end_ns : 0), "kernel %zu", i);
    end(&x);
    o.mean_us = 0.001; /* a ns at least */
    x = draw(&o);
    for (size_t i = 0; i < x.t.op_count; i++)
        FL_CHECK(within((double)(x.t.ops[i].end_ns - x.t.ops[i].start_ns), 1, 8), "kernel %zu", i);
    end(&x);
}

/* The host runs ahead: it launches each after its gap, and the GPU begins when it can. */
static void test_launches(void) {
    fl_synth_options o = fl_synth_standard, plain;
    o.kernels = 300, o.gap_us = 150, o.launches = true, o.streams = 2;
    plain = o;
    plain.launches = false;
    drawn x = draw(&o), y = draw(&plain);
    size_t waited = 0, idle = 0;
    CU_ASSERT_FATAL(x.t.has_launches && x.t.op_count == 300 && y.t.op_count == 300);
    for (size_t i = 0; i < 300; i++) {
        const fl_trace_op *a = &x.t.ops[i], *b = &y.t.ops[i];
        const bool first = i % 150 == 0;
        const int64_t gap = b->start_ns - (first ? 0 : b[-1].end_ns), host = first ? 0 : a[-1].launch_ns,
                      free = first ? 0 : a[-1].end_ns;
        FL_CHECK(a->kind == b->kind && a->end_ns - a->start_ns == b->end_ns - b->start_ns, "kernel %zu: the same", i);
        FL_CHECK(a->launch_ns == host + gap && a->host_thread == (int32_t)(i / 150), "kernel %zu: launched at %lld", i,
                 (long long)a->launch_ns);
        FL_CHECK(a->start_ns == (free > a->launch_ns ? free : a->launch_ns), "kernel %zu: begins at %lld", i,
                 (long long)a->start_ns);
        waited += free > a->launch_ns;
        idle += free < a->launch_ns;
    }
    FL_CHECK(waited > 20 && idle > 20, "%zu waited, the GPU waited for %zu", waited, idle);
    end(&x);
    end(&y);
}

/* As a workload, the kernels are those of the trace. */
static void test_workload(void) {
    fx_rig r;
    fx_open(&r, 2);
    fl_synth_options o = fl_synth_standard;
    o.kernels = 1001, o.streams = 3, o.gpus = 2, o.kinds = 6, o.sm_demand = 0.2, o.gap_us = 30;
    drawn x = draw(&o);
    fl_workload *w;
    FX_MUST(fl_synth_workload(&o, &r.spec, 7, &w, d));
    CU_ASSERT_FATAL(w->stream_count == 6 && w->class_count == 6 && w->op_count == 1001);
    FL_CHECK(!strcmp(w->name, "synth"), "%s", w->name);
    for (uint32_t i = 0; i < 6; i++) {
        const fl_class *c = &w->class[i];
        const fl_kind_load *l = &x.k.kind[i];
        const fl_load *m = &c->load;
        FL_CHECK(m->tc == l->tc && m->tm == l->tm && m->tl == l->tl && m->sharpness == l->sharpness &&
                     m->alpha == l->alpha && m->beta == l->beta && m->sm_demand == l->sm_demand,
                 "class %u: its load", i);
        FL_CHECK(m->ref_sm_mhz == 1000 && m->ref_mem_mhz == 800, "class %u: at the device's default clocks", i);
        FL_CHECK(!strcmp(c->kind.name, l->name) && c->kind.name_id == i &&
                     !memcmp(c->kind.grid, x.t.kinds[i].grid, sizeof c->kind.grid) &&
                     !memcmp(c->kind.block, x.t.kinds[i].block, sizeof c->kind.block),
                 "class %u: its shape", i);
    }
    size_t at = 0;
    for (uint32_t s = 0; s < 6; s++) {
        const fl_stream *stream = &w->stream[s];
        int64_t last = 0;
        FL_CHECK(stream->gpu == s / 3 && stream->process == 0 && stream->id == (int32_t)(s % 3) &&
                     stream->count == (s < 5 ? 167 : 166),
                 "stream %u: %d ops", s, (int)stream->count);
        for (uint64_t i = 0; i < stream->count && at < 1001; i++, at++) {
            int64_t gap, work;
            uint32_t id;
            const fl_trace_op *op = &x.t.ops[at];
            fl_workload_op(stream, i, &gap, &work, &id);
            FL_CHECK(id == op->kind && work == op->end_ns - op->start_ns && gap == op->start_ns - last,
                     "stream %u, op %d", s, (int)i);
            last = op->end_ns;
        }
    }
    fl_workload_free(w);
    o.kernels = 0;
    fl_diag d = {0};
    FL_CHECK(fl_synth_workload(&o, &r.spec, 7, &w, &d) == FL_BAD_INPUT && strstr(d.message, "--kernels 0"), "%s",
             d.message);
    end(&x);
    fx_close(&r);
}

/* ---- what is refused ---- */

static void test_ranges(void) {
    static const struct {
        const char *name;
        double min, max, below, above; /* the least and the most that are taken; what is not */
    } rows[] = {{"kernels", 1, 0, 0, 2000000001},
                {"kinds", 1, 0, 0, 65536},
                {"streams", 1, 256, 0, 257},
                {"gpus", 1, 1024, 0, 1025},
                {"mean-us", 0.001, 1e9, 0.0009, 1.1e9},
                {"gap-us", 0, 1e9, -1, 1.1e9},
                {"memory", 0, 1, -0.01, 1.01},
                {"sm-demand", 0, 1, -0.01, 1.01},
                {"burst", 1, 1e6, 0.99, 1.1e6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double value[] = {rows[i].min, rows[i].max, rows[i].below, rows[i].above};
        for (int k = 0; k < 4; k++) {
            if (k == 1 && rows[i].max <= 0) /* too many to be drawn here */
                continue;
            fl_synth_options o = fl_synth_standard;
            o.kernels = 3;
            double *const real[] = {NULL, NULL, NULL, NULL, &o.mean_us, &o.gap_us, &o.memory, &o.sm_demand, &o.burst};
            uint32_t *const whole[] = {NULL, &o.kinds, &o.streams, &o.gpus};
            if (i == 0)
                o.kernels = (uint64_t)value[k];
            else if (i < 4)
                *whole[i] = (uint32_t)value[k];
            else
                *real[i] = value[k];
            drawn x;
            fl_diag d = {0};
            const fl_status s = fl_synth_trace(&o, 1000, 800, &x.t, &x.k, &d);
            FL_CHECK(s == (k < 2 ? FL_OK : FL_BAD_INPUT), "%s %g: %d, %s", rows[i].name, value[k], s, d.message);
            if (k >= 2)
                FL_CHECK(strstr(d.message, rows[i].name) && strstr(d.message, "out of range, expected "), "%s: %s",
                         rows[i].name, d.message);
            FL_CHECK((s == FL_OK) == (x.t.op_count > 0) && (s == FL_OK) == (x.k.count > 0), "%s %g: what is left",
                     rows[i].name, value[k]);
            if (!s)
                end(&x);
        }
    }
}

/* ---- a mix ---- */

/* One process for each named kind, all of them busy for the whole time, with kernels within a fifth of the mean. */
static void test_mix(void) {
    fl_kind_load kind[] = {{.name = (char[]){"one"}, .phase = 1},
                           {.name = (char[]){"two"}, .phase = 0.5},
                           {.name = (char[]){"two"}, .phase = 0.5},
                           {.name = (char[]){"*"}, .phase = 1}};
    const fl_kinds kinds = {.kind = kind, .count = 4};
    fl_kernel_trace t;
    FX_MUST(fl_synth_mix(&kinds, 5, 0.01, 100, 1200, 400, &t, d));
    FL_CHECK(t.kind_count == 2 && !strcmp(t.names[t.kinds[0].name], "one") && !strcmp(t.names[t.kinds[1].name], "two"),
             "phases are one program, and '*' is none");
    FL_CHECK(!strcmp(fl_head_get(&t.head, "alone"), "1") && !strcmp(fl_head_get(&t.head, "sm_mhz"), "1200") &&
                 !strcmp(fl_head_get(&t.head, "mem_mhz"), "400") &&
                 !strcmp(fl_head_get(&t.head, "source"), "foldline synth, seed 5: drawn, not measured"),
             "recorded alone");
    size_t count[2] = {0};
    int64_t last[2] = {0};
    bool differ = false;
    for (size_t i = 0; i < t.op_count; i++) {
        const fl_trace_op *op = &t.ops[i];
        const int p = op->process;
        CU_ASSERT_FATAL(p == 0 || p == 1);
        const int64_t length = op->end_ns - op->start_ns;
        FL_CHECK(op->start_ns == last[p] && op->kind == (uint32_t)p && op->device == 0 && op->stream == 0 &&
                     op->launch_ns == INT64_MIN && op->bytes == -1 && op->host_thread == -1 && op->type == FL_OP_KERNEL,
                 "kernel %zu", i);
        FL_CHECK(length <= 120001 && (length > 80000 || op->end_ns == 10000000), "kernel %zu takes %lld ns", i,
                 (long long)length);
        last[p] = op->end_ns;
        differ |= i > 0 && length != t.ops[0].end_ns;
        count[p]++;
    }
    FL_CHECK(last[0] == 10000000 && last[1] == 10000000 && within((double)count[0], 90, 110) && differ,
             "%zu and %zu kernels", count[0], count[1]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            FL_CHECK(t.kinds[i].grid[k] == (k ? 1 : 256) && t.kinds[i].block[k] == (k ? 1 : 256), "its shape");
    fl_kernel_trace_free(&t);
    static const struct {
        double seconds, mean_us;
        bool fine;
    } rows[] = {{1e-6, 0.001, true},     {1e-6, 0.00099, false}, {0, 100, false},   {-1, 100, false},
                {1e6, 1e9, true},        {1.1e6, 1e9, false},    {1, 1.1e9, false}, {(double)NAN, 1, false},
                {1, (double)NAN, false}, {101, 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_diag d = {0};
        t = (fl_kernel_trace){.op_count = 9};
        const fl_status s = fl_synth_mix(&kinds, 1, rows[i].seconds, rows[i].mean_us, 1000, 800, &t, &d);
        FL_CHECK(s == (rows[i].fine ? FL_OK : FL_BAD_INPUT), "%g s of %g us: %d, %s", rows[i].seconds, rows[i].mean_us,
                 s, d.message);
        FL_CHECK((s == FL_OK) == (t.op_count > 0), "%g s of %g us: what is left", rows[i].seconds, rows[i].mean_us);
        if (!s)
            fl_kernel_trace_free(&t);
    }
    fl_diag d = {0};
    const fl_kinds none = {.kind = kind + 3, .count = 1};
    FL_CHECK(fl_synth_mix(&none, 1, 0.01, 100, 1000, 800, &t, &d) == FL_BAD_INPUT && strstr(d.message, "no named kind"),
             "%s", d.message);
}

/* ---- for ever ---- */

static void test_for_ever(void) {
    static const fl_synth_options options[] = {
        {.seed = 1,
         .kernels = 40,
         .kinds = 4,
         .streams = 1,
         .gpus = 1,
         .mean_us = 200,
         .gap_us = 5,
         .memory = 0.5,
         .sm_demand = 1,
         .burst = 4},
        {.seed = 7,
         .kernels = 40,
         .kinds = 3,
         .streams = 2,
         .gpus = 1,
         .mean_us = 9,
         .gap_us = 50,
         .memory = 0.34,
         .sm_demand = 0,
         .burst = 1},
    };
    static char text[16384];
    size_t used = 0;
    for (size_t n = 0; n < sizeof options / sizeof *options; n++) {
        drawn x = draw(&options[n]);
        for (uint32_t i = 0; i < x.k.count; i++) {
            const fl_kind_load *l = &x.k.kind[i];
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%zu,kind,%s,%u,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", n,
                                 l->name, x.t.kinds[i].grid[0], l->tc, l->tm, l->tl, l->alpha, l->beta, l->sm_demand);
        }
        for (size_t i = 0; i < x.t.op_count; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%zu,op,%u,%lld,%lld\n", n, x.t.ops[i].kind,
                                     (long long)x.t.ops[i].start_ns, (long long)x.t.ops[i].end_ns);
        end(&x);
    }
    CU_ASSERT_FATAL(used < sizeof text - 1);
    fl_golden_check("synth.csv", text);
}

FL_SUITE("synth", {"kinds", test_kinds}, {"kernels", test_kernels}, {"launches", test_launches},
         {"as a workload", test_workload}, {"ranges", test_ranges}, {"a mix", test_mix}, {"for ever", test_for_ever})
