/* The policies of an experiment: names, parameters, and what a grid makes of ranges. */
#include "harness/input/experiment.h"
#include "harness/input/plugin.h"
#include "traces/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 100000 };

static fl_status no_memory(fl_diag *d) {
    return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the experiment");
}

static void free_texts(char **text, size_t count) {
    for (size_t i = 0; text && i < count; i++)
        free(text[i]);
    free(text);
}

/* ---- values of one parameter ---- */

typedef struct values {
    char **text;
    size_t count, room;
} values;

static fl_status add_value(values *v, char *text, fl_diag *d) {
    if (!text || fl_grow(&v->text, &v->room, v->count + 1, sizeof *v->text)) {
        free(text);
        return no_memory(d);
    }
    v->text[v->count++] = text;
    return FL_OK;
}

static fl_status add_number(values *v, double x, fl_diag *d) {
    char buf[FL_REAL_TEXT];
    return add_value(v, strdup(fl_real_text(x, buf)), d);
}

/* from, from + step, ... up to `to`, which counts as reached within a thousandth of a step. Values are the decimal
 * numbers that they look like: 0.8 + 3 x 0.02 is 0.86. */
static fl_status steps(const fl_json *at, double from, double to, values *v, fl_diag *d) {
    double step;
    fl_status s = fl_json_get_real(at, "step", -HUGE_VAL, HUGE_VAL, &step, d);
    if (!s && !(step != 0 && (to - from) / step >= 0 && (to - from) / step < VALUES_MAX))
        s = fl_json_fail(at, d, "a step of %g from %g to %g, expected one that gets there in %d values", step, from, to,
                         VALUES_MAX);
    const size_t count = s ? 0 : (size_t)((to - from) / step + 1e-3) + 1;
    for (size_t i = 0; !s && i < count; i++) {
        char buf[48];
        snprintf(buf, sizeof buf, "%.12g", from + (double)i * step);
        s = add_number(v, strtod(buf, NULL), d);
    }
    return s;
}

static fl_status range(const fl_json *at, values *v, fl_diag *d) {
    static const char *const known[] = {"from", "to", "step", "count", "log"};
    double from, to;
    int64_t count;
    bool logarithmic = false;
    fl_status s = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!s)
        s = fl_json_get_real(at, "from", -HUGE_VAL, HUGE_VAL, &from, d);
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
    static const char *const known[] = {"each"};
    fl_json list;
    fl_status s = fl_json_known(at, known, 1, d);
    if (!s)
        s = fl_json_get_array(at, "each", &list, d);
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

/* Files of table parameters are relative to the experiment, like its other paths. */
static bool is_table(const char *policy, const char *param) {
    fl_diag ignored = {0};
    const fl_policy *p;
    if (fl_policy_open(policy, &p, &ignored))
        return false; /* told when the policy is opened to run */
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->param[i].name, param))
            return p->param[i].type == FL_PARAM_TABLE;
    return false;
}

static fl_status to_paths(fl_experiment *e, values *v, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < v->count; i++) {
        const char *seen;
        s = fl_experiment_path(e, v->text[i], &seen, d);
        char *copy = s ? NULL : strdup(seen);
        if (!s && !copy)
            s = no_memory(d);
        if (copy) {
            free(v->text[i]);
            v->text[i] = copy;
        }
    }
    return s;
}

/* Every text so far with every value of one more parameter. */
static fl_status multiply(values *all, const char *name, const values *by, char mark, fl_diag *d) {
    values more = {0};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < all->count; i++)
        for (size_t k = 0; !s && k < by->count; k++) {
            char *text = NULL;
            if (asprintf(&text, "%s%c%s=%s", all->text[i], mark, name, by->text[k]) < 0)
                text = NULL;
            s = more.count < VALUES_MAX ? add_value(&more, text, d)
                                        : fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "more than %d policies", VALUES_MAX);
        }
    free_texts(all->text, all->count);
    *all = more;
    return s;
}

/* {"policy": NAME, "set": {...}} as NAME:key=value,... for each combination of values. */
static fl_status entry_texts(fl_experiment *e, const fl_json *at, values *all, fl_diag *d) {
    static const char *const known[] = {"policy", "set", "label", "workloads"};
    const char *name = cJSON_GetStringValue(at->node);
    fl_json set = {0};
    if (name)
        return add_value(all, strdup(name), d);
    fl_status s = fl_json_object(at, d);
    if (!s)
        s = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!s)
        s = fl_json_get_text(at, "policy", &name, d);
    if (!s)
        s = add_value(all, strdup(name), d);
    if (!s && fl_json_has(at, "set"))
        s = fl_json_get_object(at, "set", &set, d);
    char mark = ':';
    for (fl_json p = !s && set.node ? fl_json_first(&set) : (fl_json){0}; !s && p.node; p = fl_json_next(&set, &p)) {
        values by = {0};
        s = read_values(&p, &by, d);
        if (!s && is_table(name, p.node->string))
            s = to_paths(e, &by, d);
        if (!s)
            s = multiply(all, p.node->string, &by, mark, d);
        free_texts(by.text, by.count);
        mark = ',';
    }
    return s;
}

static fl_status add_entry(fl_experiment *e, const fl_json *at, values *all, fl_texts *policies, fl_diag *d) {
    fl_status s = entry_texts(e, at, all, d);
    for (size_t i = 0; !s && i < all->count; i++) {
        if (fl_grow(&e->policy, &e->policy_room, e->policy_count + 1, sizeof *e->policy))
            return no_memory(d);
        e->policy[e->policy_count++] = at->node;
        char *text = all->text[i];
        all->text[i] = NULL;
        s = fl_experiment_keep(e, text, d);
        if (!s)
            s = fl_texts_add(policies, text, d);
    }
    return s;
}

fl_status fl_experiment_policies(fl_experiment *e, fl_texts *policies, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json list;
    if (!fl_json_has(&root, "policies"))
        return FL_OK;
    fl_status s = fl_json_get_array(&root, "policies", &list, d);
    for (fl_json at = s ? (fl_json){0} : fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at)) {
        values all = {0};
        s = add_entry(e, &at, &all, policies, d);
        free_texts(all.text, all.count);
    }
    return s;
}

/* ---- what a row is called, and which workloads it is for ---- */

/* A label alone names one policy; where the entry stands for several, the parameters that vary stay behind it. */
static fl_status set_label(const fl_experiment *e, size_t index, const char *label, fl_spec *spec, fl_diag *d) {
    size_t same = 0;
    for (size_t i = 0; i < e->policy_count; i++)
        same += e->policy[i] == e->policy[index];
    const char *params = strchr(spec->label, ':');
    char *text = NULL;
    if (asprintf(&text, "%s%s", label, same > 1 && params ? params : "") < 0)
        return no_memory(d);
    free(spec->label);
    spec->label = text;
    return FL_OK;
}

fl_status fl_experiment_spec(const fl_experiment *e, size_t index, fl_spec *spec, fl_diag *d) {
    if (index >= e->policy_count || !cJSON_IsObject(e->policy[index]))
        return FL_OK;
    fl_json at = fl_json_root(e->policy[index], e->path), list;
    const char *label = NULL;
    fl_status s = fl_json_has(&at, "label") ? fl_json_get_text(&at, "label", &label, d) : FL_OK;
    if (!s && label)
        s = set_label(e, index, label, spec, d);
    if (s || !fl_json_has(&at, "workloads"))
        return s;
    s = fl_json_get_array(&at, "workloads", &list, d);
    for (fl_json w = s ? (fl_json){0} : fl_json_first(&list); !s && w.node; w = fl_json_next(&list, &w)) {
        const char *pattern = cJSON_GetStringValue(w.node);
        s = pattern ? fl_texts_add(&spec->only, pattern, d) : fl_json_fail(&w, d, "not a text, expected one");
    }
    return s;
}
