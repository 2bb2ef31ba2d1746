/* Loads plug-ins, and parses a policy as a user names it. */
#include "harness/input/policy/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/input/policy/policy.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The columns of a table that a plan by instruction may stand for. Its file is FILE, or FILE#NUMBER of several plans.
 */
#define FL_SPEC_PLAN "gpu|count|sm_mhz"

/* The characters of a policy's name, which stands in tables, files and pages. */
#define FL_SPEC_CALLED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-"

/* ---- built-ins and plug-ins ---- */

#define SYMBOL "foldline_policy"

enum { NAME_SIZE = 64 };

/* What every host reads of a descriptor without asking again. */
static fl_status check_rows(const char *path, const fl_policy *p, fl_diag *d) {
    if (!p->name || !*p->name)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the policy has no name, expected .name in its descriptor");
    if (strlen(p->name) > NAME_SIZE || strcspn(p->name, " :,\t\r\n\"") != strlen(p->name))
        return fl_fail(
            d, FL_BAD_INPUT, path, 0, 0,
            "the policy's name is invalid, expected up to %d characters without blank, comma, colon or quote",
            NAME_SIZE);
    if (!p->init || !p->step)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s has no %s, expected a function in its descriptor",
                       p->name, p->init ? "step" : "init");
    if ((p->param_count && !p->param) || (p->probe_count && !p->probe))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s counts %s but has no rows for them", p->name,
                       p->param_count && !p->param ? "parameters" : "probes");
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!p->param[i].name || !p->param[i].unit || !p->param[i].help)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s: parameter %u has no name, unit or help", p->name,
                           i);
    for (uint32_t i = 0; i < p->probe_count; i++)
        if (!p->probe[i].name || !p->probe[i].unit || !p->probe[i].help)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s: probe %u has no name, unit or help", p->name, i);
    return FL_OK;
}

static fl_status open_plugin(const char *path, const fl_policy **policy, fl_diag *d) {
    char difference[512];
    /* The loader searches the system for a name without a slash; ours is a file. */
    char *here = NULL;
    if (!strchr(path, '/')) {
        size_t size = strlen(path) + sizeof "./";
        if (!(here = malloc(size)))
            return fl_no_memory(d, NULL);
        memcpy(here, "./", 2);
        memcpy(here + 2, path, size - 2);
    }
    fl_plugin_watch_start();
    fl_plugin_watch_loading(path);
    void *library = dlopen(here ? here : path, RTLD_NOW | RTLD_LOCAL);
    fl_plugin_watch_loading(NULL);
    free(here);
    if (!library)
        return fl_refuse(d, "cannot load policy plug-in: %s", dlerror());
    const fl_policy *found = dlsym(library, SYMBOL);
    if (!found) {
        dlclose(library);
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "no symbol '" SYMBOL "', expected a policy compiled with -DPOLICY_PLUGIN");
    }
    if (fl_abi_difference(&found->abi, difference, sizeof difference)) {
        fl_status status =
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the plug-in was built against another contract: %s", difference);
        dlclose(library);
        return status;
    }
    const fl_status s = check_rows(path, found, d);
    if (s) {
        dlclose(library);
        return s;
    }
    const void *step;
    memcpy(&step, &found->step, sizeof step); /* a function is no object */
    fl_plugin_watch_path(path, step);
    *policy = found;
    return FL_OK;
}

/* Does the name stand in the text before `end`, as whole words? Case and the marks between letters do not count. */
static bool stands_in(const char *text, const char *end, const char *name) {
    for (const char *from = text; from < end; from++) {
        const char *a = from, *b = name;
        if (!isalnum((unsigned char)*from) || (from > text && isalnum((unsigned char)from[-1])))
            continue;
        for (;; a++, b++) {
            while (*b && !isalnum((unsigned char)*b))
                b++;
            while (*b && a < end && !isalnum((unsigned char)*a))
                a++;
            if (!*b || a >= end || tolower((unsigned char)*a) != tolower((unsigned char)*b))
                break;
        }
        if (!*b && a > from && (a >= end || !isalnum((unsigned char)*a) || b - name > 6)) /* "powercap" */
            return true;
    }
    return false;
}

/* Where a paper, system or algorithm may name a policy: its own name, the system of its source, all of the source. */
enum { OWN, SYSTEM, SOURCE, PLACES };

static bool is_named(const fl_policy *p, int place, const char *name) {
    const char *text = place == OWN ? p->name : p->source;
    return stands_in(text, text + (place == SYSTEM ? strcspn(text, "(,") : strlen(text)), name);
}

/* Writes "'a', 'b'" into the list: the policies that the place names, a paper's baselines behind its own policies. */
static void list_named(const char *name, int place, char *list, size_t size) {
    size_t used = 0;
    for (int baseline = 0; baseline < 2; baseline++)
        for (size_t i = 0; i < fl_policies_count; i++)
            if (!strstr(fl_policies[i]->source, "baseline") == !baseline && is_named(fl_policies[i], place, name) &&
                used < size)
                used += (size_t)snprintf(list + used, size - used, "%s'%s'", used ? ", " : "", fl_policies[i]->name);
}

static fl_status unknown(const char *name, fl_diag *d) {
    char list[512] = "";
    const char **names = calloc(fl_policies_count + 1, sizeof *names);
    if (!names)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < fl_policies_count; i++)
        names[i] = fl_policies[i]->name;
    for (int place = 0; place < PLACES && !*list; place++)
        list_named(name, place, list, sizeof list);
    const char *near = *list ? NULL : fl_nearest(name, names, fl_policies_count);
    free(names);
    if (near)
        snprintf(list, sizeof list, "'%s'", near);
    if (!strcmp(name, "default") || !strcmp(name, "all"))
        return fl_refuse(d, "unknown policy '%s'; %s", name,
                         *name == 'd' ? "nvboost is the driver's default, and compare has it as a baseline anyway"
                                      : "repeat --policy for several (foldline list policies lists them)");
    if (fl_name_ends(name, ".c"))
        return fl_refuse(d,
                         "policy '%s' is a source, expected a plug-in: cc -O2 -fPIC -shared -DPOLICY_PLUGIN -I "
                         "REPOSITORY -o mine.so %s -lm, then ./mine.so",
                         name, name);
    if (fl_name_ends(name, ".so"))
        return fl_refuse(d, "unknown policy '%s', expected the path of the plug-in with a '/': ./%s", name, name);
    if (strchr(name, ',') && !*list)
        return fl_refuse(d, "unknown policy '%s', expected one policy (for several, repeat --policy)", name);
    return fl_refuse(d, "unknown policy '%s', %s%s%s", name, *list ? "did you mean " : "", list,
                     *list ? "?"
                           : "expected a built-in or the path of a .so (foldline list policies lists the former)");
}

fl_status fl_policy_open(const char *name, const fl_policy **policy, fl_diag *d) {
    *policy = NULL;
    for (size_t i = 0; i < fl_policies_count; i++)
        if (strcmp(fl_policies[i]->name, name) == 0) {
            *policy = fl_policies[i];
            return FL_OK;
        }
    size_t length = strlen(name);
    bool so = length > 3 && strcmp(name + length - 3, ".so") == 0;
    if (so && (strchr(name, '/') || access(name, F_OK) == 0))
        return open_plugin(name, policy, d);
    return unknown(name, d);
}

/* ---- names and settings ---- */

void fl_spec_free(fl_spec *s) {
    for (size_t i = 0; s->table && s->file && i < s->layer.count; i++) {
        fl_table_file_free(&s->table[i]);
        free(s->file[i]);
    }
    free(s->table);
    if (s->plans)
        fl_plans_free(s->plans);
    free(s->plans);
    free(s->file);
    free((fl_setting *)(uintptr_t)s->layer.setting);
    free(s->label);
    fl_texts_free(&s->only);
    free(s->text);
    *s = (fl_spec){0};
}

bool fl_spec_records(const fl_spec *s) {
    return fl_reads_of(s->policy).records || s->policy->gpu_drives & FL_BIT(FL_SET_RECORDS);
}

bool fl_spec_unstepped(const fl_spec *s, uint64_t steps) {
    const fl_reads r = fl_reads_of(s->policy);
    return steps < 2 && (r.gpu || r.host_needs || r.records);
}

static const fl_param *find_row(const fl_policy *p, const char *name) {
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->param[i].name, name))
            return &p->param[i];
    return NULL;
}

/* Name and settings as texts of the spec's own, in one block. */
static fl_status keep(fl_spec *s, const char *name, const char *label, const fl_layer *given, fl_diag *d) {
    const size_t count = given->count;
    size_t size = strlen(name) + 1;
    for (size_t i = 0; i < count; i++)
        size += strlen(given->setting[i].name) + 1 + (given->setting[i].text ? strlen(given->setting[i].text) + 1 : 0);
    fl_setting *setting = calloc(count + 1, sizeof *setting);
    s->layer = (fl_layer){.origin = given->origin, .setting = setting};
    s->label = strdup(label);
    s->text = malloc(size);
    s->table = calloc(count + 1, sizeof *s->table);
    s->file = calloc(count + 1, sizeof *s->file);
    if (!setting || !s->label || !s->text || !s->table || !s->file)
        return fl_no_memory(d, NULL);
    char *at = stpcpy(s->text, name) + 1;
    for (size_t i = 0; i < count; i++) {
        setting[i].name = at;
        at = stpcpy(at, given->setting[i].name) + 1;
        if (!given->setting[i].text)
            continue;
        setting[i].text = at;
        at = stpcpy(at, given->setting[i].text) + 1;
    }
    s->layer.count = count;
    return FL_OK;
}

/* FILE#NUMBER, cut in place. Without a number the file must have one plan. */
static fl_status take_plan(fl_spec *s, char *path, const char *param, fl_diag *d) {
    char *number = strrchr(path, '#');
    int64_t n;
    if (!number || fl_int_parse(number + 1, &n) != FL_NUMBER_OK)
        number = NULL;
    else
        *number = 0;
    if (!fl_plans_is(path)) {
        if (number)
            *number = '#';
        return FL_OK;
    }
    if (s->plans)
        return fl_refuse(d, "policy %s: a second plan, expected one", s->policy->name);
    if (!(s->plans = calloc(1, sizeof *s->plans)))
        return fl_no_memory(d, NULL);
    s->plan_param = param;
    fl_status status = fl_plans_read(path, s->plans, d);
    if (!status && number)
        status = fl_plans_find(s->plans, n, &s->plan_place, d);
    else if (!status && s->plans->plan_count > 1)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "has %zu plans, expected %s#NUMBER, such as #%lld",
                         s->plans->plan_count, path, (long long)s->plans->number[s->plans->plan_count - 1]);
    return status;
}

/* A path by which the working folder reaches what `from` names; NULL = the command line names it. */
static char *seen(const char *from, const char *path) { return from ? fl_path_named(from, path) : strdup(path); }

/* Reads the file of a table parameter. */
static fl_status take(fl_spec *s, size_t index, fl_setting *at, const char *from, fl_diag *d) {
    if (!at->text)
        return fl_refuse(d, "policy %s: '%s', expected parameter=value; several values of one are parameter=A/B",
                         s->policy->name, at->name);
    const fl_param *row = find_row(s->policy, at->name);
    if (!row || row->type != FL_PARAM_TABLE)
        return FL_OK;
    char *path = s->file[index] = seen(from, at->text);
    if (!path)
        return fl_no_memory(d, NULL);
    fl_status status = strcmp(row->choices, FL_SPEC_PLAN) != 0 ? FL_OK : take_plan(s, path, row->name, d);
    if (!status && !s->plans)
        status = fl_table_file_read(path, row, &s->table[index], d);
    else
        s->table[index].column_count = 3; /* no rows: they come with the scene */
    at->text = NULL;
    at->table = &s->table[index];
    return status;
}

fl_status fl_spec_open_values(const char *name, const char *label, const fl_layer *given, const char *from, fl_spec *s,
                              fl_diag *d) {
    *s = (fl_spec){0};
    char *path = seen(fl_name_ends(name, ".so") ? from : NULL, name);
    fl_status status = path ? keep(s, path, label, given, d) : fl_no_memory(d, NULL);
    free(path);
    if (!status)
        status = fl_policy_open(s->text, &s->policy, d);
    if (!status)
        s->plugin = strcmp(s->policy->name, name) != 0 ? s->text : NULL;
    fl_setting *setting = (fl_setting *)(uintptr_t)s->layer.setting; /* the spec's own */
    for (size_t i = 0; !status && i < s->layer.count; i++)
        status = take(s, i, &setting[i], from, d);
    if (status)
        fl_spec_free(s);
    return status;
}

/* ---- the text form ---- */

/* "parameter=value" in place; text stays NULL where it is not of that form. */
static fl_setting cut(char *pair) {
    char *equals = strchr(pair, '=');
    if (!equals || equals == pair)
        return (fl_setting){.name = pair};
    *equals = 0;
    return (fl_setting){.name = pair, .text = equals + 1};
}

/* NAME:a=1,b=2 in place: the name ends at the colon, each pair becomes a setting. */
static size_t split(char *text, fl_setting *setting) {
    size_t count = 0;
    char *colon = strchr(text, ':'), *save = NULL;
    if (colon)
        *colon = 0;
    for (char *p = colon ? strtok_r(colon + 1, ",", &save) : NULL; p; p = strtok_r(NULL, ",", &save))
        setting[count++] = cut(p);
    return count;
}

static fl_status open_text(const char *text, const char *label, const fl_texts *set, const char *from, fl_spec *s,
                           fl_diag *d) {
    size_t size = strlen(text) + 1, most = 1 + (set ? set->count : 0);
    for (const char *c = text; *c; c++)
        most += *c == ',';
    for (size_t i = 0; set && i < set->count; i++)
        size += strlen(set->item[i]) + 1;
    char *copy = malloc(size);
    fl_setting *setting = calloc(most, sizeof *setting);
    fl_status status = copy && setting ? FL_OK : fl_no_memory(d, NULL);
    if (!status) {
        char *at = stpcpy(copy, text) + 1;
        size_t count = split(copy, setting);
        for (size_t i = 0; set && i < set->count; i++) {
            char *end = stpcpy(at, set->item[i]);
            setting[count++] = cut(at);
            at = end + 1;
        }
        const fl_layer given = {.origin = set ? "--set" : "--policy", .setting = setting, .count = count};
        status = fl_spec_open_values(copy, label, &given, from, s, d);
    }
    free(setting);
    free(copy);
    return status;
}

/* What follows a colon are settings, and a path with an "=" in it has a slash before. */
fl_status fl_spec_name(const char *text, size_t *called, fl_diag *d) {
    const size_t until = strcspn(text, ":/="), allowed = strspn(text, FL_SPEC_CALLED);
    *called = text[until] == '=' ? until : 0;
    if (text[until] != '=' || (until && allowed == until))
        return FL_OK;
    return fl_refuse(d, "a policy called '%.*s', expected a name of letters, digits and . _ + - before the '='",
                     (int)(until < 60 ? until : 60), text);
}

static fl_status open_form(const char *text, const fl_texts *set, const char *from, fl_spec *s, fl_diag *d) {
    size_t called;
    *s = (fl_spec){0};
    fl_status status = fl_spec_name(text, &called, d);
    if (status || !called)
        return status ? status : open_text(text, text, set, from, s, d);
    char *label = strndup(text, called);
    status = label ? open_text(text + called + 1, label, set, from, s, d) : fl_no_memory(d, NULL);
    free(label);
    return status;
}

fl_status fl_spec_open_set(const char *text, const fl_texts *set, fl_spec *s, fl_diag *d) {
    return open_form(text, set, NULL, s, d);
}
fl_status fl_spec_open_named(const char *text, const char *from, fl_spec *s, fl_diag *d) {
    return open_form(text, NULL, from, s, d);
}
fl_status fl_spec_open(const char *text, fl_spec *s, fl_diag *d) { return open_form(text, NULL, NULL, s, d); }
