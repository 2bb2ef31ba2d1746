/* A workload is completed from what was kept of it: the same where platform and kinds would make the same records, and
 * else not. */
#include "sim/outline.h"
#include "sim/synth.h"
#include "tests/support/sim_fixture.h"

typedef struct rig {
    fx_rig fx;
    fl_kernel_trace t;
    fl_kinds k;
    fl_workload *w;
    fl_outline outline;
} rig;

static fl_build_options options(const rig *r) { return (fl_build_options){.windows = 3, .kinds = &r->k}; }

/* streams 2: kernels share the GPU, so that the records hang on how they did. */
static void open_rig(rig *r, uint32_t streams, bool launches) {
    *r = (rig){0};
    fx_open(&r->fx, 2);
    fl_synth_options o = fl_synth_standard;
    o.kernels = 80, o.kinds = 4, o.streams = streams, o.gpus = 2, o.sm_demand = 0.8, o.launches = launches;
    FX_MUST(fl_synth_trace(&o, 1000, 800, &r->t, &r->k, d));
    const fl_build_options b = options(r);
    FX_MUST(fl_build_trace_outline(&r->w, &r->outline, "trace", &r->t, &r->fx.spec, &b, d));
}

static void close_rig(rig *r) {
    fl_outline_free(&r->outline);
    fl_workload_free(r->w);
    fl_kernel_trace_free(&r->t);
    fl_kinds_free(&r->k);
    fx_close(&r->fx);
}

/* Ops and host threads, as a file keeps them; the rest is to be made. */
static fl_workload *kept(const fl_workload *w) {
    fl_workload *c;
    FX_MUST(fl_workload_new(&c, "kept", d));
    c->op_count = w->op_count;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        const fl_stream *from = &w->stream[i];
        uint32_t at;
        FX_MUST(fl_workload_add_stream(c, from->gpu, from->process, from->id, &at, d));
        fl_stream *to = &c->stream[at];
        to->rec = fx_alloc(from->count, sizeof *to->rec);
        memcpy(to->rec, from->rec, from->count * sizeof *to->rec);
        to->big = fx_alloc(from->big_count, sizeof *to->big);
        for (size_t k = 0; k < from->big_count; k++)
            to->big[k] = from->big[k];
        to->count = to->room = from->count;
        to->big_count = to->big_room = from->big_count;
    }
    return c;
}

/* The trace without its ops. */
static fl_status complete(const rig *r, fl_workload *w, const fl_node_spec *node, bool *fits, fl_diag *d) {
    fl_kernel_trace head = r->t;
    head.ops = NULL;
    head.op_count = 0;
    const fl_build_options b = options(r);
    return fl_build_outline(w, &r->outline, &head, node, &b, fits, d);
}

static bool fits(const rig *r, fl_workload *w) {
    bool found = false;
    FX_MUST(complete(r, w, &r->fx.spec, &found, d));
    return found;
}

static bool fits_once(const rig *r) {
    fl_workload *w = kept(r->w);
    const bool found = fits(r, w);
    fl_workload_free(w);
    return found;
}

static void test_same(void) {
    for (uint32_t streams = 1; streams <= 2; streams++) {
        rig r;
        open_rig(&r, streams, false);
        fl_workload *w = kept(r.w);
        CU_ASSERT_FATAL(fits(&r, w));
        FL_CHECK(w->class_count == r.w->class_count && w->island_count == r.w->island_count &&
                     w->op_count == r.w->op_count && w->gpu_count == r.w->gpu_count &&
                     w->launch_queue == r.w->launch_queue && w->gaps_are_host == r.w->gaps_are_host,
                 "%u classes", w->class_count);
        for (uint32_t i = 0; i < w->class_count; i++) {
            const fl_load *a = &w->class[i].load, *b = &r.w->class[i].load;
            FL_CHECK(a->tc == b->tc && a->tm == b->tm && a->tl == b->tl && a->sm_demand == b->sm_demand &&
                         a->ref_sm_mhz == b->ref_sm_mhz && a->alpha == b->alpha &&
                         !strcmp(w->class[i].kind.name, r.w->class[i].kind.name),
                     "class %u", i);
        }
        for (uint32_t i = 0; i < w->stream_count; i++) {
            const fl_stream *a = &w->stream[i], *b = &r.w->stream[i];
            FL_CHECK(a->work_ns == b->work_ns && a->span_ns == b->span_ns && a->mark_count == b->mark_count &&
                         !memcmp(a->mark, b->mark, a->mark_count * sizeof *a->mark),
                     "stream %u: %lld ns", i, (long long)a->work_ns);
        }
        FL_CHECK(r.outline.device_count == 2 && r.outline.overlap == (streams > 1),
                 "it overlaps with two streams alone");
        fl_workload_free(w);
        close_rig(&r);
    }
}

/* What records hang on: each change is seen where it counts. */
static void test_other(void) {
    for (uint32_t streams = 1; streams <= 2; streams++) {
        rig r;
        open_rig(&r, streams, false);
        CU_ASSERT(fits_once(&r));
        for (int i = 0; i < 2; i++) {
            r.outline.digest[i] ^= 1;
            FL_CHECK(!fits_once(&r), "hash %d", i);
            r.outline.digest[i] ^= 1;
        }
        r.fx.spec.device->interference = 0.5;
        FL_CHECK(fits_once(&r) == (streams == 1), "%u streams: kernels that share lose more", streams);
        r.fx.spec.device->interference = 0;
        r.fx.spec.device->a_w *= 2;
        FL_CHECK(fits_once(&r), "%u streams: power is made anew", streams);
        r.k.kind[0].sm_demand *= 0.5;
        FL_CHECK(fits_once(&r) == (streams == 1), "%u streams: a kernel that takes less of the GPU", streams);
        close_rig(&r);
    }
}

/* A record that cannot have been built. */
static void test_odd(void) {
    rig r;
    open_rig(&r, 1, false);
    fl_workload *w = kept(r.w);
    w->stream[0].rec[3].class_id = r.w->class_count & 0xffff;
    FL_CHECK(!fits(&r, w), "a class that is not there");
    fl_workload_free(w);
    w = kept(r.w);
    w->stream[0].rec[3].class_id = (r.w->class_count - 1) & 0xffff;
    FL_CHECK(fits(&r, w), "the last class is");
    fl_workload_free(w);
    static const struct {
        uint32_t index, class_id;
        int64_t work_ns, gap_ns;
        bool fits;
    } rows[] = {{0, 0, 5000000000, 7, true},
                {1, 0, 5, 7, false},
                {0, 99, 5, 7, false},
                {0, 0, INT64_MAX, 0, false},
                {0, 0, 0, INT64_MAX, false},
                {0, 0, INT64_MAX, INT64_MAX, false},
                {0, 0, -1, 7, false},
                {0, 0, 5, -1, false},
                {0, 0, 0, 0, true},
                {0, 0, FL_DURATION_MAX_NS, FL_DURATION_MAX_NS, true},
                {0, 0, FL_DURATION_MAX_NS + 1, 7, false},
                {0, 0, 5, FL_DURATION_MAX_NS + 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w = kept(r.w);
        fl_stream *s = &w->stream[0];
        const fl_rec was = s->rec[3];
        free(s->big);
        s->big = fx_alloc(1, sizeof *s->big);
        s->big_count = s->big_room = 1;
        s->big[0] = (fl_big){rows[i].work_ns, rows[i].gap_ns, rows[i].class_id};
        s->rec[3] = fl_rec_escape(rows[i].index);
        FL_CHECK(fits(&r, w) == rows[i].fits, "row %zu", i);
        if (rows[i].fits)
            FL_CHECK(s->work_ns == r.w->stream[0].work_ns - was.work_ns + rows[i].work_ns &&
                         s->span_ns ==
                             r.w->stream[0].span_ns - was.work_ns - was.gap_ns + rows[i].work_ns + rows[i].gap_ns,
                     "row %zu: %lld ns", i, (long long)s->span_ns);
        fl_workload_free(w);
    }
    close_rig(&r);
}

/* A trace whose kernels are of one kind, in two phases of 0.3 and 0.7. Records hang on how long each phase is, the
 * first kind's as any other's. */
static void test_phases(void) {
    static const struct {
        double share[2];
        bool fits;
    } rows[] = {{{0.3, 0.7}, true}, {{0.7, 0.3}, false}, {{0.3, 0.6}, false}, {{0.2, 0.7}, false}};
    rig r = {0};
    fx_open(&r.fx, 2);
    fl_synth_options o = fl_synth_standard;
    o.kernels = 20, o.kinds = 1;
    FX_MUST(fl_synth_trace(&o, 1000, 800, &r.t, &r.k, d));
    CU_ASSERT_FATAL(r.k.count == 1);
    fl_kind_load both[2] = {r.k.kind[0], r.k.kind[0]}, *const one = r.k.kind;
    both[0].phase = 0.3, both[1].phase = 0.7;
    r.k.kind = both, r.k.count = 2;
    const fl_build_options b = options(&r);
    FX_MUST(fl_build_trace_outline(&r.w, &r.outline, "trace", &r.t, &r.fx.spec, &b, d));
    CU_ASSERT_FATAL(r.w->class_count == 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        both[0].phase = rows[i].share[0], both[1].phase = rows[i].share[1];
        FL_CHECK(fits_once(&r) == rows[i].fits, "row %zu", i);
    }
    r.k.kind = one, r.k.count = 1;
    close_rig(&r);
}

/* A stream whose ops take longer together than 64 bits hold cannot have been built, whatever the sum is before the op
 * with which it is too long: a ns below the most, the most itself. */
static void test_too_long(void) {
    enum { BIG = 100000, REST = (int)(INT64_MAX - BIG * FL_DURATION_MAX_NS) };
    rig r;
    open_rig(&r, 1, false);
    for (int last = 0; last < 3; last++) { /* ns of the last op, after one that reaches the most less 1 */
        fl_workload *w = kept(r.w);
        fl_stream *s = &w->stream[0];
        free(s->rec);
        free(s->big);
        s->rec = fx_alloc(BIG + 2, sizeof *s->rec);
        s->big = fx_alloc(BIG, sizeof *s->big);
        s->count = s->room = BIG + 2;
        s->big_count = s->big_room = BIG;
        for (int k = 0; k < BIG; k++) {
            s->big[k] = (fl_big){FL_DURATION_MAX_NS, 0, 0};
            s->rec[k] = fl_rec_escape((uint64_t)k);
        }
        s->rec[BIG] = fl_rec_of(REST - (last < 2), 0, 0);
        s->rec[BIG + 1] = fl_rec_of(1 + (uint64_t)(last == 1), 0, 0);
        bool found = false;
        fl_diag d = {0};
        const fl_status status = complete(&r, w, &r.fx.spec, &found, &d);
        FL_CHECK(last ? !status && !found : status || found, "%d: status %d, fits %d", last, status, found);
        fl_workload_free(w);
    }
    close_rig(&r);
}

static void test_too_many(void) {
    rig r;
    open_rig(&r, 1, false);
    fl_workload *w = kept(r.w);
    r.fx.spec.gpu_count = 1;
    bool found = true;
    fl_diag d = {0};
    FL_CHECK(complete(&r, w, &r.fx.spec, &found, &d) == FL_BAD_INPUT && !found, "two devices on one GPU: %s",
             d.message);
    r.fx.spec.gpu_count = 2;
    fl_workload_free(w);
    close_rig(&r);
}

/* Clocks in the head of a trace: above 0 and up to 100 GHz, and nothing behind the number. The law
 * of a device may still not reach so far. */
static void test_heads(void) {
    static const char *const keys[] = {"sm_mhz", "mem_mhz", "cpu_mhz"};
    static const struct {
        const char *text;
        bool fine;
    } rows[] = {{"0.5", true}, {"1e5", true}, {"900", true}, {"0", false},     {"-1", false},
                {"", false},   {"x", false},  {"9 ", false}, {"1.1e5", false}, {"nan", false}};
    rig r;
    open_rig(&r, 1, false);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const char *before = fl_head_get(&r.t.head, keys[k]);
            char kept_text[32];
            snprintf(kept_text, sizeof kept_text, "%s", before ? before : "2000");
            CU_ASSERT_FATAL(fl_head_set(&r.t.head, keys[k], rows[i].text));
            fl_workload *w = NULL;
            fl_outline outline = {0};
            fl_diag d = {0};
            const fl_build_options b = options(&r);
            const fl_status s = fl_build_trace_outline(&w, &outline, "trace", &r.t, &r.fx.spec, &b, &d);
            if (rows[i].fine)
                FL_CHECK(s == FL_OK || !strstr(d.message, "expected a clock"), "%s '%s': %s", keys[k], rows[i].text,
                         d.message);
            else
                FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, keys[k]) &&
                             strstr(d.message, "expected a clock in MHz") && d.line == 0 && d.column == 0,
                         "%s '%s': %d, %s", keys[k], rows[i].text, s, d.message);
            if (!s) {
                FL_CHECK(k < 2 || w->host_ref_mhz == strtod(rows[i].text, NULL), "the host's clock is %g MHz",
                         w->host_ref_mhz);
                fl_outline_free(&outline);
                fl_workload_free(w);
            }
            CU_ASSERT_FATAL(fl_head_set(&r.t.head, keys[k], kept_text));
        }
    close_rig(&r);
}

/* How wrong a fit says its kinds are reaches the workload; what is no share of at least 0 is not known. */
static void test_errors_of_kinds(void) {
    static const struct {
        const char *text;
        double want;
    } rows[] = {{"3.5", 3.5}, {"0", 0}, {"-1", NAN}, {"much", NAN}, {"", NAN}};
    rig r;
    open_rig(&r, 1, false);
    FL_CHECK(isnan(r.w->model_time_mape_pct) && isnan(r.w->model_power_mape_pct), "unsaid, it is not known");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int power = 0; power < 2; power++) {
            CU_ASSERT_FATAL(fl_head_set(&r.k.head, "model_time_mape_pct", power ? "7" : rows[i].text));
            CU_ASSERT_FATAL(fl_head_set(&r.k.head, "model_power_mape_pct", power ? rows[i].text : "7"));
            fl_workload *w;
            fl_outline outline;
            const fl_build_options b = options(&r);
            FX_MUST(fl_build_trace_outline(&w, &outline, "trace", &r.t, &r.fx.spec, &b, d));
            const double pct = power ? w->model_power_mape_pct : w->model_time_mape_pct,
                         other = power ? w->model_time_mape_pct : w->model_power_mape_pct;
            FL_CHECK((isnan(rows[i].want) ? isnan(pct) : pct == rows[i].want) && other == 7,
                     "%s '%s': %g %%, the other %g %%", power ? "power" : "time", rows[i].text, pct, other);
            fl_outline_free(&outline);
            fl_workload_free(w);
        }
    close_rig(&r);
}

/* A platform that says how many launches a stream queues is believed; else it is 1,024. */
static void test_queue(void) {
    rig r;
    open_rig(&r, 1, true);
    FL_CHECK(r.w->launch_queue == 1024 && !r.w->gaps_are_host, "%u launches", r.w->launch_queue);
    r.fx.spec.host.launch_queue = 7;
    fl_workload *w;
    fl_outline outline;
    const fl_build_options b = options(&r);
    FX_MUST(fl_build_trace_outline(&w, &outline, "trace", &r.t, &r.fx.spec, &b, d));
    FL_CHECK(w->launch_queue == 7, "%u launches", w->launch_queue);
    FL_CHECK(outline.rep && outline.rep_count && outline.device && outline.device_count,
             "an outline of what was built");
    fl_outline_free(&outline);
    FL_CHECK(!outline.rep && !outline.rep_count && !outline.device && !outline.device_count, "freed, it is empty");
    fl_outline_free(&outline); /* and may be freed again */
    fl_workload_free(w);
    close_rig(&r);
}

FL_SUITE("build_outline", {"heads", test_heads}, {"errors of kinds", test_errors_of_kinds},
         {"the launch queue", test_queue}, {"the same", test_same}, {"other platforms", test_other},
         {"odd records", test_odd}, {"phases", test_phases}, {"too long", test_too_long},
         {"too many devices", test_too_many})
