/* The same policy, decided by the live host on a simulated GPU in virtual time and by `foldline run`: not one decision
 * may differ, and energy and makespan agree to 1e-6. Every built-in policy. */
#include "policies/registry.h"
#include "tests/suite.h"
#include "tests/temp_file.h"
#include "traces/tables.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>

#define TRACE FL_ROOT "/traces/samples/sweetspot-blackscholes.csv"
static const char PLATFORM[] = "rtx4070-laptop";

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

/* Step by step as far as the simulation goes: the live host goes on when the work is done. */
static void compare(const char *policy, const fl_decisions *a, const fl_decisions *b) {
    FL_CHECK(a->step_count <= b->step_count && a->gpu_count == b->gpu_count && a->signal_count == b->signal_count &&
                 a->control_count == b->control_count,
             "%s: %zu steps simulated, %zu live", policy, a->step_count, b->step_count);
    if (a->step_count > b->step_count || a->signal_count != b->signal_count || a->control_count != b->control_count)
        return;
    const size_t rows = a->gpu_count + 1;
    for (size_t i = 0; i < a->step_count; i++) {
        bool equal = a->t_ns[i] == b->t_ns[i] && a->delay_ns[i] == b->delay_ns[i];
        for (size_t k = i * rows * a->signal_count; equal && k < (i + 1) * rows * a->signal_count; k++)
            equal = same(a->value[k], b->value[k]) && a->fresh[k] == b->fresh[k];
        for (size_t k = i * rows * a->control_count; equal && k < (i + 1) * rows * a->control_count; k++)
            equal = same(a->set[k], b->set[k]);
        if (!equal) {
            FL_CHECK(false, "%s: step %zu differs, %lld ns simulated, %lld live", policy, i, (long long)a->t_ns[i],
                     (long long)b->t_ns[i]);
            return;
        }
    }
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(a); }

static void one(const fl_policy *p) {
    char folder[400];
    fl_decisions simulated = {0}, live = {0};
    fl_diag d = {0};
    snprintf(folder, sizeof folder, "%.300s", fl_temp_path(""));
    if (p->needs_records) {
        printf("\n    %s: needs kernel records, which the live host does not get from a simulated session", p->name);
        return;
    }
    if (shell("'%s' run '%s' --platform %s --policy %s --log '%s/run.csv' --json > '%s/run.json' 2> '%s/err.txt'",
              FL_PROGRAM, TRACE, PLATFORM, p->name, folder, folder, folder)) {
        printf("\n    %s: does not run here, see its parameters", p->name);
        return;
    }
    const double end = number("run.json", "makespan_s");
    int status =
        shell("FOLDLINE_STATE='%s/state' '%s' emulate '%s' --platform %s --time virtual --quiet --report "
              "'%s/live.json' -- '%s' live --policy %s --platform %s --control --for %.3fs --log '%s/live.csv' "
              "> '%s/out.txt' 2>&1",
              folder, FL_PROGRAM, TRACE, PLATFORM, folder, FL_PROGRAM, p->name, PLATFORM, end + 1, folder, folder);
    FL_CHECK(status == 0, "%s: status %d", p->name, status);
    fl_status s = fl_decisions_read(fl_temp_path("run.csv"), &simulated, &d);
    if (!s)
        s = fl_decisions_read(fl_temp_path("live.csv"), &live, &d);
    FL_CHECK(!s, "%s: %s", p->name, d.message);
    if (!s)
        compare(p->name, &simulated, &live);
    FL_CHECK(near(end, number("live.json", "makespan_s")), "%s: %.9g s, live %.9g s", p->name, end,
             number("live.json", "makespan_s"));
    FL_CHECK(near(number("run.json", "energy_j"), number("live.json", "energy_j")), "%s: %.9g J, live %.9g J", p->name,
             number("run.json", "energy_j"), number("live.json", "energy_j"));
    fl_decisions_free(&simulated);
    fl_decisions_free(&live);
    shell("rm -rf '%s/state'; rm -f '%s'/*.csv '%s'/*.json '%s'/*.txt", folder, folder, folder, folder);
}

static void test_every_policy(void) {
    for (size_t i = 0; i < fl_policies_count; i++)
        one(fl_policies[i]);
    fl_temp_remove();
}

FL_SUITE("live_parity", {"every policy", test_every_policy})
