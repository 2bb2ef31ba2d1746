/* From files to workloads: what was recorded comes out again at the clocks of the recording. */
#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>
#include <unistd.h>

static const char *temporary(const char *name, const char *text) {
    static char path[4][256];
    static int which;
    char *p = path[which++ % 4];
    snprintf(p, sizeof path[0], "%s/fl-build-%d-%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), name);
    FILE *f = fopen(p, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
    return p;
}

static fl_status open_trace(const char *path, const char *platform, const char *kinds, const char *assume, fl_scenes *s,
                            fl_diag *d) {
    const char *item[1] = {path};
    fl_texts traces = {.item = item, .count = 1};
    fl_scene_options o = {.platform = platform, .kinds = kinds, .assume = assume};
    return fl_scenes_open(&o, &traces, s, d);
}

static fl_run_result run_default(const fl_scene *s) {
    fl_run_options o = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    fl_run_result r;
    fl_diag d = {0};
    FL_CHECK(fl_run(&o, &r, &d) == FL_OK, "%s", d.message);
    return r;
}

#define HEAD                                                                                                           \
    "# foldline-kernels 1\n# sm_mhz: 1500\n# mem_mhz: 1000\n"                                                          \
    "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z"
#define KINDS "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"

static void test_launches_sample(void) {
    fl_scenes s;
    fl_diag d = {0};
    FL_CHECK(open_trace(FL_ROOT "/traces/samples/launches.csv", "generic", NULL, NULL, &s, &d) == FL_OK, "%s",
             d.message);
    if (!s.count)
        return;
    const fl_workload *w = s.item[0]->w;
    CU_ASSERT_EQUAL(w->stream_count, 2);
    CU_ASSERT_EQUAL(w->thread_count, 1);
    CU_ASSERT_FALSE(w->gaps_are_host);
    fl_run_result r = run_default(s.item[0]);
    /* from the first launch at 5 us to the return of the last synchronisation at 5765 us; sharing rounds by ps */
    FL_CHECK(llabs((long long)r.makespan_ps - 5760000000LL) < 20000, "makespan %lld ps", (long long)r.makespan_ps);
    CU_ASSERT_EQUAL(r.kernels, 6);
    fl_run_result_free(&r);
    fl_scenes_free(&s);
}

/* Two kernels that each fill the GPU, recorded together for 2 ms: each is 1 ms of work. */
static void test_untangled(void) {
    const char *kinds = temporary("k.csv", KINDS "a,1,0,0,inf,1,0,1,,\n");
    const char *trace = temporary("t.csv", HEAD "\n0,0,0,0,2000000,a,1,1,1,1,1,1\n0,0,1,0,2000000,a,1,1,1,1,1,1\n");
    fl_scenes s;
    fl_diag d = {0};
    FL_CHECK(open_trace(trace, "generic", kinds, NULL, &s, &d) == FL_OK, "%s", d.message);
    if (!s.count)
        return;
    CU_ASSERT_TRUE(s.item[0]->w->untangled);
    CU_ASSERT_EQUAL(s.item[0]->w->stream[0].work_ns, 1000000);
    fl_run_result r = run_default(s.item[0]);
    FL_CHECK(llabs((long long)r.makespan_ps - 2000000000LL) < 10, "makespan %lld ps", (long long)r.makespan_ps);
    fl_run_result_free(&r);
    fl_scenes_free(&s);
    /* half a GPU each: nothing to untangle */
    kinds = temporary("k.csv", KINDS "a,1,0,0,inf,1,0,0.5,,\n");
    FL_CHECK(open_trace(trace, "generic", kinds, NULL, &s, &d) == FL_OK, "%s", d.message);
    CU_ASSERT_FALSE(s.item[0]->w->untangled);
    fl_scenes_free(&s);
}

/* Eleven kernels that each fill the GPU, beside each other from begin to end: each is an eleventh of the time in work,
 * to the nearest nanosecond. */
static void test_untangled_rounds(void) {
    static const struct { int ns, work_ns; } rows[] = {{110, 10}, {109, 10}, {105, 10}, {104, 9}, {103, 9}, {99, 9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *kinds = temporary("k.csv", KINDS "a,1,0,0,inf,1,0,1,,\n");
        char text[2048];
        int at = snprintf(text, sizeof text, HEAD "\n");
        for (int k = 0; k < 11; k++)
            at += snprintf(text + at, sizeof text - (size_t)at, "0,0,%d,0,%d,a,1,1,1,1,1,1\n", k, rows[i].ns);
        fl_scenes s;
        fl_diag d = {0};
        FL_CHECK(open_trace(temporary("t.csv", text), "generic", kinds, NULL, &s, &d) == FL_OK, "%s", d.message);
        CU_ASSERT_FATAL(s.count == 1 && s.item[0]->w->stream_count == 11);
        for (uint32_t k = 0; k < 11; k++)
            FL_CHECK(s.item[0]->w->stream[k].work_ns == rows[i].work_ns,
                     "%d ns: stream %u has %lld of work, expected %d", rows[i].ns, k,
                     (long long)s.item[0]->w->stream[k].work_ns, rows[i].work_ns);
        fl_scenes_free(&s);
    }
}

/* A copy takes no SMs, whatever is said of its kind: beside a kernel that fills the GPU both run as if alone. */
static void test_copy_beside(void) {
    static const struct {
        const char *name;
        bool untangled;
        int64_t work_ns;
    } rows[] = {{"[CUDA memcpy HtoD]", false, 2000000}, {"b", true, 1000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char kinds[512], trace[512];
        snprintf(kinds, sizeof kinds, KINDS "a,1,0,0,inf,1,0,1,,\n%s,1,0,0,inf,1,0,1,,\n", rows[i].name);
        snprintf(trace, sizeof trace, HEAD "\n0,0,0,0,2000000,a,1,1,1,1,1,1\n0,0,1,0,2000000,%s,1,1,1,1,1,1\n",
                 rows[i].name);
        fl_scenes s;
        fl_diag d = {0};
        FL_CHECK(open_trace(temporary("t.csv", trace), "generic", temporary("k.csv", kinds), NULL, &s, &d) == FL_OK,
                 "%s", d.message);
        CU_ASSERT_FATAL(s.count == 1 && s.item[0]->w->stream_count == 2);
        FL_CHECK(s.item[0]->w->untangled == rows[i].untangled && s.item[0]->w->stream[0].work_ns == rows[i].work_ns,
                 "beside %s: untangled %d, %lld ns of work", rows[i].name, s.item[0]->w->untangled,
                 (long long)s.item[0]->w->stream[0].work_ns);
        fl_scenes_free(&s);
    }
}

/* Kinds whose shares hold at other clocks than those of the recording. */
static void test_kinds_at_other_clocks(void) {
    const char *kinds = temporary("k.csv", KINDS "a,1,1,0,inf,1,1,1,750,1000\n");
    const char *trace = temporary("t.csv", HEAD "\n0,0,0,0,1000000,a,1,1,1,1,1,1\n");
    fl_scenes s;
    fl_diag d = {0};
    FL_CHECK(open_trace(trace, "generic", kinds, NULL, &s, &d) == FL_OK, "%s", d.message);
    if (!s.count)
        return;
    const fl_load *l = &s.item[0]->w->class[0].load;
    /* balanced at 750 MHz: at 1500 MHz the core term is half */
    FL_CHECK(fabs(l->tc - 0.5) < 1e-12 && fabs(l->tm - 1) < 1e-12, "tc %g tm %g", l->tc, l->tm);
    fl_scenes_free(&s);
}

static void test_unknown_kinds(void) {
    const char *trace = temporary("alone.csv", HEAD "\n0,0,0,0,1000000,a,1,1,1,1,1,1\n");
    fl_scenes s;
    fl_diag d = {0};
    CU_ASSERT_EQUAL(open_trace(trace, "generic", NULL, NULL, &s, &d), FL_BAD_INPUT);
    FL_CHECK(strstr(d.message, "--assume") != NULL, "%s", d.message);
    CU_ASSERT_EQUAL(open_trace(trace, "generic", NULL, "guess", &s, &d), FL_BAD_INPUT);
    CU_ASSERT_EQUAL(open_trace(trace, "generic", NULL, "memory", &s, &d), FL_OK);
    CU_ASSERT_TRUE(s.item[0]->w->assumed);
    fl_scenes_free(&s);
}

/* A launch also launches what has none behind it; before the first of its stream, ops were launched before the
 * recording began. */
static void test_partly_launched(void) {
    static const struct {
        const char *first, *second;
        size_t launches;
        uint32_t parts; /* of the first launch */
    } rows[] = {{"5,0", ",", 1, 1}, {",", "25,0", 2, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 HEAD ",launch_ns,host_thread\n0,0,0,10,20,a,1,1,1,1,1,1,%s\n0,0,0,30,40,a,1,1,1,1,1,1,%s\n",
                 rows[i].first, rows[i].second);
        fl_scenes s;
        fl_diag d = {0};
        CU_ASSERT_EQUAL_FATAL(open_trace(temporary("part.csv", text), "generic", NULL, "memory", &s, &d), FL_OK);
        const fl_thread *t = s.item[0]->w->thread;
        FL_CHECK(s.item[0]->w->thread_count == 1 && t->count == rows[i].launches && t->item[0].parts == rows[i].parts,
                 "row %zu: %zu launches, %u more ops by the first", i, t->count, t->item[0].parts);
        fl_scenes_free(&s);
    }
}

/* The same kernels as a trace and straight as a workload. */
static void test_synth_both_ways(void) {
    fl_synth_options o = fl_synth_standard;
    o.kernels = 3000;
    fl_diag d = {0};
    fl_platform p;
    FL_CHECK(fl_platform_open("generic", 0, &p, &d) == FL_OK, "%s", d.message);
    const fl_device *dev = &p.node.device[0];
    for (uint64_t seed = 1; seed < 4; seed++) {
        o.seed = seed;
        fl_kernel_trace t;
        fl_kinds k;
        fl_workload *a = NULL, *b = NULL;
        CU_ASSERT_EQUAL(fl_synth_trace(&o, dev->default_sm_mhz, dev->default_mem_mhz, &t, &k, &d), FL_OK);
        fl_build_options build = {.kinds = &k};
        FL_CHECK(fl_build_trace(&a, "trace", &t, &p.node, &build, &d) == FL_OK, "%s", d.message);
        FL_CHECK(fl_synth_workload(&o, &p.node, 20, &b, &d) == FL_OK, "%s", d.message);
        int64_t first, work; /* a trace begins with its first kernel, so the gap before that one is gone */
        uint32_t class_id;
        fl_workload_op(&b->stream[0], 0, &first, &work, &class_id);
        FL_CHECK(a->stream[0].work_ns == b->stream[0].work_ns && a->stream[0].span_ns == b->stream[0].span_ns - first,
                 "seed %llu: %lld and %lld ns", (unsigned long long)seed, (long long)a->stream[0].span_ns,
                 (long long)b->stream[0].span_ns);
        fl_workload_free(a);
        fl_workload_free(b);
        fl_kernel_trace_free(&t);
        fl_kinds_free(&k);
    }
    o.kernels = 0;
    fl_workload *none = NULL;
    CU_ASSERT_EQUAL(fl_synth_workload(&o, &p.node, 20, &none, &d), FL_BAD_INPUT);
    fl_platform_free(&p);
}

/* Kernels that shared a GPU, recorded as a profiler would see them, built into a workload again and replayed: the work
 * that comes out is the work that went in, and the replay takes the recorded time. */
static void test_recording_comes_back(void) {
    fl_synth_options o = fl_synth_standard;
    fl_diag d = {0};
    fl_platform p;
    FL_CHECK(fl_platform_open("generic", 0, &p, &d) == FL_OK, "%s", d.message);
    const fl_device *dev = &p.node.device[0];
    p.node.device[0].wall.period_ns = 0; /* a recording at one clock: the power limit would lower it */
    o.kernels = 800;
    o.streams = 4;
    o.sm_demand = 0; /* drawn between 0.2 and 1: scarce most of the time */
    for (o.seed = 1; o.seed <= 5; o.seed++) {
        fl_workload *w = NULL, *again = NULL;
        fl_rates *rates = NULL;
        fl_node *node = NULL;
        fl_kernel_trace empty, t = {0};
        fl_kinds kinds;
        const fl_kernel_record *record;
        size_t count = 0;
        CU_ASSERT_EQUAL(fl_synth_trace(&o, dev->default_sm_mhz, dev->default_mem_mhz, &empty, &kinds, &d), FL_OK);
        CU_ASSERT_EQUAL(fl_synth_workload(&o, &p.node, 20, &w, &d), FL_OK);
        CU_ASSERT_EQUAL(fl_rates_new(&rates, w, &p.node, &d), FL_OK);
        fl_node_options how = {.w = w, .rates = rates, .spec = &p.node, .seed = 1};
        CU_ASSERT_EQUAL(fl_node_open(&node, &how, &d), FL_OK);
        fl_node_records_free(node, 0, true); /* the recorder is no part of what is built anew */
        for (int64_t at = FL_PS_PER_S; !fl_node_done(node); at += FL_PS_PER_S)
            CU_ASSERT_EQUAL_FATAL(fl_node_advance(node, at, &d), FL_OK);
        CU_ASSERT_EQUAL(fl_node_take_records(node, &record, &count, &d), FL_OK);
        CU_ASSERT_EQUAL(count, 800);
        int64_t first = INT64_MAX;
        for (size_t i = 0; i < count; i++) {
            const fl_kernel_kind *k = &w->class[record[i].kind].kind;
            fl_trace_op op = {.start_ns = record[i].start_ns,
                              .end_ns = record[i].end_ns,
                              .launch_ns = INT64_MIN,
                              .bytes = -1,
                              .kind = fl_trace_add_kind(&t, k->name, k->grid, k->block),
                              .stream = (int32_t)record[i].stream,
                              .host_thread = -1};
            first = op.start_ns < first ? op.start_ns : first;
            CU_ASSERT_EQUAL(fl_trace_add_op(&t, &op), FL_OK);
        }
        fl_build_options build = {.kinds = &kinds};
        FL_CHECK(fl_build_trace(&again, "again", &t, &p.node, &build, &d) == FL_OK, "%s", d.message);
        CU_ASSERT_TRUE(again->untangled);
        fl_rates *rates2 = NULL;
        fl_facts facts;
        CU_ASSERT_EQUAL(fl_rates_new(&rates2, again, &p.node, &d), FL_OK);
        CU_ASSERT_EQUAL(fl_facts_make(&p.node, 1, &facts, &d), FL_OK);
        fl_run_options run = {.w = again, .rates = rates2, .spec = &p.node, .facts = &facts};
        fl_run_result r;
        FL_CHECK(fl_run(&run, &r, &d) == FL_OK, "%s", d.message);
        double recorded = (double)(fl_node_now(node) - first * FL_PS_PER_NS),
               error = (double)r.makespan_ps / recorded - 1;
        FL_CHECK(fabs(error) < 1e-5, "seed %llu: replay off by %g", (unsigned long long)o.seed, error);
        for (uint32_t i = 0; i < w->stream_count; i++) {
            double work = (double)again->stream[i].work_ns / (double)w->stream[i].work_ns - 1;
            FL_CHECK(fabs(work) < 1e-5, "seed %llu, stream %u: work off by %g", (unsigned long long)o.seed, i, work);
        }
        fl_run_result_free(&r);
        fl_facts_free(&facts);
        fl_rates_free(rates2);
        fl_workload_free(again);
        fl_kernel_trace_free(&t);
        fl_kernel_trace_free(&empty);
        fl_kinds_free(&kinds);
        fl_node_close(node);
        fl_rates_free(rates);
        fl_workload_free(w);
    }
    fl_platform_free(&p);
}

static fl_status open_sweep(const char *path, const char *platform, const char *model, const char *only, fl_scenes *s,
                            fl_diag *d) {
    const char *item[1] = {only};
    fl_texts none = {0};
    fl_scene_options o = {
        .platform = platform, .sweep = path, .model = model, .only = {.item = item, .count = only ? 1 : 0}};
    return fl_scenes_open(&o, &none, s, d);
}

#define SWEEP "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"

static void test_sweep_reproduced(void) {
    const char *path = temporary(
        "s.csv", SWEEP "w,,1530,877,,3,200,\nw,,952,877,,4,110,\nw,,1140,877,,3.5,130,\nw,,1140,877,,3.7,130,\n"
                       "x,,1530,877,,1,100,\nx,,952,877,,1,70,\n");
    fl_scenes s;
    fl_diag d = {0};
    FL_CHECK(open_sweep(path, "v100-300w", NULL, "x", &s, &d) == FL_OK, "%s", d.message);
    if (!s.count)
        return;
    CU_ASSERT_EQUAL(s.count, 1);
    CU_ASSERT_TRUE(s.item[0]->w->measured);
    CU_ASSERT_TRUE(s.item[0]->clipped);
    const fl_device *dev = &s.item[0]->platform.node.device[0];
    CU_ASSERT_EQUAL(dev->sm_mhz[0], 952);
    CU_ASSERT_EQUAL(dev->sm_mhz[dev->sm_count - 1], 1530);
    fl_run_result r = run_default(s.item[0]);
    FL_CHECK(r.makespan_ps == 1000000000000LL && fabs(r.energy_j - 100) < 1e-6, "%.9g s, %.9g J", r.makespan_s,
             r.energy_j);
    fl_run_result_free(&r);
    fl_scenes_free(&s);
    CU_ASSERT_EQUAL(open_sweep(path, "v100-300w", NULL, "y", &s, &d), FL_BAD_INPUT);
    CU_ASSERT_EQUAL(open_sweep(path, "v100-300w", "guess", NULL, &s, &d), FL_BAD_INPUT);
    CU_ASSERT_EQUAL(open_sweep(path, "a100", NULL, "x", &s, &d), FL_BAD_INPUT);
    FL_CHECK(strstr(d.message, "877") != NULL, "%s", d.message);
}

/* Every measured setting of the bundled sample, run at its clock, gives its time and energy. */
static void test_sample_settings(void) {
    fl_scenes s;
    fl_diag d = {0};
    FL_CHECK(open_sweep(FL_ROOT "/traces/samples/energyucb-528.pot3d.csv", "pvc-max1550x6", NULL, NULL, &s, &d) ==
                 FL_OK,
             "%s", d.message);
    if (!s.count)
        return;
    const struct {
        double mhz, time_s, energy_j;
    } row[] = {{800, 75.02, 128790}, {1100, 59.78, 123380}, {1600, 56.42, 131130}};
    for (size_t i = 0; i < 3; i++) {
        fl_scene *c = s.item[0];
        fl_run_options o = {
            .w = c->w, .rates = c->rates, .spec = &c->platform.node, .facts = &c->facts, .first_sm_mhz = row[i].mhz};
        fl_run_result r;
        FL_CHECK(fl_run(&o, &r, &d) == FL_OK, "%s", d.message);
        FL_CHECK(fabs(r.makespan_s / row[i].time_s - 1) < 1e-5 && fabs(r.energy_j / row[i].energy_j - 1) < 1e-5,
                 "%g MHz: %.9g s, %.9g J", row[i].mhz, r.makespan_s, r.energy_j);
        fl_run_result_free(&r);
    }
    fl_scenes_free(&s);
}

/* Every clock of that ladder was measured: what was measured stays, and there is no error to expect. */
static void test_fitted_model(void) {
    fl_scenes s;
    fl_diag d = {0};
    FL_CHECK(open_sweep(FL_ROOT "/traces/samples/energyucb-528.pot3d.csv", "pvc-max1550x6", "fitted", NULL, &s, &d) ==
                 FL_OK,
             "%s", d.message);
    if (!s.count)
        return;
    const fl_workload *w = s.item[0]->w;
    CU_ASSERT(!w->measured && w->predicted && !s.item[0]->clipped);
    FL_CHECK(isnan(w->model_time_mape_pct) && isnan(w->model_power_mape_pct), "errors %g and %g %%",
             w->model_time_mape_pct, w->model_power_mape_pct);
    fl_run_options o = {.w = w,
                        .rates = s.item[0]->rates,
                        .spec = &s.item[0]->platform.node,
                        .facts = &s.item[0]->facts,
                        .first_sm_mhz = 1100};
    fl_run_result r;
    FL_CHECK(fl_run(&o, &r, &d) == FL_OK && fabs(r.makespan_s / 59.78 - 1) < 1e-5 &&
                 fabs(r.energy_j / 123380 - 1) < 1e-4,
             "%s %.9g s, %.9g J", d.message, r.makespan_s, r.energy_j);
    fl_run_result_free(&r);
    fl_scenes_free(&s);
}

/* Three settings, and a law of as many terms: it meets them all, and expects errors between them. */
static void test_unseen_error(void) {
    fl_scenes s = {0};
    fl_diag d = {0};
    FL_CHECK(open_sweep(temporary("u.csv", SWEEP "a,,500,,,2.0,100,\na,,1000,,,1.5,150,\na,,1500,,,1.2,230,\n"),
                        "generic", "fitted", NULL, &s, &d) == FL_OK,
             "%s", d.message);
    if (s.count)
        FL_CHECK(s.item[0]->w->model_time_mape_pct > 0.5 && s.item[0]->w->model_power_mape_pct > 0.5,
                 "time error %g %%, power error %g %%", s.item[0]->w->model_time_mape_pct,
                 s.item[0]->w->model_power_mape_pct);
    fl_scenes_free(&s);
}

/* A sweep that was predicted says how well; a law fitted to it can only be worse. */
static void test_predicted_rows(void) {
    static const struct {
        const char *head, *model;
        double time_pct, power_pct; /* at least; NAN = not known; -1 = refused */
    } rows[] = {{"", "table", NAN, NAN},
                {"# foldline-sweep 1\n# model_time_mape_pct: 1.5\n# model_power_mape_pct: 2.5\n", "table", 1.5, 2.5},
                {"# foldline-sweep 1\n# model_time_mape_pct: 1.5\n# model_power_mape_pct: 2.5\n", "fitted", 1.5, 2.5},
                {"", "fitted", 0, 0},
                {"# foldline-sweep 1\n# model_time_mape_pct: much\n", "table", -1, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        fl_scenes s = {0};
        fl_diag d = {0};
        snprintf(text, sizeof text,
                 "%s" SWEEP "a,,500,,,2.0,100,\na,,700,,,1.5,120,\na,,900,,,1.2,150,\na,,1000,,,1.1,170,\n",
                 rows[i].head);
        const fl_status status = open_sweep(temporary("p.csv", text), "generic", rows[i].model, NULL, &s, &d);
        FL_CHECK((status == FL_OK) == !(rows[i].time_pct < 0), "%zu: %s", i, d.message);
        if (status == FL_OK) {
            const fl_workload *w = s.item[0]->w;
            const double time = w->model_time_mape_pct, power = w->model_power_mape_pct;
            if (isnan(rows[i].time_pct))
                FL_CHECK(isnan(time) && isnan(power), "%zu: %g and %g %%", i, time, power);
            else if (strcmp(rows[i].model, "table") == 0)
                FL_CHECK(fabs(time - 1.5) < 1e-9 && fabs(power - 2.5) < 1e-9, "%zu: %g and %g %%", i, time, power);
            else
                FL_CHECK(time > rows[i].time_pct && power > rows[i].power_pct, "%zu: %g and %g %%", i, time, power);
        }
        fl_scenes_free(&s);
    }
}

/* Phases of a kind become ops of their own behind one launch; waits are for the whole kernel; a copy of the head's
 * "alone" keeps what overlaps from being freed of sharing. */
static void test_phases(void) {
    static const char trace[] = HEAD ",launch_ns,host_thread,waits_for\n"
                                     "0,0,0,1000,10001000,f,1,1,1,32,1,1,500,0,\n"
                                     "0,0,1,10001000,12001000,g,1,1,1,32,1,1,600,0,0\n"
                                     "0,0,0,10001000,20001000,f,1,1,1,32,1,1,700,0,\n"
                                     "0,0,0,800,20001000,[sync],,,,,,,,0,\n";
    static const char kinds[] = "# foldline-kinds 1\n"
                                "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,phase,host_bound\n"
                                "f,1,0,0,9,1,0,0.2,,,0.2,0.9\nf,0,1,0,9,0,1,0.2,,,0.8,\ng,1,0,0,9,1,0,0.2,,,,\n";
    char path[256];
    fl_scenes scenes;
    fl_diag d = {0};
    snprintf(path, sizeof path, "%s", temporary("phases.csv", trace));
    FL_CHECK(open_trace(path, "generic", temporary("phases.kinds", kinds), NULL, &scenes, &d) == FL_OK, "%s",
             d.message);
    const fl_workload *w = scenes.item[0]->w;
    FL_CHECK(w->op_count == 5 && w->stream_count == 2 && w->stream[0].count == 4, "%llu ops",
             (unsigned long long)w->op_count);
    FL_CHECK(w->host_load_count == 1 && w->host_load[0].bound == 0.9, "%u host loads", w->host_load_count);
    const fl_run_result r = run_default(scenes.item[0]);
    FL_CHECK(r.kernels == 3, "%llu kernels", (unsigned long long)r.kernels);
    FL_CHECK(fabs(r.makespan_s - 0.020001) < 2e-6, "%.9g s, recorded 0.020001", r.makespan_s);
    fl_scene *s = scenes.item[0];
    s->platform.node.device[0].default_sm_mhz = 500; /* only the compute phase of f stretches: 3 x 2 + 8 ms each */
    const fl_run_result slow = run_default(s);
    FL_CHECK(fabs(slow.makespan_s - 0.028001) < 2e-5, "at a third of the clock %.9g s, expected 0.028",
             slow.makespan_s);
    fl_run_result copy = r, other = slow;
    fl_run_result_free(&copy);
    fl_run_result_free(&other);
    fl_scenes_free(&scenes);
}

static void test_alone(void) {
    static const char rows[] = "0,0,0,0,10000000,f,1,1,1,32,1,1\n0,1,0,0,10000000,f,1,1,1,32,1,1\n";
    static const char kinds[] = KINDS "f,1,0,0,9,1,0,1,,\n";
    for (int alone = 0; alone < 2; alone++) {
        char text[512], path[256];
        fl_scenes scenes;
        fl_diag d = {0};
        snprintf(text, sizeof text, "# foldline-kernels 1\n%s%s\n%s", alone ? "# alone: 1\n" : "",
                 HEAD + strlen("# foldline-kernels 1\n"), rows);
        snprintf(path, sizeof path, "%s", temporary("alone.csv", text));
        FL_CHECK(open_trace(path, "generic", temporary("alone.kinds", kinds), NULL, &scenes, &d) == FL_OK, "%s",
                 d.message);
        fl_run_result r = run_default(scenes.item[0]);
        FL_CHECK(fabs(r.makespan_s - (alone ? 0.02 : 0.01)) < 1e-6, "alone %d: %.9g s", alone, r.makespan_s);
        FL_CHECK(r.process_count == 2, "%zu processes", r.process_count);
        fl_run_result_free(&r);
        fl_scenes_free(&scenes);
    }
}

FL_SUITE("build", {"phases and host time of kinds", test_phases}, {"programs recorded alone", test_alone},
         {"the sample with launches takes its recorded time", test_launches_sample},
         {"recorded sharing is untangled", test_untangled}, {"to the nanosecond", test_untangled_rounds},
         {"a copy beside a kernel", test_copy_beside}, {"a recording comes back", test_recording_comes_back},
         {"kinds at other clocks", test_kinds_at_other_clocks},
         {"unknown kinds are refused or assumed", test_unknown_kinds}, {"a stream half launched", test_partly_launched},
         {"synth as trace and as workload", test_synth_both_ways}, {"a sweep becomes workloads", test_sweep_reproduced},
         {"every setting of the sample", test_sample_settings}, {"a model fitted to the rows", test_fitted_model},
         {"unseen error", test_unseen_error}, {"rows that were predicted", test_predicted_rows})
