/* The policies of an experiment: names, parameters, and the grid of its ranges. */
#include "harness/input/experiment/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/policy/policy.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 100000 };

/* ---- values of one parameter ---- */

typedef struct values {
    char **text;
    size_t count, room;
} values;

static fl_status add_value(values *v, char *text, fl_diag *d) {
    if (!text || fl_grow(&v->text, &v->room, v->count + 1, sizeof *v->text)) {
        free(text);
        return fl_no_memory(d, "the experiment");
    }
    v->text[v->count++] = text;
    return FL_OK;
}

static fl_status add_number(values *v, double x, fl_diag *d) {
    char buf[FL_REAL_TEXT];
    return add_value(v, strdup(fl_real_text(x, buf)), d);
}

/* The values from, from + step, ... up to `to`, which counts as reached within a thousandth of a step. Values are
 * decimal numbers, without a binary rest: 0.8 + 3 x 0.02 is 0.86. */
static fl_status steps(const fl_json *at, double from, double to, values *v, fl_diag *d) {
    double step;
    fl_status s = fl_json_get_real(at, "step", -HUGE_VAL, HUGE_VAL, &step, d);
    if (!s && !(step != 0 && (to - from) / step >= 0 && (to - from) / step < VALUES_MAX))
        s = fl_json_fail(at, d, "a step of %g from %g to %g, expected one that reaches the end in %d values", step,
                         from, to, VALUES_MAX);
    const size_t count = s ? 0 : (size_t)((to - from) / step + 1e-3) + 1;
    for (size_t i = 0; !s && i < count; i++) {
        char buf[48];
        snprintf(buf, sizeof buf, "%.12g", from + (double)i * step);
        s = add_number(v, strtod(buf, NULL), d);
    }
    return s;
}

static fl_status range(const fl_json *at, values *v, fl_diag *d) {
    double from, to;
    int64_t count;
    bool logarithmic = false;
    fl_status s = fl_json_get_real(at, "from", -HUGE_VAL, HUGE_VAL, &from, d);
    if (!s)
        s = fl_json_get_real(at, "to", -HUGE_VAL, HUGE_VAL, &to, d);
    if (!s && fl_json_has(at, "step") == fl_json_has(at, "count"))
        s = fl_json_fail(at, d, "expected either 'step' or 'count'");
    if (s || fl_json_has(at, "step"))
        return s ? s : steps(at, from, to, v, d);
    s = fl_json_get_int(at, "count", 1, VALUES_MAX, &count, d);
    if (!s && fl_json_has(at, "log"))
        s = fl_json_get_bool(at, "log", &logarithmic, d);
    if (!s && logarithmic && !(from > 0 && to > 0))
        s = fl_json_fail(at, d, "a log range from %g to %g, expected both ends above 0", from, to);
    for (int64_t i = 0; !s && i < count; i++) {
        const double share = count > 1 ? (double)i / (double)(count - 1) : 0;
        double x = logarithmic ? from * pow(to / from, share) : from + share * (to - from);
        char buf[48];
        snprintf(buf, sizeof buf, "%.12g", x);
        s = add_number(v, strtod(buf, NULL), d);
    }
    return s;
}

static fl_status each(const fl_json *at, values *v, fl_diag *d) {
    fl_json list;
    fl_status s = cJSON_GetArraySize(at->node) > 1 ? fl_json_fail(at, d, "'each' and more, expected it alone")
                                                   : fl_json_get_array(at, "each", &list, d);
    for (fl_json x = s ? (fl_json){0} : fl_json_first(&list); !s && x.node; x = fl_json_next(&list, &x)) {
        char *text;
        s = fl_json_param_text(&x, &text, d);
        if (!s)
            s = add_value(v, text, d);
    }
    return s;
}

static fl_status read_values(const fl_json *at, values *v, fl_diag *d) {
    if (cJSON_IsObject(at->node))
        return fl_json_has(at, "each") ? each(at, v, d) : range(at, v, d);
    char *text;
    fl_status s = fl_json_param_text(at, &text, d);
    return s ? s : add_value(v, text, d);
}

/* ---- one entry ---- */

typedef struct combination { /* one value of each parameter so far */
    fl_setting *setting;     /* texts borrowed: names from the file, values from the lists below */
    size_t count;
} combination;

typedef struct entry { /* of "policies", or a --policy */
    const char *policy, *label;
    const char *from; /* the file that names it; NULL = the command line */
    char *copy;       /* owns the names where they were one text */
    values *by;       /* by_count: the values of each parameter */
    size_t by_count;
    combination *all; /* all_count: one for each combination of values */
    size_t all_count;
} entry;

static void free_combinations(combination *all, size_t count) {
    for (size_t i = 0; all && i < count; i++)
        free(all[i].setting);
    free(all);
}

static void free_entry(entry *n) {
    for (size_t i = 0; i < n->by_count; i++)
        fl_place_list_free(n->by[i].text, n->by[i].count);
    free(n->by);
    free(n->copy);
    free_combinations(n->all, n->all_count);
}

/* Every combination so far with every value of one more parameter. */
static fl_status multiply(entry *n, const char *name, const values *by, fl_diag *d) {
    const size_t count = n->all_count * by->count;
    if (count > VALUES_MAX)
        return fl_refuse(d, "more than %d policies", VALUES_MAX);
    combination *more = calloc(count + 1, sizeof *more);
    fl_status s = more ? FL_OK : fl_no_memory(d, "the experiment");
    for (size_t i = 0; !s && i < count; i++) {
        const combination *before = &n->all[i / by->count];
        more[i].setting = malloc((before->count + 1) * sizeof *more[i].setting);
        if (!more[i].setting) {
            s = fl_no_memory(d, "the experiment");
            continue;
        }
        if (before->count)
            memcpy(more[i].setting, before->setting, before->count * sizeof *before->setting);
        more[i].setting[before->count] = (fl_setting){.name = name, .text = by->text[i % by->count]};
        more[i].count = before->count + 1;
    }
    if (s) {
        free_combinations(more, count);
        return s;
    }
    free_combinations(n->all, n->all_count);
    n->all = more;
    n->all_count = count;
    return FL_OK;
}

/* Does the parameter take one value, so that A/B are two policies? A list and a path may have a slash. */
static bool takes_one(const fl_policy *p, const char *name) {
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->param[i].name, name))
            return p->param[i].type != FL_PARAM_LIST && p->param[i].type != FL_PARAM_TABLE;
    return false;
}

/* LABEL=NAME:p=A/B,q=C, with one list of values for each parameter. */
static fl_status read_values_text(const char *written, entry *n, fl_diag *d) {
    size_t label;
    const fl_policy *policy = NULL;
    char *text = n->copy = strdup(written), *colon = text ? strchr(text, ':') : NULL, *save = NULL;
    fl_status s = text ? fl_spec_name(text, &label, d) : fl_no_memory(d, "the experiment");
    if (s)
        return s;
    *colon = 0;
    n->policy = label ? text + label + 1 : text;
    n->label = label ? strtok_r(text, "=", &save) : NULL;
    char *path = n->from && fl_name_ends(n->policy, ".so") ? fl_path_named(n->from, n->policy) : strdup(n->policy);
    s = path ? fl_policy_open(path, &policy, d) : fl_no_memory(d, "the experiment");
    free(path);
    for (char *p = strtok_r(colon + 1, ",", &save); !s && p; p = strtok_r(NULL, ",", &save)) {
        values *by = &n->by[n->by_count++];
        char *rest = strchr(p, '=');
        if (!rest) {
            fl_spec none;
            return fl_spec_open_named(written, n->from, &none, d); /* which refuses it */
        }
        *rest++ = 0;
        const char *between = takes_one(policy, p) ? "/" : "";
        for (char *part; !s && (part = strsep(&rest, between));)
            s = add_value(by, strdup(part), d);
        if (!s)
            s = multiply(n, p, by, d);
    }
    return s;
}

/* One text, as --policy has it. */
static fl_status read_text(const char *text, const char *from, entry *n, fl_diag *d) {
    const char *colon = strchr(text, ':');
    *n = (entry){.policy = text, .from = from, .all = calloc(1, sizeof *n->all), .all_count = 1};
    n->by = calloc(strlen(text) + 1, sizeof *n->by);
    if (!n->all || !n->by)
        return fl_no_memory(d, "the experiment");
    return colon && strchr(colon, '/') ? read_values_text(text, n, d) : FL_OK;
}

/* {"policy": NAME, "set": {...}}, or one text. */
static fl_status read_entry(const fl_json *at, const char *from, entry *n, fl_diag *d) {
    fl_json set = {0};
    const char *text = cJSON_GetStringValue(at->node);
    if (text)
        return read_text(text, from, n, d);
    *n = (entry){.from = from, .all = calloc(1, sizeof *n->all)};
    n->all_count = n->all ? 1 : 0;
    if (!n->all)
        return fl_no_memory(d, "the experiment");
    fl_status s = fl_json_get_text(at, "policy", &n->policy, d);
    if (!s && fl_json_has(at, "set"))
        s = fl_json_get_object(at, "set", &set, d);
    if (!s && set.node && !(n->by = calloc((size_t)cJSON_GetArraySize(set.node) + 1, sizeof *n->by)))
        s = fl_no_memory(d, "the experiment");
    for (fl_json p = !s && set.node ? fl_json_first(&set) : (fl_json){0}; !s && p.node; p = fl_json_next(&set, &p)) {
        values *by = &n->by[n->by_count++];
        s = read_values(&p, by, d);
        if (!s)
            s = multiply(n, p.node->string, by, d);
    }
    if (!s && fl_json_has(at, "label"))
        s = fl_json_get_text(at, "label", &n->label, d);
    return s;
}

/* ---- names of rows, and the workloads of a policy ---- */

/* HEAD:parameter=value,... as on the command line. by: only the parameters with more than one value; NULL: all. The
 * text lives as long as *e. */
static fl_status keep_text(fl_experiment *e, const char *head, const combination *c, const values *by, const char **out,
                           fl_diag *d) {
    size_t told = 0;
    fl_text t;
    FILE *f = fl_text_open(&t);
    if (f)
        fputs(head, f);
    for (size_t i = 0; f && i < c->count; i++)
        if (!by || by[i].count > 1)
            fprintf(f, "%c%s=%s", told++ ? ',' : ':', c->setting[i].name, c->setting[i].text);
    char *text = fl_text_close(&t, NULL);
    *out = text;
    return fl_experiment_keep(e, text, d);
}

/* A label names one policy alone. If the entry stands for several, the parameters in which they differ follow it. */
static fl_status set_label(const char *label, fl_spec *spec, fl_diag *d) {
    char *own = strdup(label);
    if (!own)
        return fl_no_memory(d, "the experiment");
    free(spec->label);
    spec->label = own;
    return FL_OK;
}

static fl_status take_workloads(const fl_json *at, fl_spec *spec, fl_diag *d) {
    fl_json list;
    if (!cJSON_IsObject(at->node) || !fl_json_has(at, "workloads"))
        return FL_OK;
    fl_status s = fl_json_get_array(at, "workloads", &list, d);
    for (fl_json w = s ? (fl_json){0} : fl_json_first(&list); !s && w.node; w = fl_json_next(&list, &w)) {
        const char *pattern = cJSON_GetStringValue(w.node);
        s = pattern ? fl_texts_add(&spec->only, pattern, d) : fl_json_fail(&w, d, "not a text, expected one");
    }
    return s;
}

/* A name without "set" may be the text form of the command line: "policy": "fixed:sm_mhz=1600". */
static fl_status open_one(fl_experiment *e, const entry *n, const combination *c, fl_spec *spec, fl_texts *texts,
                          fl_diag *d) {
    const fl_layer given = {.origin = "--policy", .setting = c->setting, .count = c->count};
    const char *text, *label;
    fl_status s = keep_text(e, n->policy, c, NULL, &text, d);
    if (!s)
        s = fl_texts_add(texts, text, d);
    if (!s)
        s = n->label ? keep_text(e, n->label, c, n->by, &label, d) : FL_OK;
    if (!s)
        s = c->count ? fl_spec_open_values(n->policy, text, &given, n->from, spec, d)
                     : fl_spec_open_named(text, n->from, spec, d);
    if (!s && n->label && (s = set_label(label, spec, d)))
        fl_spec_free(spec);
    return s;
}

typedef struct specs {
    fl_spec *item;
    size_t count, room;
    fl_texts *texts;
} specs;

static fl_status open_entry(fl_experiment *e, const fl_json *at, const entry *n, specs *all, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < n->all_count; i++) {
        if (fl_grow(&all->item, &all->room, all->count + 1, sizeof *all->item))
            return fl_no_memory(d, "the experiment");
        s = open_one(e, n, &n->all[i], &all->item[all->count], all->texts, d);
        if (!s)
            s = take_workloads(at, &all->item[all->count++], d);
    }
    return s;
}

fl_status fl_experiment_specs(fl_experiment *e, const fl_texts *own, fl_spec **spec, size_t *count, fl_texts *texts,
                              fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path), none = {0};
    specs all = {.texts = texts};
    fl_json list = {0};
    entry n;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < own->count; i++) {
        s = read_text(own->item[i], NULL, &n, d);
        if (!s)
            s = open_entry(e, &none, &n, &all, d);
        free_entry(&n);
    }
    if (!own->count && e->tree && fl_json_has(&root, "policies"))
        s = fl_json_get_array(&root, "policies", &list, d);
    for (fl_json at = list.node ? fl_json_first(&list) : none; !s && at.node; at = fl_json_next(&list, &at)) {
        s = read_entry(&at, e->path, &n, d);
        if (!s)
            s = open_entry(e, &at, &n, &all, d);
        free_entry(&n);
    }
    *spec = all.item;
    *count = all.count;
    return s;
}
