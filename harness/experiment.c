#include "harness/experiment.h"

#include "harness/plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fl_status no_memory(fl_diag *d) {
    return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the experiment");
}

fl_status fl_experiment_open(const char *path, fl_experiment *e, fl_diag *d) {
    static const char *const known[] = {"foldline_experiment",
                                        "about",
                                        "platform",
                                        "gpus",
                                        FL_NODE_KEYS,
                                        "traces",
                                        "sweep",
                                        "programs",
                                        "seconds",
                                        "assumed",
                                        "published",
                                        "power_window_ms",
                                        "positions",
                                        "draws",
                                        "model",
                                        "workloads",
                                        "repeat",
                                        "bound",
                                        "objective",
                                        "seed",
                                        "seeds",
                                        "kinds",
                                        "assume",
                                        "policies",
                                        "variants",
                                        "oracles"};
    *e = (fl_experiment){.path = strdup(path)};
    fl_status s = e->path ? fl_json_read(path, &e->tree, d) : no_memory(d);
    if (!s) {
        fl_json root = fl_json_root(e->tree, e->path);
        int64_t version;
        s = fl_json_known(&root, known, sizeof known / sizeof *known, d);
        if (!s)
            s = fl_json_get_int(&root, "foldline_experiment", 1, 1, &version, d);
    }
    if (s)
        fl_experiment_free(e);
    return s;
}

void fl_experiment_free(fl_experiment *e) {
    cJSON_Delete(e->tree);
    for (size_t i = 0; i < e->owned_count; i++)
        free(e->owned[i]);
    free(e->owned);
    free(e->policy);
    free(e->path);
    *e = (fl_experiment){0};
}

static fl_status keep(fl_experiment *e, char *text, fl_diag *d) {
    if (!text || fl_grow(&e->owned, &e->owned_room, e->owned_count + 1, sizeof *e->owned)) {
        free(text);
        return no_memory(d);
    }
    e->owned[e->owned_count++] = text;
    return FL_OK;
}

/* "a/b/../c" is "a/c": such paths become names of workloads. Links that would make a difference are not looked at. */
static void shorten(char *path) {
    for (char *up = strstr(path, "/../"); up; up = strstr(path, "/../")) {
        char *start = up;
        while (start > path && start[-1] != '/')
            start--;
        if (start == up || !strncmp(start, "..", 2))
            return;
        memmove(start, up + 4, strlen(up + 4) + 1);
    }
}

/* A path of the experiment, seen from where the program runs. */
static fl_status resolve(fl_experiment *e, const char *path, const char **out, fl_diag *d) {
    const char *slash = strrchr(e->path, '/');
    char *text = NULL;
    if (path[0] == '/' || !slash)
        text = strdup(path);
    else if (asprintf(&text, "%.*s/%s", (int)(slash - e->path), e->path, path) < 0)
        text = NULL;
    if (text)
        shorten(text);
    fl_status s = keep(e, text, d);
    *out = text;
    return s;
}

static fl_status get_path(fl_experiment *e, const fl_json *root, const char *key, const char **into, fl_diag *d) {
    const char *text;
    if (*into || !fl_json_has(root, key))
        return FL_OK;
    fl_status s = fl_json_get_text(root, key, &text, d);
    return s ? s : resolve(e, text, into, d);
}

static fl_status get_text(const fl_json *root, const char *key, const char **into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_text(root, key, into, d);
}

static fl_status get_int(const fl_json *root, const char *key, int64_t max, int64_t *into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_int(root, key, 1, max, into, d);
}

static fl_status get_texts(fl_experiment *e, const fl_json *root, const char *key, bool paths, fl_texts *into,
                           fl_diag *d) {
    fl_json list;
    if (into->count || !fl_json_has(root, key))
        return FL_OK;
    fl_status s = fl_json_get_array(root, key, &list, d);
    for (fl_json at = s ? (fl_json){0} : fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at)) {
        const char *text = cJSON_GetStringValue(at.node);
        if (!text)
            return fl_json_fail(&at, d, "not a text, expected one");
        if (paths)
            s = resolve(e, text, &text, d);
        if (!s)
            s = fl_texts_add(into, text, d);
    }
    return s;
}

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

static fl_status resolve_owned(fl_experiment *e, char **path, fl_diag *d) {
    const char *seen;
    fl_status s = resolve(e, *path, &seen, d);
    char *copy = s ? NULL : strdup(seen);
    if (!s && !copy)
        return no_memory(d);
    if (copy) {
        free(*path);
        *path = copy;
    }
    return s;
}

/* {"policy": NAME, "set": {...}} as NAME:key=value,... */
static fl_status policy_text(fl_experiment *e, const fl_json *at, const char **out, fl_diag *d) {
    static const char *const known[] = {"policy", "set", "label", "workloads"};
    const char *name;
    if ((*out = cJSON_GetStringValue(at->node)))
        return FL_OK;
    fl_status s = fl_json_object(at, d);
    if (!s)
        s = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!s)
        s = fl_json_get_text(at, "policy", &name, d);
    char *text = s ? NULL : strdup(name);
    if (!s && !text)
        return no_memory(d);
    fl_json set = {0};
    if (!s && fl_json_has(at, "set"))
        s = fl_json_get_object(at, "set", &set, d);
    char mark = ':';
    for (fl_json p = !s && set.node ? fl_json_first(&set) : (fl_json){0}; !s && p.node; p = fl_json_next(&set, &p)) {
        char *value = NULL, *longer = NULL;
        s = fl_json_param_text(&p, &value, d);
        if (!s && is_table(name, p.node->string))
            s = resolve_owned(e, &value, d);
        if (!s && asprintf(&longer, "%s%c%s=%s", text, mark, p.node->string, value) < 0)
            s = no_memory(d);
        free(value);
        if (!s) {
            free(text);
            text = longer;
            mark = ',';
        }
    }
    if (s) {
        free(text);
        return s;
    }
    *out = text;
    return keep(e, text, d);
}

fl_status fl_experiment_apply(fl_experiment *e, fl_scene_options *so, fl_texts *traces, fl_texts *policies,
                              double *bound, const char **objective, int64_t *seeds, fl_diag *d) {
    fl_json root = fl_json_root(e->tree, e->path), list;
    bool own_input = traces->count || so->sweep || so->programs;
    int64_t n = *seeds == 1 ? 0 : *seeds;
    const char *goal = strcmp(*objective, "energy") ? *objective : NULL;
    fl_status s = get_text(&root, "platform", &so->platform, d);
    if (!s)
        s = get_text(&root, "model", &so->model, d);
    if (!s)
        s = get_text(&root, "assume", &so->assume, d);
    if (!s)
        s = get_path(e, &root, "kinds", &so->kinds, d);
    if (!s)
        s = get_int(&root, "gpus", 1024, &so->gpus, d);
    if (!s)
        s = get_int(&root, "repeat", 1000000, &so->repeat, d);
    if (!s)
        s = get_int(&root, "seed", INT64_C(9000000000000000), &so->seed, d);
    if (!s)
        s = get_int(&root, "seeds", 100000, &n, d);
    if (!s)
        s = get_text(&root, "objective", &goal, d);
    if (!s)
        s = fl_node_choice_read(&root, &so->node, d);
    if (!s && !own_input)
        s = get_texts(e, &root, "traces", true, traces, d);
    if (!s && !own_input)
        s = get_path(e, &root, "sweep", &so->sweep, d);
    if (!s && !own_input)
        s = get_path(e, &root, "programs", &so->programs, d);
    if (!s && !(so->seconds > 0) && fl_json_has(&root, "seconds"))
        s = fl_json_get_real(&root, "seconds", 1e-3, 1e7, &so->seconds, d);
    if (!s)
        s = get_texts(e, &root, "workloads", false, &so->only, d);
    if (!s && isinf(*bound) && fl_json_has(&root, "bound"))
        s = fl_json_get_real(&root, "bound", 0, 100, bound, d);
    if (!s && !policies->count && fl_json_has(&root, "policies") &&
        !(s = fl_json_get_array(&root, "policies", &list, d)))
        for (fl_json at = fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at)) {
            const char *text;
            s = policy_text(e, &at, &text, d);
            if (!s && fl_grow(&e->policy, &e->policy_room, e->policy_count + 1, sizeof *e->policy))
                s = no_memory(d);
            if (!s)
                e->policy[e->policy_count++] = at.node;
            if (!s)
                s = fl_texts_add(policies, text, d);
        }
    *seeds = n ? n : 1;
    *objective = goal ? goal : "energy";
    return s;
}

fl_status fl_experiment_spec(const fl_experiment *e, size_t index, fl_spec *spec, fl_diag *d) {
    if (index >= e->policy_count || !cJSON_IsObject(e->policy[index]))
        return FL_OK;
    fl_json at = fl_json_root(e->policy[index], e->path), list;
    const char *label = NULL;
    fl_status s = fl_json_has(&at, "label") ? fl_json_get_text(&at, "label", &label, d) : FL_OK;
    char *copy = label ? strdup(label) : NULL;
    if (label && !copy)
        return no_memory(d);
    if (copy) {
        free(spec->label);
        spec->label = copy;
    }
    if (s || !fl_json_has(&at, "workloads"))
        return s;
    s = fl_json_get_array(&at, "workloads", &list, d);
    for (fl_json w = s ? (fl_json){0} : fl_json_first(&list); !s && w.node; w = fl_json_next(&list, &w)) {
        const char *pattern = cJSON_GetStringValue(w.node);
        s = pattern ? fl_texts_add(&spec->only, pattern, d) : fl_json_fail(&w, d, "not a text, expected one");
    }
    return s;
}

fl_status fl_experiment_scenes(const fl_experiment *e, const fl_scene_options *so, const fl_texts *traces,
                               fl_scenes *scenes, size_t *variants, fl_diag *d) {
    static const char *const known[] = {FL_DRAWS_KEYS, FL_NODE_KEYS};
    const size_t skip = fl_experiment_draws(e) ? 0 : sizeof(const char *[]){FL_DRAWS_KEYS} / sizeof(const char *);
    *variants = 0;
    fl_status s = fl_scenes_open(so, traces, scenes, d);
    if (s || !e->tree)
        return s;
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json all = {0};
    if (fl_json_has(&root, "variants"))
        s = fl_json_get_object(&root, "variants", &all, d);
    for (fl_json at = !s && all.node ? fl_json_first(&all) : (fl_json){0}; !s && at.node;
         at = fl_json_next(&all, &at)) {
        fl_scene_options changed = *so;
        fl_scenes more = {0};
        changed.variant = at.node->string;
        changed.node = (fl_node_choice){0}; /* what the variant says goes before the rest */
        s = fl_json_object(&at, d);
        if (!s)
            s = fl_json_known(&at, known + skip, sizeof known / sizeof *known - skip, d);
        if (!s)
            s = fl_node_choice_read(&at, &changed.node, d);
        fl_node_choice_merge(&changed.node, &so->node);
        if (!s)
            s = fl_scenes_open(&changed, traces, &more, d);
        if (!s)
            s = fl_scenes_append(scenes, &more, d);
        fl_scenes_free(&more);
        ++*variants;
    }
    if (s)
        fl_scenes_free(scenes);
    return s;
}

fl_status fl_experiment_positions(const fl_experiment *e, int64_t *positions, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    return *positions || !e->tree || !fl_json_has(&root, "positions")
               ? FL_OK
               : fl_json_get_int(&root, "positions", 1, 1000000, positions, d);
}

fl_status fl_experiment_window(const fl_experiment *e, int64_t *window_ns, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    double ms = 15; /* power-capping reads its meter so often */
    fl_status s =
        fl_json_has(&root, "power_window_ms") ? fl_json_get_real(&root, "power_window_ms", 0.1, 1e6, &ms, d) : FL_OK;
    *window_ns = (int64_t)(ms * 1e6 + 0.5);
    return s;
}

bool fl_experiment_draws(const fl_experiment *e) {
    const fl_json root = fl_json_root(e->tree, e->path);
    return e->tree && fl_json_has(&root, "draws");
}

bool fl_experiment_oracles(const fl_experiment *e) {
    fl_diag ignored = {0};
    bool on = true;
    if (!e->tree)
        return true;
    const fl_json root = fl_json_root(e->tree, e->path);
    return !fl_json_has(&root, "oracles") || fl_json_get_bool(&root, "oracles", &on, &ignored) != FL_OK || on;
}
