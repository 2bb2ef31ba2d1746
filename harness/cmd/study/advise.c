/* foldline advise: one clock, or one policy, for what somebody measured. */
#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/serving/serving.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "advise", "FILE|FOLDER... [--platform NAME] [--bound 5%]",
    "Names the clock with the least energy within a bound on the slowdown, from measurements, and says how sure it is.",
    "FILE is one of these: a sweep; logs (nvidia-smi, dcgmi, foldline record), each of a run at one "
    "clock; a recording of its kernels (Nsight Systems, rocprofv3, Kineto), with or without a log of that run; or an "
    "experiment, for which the command names the policy that saves most. Kernels, and logs at a single clock, need "
    "--platform, which says what other clocks do; of a program measured at one clock the ranges are no recommendation. "
    "Where no file says how kernels depend on clocks, the command makes "
    "all three assumptions in turn (compute, balanced, memory): the clock holds the bound under each, and the "
    "intervals span them.\n\n"
    "Logs of several programs, and several GPUs in a log, get a row each; they are never merged. The program is what "
    "the "
    "log's head says, else the file's name without the clock of its run (job@1050.csv, job_1050MHz.csv) and without "
    "words "
    "that name a setting (default, locked), else one program; --workload names it. A log that does not show a whole "
    "run "
    "is set aside, with the reason: it ends under load where others end idle, a lower clock is faster, or slower by "
    "more "
    "than the ratio of the clocks. The clock of a log that states none is that of the file's name, or of --sm-mhz. "
    "--common finds one clock for all.\n\n"
    "Savings are relative to the driver's default clock or, where no platform states that clock, to the highest clock "
    "measured. An interval reaches two standard deviations to either side; the fit states its own deviation. A clock "
    "is chosen only if the chance that it breaks the bound is at most --risk, or if that chance is unknown. The last "
    "lines are the commands that set the clock and undo it. \"measure next\" is the clock to measure next, until the "
    "best "
    "one was measured: the top clock, about 70 % of it, then what two laws through the measured rows choose. Of one "
    "run under assumptions it is the least known clock.\n\n"
    "Of a server and its requests, the command tries every number of servers up to --servers and every "
    "clock, and names the choice with the least energy that meets --ttft and --tbt: for the recorded requests, and, "
    "at --risk, for other arrivals and the error of the server's law. --bound has no effect there."};

#define BOUND_STANDARD 0.05
#define RISK_STANDARD 0.05
#define FEW 4              /* subjects whose own notes the terminal shows */
#define FASTER_PCT 3       /* repeated runs differ by less (harness/advise/alike.c) */
#define LEAST_CHANCE 0.001 /* no chance below it is printed as a number */

typedef struct advise_options {
    fl_advise_options files;
    fl_serving_choice serving;
    double bound, risk;
    bool json, common;
    const char *out;       /* the CSV to write; NULL = none */
    fl_setting_clocks one; /* the one setting for all, and what it saves of the energy of all together, % */
    double one_saves;
} advise_options;

/* ---- telling ---- */

static bool stays(const fl_advise_subject *of, const fl_advice *a) {
    return !of->cases || fl_stated_same(a->at, of->ref);
}

/* Whether the interval says how far the value may be off. Assumptions span one, however unsure each of them is. */
static bool is_known(const fl_advice_interval *x) { return x->high > x->low; }

/* "6.7 %, between 4.1 and 9.2", or "6.7 %, error unknown". No decimals where assumptions span tens of percent. */
static void print_interval(const char *what, const fl_advice_interval *x, bool assumed) {
    const int digits = assumed ? 0 : 1;
    if (is_known(x))
        printf("  %-20s %.*f %%, between %.*f and %.*f", what, digits, x->value, digits, x->low, digits, x->high);
    else
        printf("  %-20s %.*f %%, error unknown", what, digits, x->value);
}

/* The chance of a broken bound, of which at most two decimals are known; NAN where the error of the time is unknown. */
static double chance_of(const fl_advice *a) { return is_known(&a->slowdown) ? a->chance : (double)NAN; }

static fl_advise_commands commands_of(const fl_advise_subjects *s, const fl_advise_subject *of, const fl_advice *a) {
    fl_advise_commands c = {.set = ""};
    const int64_t gpu = of->gpu >= 0 ? of->gpu : s->gpu;
    fl_setting_clocks at = a->at;
    for (size_t i = 0; i < of->locks; i++)
        if (fabs(of->lock[i].ran_mhz - a->at.sm_mhz) < 0.5)
            at.sm_mhz = of->lock[i].set_mhz;
    if (a->at.sm_mhz > 0)
        c = fl_advise_commands_of(s->device, gpu, at,
                                  s->several_memories && fabs(a->at.mem_mhz - of->ref.mem_mhz) >= 0.5);
    if (a->at.limit_w > 0)
        fl_advise_add_limit(&c, s->device, gpu, a->at.limit_w, s->own_limit_w);
    return c;
}

static void print_line(const char *what, const char *text) {
    if (text && *text)
        printf("  %-20s %s\n", what, text);
}

/* "885 MHz", with the memory clock where that may be set too, and the limit where one is. Into buf; returns buf. */
static char *clocks_text(const fl_advise_subjects *s, fl_setting_clocks at, char *buf, size_t size) {
    int n = 0;
    if (at.sm_mhz > 0)
        n = s->several_memories ? snprintf(buf, size, "%g MHz, memory %g MHz", at.sm_mhz, at.mem_mhz)
                                : snprintf(buf, size, "%g MHz", at.sm_mhz);
    if (at.limit_w > 0)
        (void)snprintf(buf + n, size - (size_t)n, "%sa power limit of %g W", n ? " under " : "", at.limit_w);
    else if (!n)
        (void)snprintf(buf, size, "the board's own power limit");
    return buf;
}

/* Whether the model alone says what the setting does. */
static bool is_predicted(const fl_advise_subject *of, fl_setting_clocks at) {
    for (size_t i = 0; of->measured && i < of->of[0].stated.count; i++)
        if (fl_stated_same(of->of[0].stated.at[i], at))
            return !of->measured[i];
    return of->measured != NULL;
}

static void print_one(const fl_advise_subjects *s, const fl_advise_subject *of, const fl_advice *a,
                      const advise_options *o) {
    char at[96];
    const bool stay = stays(of, a);
    printf("%s: %s", of->name, clocks_text(s, a->at, at, sizeof at));
    if (stay) {
        printf(", as it is: no other setting saves energy and holds the bound of %g %% at a risk of %g %%\n",
               100 * o->bound, 100 * o->risk);
    } else {
        if (of->ref.sm_mhz > 0 && !(of->ref.limit_w > 0))
            printf(" instead of %g", of->ref.sm_mhz);
        else
            printf(" instead of %s", clocks_text(s, of->ref, at, sizeof at));
        const bool chosen = is_predicted(of, a->at), ref = is_predicted(of, of->ref);
        if (chosen || ref)
            printf(", %s not measured but predicted", !ref ? "the first" : chosen ? "both" : "the second");
        putchar('\n');
        const double chance = chance_of(a);
        print_interval("energy saved", &a->saving, of->cases > 1);
        putchar('\n');
        print_interval("slowdown", &a->slowdown, of->cases > 1);
        if (chance >= LEAST_CHANCE)
            printf("; the bound of %g %% breaks with a chance of %.1f %%\n", 100 * o->bound, 100 * chance);
        else if (chance >= 0)
            printf("; the bound of %g %% breaks with a chance of less than %g %%\n", 100 * o->bound,
                   100 * LEAST_CHANCE);
        else
            printf("; the bound of %g %% holds%s; the chance of that is unknown\n", 100 * o->bound,
                   of->cases > 1            ? " under every assumption"
                   : is_known(&a->slowdown) ? " by the model"
                                            : "");
    }
    if (of->cases > 1)
        printf("  range                over three assumptions: all kernels bound by compute, by memory, or by both%s\n",
               a->stated ? "" : "; the error of the platform's models is unknown");
    if (!isnan(a->measure.sm_mhz) && of->next_known)
        printf(
            "  measure next         a run at %s: it tells most of the clocks in between, or makes a prediction sure\n",
            clocks_text(s, a->measure, at, sizeof at));
    else if (!isnan(a->measure.sm_mhz))
        printf("  measure next         a run at %s%s: it would narrow the range most\n",
               clocks_text(s, a->measure, at, sizeof at), of->cases > 1 ? ", and one at the highest clock" : "");
    if (stay)
        return;
    const fl_advise_commands c = commands_of(s, of, a);
    print_line("set", c.set);
    print_line("undo", c.undo);
    print_line("note", c.note);
}

/* Whether nothing is to be undone for the workload, or the commands of another one undo it too. */
static bool is_undone(const fl_advise_subjects *s, const fl_advice *a, size_t i) {
    const fl_advise_commands mine = commands_of(s, &s->item[i], &a[i]);
    bool is = stays(&s->item[i], &a[i]);
    for (size_t k = 0; k < s->count; k++) {
        const fl_advise_commands c = commands_of(s, &s->item[k], &a[k]);
        is |= !stays(&s->item[k], &a[k]) && strstr(c.undo, mine.undo) && (strcmp(c.undo, mine.undo) != 0 || k < i);
    }
    return is;
}

/* Each command once, with the workloads that it is for. */
static void print_commands(const fl_advise_subjects *s, const fl_advice *a) {
    const char *note = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const fl_advise_commands c = commands_of(s, &s->item[i], &a[i]);
        bool told = stays(&s->item[i], &a[i]);
        for (size_t k = 0; k < i; k++)
            told |= !stays(&s->item[k], &a[k]) && !strcmp(commands_of(s, &s->item[k], &a[k]).set, c.set);
        if (told)
            continue;
        if (*c.set)
            printf("  set                  %s   for", c.set);
        for (size_t k = i, n = 0; *c.set && k < s->count; k++)
            if (!stays(&s->item[k], &a[k]) && !strcmp(commands_of(s, &s->item[k], &a[k]).set, c.set))
                printf("%s %s", n++ ? "," : "", s->item[k].name);
        if (*c.set)
            putchar('\n');
        note = c.note ? c.note : note;
    }
    for (size_t i = 0; i < s->count; i++) /* one that undoes the memory clock undoes the SM clock as well */
        if (!is_undone(s, a, i))
            print_line("undo", commands_of(s, &s->item[i], &a[i]).undo);
    print_line("note", note);
}

/* "6.7 [4.1, 9.2]", or "6.7, error unknown". */
static void add_cell(fl_grid *g, const fl_advice_interval *x) {
    if (is_known(x))
        fl_grid_add(g, "%.1f [%.1f, %.1f]", x->value, x->low, x->high);
    else
        fl_grid_add(g, "%.1f, error unknown", x->value);
}

static void add_row(fl_grid *g, const fl_advise_subjects *s, const fl_advise_subject *of, const fl_advice *a,
                    bool logs) {
    char at[96];
    const double chance = chance_of(a);
    fl_grid_add(g, "%s", of->name);
    if (!of->cases) {
        fl_grid_add(g, "unknown\t-\t-\t-");
    } else if (stays(of, a)) { /* nothing changes, so nothing is estimated */
        fl_grid_add(g, "%s, as it is\t0\t0\t-", clocks_text(s, a->at, at, sizeof at));
    } else {
        fl_grid_add(g, "%s%s", clocks_text(s, a->at, at, sizeof at), is_predicted(of, a->at) ? " *" : "");
        add_cell(g, &a->saving);
        add_cell(g, &a->slowdown);
        if (chance >= 0 && chance < LEAST_CHANCE)
            fl_grid_add(g, "<%g", 100 * LEAST_CHANCE);
        else if (chance >= 0)
            fl_grid_add(g, "%.1f", 100 * chance);
        else
            fl_grid_add(g, "-");
    }
    fl_grid_add(g, "%s", isnan(a->measure.sm_mhz) ? "-" : clocks_text(s, a->measure, at, sizeof at));
    if (!logs)
        return;
    fl_text t;
    FILE *files = fl_must(fl_text_open(&t));
    for (size_t i = 0; i < of->files; i++)
        fprintf(files, "%s%s", i ? ", " : "", s->folders ? of->file[i] : basename(of->file[i]));
    if (of->why)
        fprintf(files, "%s%s", of->files ? ": " : "", of->why);
    char *text = fl_must(fl_text_close(&t, NULL));
    fl_grid_add(g, "%s", text);
    free(text);
}

static void print_table(const fl_advise_subjects *s, const fl_advice *a, const advise_options *o) {
    char at[96];
    fl_grid g = {0};
    bool one = true, logs = false;
    for (size_t i = 0; i < s->count; i++) {
        one &= fl_stated_same(s->item[i].ref, s->item[0].ref);
        logs |= s->item[i].files || s->item[i].why;
    }
    fl_grid_column(&g, "workload", "what was measured");
    if (o->common)
        fl_grid_column(&g, "setting",
                       "the one setting for all, within the bound of %g %% and the risk of %g %% for each",
                       100 * o->bound, 100 * o->risk);
    else
        fl_grid_column(&g, "setting", "the best within the bound of %g %% and the risk of %g %%", 100 * o->bound,
                       100 * o->risk);
    fl_grid_column(&g, "saved %", "energy saved against %s, and its range",
                   one && s->item[0].cases ? clocks_text(s, s->item[0].ref, at, sizeof at)
                                           : "each workload's highest setting");
    fl_grid_column(&g, "slowdown %", "time above the same, and its range");
    fl_grid_column(&g, "break %", "chance that the bound breaks; - where the error is unknown");
    fl_grid_column(&g, "measure next", "a run there tells most");
    if (logs)
        fl_grid_column(&g, "rests on", "the logs of the program, or why nothing is known of other clocks");
    bool predicted = false;
    for (size_t i = 0; i < s->count; i++) {
        add_row(&g, s, &s->item[i], &a[i], logs);
        predicted |= s->item[i].cases && !stays(&s->item[i], &a[i]) && is_predicted(&s->item[i], a[i].at);
    }
    fl_grid_print(&g, 2, stdout);
    if (predicted)
        puts("  *             not measured but predicted");
    putchar('\n');
    print_commands(s, a);
}

/* What the numbers rest on with doubts: the first lines of the answer. */
static void tell_doubts(const fl_advise_subjects *s, FILE *to) {
    for (size_t i = 0; i < s->doubts; i++)
        fl_terminal_say(to, "note: %s", s->rests[i]);
    for (size_t i = 0; i < s->aside_count; i++)
        fl_terminal_say(to, "note: set aside: %s", s->aside[i]);
}

static void print_text(const fl_advise_subjects *s, const fl_advice *a, const advise_options *o) {
    size_t notes = 0;
    char at[96];
    tell_doubts(s, stdout);
    if (o->common)
        printf("all together: %s saves %.1f %% of the energy, by the values of the rows\n",
               clocks_text(s, o->one, at, sizeof at), o->one_saves);
    if (s->count == 1)
        print_one(s, &s->item[0], &a[0], o);
    else
        print_table(s, a, o);
    for (size_t i = s->doubts; i < s->rest_count; i++)
        printf("%s%s\n", i > s->doubts ? "                       " : "rests on               ", s->rests[i]);
    for (size_t i = 0; i < s->count; i++)
        notes += s->item[i].rest_count;
    if (s->count > FEW && notes)
        printf("                       %zu notes on single programs, which --json lists\n", notes);
    for (size_t i = 0; s->count <= FEW && i < s->count; i++)
        for (size_t k = 0; k < s->item[i].rest_count; k++)
            if (!fl_advise_rests(s, s->item[i].rests[k]))
                printf("                       %s: %s\n", s->item[i].name, s->item[i].rests[k]);
}

static double or_nan(double x) { return x > 0 ? x : (double)NAN; }

static void add_interval(cJSON *to, const char *key, const fl_advice_interval *x, bool known) {
    cJSON *at = cJSON_AddObjectToObject(to, key);
    fl_json_add_real(at, "value", x->value);
    fl_json_add_real(at, "low", known ? x->low : (double)NAN); /* null: the error is unknown */
    fl_json_add_real(at, "high", known ? x->high : (double)NAN);
}

/* null: there is none, or nothing is to be set. */
static void add_command(cJSON *to, const char *key, const char *command) {
    cJSON_AddItemToObject(to, key, *command ? cJSON_CreateString(command) : cJSON_CreateNull());
}

static cJSON *to_json(const fl_advise_subjects *s, const fl_advice *a, const advise_options *o) {
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "advice");
    fl_json_add_real(root, "bound", o->bound);
    fl_json_add_real(root, "risk", o->risk);
    for (size_t i = 0; i < s->count; i++) {
        const fl_advise_commands c = commands_of(s, &s->item[i], &a[i]);
        cJSON *w = cJSON_CreateObject();
        cJSON_AddItemToArray(list, w);
        cJSON_AddStringToObject(w, "workload", s->item[i].name);
        fl_json_add_real(w, "sm_mhz", or_nan(a[i].at.sm_mhz));
        fl_json_add_real(w, "mem_mhz", s->several_memories ? a[i].at.mem_mhz : (double)NAN);
        fl_json_add_real(w, "power_limit_w", or_nan(a[i].at.limit_w)); /* null: the board's own */
        fl_json_add_real(w, "reference_sm_mhz", or_nan(s->item[i].ref.sm_mhz));
        fl_json_add_real(w, "reference_mem_mhz", s->several_memories ? s->item[i].ref.mem_mhz : (double)NAN);
        fl_json_add_real(w, "reference_power_limit_w", or_nan(s->item[i].ref.limit_w));
        if (s->item[i].measured)
            cJSON_AddBoolToObject(w, "measured", !is_predicted(&s->item[i], a[i].at));
        const bool same = s->item[i].cases && stays(&s->item[i], &a[i]); /* nothing changes, which is certain */
        add_interval(w, "saving_pct", &a[i].saving, same || is_known(&a[i].saving));
        add_interval(w, "slowdown_pct", &a[i].slowdown, same || is_known(&a[i].slowdown));
        fl_json_add_real(w, "bound_break_chance", same ? a[i].chance : chance_of(&a[i]));
        if (s->item[i].why)
            cJSON_AddStringToObject(w, "why_unknown", s->item[i].why);
        if (s->item[i].files)
            fl_json_add_texts(w, "files", s->item[i].file, s->item[i].files);
        if (s->item[i].rest_count)
            fl_json_add_texts(w, "rests_on", s->item[i].rests, s->item[i].rest_count);
        cJSON *assumed = cJSON_AddArrayToObject(w, "assumed");
        for (size_t k = 0; k < s->item[i].cases; k++)
            if (s->item[i].of[k].assume)
                cJSON_AddItemToArray(assumed, cJSON_CreateString(s->item[i].of[k].assume));
        fl_json_add_real(w, "measure_sm_mhz", a[i].measure.sm_mhz);
        fl_json_add_real(w, "measure_mem_mhz", s->several_memories ? a[i].measure.mem_mhz : (double)NAN);
        const bool stay = stays(&s->item[i], &a[i]);
        add_command(w, "set", stay ? "" : c.set);
        add_command(w, "undo", stay ? "" : c.undo);
        if (c.note && !stay)
            cJSON_AddStringToObject(w, "note", c.note);
    }
    if (o->common)
        fl_json_add_real(root, "common_sm_mhz", or_nan(o->one.sm_mhz));
    if (o->common)
        fl_json_add_real(root, "common_saving_pct", o->one_saves);
    fl_json_add_texts(root, "rests_on", s->rests, s->rest_count);
    fl_json_add_texts(root, "set_aside", s->aside, s->aside_count);
    return root;
}

static cJSON *policy_json(const fl_advise_policy *p) {
    cJSON *root = cJSON_CreateObject();
    if (p->policy)
        cJSON_AddStringToObject(root, "policy", p->policy);
    else
        cJSON_AddNullToObject(root, "policy");
    fl_json_add_real(root, "bound", p->bound);
    add_interval(root, "saving_pct", &p->saving, isfinite(p->saving.low) && is_known(&p->saving));
    fl_json_add_real(root, "bound_break_chance", p->chance);
    fl_json_add_real(root, "worst_slowdown_pct", p->worst_slowdown_pct);
    cJSON_AddNumberToObject(root, "runs", (double)p->runs);
    return root;
}

static void print_policy(const fl_advise_policy *p) {
    if (!p->policy) {
        printf("none of the %zu policies holds the bound of %g %%: even the best one breaks it in %.0f %% of its %zu "
               "runs; keep the driver's default\n",
               p->policies, 100 * p->bound, 100 * p->chance, p->runs);
        return;
    }
    printf("%s\n", p->policy);
    print_interval("energy saved", &p->saving, false);
    printf(" (mean of %zu run%s)\n", p->runs, p->runs == 1 ? "" : "s");
    printf("  slowdown             at most %.1f %%; the bound of %g %% broke in %.0f %% of the runs\n",
           p->worst_slowdown_pct, 100 * p->bound, 100 * p->chance);
    printf("  set                  foldline live --policy '%s' --control\n  undo                 foldline restore\n",
           p->policy);
    printf("rests on               the experiment's workloads, simulated, and %zu policies\n", p->policies);
}

/* ---- the command ---- */

/* A server, or requests to one. */
static bool of_server(const fl_texts *files) {
    bool any = false;
    for (size_t i = 0; i < files->count; i++)
        any |= fl_file_is(files->item[i], FL_FILE_SERVING) || fl_file_is(files->item[i], FL_FILE_REQUESTS);
    return any;
}

static fl_status refuse_results(const fl_texts *files, fl_diag *d) {
    for (size_t i = 0; i < files->count; i++)
        if (fl_file_is(files->item[i], FL_FILE_RESULT))
            return fl_fail(d, FL_BAD_INPUT, files->item[i], 0, 0,
                           "is a result, expected what it was made from: a sweep, logs, a recording of kernels or an "
                           "experiment (foldline show, plot and report read results)");
    return FL_OK;
}

static bool is_experiment(const fl_texts *files) { return files->count == 1 && fl_is_experiment(files->item[0]); }

/* A lower clock that is faster may be a run of less work, which a sweep does not show. */
static void doubt(fl_advise_subjects *s, const fl_advise_subject *of, const fl_advice *a) {
    fl_advise_doubt(s, "%s: %g MHz is faster than %g MHz by %.1f %%, as of less work: this assumes equal work",
                    of->name, a->at.sm_mhz, of->ref.sm_mhz, -a->slowdown.value);
}

static fl_status write_rows(const advise_options *o, const cJSON *rows, fl_diag *d) {
    const fl_status s = fl_json_write_rows(o->out, rows, d);
    if (!s && !o->json)
        printf("written: %s\n", o->out);
    return s;
}

/* Advise a policy for the workloads of an experiment. */
static fl_status advise_policy(const char *experiment, const advise_options *o, fl_diag *d) {
    fl_advise_policy p;
    fl_status s = fl_advise_experiment(experiment, o->files.platform, o->bound, o->risk, &p, d);
    cJSON *rows = cJSON_CreateArray(), *row = s ? NULL : policy_json(&p);
    cJSON_AddItemToArray(rows, row);
    if (!s && o->json)
        fl_json_print(row, stdout);
    else if (!s)
        print_policy(&p);
    if (!s && o->out)
        s = write_rows(o, rows, d);
    cJSON_Delete(rows);
    fl_advise_policy_free(&p);
    return s;
}

static fl_status advise(const fl_texts *files, advise_options *o, fl_diag *d) {
    fl_advise_subjects subjects;
    o->bound = isinf(o->bound) ? BOUND_STANDARD : o->bound;
    o->files.bound = o->bound;
    fl_status s = fl_advise_open(files, &o->files, &subjects, d);
    if (s)
        return s;
    fl_advice *a = fl_must(calloc(subjects.count + 1, sizeof *a));
    if (o->common)
        s = fl_advise_common(&subjects, o->bound, o->risk, &o->one, &o->one_saves, d);
    for (size_t i = 0; !s && i < subjects.count; i++) {
        const fl_advise_subject *of = &subjects.item[i];
        const fl_advice_interval unknown = {NAN, NAN, NAN};
        a[i] = (fl_advice){{NAN, NAN, NAN}, unknown, unknown, NAN, false, {NAN, NAN, NAN}};
        if (of->cases && o->common)
            s = fl_advise_at(of->of, of->cases, of->ref, o->one, o->bound, &a[i], d);
        else if (of->cases)
            s = fl_advise(of->of, of->cases, of->ref, o->bound, o->risk, &a[i], d);
        if (!s && of->cases && a[i].at.sm_mhz < of->ref.sm_mhz && a[i].slowdown.value < -FASTER_PCT)
            doubt(&subjects, of, &a[i]);
        if (!s && of->next_known)
            a[i].measure = of->next;
    }
    if (s || o->json)
        tell_doubts(&subjects, stderr);
    cJSON *result = s ? NULL : to_json(&subjects, a, o);
    if (!s && o->json)
        fl_json_print(result, stdout);
    else if (!s)
        print_text(&subjects, a, o);
    if (!s && o->out)
        s = write_rows(o, cJSON_GetObjectItem(result, "advice"), d);
    cJSON_Delete(result);
    free(a);
    fl_advise_close(&subjects);
    return s;
}

int fl_cmd_advise(int argc, char **argv) {
    advise_options o = {.files = {.device = -1}, .bound = INFINITY, .risk = RISK_STANDARD};
    fl_texts files = {0};
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &o.files.platform, 0, 0,
         "platform, or a path to its file (see foldline list platforms)", FL_FOR_MACHINE | FL_MOST_USED},
        {"board", "NAME", FL_OPTION_TEXT, &o.files.board, 0, 0,
         "without --platform: the board whose SM clocks may be set, or output of nvidia-smi -q -x (the one that the "
         "files name, else steps of 15 MHz)",
         FL_FOR_MACHINE},
        {"bound", "X", FL_OPTION_SHARE, &o.bound, 0, 100,
         "largest slowdown allowed: 0.05 or 5% (" FL_AS_TEXT(BOUND_STANDARD) ", or the experiment's)",
         FL_FOR_POLICIES | FL_MOST_USED},
        {"risk", "P", FL_OPTION_SHARE, &o.risk, 1e-9, 1,
         "highest chance that the bound breaks (" FL_AS_TEXT(RISK_STANDARD) ")", FL_FOR_POLICIES | FL_MOST_USED},
        {"kinds", "FILE", FL_OPTION_TEXT, &o.files.kinds, 0, 0, "how kernel classes depend on clocks", FL_FOR_INPUT},
        {"device", "N", FL_OPTION_INT, &o.files.device, 0, 65535, "the GPU to set, and to read of logs with several",
         FL_FOR_INPUT},
        {"workload", "NAME", FL_OPTION_TEXT, &o.files.workload, 0, 0,
         "of a sweep: this workload alone; of logs: what ran in all of them", FL_FOR_INPUT},
        {"sm-mhz", "MHZ", FL_OPTION_TEXT, &o.files.clocks, 0, 0,
         "SM clock of logs that state none: one, or one for each (1050,1410)", FL_FOR_INPUT},
        {"common", NULL, FL_OPTION_FLAG, &o.common, 0, 0, "finds the one clock for all workloads",
         FL_FOR_POLICIES | FL_MOST_USED},
        FL_INTERVAL_OPTION(&o.files.interval_s),
        FL_SERVING_OPTIONS(o.serving),
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "writes a row for each workload as CSV", FL_FOR_OUTPUT},
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &files, &status))
        return status;
    fl_diag d = {0};
    fl_status s = refuse_results(&files, &d);
    const bool serves = fl_serving_choice_any(&o.serving) || of_server(&files);
    if (!s && (serves || is_experiment(&files)))
        s = fl_command_allow(option, FL_COUNT(option), false, "kinds board device interval workload sm-mhz common",
                             serves ? "on a server" : "on an experiment", &d);
    if (!s && serves) {
        if (isfinite(o.bound))
            s = fl_refuse(&d, "--bound has no effect on a server, expected --ttft or --tbt");
        if (!s)
            s = fl_advise_serving(&o.serving, &files, o.files.platform, o.risk, o.json, o.out, &d);
    } else if (!s && is_experiment(&files)) {
        s = advise_policy(files.item[0], &o, &d);
    } else if (!s) {
        s = advise(&files, &o, &d);
    }
    return fl_command_close("advise", s, &d, option, sizeof option / sizeof *option, &files);
}
