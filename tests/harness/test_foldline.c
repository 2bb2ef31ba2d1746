/* libfoldline: the same results as the program's own way, from a file and from arrays; what it refuses. */
#include "harness/foldline/foldline.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

#define SAMPLE FL_ROOT "/traces/samples/sweetspot-blackscholes.csv"

static foldline_scene *open_sample(void) {
    foldline_scene *s = NULL;
    foldline_error e;
    const foldline_options o = {.platform = "rtx4070-laptop"};
    FL_CHECK(!foldline_open(SAMPLE, &o, &s, &e), "%s", e.text);
    return s;
}

static foldline_result run(const foldline_scene *s, const char *policy, const fl_policy *own, double every_s) {
    foldline_result r;
    foldline_error e;
    const foldline_run_options o = {.policy = policy, .own = own, .every_s = every_s};
    FL_CHECK(!foldline_run(s, &o, &r, &e), "%s", e.text);
    return r;
}

/* The time line's energy is the result's: intervals of 0.5 s, and what is left behind the last one. */
static void test_file(void) {
    foldline_scene *s = open_sample();
    foldline_result r = run(s, "fixed:sm_mhz=1500", NULL, 0.5), d = run(s, NULL, NULL, 0);
    double sum = 0, last = 0;
    for (size_t i = 0; i < r.points; i++) {
        sum += r.point[i].power_w * (r.point[i].t_s - last);
        last = r.point[i].t_s;
        CU_ASSERT(r.point[i].gpu == 0 && r.point[i].limit_w == 75.9);
        CU_ASSERT(r.point[i].sm_mhz == 1500);
    }
    FL_CHECK(r.points > 2 && sum <= r.energy_j && sum > r.energy_j * (1 - 2 * 0.5 / r.time_s), "%zu points, %g of %g J",
             r.points, sum, r.energy_j);
    CU_ASSERT(r.energy_j < d.energy_j && r.time_s > d.time_s && d.points == 0 && d.point == NULL);
    CU_ASSERT(fabs(r.energy_j / r.time_s - r.mean_power_w) < 1e-9 * r.mean_power_w);
    foldline_result_free(&r);
    foldline_result_free(&d);
    double mhz[4] = {0};
    CU_ASSERT(foldline_clocks(s, mhz, 4) > 4 && mhz[0] < mhz[3]);
    foldline_close(s);
}

/* By hand: half of each kernel's time goes with the SM clock, at sharpness 9 the sum of ninth powers counts. */
static void test_arrays(void) {
    foldline_kernel k[100];
    for (int i = 0; i < 100; i++)
        k[i] = (foldline_kernel){"gemm", i * INT64_C(10000000), (i + 1) * INT64_C(10000000), 0, 0};
    const foldline_kind kind = {"gemm", .core = 0.5, .core_power = 0.5};
    const foldline_options o = {.platform = "v100-300w"};
    foldline_scene *s = NULL;
    foldline_error e;
    FL_CHECK(!foldline_open_kernels(k, 100, 1530, 877, &kind, 1, &o, &s, &e), "%s", e.text);
    foldline_result top = run(s, NULL, NULL, 0), low = run(s, "fixed:sm_mhz=765", NULL, 0);
    FL_CHECK(fabs(top.time_s - 1) < 1e-9, "%.12g s", top.time_s);
    /* until the lock takes effect, some ms of the run pass at the top clock */
    FL_CHECK(low.time_s < 1.5 && low.time_s > 1.45, "%.12g s", low.time_s);
    CU_ASSERT(top.kernels == 100);
    foldline_result_free(&top);
    foldline_result_free(&low);
    foldline_close(s);
}

/* A policy of the caller's is the same as by name. */
static void test_own(void) {
    foldline_scene *s = open_sample();
    size_t i = 0;
    while (strcmp(foldline_policy_name(i), "utilizscale") != 0)
        i++;
    foldline_result a = run(s, "utilizscale", NULL, 0), b = run(s, NULL, fl_policies[i], 0);
    CU_ASSERT(a.energy_j == b.energy_j && a.time_s == b.time_s && a.switches == b.switches);
    foldline_result_free(&a);
    foldline_result_free(&b);
    foldline_close(s);
    while (foldline_policy_name(i))
        i++;
    CU_ASSERT(i == fl_policies_count);
}

static void test_refusals(void) {
    static const struct {
        const char *file;
        foldline_options o;
        const char *says;
    } rows[] = {
        {SAMPLE, {.platform = NULL}, "no platform"},
        {SAMPLE, {.platform = "v100-3000w"}, "did you mean 'v100-300w'"},
        {FL_ROOT "/traces/samples/nosuch.csv", {.platform = "generic"}, "nosuch.csv: cannot open"},
        {FL_ROOT "/traces/samples/four-stages.pipeline.csv", {.platform = "generic"}, "expected a trace, a sweep"},
        {FL_ROOT "/traces/samples/powercap.programs.csv", {.platform = "k20xm-e5-2660"}, "expected the name of one"},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        foldline_scene *s = (foldline_scene *)1;
        foldline_error e;
        CU_ASSERT(foldline_open(rows[i].file, &rows[i].o, &s, &e) != FOLDLINE_OK && s == NULL);
        FL_CHECK(strstr(e.text, rows[i].says) != NULL, "%s, expected %s", e.text, rows[i].says);
    }
    static const struct {
        foldline_run_options o;
        const char *says;
    } runs[] = {{{.policy = "asure"}, "did you mean"},
                {{.policy = "fixed:sm_mhz=901"}, "not on the SM ladder"},
                {{.policy = "assure:theta=x"}, "is not a number"},
                {{.policy = "assure", .every_s = -1}, "expected 0 or 1e-9 to 1e9"},
                {{.policy = "assure", .every_s = 1e-12}, "expected 0 or 1e-9 to 1e9"},
                {{.policy = "assure", .every_s = NAN}, "expected 0 or 1e-9 to 1e9"}};
    foldline_scene *s = open_sample();
    for (size_t i = 0; i < FL_COUNT(runs); i++) {
        foldline_result r;
        foldline_error e;
        CU_ASSERT(foldline_run(s, &runs[i].o, &r, &e) == FOLDLINE_BAD_INPUT && e.status == FOLDLINE_BAD_INPUT);
        FL_CHECK(strstr(e.text, runs[i].says) != NULL, "%s, expected %s", e.text, runs[i].says);
        foldline_result_free(&r);
    }
    foldline_close(s);
    const foldline_kernel bad = {"gemm", 5, 4, 0, 0};
    const foldline_options o = {.platform = "generic", .assume = "compute"};
    CU_ASSERT(foldline_open_kernels(&bad, 1, 1500, 1000, NULL, 0, &o, &s, NULL) == FOLDLINE_BAD_INPUT && s == NULL);
    CU_ASSERT(foldline_open_kernels(NULL, 0, 1500, 1000, NULL, 0, &o, &s, NULL) == FOLDLINE_BAD_INPUT && s == NULL);
    const foldline_kernel good = {"gemm", 4, 5, 0, 0};
    static const foldline_kind kinds[] = {
        {"gemm", .core = NAN}, {"gemm", .core = 1.1}, {"gemm", .core = 0.5, .core_power = 1.1}, {NULL, .core = 0.5}};
    for (size_t i = 0; i < FL_COUNT(kinds); i++)
        CU_ASSERT(foldline_open_kernels(&good, 1, 1500, 1000, &kinds[i], 1, &o, &s, NULL) == FOLDLINE_BAD_INPUT &&
                  s == NULL);
}

FL_SUITE("foldline", {"file", test_file}, {"arrays", test_arrays}, {"own", test_own}, {"refusals", test_refusals})
