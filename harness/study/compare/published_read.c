/* Reads "published" of an experiment. */
#include "harness/study/compare/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static fl_status choose(const fl_json *at, const char *key, const char *const *name, size_t count, size_t *index,
                        fl_diag *d) {
    const char *text;
    fl_json value;
    fl_status s = fl_json_get(at, key, &value, d);
    if (!s)
        s = fl_json_get_text(at, key, &text, d);
    for (size_t i = 0; !s && i < count; i++)
        if (!strcmp(text, name[i])) {
            *index = i;
            return FL_OK;
        }
    const char *near = s ? NULL : fl_nearest(text, name, count);
    if (s)
        return s;
    return near ? fl_json_fail(&value, d, "'%s', did you mean '%s'?", text, near)
                : fl_json_fail(&value, d, "'%s', expected one of %s, %s, ...", text, name[0], name[1]);
}

/* "draws": of the numbers of each draw of the applications; their mean where nothing is said. */
static fl_status read_over_draws(selection *s, fl_diag *d) {
    static const char *const names[] = {"mean", "min", "max", "sum"};
    static const enum published_over ways[] = {MEAN, MIN, MAX, SUM};
    size_t index = 0;
    fl_status status = fl_json_has(&s->at, "draws") ? choose(&s->at, "draws", names, 4, &index, d) : FL_OK;
    s->over_draws = ways[index];
    return status;
}

static fl_status read_over(selection *s, fl_diag *d) {
    static const char *const names[] = {"mean", "geomean", "median",      "min",        "max",
                                        "sum",  "error",   "count_below", "count_above"};
    const char *text;
    fl_json value;
    if (!fl_json_has(&s->at, "over"))
        return FL_OK;
    fl_status status = fl_json_get_text(&s->at, "over", &text, d);
    if (!status)
        status = fl_json_get(&s->at, "over", &value, d);
    const char *colon = status ? NULL : strchr(text, ':');
    const size_t size = status ? 0 : colon ? (size_t)(colon - text) : strlen(text);
    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != size || strncmp(text, names[i], size) != 0)
            continue;
        char *end = NULL;
        s->over = (enum published_over)i;
        s->limit = colon ? strtod(colon + 1, &end) : 0;
        if ((i >= COUNT_BELOW) != (colon != NULL) || (colon && (end == colon + 1 || *end)))
            break;
        return FL_OK;
    }
    return status ? status
                  : fl_json_fail(
                        &value, d,
                        "'%s', expected mean, geomean, median, min, max, sum, error, count_below:X or count_above:X",
                        text);
}

static fl_status check_policy(const selection *s, const char *key, const char *pattern, const fl_texts *policies,
                              fl_diag *d) {
    static const char *const baseline[] = {"baseline:default", "baseline:static", "baseline:per-kernel",
                                           "baseline:clairvoyant"};
    fl_json value;
    for (size_t i = 0; i < policies->count; i++)
        if (!fnmatch(pattern, policies->item[i], 0))
            return FL_OK;
    for (size_t i = 0; i < sizeof baseline / sizeof *baseline; i++)
        if (!fnmatch(pattern, baseline[i], 0))
            return FL_OK;
    fl_status status = fl_json_get(&s->at, key, &value, d);
    const char *near = fl_nearest(pattern, (const char *const *)policies->item, policies->count);
    if (status)
        return status;
    return near ? fl_json_fail(&value, d, "'%s' is no policy of this experiment, did you mean '%s'?", pattern, near)
                : fl_json_fail(&value, d, "'%s' is no policy of this experiment", pattern);
}

static fl_status read_text(const fl_json *at, const char *key, const char **text, fl_diag *d) {
    return fl_json_has(at, key) ? fl_json_get_text(at, key, text, d) : FL_OK;
}

static fl_status check_column(const fl_json *at, const char *key, const char *name, fl_diag *d) {
    const fl_row_result none = {0};
    double ignored;
    fl_diag why = {0};
    fl_json value;
    if (!fl_row_value(&none, name, &ignored, &why))
        return FL_OK;
    fl_status status = fl_json_get(at, key, &value, d);
    return status ? status : fl_json_fail(&value, d, "%s", why.message);
}

static fl_status read_where(selection *s, fl_diag *d) {
    static const char *const sides[] = {NULL, "above", "below"};
    fl_json at, side;
    fl_status status = FL_OK;
    if (!fl_json_has(&s->at, "where"))
        return FL_OK;
    s->where = (condition){.above = -HUGE_VAL, .below = HUGE_VAL};
    if ((status = fl_json_get_object(&s->at, "where", &at, d)) ||
        (status = fl_json_get_text(&at, "column", &s->where.column, d)) ||
        (status = check_column(&at, "column", s->where.column, d)))
        return status;
    double *const side_of[] = {NULL, &s->where.above, &s->where.below};
    bool any = false;
    for (size_t i = 1; !status && i < 3; i++) {
        if (!fl_json_has(&at, sides[i]))
            continue;
        any = true;
        status = fl_json_get(&at, sides[i], &side, d);
        status = status ? status : fl_json_real(&side, -HUGE_VAL, HUGE_VAL, side_of[i], d);
    }
    return status || any ? status : fl_json_fail(&at, d, "no side of %s, expected above or below", s->where.column);
}

static fl_status read_rivals(selection *s, const fl_texts *policies, fl_diag *d) {
    s->most = fl_json_has(&s->at, "most_of");
    if (!s->most && !fl_json_has(&s->at, "least_of"))
        return FL_OK;
    const char *key = s->most ? "most_of" : "least_of";
    fl_status status = fl_json_get_array(&s->at, key, &s->rivals, d);
    if (!status && fl_json_has(&s->at, "most_of") && fl_json_has(&s->at, "least_of"))
        status = fl_json_fail(&s->rivals, d, "'least_of' and 'most_of', expected one of them");
    if (!status && !fl_json_count(&s->rivals))
        status = fl_json_fail(&s->rivals, d, "no policy, expected at least one");
    for (fl_json at = status ? (fl_json){0} : fl_json_first(&s->rivals); !status && at.node;
         at = fl_json_next(&s->rivals, &at)) {
        const char *name = cJSON_GetStringValue(at.node);
        status = name ? check_policy(s, key, name, policies, d) : fl_json_fail(&at, d, "expected a policy's name");
    }
    return status;
}

/* Reads a selection, and computes its value. */
static fl_status published_selection(const fl_json *at, const fl_texts *policies, selection *s, fl_diag *d) {
    static const char *const forms[] = {"saving_pct", "change_pct", "ratio", "difference", "abs_difference"};
    *s = (selection){.at = *at, .workload = "*"};
    size_t index = 0;
    fl_status status = fl_json_object(at, d);
    if (status || (status = fl_json_get_text(at, "policy", &s->policy, d)) ||
        (status = fl_json_get_text(at, "column", &s->column, d)) ||
        (status = read_text(at, "workload", &s->workload, d)) || (status = read_text(at, "variant", &s->variant, d)) ||
        (status = read_text(at, "against", &s->against, d)) ||
        (status = read_text(at, "against_column", &s->against_column, d)) || (status = read_over(s, d)) ||
        (status = read_over_draws(s, d)))
        return status;
    if (fl_json_has(at, "as") && (status = choose(at, "as", forms, sizeof forms / sizeof *forms, &index, d)))
        return status;
    if (fl_json_has(at, "as") != (s->against != NULL))
        return fl_json_fail(at, d, "'against' and 'as' belong together, expected both or none");
    if (s->against)
        s->form = (form)(index + 1);
    if ((status = read_where(s, d)) || (status = read_rivals(s, policies, d)))
        return status;
    if ((status = check_policy(s, "policy", s->policy, policies, d)) ||
        (s->against && (status = check_policy(s, "against", s->against, policies, d))) ||
        (status = check_column(at, "column", s->column, d)))
        return status;
    if (s->against_column)
        return check_column(at, "against_column", s->against_column, d);
    s->against_column = s->column;
    return FL_OK;
}

static fl_status read_bound(const fl_json *gate, const char *key, bool selectable, const fl_texts *policies, bound *b,
                            fl_diag *d) {
    fl_json value;
    if (!fl_json_has(gate, key))
        return FL_OK;
    b->given = true;
    fl_status s = fl_json_get(gate, key, &value, d);
    if (!s && selectable && cJSON_IsObject(value.node)) {
        b->selected = true;
        return published_selection(&value, policies, &b->what, d);
    }
    return s ? s : fl_json_real(&value, selectable ? -HUGE_VAL : 0, HUGE_VAL, &b->value, d);
}

static fl_status read_value(const fl_json *at, published_line *l, fl_diag *d) {
    fl_json value;
    l->low = l->high = NAN;
    fl_status s = fl_json_get(at, "published", &value, d);
    if (s || cJSON_IsNull(value.node))
        return s;
    if (!cJSON_IsArray(value.node)) {
        s = fl_json_real(&value, -HUGE_VAL, HUGE_VAL, &l->low, d);
        l->high = l->low;
        return s;
    }
    if (fl_json_count(&value) != 2)
        return fl_json_fail(&value, d, "a range of %zu numbers, expected [low, high]", fl_json_count(&value));
    fl_json low = fl_json_first(&value), high = fl_json_next(&value, &low);
    s = fl_json_real(&low, -HUGE_VAL, HUGE_VAL, &l->low, d);
    return s ? s : fl_json_real(&high, l->low, HUGE_VAL, &l->high, d);
}

/* Set a key of the selection. "+KEY" puts its text behind the one that KEY has so far. */
static void set_key(cJSON *all, const cJSON *given) {
    const bool behind = given->string[0] == '+' && cJSON_IsString(given);
    const char *key = given->string + behind;
    const char *first = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, key));
    char *text = behind ? fl_must_print("%s%s", first ? first : "", given->valuestring) : NULL;
    cJSON *value = behind ? cJSON_CreateString(text) : cJSON_Duplicate(given, true);
    free(text);
    cJSON_DeleteItemFromObjectCaseSensitive(all, key);
    fl_must_have(cJSON_AddItemToObject(all, key, value));
}

fl_status fl_published_merge(const fl_json *const *part, size_t count, const fl_json *at, cJSON *merged,
                             const fl_texts *policies, selection *s, fl_diag *d) {
    cJSON *all = cJSON_CreateObject();
    fl_must_have(cJSON_AddItemToArray(merged, all));
    for (size_t i = 0; i < 2 * count; i++) {
        const fl_json *from = part[i % count];
        for (fl_json e = from->node ? fl_json_first(from) : (fl_json){0}; e.node; e = fl_json_next(from, &e))
            if ((e.node->string[0] == '+') == (i >= count))
                set_key(all, e.node);
    }
    fl_json whole = *at;
    whole.node = all;
    return published_selection(&whole, policies, s, d);
}

/* "holds_at": parts that make other selections of the simulated one. */
static fl_status read_instead(const fl_json *at, const fl_json *simulated, const fl_texts *policies, cJSON *merged,
                              published_line *l, fl_diag *d) {
    fl_json list;
    if (!fl_json_has(at, "holds_at"))
        return FL_OK;
    fl_status s = fl_json_get_array(at, "holds_at", &list, d);
    if (s)
        return s;
    l->instead = fl_must(calloc(fl_json_count(&list) + 1, sizeof *l->instead));
    for (fl_json part = fl_json_first(&list); !s && part.node; part = fl_json_next(&list, &part)) {
        const fl_json *const parts[] = {simulated, &part};
        s = fl_json_object(&part, d);
        if (!s)
            s = fl_published_merge(parts, 2, &part, merged, policies, &l->instead[l->instead_count++], d);
    }
    return s;
}

/* The block, the kind and the recorded verdict. */
static fl_status read_marks(const fl_json *at, published_line *l, fl_diag *d) {
    size_t block = DETAIL, kind = PREDICTED, recorded = REPRODUCED;
    fl_status s = read_text(at, "because", &l->because, d);
    if (!s && fl_json_has(at, "block"))
        s = choose(at, "block", fl_block_names, 3, &block, d);
    if (!s && fl_json_has(at, "kind"))
        s = choose(at, "kind", fl_kind_names, 3, &kind, d);
    if (!s && fl_json_has(at, "verdict"))
        s = choose(at, "verdict", fl_verdict_names, PUBLISHED_VERDICTS, &recorded, d);
    l->block = (published_block)block;
    l->kind = (published_kind)kind;
    l->recorded = (published_verdict)recorded;
    return s;
}

/* What goes with what. */
static fl_status check_marks(const fl_json *at, const published_line *l, fl_diag *d) {
    const bool gated = fl_published_gated(l), given = l->block == GIVEN || l->kind == TAKEN;
    if (given && gated)
        return fl_json_fail(at, d, "an input with a gate, expected neither a gate nor a verdict of an input");
    if (l->block == CLAIM && !gated && l->kind == PREDICTED)
        return fl_json_fail(at, d, "a claim without a gate, expected 'gate' beside it");
    if (fl_json_has(at, "verdict") && !gated)
        return fl_json_fail(at, d, "'verdict' without a gate, expected 'gate' beside it");
    if (l->recorded >= UNPUBLISHED_INPUT && !l->because)
        return fl_json_fail(at, d, "'%s' without a reason, expected 'because' beside it",
                            fl_verdict_names[l->recorded]);
    if (l->recorded < UNPUBLISHED_INPUT && l->because)
        return fl_json_fail(at, d, "'because' of '%s', expected a verdict that needs a reason",
                            fl_verdict_names[l->recorded]);
    if (l->recorded == SAMPLING_ERROR && !l->repetitions.given)
        return fl_json_fail(at, d, "'%s' of unknown repetitions, expected 'repetitions' in the gate",
                            fl_verdict_names[l->recorded]);
    if (l->recorded == UNPUBLISHED_INPUT && !l->instead_count)
        return fl_json_fail(at, d, "'%s' without 'holds_at', expected the inputs at which the gate holds",
                            fl_verdict_names[l->recorded]);
    return FL_OK;
}

static fl_status read_line(const fl_json *at, const fl_texts *policies, cJSON *merged, published_line *l, fl_diag *d) {
    static const char *const draws[] = {"most", "all"};
    fl_json simulated, gate;
    size_t of_draws = 0;
    l->value = l->value_free = l->error = l->deviation = NAN;
    l->unit = l->note = "";
    fl_status s = fl_json_object(at, d);
    if (s || (s = fl_json_get_text(at, "quantity", &l->quantity, d)) || (s = read_text(at, "unit", &l->unit, d)) ||
        (s = read_text(at, "note", &l->note, d)) || (s = read_value(at, l, d)))
        return s;
    if ((s = read_marks(at, l, d)))
        return s;
    if (fl_json_has(at, "simulated") && ((s = fl_json_get_object(at, "simulated", &simulated, d)) ||
                                         (s = published_selection(&simulated, policies, &l->simulated, d)) ||
                                         (s = read_instead(at, &simulated, policies, merged, l, d))))
        return s;
    if (fl_json_has(at, "by_draw") && (s = fl_json_get_text(at, "by_draw", &l->by_draw, d)))
        return s;
    if (fl_json_has(at, "share_of") && ((s = fl_json_get_object(at, "share_of", &simulated, d)) ||
                                        (s = published_selection(&simulated, policies, &l->share_of, d))))
        return s;
    if (l->share_of.policy && !l->simulated.policy)
        return fl_json_fail(at, d, "'share_of' of nothing, expected 'simulated' beside it");
    if (!fl_json_has(at, "gate"))
        return check_marks(at, l, d);
    if ((s = fl_json_get_object(at, "gate", &gate, d)) ||
        (fl_json_has(&gate, "draws") && (s = choose(&gate, "draws", draws, 2, &of_draws, d))))
        return s;
    l->all_draws = of_draws == 1;
    if (!l->simulated.policy)
        return fl_json_fail(&gate, d, "a gate on nothing, expected 'simulated' beside it");
    if ((s = read_bound(&gate, "above", true, policies, &l->above, d)) ||
        (s = read_bound(&gate, "below", true, policies, &l->below, d)) ||
        (s = read_bound(&gate, "within", false, policies, &l->within, d)) ||
        (s = read_bound(&gate, "within_pct", false, policies, &l->within_pct, d)) ||
        (s = read_bound(&gate, "errors", false, policies, &l->errors, d)) ||
        (s = read_bound(&gate, "repetitions", false, policies, &l->repetitions, d)))
        return s;
    if ((l->errors.given || l->repetitions.given) &&
        (l->simulated.over != MEAN || l->share_of.policy || !fl_published_gated(l)))
        return fl_json_fail(&gate, d, "%s of what is no mean, or of no bound, expected both",
                            l->errors.given ? "errors" : "repetitions");
    if (isnan(l->low) && (l->within.given || l->within_pct.given))
        return fl_json_fail(&gate, d, "within of nothing, expected a published number beside it");
    return check_marks(at, l, d);
}

static fl_status read_calibrated(const fl_json *root, fl_published *p, fl_diag *d) {
    fl_json list;
    if (!fl_json_has(root, "calibrated"))
        return FL_OK;
    fl_status s = fl_json_get_array(root, "calibrated", &list, d);
    if (s)
        return s;
    p->calibrated = fl_must(calloc(fl_json_count(&list) + 1, sizeof *p->calibrated));
    for (fl_json at = fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at)) {
        published_calibrated *c = &p->calibrated[p->calibrated_count++];
        c->count = 1;
        if (!(s = fl_json_object(&at, d)) && !(s = fl_json_get_text(&at, "what", &c->what, d)) &&
            !(s = fl_json_get_text(&at, "to", &c->to, d)) && !(s = fl_json_get_text(&at, "before", &c->before, d)) &&
            fl_json_has(&at, "count"))
            s = fl_json_get_int(&at, "count", 1, 1000, &c->count, d);
    }
    return s;
}

/* A line is calibrated only where the experiment says what was. */
static fl_status check_calibrated(const fl_published *p, const fl_json *list, fl_diag *d) {
    for (size_t i = 0; i < p->count; i++)
        if (p->line[i].kind == CALIBRATED && !p->calibrated_count)
            return fl_json_fail(list, d, "'%s' is calibrated, expected 'calibrated' of the experiment to say to what",
                                p->line[i].quantity);
    return FL_OK;
}

fl_status fl_published_open(const fl_experiment *e, const fl_texts *policies, fl_published **out, fl_diag *d) {
    *out = NULL;
    if (!e->tree)
        return FL_OK;
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json list;
    if (!fl_json_has(&root, "published"))
        return FL_OK;
    fl_status s = fl_json_get_array(&root, "published", &list, d);
    if (s)
        return s;
    fl_published *p = fl_must(calloc(1, sizeof *p));
    p->line = fl_must(calloc(fl_json_count(&list) + 1, sizeof *p->line));
    p->merged = fl_must(cJSON_CreateArray());
    for (fl_json at = fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at))
        s = read_line(&at, policies, p->merged, &p->line[p->count++], d);
    if (!s)
        s = read_text(&root, "about", &p->about, d);
    if (!s)
        s = read_calibrated(&root, p, d);
    if (!s)
        s = check_calibrated(p, &list, d);
    if (!s && fl_json_has(&root, "assumed"))
        s = fl_json_get_array(&root, "assumed", &p->assumed, d);
    if (s) {
        fl_published_free(p);
        return s;
    }
    *out = p;
    return FL_OK;
}

void fl_published_free(fl_published *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++) {
        free(p->line[i].above.draw_value);
        free(p->line[i].below.draw_value);
        free(p->line[i].draw_value);
        free(p->line[i].instead);
    }
    free(p->line);
    free(p->calibrated);
    cJSON_Delete(p->merged);
    free(p->draw);
    free(p);
}
