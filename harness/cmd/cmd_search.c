#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/base/json_out.h"
#include "harness/cmd/commands.h"
#include "harness/study/search.h"
#include "harness/study/setup.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "search", "EXPERIMENT.json [--tune PATTERN --score PATTERN | --hold-out workload|platform]",
    "Finds the best of an experiment's policies and parameter values by successive halving, and scores it on "
    "workloads that it\n"
    "was not tuned on.",
    "Every candidate is tried on few workloads and seeds, the better part on more. Judged by the objective over the "
    "default's;\n"
    "candidates that break --bound come behind. --tune and --score take shell patterns of workloads; --hold-out "
    "leaves out each\n"
    "workload (or platform) in turn, tunes on the rest and scores on it. What it saves against the whole grid is "
    "printed."};

typedef struct fold { /* what is tuned on, and scored on */
    const char *name;
    bool *tune, *score; /* by scene */
} fold;

static bool matches(const fl_scene *s, const char *pattern) {
    return !pattern || fl_workload_matches(s->w->name, s->variant, pattern);
}

static const char *group_of(const fl_scene *s, bool platform) { return platform ? s->platform.name : s->w->name; }

static fl_status add_fold(fold **all, size_t *count, size_t *room, const char *name, size_t scenes, fl_diag *d) {
    if (fl_grow(all, room, *count + 1, sizeof **all))
        return fl_no_memory(d, "the search");
    fold *f = &(*all)[(*count)++];
    *f = (fold){name, calloc(scenes + 1, sizeof(bool)), calloc(scenes + 1, sizeof(bool))};
    return f->tune && f->score ? FL_OK : fl_no_memory(d, "the search");
}

static fl_status make_folds(const fl_scenes *scenes, const char *tune, const char *score, const char *hold_out,
                            fold **all, size_t *count, fl_diag *d) {
    size_t room = 0;
    const bool platform = hold_out && !strcmp(hold_out, "platform");
    fl_status s = FL_OK;
    if (hold_out && !platform && strcmp(hold_out, "workload") != 0)
        return fl_refuse(d, "--hold-out '%s', expected workload or platform", hold_out);
    for (size_t i = 0; !s && i < (hold_out ? scenes->count : 1); i++) {
        const char *name = hold_out ? group_of(scenes->item[i], platform) : NULL;
        bool seen = false;
        for (size_t k = 0; k < *count; k++)
            seen |= name && !strcmp((*all)[k].name, name);
        if (seen)
            continue;
        s = add_fold(all, count, &room, name, scenes->count, d);
        for (size_t k = 0; !s && k < scenes->count; k++) {
            fold *f = &(*all)[*count - 1];
            const bool out = name && !strcmp(group_of(scenes->item[k], platform), name);
            f->tune[k] = hold_out ? !out : matches(scenes->item[k], tune);
            f->score[k] = hold_out ? out : matches(scenes->item[k], score ? score : tune);
        }
    }
    if (!s && hold_out && *count < 2)
        s = fl_refuse(d, "--hold-out %s: there is only one, expected two or more", hold_out);
    return s;
}

static void print(const fl_setup *u, const fold *f, const fl_search_result *r, double score, bool held, fl_grid *g) {
    fl_grid_add(g, "%s", f->name ? f->name : "-");
    fl_grid_add(g, "%s", u->spec[r->winner].label);
    fl_grid_add(g, "%.2f%s", 100 * (1 - r->ratio), r->held ? "" : " (breaks the bound)");
    if (isnan(score))
        fl_grid_add(g, "n/a (is for none)");
    else
        fl_grid_add(g, "%.2f%s", 100 * (1 - score), held ? "" : " (breaks the bound)");
    fl_grid_add(g, "%zu of %zu", r->trials, r->whole);
    fl_grid_add(g, "%.1f", 100 * (1 - (double)r->trials / (double)r->whole));
}

static cJSON *row_json(const fl_setup *u, const fold *f, const fl_search_result *r, double score, bool held) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "held_out", f->name ? cJSON_CreateString(f->name) : cJSON_CreateNull());
    cJSON_AddStringToObject(o, "policy", u->spec[r->winner].label);
    fl_json_add_real(o, "tuned_saving_pct", 100 * (1 - r->ratio));
    cJSON_AddBoolToObject(o, "tuned_holds", r->held);
    fl_json_add_real(o, "scored_saving_pct", 100 * (1 - score));
    cJSON_AddBoolToObject(o, "scored_holds", held);
    cJSON_AddNumberToObject(o, "trials", (double)r->trials);
    cJSON_AddNumberToObject(o, "grid_trials", (double)r->whole);
    return o;
}

static cJSON *head_json(const fl_setup *u) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "candidates", (double)u->o.spec_count);
    cJSON_AddStringToObject(root, "objective", fl_objective_names[u->o.objective]);
    fl_json_add_real(root, "bound", u->o.bound);
    return root;
}

int fl_cmd_search(int argc, char **argv) {
    fl_setup_options so = FL_SETUP_UNSET;
    const char *tune = NULL, *score = NULL, *hold_out = NULL;
    double keep = 0.5;
    bool json = false;
    const fl_option option[] = {
        FL_SETUP_OPTIONS(so),
        {"tune", "PATTERN", FL_OPTION_TEXT, &tune, 0, 0, "workloads to tune on (all)"},
        {"score", "PATTERN", FL_OPTION_TEXT, &score, 0, 0, "workloads to score on (those tuned on)"},
        {"hold-out", "WHAT", FL_OPTION_TEXT, &hold_out, 0, 0,
         "workload or platform: each in turn is scored on, not tuned on"},
        {"keep", "X", FL_OPTION_REAL, &keep, 0, 1, "share of the candidates that each round keeps (0.5)"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &so.rest, &status))
        return status;
    fl_diag d = {0};
    fl_setup u = {0};
    fl_trials *t = NULL;
    fold *folds = NULL;
    size_t count = 0;
    static const char *const head[] = {"held out", "best", "saving % tuned", "saving % scored", "trials", "saved %"};
    fl_grid g = FL_GRID_HEADED(head);
    cJSON *rows = cJSON_CreateArray();
    so.no_oracle = true;
    fl_status s = fl_setup_open(&u, &so, &d);
    if (!s && fl_experiment_draws(&u.experiment))
        s = fl_fail(&d, FL_BAD_INPUT, u.experiment.path, 0, 0,
                    "a distribution replay, expected an experiment with kernels");
    if (!s)
        s = make_folds(&u.scenes, tune, score, hold_out, &folds, &count, &d);
    if (!s)
        s = fl_trials_open(&t, &u.o, &d);
    for (size_t i = 0; !s && i < count; i++) {
        const fl_search_options how = {.keep = keep, .seed = u.o.seed, .use = folds[i].tune};
        fl_search_result r;
        double x = 0;
        bool held = true;
        s = fl_search_run(t, &u.o, &how, &r, &d);
        if (!s)
            s = fl_search_score(t, &u.o, r.winner, folds[i].score, &x, &held, &d);
        if (!s)
            print(&u, &folds[i], &r, x, held, &g);
        if (!s)
            cJSON_AddItemToArray(rows, row_json(&u, &folds[i], &r, x, held));
    }
    if (s) {
        status = fl_command_fail("search", &d);
    } else if (json) {
        cJSON *root = head_json(&u);
        cJSON_AddItemReferenceToObject(root, "rows", rows);
        fl_json_print(root, stdout);
        cJSON_Delete(root);
    } else {
        printf("successive halving over %zu candidates, objective %s%s\n\n", u.o.spec_count,
               fl_objective_names[u.o.objective], hold_out ? ", scored on what was held out" : "");
        fl_grid_print(&g, 2, stdout);
    }
    cJSON_Delete(rows);
    fl_grid_free(&g);
    for (size_t i = 0; i < count; i++) {
        free(folds[i].tune);
        free(folds[i].score);
    }
    free(folds);
    fl_trials_close(t);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return status;
}
