/* The classes of a trace, by hand: the load of each kernel from its kind's row at the clock of its recording, or as it
 * is assumed; how many SMs a small grid can use; one class for each kind, clock and kind of device. */
#include "models/laws/laws.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/sim_fixture.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct rig {
    fx_rig fx;
    fl_kernel_trace t;
    fl_kinds k;
    fl_workload *w;
    int64_t now_ns;
} rig;

static void begin(rig *r, uint32_t sms, const char *sm_mhz, const char *mem_mhz) {
    *r = (rig){0};
    fx_open(&r->fx, 2);
    r->fx.spec.device->sms = sms;
    CU_ASSERT_FATAL((!sm_mhz || fl_head_set(&r->t.head, "sm_mhz", sm_mhz)) &&
                    (!mem_mhz || fl_head_set(&r->t.head, "mem_mhz", mem_mhz)));
}

/* One microsecond of it on a device. */
static void op(rig *r, const char *name, uint32_t blocks, uint16_t sm_mhz, int32_t device) {
    const fl_trace_op o = {.start_ns = r->now_ns,
                           .end_ns = r->now_ns + 1000,
                           .launch_ns = INT64_MIN,
                           .bytes = -1,
                           .kind = fl_trace_add_kind(&r->t, name, (uint32_t[]){blocks, 1, 1}, (uint32_t[]){32, 1, 1}),
                           .device = device,
                           .stream = 7,
                           .host_thread = -1,
                           .sm_mhz = sm_mhz,
                           .type = (uint8_t)fl_op_type_of(name)};
    FX_MUST(fl_trace_add_op(&r->t, &o));
    r->now_ns += 1000;
}

static fl_status build(rig *r, fl_kind_load *row, size_t rows, const char *assume, fl_diag *d) {
    r->k.kind = row;
    r->k.count = rows;
    const fl_build_options o = {.kinds = rows ? &r->k : NULL, .assume = assume};
    return fl_build_trace(&r->w, "trace", &r->t, &r->fx.spec, &o, d);
}

static void end(rig *r) {
    fl_workload_free(r->w);
    fl_kernel_trace_free(&r->t);
    fx_close(&r->fx);
}

static const fl_load *load(const rig *r, uint32_t id) { return &r->w->class[id].load; }

static fl_kind_load row_of(char *name, double tc, double tm, double tl) {
    return (fl_kind_load){.name = name,
                          .tc = tc,
                          .tm = tm,
                          .tl = tl,
                          .sharpness = 3,
                          .alpha = 0.7,
                          .beta = 0.4,
                          .sm_demand = 0.5,
                          .phase = 1,
                          .host_bound = NAN,
                          .host_alpha = NAN,
                          .host_upc = NAN,
                          .host_gb_s = NAN};
}

/* Shares that hold at 1200 and 400 MHz are others at the clocks of the recording: core-bound time goes as the one,
 * memory-bound time as the other. Where a row names no clocks they hold at those of the recording. */
static void test_rows(void) {
    static const struct {
        const char *sm, *mem; /* of the trace's head; NULL: the platform's defaults, 1000 and 800 */
        uint16_t own;         /* of the op */
        double row_sm, row_mem, f, m, tc, tm;
    } cases[] = {
        {NULL, NULL, 0, 0, 0, 1000, 800, 0.6, 0.3},
        {"1500", "400", 0, 0, 0, 1500, 400, 0.6, 0.3},
        {"1500", "400", 750, 0, 0, 750, 400, 0.6, 0.3},
        {NULL, NULL, 0, 1200, 400, 1000, 800, 0.6 * 1.2, 0.3 * 0.5},
        {"1500", NULL, 0, 1200, 0, 1500, 800, 0.6 * 0.8, 0.3},
        {"1500", "800", 600, 1200, 400, 600, 800, 0.6 * 2, 0.3 * 0.5},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        rig r;
        char name[] = "k";
        fl_kind_load row = row_of(name, 0.6, 0.3, 0.1);
        row.sm_mhz = cases[i].row_sm;
        row.mem_mhz = cases[i].row_mem;
        begin(&r, 20, cases[i].sm, cases[i].mem);
        op(&r, "k", 5, cases[i].own, 0);
        FX_MUST(build(&r, &row, 1, NULL, d));
        const fl_load *l = load(&r, 0);
        FL_CHECK(r.w->class_count == 1 && l->ref_sm_mhz == cases[i].f && l->ref_mem_mhz == cases[i].m &&
                     fx_near(l->tc, cases[i].tc, 1e-12) && fx_near(l->tm, cases[i].tm, 1e-12) && l->tl == 0.1 &&
                     l->sharpness == 3 && l->alpha == 0.7 && l->beta == 0.4 && l->sm_demand == 0.5,
                 "case %zu: at %g and %g: %g, %g, %g", i, l->ref_sm_mhz, l->ref_mem_mhz, l->tc, l->tm, l->tl);
        FL_CHECK(!r.w->assumed && !r.w->class[0].copy && !r.w->class[0].iteration && !r.w->class[0].part,
                 "case %zu: a kernel of a known kind", i);
        end(&r);
    }
}

/* One block keeps one SM: of a grid with fewer blocks than SMs the others stay free. */
static void test_demand(void) {
    static const struct {
        uint32_t sms, blocks;
        double demand;
    } cases[] = {{20, 5, 0.25}, {20, 19, 0.95}, {20, 20, 1}, {20, 21, 1}, {0, 5, 1}, {20, 0, 1}, {1, 1, 1}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int assumed = 0; assumed < 2; assumed++) {
            rig r;
            char name[] = "k";
            fl_kind_load row = row_of(name, 1, 0, 0);
            row.sm_demand = NAN;
            begin(&r, cases[i].sms, NULL, NULL);
            op(&r, "k", cases[i].blocks, 0, 0);
            FX_MUST(build(&r, &row, assumed ? 0 : 1, assumed ? "compute" : NULL, d));
            FL_CHECK(fx_near(load(&r, 0)->sm_demand, cases[i].demand, 1e-12), "case %zu: %g of the SMs", i,
                     load(&r, 0)->sm_demand);
            end(&r);
        }
}

static void test_assumed(void) {
    static const struct {
        const char *how;
        double tc, tm, alpha, beta;
    } cases[] = {{"compute", 1, 0.3, 1, 0.3}, {"memory", 0.5, 1, 0.5, 1}, {"balanced", 0.9, 0.9, 0.8, 0.8}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        rig r;
        char name[] = "k";
        fl_kind_load row = row_of(name, 1, 0, 0);
        begin(&r, 20, NULL, NULL);
        op(&r, "other", 5, 0, 0);
        op(&r, "k", 5, 0, 0);
        FX_MUST(build(&r, &row, 1, cases[i].how, d));
        const fl_load *l = load(&r, 0);
        FL_CHECK(r.w->assumed && l->tc == cases[i].tc && l->tm == cases[i].tm && l->tl == 0 &&
                     l->alpha == cases[i].alpha && l->beta == cases[i].beta && l->ref_sm_mhz == 1000,
                 "%s: %g, %g, %g, %g", cases[i].how, l->tc, l->tm, l->alpha, l->beta);
        FL_CHECK(load(&r, 1)->tc == 1 && load(&r, 1)->alpha == 0.7, "a kind that is known is not assumed");
        end(&r);
    }
    static const struct {
        const char *assume, *error;
    } refused[] = {{NULL, "nothing is known of how kernel 'other' depends on clocks"},
                   {"wrong", "--assume wrong: expected compute, memory or balanced"},
                   {"", "--assume : expected"}};
    for (size_t i = 0; i < COUNT(refused); i++) {
        rig r;
        fl_diag d = {0};
        begin(&r, 20, NULL, NULL);
        op(&r, "other", 5, 0, 0);
        FL_CHECK(build(&r, NULL, 0, refused[i].assume, &d) == FL_BAD_INPUT && strstr(d.message, refused[i].error), "%s",
                 d.message);
        end(&r);
    }
}

/* The row "*" describes every other kernel, but no copy: a copy, or a marker, takes its time whatever the clocks. */
static void test_others(void) {
    rig r;
    char any[] = "*", own[] = "k", copy[] = "[CUDA memcpy HtoD]";
    fl_kind_load rows[] = {row_of(any, 0.2, 0.8, 0), row_of(own, 1, 0, 0), row_of(copy, 0, 0.5, 0.5)};
    begin(&r, 20, NULL, NULL);
    op(&r, "k", 5, 0, 0);
    op(&r, "else", 5, 0, 0);
    op(&r, "[CUDA memcpy DtoH]", 0, 0, 0);
    op(&r, "[iteration]", 0, 0, 0);
    op(&r, "[CUDA memcpy HtoD]", 0, 0, 0);
    FX_MUST(build(&r, rows, 3, NULL, d));
    static const struct {
        double tc, tm, tl;
        bool copy, iteration;
    } want[] = {{1, 0, 0, false, false},
                {0.2, 0.8, 0, false, false},
                {0, 0, 1, true, false},
                {0, 0, 1, false, true},
                {0, 0.5, 0.5, true, false}};
    FL_CHECK(r.w->class_count == COUNT(want), "%u classes", r.w->class_count);
    for (uint32_t i = 0; i < COUNT(want) && i < r.w->class_count; i++)
        FL_CHECK(load(&r, i)->tc == want[i].tc && load(&r, i)->tm == want[i].tm && load(&r, i)->tl == want[i].tl &&
                     r.w->class[i].copy == want[i].copy && r.w->class[i].iteration == want[i].iteration,
                 "class %u: %g, %g, %g", i, load(&r, i)->tc, load(&r, i)->tm, load(&r, i)->tl);
    end(&r);
}

/* The same kernel again is of the same class; at another clock, or with another grid, it is of another, and on another
 * GPU of the same kind of the same. */
static void test_shared(void) {
    static const struct {
        uint32_t blocks;
        uint16_t mhz;
        int32_t device;
        uint32_t class_id;
    } ops[] = {{5, 0, 0, 0},   {5, 0, 0, 0}, {5, 700, 0, 1}, {6, 0, 0, 2}, {5, 700, 0, 1},
               {5, 800, 0, 3}, {5, 0, 0, 0}, {5, 700, 1, 1}, {6, 0, 1, 2}};
    rig r;
    char name[] = "k";
    fl_kind_load row = row_of(name, 1, 0, 0);
    begin(&r, 20, NULL, NULL);
    for (size_t i = 0; i < COUNT(ops); i++)
        op(&r, "k", ops[i].blocks, ops[i].mhz, ops[i].device);
    FX_MUST(build(&r, &row, 1, NULL, d));
    FL_CHECK(r.w->class_count == 4 && r.w->stream_count == 2, "%u classes, %u streams", r.w->class_count,
             r.w->stream_count);
    uint32_t group[4] = {FL_NONE, FL_NONE, FL_NONE, FL_NONE};
    size_t at[2] = {0, 0};
    for (size_t i = 0; i < COUNT(ops); i++) {
        int64_t gap, work;
        uint32_t id;
        fl_workload_op(&r.w->stream[ops[i].device], at[ops[i].device]++, &gap, &work, &id);
        uint32_t *of = &group[ops[i].class_id];
        FL_CHECK(work == 1000 && (*of == FL_NONE || *of == id), "op %zu: class %u, expected %u", i, id, *of);
        *of = id;
        FL_CHECK(load(&r, id)->ref_sm_mhz == (ops[i].mhz ? ops[i].mhz : 1000), "op %zu: at %g MHz", i,
                 load(&r, id)->ref_sm_mhz);
    }
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++)
            FL_CHECK(group[a] != group[b], "groups %d and %d share a class", a, b);
    end(&r);
}

/* A kernel in phases becomes an op for each, which together take as long; all but the last are parts of it. */
static void test_phases(void) {
    rig r;
    char name[] = "k";
    fl_kind_load rows[] = {row_of(name, 1, 0, 0), row_of(name, 0, 1, 0), row_of(name, 0, 0, 1)};
    static const double share[] = {0.25, 0.3333, 0.4167};
    static const int64_t want[] = {250, 333, 417};
    for (int i = 0; i < 3; i++)
        rows[i].phase = share[i];
    begin(&r, 20, NULL, NULL);
    op(&r, "k", 5, 0, 0);
    op(&r, "k", 5, 0, 0);
    FX_MUST(build(&r, rows, 3, NULL, d));
    FL_CHECK(r.w->class_count == 3 && r.w->stream[0].count == 6, "%u classes, %d ops", r.w->class_count,
             (int)r.w->stream[0].count);
    for (uint64_t i = 0; i < 6 && i < r.w->stream[0].count; i++) {
        int64_t gap, work;
        uint32_t id;
        fl_workload_op(&r.w->stream[0], i, &gap, &work, &id);
        FL_CHECK(id == i % 3 && work == want[i % 3] && gap == 0 && r.w->class[id].part == (i % 3 < 2),
                 "op %d: class %u for %d ns after %d", (int)i, id, (int)work, (int)gap);
    }
    end(&r);
}

FL_SUITE("build_classes", {"rows", test_rows}, {"demand", test_demand}, {"assumed", test_assumed},
         {"others", test_others}, {"shared", test_shared}, {"phases", test_phases})
