/* The same policy, decided by the live host through its NVML reader on simulated GPUs in virtual time, and by `foldline
 * run --reader nvml`: not one decision may differ, on one GPU and on eight, with the time that the platform's calls
 * take. The activity records that it saw are the same, energy and makespan agree to 1e-6, the sets that reached the
 * driver are those of the log and the resets of the end, and the live log replays. Every policy of the registry whose
 * signals NVML has. Of every other the rehearsal says what is missing: it is not green where hardware would refuse. */
#include "harness/live/guard/guard.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/node/node.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

#define SAMPLES FL_ROOT "/traces/samples/"

typedef struct scene {
    const char *policy; /* NULL = whoever has no row of its own */
    const char *platform, *workload, *set;
} scene;

static const scene SCENES[] = {
    {"mf-gpoeo", "rtx3080ti", SAMPLES "mf-gpoeo.programs.csv --workload AI_I2T --seconds 60", ""},
    {"fixed", "rtx4070-laptop", SAMPLES "sweetspot-blackscholes.csv", "--set sm_mhz=1500"},
    /* With heat, as the driver always states a temperature, and the policy reads it. */
    {"gridpilot", "v100-300w", SAMPLES "gridpilot/e1.sweep.csv --model fitted --workload matmul --heat",
     "--target " SAMPLES "gridpilot/demand.csv"},
    {NULL, "rtx4070-laptop", SAMPLES "sweetspot-blackscholes.csv", ""},
};

static const scene *scene_of(const char *policy) {
    const scene *s = SCENES;
    while (s->policy && strcmp(s->policy, policy) != 0)
        s++;
    return s;
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return system(command);
}

static double number(const char *file, const char *key) {
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path(file), &size);
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    const cJSON *at = cJSON_GetObjectItem(tree, key);
    double value = cJSON_IsNumber(at) ? at->valuedouble : (double)NAN;
    cJSON_Delete(tree);
    free(text);
    return value;
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static size_t first(const size_t *until, size_t step) { return step ? until[step - 1] : 0; }

static bool same_kind(const fl_logged_kind *a, const fl_logged_kind *b) {
    return !strcmp(a->name, b->name) && !memcmp(a->grid, b->grid, sizeof a->grid) &&
           !memcmp(a->block, b->block, sizeof a->block);
}

/* Kinds have other numbers: a live host numbers them as they come. */
static bool same_kernels(const fl_decisions *a, const fl_decisions *b, size_t step) {
    const size_t i = first(a->kernels_until, step), k = first(b->kernels_until, step),
                 count = a->kernels_until[step] - i;
    bool equal = b->kernels_until[step] - k == count && a->lost[step] == b->lost[step];
    for (size_t n = 0; equal && n < count; n++) {
        const fl_logged_kernel *x = &a->kernel[i + n], *y = &b->kernel[k + n];
        equal = x->start_ns == y->start_ns && x->end_ns == y->end_ns && x->gpu == y->gpu && x->stream == y->stream &&
                same_kind(&a->kind[x->kind], &b->kind[y->kind]);
    }
    return equal;
}

/* Step by step as far as the simulation goes: the live host goes on when the work is done. */
static void compare(const char *policy, const fl_decisions *a, const fl_decisions *b) {
    const bool alike = a->step_count <= b->step_count && a->gpu_count == b->gpu_count &&
                       a->signal_count == b->signal_count && a->control_count == b->control_count &&
                       a->has_kernels == b->has_kernels;
    FL_CHECK(alike, "%s: %zu steps simulated, %zu live", policy, a->step_count, b->step_count);
    if (!alike)
        return;
    const size_t rows = a->gpu_count + 1;
    for (size_t i = 0; i < a->step_count; i++) {
        bool equal = a->t_ns[i] == b->t_ns[i] && a->delay_ns[i] == b->delay_ns[i];
        for (size_t k = i * rows * a->signal_count; equal && k < (i + 1) * rows * a->signal_count; k++)
            equal = same(a->value[k], b->value[k]) && a->fresh[k] == b->fresh[k];
        for (size_t k = i * rows * a->control_count; equal && k < (i + 1) * rows * a->control_count; k++)
            equal = same(a->set[k], b->set[k]);
        const bool kernels = !equal || !a->has_kernels || same_kernels(a, b, i);
        if (!equal || !kernels) {
            FL_CHECK(false, "%s: step %zu differs%s, %lld ns simulated, %lld live", policy, i,
                     kernels ? "" : " in its activity records", (long long)a->t_ns[i], (long long)b->t_ns[i]);
            return;
        }
    }
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(a); }

static size_t sets_of(const fl_decisions *r) {
    size_t sets = 0;
    for (size_t i = 0; i < r->step_count * (r->gpu_count + 1) * r->control_count; i++)
        sets += isnan(r->set[i]) ? 0 : 1;
    return sets;
}

/* ---- which policies ---- */

static bool on_nvml(const fl_policy *p) {
    const uint64_t reads = fl_vendor_reads("nvidia") | FL_BIT(FL_GPU_KERNELS);
    fl_signal_row row[FL_SIGNAL_ROWS_MAX];
    const fl_policy here = fl_policy_where(p, reads, row);
    const fl_reads asked = fl_reads_of(p);
    /* A policy that reads nothing sets CPU controls only if a parameter asks for it. */
    const bool fixed = !asked.gpu_needs && !asked.records;
    return !asked.server_needs && !(fl_reads_of(&here).gpu_needs & ~reads) && !(asked.host_needs & ~FL_HOST_KNOWS) &&
           (!p->host_drives || fixed);
}

/* ---- the sets that reached the driver ---- */

static size_t calls_made(void) {
    size_t size, calls = 0;
    char *text = fl_temp_slurp(fl_temp_path("live.json"), &size);
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    const cJSON *at;
    cJSON_ArrayForEach(at, cJSON_GetObjectItem(tree, "sets")) {
        const cJSON *call = cJSON_GetObjectItem(at, "call");
        calls += cJSON_IsString(call) && !strncmp(call->valuestring, "nvml", 4);
    }
    cJSON_Delete(tree);
    free(text);
    return calls;
}

static bool of_driver(const char *control) {
    return !strcmp(control, "sm_mhz") || !strcmp(control, "mem_mhz") || !strcmp(control, "power_limit_w");
}

/* Each set of the log, and for each GPU on which something was set one call for each control of the policy. */
static size_t calls_expected(const fl_decisions *r) {
    size_t calls = 0, controls = 0;
    bool touched[64] = {0};
    for (size_t c = 0; c < r->control_count; c++)
        controls += of_driver(r->control[c]);
    for (size_t i = 0; i < r->step_count; i++)
        for (uint32_t g = 0; g < r->gpu_count; g++)
            for (size_t c = 0; c < r->control_count; c++) {
                const double set = r->set[(i * (r->gpu_count + 1) + g + 1) * r->control_count + c];
                touched[g] |= !isnan(set);
                calls += !isnan(set) && of_driver(r->control[c]);
            }
    for (uint32_t g = 0; g < r->gpu_count; g++)
        calls += touched[g] ? controls : 0;
    return calls;
}

/* ---- one policy ---- */

static size_t compared;

static void one(const fl_policy *p, const scene *at, int gpus) {
    char folder[400];
    fl_decisions simulated = {0}, live = {0};
    fl_diag d = {0};
    snprintf(folder, sizeof folder, "%.300s", fl_temp_path(""));
    int status = shell("'%s' run %s --platform %s --gpus %d --policy %s %s --reader nvml --log '%s/run.csv' --json > "
                       "'%s/run.json' 2> '%s/err.txt'",
                       FL_PROGRAM, at->workload, at->platform, gpus, p->name, at->set, folder, folder, folder);
    FL_CHECK(status == 0, "%s does not run here: it needs a row in SCENES", p->name);
    if (status)
        return;
    const double end = number("run.json", "makespan_s");
    status =
        shell("FOLDLINE_STATE='%s/state' '%s' emulate %s --platform %s --gpus %d --time virtual --quiet --privileged "
              "--rings '%s/rings' -o '%s/live.json' -- '%s' live --policy %s %s --platform %s --control "
              "--min-set-ms 0 --for %.3fs --rings '%s/rings' -o '%s/live.csv' > '%s/out.txt' 2>&1",
              folder, FL_PROGRAM, at->workload, at->platform, gpus, folder, folder, FL_PROGRAM, p->name, at->set,
              at->platform, end + 1, folder, folder, folder);
    FL_CHECK(status == 0, "%s: status %d", p->name, status);
    fl_status s = fl_decisions_read(fl_temp_path("run.csv"), &simulated, &d);
    if (!s)
        s = fl_decisions_read(fl_temp_path("live.csv"), &live, &d);
    FL_CHECK(!s, "%s: %s", p->name, d.message);
    if (!s) {
        compare(p->name, &simulated, &live);
        compared += simulated.step_count;
        FL_CHECK(simulated.step_count > (gpus > 1 ? 2 : 100), "%s: %zu steps show nothing", p->name,
                 simulated.step_count);
        FL_CHECK(calls_made() == calls_expected(&live), "%s, %d GPUs: %zu set calls, expected %zu", p->name, gpus,
                 calls_made(), calls_expected(&live));
    }
    if (at->policy && !*at->set) /* one that is told what to set sets it once */
        FL_CHECK(sets_of(&live) > 2 && live.kernel_count > 1000, "%s: %zu sets, %zu kernels: shows nothing", p->name,
                 sets_of(&live), live.kernel_count);
    status = shell("'%s' verify '%s/live.csv' > '%s/out.txt' 2>&1 && '%s' verify '%s/run.csv' > '%s/out.txt'",
                   FL_PROGRAM, folder, folder, FL_PROGRAM, folder, folder); /* alone: its tables are in its head */
    FL_CHECK(status == 0, "%s: its log does not replay", p->name);
    FL_CHECK(near(end, number("live.json", "makespan_s")), "%s: %.9g s, live %.9g s", p->name, end,
             number("live.json", "makespan_s"));
    FL_CHECK(near(number("run.json", "energy_j"), number("live.json", "energy_j")), "%s: %.9g J, live %.9g J", p->name,
             number("run.json", "energy_j"), number("live.json", "energy_j"));
    fl_decisions_free(&simulated);
    fl_decisions_free(&live);
    shell("rm -rf '%s/state' '%s/rings'; rm -f '%s'/run.* '%s'/live.* '%s'/*.txt", folder, folder, folder, folder,
          folder);
}

static void test_every_policy(void) {
    size_t policies = 0;
    for (size_t i = 0; i + 1 < sizeof SCENES / sizeof *SCENES; i++) {
        bool known = false;
        for (size_t k = 0; k < fl_policies_count; k++)
            known = known || !strcmp(fl_policies[k]->name, SCENES[i].policy);
        FL_CHECK(known, "no policy %s for its scene", SCENES[i].policy);
    }
    char folder[400], workload[512];
    snprintf(folder, sizeof folder, "%.300s", fl_temp_path(""));
    CU_ASSERT_EQUAL_FATAL(
        shell("'%s' synth -o '%s/30s.csv' --kernels 1800 --mean-us 30000 --seed 3 > /dev/null", FL_PROGRAM, folder), 0);
    snprintf(workload, sizeof workload, "'%s/30s.csv'", folder);
    compared = 0;
    for (size_t i = 0; i < fl_policies_count; i++)
        if (on_nvml(fl_policies[i])) {
            const char *name = fl_policies[i]->name;
            const scene *own = scene_of(name), brief = {NULL, own->platform, workload, own->set};
            const bool seldom = !strcmp(name, "plan") || !strcmp(name, "polca"); /* decide each second or two */
            one(fl_policies[i], own->policy || seldom || fl_nightly() ? own : &brief, 1);
            policies++;
        }
    FL_CHECK(policies >= 13, "only %zu policies have their signals on NVML", policies);
    printf("%zu policies on 1 GPU, %zu steps ", policies, compared);
    fl_temp_remove();
}

static void test_eight_gpus(void) {
    char folder[400], workload[512];
    size_t policies = 0;
    snprintf(folder, sizeof folder, "%.300s", fl_temp_path(""));
    CU_ASSERT_EQUAL_FATAL(
        shell("'%s' synth -o '%s/w8.csv' --kernels 48000 --mean-us 30000 --seed 3 --gpus 8 --streams 8 > /dev/null",
              FL_PROGRAM, folder),
        0);
    compared = 0;
    for (size_t i = 0; i < fl_policies_count; i++)
        if (on_nvml(fl_policies[i]) && (i % 3 == 0 || fl_nightly())) {
            /* The driver always states a temperature; the simulation does with heat alone. */
            const bool warm = fl_reads_of(fl_policies[i]).gpu_uses & FL_BIT(FL_GPU_TEMP_C);
            snprintf(workload, sizeof workload, "'%s/w8.csv'%s", folder, warm ? " --heat" : "");
            const scene eight = {NULL, "rtx4070-laptop", workload, scene_of(fl_policies[i]->name)->set};
            one(fl_policies[i], &eight, 8);
            policies++;
        }
    printf("%zu policies on 8 GPUs, %zu steps ", policies, compared);
    fl_temp_remove();
}

/* What NVML lacks, the rehearsal lacks. */
static void test_what_is_missing(void) {
    char folder[400];
    snprintf(folder, sizeof folder, "%.300s", fl_temp_path(""));
    for (size_t i = 0; i < fl_policies_count; i++) {
        const fl_policy *p = fl_policies[i];
        const fl_reads asked = fl_reads_of(p);
        if (on_nvml(p) || asked.server_needs) /* without a server: tests/program/live_server.sh */
            continue;
        const int status = shell("FOLDLINE_STATE='%s/state' '%s' emulate " SAMPLES "sweetspot-blackscholes.csv "
                                 "--platform rtx4070-laptop --time virtual --quiet --privileged --rings '%s/rings' -- "
                                 "'%s' live --policy %s --control --for 3s --rings '%s/rings' > '%s/out.txt' 2>&1",
                                 folder, FL_PROGRAM, folder, FL_PROGRAM, p->name, folder, folder);
        size_t size;
        char *out = fl_temp_slurp(fl_temp_path("out.txt"), &size);
        const uint64_t reads = fl_vendor_reads("nvidia");
        const bool blind = (asked.gpu_needs || asked.host_needs) && !(asked.gpu_needs & reads);
        FL_CHECK(out && (strstr(out, "cannot be read here") || strstr(out, "cannot be set here") ||
                         strstr(out, "nothing to decide on here") || strstr(out, "needs the program's markers")),
                 "%s: says nothing of what is missing: %s", p->name, out ? out : "");
        FL_CHECK(!blind || WEXITSTATUS(status) == 3, "%s: status %d with nothing to decide on", p->name, status);
        free(out);
    }
    fl_temp_remove();
}

FL_SUITE("live_parity", {"every policy", test_every_policy}, {"eight GPUs", test_eight_gpus},
         {"what is missing", test_what_is_missing})
