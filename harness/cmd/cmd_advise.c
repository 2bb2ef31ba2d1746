/* foldline advise: one clock, or one policy, for what somebody measured. */
#include "harness/advise/advise_experiment.h"
#include "harness/advise/advise_files.h"
#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/base/json_out.h"
#include "harness/cmd/commands.h"
#include "traces/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const fl_command_help help = {
    "advise", "FILE... [--platform NAME] [--bound 5%]",
    "One clock for what was measured: of least energy, within a bound on the slowdown, and how sure that is.",
    "FILE: a sweep; logs of one program (nvidia-smi, dcgmi, foldline record), each of a run at one clock; a recording "
    "of\n"
    "its kernels (Nsight Systems, rocprofv3, Kineto), with a log of that run or without; or an experiment, out of "
    "which\n"
    "the policy that saves most is named. Kernels, and logs at one clock alone, need --platform: it says what other\n"
    "clocks do. Where nobody says how kernels depend on clocks, all three ways of assuming it (compute, balanced,\n"
    "memory) are gone through: the clock holds the bound in each, and the intervals span them.\n\n"
    "Savings are against the driver's default clock, or, where no platform says which that is, the highest one "
    "measured.\n"
    "Intervals: two deviations to either side, as the fit states its own. A clock is taken only where the chance to "
    "break\n"
    "the bound is at most --risk, or where nobody states a chance. The last lines have the commands that set the clock\n"
    "and undo it, and of one workload which measurement would narrow it most."};

#define BOUND_STANDARD 0.05
#define RISK_STANDARD 0.05

typedef struct advise_options {
    fl_advise_options files;
    double bound, risk;
    bool json;
} advise_options;

/* ---- how one sets a clock ---- */

typedef enum vendor { NVIDIA, AMD, INTEL } vendor;

static vendor vendor_of(const char *device) {
    if (strcasestr(device, "amd") || strcasestr(device, "radeon") || strcasestr(device, "instinct"))
        return AMD;
    return strcasestr(device, "intel") || strcasestr(device, "data center gpu max") ? INTEL : NVIDIA;
}

static void set_commands(const fl_advise_subjects *s, fl_setting_clocks at, fl_setting_clocks ref, char *set,
                         char *undo, size_t size) {
    const bool memory = s->several_memories && fabs(at.mem_mhz - ref.mem_mhz) >= 0.5;
    switch (vendor_of(s->device)) {
    case AMD:
        (void)snprintf(set, size, "rocm-smi --setperfdeterminism %.0f", at.sm_mhz);
        (void)snprintf(undo, size, "rocm-smi --resetperfdeterminism");
        break;
    case INTEL:
        (void)snprintf(set, size, "xpu-smi config -d 0 -t 0 --frequencyrange %.0f,%.0f", at.sm_mhz, at.sm_mhz);
        (void)snprintf(undo, size,
                       "xpu-smi config -d 0 -t 0 --frequencyrange MIN,MAX (as it was: xpu-smi config -d 0)");
        break;
    case NVIDIA:
        (void)snprintf(set, size, "nvidia-smi -lgc %.0f,%.0f", at.sm_mhz, at.sm_mhz);
        (void)snprintf(undo, size, "nvidia-smi -rgc%s", memory ? " && nvidia-smi -rmc" : "");
        if (memory)
            (void)snprintf(set + strlen(set), size - strlen(set), " && nvidia-smi -lmc %.0f,%.0f", at.mem_mhz,
                           at.mem_mhz);
        break;
    }
}

/* ---- telling ---- */

static void print_one(const fl_advise_subjects *s, const fl_advise_subject *of, const fl_advice *a,
                      const advise_options *o) {
    char set[128], undo[128];
    const bool stay = fabs(a->at.sm_mhz - of->ref.sm_mhz) < 0.5 && fabs(a->at.mem_mhz - of->ref.mem_mhz) < 0.5;
    printf("%s: %g MHz", of->name, a->at.sm_mhz);
    if (s->several_memories)
        printf(", memory %g MHz", a->at.mem_mhz);
    if (stay) {
        printf(
            ", as it is: no other clock saves energy within %g %% of the time, with a chance of at most %g %% to break "
            "that\n",
            100 * o->bound, 100 * o->risk);
    } else {
        printf(" instead of %g\n", of->ref.sm_mhz);
        printf("  energy saved         %.1f %%, between %.1f and %.1f\n", a->saving.value, a->saving.low,
               a->saving.high);
        printf("  slowdown             %.1f %%, between %.1f and %.1f; ", a->slowdown.value, a->slowdown.low,
               a->slowdown.high);
        if (!isnan(a->chance))
            printf("the bound of %g %% breaks with a chance of %.1f %%\n", 100 * o->bound, 100 * a->chance);
        else
            printf("the bound of %g %% holds%s, with what chance nobody says\n", 100 * o->bound,
                   of->cases > 1 ? " whatever is assumed" : " by the model");
    }
    if (of->cases > 1)
        printf("  range                over kernels assumed to be bound by compute, by memory, or by both alike%s\n",
               a->stated ? "" : "; how wrong the platform's laws are, nobody says");
    else if (!stay && !(a->saving.high > a->saving.low))
        printf("  range                none: %s\n",
               a->stated ? "both clocks were measured" : "nobody says how wrong the model is");
    if (!isnan(a->measure.sm_mhz))
        printf("  measure next         a run at %g MHz%s: that would narrow it most\n", a->measure.sm_mhz,
               of->cases > 1 ? ", and one at the highest clock" : "");
    set_commands(s, a->at, of->ref, set, undo, sizeof set);
    if (!stay)
        printf("  set                  %s\n  undo                 %s\n", set, undo);
}

static void print_text(const fl_advise_subjects *s, const fl_advice *a, const advise_options *o) {
    static const char *const head[] = {"workload", "MHz",        "memory", "saving %",          "from",
                                       "to",       "slowdown %", "to",     "breaks the bound %"};
    if (s->count == 1) {
        print_one(s, &s->item[0], &a[0], o);
    } else {
        fl_grid g = FL_GRID_HEADED(head);
        for (size_t i = 0; i < s->count; i++) {
            fl_grid_add(&g, "%s", s->item[i].name);
            fl_grid_add(&g, "%g", a[i].at.sm_mhz);
            if (s->several_memories)
                fl_grid_add(&g, "%g", a[i].at.mem_mhz);
            else
                fl_grid_add(&g, "-");
            fl_grid_add(&g, "%.1f", a[i].saving.value);
            fl_grid_add(&g, "%.1f", a[i].saving.low);
            fl_grid_add(&g, "%.1f", a[i].saving.high);
            fl_grid_add(&g, "%.1f", a[i].slowdown.value);
            fl_grid_add(&g, "%.1f", a[i].slowdown.high);
            if (!isnan(a[i].chance))
                fl_grid_add(&g, "%.1f", 100 * a[i].chance);
            else
                fl_grid_add(&g, "n/a");
        }
        fl_grid_print(&g, 1, stdout);
        printf("\nenergy saved and slowdown against %g MHz, within a bound of %g %% and a risk of %g %%; for "
               "the first:\n",
               s->item[0].ref.sm_mhz, 100 * o->bound, 100 * o->risk);
        char set[128], undo[128];
        set_commands(s, a[0].at, s->item[0].ref, set, undo, sizeof set);
        printf("  set                  %s\n  undo                 %s\n", set, undo);
    }
    for (size_t i = 0; i < s->rest_count; i++)
        printf("%s%s\n", i ? "                       " : "rests on               ", s->rests[i]);
}

static void add_interval(cJSON *to, const char *key, const fl_interval *x) {
    cJSON *at = cJSON_AddObjectToObject(to, key);
    fl_json_add_real(at, "value", x->value);
    fl_json_add_real(at, "low", x->low);
    fl_json_add_real(at, "high", x->high);
}

static void print_json(const fl_advise_subjects *s, const fl_advice *a, const advise_options *o) {
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "advice");
    fl_json_add_real(root, "bound", o->bound);
    fl_json_add_real(root, "risk", o->risk);
    for (size_t i = 0; i < s->count; i++) {
        char set[128], undo[128];
        cJSON *w = cJSON_CreateObject();
        cJSON_AddItemToArray(list, w);
        cJSON_AddStringToObject(w, "workload", s->item[i].name);
        fl_json_add_real(w, "sm_mhz", a[i].at.sm_mhz);
        fl_json_add_real(w, "mem_mhz", s->several_memories ? a[i].at.mem_mhz : (double)NAN);
        fl_json_add_real(w, "reference_sm_mhz", s->item[i].ref.sm_mhz);
        fl_json_add_real(w, "reference_mem_mhz", s->several_memories ? s->item[i].ref.mem_mhz : (double)NAN);
        add_interval(w, "saving_pct", &a[i].saving);
        add_interval(w, "slowdown_pct", &a[i].slowdown);
        fl_json_add_real(w, "bound_break_chance", a[i].chance);
        cJSON *assumed = cJSON_AddArrayToObject(w, "assumed");
        for (size_t k = 0; k < s->item[i].cases; k++)
            if (s->item[i].of[k].assume)
                cJSON_AddItemToArray(assumed, cJSON_CreateString(s->item[i].of[k].assume));
        fl_json_add_real(w, "measure_sm_mhz", a[i].measure.sm_mhz);
        fl_json_add_real(w, "measure_mem_mhz", s->several_memories ? a[i].measure.mem_mhz : (double)NAN);
        set_commands(s, a[i].at, s->item[i].ref, set, undo, sizeof set);
        cJSON_AddStringToObject(w, "set", set);
        cJSON_AddStringToObject(w, "undo", undo);
    }
    cJSON *rests = cJSON_AddArrayToObject(root, "rests_on");
    for (size_t i = 0; i < s->rest_count; i++)
        cJSON_AddItemToArray(rests, cJSON_CreateString(s->rests[i]));
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

static void print_policy(const fl_advise_policy *p, bool json) {
    if (json) {
        cJSON *root = cJSON_CreateObject();
        if (p->policy)
            cJSON_AddStringToObject(root, "policy", p->policy);
        else
            cJSON_AddNullToObject(root, "policy");
        fl_json_add_real(root, "bound", p->bound);
        add_interval(root, "saving_pct", &p->saving);
        fl_json_add_real(root, "bound_break_chance", p->chance);
        fl_json_add_real(root, "worst_slowdown_pct", p->worst_slowdown_pct);
        cJSON_AddNumberToObject(root, "runs", (double)p->runs);
        fl_json_print(root, stdout);
        cJSON_Delete(root);
        return;
    }
    if (!p->policy) {
        printf("none of the %zu policies holds the bound of %g %%: the one that breaks it least does in %.0f %% of its "
               "%zu "
               "runs; leave the driver's default\n",
               p->policies, 100 * p->bound, 100 * p->chance, p->runs);
        return;
    }
    printf("%s\n", p->policy);
    printf("  energy saved         %.1f %%", p->saving.value);
    if (isfinite(p->saving.low))
        printf(", between %.1f and %.1f", p->saving.low, p->saving.high);
    printf(" (mean of %zu run%s)\n", p->runs, p->runs == 1 ? "" : "s");
    printf("  slowdown             at most %.1f %%; the bound of %g %% broke in %.0f %% of the runs\n",
           p->worst_slowdown_pct, 100 * p->bound, 100 * p->chance);
    printf("  set                  foldline live --policy '%s' --control\n  undo                 foldline restore\n",
           p->policy);
    printf("rests on               the experiment's workloads, simulated, and %zu policies\n", p->policies);
}

/* ---- the command ---- */

/* An experiment is a *.json that no reader knows as a recording. */
static bool is_experiment(const fl_texts *files) {
    const char *path = files->count == 1 ? files->item[0] : "";
    const size_t size = strlen(path);
    const fl_reader *reader = NULL;
    fl_diag ignored = {0};
    return size > 5 && !strcmp(path + size - 5, ".json") && fl_reader_find(path, NULL, &reader, &ignored) != FL_OK;
}

static fl_status advise(const fl_texts *files, advise_options *o, fl_diag *d) {
    fl_advise_subjects subjects;
    o->bound = isinf(o->bound) ? BOUND_STANDARD : o->bound;
    fl_status s = fl_advise_open(files, &o->files, &subjects, d);
    if (s)
        return s;
    fl_advice *a = calloc(subjects.count + 1, sizeof *a);
    if (!a)
        s = fl_no_memory(d, "the advice");
    for (size_t i = 0; !s && i < subjects.count; i++)
        s = fl_advise(subjects.item[i].of, subjects.item[i].cases, subjects.item[i].ref, o->bound, o->risk, &a[i], d);
    if (!s && o->json)
        print_json(&subjects, a, o);
    else if (!s)
        print_text(&subjects, a, o);
    free(a);
    fl_advise_close(&subjects);
    return s;
}

int fl_cmd_advise(int argc, char **argv) {
    advise_options o = {.files = {.device = -1}, .bound = INFINITY, .risk = RISK_STANDARD};
    fl_texts files = {0};
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &o.files.platform, 0, 0,
         "platform, or a path to its file (see foldline platforms)"},
        {"bound", "X", FL_OPTION_SHARE, &o.bound, 0, 100,
         "largest slowdown allowed: 0.05 or 5% (" FL_AS_TEXT(BOUND_STANDARD) ", or the experiment's)"},
        {"risk", "P", FL_OPTION_SHARE, &o.risk, 1e-9, 1,
         "highest chance that the bound breaks (" FL_AS_TEXT(RISK_STANDARD) ")"},
        {"kinds", "FILE", FL_OPTION_TEXT, &o.files.kinds, 0, 0, "how kinds of kernels depend on clocks"},
        {"device", "N", FL_OPTION_INT, &o.files.device, 0, 65535, "the GPU, where a log has several"},
        {"interval", "S", FL_OPTION_REAL, &o.files.interval_s, 1e-6, 1e6,
         "of rows without time stamps (dcgmi dmon -d)"},
        {"json", NULL, FL_OPTION_FLAG, &o.json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &files, &status))
        return status;
    fl_diag d = {0};
    fl_status s = FL_OK;
    if (is_experiment(&files)) {
        fl_advise_policy p;
        s = fl_advise_experiment(files.item[0], o.files.platform, o.bound, o.risk, &p, &d);
        if (!s)
            print_policy(&p, o.json);
        fl_advise_policy_free(&p);
    } else {
        s = advise(&files, &o, &d);
    }
    if (s)
        status = fl_command_fail("advise", &d);
    fl_command_end(option, sizeof option / sizeof *option, &files);
    return status;
}
