/* Opens an experiment and applies what it says to the options of a command. */
#include "harness/input/experiment/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHOLE_MAX INT64_C(9000000000000000) /* largest whole number of any key */

fl_status fl_experiment_open(const char *path, fl_experiment *e, fl_diag *d) {
    *e = (fl_experiment){.path = strdup(path)};
    fl_status s = e->path ? fl_json_read(path, &e->tree, d) : fl_no_memory(d, "the experiment");
    if (!s) {
        fl_json root = fl_json_root(e->tree, e->path);
        s = fl_keys_check(&fl_experiment_keys, &root, d);
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
    fl_texts_free(&e->platforms);
    free(e->path);
    *e = (fl_experiment){0};
}

/* Keeps a malloc'd text for the life of the experiment; frees it on failure. */
fl_status fl_experiment_keep(fl_experiment *e, char *text, fl_diag *d) {
    if (!text || fl_grow(&e->owned, &e->owned_room, e->owned_count + 1, sizeof *e->owned)) {
        free(text);
        return fl_no_memory(d, "the experiment");
    }
    e->owned[e->owned_count++] = text;
    return FL_OK;
}

bool fl_is_experiment(const char *path) {
    fl_file_type type;
    fl_diag ignored;
    if (fl_file_type_find(path, &type, &ignored))
        return fl_name_ends(path, ".json");
    return type == FL_FILE_EXPERIMENT;
}

fl_status fl_experiment_find(const fl_texts *rest, fl_experiment *e, fl_texts *traces, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < rest->count; i++) {
        if (!fl_is_experiment(rest->item[i]))
            s = fl_texts_add(traces, rest->item[i], d);
        else
            s = e->tree ? fl_refuse(d, "more than one experiment, expected one")
                        : fl_experiment_open(rest->item[i], e, d);
    }
    return s;
}

/* A path of the experiment, relative to the program's working directory. */
fl_status fl_experiment_path(fl_experiment *e, const char *path, const char **out, fl_diag *d) {
    char *text = fl_path_named(e->path, path);
    fl_status s = fl_experiment_keep(e, text, d);
    *out = text;
    return s;
}

static fl_status get_path(fl_experiment *e, const fl_json *root, const char *key, const char **into, fl_diag *d) {
    const char *text;
    fl_json value;
    if (*into || !fl_json_has(root, key))
        return FL_OK;
    fl_status s = fl_json_get_text(root, key, &text, d);
    if (!s)
        s = fl_experiment_path(e, text, into, d);
    if (!s && access(*into, F_OK) && !(s = fl_json_get(root, key, &value, d)))
        s = fl_json_fail(&value, d, "there is no file %s, expected one beside the experiment", *into);
    return s;
}

static fl_status get_text(const fl_json *root, const char *key, const char **into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_text(root, key, into, d);
}

/* A name, or a path if it contains a slash. */
static fl_status get_platform(fl_experiment *e, const fl_json *root, const char **into, fl_diag *d) {
    const fl_status s = get_text(root, "platform", into, d);
    const bool own = !s && *into && fl_json_has(root, "platform") && strchr(*into, '/') &&
                     *into == cJSON_GetStringValue(cJSON_GetObjectItem(root->node, "platform"));
    return own ? fl_experiment_path(e, *into, into, d) : s;
}

/* The rows (keys.c) have the ranges, and the file has been checked against them. */
static fl_status get_seconds(const fl_json *root, const char *key, double *into, fl_diag *d) {
    return *into > 0 || !fl_json_has(root, key) ? FL_OK : fl_json_get_real(root, key, 1e-3, 1e9, into, d);
}

static fl_status get_int(const fl_json *root, const char *key, int64_t *into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_int(root, key, 1, WHOLE_MAX, into, d);
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
            s = fl_experiment_path(e, text, &text, d);
        if (!s)
            s = fl_texts_add(into, text, d);
    }
    return s;
}

/* Both forms of the list and of the draw become the text of the command line. */
static fl_status arrivals_text(fl_experiment *e, const fl_json *at, const char **into, fl_diag *d) {
    static const char *const part[] = {"rate", "count", "seconds", "seed"};
    char real[FL_REAL_TEXT];
    fl_text t;
    fl_status s = FL_OK;
    if (fl_json_has(at, "file") && cJSON_GetArraySize(at->node) > 1)
        s = fl_json_fail(at, d, "a file and more, expected either a file or a rate with its count");
    if (s || fl_json_has(at, "file"))
        return s ? s : fl_json_get_text(at, "file", into, d);
    FILE *f = fl_text_open(&t);
    for (size_t i = 0; !s && f && i < sizeof part / sizeof *part; i++) {
        double x;
        if (!fl_json_has(at, part[i]))
            continue;
        s = fl_json_get_real(at, part[i], 0, HUGE_VAL, &x, d);
        fprintf(f, "%s%s=%s", ftell(f) ? "," : "poisson:", part[i], s ? "" : fl_real_text(x, real));
    }
    char *text = fl_text_close(&t, NULL);
    if (!s && !text)
        s = fl_no_memory(d, "the experiment");
    if (s) {
        free(text);
        return s;
    }
    *into = text;
    return fl_experiment_keep(e, text, d);
}

static fl_status get_arrivals(fl_experiment *e, const fl_json *root, const char **into, fl_diag *d) {
    fl_arrivals_spec spec;
    fl_json at;
    if (*into || !fl_json_has(root, "arrivals"))
        return FL_OK;
    fl_status s = cJSON_IsObject(cJSON_GetObjectItem(root->node, "arrivals"))
                      ? fl_json_get_object(root, "arrivals", &at, d)
                      : fl_json_get_text(root, "arrivals", into, d);
    if (!s && !*into)
        s = arrivals_text(e, &at, into, d);
    fl_diag why = {0};
    if (!s && (s = fl_arrivals_spec_parse(*into, &spec, &why)))
        s = s == FL_BAD_INPUT && !fl_json_get(root, "arrivals", &at, d) ? fl_json_fail(&at, d, "%s", why.message)
                                                                        : fl_no_memory(d, "the experiment");
    return s || !spec.file ? s : fl_experiment_path(e, spec.file, into, d);
}

static fl_status get_replay(fl_experiment *e, const fl_json *root, fl_replay_choice *into, fl_diag *d) {
    fl_json at;
    char *text = NULL;
    fl_status s = FL_OK;
    if (!into->jitter && fl_json_has(root, "jitter") && !(s = fl_json_get(root, "jitter", &at, d)) &&
        !(s = fl_json_param_text(&at, &text, d)) && !(s = fl_experiment_keep(e, text, d))) {
        into->jitter = text;
        fl_sweep_replay ignored;
        fl_diag why = {0};
        if (fl_replay_choose(into, &ignored, &why))
            s = fl_json_fail(&at, d, "%s", why.message);
    }
    if (!s && !(into->iteration_s > 0) && fl_json_has(root, "iteration_s"))
        s = fl_json_get_real(root, "iteration_s", 0, HUGE_VAL, &into->iteration_s, d);
    if (!s && !(into->op_us > 0) && fl_json_has(root, "op_us"))
        s = fl_json_get_real(root, "op_us", 1, 1e6, &into->op_us, d);
    return s;
}

static bool draws_arrivals(const char *text) {
    fl_arrivals_spec spec;
    fl_diag ignored = {0};
    return text && !fl_arrivals_spec_parse(text, &spec, &ignored) && !spec.file;
}

bool fl_experiment_redraws(fl_experiment *e, const fl_scene_options *so) {
    const fl_json root = fl_json_root(e->tree, e->path);
    const cJSON *variants = e->tree ? cJSON_GetObjectItem(root.node, "variants") : NULL;
    bool drawn = draws_arrivals(so->arrivals) || fl_replay_drawn(&so->replay);
    for (const cJSON *v = variants ? variants->child : NULL; v && !drawn; v = v->next) {
        const fl_json at = fl_json_root(v, e->path);
        const char *text = NULL;
        fl_replay_choice replay = {0};
        fl_diag ignored = {0}; /* reported when the variant is opened */
        drawn = cJSON_IsObject(v) && ((!get_arrivals(e, &at, &text, &ignored) && draws_arrivals(text)) ||
                                      (!get_replay(e, &at, &replay, &ignored) && fl_replay_drawn(&replay)));
    }
    return drawn;
}

fl_status fl_experiment_apply(fl_experiment *e, fl_scene_options *so, fl_texts *traces, const char **objective,
                              int64_t *seeds, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    bool own_input = traces->count || so->sweep || so->programs || so->pipeline || so->serving.server;
    fl_status s = so->platform ? FL_OK : get_texts(e, &root, "platforms", false, &e->platforms, d);
    if (!s && e->platforms.count && fl_json_has(&root, "platform"))
        s = fl_json_fail(&root, d, "'platform' and 'platforms', expected one of them");
    if (!s && e->platforms.count)
        so->platform = e->platforms.item[0];
    if (s || (s = get_platform(e, &root, &so->platform, d)) || (s = get_text(&root, "assume", &so->assume, d)) ||
        (s = get_path(e, &root, "kinds", &so->kinds, d)) || (s = get_path(e, &root, "target", &so->target, d)) ||
        (s = get_int(&root, "gpus", &so->gpus, d)) || (s = get_int(&root, "seed", &so->seed, d)) ||
        (s = get_int(&root, "seeds", seeds, d)) || (s = get_text(&root, "objective", objective, d)) ||
        (s = fl_node_choice_read(&root, &so->node, d)) ||
        (s = get_seconds(&root, "deadline", &so->stated.deadline_s, d)) ||
        (s = get_seconds(&root, "expected", &so->stated.expected_s, d)) ||
        (s = get_int(&root, "streams", &so->stated.streams, d)))
        return s;
    if (!own_input &&
        ((s = get_texts(e, &root, "traces", true, traces, d)) || (s = get_path(e, &root, "sweep", &so->sweep, d)) ||
         (s = get_path(e, &root, "programs", &so->programs, d)) ||
         (s = get_path(e, &root, "pipeline", &so->pipeline, d)) ||
         (!so->slow.count && (s = get_texts(e, &root, "slow", false, &so->slow, d))) ||
         (s = get_path(e, &root, "serving", &so->serving.server, d)) ||
         (s = get_path(e, &root, "requests", &so->serving.requests, d))))
        return s;
    /* The experiment's keys about its own workloads do not apply to those that replace them on the command line. */
    const bool sweep = !own_input || so->sweep, programs = !own_input || so->programs,
               serving = !own_input || so->serving.server;
    if ((sweep && ((s = get_text(&root, "model", &so->model, d)) || (s = get_int(&root, "repeat", &so->repeat, d)) ||
                   (s = get_replay(e, &root, &so->replay, d)))) ||
        (programs && !(so->seconds > 0) && fl_json_has(&root, "seconds") &&
         (s = fl_json_get_real(&root, "seconds", 0, HUGE_VAL, &so->seconds, d))) ||
        ((sweep || programs) && (s = get_texts(e, &root, "workloads", false, &so->only, d))) ||
        (serving && (s = fl_serving_choice_read(&root, &so->serving, d))) ||
        (s = get_arrivals(e, &root, &so->arrivals, d)))
        return s;
    return FL_OK;
}

/* A variant may change draws only if the experiment has some. */
static fl_status refuse_draws(const fl_json *variant, fl_diag *d) {
    fl_json value;
    for (size_t i = 0; i < fl_draws_keys.count; i++)
        if (fl_json_has(variant, fl_draws_keys.key[i].name) &&
            !fl_json_get(variant, fl_draws_keys.key[i].name, &value, d))
            return fl_json_fail(&value, d, "unknown key, expected 'draws' in the experiment beside it");
    return FL_OK;
}

/* The plain scenes of one platform, then those of each variant. */
static fl_status open_variants(fl_experiment *e, const fl_scene_options *so, const fl_texts *traces, fl_scenes *scenes,
                               size_t *variants, fl_diag *d) {
    fl_scenes more = {0};
    *variants = 0;
    fl_status s = fl_scenes_open(so, traces, &more, d);
    if (!s)
        s = fl_scenes_append(scenes, &more, d);
    fl_scenes_free(&more);
    if (s || !e->tree)
        return s;
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json all = {0};
    if (fl_json_has(&root, "variants"))
        s = fl_json_get_object(&root, "variants", &all, d);
    for (fl_json at = !s && all.node ? fl_json_first(&all) : (fl_json){0}; !s && at.node;
         at = fl_json_next(&all, &at)) {
        fl_scene_options changed = *so;
        changed.variant = at.node->string;
        changed.node = (fl_node_choice){0}; /* the variant overrides the rest */
        s = fl_experiment_draws(e) ? FL_OK : refuse_draws(&at, d);
        if (!s)
            s = fl_node_choice_read(&at, &changed.node, d);
        fl_node_choice_merge(&changed.node, &so->node);
        changed.replay = (fl_replay_choice){0};
        if (!s)
            s = get_replay(e, &at, &changed.replay, d);
        if (!s && !so->sweep && fl_replay_chosen(&changed.replay, true))
            s = fl_json_fail(&at, d, "%s applies only to the workloads of a sweep, expected a sweep",
                             fl_replay_chosen(&changed.replay, true));
        fl_replay_merge(&changed.replay, &so->replay);
        changed.arrivals = NULL;
        if (!s)
            s = get_arrivals(e, &at, &changed.arrivals, d);
        if (!changed.arrivals)
            changed.arrivals = so->arrivals;
        changed.serving = (fl_serving_choice){0};
        if (!s)
            s = fl_serving_choice_read(&at, &changed.serving, d);
        if (!s && !so->serving.server && fl_serving_choice_any(&changed.serving))
            s = fl_json_fail(&at, d, "changes servers, but the experiment has none, expected \"serving\" in it");
        fl_serving_choice_merge(&changed.serving, &so->serving);
        if (!s)
            s = fl_scenes_open(&changed, traces, &more, d);
        if (!s)
            s = fl_scenes_append(scenes, &more, d);
        fl_scenes_free(&more);
        ++*variants;
    }
    return s;
}

fl_status fl_experiment_scenes(fl_experiment *e, const fl_scene_options *so, const fl_texts *traces, fl_scenes *scenes,
                               size_t *variants, fl_diag *d) {
    *scenes = (fl_scenes){0};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < (e->platforms.count ? e->platforms.count : 1); i++) {
        fl_scene_options changed = *so;
        if (e->platforms.count)
            changed.platform = e->platforms.item[i];
        s = open_variants(e, &changed, traces, scenes, variants, d);
    }
    if (s)
        fl_scenes_free(scenes);
    return s;
}

fl_status fl_experiment_positions(const fl_experiment *e, int64_t *positions, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    return *positions || !e->tree || !fl_json_has(&root, "positions")
               ? FL_OK
               : fl_json_get_int(&root, "positions", 1, WHOLE_MAX, positions, d);
}

fl_status fl_experiment_window(const fl_experiment *e, int64_t *window_ns, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    double ms = 0;
    *window_ns = FL_POWER_WINDOW_NS;
    if (!fl_json_has(&root, "power_window_ms"))
        return FL_OK;
    fl_status s = fl_json_get_real(&root, "power_window_ms", 0, HUGE_VAL, &ms, d);
    *window_ns = (int64_t)(ms * 1e6 + 0.5);
    return s;
}

fl_status fl_experiment_applications(const fl_experiment *e, int64_t *drawn, int64_t **seed, size_t *count,
                                     fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json at, list;
    *seed = NULL;
    *count = 0;
    if (!e->tree || !fl_json_has(&root, "applications"))
        return FL_OK;
    fl_status s = fl_json_get_object(&root, "applications", &at, d);
    if (s || (s = fl_json_get_int(&at, "drawn", 1, WHOLE_MAX, drawn, d)) ||
        (s = fl_json_get_array(&at, "seeds", &list, d)))
        return s;
    if (fl_json_has(&root, "programs") || !fl_json_count(&list))
        return fl_json_fail(&at, d, "expected seeds, and no 'programs' beside them");
    if (!(*seed = calloc(fl_json_count(&list), sizeof **seed)))
        return fl_no_memory(d, "the experiment");
    for (fl_json i = fl_json_first(&list); !s && i.node; i = fl_json_next(&list, &i))
        s = fl_json_int(&i, 1, WHOLE_MAX, &(*seed)[(*count)++], d);
    return s;
}

bool fl_experiment_draws(const fl_experiment *e) {
    const fl_json root = fl_json_root(e->tree, e->path);
    return e->tree && fl_json_has(&root, "draws");
}

fl_status fl_experiment_oracles(const fl_experiment *e, fl_oracles *which, fl_diag *d) {
    bool on = true;
    const fl_json root = fl_json_root(e->tree, e->path);
    *which = FL_ORACLES_ALL;
    if (!e->tree || !fl_json_has(&root, "oracles"))
        return FL_OK;
    if (!cJSON_IsString(cJSON_GetObjectItem(root.node, "oracles"))) {
        fl_status s = fl_json_get_bool(&root, "oracles", &on, d);
        *which = on ? FL_ORACLES_ALL : FL_ORACLES_NONE;
        return s;
    }
    *which = FL_ORACLES_STATIC; /* the only word that the row allows */
    return FL_OK;
}
