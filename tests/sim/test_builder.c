/* What a workload takes from a trace beside its ops. */
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/sim_fixture.h"

typedef struct rig {
    fx_rig fx;
    fl_kernel_trace t;
    fl_kinds k;
    fl_workload *w;
} rig;

static fl_build_options options(const rig *r) { return (fl_build_options){.windows = 3, .kinds = &r->k}; }

static void open_rig(rig *r, bool launches) {
    *r = (rig){0};
    fx_open(&r->fx, 2);
    fl_synth_options o = fl_synth_standard;
    o.kernels = 80, o.kinds = 4, o.gpus = 2, o.launches = launches;
    FX_MUST(fl_synth_trace(&o, 1000, 800, &r->t, &r->k, d));
    const fl_build_options b = options(r);
    FX_MUST(fl_build_trace(&r->w, "trace", &r->t, &r->fx.spec, &b, d));
}

static void close_rig(rig *r) {
    fl_workload_free(r->w);
    fl_kernel_trace_free(&r->t);
    fl_kinds_free(&r->k);
    fx_close(&r->fx);
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
    open_rig(&r, false);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const char *before = fl_head_get(&r.t.head, keys[k]);
            char kept_text[32];
            snprintf(kept_text, sizeof kept_text, "%s", before ? before : "2000");
            CU_ASSERT_FATAL(fl_head_set(&r.t.head, keys[k], rows[i].text));
            fl_workload *w = NULL;
            fl_diag d = {0};
            const fl_build_options b = options(&r);
            const fl_status s = fl_build_trace(&w, "trace", &r.t, &r.fx.spec, &b, &d);
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
    open_rig(&r, false);
    FL_CHECK(isnan(r.w->model_time_mape_pct) && isnan(r.w->model_power_mape_pct), "unsaid, it is not known");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int power = 0; power < 2; power++) {
            CU_ASSERT_FATAL(fl_head_set(&r.k.head, "model_time_mape_pct", power ? "7" : rows[i].text));
            CU_ASSERT_FATAL(fl_head_set(&r.k.head, "model_power_mape_pct", power ? rows[i].text : "7"));
            fl_workload *w;
            const fl_build_options b = options(&r);
            FX_MUST(fl_build_trace(&w, "trace", &r.t, &r.fx.spec, &b, d));
            const double pct = power ? w->model_power_mape_pct : w->model_time_mape_pct,
                         other = power ? w->model_time_mape_pct : w->model_power_mape_pct;
            FL_CHECK((isnan(rows[i].want) ? isnan(pct) : pct == rows[i].want) && other == 7,
                     "%s '%s': %g %%, the other %g %%", power ? "power" : "time", rows[i].text, pct, other);
            fl_workload_free(w);
        }
    close_rig(&r);
}

/* A platform that says how many launches a stream queues is believed; else it is 1,024. */
static void test_queue(void) {
    rig r;
    open_rig(&r, true);
    FL_CHECK(r.w->launch_queue == 1024 && !r.w->gaps_are_host, "%u launches", r.w->launch_queue);
    r.fx.spec.host.launch_queue = 7;
    fl_workload *w;
    const fl_build_options b = options(&r);
    FX_MUST(fl_build_trace(&w, "trace", &r.t, &r.fx.spec, &b, d));
    FL_CHECK(w->launch_queue == 7, "%u launches", w->launch_queue);
    fl_workload_free(w);
    close_rig(&r);
}

/* A trace of two devices does not fit a node of one GPU. */
static void test_too_many(void) {
    rig r;
    open_rig(&r, false);
    r.fx.spec.gpu_count = 1;
    fl_workload *w = NULL;
    fl_diag d = {0};
    const fl_build_options b = options(&r);
    FL_CHECK(fl_build_trace(&w, "trace", &r.t, &r.fx.spec, &b, &d) == FL_BAD_INPUT && !w, "two devices on one GPU: %s",
             d.message);
    r.fx.spec.gpu_count = 2;
    close_rig(&r);
}

FL_SUITE("builder", {"heads", test_heads}, {"errors of kinds", test_errors_of_kinds}, {"the launch queue", test_queue},
         {"too many devices", test_too_many})
