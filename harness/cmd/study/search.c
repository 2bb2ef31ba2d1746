/* `foldline search`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 5 /* candidates in the table of a search */

static const fl_command_help help = {
    "search", "EXPERIMENT.json|FILE [--tune PATTERN --score PATTERN | --hold-out workload|platform]",
    "Finds the best of an experiment's policies and parameter values by successive halving, and scores it on "
    "workloads that it was not tuned on.",
    "The candidates are the policies of the experiment, or those of --policy. For several values of a parameter, "
    "write --policy NAME:P=0.8/0.9, or {\"each\": [0.8, 0.9]} as its value in the experiment.\n\n"
    "The search runs every candidate on a few workloads and seeds, and the better ones on more. It judges a "
    "candidate by its objective divided by the default's. A candidate that breaks a --bound never ranks above one "
    "that holds all bounds; the winner holds them on everything it was tuned on, unless no candidate does. --tune "
    "and --score take shell patterns of workload names. --hold-out leaves out each workload (or platform) in turn, "
    "tunes on the rest and scores on the one left out. The table shows the " FL_AS_TEXT(
        SHOWN) " best candidates, all "
               "on the scored workloads; of a search with --hold-out the winner of each. -o FILE has a row for each "
               "candidate. The "
               "winner is checked: all candidates "
               "run on " FL_AS_TEXT(FL_SEARCH_CHECK_PAIRS) " pairs of workload and seed of those tuned on, drawn with "
                                                           "seed " FL_AS_TEXT(FL_SEARCH_CHECK_SEED) "."};

typedef struct fold { /* what is tuned on, and scored on */
    const char *name;
    bool *tune, *score; /* by scene */
} fold;

typedef struct found { /* in one fold */
    fl_search_result result;
    fl_search_rank *rank;       /* of all candidates, the best first */
    fl_row_result score[SHOWN]; /* of the first `scored` of them */
    size_t scored;
    fl_search_check check;
} found;

static bool matches(const fl_scene *s, const char *pattern) {
    return !pattern || fl_workload_matches(s->w->name, s->variant, pattern);
}

static const char *group_of(const fl_scene *s, bool platform) { return platform ? s->platform.name : s->w->name; }

static void add_fold(fold **all, size_t *count, size_t *room, const char *name, size_t scenes) {
    fl_must_grow(all, room, *count + 1, sizeof **all);
    (*all)[(*count)++] =
        (fold){name, fl_must(calloc(scenes + 1, sizeof(bool))), fl_must(calloc(scenes + 1, sizeof(bool)))};
}

static fl_status make_folds(const fl_scenes *scenes, const char *tune, const char *score, const char *hold_out,
                            fold **all, size_t *count, fl_diag *d) {
    size_t room = 0;
    const bool platform = hold_out && !strcmp(hold_out, "platform");
    for (size_t i = 0; i < (hold_out ? scenes->count : 1); i++) {
        const char *name = hold_out ? group_of(scenes->item[i], platform) : NULL;
        bool seen = false;
        for (size_t k = 0; k < *count; k++)
            seen |= name && !strcmp((*all)[k].name, name);
        if (seen)
            continue;
        add_fold(all, count, &room, name, scenes->count);
        for (size_t k = 0; k < scenes->count; k++) {
            fold *f = &(*all)[*count - 1];
            const bool out = name && !strcmp(group_of(scenes->item[k], platform), name);
            f->tune[k] = hold_out ? !out : matches(scenes->item[k], tune);
            f->score[k] = hold_out ? out : matches(scenes->item[k], score ? score : tune);
        }
    }
    return hold_out && *count < 2 ? fl_refuse(d, "--hold-out %s: there is only one, expected two or more", hold_out)
                                  : FL_OK;
}

static double saving_pct(double ratio) { return 100 * (1 - ratio); }

static bool is_bounded(const fl_setup *u) { return isfinite(u->o.bound) || u->promises.count; }

/* One row for each candidate that is shown: the best of the search, or the winner of each fold. */
static void print_table(const fl_setup *u, const fold *f, const found *x, size_t count, bool apart, bool wide) {
    const size_t each = x->scored;
    fl_row_result *row = fl_must(calloc(count * each + 1, sizeof *row));
    for (size_t i = 0; i < count * each; i++)
        row[i] = x[i / each].score[i % each];
    fl_row_table t = {.row = row,
                      .count = count * each,
                      .objective = u->o.objective,
                      .wide = wide,
                      .bounded = is_bounded(u),
                      .several = row->rows > 1 && row->workloads != 1,
                      .one = row->workloads == 1};
    fl_grid g = {0};
    if (f->name)
        fl_grid_column(&g, "held out", "what the search did not see");
    fl_grid_column(&g, "policy",
                   f->name ? "the best policy without it"
                           : "the best candidates; the search ran lower ones on fewer workloads");
    fl_row_table_heads(&t, &g);
    if (apart)
        fl_grid_column(&g, "tuned %", "mean of the %s savings where it was tuned", fl_objective_title[t.objective]);
    for (size_t i = 0; i < t.count; i++) {
        const fl_search_sum *tuned = &x[i / each].rank[i % each].sum;
        if (f->name)
            fl_grid_add(&g, "%s", f[i].name);
        fl_grid_add(&g, "%s", row[i].policy);
        fl_row_table_cells(&t, &g, &row[i]);
        if (apart)
            fl_grid_number(&g, saving_pct(tuned->ratio), 2, tuned->violated ? " (breaks the bound)" : "");
    }
    fl_row_table_marks(&t, &g);
    fl_grid_print(&g, f->name ? 2 : 1, stdout);
    free(row);
}

static void print_check(const fl_setup *u, const fold *f, const fl_search_result *r, const fl_search_check *c) {
    const bool bounded = is_bounded(u);
    if (r->sum.violated)
        printf("no candidate holds the bounds on all pairs of workload and seed%s%s\n",
               f->name ? " that are not of " : "", f->name ? f->name : "");
    printf("check%s%s: all %zu candidates on %zu of %zu pairs of workload and seed, drawn with seed %d: ",
           f->name ? ", held out " : "", f->name ? f->name : "", c->compared, c->pairs, c->of, FL_SEARCH_CHECK_SEED);
    if (c->best_spec == SIZE_MAX) {
        printf("none holds the bounds there\n");
        return;
    }
    if (c->best_spec == r->winner) {
        printf(bounded ? "the winner is the best of %zu that hold the bounds there\n" : "the winner is the best\n",
               c->held);
        return;
    }
    printf("%s saves %.2f %% there, the winner %.2f; ", u->spec[c->best_spec].label, saving_pct(c->best.ratio),
           saving_pct(c->winner.ratio));
    if (c->everywhere.violated)
        printf("it breaks a bound in %zu of all %zu\n", c->everywhere.violated, c->everywhere.runs);
    else
        printf("on all %zu it saves %.2f %%\n", c->everywhere.runs, saving_pct(c->everywhere.ratio));
}

/* Candidates with the winner's result are no worse than it: say how many there are. */
static void print_ties(const found *x, size_t candidates) {
    size_t equal = 0;
    for (size_t i = 1; i < candidates; i++) {
        const fl_search_sum *a = &x->rank[0].sum, *b = &x->rank[i].sum;
        equal += a->runs == b->runs && a->violated == b->violated && a->ratio == b->ratio && a->slowdown == b->slowdown;
    }
    if (equal)
        printf("tie: %zu other candidate%s had the same result as the winner\n", equal, equal == 1 ? "" : "s");
}

/* PREFIX_saving_pct and so on: how a candidate did. */
static void add_sum(cJSON *o, const char *prefix, const fl_search_sum *sum) {
    char key[64];
    snprintf(key, sizeof key, "%s_saving_pct", prefix);
    fl_json_add_real(o, key, saving_pct(sum->ratio));
    snprintf(key, sizeof key, "%s_slowdown_pct", prefix);
    fl_json_add_real(o, key, 100 * sum->slowdown);
    snprintf(key, sizeof key, "%s_runs", prefix);
    cJSON_AddNumberToObject(o, key, (double)sum->runs);
    snprintf(key, sizeof key, "%s_violated", prefix);
    cJSON_AddNumberToObject(o, key, (double)sum->violated);
}

static cJSON *check_json(const fl_setup *u, const fl_search_check *c, size_t winner) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "seed", FL_SEARCH_CHECK_SEED);
    cJSON_AddNumberToObject(o, "pairs", (double)c->pairs);
    cJSON_AddNumberToObject(o, "of", (double)c->of);
    cJSON_AddNumberToObject(o, "compared", (double)c->compared);
    cJSON_AddNumberToObject(o, "held", (double)c->held);
    add_sum(o, "winner", &c->winner);
    if (c->best_spec == SIZE_MAX) {
        cJSON_AddNullToObject(o, "best");
        return o;
    }
    cJSON_AddStringToObject(o, "best", u->spec[c->best_spec].label);
    add_sum(o, "best", &c->best);
    if (c->best_spec != winner)
        add_sum(o, "best_everywhere", &c->everywhere);
    return o;
}

/* A candidate; what is of the search as a whole stands with its winner. */
static cJSON *found_json(const fl_setup *u, const fold *f, const found *x, size_t rank) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "held_out", f->name ? cJSON_CreateString(f->name) : cJSON_CreateNull());
    cJSON_AddStringToObject(o, "policy", u->spec[x->rank[rank].spec].label);
    cJSON_AddNumberToObject(o, "rank", (double)rank + 1);
    add_sum(o, "tuned", &x->rank[rank].sum);
    if (rank < x->scored) {
        const fl_search_sum sum = fl_search_sum_of(&x->score[rank]);
        add_sum(o, "scored", &sum);
    }
    if (rank)
        return o;
    cJSON_AddNumberToObject(o, "trials", (double)x->result.trials);
    cJSON_AddNumberToObject(o, "grid_trials", (double)x->result.whole);
    cJSON_AddItemToObject(o, "check", check_json(u, &x->check, x->result.winner));
    return o;
}

/* One search: tuned, scored, checked. */
static fl_status search_one(const fl_setup *u, fl_trials *t, const fold *f, double keep, found *x, fl_diag *d) {
    x->rank = fl_must(calloc(u->o.spec_count + 1, sizeof *x->rank));
    const fl_search_options how = {.keep = keep, .seed = u->o.seed, .use = f->tune, .rank = x->rank};
    const size_t shown = f->name ? 1 : u->o.spec_count < SHOWN ? u->o.spec_count : SHOWN;
    fl_status s = fl_search_run(t, &u->o, &how, &x->result, d);
    for (; !s && x->scored < shown; x->scored += !s)
        s = fl_search_score(t, &u->o, x->rank[x->scored].spec, f->score, &x->score[x->scored], d);
    return s ? s : fl_search_check_run(t, &u->o, f->tune, x->result.winner, &x->check, d);
}

static cJSON *to_json(const fl_setup *u, const fold *f, const found *x, size_t count) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    cJSON_AddNumberToObject(root, "candidates", (double)u->o.spec_count);
    cJSON_AddStringToObject(root, "objective", fl_objective_names[u->o.objective]);
    fl_json_add_real(root, "bound", u->o.bound);
    cJSON_AddItemToObject(root, "bounds", fl_promises_json(&u->promises));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < (f->name ? 1 : u->o.spec_count); k++)
            cJSON_AddItemToArray(rows, found_json(u, &f[i], &x[i], k));
    return root;
}

static void print_found(const fl_setup *u, const fold *f, const found *x, size_t count, bool apart, bool wide) {
    size_t trials = 0, whole = 0;
    for (size_t i = 0; i < count; i++) {
        trials += x[i].result.trials;
        whole += x[i].result.whole;
    }
    if (u->o.spec_count == 1)
        fl_terminal_say(stderr, "note: there is one candidate; for more, give a parameter several values, as in "
                                "--policy NAME:PARAMETER=A/B/C");
    fl_scene_assumed(&u->scenes, stdout);
    printf("successive halving over %zu candidate%s, in %zu trials of %zu", u->o.spec_count,
           u->o.spec_count == 1 ? "" : "s", trials, whole);
    fl_promises_put(&u->promises, u->o.bound, u->o.objective, stdout);
    printf("%s\n\n", f->name ? ", scored on what was held out" : "");
    print_table(u, f, x, count, apart, wide);
    putchar('\n');
    for (size_t i = 0; i < count; i++) {
        print_ties(&x[i], u->o.spec_count);
        print_check(u, &f[i], &x[i].result, &x[i].check);
    }
}

int fl_cmd_search(int argc, char **argv) {
    fl_setup_options so = FL_SETUP_UNSET;
    const char *tune = NULL, *score = NULL, *hold_out = NULL, *out = NULL;
    double keep = 0.5;
    bool json = false, wide = false;
    const fl_option option[] = {
        FL_SETUP_OPTIONS(so),
        {"tune", "PATTERN", FL_OPTION_TEXT, &tune, 0, 0, "workloads to tune on (all)"},
        {"score", "PATTERN", FL_OPTION_TEXT, &score, 0, 0, "workloads to score on (those tuned on)"},
        {"hold-out", "workload|platform", FL_OPTION_CHOICE, &hold_out, 0, 0, "each in turn is scored on, not tuned on",
         FL_MOST_USED},
        {"keep", "X", FL_OPTION_REAL, &keep, 0, 1, "share of the candidates that each round keeps (0.5)"},
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "writes a row for each candidate as CSV", FL_FOR_OUTPUT},
        FL_WIDE_OPTION(&wide),
        FL_JSON_OPTION(&json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &so.rest, &status))
        return status;
    fl_diag d = {0};
    fl_setup u = {0};
    fl_trials *t = NULL;
    fold *folds = NULL;
    size_t count = 0;
    fl_status s = hold_out && (tune || score)
                      ? fl_refuse(&d, "--hold-out beside --%s, expected either", tune ? "tune" : "score")
                      : FL_OK;
    so.no_oracle = true;
    if (!s)
        s = fl_setup_open(&u, &so, &d);
    if (!s && fl_experiment_draws(&u.experiment))
        s = fl_fail(&d, FL_BAD_INPUT, u.experiment.path, 0, 0,
                    "a distribution replay, expected an experiment with kernels");
    if (!s)
        s = make_folds(&u.scenes, tune, score, hold_out, &folds, &count, &d);
    if (!s)
        s = fl_trials_open(&t, &u.o, &d);
    found *all = fl_must(calloc(count + 1, sizeof *all));
    for (size_t i = 0; !s && i < count; i++)
        s = search_one(&u, t, &folds[i], keep, &all[i], &d);
    cJSON *result = s ? NULL : to_json(&u, folds, all, count);
    if (!s && json)
        fl_json_print(result, stdout);
    else if (!s)
        print_found(&u, folds, all, count, hold_out || score, wide);
    if (!s && out && !(s = fl_json_write_rows(out, cJSON_GetObjectItem(result, "rows"), &d)) && !json)
        printf("written: %s\n", out);
    if (s)
        status = fl_command_fail("search", &d);
    cJSON_Delete(result);
    for (size_t i = 0; i < count; i++) {
        free(folds[i].tune);
        free(folds[i].score);
        free(all[i].rank);
    }
    free(folds);
    free(all);
    fl_trials_close(t);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return status;
}
