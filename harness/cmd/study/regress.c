/* `foldline regress`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/study/compare/compare.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/open/open.h"

#include <math.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fl_command_help help = {
    "regress",
    "BASELINE.json [--fail-if RULE ...] | EXPERIMENT.json --bless -o BASELINE.json | OLD.csv NEW.csv [--fail-if RULE "
    "...]",
    "Runs the experiment of a recorded baseline again and compares the results, or compares two results of compare or "
    "grid, row by row with the same policy and workload. If a gate fails, the command names it and ends with exit "
    "status 1.",
    "RULE: 'energy_j>+1%', 'makespan_s>+0.5%', 'energy_saving_pct<-0.2', 'energy_j!1%' (either way). A rule fails if "
    "the whole confidence interval of the change lies beyond it; the interval is paired over seeds and covers 95 % "
    "over all rows and rules together. The default rules are energy_j>+1%, makespan_s>+1% and violated>+0. A run that "
    "breaks a --bound which it held before fails violated>+0, and the message names the bound. A baseline keeps the "
    "bounds and --streams that it was recorded under. --bless records the present values and the rules, and shows what "
    "changed. The "
    "command refuses, with exit status 2, a baseline of another version, or one whose traces, platforms or tables have "
    "changed since."};

typedef struct regress {
    fl_gate_record old, now;
    fl_gate_rule *rule;
    size_t rules;
    fl_gate_result result;
    cJSON *provenance;
    bool is_baseline; /* else what was given is an experiment, or two results */
    char *experiment; /* its path; NULL: two results */
} regress;

typedef struct regress_options {
    fl_setup_options setup;
    fl_texts rest, fail_if;
    const char *out, *junit;
    bool bless, all, json;
} regress_options;

static fl_status parse_rules(regress *g, const char *const *text, size_t count, fl_diag *d) {
    fl_status s = FL_OK;
    g->rule = fl_must(calloc(count + 1, sizeof *g->rule));
    for (size_t i = 0; !s && i < count; i++, g->rules += !s)
        s = fl_gate_parse(text[i], &g->rule[i], d);
    return s;
}

/* The metrics of the rules, each once. */
static void set_metrics(const regress *g, fl_gate_record *r) {
    r->metric = fl_must(calloc(g->rules + 1, sizeof *r->metric));
    r->fail_if = fl_must(calloc(g->rules + 1, sizeof *r->fail_if));
    for (size_t i = 0; i < g->rules; i++) {
        size_t k = 0;
        while (k < r->metric_count && strcmp(r->metric[k], g->rule[i].metric) != 0)
            k++;
        if (k == r->metric_count)
            r->metric[r->metric_count++] = fl_must(strdup(g->rule[i].metric));
        r->fail_if[r->fail_if_count++] = fl_must(strdup(g->rule[i].text));
    }
}

/* A bound that is asked for is a gate, though no rule says so. */
static fl_status add_violated(regress *g, const fl_texts *bounds, fl_diag *d) {
    bool there = !bounds->count;
    for (size_t i = 0; i < g->rules; i++)
        there |= !strcmp(g->rule[i].metric, "violated");
    if (there)
        return FL_OK;
    g->rule = fl_must(realloc(g->rule, (g->rules + 1) * sizeof *g->rule));
    const fl_status s = fl_gate_parse("violated>+0", &g->rule[g->rules], d);
    g->rules += !s;
    return s;
}

/* The rules asked for, else the baseline's own, else the standard ones; and what they are about. */
static fl_status choose_rules(regress *g, const fl_texts *asked, const fl_texts *bounds, fl_diag *d) {
    static const char *const standard[] = {"energy_j>+1%", "makespan_s>+1%", "violated>+0"};
    fl_status s = asked->count     ? parse_rules(g, asked->item, asked->count, d)
                  : g->is_baseline ? parse_rules(g, (const char *const *)g->old.fail_if, g->old.fail_if_count, d)
                                   : parse_rules(g, standard, FL_COUNT(standard), d);
    if (!s)
        s = add_violated(g, bounds, d);
    if (!s)
        set_metrics(g, &g->now);
    return s;
}

/* The bounds of the run, path being of the record: those asked for, and the recorded ones on other columns. They are
 * what a new record keeps. */
static fl_status choose_bounds(regress *g, const char *path, fl_texts *bounds, fl_diag *d) {
    const fl_texts recorded = {.item = (const char **)g->old.bound, .count = g->old.bound_count};
    fl_promises all = {0}, own = {0};
    double slowdown = INFINITY, share = INFINITY;
    char text[FL_PROMISE_TEXT];
    fl_status s = fl_promises_parse(bounds, &all, &slowdown, d);
    fl_diag wrong = {0};
    if (!s && fl_promises_parse(&recorded, &own, &share, &wrong))
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "bounds: %s", wrong.message);
    if (!s)
        s = fl_promises_add(&own, share, &all, &slowdown, d);
    g->now.bound = fl_must(calloc(FL_PROMISES_MAX + 1, sizeof *g->now.bound));
    bounds->count = 0;
    for (size_t bit = isfinite(slowdown) ? 0U : 1U; !s && bit <= all.count; bit++) {
        char *name = fl_must(strdup(fl_promises_name(&all, slowdown, bit, text)));
        g->now.bound[g->now.bound_count++] = name;
        s = fl_texts_add(bounds, name, d);
    }
    return s;
}

/* baseline: the record's path where the runs are to be compared with it; NULL = they make a new one. */
static fl_status run_experiment(regress *g, const char *baseline, fl_setup_options *so, const fl_option *option,
                                size_t count, fl_diag *d) {
    fl_setup u = {0};
    fl_comparison c = {0};
    fl_status s = fl_args_spare(option, count, g->experiment, d);
    if (!s)
        s = fl_texts_add(&so->rest, g->experiment, d);
    if (!s)
        s = fl_setup_open(&u, so, d);
    if (!s)
        s = fl_scenes_spare(&u.scenes, u.spec, u.o.spec_count, option, count, d);
    if (!s)
        g->provenance = fl_report_record(&u);
    if (!s && baseline)
        s = fl_gate_same_origin(&g->old, baseline, g->provenance, d);
    if (!s)
        u.o.watch_ns = FL_POWER_WINDOW_NS; /* so that every metric is there */
    if (!s)
        s = fl_experiment_draws(&u.experiment) ? fl_draws_compare(&u.experiment, &u.o, &c, d)
                                               : fl_comparison_run(&u.o, &c, d);
    g->now.seed = (int64_t)u.o.seed;
    if (!s)
        s = fl_gate_take(&g->now, &c, d);
    fl_comparison_free(&c);
    fl_setup_free(&u);
    return s;
}

/* The path as another file names it (the way back of fl_path_named). NULL, with errno, where a folder on it does not
 * exist. */
static char *relative_to(const char *file, const char *path) {
    char *folder = fl_must(strdup(file)), *to = realpath(path, NULL), *text = NULL, *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    char *from = realpath(slash ? folder : ".", NULL);
    if (from && to) {
        size_t same = 0, up = 0;
        for (size_t i = 0; from[i] == to[i] && from[i]; i++)
            if (from[i] == '/')
                same = i;
        if (!strncmp(from, to, strlen(from)) && to[strlen(from)] == '/')
            same = strlen(from);
        for (const char *p = from + same; *p; p++)
            up += *p == '/';
        fl_text t;
        FILE *f = fl_must(fl_text_open(&t));
        for (size_t i = 0; i < up; i++)
            fputs("../", f);
        fputs(to + same + 1, f);
        text = fl_must(fl_text_close(&t, NULL));
    }
    free(folder); /* free keeps errno */
    free(from);
    free(to);
    return text;
}

/* Print the findings. Print every change of two results, because the user set no gates for them. */
static void print_result(const regress *g, bool all) {
    for (size_t i = 0; i < g->result.count; i++) {
        const fl_gate_finding *f = &g->result.finding[i];
        if (f->failed)
            printf("FAIL  %s\n", f->text);
        else if (!f->rule || all || (!g->experiment && f->change != 0))
            printf("%s  %s\n", f->rule ? "ok  " : "note", f->text);
    }
}

/* Shows by how much the recorded values move, where there was a record; rules that it does not know are new. */
static void show_changes(regress *g, const char *old) {
    fl_diag none = {0};
    fl_gate_record_free(&g->old);
    if (fl_gate_read(old, &g->old, &none) || fl_gate_compare(&g->old, &g->now, g->rule, g->rules, &g->result, &none))
        return;
    for (size_t i = 0; i < g->result.count; i++)
        if (!g->result.finding[i].rule || g->result.finding[i].change != 0)
            printf("changed: %s\n", g->result.finding[i].text);
}

static void print_blessed(const regress *g, const char *to) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", to);
    cJSON_AddNumberToObject(root, "rows_recorded", (double)g->now.row_count);
    fl_json_tell(root);
}

static fl_status bless(regress *g, const char *to, bool json, fl_diag *d) {
    if (!json && !fl_is_standard(to))
        show_changes(g, to);
    g->now.experiment = relative_to(to, g->experiment);
    if (!g->now.experiment)
        return fl_fail(d, FL_IO, to, 0, 0, "cannot create: %s", fl_reason(errno));
    const fl_status s = fl_gate_write(to, &g->now, g->provenance, d);
    if (!s && json)
        print_blessed(g, to);
    else if (!s)
        printf("recorded: %s, %zu rows\n", to, g->now.row_count);
    return s;
}

static fl_status hold(regress *g, const regress_options *o, fl_diag *d) {
    const char *name = g->experiment ? g->old.experiment : o->rest.item[1];
    fl_status s = fl_gate_compare(&g->old, &g->now, g->rule, g->rules, &g->result, d);
    if (!s && o->json) {
        fl_json_tell(fl_gate_result_json(name, &g->result));
    } else if (!s) {
        print_result(g, o->all);
        printf("%zu of %zu gates hold:", g->result.count - g->result.failed, g->result.count);
        for (size_t i = 0; i < g->rules; i++)
            printf("%s %s", i ? "," : "", g->rule[i].text);
        putchar('\n');
    }
    return !s && o->junit ? fl_gate_junit(o->junit, name, &g->result, d) : s;
}

/* Read the provenance of a result. NULL: it has none, or one that cannot be read. */
static cJSON *read_provenance(const char *result) {
    fl_diag ignored = {0};
    cJSON *tree = NULL;
    char *path = fl_provenance_path(result);
    const bool read = path && !access(path, R_OK) && !fl_json_read(path, &tree, &ignored);
    free(path);
    return read ? tree : NULL;
}

/* Keep of files and workloads what a run depends on: their contents have hashes, so where they lay tells nothing, and
 * notes are worded by the program's version. */
static void drop_places(cJSON *list, const char *key) {
    cJSON *item;
    cJSON_ArrayForEach(item, list) {
        char *path = cJSON_GetStringValue(cJSON_GetObjectItem(item, key)), *slash = path ? strrchr(path, '/') : NULL;
        if (slash)
            memmove(path, slash + 1, strlen(slash));
        cJSON_DeleteItemFromObject(item, "notes");
    }
}

/* Note every setting in which two results differ. Their rows then differ for this reason too. */
static void note_settings(const char *old, const char *now) {
    static const char *const setting[] = {"seed", "options", "inputs", "workloads"};
    cJSON *a = read_provenance(old), *b = read_provenance(now), *const both[] = {a, b};
    for (size_t i = 0; i < FL_COUNT(both); i++) {
        drop_places(cJSON_GetObjectItem(both[i], "inputs"), "file");
        drop_places(cJSON_GetObjectItem(both[i], "workloads"), "workload");
    }
    for (size_t i = 0; a && b && i < FL_COUNT(setting); i++) {
        const cJSON *x = cJSON_GetObjectItem(a, setting[i]), *y = cJSON_GetObjectItem(b, setting[i]);
        if (cJSON_Compare(x, y, true))
            continue;
        char *was = fl_must(fl_json_text(x, false)), *is = fl_must(fl_json_text(y, false));
        if (cJSON_IsArray(x))
            fl_terminal_say(stderr, "note: the two results have different %s", setting[i]);
        else
            fl_terminal_say(stderr, "note: the two results have different %s: %s and %s", setting[i], was, is);
        free(was);
        free(is);
    }
    cJSON_Delete(a);
    cJSON_Delete(b);
}

/* Compares two results: what was recorded is read from the first. */
static fl_status read_results(regress *g, const regress_options *o, fl_diag *d) {
    const char *idle = o->bless                        ? "--bless"
                       : o->out                        ? "-o"
                       : o->setup.bounds.count         ? "--bound"
                       : o->setup.scene.seed           ? "--seed"
                       : o->setup.scene.stated.streams ? "--streams"
                       : o->setup.threads              ? "--threads"
                                                       : NULL;
    if (idle)
        return fl_refuse(d, "%s has no effect on two results, expected --fail-if", idle);
    set_metrics(g, &g->old);
    const fl_status s = fl_gate_read_result(o->rest.item[0], &g->old, d);
    if (!s)
        note_settings(o->rest.item[0], o->rest.item[1]);
    return s ? s : fl_gate_read_result(o->rest.item[1], &g->now, d);
}

/* What was given: a baseline, or an experiment that becomes one. */
static fl_status open_given(regress *g, regress_options *o, fl_diag *d) {
    const char *path = o->rest.count ? o->rest.item[0] : NULL;
    if (o->rest.count == 2 && fl_file_is(path, FL_FILE_RESULT) && fl_file_is(o->rest.item[1], FL_FILE_RESULT))
        return FL_OK;
    for (size_t i = 0; i < o->rest.count; i++)
        if (strcmp(o->rest.item[i], "-") != 0 && access(o->rest.item[i], R_OK))
            return fl_fail(d, FL_BAD_INPUT, o->rest.item[i], 0, 0, "cannot open: %s", fl_reason(errno));
    if (o->rest.count != 1)
        return fl_refuse(d, "expected one baseline or experiment, or two results to compare");
    cJSON *tree = NULL;
    fl_status s = fl_json_read(path, &tree, d);
    if (s == FL_BAD_INPUT && fl_file_is(path, FL_FILE_RESULT))
        s = fl_fail(d, s, path, 1, 0,
                    "is a result, expected another one beside it, or a baseline: regress EXPERIMENT.json --bless -o "
                    "BASELINE.json");
    g->is_baseline = !s && cJSON_HasObjectItem(tree, "foldline_baseline");
    cJSON_Delete(tree);
    if (s || (g->is_baseline && (s = fl_gate_read(path, &g->old, d))))
        return s;
    if (!g->is_baseline && !(o->bless && o->out))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "an experiment, not a baseline, expected --bless -o BASELINE.json to record one");
    if (g->is_baseline && !o->setup.scene.seed)
        o->setup.scene.seed = g->old.seed;
    if (g->is_baseline && !o->setup.scene.stated.streams)
        o->setup.scene.stated.streams = g->old.streams;
    g->now.streams = o->setup.scene.stated.streams;
    g->experiment = g->is_baseline ? fl_must(fl_path_named(path, g->old.experiment)) : fl_must(strdup(path));
    return FL_OK;
}

static void free_all(regress *g) {
    fl_gate_record_free(&g->old);
    fl_gate_record_free(&g->now);
    for (size_t i = 0; i < g->rules; i++)
        free(g->rule[i].text);
    free(g->rule);
    fl_gate_result_free(&g->result);
    cJSON_Delete(g->provenance);
    free(g->experiment);
}

int fl_cmd_regress(int argc, char **argv) {
    regress_options o = {.setup = FL_SETUP_UNSET};
    const fl_option option[] = {
        {"fail-if", "RULE", FL_OPTION_LIST, &o.fail_if, 0, 0,
         "gate such as 'energy_j>+1%' (may be repeated); instead of the baseline's own", FL_MOST_USED},
        FL_BOUND_OPTION(&o.setup.bounds),
        {"bless", NULL, FL_OPTION_FLAG, &o.bless, 0, 0, "records the present values", FL_MOST_USED},
        {"o", "FILE", FL_OPTION_TEXT, &o.out, 0, 0, "the baseline to record (the one given)",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"junit", "FILE", FL_OPTION_OUTPUT, &o.junit, 0, 0, "writes JUnit XML", FL_FOR_OUTPUT | FL_MOST_USED},
        {"all", NULL, FL_OPTION_FLAG, &o.all, 0, 0, "prints what passed too", FL_FOR_OUTPUT},
        FL_JSON_OPTION(&o.json),
        {"seed", "N", FL_OPTION_INT, &o.setup.scene.seed, 1, 9e15, "another first seed than the recorded one"},
        FL_STREAMS_OPTION(o.setup.scene.stated),
        {"threads", "N", FL_OPTION_INT, &o.setup.threads, 1, 1024, "threads (all)"},
        FL_STEP_LIMIT_OPTION,
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &o.rest, &status))
        return status;
    fl_diag d = {0};
    regress g = {0};
    fl_status s = open_given(&g, &o, &d);
    if (!s)
        s = choose_rules(&g, &o.fail_if, &o.setup.bounds, &d);
    if (!s && !g.experiment)
        s = read_results(&g, &o, &d);
    else if (!s)
        s = choose_bounds(&g, o.rest.item[0], &o.setup.bounds, &d);
    if (!s && g.experiment)
        s = run_experiment(&g, o.bless ? NULL : o.rest.item[0], &o.setup, option, FL_COUNT(option), &d);
    if (!s)
        s = o.bless ? bless(&g, o.out ? o.out : o.rest.item[0], o.json, &d) : hold(&g, &o, &d);
    if (s)
        status = fl_command_fail("regress", &d);
    else if (!o.bless && g.result.failed)
        status = FL_EXIT_GATE;
    free_all(&g);
    fl_command_end(option, FL_COUNT(option), &o.rest);
    fl_setup_options_free(&o.setup);
    return status;
}
